/*
 * trainer_ranks.c - compares the devices of the ranks; see trainer.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/trainer_private.h"

#include <stdlib.h>
#include <string.h>

/* Report different devices or algorithms: their last bits may differ, and all ranks wait for the slowest. */
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
