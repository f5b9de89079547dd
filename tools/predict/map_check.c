/*
 * map_check.c - implements maps_check() of predict_maps.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "checkpoint/weights.h"
#include "maps/rank.h"
#include "predict/predict_maps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SEED 1 /* of the random weights */

/* Returns whether a node belongs to the last block: its output has the size of a map, or it comes after the mean. */
static bool
is_last(const struct graph *g, const struct graph_head *h, const struct graph_node *n)
{
    const struct graph_buffer *out = &g->buffer[n->out.buffer];

    return n >= h->mean || (out->height == h->height && out->width == h->width);
}

static void
copy_tensor(const struct graph_tensor *t, const float *from, float *to)
{
    memcpy(to + t->offset, from + t->offset, t->count * sizeof(*to));
}

/* Draw random weights and statistics for the last block and the linear layer; copy all others from the model. */
static void
randomise(const struct predict_model *m, const struct graph_head *h, float *params, float *stats)
{
    const struct graph *g = m->graph;
    const struct graph_node *n;

    weights_random(g, SEED, params, stats);
    for (n = g->node; n < g->node + g->node_count; n++) {
        bool has_bias = n->op == GRAPH_NORM || n->op == GRAPH_LINEAR;

        if (is_last(g, h, n) || (!has_bias && n->op != GRAPH_CONV))
            continue;
        copy_tensor(&g->param[n->weight], m->params, params);
        if (has_bias)
            copy_tensor(&g->param[n->bias], m->params, params);
        if (n->op == GRAPH_NORM) {
            copy_tensor(&g->stat[n->mean], m->stats, stats);
            copy_tensor(&g->stat[n->variance], m->stats, stats);
        }
    }
}

static enum chex_status
write_random_weights(const struct map_writer *w, struct chex_error *err)
{
    const struct predict_model *m = &w->models->model[0];
    const struct backend *backend = w->models->backend;
    float *params = malloc(m->graph->param_floats * sizeof(*params));
    float *stats = malloc(m->graph->stat_floats * sizeof(*stats));
    enum chex_status status = params && stats ? CHEX_OK : error_memory(err);

    if (status == CHEX_OK) {
        randomise(m, &w->head, params, stats);
        status = backend->write(m->plan, ARENA_PARAMETERS, params, err);
    }
    if (status == CHEX_OK)
        status = backend->write(m->plan, ARENA_STATISTICS, stats, err);
    free(params);
    free(stats);
    return status;
}

/* Correlations: their sum over all images and findings, and the sums of each finding over the images. */
struct correlations {
    double sum, of[METRICS_OUTPUTS];
    size_t count, count_of[METRICS_OUTPUTS];
};

/* Add those of an image. */
static enum chex_status
compare_maps(const struct map_writer *w, const float *before, const float *after, struct correlations *c,
             struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    unsigned k;

    for (k = 0; status == CHEX_OK && k < w->head.outputs; k++) {
        double correlation;

        status = rank_correlation(before + k * w->head.pixels, after + k * w->head.pixels, w->head.pixels, &correlation,
                                  err);
        if (status != CHEX_OK || isnan(correlation))
            continue;
        c->sum += correlation;
        c->count++;
        c->of[k] += correlation;
        c->count_of[k]++;
    }
    return status;
}

/* What one micro-batch needs. */
struct check_batch {
    uint8_t *pixels;
    float *weight, *logit, *map;
    struct crop *crop;
};

static bool
check_batch_new(const struct map_writer *w, struct check_batch *b)
{
    size_t batch = w->models->batch;

    *b = (struct check_batch){.pixels = calloc(batch, (size_t)w->models->size * w->models->size),
                              .weight = calloc(batch, sizeof(float)),
                              .logit = calloc(batch * w->head.outputs, sizeof(float)),
                              .map = calloc(batch * w->head.map_floats, sizeof(float)),
                              .crop = calloc(batch, sizeof(struct crop))};
    return b->pixels && b->weight && b->logit && b->map && b->crop;
}

static void
check_batch_free(struct check_batch *b)
{
    free(b->pixels);
    free(b->weight);
    free(b->logit);
    free(b->map);
    free(b->crop);
}

/* Score `count` images of the check again, and compare their maps. */
static enum chex_status
score_again(struct map_writer *w, struct check_batch *b, const unsigned *image, unsigned count, struct correlations *c,
            struct chex_error *err)
{
    const struct models *models = w->models;
    const struct batch batch = {.pixels = b->pixels, .weight = b->weight};
    size_t bytes = (size_t)models->size * models->size;
    enum chex_status status;
    unsigned i;

    for (i = 0; i < models->batch; i++) {
        b->weight[i] = i < count ? 1 : 0;
        b->crop[i] = w->crop;
        if (i < count)
            memcpy(b->pixels + i * bytes, w->check.pixels + image[i] * bytes, bytes);
    }
    status = models->backend->score_start(models->model[0].plan, &batch, 1, b->crop, ARENA_PARAMETERS, b->logit, b->map,
                                          err);
    if (status == CHEX_OK)
        status = models->backend->score_finish(models->model[0].plan, err);
    for (i = 0; status == CHEX_OK && i < count; i++)
        status = compare_maps(w, w->check.map + image[i] * w->head.map_floats, b->map + i * w->head.map_floats, c, err);
    return status;
}

enum chex_status
maps_check(struct map_writer *w, struct chex_error *err)
{
    unsigned image[MAP_CHECK_IMAGES], i;
    struct correlations c = {.count = 0};
    struct check_batch b;
    enum chex_status status = check_batch_new(w, &b) ? CHEX_OK : error_memory(err);

    for (i = 0; i < MAP_CHECK_IMAGES; i++)
        if (w->check.taken[i])
            image[w->check.images++] = i;
    if (status == CHEX_OK && w->check.images > 0)
        status = write_random_weights(w, err);
    for (i = 0; status == CHEX_OK && i < w->check.images; i += w->models->batch) {
        unsigned left = w->check.images - i;

        status = score_again(w, &b, image + i, left < w->models->batch ? left : w->models->batch, &c, err);
    }
    if (c.count > 0)
        w->check.correlation = c.sum / (double)c.count;
    for (i = 0; i < w->head.outputs; i++)
        w->check.finding[i] = c.count_of[i] > 0 ? c.of[i] / (double)c.count_of[i] : (double)NAN;
    check_batch_free(&b);
    return status;
}
