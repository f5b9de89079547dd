/*
 * step_fixture.c - see step_fixture.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "step_fixture.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- graphs ---------------------------------------------------------------------------------------------------- */

/* Windows of all kinds, and channel counts that are not multiples of a block. */
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

/* A slab with three consumers of different length; the first segment leaves a gap. */
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

/* Sums of two normalised branches, and of a branch with its input. */
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

/* What every backend supports: square images, a 7 x 7 stem, slices at multiples of 8 channels. */
static unsigned
build_square(struct graph_builder *b)
{
    unsigned stem = graph_add_buffer(b, 24, 17, 17), active = graph_add_buffer(b, 24, 17, 17);
    unsigned slab = graph_add_buffer(b, 40, 9, 9), one = graph_add_buffer(b, 24, 9, 9);
    unsigned squeezed = graph_add_buffer(b, 24, 9, 9), active2 = graph_add_buffer(b, 24, 9, 9);
    unsigned all = graph_add_buffer(b, 40, 9, 9), pooled = graph_add_buffer(b, 40, 4, 4);
    unsigned left = graph_add_buffer(b, 16, 4, 4), left1 = graph_add_buffer(b, 16, 4, 4);
    unsigned right = graph_add_buffer(b, 16, 4, 4), right1 = graph_add_buffer(b, 16, 4, 4);
    unsigned sum = graph_add_buffer(b, 16, 4, 4), mean = graph_add_buffer(b, 16, 1, 1);

    graph_add_conv(b, "stem", graph_whole(b, b->graph->input), graph_whole(b, stem), 7, 2, 3);
    graph_add_norm(b, "norm0", graph_whole(b, stem), graph_whole(b, active), true);
    graph_add_pool(b, GRAPH_MAX_POOL, graph_whole(b, active), graph_slice(slab, 0, 24), 3, 2, 1);
    graph_add_norm(b, "norm1", graph_slice(slab, 0, 24), graph_whole(b, one), true);
    graph_add_conv(b, "conv1", graph_whole(b, one), graph_whole(b, squeezed), 1, 1, 0);
    graph_add_norm(b, "norm2", graph_whole(b, squeezed), graph_whole(b, active2), true);
    graph_add_conv(b, "conv2", graph_whole(b, active2), graph_slice(slab, 24, 16), 3, 1, 1);
    graph_add_norm(b, "norm3", graph_whole(b, slab), graph_whole(b, all), true);
    graph_add_pool(b, GRAPH_AVG_POOL, graph_whole(b, all), graph_whole(b, pooled), 2, 2, 0);
    graph_add_conv(b, "left", graph_whole(b, pooled), graph_whole(b, left), 3, 1, 1);
    graph_add_norm(b, "left1", graph_whole(b, left), graph_whole(b, left1), false);
    graph_add_conv(b, "right", graph_whole(b, pooled), graph_whole(b, right), 1, 1, 0);
    graph_add_norm(b, "right1", graph_whole(b, right), graph_whole(b, right1), false);
    graph_add_sum(b, graph_whole(b, left1), graph_whole(b, right1), graph_whole(b, sum), true);
    graph_add_pool(b, GRAPH_MEAN_POOL, graph_whole(b, sum), graph_whole(b, mean), 1, 1, 0);
    return mean;
}

typedef unsigned build_graph(struct graph_builder *b);

static build_graph *const builders[GRAPHS] = {build_windows, build_slab, build_sums, build_square};
const unsigned step_seed[GRAPHS] = {3, 68, 2, 1};

struct graph *
step_graph(int which)
{
    struct graph_builder b = {.graph = calloc(1, sizeof(*b.graph))};
    struct chex_error err;
    unsigned mean;

    ck_assert_ptr_nonnull(b.graph);
    b.graph->model = "small";
    b.graph->input = graph_add_buffer(&b, INPUT_CHANNELS, which == GRAPH_OF_ALL ? WIDTH : HEIGHT, WIDTH);
    mean = builders[which](&b);
    b.graph->output = graph_add_buffer(&b, OUTPUTS, 1, 1);
    graph_add_linear(&b, "head", graph_whole(&b, mean), graph_whole(&b, b.graph->output));
    ck_assert(!b.failed);
    ck_assert_msg(graph_check(b.graph, &err) == CHEX_OK, "%s", err.text);
    return b.graph;
}

bool
step_does(const struct backend *backend, const struct graph *g)
{
    struct plan_options options = {.graph = g, .batch = 1, .source = SOURCE, .threads = 1};
    struct plan_facts facts;
    struct device *device;
    struct chex_error err;
    enum chex_status status;

    step_check_ok(backend->device_open(0, &device, &err), &err);
    status = backend->plan_size(device, &options, &facts, &err);
    ck_assert_msg(status == CHEX_OK || status == CHEX_ERR_UNSUPPORTED, "%s", err.text);
    backend->device_close(device);
    return status == CHEX_OK;
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

static bool
is_guard(const uint8_t *p)
{
    size_t i;

    for (i = 0; i < GUARD && p[i] == 0xa5; i++)
        ;
    return i == GUARD;
}

static void
guarded_free(void *data, size_t bytes)
{
    uint8_t *p = (uint8_t *)data - GUARD;

    ck_assert(is_guard(p));
    ck_assert(is_guard(p + GUARD + bytes));
    free(p);
}

/* ---- one step on one backend ----------------------------------------------------------------------------------- */

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
 * Beta is two gammas away from zero, so that few inputs of a ReLU are near it.  It is less in the last BN: all
 * pixels of an image have the same gradient there, so only the ReLU mask makes it different from zero.
 */
static float
random_beta(float r, bool last)
{
    float size = last ? 0.25f : 1.5f;

    return r < -0.5f ? -size : size;
}

void
step_fill_parameters(const struct graph *g, unsigned seed, float *arena)
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

void
step_check_ok(enum chex_status status, const struct chex_error *err)
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

/* Draws image `number` of BATCH_MAX and its labels.  A quarter of the labels is unknown. */
static void
draw_image(unsigned number, uint8_t *pixels, uint8_t *label)
{
    uint64_t state = 9 + number;
    size_t i;

    for (i = 0; i < (size_t)SOURCE * SOURCE; i++)
        pixels[i] = (uint8_t)next_random(&state);
    for (i = 0; i < OUTPUTS; i++)
        label[i] = next_random(&state) % 4 == 3 ? CHEX_LABEL_UNKNOWN : next_random(&state) % 3 == 0;
}

/* ---- plans ----------------------------------------------------------------------------------------------------- */

void
step_plan_make_on(struct step_plan *p, const struct backend *backend, unsigned device, const struct plan_options *o)
{
    struct plan_options options = *o;
    struct chex_error err;

    *p = (struct step_plan){.backend = backend};
    step_check_ok(backend->device_open(device, &p->device, &err), &err);
    if (options.precision == PRECISION_AUTO && p->device->info.precisions >> PRECISION_FP32 & 1)
        options.precision = PRECISION_FP32;
    step_check_ok(backend->plan_new(p->device, &options, &p->plan, &p->facts, &err), &err);
}

void
step_plan_make(struct step_plan *p, const struct backend *backend, const struct plan_options *o)
{
    step_plan_make_on(p, backend, 0, o);
}

void
step_plan_free(struct step_plan *p)
{
    p->backend->plan_free(p->plan);
    p->backend->device_close(p->device);
}

void
step_accumulate(struct step_plan *p, const struct batch *batch, unsigned flags)
{
    const struct step_end end = {.requests = 0};
    struct chex_error err;

    step_check_ok(p->backend->accumulate(p->plan, batch, flags, flags & STEP_LAST ? &end : NULL, &err), &err);
}

void
step_update(struct step_plan *p, double rate, struct step_result *out)
{
    struct chex_error err;
    uint64_t ticket;
    bool done = false;

    step_check_ok(p->backend->update(p->plan, rate, 0, &ticket, &err), &err);
    while (!done)
        step_check_ok(p->backend->result(p->plan, ticket, &done, out, &err), &err);
}

void
step_make(struct step_plan *p, const struct batch *batch, double rate, struct step_result *out)
{
    step_accumulate(p, batch, STEP_FIRST | STEP_LAST);
    step_update(p, rate, out);
}

/* ---- a step ------------------------------------------------------------------------------------------------------ */

struct second_reader {
    const struct step_plan *p;
    float *params, *stats;
    enum chex_status status;
};

static void *
read_concurrently(void *context)
{
    struct second_reader *r = context;
    struct chex_error err;

    r->status = r->p->backend->read_concurrently(r->p->plan, ARENA_PARAMETERS, r->params, &err);
    if (r->status == CHEX_OK)
        r->status = r->p->backend->read_concurrently(r->p->plan, ARENA_STATISTICS, r->stats, &err);
    return NULL;
}

/* The mean of a map and the bias are the logit.  Those of padding are zero. */
static void
check_maps(const struct graph *g, const struct step_setup *setup, const struct outcome *o)
{
    const float *bias = o->after + graph_find(g, "head.bias")->offset;
    size_t pixels = o->map_count / o->logit_count, i, p;

    for (i = 0; i < o->logit_count; i++) {
        bool padding = setup->weight && setup->weight[i / OUTPUTS] == 0;
        double sum = 0;

        for (p = 0; p < pixels; p++)
            sum += (double)o->maps[i * pixels + p];
        ck_assert_double_eq_tol(sum / (double)pixels + (padding ? 0 : (double)bias[i % OUTPUTS]),
                                (double)o->evaluated[i], 1e-5);
    }
}

/* Runs an evaluation while a second thread reads what the outcome already has of the plan. */
static void
score_and_read(const struct step_plan *p, const struct batch *batch, const struct crop *crop, struct outcome *o)
{
    struct second_reader r = {.p = p, .params = guarded(o->params), .stats = guarded(o->stats)};
    struct chex_error err;
    pthread_t second;

    if (p->backend->read_concurrently)
        ck_assert_int_eq(pthread_create(&second, NULL, read_concurrently, &r), 0);
    step_check_ok(p->backend->score_start(p->plan, batch, 1, crop, ARENA_PARAMETERS, o->evaluated, o->maps, &err),
                  &err);
    step_check_ok(p->backend->score_finish(p->plan, &err), &err);
    if (p->backend->read_concurrently) {
        ck_assert_int_eq(pthread_join(second, NULL), 0);
        ck_assert_int_eq(r.status, CHEX_OK);
        ck_assert_mem_eq(r.params, o->after, o->params);
        ck_assert_mem_eq(r.stats, o->statistics, o->stats);
    }
    guarded_free(r.params, o->params);
    guarded_free(r.stats, o->stats);
}

struct outcome
step_run(const struct backend *backend, const struct graph *g, const struct step_setup *setup)
{
    static const struct crop crops[BATCH_MAX] = {
        {.x = 0}, {.x = 2, .y = 6, .flip = true, .gain = CROP_GAIN / 4}, {.x = 1, .y = 3}};
    unsigned images = setup->images, drawn = images + (setup->mix ? 1 : 0);
    struct plan_options options = {.graph = g,
                                   .batch = images,
                                   .micro_batches = 2,
                                   .source = SOURCE,
                                   .train = true,
                                   .mixup = setup->mix != NULL,
                                   .maps = true,
                                   .keep = setup->keep,
                                   .threads = setup->threads,
                                   .precision = setup->precision,
                                   .optimizer = optimizer_default(OPTIMIZER_SGD)};
    struct outcome o = {.params = g->param_floats * sizeof(float),
                        .stats = g->stat_floats * sizeof(float),
                        .logit_count = (size_t)images * OUTPUTS};
    struct graph_head head;
    uint8_t *pixels = guarded((size_t)drawn * SOURCE * SOURCE), *label = guarded((size_t)drawn * OUTPUTS);
    struct crop crop[BATCH_MAX];
    struct batch batch = {
        .pixels = pixels, .crop = crop, .label = label, .weight = setup->weight, .mix = setup->mix, .scale = 0.1};
    struct step_plan p;
    struct chex_error err;
    size_t i;

    for (i = 0; i < drawn; i++) {
        unsigned number = setup->image ? setup->image[i] : (unsigned)i;

        draw_image(number, pixels + i * SOURCE * SOURCE, label + i * OUTPUTS);
        crop[i] = crops[number];
        if (number == 2)
            crop_rotate(&crop[i], 20);
    }
    for (i = 0; setup->mix && i < o.logit_count; i++)
        if (label[i] != CHEX_LABEL_UNKNOWN && label[i + OUTPUTS] == !label[i])
            label[i] |= LABEL_OPPOSED;
    o.logits = guarded(o.logit_count * sizeof(float));
    o.evaluated = guarded(o.logit_count * sizeof(float));
    ck_assert(graph_find_head(g, &head));
    o.map_count = images * head.map_floats;
    o.maps = guarded(o.map_count * sizeof(float));
    o.gradients = guarded(o.params);
    o.after = guarded(o.params);
    o.statistics = guarded(o.stats);
    step_fill_parameters(g, setup->seed, o.after);
    step_plan_make(&p, backend, &options);
    step_check_ok(backend->write(p.plan, ARENA_PARAMETERS, o.after, &err), &err);
    /* Two micro-batches with the same images: gradients accumulate. */
    step_accumulate(&p, &batch, STEP_FIRST);
    step_accumulate(&p, &batch, STEP_LAST);
    step_check_ok(backend->peek(p.plan, g->output, false, o.logits, &err), &err);
    o.buffer = read_buffers(backend, p.plan, g, images, false);
    o.gradient = read_buffers(backend, p.plan, g, images, true);
    step_update(&p, 0.1, &o.result);
    ck_assert(o.result.applied && !o.result.halted);
    step_check_ok(backend->read(p.plan, ARENA_GRADIENTS, o.gradients, &err), &err);
    step_check_ok(backend->read(p.plan, ARENA_PARAMETERS, o.after, &err), &err);
    step_check_ok(backend->read(p.plan, ARENA_STATISTICS, o.statistics, &err), &err);
    score_and_read(&p, &batch, crop, &o);
    check_maps(g, setup, &o);
    step_plan_free(&p);
    guarded_free(pixels, (size_t)drawn * SOURCE * SOURCE);
    guarded_free(label, (size_t)drawn * OUTPUTS);
    return o;
}

void
step_outcome_free(struct outcome *o, const struct graph *g, unsigned images)
{
    buffers_free(o->buffer, g, images);
    buffers_free(o->gradient, g, images);
    guarded_free(o->logits, o->logit_count * sizeof(float));
    guarded_free(o->evaluated, o->logit_count * sizeof(float));
    guarded_free(o->maps, o->map_count * sizeof(float));
    guarded_free(o->gradients, o->params);
    guarded_free(o->after, o->params);
    guarded_free(o->statistics, o->stats);
}

/* ---- comparison ------------------------------------------------------------------------------------------------ */

#define TOLERANCE 1e-4

const char *const *
step_sets(const struct backend *backend)
{
    static const char *const all[] = {"plain", "avx2", "avx512", NULL}, *const one[] = {"plain", NULL};

    return strcmp(backend->name, "cpu") == 0 ? all : one;
}

void
step_compare_values(const char *backend, const char *what, const float *got, const float *wanted, size_t count,
                    double least)
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

void
step_compare(const char *name, const struct graph *g, unsigned images, const struct outcome *got,
             const struct outcome *wanted)
{
    double all = 0;
    size_t i;

    for (i = 0; i < g->param_floats; i++)
        all += pow((double)wanted->gradients[i], 2);
    all = sqrt(all / (double)g->param_count);
    step_compare_values(name, "logits", got->logits, wanted->logits, wanted->logit_count, 0);
    step_compare_values(name, "logits in evaluation", got->evaluated, wanted->evaluated, wanted->logit_count, 0);
    step_compare_values(name, "maps", got->maps, wanted->maps, wanted->map_count, 0);
    ck_assert_double_eq_tol(got->result.loss, wanted->result.loss, TOLERANCE * wanted->result.loss);
    ck_assert_double_eq_tol(got->result.norm, wanted->result.norm, TOLERANCE * wanted->result.norm);
    for (i = 0; i < g->buffer_count; i++)
        if (got->buffer[i])
            step_compare_values(name, "a buffer", got->buffer[i], wanted->buffer[i],
                                (size_t)images * g->buffer[i].channels * g->buffer[i].height * g->buffer[i].width, 0);
    for (i = 0; i < g->param_count; i++)
        step_compare_values(name, g->param[i].name, got->gradients + g->param[i].offset,
                            wanted->gradients + g->param[i].offset, g->param[i].count, 5e-2 * all);
    step_compare_values(name, "parameters after the step", got->after, wanted->after, g->param_floats, 0);
    step_compare_values(name, "running statistics", got->statistics, wanted->statistics, g->stat_floats, 0);
}
