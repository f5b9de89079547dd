/*
 * test_backends.c - every backend of this build beside the reference, on small graphs with odd shapes
 *
 * Each graph runs one training step and an evaluation on the reference and on each other backend: logits, loss,
 * gradients, running statistics, parameters after the step and every buffer that the backend keeps.  Errors are relative:
 * the norm of the difference over the norm of what the reference says.  Buffers handed to a backend stand between guard
 * bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "backend.h"
#include "kinks.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define OUTPUTS   5
#define HEIGHT    25
#define WIDTH     33
#define SOURCE    39
#define BATCH_MAX 3
#define TOLERANCE 1e-4
#define KINK_FREE 3e-5 /* backends differ by 4e-6 at most in a value of a buffer */

/* ---- graphs ---------------------------------------------------------------------------------------------------- */

/* Windows of all kinds, and channel counts that fill no block. */
static unsigned
build_windows(struct graph_builder *b)
{
    unsigned stem = graph_add_buffer(b, 19, 13, 17), active = graph_add_buffer(b, 19, 13, 17);
    unsigned pooled = graph_add_buffer(b, 19, 7, 9), wide = graph_add_buffer(b, 33, 4, 5);
    unsigned active2 = graph_add_buffer(b, 33, 4, 5), narrow = graph_add_buffer(b, 20, 2, 3);
    unsigned last = graph_add_buffer(b, 20, 2, 3), mean = graph_add_buffer(b, 20, 1, 1);

    graph_add_conv(b, "stem", graph_whole(b, b->graph->input), graph_whole(b, stem), 7, 2, 3);
    graph_add_norm(b, "norm0", graph_whole(b, stem), graph_whole(b, active), true);
    graph_add_pool(b, GRAPH_MAX_POOL, graph_whole(b, active), graph_whole(b, pooled), 3, 2, 1);
    graph_add_conv(b, "conv1", graph_whole(b, pooled), graph_whole(b, wide), 3, 2, 1);
    graph_add_norm(b, "norm1", graph_whole(b, wide), graph_whole(b, active2), false);
    graph_add_conv(b, "conv2", graph_whole(b, active2), graph_whole(b, narrow), 1, 2, 0);
    graph_add_norm(b, "norm2", graph_whole(b, narrow), graph_whole(b, last), true);
    graph_add_pool(b, GRAPH_MEAN_POOL, graph_whole(b, last), graph_whole(b, mean), 1, 1, 0);
    return mean;
}

/* A slab with three readers of different length, the first segment of which leaves a hole. */
static unsigned
build_slab(struct graph_builder *b)
{
    unsigned slab = graph_add_buffer(b, 40, HEIGHT, WIDTH), one = graph_add_buffer(b, 24, HEIGHT, WIDTH);
    unsigned squeezed = graph_add_buffer(b, 48, HEIGHT, WIDTH), active = graph_add_buffer(b, 48, HEIGHT, WIDTH);
    unsigned all = graph_add_buffer(b, 40, HEIGHT, WIDTH), pooled = graph_add_buffer(b, 40, HEIGHT / 2, WIDTH / 2);
    unsigned out = graph_add_buffer(b, 16, HEIGHT / 2, WIDTH / 2),
             last = graph_add_buffer(b, 16, HEIGHT / 2, WIDTH / 2);
    unsigned mean = graph_add_buffer(b, 16, 1, 1);

    graph_add_conv(b, "stem", graph_whole(b, b->graph->input), graph_slice(slab, 0, 24), 3, 1, 1);
    graph_add_norm(b, "norm1", graph_slice(slab, 0, 24), graph_whole(b, one), true);
    graph_add_conv(b, "conv1", graph_whole(b, one), graph_whole(b, squeezed), 1, 1, 0);
    graph_add_norm(b, "norm2", graph_whole(b, squeezed), graph_whole(b, active), true);
    graph_add_conv(b, "conv2", graph_whole(b, active), graph_slice(slab, 24, 16), 3, 1, 1);
    graph_add_norm(b, "norm3", graph_whole(b, slab), graph_whole(b, all), true);
    graph_add_pool(b, GRAPH_AVG_POOL, graph_whole(b, all), graph_whole(b, pooled), 2, 2, 0);
    graph_add_conv(b, "conv3", graph_whole(b, pooled), graph_whole(b, out), 1, 1, 0);
    graph_add_norm(b, "norm4", graph_whole(b, out), graph_whole(b, last), true);
    graph_add_pool(b, GRAPH_MEAN_POOL, graph_whole(b, last), graph_whole(b, mean), 1, 1, 0);
    return mean;
}

/* Sums of two normalised branches, and of a branch with what went into it. */
static unsigned
build_sums(struct graph_builder *b)
{
    unsigned left = graph_add_buffer(b, 21, HEIGHT, WIDTH), right = graph_add_buffer(b, 21, HEIGHT, WIDTH);
    unsigned left1 = graph_add_buffer(b, 21, HEIGHT, WIDTH), right1 = graph_add_buffer(b, 21, HEIGHT, WIDTH);
    unsigned sum = graph_add_buffer(b, 21, HEIGHT, WIDTH), raw = graph_add_buffer(b, 21, HEIGHT, WIDTH);
    unsigned branch = graph_add_buffer(b, 21, HEIGHT, WIDTH), sum2 = graph_add_buffer(b, 21, HEIGHT, WIDTH);
    unsigned mean = graph_add_buffer(b, 21, 1, 1);

    graph_add_conv(b, "left", graph_whole(b, b->graph->input), graph_whole(b, left), 5, 1, 2);
    graph_add_norm(b, "left1", graph_whole(b, left), graph_whole(b, left1), false);
    graph_add_conv(b, "right", graph_whole(b, b->graph->input), graph_whole(b, right), 1, 1, 0);
    graph_add_norm(b, "right1", graph_whole(b, right), graph_whole(b, right1), true);
    graph_add_sum(b, graph_whole(b, left1), graph_whole(b, right1), graph_whole(b, sum), false);
    graph_add_conv(b, "conv", graph_whole(b, sum), graph_whole(b, raw), 3, 1, 1);
    graph_add_norm(b, "norm", graph_whole(b, raw), graph_whole(b, branch), false);
    graph_add_sum(b, graph_whole(b, branch), graph_whole(b, sum), graph_whole(b, sum2), true);
    graph_add_pool(b, GRAPH_MEAN_POOL, graph_whole(b, sum2), graph_whole(b, mean), 1, 1, 0);
    return mean;
}

typedef unsigned build_graph(struct graph_builder *b);

static build_graph *const builders[] = {build_windows, build_slab, build_sums};
static const unsigned seeds[] = {2, 89, 3}; /* of weights with kink_distance() above KINK_FREE */
#define GRAPHS ((int)(sizeof(builders) / sizeof(builders[0])))

static struct graph *
small_graph(build_graph *build)
{
    struct graph_builder b = {.graph = calloc(1, sizeof(*b.graph))};
    struct chex_error err;
    unsigned mean;

    ck_assert_ptr_nonnull(b.graph);
    b.graph->model = "small";
    b.graph->input = graph_add_buffer(&b, INPUT_CHANNELS, HEIGHT, WIDTH);
    mean = build(&b);
    b.graph->output = graph_add_buffer(&b, OUTPUTS, 1, 1);
    graph_add_linear(&b, "head", graph_whole(&b, mean), graph_whole(&b, b.graph->output));
    ck_assert(!b.failed);
    ck_assert_msg(graph_check(b.graph, &err) == CHEX_OK, "%s", err.text);
    return b.graph;
}

/* ---- buffers between guards ------------------------------------------------------------------------------------ */

#define GUARD 64

static void *
guarded(size_t bytes)
{
    uint8_t *p = malloc(bytes + 2 * GUARD + sizeof(size_t));

    ck_assert_ptr_nonnull(p);
    memset(p, 0xa5, bytes + 2 * GUARD);
    memcpy(p + 2 * GUARD + bytes, &bytes, sizeof(bytes));
    return p + GUARD;
}

static void
guarded_free(void *data, size_t bytes)
{
    const uint8_t *p = (uint8_t *)data - GUARD;
    size_t i;

    for (i = 0; i < GUARD; i++) {
        ck_assert_uint_eq(p[i], 0xa5);
        ck_assert_uint_eq(p[GUARD + bytes + i], 0xa5);
    }
    free((void *)((uint8_t *)data - GUARD));
}

/* ---- one step on one backend ----------------------------------------------------------------------------------- */

struct outcome {
    size_t params, stats, logit_count;
    float *logits, *evaluated, *gradients, *statistics, *after;
    double loss, norm;
    float **buffer;   /* [buffer_count], NULL where it is not kept */
    float **gradient; /* the same of those after backward(), in a plan with `keep` */
};

static uint32_t
next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static float
uniform(uint64_t *state)
{
    return (float)(next_random(state) % 65536) / 32768.0f - 1;
}

/*
 * Beta stands two gammas off zero, so that few inputs of a ReLU are near it; less far in the last normalisation, whose
 * gradient, the same for all pixels of an image, comes through it only where the ReLU cuts something off.
 */
static float
random_beta(float r, bool last)
{
    float size = last ? 0.25f : 1.5f;

    return r < -0.5f ? -size : size;
}

static void
fill_parameters(const struct graph *g, unsigned seed, float *arena)
{
    uint64_t state = seed;
    size_t i, k, last = 0;

    for (i = 0; i < g->param_count; i++)
        last = g->param[i].role == GRAPH_BETA ? i : last;
    for (i = 0; i < g->param_count; i++) {
        const struct graph_tensor *t = &g->param[i];

        for (k = 0; k < t->count; k++) {
            float r = uniform(&state);

            arena[t->offset + k] = t->role == GRAPH_GAMMA  ? 0.75f + 0.25f * r
                                   : t->role == GRAPH_BETA ? random_beta(r, i == last)
                                                           : r / sqrtf((float)t->count / (float)t->shape[0]);
        }
    }
}

static void
check_ok(enum chex_status status, const struct chex_error *err)
{
    ck_assert_msg(status == CHEX_OK, "%s", err->text);
}

static float **
read_buffers(const struct backend *backend, struct plan *plan, const struct graph *g, unsigned images, bool gradient)
{
    float **buffer = calloc(g->buffer_count, sizeof(*buffer));
    struct chex_error err;
    unsigned i;

    for (i = 0; i < g->buffer_count; i++) {
        size_t bytes = (size_t)images * g->buffer[i].channels * g->buffer[i].height * g->buffer[i].width *
                       sizeof(float);

        buffer[i] = guarded(bytes);
        if (backend->peek(plan, i, gradient, buffer[i], &err) != CHEX_OK) {
            ck_assert_int_eq(err.status, CHEX_ERR_UNSUPPORTED);
            guarded_free(buffer[i], bytes);
            buffer[i] = NULL;
        }
    }
    return buffer;
}

static void
buffers_free(float **buffer, const struct graph *g, unsigned images)
{
    size_t i;

    for (i = 0; i < g->buffer_count; i++)
        if (buffer[i])
            guarded_free(buffer[i], (size_t)images * g->buffer[i].channels * g->buffer[i].height * g->buffer[i].width *
                                        sizeof(float));
    free(buffer);
}

static struct outcome
run_step(const struct backend *backend, const struct graph *g, unsigned seed, unsigned images, unsigned threads,
         bool keep)
{
    struct plan_options options = {.graph = g,
                                   .batch = images,
                                   .source = SOURCE,
                                   .train = true,
                                   .keep = keep,
                                   .threads = threads,
                                   .optimizer = optimizer_default(OPTIMIZER_SGD)};
    struct outcome o = {.params = g->param_floats * sizeof(float),
                        .stats = g->stat_floats * sizeof(float),
                        .logit_count = (size_t)images * OUTPUTS};
    uint8_t *pixels = guarded((size_t)images * SOURCE * SOURCE), *label = guarded(o.logit_count);
    struct crop crop[BATCH_MAX] = {{0, 0, false}, {2, 6, true}, {1, 3, false}};
    float weight[BATCH_MAX] = {1, 1, 0};
    struct batch batch = {pixels, crop, label, weight, 0.1};
    struct optimizer_step step = {.number = 1, .rate = 0.1};
    struct chex_error err;
    struct plan *plan;
    uint64_t state = 9;
    size_t i;

    for (i = 0; i < (size_t)images * SOURCE * SOURCE; i++)
        pixels[i] = (uint8_t)next_random(&state);
    for (i = 0; i < o.logit_count; i++)
        label[i] = next_random(&state) % 3 == 0;
    o.logits = guarded(o.logit_count * sizeof(float));
    o.evaluated = guarded(o.logit_count * sizeof(float));
    o.gradients = guarded(o.params);
    o.after = guarded(o.params);
    o.statistics = guarded(o.stats);
    fill_parameters(g, seed, o.after);
    check_ok(backend->plan_new(&options, &plan, &err), &err);
    check_ok(backend->write(plan, ARENA_PARAMETERS, o.after, &err), &err);
    check_ok(backend->clear_gradients(plan, &err), &err);
    /* Two micro-batches of the same images: gradients add up. */
    for (i = 0; i < 2; i++) {
        check_ok(backend->forward(plan, &batch, FORWARD_TRAIN, o.logits, &o.loss, &err), &err);
        if (i == 1)
            o.buffer = read_buffers(backend, plan, g, images, false);
        check_ok(backend->backward(plan, NULL, NULL, &err), &err);
    }
    o.gradient = read_buffers(backend, plan, g, images, true);
    check_ok(backend->read(plan, ARENA_GRADIENTS, o.gradients, &err), &err);
    check_ok(backend->update(plan, &step, &o.norm, &err), &err);
    check_ok(backend->read(plan, ARENA_PARAMETERS, o.after, &err), &err);
    check_ok(backend->read(plan, ARENA_STATISTICS, o.statistics, &err), &err);
    check_ok(backend->forward(plan, &batch, FORWARD_EVALUATE, o.evaluated, NULL, &err), &err);
    backend->plan_free(plan);
    guarded_free(pixels, (size_t)images * SOURCE * SOURCE);
    guarded_free(label, o.logit_count);
    return o;
}

static void
outcome_free(struct outcome *o, const struct graph *g, unsigned images)
{
    buffers_free(o->buffer, g, images);
    buffers_free(o->gradient, g, images);
    guarded_free(o->logits, o->logit_count * sizeof(float));
    guarded_free(o->evaluated, o->logit_count * sizeof(float));
    guarded_free(o->gradients, o->params);
    guarded_free(o->after, o->params);
    guarded_free(o->statistics, o->stats);
}

/* ---- tests ----------------------------------------------------------------------------------------------------- */

static void
compare(const char *backend, const char *what, const float *got, const float *wanted, size_t count, double least)
{
    double difference = 0, norm = 0;
    size_t i;

    for (i = 0; i < count; i++) {
        difference += pow((double)got[i] - (double)wanted[i], 2);
        norm += pow((double)wanted[i], 2);
    }
    norm = fmax(sqrt(norm), least);
    ck_assert_msg(sqrt(difference) <= TOLERANCE * norm, "%s: %s: relative error %g", backend, what,
                  sqrt(difference) / norm);
}

static void
compare_outcomes(const char *name, const struct graph *g, unsigned images, const struct outcome *got,
                 const struct outcome *wanted)
{
    double all = 0;
    size_t i;

    for (i = 0; i < g->param_floats; i++)
        all += pow((double)wanted->gradients[i], 2);
    all = sqrt(all / (double)g->param_count);
    compare(name, "logits", got->logits, wanted->logits, wanted->logit_count, 0);
    compare(name, "logits in evaluation", got->evaluated, wanted->evaluated, wanted->logit_count, 0);
    ck_assert_double_eq_tol(got->loss, wanted->loss, TOLERANCE * wanted->loss);
    for (i = 0; i < g->buffer_count; i++)
        if (got->buffer[i])
            compare(name, "a buffer", got->buffer[i], wanted->buffer[i],
                    (size_t)images * g->buffer[i].channels * g->buffer[i].height * g->buffer[i].width, 0);
    for (i = 0; i < g->param_count; i++)
        compare(name, g->param[i].name, got->gradients + g->param[i].offset, wanted->gradients + g->param[i].offset,
                g->param[i].count, 5e-2 * all);
    compare(name, "parameters after the step", got->after, wanted->after, g->param_floats, 0);
    compare(name, "running statistics", got->statistics, wanted->statistics, g->stat_floats, 0);
}

/* The instruction sets that the CPU backend may be asked for; others do not look. */
static const char *const instruction_sets[] = {"plain", "avx2", "avx512"};

START_TEST(a_step_is_that_of_the_reference)
{
    struct graph *g = small_graph(builders[_i]);
    float *before = calloc(g->param_floats, sizeof(*before));
    unsigned images;
    size_t b, k;

    for (images = 1; images <= BATCH_MAX; images++) {
        struct outcome wanted = run_step(backend_find("ref"), g, seeds[_i], images, 1, false);

        fill_parameters(g, seeds[_i], before);
        ck_assert_msg(kink_distance(g, before, wanted.buffer, images) > KINK_FREE,
                      "another seed is needed: %g from where a gradient jumps",
                      kink_distance(g, before, wanted.buffer, images));
        for (b = 0; backends[b]; b++) {
            for (k = 0; k < sizeof(instruction_sets) / sizeof(instruction_sets[0]); k++) {
                struct outcome got;

                setenv("CHEX_CPU", instruction_sets[k], 1);
                got = run_step(backends[b], g, seeds[_i], images, 2, false);
                compare_outcomes(backends[b]->name, g, images, &got, &wanted);
                outcome_free(&got, g, images);
            }
        }
        outcome_free(&wanted, g, images);
    }
    free(before);
    graph_free(g);
}
END_TEST

START_TEST(every_gradient_that_is_kept_is_that_of_the_reference)
{
    struct graph *g = small_graph(builders[_i]);
    struct outcome wanted = run_step(backend_find("ref"), g, seeds[_i], BATCH_MAX, 1, true);
    size_t b, i, kept;

    for (b = 0; backends[b]; b++) {
        struct outcome got = run_step(backends[b], g, seeds[_i], BATCH_MAX, 2, true);

        for (i = kept = 0; i < g->buffer_count; i++) {
            if (!got.gradient[i])
                continue;
            ck_assert_ptr_nonnull(wanted.gradient[i]);
            compare(backends[b]->name, "the gradient of a buffer", got.gradient[i], wanted.gradient[i],
                    (size_t)BATCH_MAX * g->buffer[i].channels * g->buffer[i].height * g->buffer[i].width, 1e-6);
            kept++;
        }
        ck_assert_uint_gt(kept, g->buffer_count / 3);
        outcome_free(&got, g, BATCH_MAX);
    }
    outcome_free(&wanted, g, BATCH_MAX);
    graph_free(g);
}
END_TEST

START_TEST(the_bits_do_not_depend_on_the_number_of_threads)
{
    struct graph *g = small_graph(builders[_i]);
    unsigned threads;
    size_t b;

    for (b = 0; backends[b]; b++) {
        struct outcome one = run_step(backends[b], g, seeds[_i], BATCH_MAX, 1, false);

        for (threads = 2; threads <= 5; threads++) {
            struct outcome more = run_step(backends[b], g, seeds[_i], BATCH_MAX, threads, false);

            ck_assert_mem_eq(more.logits, one.logits, one.logit_count * sizeof(float));
            ck_assert_mem_eq(more.evaluated, one.evaluated, one.logit_count * sizeof(float));
            ck_assert_mem_eq(more.gradients, one.gradients, one.params);
            ck_assert_mem_eq(more.after, one.after, one.params);
            ck_assert_mem_eq(more.statistics, one.statistics, one.stats);
            outcome_free(&more, g, BATCH_MAX);
        }
        outcome_free(&one, g, BATCH_MAX);
    }
    graph_free(g);
}
END_TEST

/* Every float of the arena is announced once, from the end to the beginning. */
struct announced {
    size_t next;
};

static enum chex_status
note_ready(void *context, size_t first, size_t count, struct chex_error *err)
{
    struct announced *a = context;

    (void)err;
    ck_assert_uint_eq(first + count, a->next);
    a->next = first;
    return CHEX_OK;
}

START_TEST(gradients_are_announced_once_from_the_end)
{
    struct chex_error err;
    struct graph *g;
    size_t b;

    check_ok(graph_new("densenet-micro", 32, OUTPUTS, &g, &err), &err);
    for (b = 0; backends[b]; b++) {
        struct plan_options options = {.graph = g,
                                       .batch = 2,
                                       .source = 32,
                                       .train = true,
                                       .threads = 2,
                                       .optimizer = optimizer_default(OPTIMIZER_ADAM)};
        uint8_t pixels[2 * 32 * 32] = {7}, label[2 * OUTPUTS] = {1};
        struct crop crop[2] = {{0, 0, false}, {0, 0, true}};
        struct batch batch = {pixels, crop, label, NULL, 0.1};
        struct announced announced = {g->param_floats};
        struct plan *plan;
        double loss;

        check_ok(backends[b]->plan_new(&options, &plan, &err), &err);
        check_ok(backends[b]->forward(plan, &batch, FORWARD_TRAIN, NULL, &loss, &err), &err);
        check_ok(backends[b]->backward(plan, note_ready, &announced, &err), &err);
        ck_assert_uint_eq(announced.next, 0);
        backends[b]->plan_free(plan);
    }
    graph_free(g);
}
END_TEST

START_TEST(an_inference_plan_gives_the_logits_of_a_training_plan_with_less_memory)
{
    uint8_t *pixels = calloc(4, 32 * 32);
    struct crop crop[4] = {{0, 0, false}};
    struct chex_error err;
    struct graph *g;
    size_t b, i;

    check_ok(graph_new("densenet-micro", 32, OUTPUTS, &g, &err), &err);
    for (i = 0; i < 4 * 32 * 32; i++)
        pixels[i] = (uint8_t)(i * i % 251);
    for (b = 0; backends[b]; b++) {
        struct batch batch = {pixels, crop, NULL, NULL, 0};
        float *arena = malloc(g->param_floats * sizeof(float)), logits[2][4 * OUTPUTS];
        struct plan_memory memory[2];

        fill_parameters(g, 5, arena);
        for (i = 0; i < 2; i++) {
            struct plan_options options = {.graph = g, .batch = 4, .source = 32, .train = i == 0, .threads = 2};
            struct plan *plan;

            check_ok(backends[b]->plan_new(&options, &plan, &err), &err);
            check_ok(backends[b]->write(plan, ARENA_PARAMETERS, arena, &err), &err);
            check_ok(backends[b]->forward(plan, &batch, FORWARD_EVALUATE, logits[i], NULL, &err), &err);
            if (i == 1)
                ck_assert_int_eq(backends[b]->forward(plan, &batch, FORWARD_TRAIN, NULL, NULL, &err), CHEX_ERR_BUG);
            backends[b]->memory(plan, &memory[i]);
            backends[b]->plan_free(plan);
        }
        ck_assert_mem_eq(logits[0], logits[1], sizeof(logits[0]));
        ck_assert_uint_lt(memory[1].activations, memory[0].activations);
        ck_assert_uint_eq(memory[1].optimizer, 0);
        free(arena);
    }
    free(pixels);
    graph_free(g);
}
END_TEST

/* 30 TB: the question comes before any of it is taken. */
START_TEST(a_plan_that_is_too_large_says_what_it_needs_and_what_there_is)
{
    struct plan_options options = {.batch = 1u << 20, .source = 224, .train = true, .threads = 2};
    const struct backend *cpu = backend_find("cpu");
    struct chex_error err;
    struct graph *g;
    struct plan *plan;

    check_ok(graph_new("densenet121", 224, OUTPUTS, &g, &err), &err);
    options.graph = g;
    ck_assert_int_eq(cpu->plan_new(&options, &plan, &err), CHEX_ERR_MEMORY);
    ck_assert_ptr_null(plan);
    ck_assert_msg(strstr(err.text, "1048576 images") && strstr(err.text, "needs") && strstr(err.text, "B are free"),
                  "%s", err.text);
    options.batch = UINT_MAX;
    ck_assert_int_eq(cpu->plan_new(&options, &plan, &err), CHEX_ERR_MEMORY);
    graph_free(g);
}
END_TEST

START_TEST(a_precision_that_is_not_done_is_said_so)
{
    struct graph *g = small_graph(build_sums);
    struct plan_options options = {.graph = g, .batch = 1, .source = SOURCE, .threads = 1, .precision = PRECISION_FP16};
    struct chex_error err;
    struct plan *plan;
    size_t b;

    for (b = 0; backends[b]; b++) {
        if (strcmp(backends[b]->name, "ref") != 0 && strcmp(backends[b]->name, "cpu") != 0)
            continue;
        ck_assert_int_eq(backends[b]->plan_new(&options, &plan, &err), CHEX_ERR_UNSUPPORTED);
        ck_assert_ptr_null(plan);
        ck_assert_ptr_nonnull(strstr(err.text, "fp32"));
    }
    graph_free(g);
}
END_TEST

Suite *
backends_suite(void)
{
    Suite *s = suite_create("backends");
    TCase *c = tcase_create("backends");

    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, a_step_is_that_of_the_reference, 0, GRAPHS);
    tcase_add_loop_test(c, every_gradient_that_is_kept_is_that_of_the_reference, 0, GRAPHS);
    tcase_add_loop_test(c, the_bits_do_not_depend_on_the_number_of_threads, 0, GRAPHS);
    tcase_add_test(c, gradients_are_announced_once_from_the_end);
    tcase_add_test(c, an_inference_plan_gives_the_logits_of_a_training_plan_with_less_memory);
    tcase_add_test(c, a_plan_that_is_too_large_says_what_it_needs_and_what_there_is);
    tcase_add_test(c, a_precision_that_is_not_done_is_said_so);
    suite_add_tcase(s, c);
    return s;
}
