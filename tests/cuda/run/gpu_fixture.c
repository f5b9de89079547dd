/*
 * gpu_fixture.c - see gpu_fixture.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "gpu_fixture.h"

#include "checkpoint/weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GPU_SEED 7
#define GPU_RATE 1e-4 /* small, because rounding errors grow with each step */

struct plan_options
gpu_options(const struct graph *g)
{
    return (struct plan_options){.graph = g,
                                 .batch = GPU_BATCH,
                                 .micro_batches = GPU_MICRO,
                                 .source = GPU_FROM,
                                 .train = true,
                                 .average = true,
                                 .threads = 1,
                                 .precision = PRECISION_FP32,
                                 .optimizer = optimizer_default(OPTIMIZER_ADAM)};
}

/* Makes a plan with random weights, in parameters and average. */
void
gpu_make_on(struct gpu_plan *p, const struct backend *backend, unsigned device, const struct plan_options *o)
{
    float *params = calloc(o->graph->param_floats, sizeof(float)),
          *stats = calloc(o->graph->stat_floats, sizeof(float));
    struct chex_error err;

    *p = (struct gpu_plan){.options = *o};
    weights_random(o->graph, GPU_SEED, params, stats);
    step_plan_make_on(&p->p, backend, device, &p->options);
    step_check_ok(backend->write(p->p.plan, ARENA_PARAMETERS, params, &err), &err);
    if (o->train && o->average)
        step_check_ok(backend->write(p->p.plan, ARENA_AVERAGE, params, &err), &err);
    free(params);
    free(stats);
}

void
gpu_make(struct gpu_plan *p, const struct backend *backend, const struct plan_options *o)
{
    gpu_make_on(p, backend, 0, o);
}

/* A layer of a dense block: norm, 1 x 1, norm, 3 x 3, appended to the slab. */
static void
add_layer(struct graph_builder *b, const char *names[4], unsigned slab, unsigned side, unsigned channels)
{
    unsigned active = graph_add_buffer(b, channels, side, side), squeezed = graph_add_buffer(b, 32, side, side);
    unsigned active2 = graph_add_buffer(b, 32, side, side);

    graph_add_norm(b, names[0], graph_slice(slab, 0, channels), graph_whole(b, active), true);
    graph_add_conv(b, names[1], graph_whole(b, active), graph_whole(b, squeezed), 1, 1, 0);
    graph_add_norm(b, names[2], graph_whole(b, squeezed), graph_whole(b, active2), true);
    graph_add_conv(b, names[3], graph_whole(b, active2), graph_slice(slab, channels, 8), 3, 1, 1);
}

/* Returns a small DenseNet of two blocks. */
struct graph *
gpu_graph(void)
{
    static const char *names[3][4] = {
        {"a.norm1", "a.conv1", "a.norm2", "a.conv2"},
        {"b.norm1", "b.conv1", "b.norm2", "b.conv2"},
        {"c.norm1", "c.conv1", "c.norm2", "c.conv2"},
    };
    struct graph_builder b = {.graph = calloc(1, sizeof(*b.graph))};
    unsigned stem, active, slab, all, pooled, slab2, last, mean;
    struct chex_error err;

    b.graph->model = "small";
    b.graph->input = graph_add_buffer(&b, INPUT_CHANNELS, GPU_SIDE, GPU_SIDE);
    stem = graph_add_buffer(&b, 16, GPU_SIDE / 2, GPU_SIDE / 2);
    active = graph_add_buffer(&b, 16, GPU_SIDE / 2, GPU_SIDE / 2);
    slab = graph_add_buffer(&b, 32, GPU_SIDE / 4, GPU_SIDE / 4);
    all = graph_add_buffer(&b, 32, GPU_SIDE / 4, GPU_SIDE / 4);
    pooled = graph_add_buffer(&b, 32, GPU_SIDE / 8, GPU_SIDE / 8);
    slab2 = graph_add_buffer(&b, 24, GPU_SIDE / 8, GPU_SIDE / 8);
    last = graph_add_buffer(&b, 24, GPU_SIDE / 8, GPU_SIDE / 8);
    mean = graph_add_buffer(&b, 24, 1, 1);
    b.graph->output = graph_add_buffer(&b, OUTPUTS, 1, 1);
    graph_add_conv(&b, "conv0", graph_whole(&b, b.graph->input), graph_whole(&b, stem), 7, 2, 3);
    graph_add_norm(&b, "norm0", graph_whole(&b, stem), graph_whole(&b, active), true);
    graph_add_pool(&b, GRAPH_MAX_POOL, graph_whole(&b, active), graph_slice(slab, 0, 16), 3, 2, 1);
    add_layer(&b, names[0], slab, GPU_SIDE / 4, 16);
    add_layer(&b, names[1], slab, GPU_SIDE / 4, 24);
    graph_add_norm(&b, "norm1", graph_whole(&b, slab), graph_whole(&b, all), true);
    graph_add_pool(&b, GRAPH_AVG_POOL, graph_whole(&b, all), graph_whole(&b, pooled), 2, 2, 0);
    graph_add_conv(&b, "conv1", graph_whole(&b, pooled), graph_slice(slab2, 0, 16), 1, 1, 0);
    add_layer(&b, names[2], slab2, GPU_SIDE / 8, 16);
    graph_add_norm(&b, "norm5", graph_whole(&b, slab2), graph_whole(&b, last), true);
    graph_add_pool(&b, GRAPH_MEAN_POOL, graph_whole(&b, last), graph_whole(&b, mean), 1, 1, 0);
    graph_add_linear(&b, "classifier", graph_whole(&b, mean), graph_whole(&b, b.graph->output));
    ck_assert(!b.failed);
    step_check_ok(graph_check(b.graph, &err), &err);
    return b.graph;
}

/* Draws a batch whose images differ in pixels, labels and crop; the first `images` are not padding. */
void
gpu_draw(struct gpu_batch *b, uint32_t number, unsigned images)
{
    uint32_t draw = number * 2654435761u + 1;
    size_t i;

    for (i = 0; i < sizeof(b->pixels); i++) {
        draw = draw * 1664525u + 1013904223u;
        b->pixels[i] = (uint8_t)(draw >> 24);
    }
    for (i = 0; i < sizeof(b->label); i++) {
        draw = draw * 1664525u + 1013904223u;
        b->label[i] = draw >> 30 == 2 ? CHEX_LABEL_UNKNOWN : draw >> 30 == 0;
    }
    for (i = 0; i < GPU_BATCH; i++) {
        b->crop[i] = (struct crop){.x = (uint16_t)((number + i) % 5), .y = (uint16_t)(number % 3), .flip = i % 2};
        if (i % 2 == 1)
            crop_rotate(&b->crop[i], 10.0 * (double)number - 20);
        else
            b->crop[i].gain = CROP_GAIN / 5;
        b->weight[i] = i < images ? 1 : 0;
    }
    b->batch = (struct batch){.pixels = b->pixels, .crop = b->crop, .label = b->label, .weight = b->weight};
    b->batch.scale = 0.1;
}

enum chex_status
gpu_wait(struct step_plan *p, uint64_t ticket, struct step_result *r, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    bool done = false;

    while (status == CHEX_OK && !done)
        status = p->backend->result(p->plan, ticket, &done, r, err);
    return status;
}

/* Starts a step of this number of micro-batches; the last one has one image. */
enum chex_status
gpu_start(struct step_plan *p, uint32_t number, unsigned batches, uint64_t *ticket, struct chex_error *err)
{
    const struct step_end end = {.requests = number % 4};
    enum chex_status status = CHEX_OK;
    unsigned i;

    for (i = 0; i < batches && status == CHEX_OK; i++) {
        bool last = i + 1 == batches;
        struct gpu_batch b;

        gpu_draw(&b, number * GPU_MICRO + i, last && batches > 1 ? 1 : GPU_BATCH);
        status = p->backend->accumulate(p->plan, &b.batch, (i == 0 ? STEP_FIRST : 0) | (last ? STEP_LAST : 0),
                                        last ? &end : NULL, err);
        memset(&b, 0x5a, sizeof(b)); /* the backend must have read it before it returned */
    }
    return status == CHEX_OK ? p->backend->update(p->plan, GPU_RATE, 1, ticket, err) : status;
}

void
gpu_step(struct step_plan *p, uint32_t number, unsigned batches, struct step_result *r)
{
    struct chex_error err;
    uint64_t ticket = 0;

    step_check_ok(gpu_start(p, number, batches, &ticket, &err), &err);
    step_check_ok(gpu_wait(p, ticket, r, &err), &err);
}

float *
gpu_read(const struct gpu_plan *p, enum arena_id arena)
{
    float *out = calloc(arena_floats(p->options.graph, arena), sizeof(float));
    struct chex_error err;

    step_check_ok(p->p.backend->read(p->p.plan, arena, out, &err), &err);
    return out;
}

double
gpu_distance(const float *got, const float *wanted, size_t count)
{
    double difference = 0, norm = 0;
    size_t i;

    for (i = 0; i < count; i++) {
        difference += pow((double)got[i] - (double)wanted[i], 2);
        norm += pow((double)wanted[i], 2);
    }
    return sqrt(difference / (norm > 0 ? norm : 1));
}

void
gpu_is_near(const struct gpu_plan *got, const struct gpu_plan *wanted, enum arena_id arena, double most)
{
    float *a = gpu_read(got, arena), *b = gpu_read(wanted, arena);
    double far = gpu_distance(a, b, arena_floats(got->options.graph, arena));

    ck_assert_msg(far <= most, "arena %d: relative error %g", (int)arena, far);
    free(a);
    free(b);
}
