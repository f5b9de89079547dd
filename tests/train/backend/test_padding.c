/*
 * test_padding.c - images of weight 0 must have no effect, on every backend of this build (backend.h, struct batch)
 *
 * A new backend must pass this and test_backends.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "step_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- comparison with a smaller micro-batch ----------------------------------------------------------------------- */

/*
 * Returns a micro-batch of BATCH_MAX images in which the images of these bits have weight; these are the first images
 * of the fixture.
 */
static unsigned
pad_images(unsigned bits, unsigned image[BATCH_MAX], float weight[BATCH_MAX])
{
    unsigned images = 0, i;

    for (i = 0; i < BATCH_MAX; i++) {
        bool counts = bits >> i & 1;

        weight[i] = counts ? 1 : 0;
        image[i] = counts ? images++ : BATCH_MAX - 1;
    }
    return images;
}

enum padding { PADDING_ZERO, PADDING_FINITE };

/*
 * Reduces values of BATCH_MAX images to those of the images with weight.  The values between them must be zero.  A
 * backend may have other values there in the tensors inside the network, but they must not cause a NaN elsewhere.
 */
static void
drop_padding(const char *name, unsigned bits, float *value, size_t floats, enum padding padding)
{
    size_t i, k, images = 0;

    for (i = 0; i < BATCH_MAX; i++) {
        if (bits >> i & 1)
            memmove(value + images++ * floats, value + i * floats, floats * sizeof(*value));
        else
            for (k = 0; k < floats; k++)
                ck_assert_msg(padding == PADDING_ZERO ? value[i * floats + k] == 0 : isfinite(value[i * floats + k]),
                              "%s: padding has the value %g", name, (double)value[i * floats + k]);
    }
}

static void
drop_padding_of_outcome(const char *name, const struct graph *g, unsigned bits, struct outcome *o)
{
    size_t i;

    drop_padding(name, bits, o->logits, OUTPUTS, PADDING_ZERO);
    drop_padding(name, bits, o->evaluated, OUTPUTS, PADDING_ZERO);
    drop_padding(name, bits, o->maps, o->map_count / BATCH_MAX, PADDING_ZERO);
    for (i = 0; i < g->buffer_count; i++) {
        size_t floats = (size_t)g->buffer[i].channels * g->buffer[i].height * g->buffer[i].width;

        if (o->buffer[i])
            drop_padding(name, bits, o->buffer[i], floats, PADDING_FINITE);
        if (o->gradient[i])
            drop_padding(name, bits, o->gradient[i], floats, PADDING_ZERO);
    }
}

/* Compares the buffers that are kept. */
static void
compare_gradients(const char *name, const struct graph *g, unsigned images, const struct outcome *got,
                  const struct outcome *wanted)
{
    size_t i;

    for (i = 0; i < g->buffer_count; i++)
        if (got->gradient[i])
            step_compare_values(name, "the gradient of a buffer", got->gradient[i], wanted->gradient[i],
                                (size_t)images * g->buffer[i].channels * g->buffer[i].height * g->buffer[i].width,
                                1e-6);
}

TEST_CASE("padding", "padding", NULL, NULL);

/*
 * Compares each micro-batch of BATCH_MAX with some padding, on every backend, with a smaller micro-batch on the
 * reference.
 */
LOOP_TEST(padding_counts_in_nothing_wherever_it_stands, 0, GRAPHS)
{
    struct graph *g = step_graph(_i);
    unsigned image[BATCH_MAX], bits;
    float weight[BATCH_MAX];
    const char *const *set;
    size_t b;

    for (bits = 1; bits < 1u << BATCH_MAX; bits++) {
        unsigned images = pad_images(bits, image, weight);
        struct step_setup smaller = {.seed = step_seed[_i], .images = images, .threads = 1, .keep = true};
        struct step_setup padded = {step_seed[_i], BATCH_MAX, image, weight, NULL, 2, true, PRECISION_FP32};
        struct outcome wanted = step_run(backend_find("ref"), g, &smaller);

        wanted.logit_count = (size_t)images * OUTPUTS;
        for (b = 0; backends[b]; b++) {
            if (!step_does(backends[b], g))
                continue;
            for (set = step_sets(backends[b]); *set; set++) {
                struct outcome got;

                setenv("CHEX_CPU", *set, 1);
                got = step_run(backends[b], g, &padded);
                drop_padding_of_outcome(backends[b]->name, g, bits, &got);
                step_compare(backends[b]->name, g, images, &got, &wanted);
                compare_gradients(backends[b]->name, g, images, &got, &wanted);
                step_outcome_free(&got, g, BATCH_MAX);
            }
        }
        step_outcome_free(&wanted, g, images);
    }
    graph_free(g);
}

LOOP_TEST(a_weight_other_than_0_is_not_padding, 0, GRAPHS)
{
    const float heavy[BATCH_MAX] = {2, 0.5f, 1};
    struct graph *g = step_graph(_i);
    struct step_setup setup = {.seed = step_seed[_i], .images = BATCH_MAX, .threads = 2};
    size_t b;

    for (b = 0; backends[b]; b++) {
        struct outcome plain, weighted;

        if (!step_does(backends[b], g))
            continue;
        setup.weight = NULL;
        plain = step_run(backends[b], g, &setup);
        setup.weight = heavy;
        weighted = step_run(backends[b], g, &setup);
        ck_assert_mem_eq(weighted.logits, plain.logits, plain.logit_count * sizeof(float));
        ck_assert_mem_eq(weighted.statistics, plain.statistics, plain.stats);
        ck_assert_double_ne(weighted.result.loss, plain.result.loss);
        step_outcome_free(&plain, g, BATCH_MAX);
        step_outcome_free(&weighted, g, BATCH_MAX);
    }
    graph_free(g);
}

/* A plan for tests of a single call: random weights, and images that differ. */
struct small_plan {
    const struct backend *backend;
    struct graph *graph;
    struct step_plan p;
    struct plan *plan; /* of p */
    uint8_t pixels[BATCH_MAX * SOURCE * SOURCE], label[BATCH_MAX * OUTPUTS];
    struct crop crop[BATCH_MAX];
    struct batch batch;
    float *params, *stats, *before; /* arenas, for any use */
};

static void
small_plan_make(struct small_plan *p, const struct backend *backend, struct graph *g)
{
    struct plan_options options = {.graph = g,
                                   .batch = BATCH_MAX,
                                   .micro_batches = 2,
                                   .source = SOURCE,
                                   .train = true,
                                   .threads = 2,
                                   .optimizer = optimizer_default(OPTIMIZER_SGD)};
    struct chex_error err;
    size_t i;

    *p = (struct small_plan){.backend = backend, .graph = g};
    for (i = 0; i < sizeof(p->pixels); i++)
        p->pixels[i] = (uint8_t)(i * i % 251);
    p->batch = (struct batch){.pixels = p->pixels, .crop = p->crop, .label = p->label, .scale = 0.1};
    p->params = calloc(g->param_floats, sizeof(float));
    p->stats = calloc(g->stat_floats, sizeof(float));
    p->before = calloc(g->param_floats + g->stat_floats, sizeof(float));
    step_fill_parameters(g, 5, p->params);
    step_plan_make(&p->p, backend, &options);
    p->plan = p->p.plan;
    step_check_ok(backend->write(p->plan, ARENA_PARAMETERS, p->params, &err), &err);
}

static void
small_plan_free(struct small_plan *p)
{
    step_plan_free(&p->p);
    free(p->params);
    free(p->stats);
    free(p->before);
}

LOOP_TEST(a_batch_of_padding_alone_changes_nothing, 0, GRAPHS)
{
    const float none[BATCH_MAX] = {0};
    struct graph *g = step_graph(_i);
    struct chex_error err;
    size_t b, i;

    for (b = 0; backends[b]; b++) {
        float logits[BATCH_MAX * OUTPUTS];
        struct step_result one, two;
        struct small_plan p, q;

        if (!step_does(backends[b], g))
            continue;
        small_plan_make(&q, backends[b], g);
        step_make(&q.p, &q.batch, 0, &one);
        ck_assert_double_gt(one.loss, 0);
        step_check_ok(backends[b]->read(q.plan, ARENA_STATISTICS, q.before, &err), &err);
        step_check_ok(backends[b]->read(q.plan, ARENA_GRADIENTS, q.before + g->stat_floats, &err), &err);
        small_plan_make(&p, backends[b], g);
        step_accumulate(&p.p, &p.batch, STEP_FIRST);
        p.batch.weight = none;
        step_accumulate(&p.p, &p.batch, STEP_LAST);
        step_check_ok(backends[b]->peek(p.plan, g->output, false, logits, &err), &err);
        step_update(&p.p, 0, &two);
        step_check_ok(backends[b]->read(p.plan, ARENA_STATISTICS, p.stats, &err), &err);
        step_check_ok(backends[b]->read(p.plan, ARENA_GRADIENTS, p.params, &err), &err);
        ck_assert(two.loss == one.loss);
        for (i = 0; i < BATCH_MAX * OUTPUTS; i++)
            ck_assert(logits[i] == 0);
        ck_assert_mem_eq(p.stats, q.before, g->stat_floats * sizeof(float));
        ck_assert_mem_eq(p.params, q.before + g->stat_floats, g->param_floats * sizeof(float));
        small_plan_free(&p);
        small_plan_free(&q);
    }
    graph_free(g);
}

/* ---- one value of a channel ------------------------------------------------------------------------------------ */

/* A BN over 1 x 1 pixels, after one over many. */
static struct graph *
one_pixel_graph(void)
{
    struct graph_builder b = {.graph = calloc(1, sizeof(*b.graph))};
    unsigned stem, active, mean, last;
    struct chex_error err;

    b.graph->model = "one pixel";
    b.graph->input = graph_add_buffer(&b, INPUT_CHANNELS, WIDTH, WIDTH);
    stem = graph_add_buffer(&b, 16, 17, 17);
    active = graph_add_buffer(&b, 16, 17, 17);
    mean = graph_add_buffer(&b, 16, 1, 1);
    last = graph_add_buffer(&b, 16, 1, 1);
    b.graph->output = graph_add_buffer(&b, OUTPUTS, 1, 1);
    graph_add_conv(&b, "stem", graph_whole(&b, b.graph->input), graph_whole(&b, stem), 7, 2, 3);
    graph_add_norm(&b, "many", graph_whole(&b, stem), graph_whole(&b, active), true);
    graph_add_pool(&b, GRAPH_MEAN_POOL, graph_whole(&b, active), graph_whole(&b, mean), 1, 1, 0);
    graph_add_norm(&b, "one", graph_whole(&b, mean), graph_whole(&b, last), true);
    graph_add_linear(&b, "head", graph_whole(&b, last), graph_whole(&b, b.graph->output));
    ck_assert(!b.failed);
    ck_assert_msg(graph_check(b.graph, &err) == CHEX_OK, "%s", err.text);
    return b.graph;
}

static void
all_are(const struct graph_tensor *t, const float *arena, float value)
{
    size_t i;

    for (i = 0; i < t->count; i++)
        ck_assert_msg(arena[t->offset + i] == value, "%s has %g, wanted %g", t->name, (double)arena[t->offset + i],
                      (double)value);
}

LOOP_TEST(one_value_of_a_channel_gives_beta_no_gradient_and_leaves_the_running_statistics, 0, 2)
{
    const float first[BATCH_MAX] = {1}, second[BATCH_MAX] = {0, 1};
    struct graph *g = one_pixel_graph();
    const struct graph_tensor *beta = graph_find(g, "one.bias"), *w = graph_find(g, "head.weight");
    const struct graph_tensor *bias = graph_find(g, "head.bias");
    struct chex_error err;
    size_t b, i, k;

    for (b = 0; backends[b]; b++) {
        struct small_plan p;
        struct step_result result;
        float logits[BATCH_MAX * OUTPUTS];

        if (!step_does(backends[b], g))
            continue;
        small_plan_make(&p, backends[b], g);
        p.batch.weight = _i == 0 ? first : second;
        step_make(&p.p, &p.batch, 0, &result);
        step_check_ok(backends[b]->peek(p.plan, g->output, false, logits, &err), &err);
        for (k = 0; k < OUTPUTS; k++) {
            double wanted = (double)p.params[bias->offset + k];

            for (i = 0; i < beta->count; i++)
                wanted += (double)p.params[w->offset + k * beta->count + i] *
                          fmax(0, (double)p.params[beta->offset + i]);
            ck_assert_double_eq_tol((double)logits[(size_t)_i * OUTPUTS + k], wanted, 1e-5);
        }
        step_check_ok(backends[b]->read(p.plan, ARENA_GRADIENTS, p.params, &err), &err);
        step_check_ok(backends[b]->read(p.plan, ARENA_STATISTICS, p.stats, &err), &err);
        all_are(graph_find(g, "stem.weight"), p.params, 0);
        all_are(graph_find(g, "many.weight"), p.params, 0);
        all_are(graph_find(g, "one.weight"), p.params, 0);
        all_are(graph_find(g, "one.running_mean"), p.stats, 0);
        all_are(graph_find(g, "one.running_var"), p.stats, 1);
        ck_assert(p.params[bias->offset] != 0);
        ck_assert(p.stats[graph_find(g, "many.running_mean")->offset] != 0);
        small_plan_free(&p);
    }
    graph_free(g);
}

/* ---- running statistics ---------------------------------------------------------------------------------------- */

/*
 * A micro-batch turns the statistics r into arena_fade_statistics(r) plus what it gives from zero, so ranks can share a
 * step.  With one image, the BN of the one-pixel graph keeps its statistics.
 */
LOOP_TEST(running_statistics_fade_as_they_say, 0, 2)
{
    const float one[BATCH_MAX] = {0, 0, 1};
    struct graph *g = one_pixel_graph();
    struct chex_error err;
    size_t b, i;

    for (b = 0; backends[b]; b++) {
        struct small_plan p;
        struct step_result result;
        float *faded;

        small_plan_make(&p, backends[b], g);
        faded = p.before + g->stat_floats;
        for (i = 0; i < g->stat_floats; i++)
            faded[i] = 1;
        p.batch.weight = _i == 1 ? one : NULL;
        step_check_ok(backends[b]->write(p.plan, ARENA_STATISTICS, p.stats, &err), &err); /* zeros */
        step_accumulate(&p.p, &p.batch, STEP_FIRST);
        step_accumulate(&p.p, &p.batch, STEP_LAST);
        step_update(&p.p, 0, &result);
        step_check_ok(backends[b]->read(p.plan, ARENA_STATISTICS, p.before, &err), &err);
        step_check_ok(backends[b]->write(p.plan, ARENA_STATISTICS, faded, &err), &err);
        step_accumulate(&p.p, &p.batch, STEP_FIRST);
        step_accumulate(&p.p, &p.batch, STEP_LAST);
        step_update(&p.p, 0, &result);
        step_check_ok(backends[b]->read(p.plan, ARENA_STATISTICS, p.stats, &err), &err);
        arena_fade_statistics(g, _i == 1 ? 1 : BATCH_MAX, 2, faded);
        ck_assert(faded[0] == (float)((double)(1 - GRAPH_NORM_MOMENTUM) * (double)(1 - GRAPH_NORM_MOMENTUM)));
        ck_assert((faded[graph_find(g, "one.running_mean")->offset] == 1) == (_i == 1));
        for (i = 0; i < g->stat_floats; i++)
            ck_assert_double_eq_tol((double)p.stats[i], (double)faded[i] + (double)p.before[i],
                                    1e-6 * fmax(1, fabs((double)p.stats[i])));
        small_plan_free(&p);
    }
    graph_free(g);
}
