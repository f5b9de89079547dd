/*
 * ranks.h - coordinates the processes of one conversion: barriers, heartbeats, errors and stops
 *
 * Each rank works independently.  At a barrier every rank sends its status to all peers and waits for theirs.  After it
 * all ranks know the worst status with its text, and the sums of some numbers.  So an error of one rank ends all ranks,
 * and no rank waits for one that has failed.  Between barriers, ranks_poll() receives errors of peers, forwards the
 * user's stop request and sends a heartbeat.  A rank that sends nothing for a long time is reported as lost.
 *
 * With a single process these functions do nothing.  Only the thread of comm.h may call them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_RANKS_H
#define CHEX_LIB_RANKS_H

#include "ranks/comm.h"

#include <stdatomic.h>

/* A rank without a message for this many seconds is lost.  Before its first barrier, it has six times as long. */
#define RANKS_SILENCE 300.0

#define RANKS_HOST 64
#define RANKS_SUMS 16 /* numbers that a barrier sums */

struct ranks_peer {
    char host[RANKS_HOST]; /* empty before its first barrier */
    double last_heard;     /* progress_clock() of its last message */
    struct buffer word[2]; /* its messages of this barrier and the next; empty: none yet */
};

struct ranks {
    struct comm *comm;
    double silence;          /* seconds: RANKS_SILENCE; less in tests */
    struct ranks_peer *peer; /* [comm->size], including this rank */
    struct comm_message message;
    unsigned barrier; /* number of finished barriers */
    double last_sent; /* progress_clock() of the last message to all peers */

    atomic_bool stop;             /* ends the work of this rank: any rank failed, or a user stopped it */
    const atomic_bool *user_stop; /* may be NULL */
    bool warned;                  /* the peers know of the stop request */
    enum chex_status broken;      /* if not CHEX_OK: a rank is lost or sending failed, so do not wait */
    struct chex_error why;
};

/* comm must outlive *r.  Call ranks_release() also after a failure. */
enum chex_status ranks_init(struct ranks *r, struct comm *comm, struct chex_error *err);
void ranks_release(struct ranks *r);

/* Call this about five times per second.  It updates r->stop. */
void ranks_poll(struct ranks *r);

/*
 * Wait for all peers.  status and *err are those of this rank.  sum[RANKS_SUMS] (may be NULL) is replaced by the sum
 * over all ranks.  All ranks return the same status: the first error in the order of ranks that is not
 * CHEX_ERR_STOPPED, or else CHEX_ERR_STOPPED or CHEX_OK.  The text begins with "rank 3 n07: ", unless it is an error of
 * this rank or of rank 0.
 * CHEX_ERR_LOST  "rank 3 n07 is lost: not a word for 300 s ..."; r->broken: end the process with comm->ops->abort()
 */
enum chex_status ranks_barrier(struct ranks *r, enum chex_status status, uint64_t *sum, struct chex_error *err);

/*
 * Wait at a barrier and compare.  text has lines "NAME VALUE\n", which must be the same on all ranks.
 * CHEX_ERR_USAGE  "rank 3 n07 does not do the same as rank 0: it has 'seed 7', rank 0 'seed 1'"
 */
enum chex_status ranks_compare(struct ranks *r, enum chex_status status, const char *text, struct chex_error *err);

#endif
