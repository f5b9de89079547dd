/*
 * collective_private.h - shared by the files that implement collective.h
 *
 * collective.c            start and end, gathering, meetings
 * collective_wait.c       receiving, heartbeats, waiting, lost ranks
 * collective_sum.c        sums, by transfers
 * collective_broadcast.c  broadcast, by transfers
 *
 * There are two kinds of calls.  In a gathering or a meeting each rank sends one message to every other rank.  Sums and
 * broadcasts use transfers, whose tags are counted.  Between meetings both kinds are counted in `begun` and `ended`.
 * The message of a meeting has the number that its sender has ended, so a waiting rank knows whether the sender will
 * still take part in its call.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_COLLECTIVE_PRIVATE_H
#define CHEX_LIB_COLLECTIVE_PRIVATE_H

#include "ranks/collective.h"

#define COLLECTIVE_HOST 64

/* Bytes of a broadcast per transfer. */
#define COLLECTIVE_PIECE (8u << 20)

/* Tags of messages. */
enum { TAG_BEAT = 16, TAG_GATHER, TAG_MEET };

/* Precedes the data of a message. */
struct head {
    uint64_t meeting;           /* number of earlier meetings */
    uint64_t begun, ended;      /* calls of the sender since then, without the gathering itself */
    uint64_t flags;             /* only in a meeting, like the following members */
    int32_t status, secondhand; /* secondhand: the error was received from another rank */
};

/* A received message that is not needed yet. */
struct letter {
    struct letter *next;
    int tag;
    struct head head;
    struct buffer data; /* including the head */
};

struct peer {
    char host[COLLECTIVE_HOST]; /* empty until known */
    double last_heard;          /* collective.waited when its last message arrived */
    bool missing;               /* the current call needs a message from it */
    bool lost;
    struct letter *first, **last;
};

struct sum; /* collective_sum.c */

struct collective {
    struct comm *comm;
    struct collective_options options;
    struct peer *peer; /* [comm->size] */
    struct comm_message message;

    uint64_t meeting, begun, ended;
    bool secondhand; /* the last error that a call returned came from another rank */

    /* Times in seconds of waiting.  So neither computing nor a suspended process makes other ranks look dead. */
    double waited;
    double waited_cpu;     /* CPU seconds of collective_wait() */
    double silence;        /* the longest of any rank so far */
    double terminating_at; /* `waited` when the signal was seen; negative: none */
    bool all_met;          /* all ranks have met since then */
    bool warned;           /* warn_waiting() was called */
    bool stop_asked;       /* by the user of any rank */
    bool stop_sent;        /* a heartbeat with it was sent */
    double last_sent;      /* clock_now() of the last beat */
    double watched;        /* clock_now() of the last collective_watch() */
    double watching;       /* the `waited` argument of collective_watch() */

    int tag;                      /* of the last transfer */
    struct sum *sums, **last_sum; /* in flight, in the order of their start */
    struct sum *spare, *given_up;
    bool abandoned; /* a rank failed during transfers */
    bool lost;
    struct chex_error why; /* the error, if lost */
};

/* A call: advance() handles arrived messages, sets peer.missing, and sets *done. */
struct task {
    enum chex_status (*advance)(struct collective *c, void *context, bool *done, struct chex_error *err);
    void *context;
    bool meets;     /* is a meeting: an error of another rank does not end it */
    bool transfers; /* is a sum or a broadcast: a rank that sends a message instead is in another call */
    uint64_t index; /* another rank takes part only if its `ended` is above this */
};

/* ---- collective_wait.c ---- */

/* Wait until the task is done.  Errors as in collective.h. */
enum chex_status collective_wait(struct collective *c, const struct task *task, struct chex_error *err);
/* As collective_wait(), without waiting; sets *done. */
enum chex_status collective_try(struct collective *c, const struct task *task, bool *done, struct chex_error *err);
/* Mark the collective as lost: this rank waits for no other any more. */
enum chex_status collective_lose(struct collective *c, struct chex_error *err);
struct letter *letter_take(struct peer *peer);
void letter_free(struct letter *letter);
/* Returns the error that another rank sent to a meeting, with its name. */
enum chex_status letter_error(const struct collective *c, int rank, const struct letter *letter,
                              struct chex_error *err);

/* ---- collective_sum.c ---- */

/* Give up the sums in flight; their memory is kept. */
void collective_abandon_sums(struct collective *c);
void collective_free_sums(struct collective *c);

/* Returns the tag of a new transfer. */
int collective_next_tag(struct collective *c);
/* Fails if transfers are no longer possible: after a loss, or after transfers were given up. */
enum chex_status collective_usable(struct collective *c, struct chex_error *err);
/* Check whether a transfer is done (NULL: nothing to do); if so, its rank counts as alive. */
enum chex_status collective_transfer_done(struct collective *c, int rank, struct comm_transfer **transfer, bool *done,
                                          struct chex_error *err);

/* ---- collective.c ---- */

/* Check that no sum is in flight, which the other calls require.  CHEX_ERR_BUG */
enum chex_status collective_no_sums(const struct collective *c, struct chex_error *err);

#endif
