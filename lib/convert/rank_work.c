/*
 * rank_work.c - see rank_work.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/rank_work.h"

void
rank_work_poll(struct rank_work *w)
{
    struct chex_error why;

    if (collective_watch(w->ranks, &w->watched, &why) != CHEX_OK) {
        if (w->why.status == CHEX_OK)
            w->why = why;
        atomic_store(&w->stop, true);
    }
    if (collective_stop_asked(w->ranks))
        atomic_store(&w->stop, true);
}

enum chex_status
rank_work_meet(struct rank_work *w, enum chex_status status, uint64_t *sum, size_t count, struct chex_error *err)
{
    enum chex_status added = CHEX_OK;

    if (w->why.status != CHEX_OK && (status == CHEX_OK || status == CHEX_ERR_STOPPED))
        status = error_set(err, w->why.status, "%s", w->why.text);
    status = collective_agree(w->ranks, status, NULL, err);
    if (count > 0 && !collective_broken(w->ranks))
        added = collective_add(w->ranks, sum, count, status == CHEX_OK ? err : NULL);
    return status == CHEX_OK ? added : status;
}
