/*
 * collective_private.h - what the files of collective.h share
 *
 * collective.c            beginning and end, gathering, meetings
 * collective_wait.c       receiving, heartbeats, waiting, lost ranks
 * collective_bulk.c       sums, by transfers
 * collective_broadcast.c  broadcast, by transfers
 *
 * Two kinds of calls.  In a gathering or a meeting each rank sends one message to every other.  Sums and broadcasts are
 * transfers, whose tags follow from counting.  Both are counted between meetings, `begun` and `ended`: the message of
 * a meeting says how many its sender has ended, so a rank that waits in a call knows whether the sender will still take
 * part.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_COLLECTIVE_PRIVATE_H
#define CHEX_TRAIN_COLLECTIVE_PRIVATE_H

#include "comm/collective.h"

#define COLLECTIVE_HOST 64

/* Bytes of a broadcast that go in one transfer. */
#define COLLECTIVE_PIECE (8u << 20)

/* Of messages; those of ranks.h are others. */
enum { TAG_BEAT = 16, TAG_GATHER, TAG_MEET };

/* The head before the data of a message. */
struct head {
    uint64_t meeting;           /* how many there were before */
    uint64_t begun, ended;      /* calls of the sender since then, a gathering's own not counted */
    uint64_t flags;             /* of a meeting; so is what follows */
    int32_t status, secondhand; /* secondhand: its error is that of another rank */
};

/* A message that came and is not needed yet. */
struct letter {
    struct letter *next;
    int tag;
    struct head head;
    struct buffer data; /* with the head before it */
};

struct peer {
    char host[COLLECTIVE_HOST]; /* empty until known */
    double last_heard;          /* collective.waited at its last word */
    bool missing;               /* the call that this rank waits in needs it */
    bool lost;
    struct letter *first, **last;
};

struct sum; /* collective_bulk.c */

struct collective {
    struct comm *comm;
    struct collective_options options;
    struct peer *peer; /* [comm->size] */
    struct comm_message message;

    uint64_t meeting, begun, ended;
    bool secondhand; /* the last error that a call returned was that of another rank */

    /*
     * Time: all in seconds of waiting, so that neither computing nor a process that was stopped makes others look dead.
     */
    double waited;
    double silence;        /* the longest of any rank so far */
    double terminating_at; /* `waited` when the signal was seen; negative: none */
    bool all_met;          /* all met after that */
    bool warned;           /* warn_waiting() was called */
    double last_sent;      /* progress_clock() of the last beat */
    double watched;        /* progress_clock() of the last collective_watch() */
    double watching;       /* of `waited`, in collective_watch() */

    int tag;                      /* of the last transfer */
    struct sum *sums, **last_sum; /* under way, in the order of their start */
    struct sum *spare, *given_up;
    bool left; /* a rank failed while transfers were under way */
    bool lost;
    struct chex_error why; /* with lost */
};

/* One call: it looks for arrived messages, sets peer.missing, and says when it is done. */
struct task {
    enum chex_status (*advance)(struct collective *c, void *context, bool *done, struct chex_error *err);
    void *context;
    bool meets;     /* a meeting itself: an error of another rank is no reason to leave */
    bool transfers; /* a sum or a broadcast: a rank that sends a message instead is in another call */
    uint64_t index; /* what `ended` of another must be above for it to take part */
};

/* ---- collective_wait.c ---- */

/* Until the task is done.  Fails as collective.h says. */
enum chex_status collective_wait(struct collective *c, const struct task *task, struct chex_error *err);
/* The same without waiting: done or not. */
enum chex_status collective_try(struct collective *c, const struct task *task, bool *done, struct chex_error *err);
/* This rank waits for no other any more. */
enum chex_status collective_lose(struct collective *c, struct chex_error *err);
struct letter *letter_take(struct peer *peer);
void letter_free(struct letter *letter);
/* The error that another rank brought to a meeting, with its name. */
enum chex_status letter_error(const struct collective *c, int rank, const struct letter *letter,
                              struct chex_error *err);

/* ---- collective_bulk.c ---- */

/* Sums that are under way are given up; their memory is kept. */
void collective_leave_sums(struct collective *c);
void collective_free_sums(struct collective *c);

/* Of a new transfer. */
int collective_next_tag(struct collective *c);
/* May there be a transfer?  Not after a loss, or after some were left behind. */
enum chex_status collective_usable(struct collective *c, struct chex_error *err);
/* Is it done, or was there nothing to do?  Then its rank has given a sign of life. */
enum chex_status collective_transfer_done(struct collective *c, int rank, struct comm_transfer **transfer, bool *done,
                                          struct chex_error *err);

/* ---- collective.c ---- */

/* Other calls want all sums to be ended.  CHEX_ERR_BUG */
enum chex_status collective_no_sums(const struct collective *c, struct chex_error *err);

#endif
