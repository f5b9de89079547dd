/*
 * trainer_ranks.c - are the ranks of a run what they are believed to be? see trainer.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/trainer_private.h"

#include "base/progress.h"

#include <stdlib.h>
#include <string.h>

/* Where another device or other algorithms compute other last bits, and all wait for the slowest, that is said. */
enum chex_status
trainer_compare_devices(const struct trainer_job *job, const struct trainer_engine *engine, struct chex_error *err)
{
    struct {
        char device[sizeof(engine->device->info.text)], algorithms[PLAN_ALGORITHMS];
    } own = {.device = ""}, other;
    struct buffer all = {0};
    enum chex_status status;
    int i;

    memcpy(own.device, engine->device->info.text, sizeof(own.device));
    memcpy(own.algorithms, engine->facts.algorithms, sizeof(own.algorithms));
    status = collective_allgather(job->all, &own, sizeof(own), &all, NULL, err);
    for (i = 1; status == CHEX_OK && i < collective_size(job->all); i++) {
        memcpy(&other, all.data + (size_t)i * sizeof(other), sizeof(other));
        if (strncmp(other.device, own.device, sizeof(own.device)) != 0)
            trainer_note(job, "rank %d %s has another device: %.100s", i, collective_host(job->all, i), other.device);
        else if (strncmp(other.algorithms, own.algorithms, sizeof(own.algorithms)) != 0)
            trainer_note(job, "rank %d %s computes with other algorithms than rank 0", i, collective_host(job->all, i));
        else
            continue;
        break;
    }
    buffer_release(&all);
    return status;
}

/*
 * Every rank makes the same update from the same sums.  Where that is no longer so, all that follows would be
 * worthless.
 */
enum chex_status
trainer_compare_weights(const struct trainer_job *job, const struct trainer_task *task,
                        const struct trainer_engine *engine, const struct checkpoint_state *state,
                        struct chex_error *err)
{
    size_t count = task->graph->param_floats;
    float *weights = malloc(count * sizeof(*weights));
    enum chex_status status;
    struct buffer all = {0};
    uint32_t own, theirs;
    int i;

    status = weights ? engine->backend->read(engine->plan, ARENA_PARAMETERS, weights, err) : error_memory(err);
    status = collective_agree(job->all, status, NULL, err);
    own = status == CHEX_OK ? chex_crc32c(0, weights, count * sizeof(*weights)) : 0;
    if (status == CHEX_OK)
        status = collective_allgather(job->all, &own, sizeof(own), &all, NULL, err);
    for (i = 1; status == CHEX_OK && i < collective_size(job->all); i++) {
        memcpy(&theirs, all.data + (size_t)i * sizeof(theirs), sizeof(theirs));
        memcpy(&own, all.data, sizeof(own));
        if (theirs != own)
            status = error_set(err, CHEX_ERR_BUG,
                               "rank %d %s has other weights than rank 0 after step %s: a fault of its machine, or of "
                               "this program; the checkpoint before is good",
                               i, collective_host(job->all, i), COUNT_TEXT(state->step));
    }
    buffer_release(&all);
    free(weights);
    return status;
}
