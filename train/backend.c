/*
 * backend.c - what is common to all backends: how images enter, and which one has a name
 *
 * The list itself is made by configure: train/backends.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "backend.h"

#include <string.h>

const float input_mean[INPUT_CHANNELS] = {0.485f, 0.456f, 0.406f};
const float input_deviation[INPUT_CHANNELS] = {0.229f, 0.224f, 0.225f};

const struct backend *
backend_find(const char *name)
{
    size_t i;

    for (i = 0; backends[i]; i++)
        if (strcmp(backends[i]->name, name) == 0)
            return backends[i];
    return NULL;
}

size_t
arena_floats(const struct graph *g, enum arena_id arena)
{
    return arena == ARENA_STATISTICS ? g->stat_floats : g->param_floats;
}

bool
arena_is_wanted(const struct plan_options *o, enum arena_id arena)
{
    switch (arena) {
    case ARENA_PARAMETERS:
    case ARENA_STATISTICS:
        return true;
    case ARENA_MOMENT2:
        return o->train && o->optimizer.kind != OPTIMIZER_SGD;
    case ARENA_AVERAGE:
        return o->train && o->average;
    default:
        return o->train;
    }
}

void
arena_start_statistics(const struct graph *g, float *statistics)
{
    size_t i, k;

    for (i = 0; i < g->stat_count; i++)
        for (k = 0; g->stat[i].role == GRAPH_VARIANCE && k < g->stat[i].count; k++)
            statistics[g->stat[i].offset + k] = 1;
}
