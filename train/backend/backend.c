/*
 * backend.c - shared by all backends: normalisation constants of the input, sizes of arenas
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "backend/backend.h"

#include <stdlib.h>

const char *const precision_names[] = {"auto", "fp32", "tf32", "fp16", "bf16", NULL};
const char *const engine_names[] = {"own", "cudnn", NULL};

const char *const wire_names[] = {[WIRE_FP32] = "fp32", [WIRE_BF16] = "bf16", NULL};

const float input_mean[INPUT_CHANNELS] = INPUT_MEAN;
const float input_deviation[INPUT_CHANNELS] = INPUT_DEVIATION;

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
        return o->train && optimizer_has_moment2(o->optimizer.kind);
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

static void
fade(const struct graph_tensor *t, float factor, float *statistics)
{
    size_t i;

    for (i = 0; i < t->count; i++)
        statistics[t->offset + i] *= factor;
}

void
arena_fade_statistics(const struct graph *g, unsigned images, uint64_t times, float *statistics)
{
    double factor = 1;
    uint64_t k;
    size_t i;

    /* Not pow(): its last bit may differ between machines. */
    for (k = 0; k < times && factor > 0; k++)
        factor *= (double)(1 - GRAPH_NORM_MOMENTUM);
    for (i = 0; i < g->node_count; i++) {
        const struct graph_node *n = &g->node[i];
        const struct graph_buffer *in = &g->buffer[n->in.buffer];

        if (n->op != GRAPH_NORM || (size_t)images * in->height * in->width < GRAPH_NORM_LEAST)
            continue;
        fade(&g->stat[n->mean], (float)factor, statistics);
        fade(&g->stat[n->variance], (float)factor, statistics);
    }
}

enum chex_status
backend_score(const struct backend *backend, struct plan *plan, const struct batch *batch, unsigned views,
              const struct crop *crop, enum arena_id weights, float *logits, struct chex_error *err)
{
    enum chex_status status = backend->score_start(plan, batch, views, crop, weights, logits, NULL, err);

    return status == CHEX_OK ? backend->score_finish(plan, err) : status;
}

unsigned
batch_images(const struct batch *batch, unsigned size, unsigned *place)
{
    unsigned images = 0, i;

    for (i = 0; i < size; i++)
        if (!batch->weight || batch->weight[i] != 0)
            place[images++] = i;
    return images;
}

void
plan_model_free(struct plan_model *m)
{
    free(m->launch);
    *m = (struct plan_model){.launch = NULL};
}
