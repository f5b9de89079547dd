/*
 * test_cuda_splits.c - micro-batches so large that sums are split over CTAs (train/cuda/plan)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "gpu_fixture.h"

#include <stdlib.h>
#include <string.h>

#define MOST_IMAGES 80

/* A micro-batch with the content of two images of gpu_draw(), in changing order. */
struct large_batch {
    uint8_t pixels[MOST_IMAGES * GPU_FROM * GPU_FROM], label[MOST_IMAGES * OUTPUTS];
    struct crop crop[MOST_IMAGES];
    float weight[MOST_IMAGES];
    struct batch batch;
};

/* The last image is padding. */
static void
draw(struct large_batch *b, unsigned images)
{
    unsigned i;

    for (i = 0; i < images; i += GPU_BATCH) {
        struct gpu_batch two;

        gpu_draw(&two, i, GPU_BATCH);
        memcpy(b->pixels + i * GPU_FROM * GPU_FROM, two.pixels, sizeof(two.pixels));
        memcpy(b->label + i * OUTPUTS, two.label, sizeof(two.label));
        memcpy(b->crop + i, two.crop, sizeof(two.crop));
        memcpy(b->weight + i, two.weight, sizeof(two.weight));
    }
    b->weight[images - 1] = 0;
    b->batch = (struct batch){.pixels = b->pixels, .crop = b->crop, .label = b->label, .weight = b->weight};
    b->batch.scale = 1.0 / (images * OUTPUTS);
}

/* Returns the largest number of splits of a wgrad. */
static unsigned
most_splits(const struct plan *plan)
{
    const struct cuda_table *t = &plan->layout.table[CUDA_TABLE_SPLITS];
    const struct splits_entry *e = t->host;
    size_t i;
    unsigned most = 0;

    for (i = 0; i < t->bytes / sizeof(*e); i++)
        if (!e[i].stem && e[i].splits > most)
            most = e[i].splits;
    return most;
}

/* Makes two steps, so that gradients are overwritten. */
static void
compare_gradients(const struct gpu_plan *gpu, const struct gpu_plan *ref, const struct large_batch *b)
{
    const struct graph *g = gpu->options.graph;
    int step;
    size_t i;

    for (step = 0; step < 2; step++) {
        struct step_plan one = gpu->p, other = ref->p;
        struct step_result got, wanted;
        float *x, *y;

        step_make(&one, &b->batch, 1e-4, &got);
        step_make(&other, &b->batch, 1e-4, &wanted);
        ck_assert_double_eq_tol(got.loss, wanted.loss, 1e-5 * wanted.loss);
        x = gpu_read(gpu, ARENA_GRADIENTS);
        y = gpu_read(ref, ARENA_GRADIENTS);
        for (i = 0; i < g->param_count; i++) {
            double apart = gpu_distance(x + g->param[i].offset, y + g->param[i].offset, g->param[i].count);

            if (g->param[i].role == GRAPH_WEIGHT)
                ck_assert_msg(apart < 0.02, "step %d: the gradient of %s is %.2g apart", step, g->param[i].name, apart);
        }
        ck_assert_double_lt(gpu_distance(x, y, g->param_floats), 0.005);
        free(x);
        free(y);
        gpu_is_near(gpu, ref, ARENA_STATISTICS, 1e-4);
    }
}

static const struct split_case {
    unsigned images, least; /* least: number of splits that some wgrad must have */
} split_cases[] = {{18, 2}, {MOST_IMAGES, 9}};

TEST_CASE("cuda_splits", "cuda_splits", NULL, NULL);

LOOP_TEST(gradients_summed_over_splits_equal_the_reference, 0, sizeof(split_cases) / sizeof(*split_cases))
{
    const struct split_case *c = &split_cases[_i];
    struct large_batch *b = calloc(1, sizeof(*b));
    struct graph *g = gpu_graph();
    struct plan_options o = gpu_options(g);
    struct gpu_plan gpu, ref;

    o.batch = c->images;
    o.micro_batches = 1;
    o.optimizer = optimizer_default(OPTIMIZER_SGD);
    gpu_make(&gpu, &backend_cuda, &o);
    gpu_make(&ref, &backend_ref, &o);
    ck_assert_uint_ge(most_splits(gpu.p.plan), c->least);
    draw(b, c->images);
    compare_gradients(&gpu, &ref, b);
    step_plan_free(&gpu.p);
    step_plan_free(&ref.p);
    graph_free(g);
    free(b);
}
