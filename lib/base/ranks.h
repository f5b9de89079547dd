/*
 * ranks.h - several processes on one conversion: barriers, heartbeats, and stops that reach all
 *
 * Each rank works by itself.  At a barrier every rank sends its status to all peers and waits for theirs; then all know
 * the same: the worst status with its text, and the sums of some numbers.  So an error of one rank is the error of all,
 * and no rank waits for one that has given up.  Between barriers ranks_poll() hears of errors of peers, passes on the
 * user's wish to stop, and sends a heartbeat; a rank that sends nothing for long is reported lost.
 *
 * With one process all of this does nothing.  Only the thread of comm.h may call it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_RANKS_H
#define CHEX_LIB_RANKS_H

#include "base/comm.h"

#include <stdatomic.h>

/* Seconds without a message after which a rank is lost; before its first message, six times as many. */
#define RANKS_SILENCE 300.0

#define RANKS_HOST 64
#define RANKS_SUMS 16 /* numbers that a barrier adds up */

struct ranks_peer {
    char host[RANKS_HOST]; /* empty before its first barrier */
    double last_heard;     /* progress_clock() of its last message */
    struct buffer
        word[2]; /* its message of this barrier, and of the next, which it may have reached; empty: none yet */
};

struct ranks {
    struct comm *comm;
    double silence;          /* RANKS_SILENCE; shorter in tests */
    struct ranks_peer *peer; /* [comm->size]; this rank is among them */
    struct comm_message message;
    unsigned barrier; /* barriers that are passed */
    double last_sent; /* progress_clock() of the last message to all peers */

    atomic_bool stop;             /* ends the work of this rank: a stop by the user, or an error, at any rank */
    const atomic_bool *user_stop; /* may be NULL */
    bool warned;                  /* the peers know of the wish */
    enum chex_status broken;      /* CHEX_OK while no rank is lost; otherwise this rank waits for none */
    struct chex_error why;
};

/* ranks_release() frees it, also after a failure.  comm must outlive it. */
enum chex_status ranks_init(struct ranks *r, struct comm *comm, struct chex_error *err);
void ranks_release(struct ranks *r);

/* Five times a second or so.  After it r->stop is up to date. */
void ranks_poll(struct ranks *r);

/*
 * Wait for all peers.  status and *err are those of this rank; sum[RANKS_SUMS] (may be NULL) becomes the sum over the
 * ranks.  Returns on all ranks the first error in the order of ranks that is not CHEX_ERR_STOPPED, where there is one;
 * *err says "rank 3 n07: " before the text of a peer's.
 * CHEX_ERR_LOST  "rank 3 n07 is lost: not a word for 300 s ..."; r->broken: the process ends by comm->ops->abort()
 */
enum chex_status ranks_barrier(struct ranks *r, enum chex_status status, uint64_t *sum, struct chex_error *err);

/*
 * A barrier that also compares: text has lines "NAME VALUE\n" that must be equal, in the same order on all ranks.
 * CHEX_ERR_USAGE  "rank 3 n07 does not do the same as rank 0: it has 'seed 7', rank 0 'seed 1'"
 */
enum chex_status ranks_compare(struct ranks *r, enum chex_status status, const char *text, struct chex_error *err);

#endif
