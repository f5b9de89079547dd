/*
 * rank_work.h - ranks that work independently between meetings
 *
 * Each rank of a conversion fills its own shards, so between two meetings it makes no collective calls.  It only calls
 * rank_work_poll(), about five times per second.  That call sends heartbeats and sets `stop` if this rank should end
 * its work: the user asked any rank to stop, another rank failed, or a rank is lost.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_RANK_WORK_H
#define CHEX_LIB_RANK_WORK_H

#include "ranks/collective.h"

struct rank_work {
    struct collective *ranks; /* set by the caller; all other members are 0 */
    atomic_bool stop;
    double watched;        /* total time, for collective_watch() */
    struct chex_error why; /* the first failure of rank_work_poll() */
};

void rank_work_poll(struct rank_work *w);

/*
 * Meet: all ranks get the same status, as from collective_agree().  sum[count] is replaced by the sums over the ranks,
 * also after an error.  A rank that stopped because another one failed or is lost passes CHEX_ERR_STOPPED.
 * CHEX_ERR_LOST  a rank is lost: end with collective_abort()
 */
enum chex_status rank_work_meet(struct rank_work *w, enum chex_status status, uint64_t *sum, size_t count,
                                struct chex_error *err);

#endif
