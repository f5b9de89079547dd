/*
 * predict_score.c - see predict_score.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "predict/predict_score.h"

#include <stdlib.h>
#include <string.h>

/* A model, and its outputs for the micro-batches in flight. */
struct scored_model {
    unsigned views;
    struct crop *crop;            /* [views][batch] */
    float *raw[SCORES_IN_FLIGHT]; /* [views][batch][outputs] */
    float *map[SCORES_IN_FLIGHT]; /* [batch][map_floats]; NULL: no maps */
    size_t map_floats;
    float *logit, *probability; /* [batch][outputs], of the micro-batch that was finished last */
    uint64_t started, finished; /* micro-batches */
};

struct scorer {
    const struct scoring *s;
    size_t values; /* batch * outputs */
    struct scored_model *member;
    const struct micro_batch *flight[SCORES_IN_FLIGHT];
    uint64_t started, finished;
    float *weight;              /* [batch] of the current micro-batch */
    float *logit, *probability; /* [models][outputs] of an image */
};

static void
scorer_release(struct scorer *w)
{
    size_t m;
    unsigned i;

    for (m = 0; w->member && m < w->s->models->count; m++) {
        free(w->member[m].crop);
        free(w->member[m].logit);
        free(w->member[m].probability);
        for (i = 0; i < SCORES_IN_FLIGHT; i++) {
            free(w->member[m].raw[i]);
            free(w->member[m].map[i]);
        }
    }
    free(w->member);
    free(w->weight);
    free(w->logit);
    free(w->probability);
}

static bool
member_init(struct scored_model *m, const struct scoring *s, const struct predict_model *model, size_t values)
{
    struct crop view[EVALUATE_VIEWS];
    unsigned batch = s->models->batch, i;
    struct graph_head head;
    bool there;

    m->views = evaluate_views(s->tta, model->state.side, s->models->size, view);
    m->crop = calloc((size_t)m->views * batch, sizeof(*m->crop));
    m->logit = calloc(values, sizeof(float));
    m->probability = calloc(values, sizeof(float));
    there = m->crop && m->logit && m->probability;
    m->map_floats = s->mapped && graph_find_head(model->graph, &head) ? head.map_floats : 0;
    for (i = 0; i < SCORES_IN_FLIGHT; i++) {
        m->raw[i] = calloc(m->views * values, sizeof(float));
        there &= m->raw[i] != NULL;
        if (m->map_floats > 0)
            m->map[i] = calloc(batch * m->map_floats, sizeof(float));
        there &= m->map_floats == 0 || m->map[i];
    }
    for (i = 0; there && i < m->views * batch; i++)
        m->crop[i] = view[i / batch];
    return there;
}

static enum chex_status
scorer_init(struct scorer *w, const struct scoring *s, struct chex_error *err)
{
    const struct models *models = s->models;
    bool there = true;
    size_t m;

    *w = (struct scorer){.s = s, .values = (size_t)models->batch * models->outputs};
    w->member = calloc(models->count, sizeof(*w->member));
    w->weight = calloc(models->batch, sizeof(float));
    w->logit = calloc(models->count * models->outputs, sizeof(float));
    w->probability = calloc(models->count * models->outputs, sizeof(float));
    for (m = 0; w->member && m < models->count; m++)
        there &= member_init(&w->member[m], s, &models->model[m], w->values);
    return there && w->member && w->weight && w->logit && w->probability ? CHEX_OK : error_memory(err);
}

/* Start to compute a micro-batch with every model. */
static enum chex_status
start(struct scorer *w, const struct micro_batch *b, struct chex_error *err)
{
    const struct models *models = w->s->models;
    const struct batch batch = {.pixels = b->pixels, .weight = b->count < models->batch ? w->weight : NULL};
    unsigned slot = (unsigned)(w->started % SCORES_IN_FLIGHT);
    enum chex_status status = CHEX_OK;
    size_t m;
    unsigned i;

    for (i = 0; i < models->batch; i++)
        w->weight[i] = i < b->count ? 1 : 0;
    for (m = 0; status == CHEX_OK && m < models->count; m++) {
        struct scored_model *member = &w->member[m];

        status = models->backend->score_start(models->model[m].plan, &batch, member->views, member->crop,
                                              ARENA_PARAMETERS, member->raw[slot], member->map[slot], err);
        member->started += status == CHEX_OK;
    }
    if (status == CHEX_OK)
        w->flight[w->started++ % SCORES_IN_FLIGHT] = b;
    return status;
}

/* Report the images of a finished micro-batch. */
static enum chex_status
report(struct scorer *w, const struct micro_batch *b, unsigned slot, struct chex_error *err)
{
    const struct models *models = w->s->models;
    size_t image = (size_t)models->size * models->size;
    const size_t bytes = models->outputs * sizeof(float);
    enum chex_status status = CHEX_OK;
    unsigned i;
    size_t m;

    for (i = 0; status == CHEX_OK && i < b->count; i++) {
        for (m = 0; m < models->count; m++) {
            const struct scored_model *member = &w->member[m];

            memcpy(w->logit + m * models->outputs, member->logit + i * models->outputs, bytes);
            memcpy(w->probability + m * models->outputs, member->probability + i * models->outputs, bytes);
        }
        status = w->s->scored(w->s->context, b->row[i], w->logit, w->probability, err);
        if (status == CHEX_OK && w->s->mapped)
            status = w->s->mapped(w->s->context, b->row[i], b->pixels + i * image,
                                  w->member[0].map[slot] + i * w->member[0].map_floats, err);
    }
    return status;
}

/* Finish the oldest micro-batch in flight. */
static enum chex_status
finish(struct scorer *w, struct chex_error *err)
{
    const struct models *models = w->s->models;
    unsigned slot = (unsigned)(w->finished % SCORES_IN_FLIGHT);
    enum chex_status status = CHEX_OK;
    size_t m;

    for (m = 0; status == CHEX_OK && m < models->count; m++) {
        struct scored_model *member = &w->member[m];

        member->finished++;
        status = models->backend->score_finish(models->model[m].plan, err);
        if (status == CHEX_OK)
            evaluate_join_views(member->views, w->values, member->raw[slot], member->logit, member->probability);
    }
    if (status == CHEX_OK)
        status = report(w, w->flight[slot], slot, err);
    w->finished++;
    batches_return(w->s->batches);
    return status;
}

/* After an error: wait for the micro-batches in flight, so that the plans can be released. */
static void
abandon(struct scorer *w)
{
    const struct models *models = w->s->models;
    struct chex_error ignored;
    size_t m;

    for (m = 0; w->member && m < models->count; m++)
        for (; w->member[m].finished < w->member[m].started; w->member[m].finished++)
            (void)models->backend->score_finish(models->model[m].plan, &ignored);
}

enum chex_status
score_batches(const struct scoring *s, struct chex_error *err)
{
    const struct micro_batch *b;
    struct scorer w;
    enum chex_status status = scorer_init(&w, s, err);

    while (status == CHEX_OK && (b = batches_take(s->batches)) != NULL) {
        status = start(&w, b, err);
        if (status == CHEX_OK && w.started - w.finished == SCORES_IN_FLIGHT)
            status = finish(&w, err);
    }
    while (status == CHEX_OK && w.finished < w.started)
        status = finish(&w, err);
    abandon(&w);
    scorer_release(&w);
    return status;
}
