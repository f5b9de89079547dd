/*
 * trainer_snapshot.c - copies the arenas after the last step of an epoch, during the evaluation; see trainer.h
 *
 * Between the last step of an epoch and the first step of the next, only an evaluation uses the plan, and it changes
 * nothing.  So a thread copies the arenas meanwhile, and no rank waits for it.  Rank 0 needs all arenas for its
 * checkpoint.  The other ranks need only their parameters, whose checksums the ranks compare.  Every rank must make the
 * same update from the same sums; otherwise all later results would be worthless.  The same thread computes the order
 * of the next epoch.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/trainer_private.h"

#include "backend/ranges.h"
#include "base/clock.h"
#include "base/number_format.h"

#include <stdlib.h>
#include <string.h>

enum chex_status
trainer_read_arrays(const struct trainer *t, bool concurrently, struct chex_error *err)
{
    const struct checkpoint_arrays *a = &t->host;
    const struct backend *backend = t->engine.backend;
    float *const to[] = {[ARENA_PARAMETERS] = a->params, [ARENA_STATISTICS] = a->stats, [ARENA_GRADIENTS] = NULL,
                         [ARENA_MOMENT1] = a->moment1,   [ARENA_MOMENT2] = a->moment2,  [ARENA_AVERAGE] = a->average};
    enum chex_status status = CHEX_OK;
    unsigned i;

    for (i = 0; status == CHEX_OK && i < sizeof(to) / sizeof(to[0]); i++)
        if (to[i])
            status = (concurrently ? backend->read_concurrently : backend->read)(t->engine.plan, (enum arena_id)i,
                                                                                 to[i], err);
    return status;
}

/* ---- one rank ---------------------------------------------------------------------------------------------------- */

/* A save may still be writing the arrays. */
static void
wait_for_arrays(const struct saving *saving)
{
    while (saving->running && !atomic_load(&saving->done))
        backoff(0.001);
}

static enum chex_status
take(struct trainer *t, bool concurrently)
{
    size_t bytes = t->task.graph->param_floats * sizeof(float);
    struct snapshot *s = &t->snapshot;
    const struct backend *backend = t->engine.backend;
    float *own = t->job.is_rank_0 ? NULL : malloc(bytes);

    if (t->job.is_rank_0) {
        wait_for_arrays(&t->saving);
        s->status = trainer_read_arrays(t, concurrently, &s->err);
    } else if (own) {
        s->status = (concurrently ? backend->read_concurrently : backend->read)(t->engine.plan, ARENA_PARAMETERS, own,
                                                                                &s->err);
    } else {
        s->status = error_memory(&s->err);
    }
    if (s->status == CHEX_OK)
        s->sum = chex_crc32c(0, own ? own : t->host.params, bytes);
    free(own);
    return s->status;
}

static void *
take_beside(void *context)
{
    struct trainer *t = context;

    ranges_push(PART_SAVE);
    (void)take(t, true);
    ranges_pop();
    trainer_order_next(t);
    return NULL;
}

void
trainer_begin_snapshot(struct trainer *t)
{
    struct snapshot *s = &t->snapshot;
    bool wanted = t->job.is_rank_0 || collective_size(t->job.all) > 1;

    s->running = wanted && t->engine.backend->read_concurrently &&
                 pthread_create(&s->thread, NULL, take_beside, t) == 0;
}

/* ---- all ranks --------------------------------------------------------------------------------------------------- */

static enum chex_status
compare(const struct trainer *t, struct chex_error *err)
{
    struct buffer all = {0};
    enum chex_status status = collective_allgather(t->job.all, &t->snapshot.sum, sizeof(t->snapshot.sum), &all, NULL,
                                                   err);
    uint32_t first, other;
    int i;

    for (i = 1; status == CHEX_OK && i < collective_size(t->job.all); i++) {
        memcpy(&first, all.data, sizeof(first));
        memcpy(&other, all.data + (size_t)i * sizeof(other), sizeof(other));
        if (other != first)
            status = error_set(err, CHEX_ERR_BUG,
                               "rank %d %s has other weights than rank 0 after step %s: a fault of its machine, or of "
                               "this program; the checkpoint before is good",
                               i, collective_host(t->job.all, i), COUNT_TEXT(t->state.step));
    }
    buffer_release(&all);
    return status;
}

enum chex_status
trainer_end_snapshot(struct trainer *t, struct chex_error *err)
{
    struct snapshot *s = &t->snapshot;
    const struct trainer_section section = trainer_section_begin(&t->job);
    enum chex_status status;

    if (s->running)
        pthread_join(s->thread, NULL);
    else if (t->job.is_rank_0 || collective_size(t->job.all) > 1)
        (void)take(t, false);
    s->running = false;
    if (collective_broken(t->job.all))
        return CHEX_OK;
    if (s->status != CHEX_OK && err)
        *err = s->err;
    status = collective_agree(t->job.all, s->status, NULL, err);
    if (status == CHEX_OK && collective_size(t->job.all) > 1)
        status = compare(t, err);
    s->taken = status == CHEX_OK;
    trainer_section_end(&t->job, &section, PART_SAVE, NULL);
    return status;
}
