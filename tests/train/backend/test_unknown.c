/*
 * test_unknown.c - a step is the mean over the known labels of its micro-batches and ranks, on every backend of this
 * build (backend/batch.h, math/loss.h)
 *
 * The expected numbers come from the logits of the backend and from the formula, written down again here: with s the
 * scale, y the known labels and p = sigmoid(z), the loss is
 *     s * labels / known * sum of -(y log p + (1 - y) log(1 - p))
 * and the gradient of bias o is s * labels / known * sum over the images of p - y.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "step_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LABELS (BATCH_MAX * OUTPUTS)
#define SCALE  0.1
#define RATE   0.1
#define U      CHEX_LABEL_UNKNOWN
#define STARTS 64

/* ---- a reducer whose peer made its step before ------------------------------------------------------------------- */

/* join() stores the numbers of this rank in `sum`, or adds those of the peer to them. */
struct peer {
    struct reduce base;
    const struct peer *other;
    struct {
        double *data, *copy;
        size_t count;
    } sum[STARTS];
    size_t count;
};

static enum chex_status
peer_start(struct reduce *r, void *data, size_t count, void *queue, struct chex_error *err)
{
    struct peer *p = (struct peer *)(void *)r;

    (void)queue;
    (void)err;
    ck_assert_uint_lt(p->count, STARTS);
    p->sum[p->count].data = data;
    p->sum[p->count++].count = count;
    return CHEX_OK;
}

static enum chex_status
peer_join(struct reduce *r, void *queue, struct chex_error *err)
{
    struct peer *p = (struct peer *)(void *)r;
    size_t i, k;

    (void)queue;
    (void)err;
    for (i = 0; i < p->count; i++) {
        p->sum[i].copy = malloc((p->sum[i].count + 1) * sizeof(double));
        memcpy(p->sum[i].copy, p->sum[i].data, p->sum[i].count * sizeof(double));
        for (k = 0; p->other && k < p->sum[i].count; k++)
            p->sum[i].data[k] += p->other->sum[i].copy[k];
    }
    return CHEX_OK;
}

static enum chex_status
peer_poll(struct reduce *r, struct chex_error *err)
{
    (void)r;
    (void)err;
    return CHEX_OK;
}

static void
peer_free(struct peer *p)
{
    for (size_t i = 0; i < p->count; i++)
        free(p->sum[i].copy);
}

/* ---- a step, compared with the formula -------------------------------------------------------------------------- */

struct masked {
    struct step_plan p;
    struct graph *graph;
    uint8_t pixels[BATCH_MAX * SOURCE * SOURCE];
    struct crop crop[BATCH_MAX];
    float *arena; /* of parameters or gradients */
    /* Sums over the micro-batches: of the formula without scale, and of the labels. */
    double loss, bias[OUTPUTS], labels, known;
};

static void
masked_make(struct masked *m, const struct backend *backend, const struct loss_options *loss, struct reduce *reduce)
{
    struct plan_options o = {.batch = BATCH_MAX,
                             .micro_batches = 2,
                             .source = SOURCE,
                             .train = true,
                             .threads = 2,
                             .reduce = reduce,
                             .optimizer = optimizer_default(OPTIMIZER_SGD)};
    struct chex_error err;
    size_t i;

    *m = (struct masked){.graph = step_graph(GRAPH_OF_ALL)};
    for (i = 0; i < sizeof(m->pixels); i++)
        m->pixels[i] = (uint8_t)(i * i % 251);
    o.graph = m->graph;
    if (loss)
        o.loss = *loss;
    m->arena = calloc(m->graph->param_floats, sizeof(*m->arena));
    step_fill_parameters(m->graph, 5, m->arena);
    step_plan_make(&m->p, backend, &o);
    step_check_ok(backend->write(m->p.plan, ARENA_PARAMETERS, m->arena, &err), &err);
}

static void
masked_free(struct masked *m)
{
    step_plan_free(&m->p);
    graph_free(m->graph);
    free(m->arena);
}

/* Runs a micro-batch, and adds it to the sums. */
static void
masked_add(struct masked *m, const uint8_t label[LABELS], const float *weight, unsigned flags)
{
    const struct batch batch = {.pixels = m->pixels, .crop = m->crop, .label = label, .weight = weight, .scale = SCALE};
    float z[LABELS];
    struct chex_error err;
    unsigned i;

    step_accumulate(&m->p, &batch, flags);
    step_check_ok(m->p.backend->peek(m->p.plan, m->graph->output, false, z, &err), &err);
    for (i = 0; i < LABELS; i++) {
        double p = 1 / (1 + exp(-(double)z[i]));

        if (weight && weight[i / OUTPUTS] == 0)
            continue;
        m->labels++;
        if (label[i] == U)
            continue;
        m->known++;
        m->loss -= label[i] ? log(p) : log(1 - p);
        m->bias[i % OUTPUTS] += p - label[i];
    }
}

/* Ends the step and compares it with the sums; returns the result. */
static struct step_result
masked_end(struct masked *m)
{
    double factor = SCALE * m->labels / m->known;
    size_t bias = graph_find(m->graph, "head.bias")->offset, o;
    struct step_result r;
    struct chex_error err;

    step_update(&m->p, RATE, &r);
    ck_assert(r.applied && r.known);
    ck_assert_double_eq_tol(r.loss, factor * m->loss, 1e-6 * r.loss);
    step_check_ok(m->p.backend->read(m->p.plan, ARENA_GRADIENTS, m->arena, &err), &err);
    for (o = 0; o < OUTPUTS; o++)
        ck_assert_msg(fabs((double)m->arena[bias + o] - factor * m->bias[o]) <= 1e-5 * factor,
                      "%s: the gradient of bias %zu is %g, expected %g", m->p.backend->name, o,
                      (double)m->arena[bias + o], factor * m->bias[o]);
    return r;
}

/* Finding 2 is unknown in all images; image 1 has no known label. */
static const uint8_t some[LABELS] = {1, 0, U, 0, U, U, U, U, U, U, 0, 1, U, U, 1};
static const uint8_t few[LABELS] = {U, U, U, U, U, U, 1, U, U, U, U, U, U, U, U};
static const uint8_t all[LABELS] = {1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 1, 0, 1};
static const uint8_t none[LABELS] = {U, U, U, U, U, U, U, U, U, U, U, U, U, U, U};
static const float padded[BATCH_MAX] = {1, 0, 1};

/* ---- tests ------------------------------------------------------------------------------------------------------- */

TEST_CASE("unknown", "unknown", NULL, NULL);

LOOP_TEST(a_step_is_the_mean_over_its_known_labels, 0, 8)
{
    static const struct {
        const uint8_t *label[2];
        const float *weight; /* of the first micro-batch */
    } steps[] = {{{some, NULL}, NULL}, {{few, NULL}, NULL},  {{some, NULL}, padded}, {{some, few}, NULL},
                 {{all, few}, NULL},   {{none, some}, NULL}, {{all, none}, padded},  {{all, all}, NULL}};
    size_t b;

    for (b = 0; backends[b]; b++) {
        struct masked m;

        masked_make(&m, backends[b], NULL, NULL);
        masked_add(&m, steps[_i].label[0], steps[_i].weight, STEP_FIRST | (steps[_i].label[1] ? 0 : STEP_LAST));
        if (steps[_i].label[1])
            masked_add(&m, steps[_i].label[1], NULL, STEP_LAST);
        (void)masked_end(&m);
        masked_free(&m);
    }
}

/* A rank with few known labels and one with all: not the mean of two means. */
LOOP_TEST(the_mean_is_over_the_known_labels_of_all_ranks, 0, 3)
{
    static const struct reduce_ops ops = {.start = peer_start, .join = peer_join, .poll = peer_poll};
    static const uint8_t *const labels[][2] = {{few, all}, {none, some}, {some, none}};
    size_t b, o;

    for (b = 0; backends[b]; b++) {
        struct peer first = {.base = {.rank = 1, .size = 2, .ops = &ops}};
        struct peer second = {.base = {.size = 2, .ops = &ops}, .other = &first};
        struct step_result r;
        struct masked m, n;

        masked_make(&m, backends[b], NULL, &first.base);
        if (m.p.device->info.own_memory) { /* its reducer sums device memory: test_cuda_ranks.c */
            masked_free(&m);
            continue;
        }
        masked_make(&n, backends[b], NULL, &second.base);
        masked_add(&m, labels[_i][0], NULL, STEP_FIRST | STEP_LAST);
        step_update(&m.p, 0, &r);
        masked_add(&n, labels[_i][1], NULL, STEP_FIRST | STEP_LAST);
        n.loss += m.loss;
        n.labels += m.labels;
        n.known += m.known;
        for (o = 0; o < OUTPUTS; o++)
            n.bias[o] += m.bias[o];
        (void)masked_end(&n);
        masked_free(&m);
        masked_free(&n);
        peer_free(&first);
        peer_free(&second);
    }
}

LOOP_TEST(a_step_without_a_known_label_has_no_loss_and_no_gradient, 0, 3)
{
    static const double heavy[OUTPUTS] = {3, 3, 3, 3, 3};
    static const struct loss_options loss[] = {
        {.kind = LOSS_BCE}, {.kind = LOSS_FOCAL, .gamma = 2}, {.kind = LOSS_BCE, .positive_weight = heavy}};
    size_t b, i;

    for (b = 0; backends[b]; b++) {
        struct step_result r;
        struct chex_error err;
        struct masked m;
        float *before;

        masked_make(&m, backends[b], &loss[_i], NULL);
        before = malloc(m.graph->param_floats * sizeof(*before));
        memcpy(before, m.arena, m.graph->param_floats * sizeof(*before));
        masked_add(&m, none, padded, STEP_FIRST);
        masked_add(&m, none, NULL, STEP_LAST);
        step_update(&m.p, RATE, &r);
        ck_assert(r.applied && !r.halted && !r.known && r.state.applied == 1);
        ck_assert(r.loss == 0 && r.norm == 0 && r.bad == STEP_NONE);
        step_check_ok(backends[b]->read(m.p.plan, ARENA_GRADIENTS, m.arena, &err), &err);
        for (i = 0; i < m.graph->param_floats; i++)
            ck_assert(m.arena[i] == 0);
        step_check_ok(backends[b]->read(m.p.plan, ARENA_PARAMETERS, m.arena, &err), &err);
        ck_assert_mem_eq(m.arena, before, m.graph->param_floats * sizeof(*before));
        free(before);
        masked_free(&m);
    }
}

/* The norm before clipping, and the parameters after it: the step has the length rate * clip. */
TEST(clipping_uses_the_gradient_of_the_mean)
{
    size_t b, i;

    for (b = 0; backends[b]; b++) {
        double norm = 0, length = 0;
        struct step_result r;
        struct chex_error err;
        struct masked m;
        float *before;
        uint64_t ticket;
        bool done = false;

        masked_make(&m, backends[b], NULL, NULL);
        before = malloc(m.graph->param_floats * sizeof(*before));
        memcpy(before, m.arena, m.graph->param_floats * sizeof(*before));
        masked_add(&m, few, NULL, STEP_FIRST | STEP_LAST);
        step_check_ok(backends[b]->update(m.p.plan, RATE, 0.01, &ticket, &err), &err);
        while (!done)
            step_check_ok(backends[b]->result(m.p.plan, ticket, &done, &r, &err), &err);
        step_check_ok(backends[b]->read(m.p.plan, ARENA_GRADIENTS, m.arena, &err), &err);
        for (i = 0; i < m.graph->param_floats; i++)
            norm += (double)m.arena[i] * (double)m.arena[i];
        ck_assert_double_eq_tol(r.norm, sqrt(norm), 1e-5 * sqrt(norm));
        ck_assert_double_gt(r.norm, 0.01);
        step_check_ok(backends[b]->read(m.p.plan, ARENA_PARAMETERS, m.arena, &err), &err);
        for (i = 0; i < m.graph->param_floats; i++)
            length += ((double)m.arena[i] - (double)before[i]) * ((double)m.arena[i] - (double)before[i]);
        ck_assert_double_eq_tol(sqrt(length), RATE * 0.01, 1e-2 * RATE * 0.01);
        free(before);
        masked_free(&m);
    }
}
