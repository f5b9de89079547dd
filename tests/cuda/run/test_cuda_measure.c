/*
 * test_cuda_measure.c - times of single launches (run/measure.c)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "gpu_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

TEST_CASE("cuda_measure", "launches", NULL, NULL);

enum { RUNS = 2, MEASUREMENTS = 5, WARM = 2 };
#define NOT_MEASURED (-1.0)

/* Returns a plan after this number of steps of one micro-batch each, from micro-batch 0 on. */
static void
make_trained(struct gpu_plan *p, const struct plan_options *o, uint32_t steps)
{
    struct step_result r;
    uint32_t i;

    gpu_make(p, &backend_cuda, o);
    for (i = 0; i < steps; i++)
        gpu_step(&p->p, i, 1, &r);
}

/* Returns the times of all launches, then NOT_MEASURED; free(). */
static double *
measure(const struct gpu_plan *p, size_t *count)
{
    struct plan_model m;
    struct chex_error err;
    double *seconds;
    size_t i;

    step_check_ok(backend_cuda.plan_model(p->p.device, &p->options, p->p.plan, &m, &err), &err);
    *count = m.count;
    plan_model_free(&m);
    seconds = malloc((*count + 1) * sizeof(*seconds));
    for (i = 0; i <= *count; i++)
        seconds[i] = NOT_MEASURED;
    step_check_ok(backend_cuda.measure_launches(p->p.plan, RUNS, seconds, &err), &err);
    return seconds;
}

static void
same_bits(const struct gpu_plan *a, const struct gpu_plan *b)
{
    int arena;

    for (arena = 0; arena < ARENA_COUNT; arena++) {
        size_t bytes = arena_floats(a->options.graph, (enum arena_id)arena) * sizeof(float);
        float *x = gpu_read(a, (enum arena_id)arena), *y = gpu_read(b, (enum arena_id)arena);

        ck_assert_msg(memcmp(x, y, bytes) == 0, "arena %d differs", arena);
        free(x);
        free(y);
    }
}

/* With and without a graph, and with convolutions of cuDNN; each launch has an effect once. */
LOOP_TEST(measured_launches_are_one_more_step, 0, 3)
{
    struct graph *g = gpu_graph();
    struct plan_options o = gpu_options(g);
    struct step_result wanted, got;
    struct gpu_plan plain, measured;
    const uint32_t steps = _i == 0 ? 3 : 2; /* the micro-batch is in slot 1 or 0 */
    size_t count, i;
    double *seconds;

    o.micro_batches = 1;
    o.no_graph = _i == 1;
    o.engine = _i == 2 ? ENGINE_CUDNN : ENGINE_OWN;
    make_trained(&plain, &o, steps);
    make_trained(&measured, &o, steps);
    seconds = measure(&measured, &count);
    for (i = 0; i < count; i++)
        ck_assert_msg(isfinite(seconds[i]) && seconds[i] >= 0, "launch %zu", i);
    ck_assert_double_eq(seconds[count], NOT_MEASURED);
    gpu_step(&plain.p, steps - 1, 1, &wanted);
    same_bits(&measured, &plain);
    gpu_step(&plain.p, steps, 1, &wanted);
    gpu_step(&measured.p, steps, 1, &got);
    ck_assert(got.loss == wanted.loss && got.norm == wanted.norm);
    ck_assert_uint_eq(got.state.applied, wanted.state.applied);
    same_bits(&measured, &plain);
    free(seconds);
    step_plan_free(&plain.p);
    step_plan_free(&measured.p);
    graph_free(g);
}

TEST(each_launch_runs_as_often_as_it_is_measured)
{
    struct graph *g = gpu_graph();
    struct plan_options o = gpu_options(g);
    struct emulator_counts before, after;
    struct gpu_plan p;
    size_t count;

    o.micro_batches = 1;
    make_trained(&p, &o, 1);
    emulator_count(&before);
    free(measure(&p, &count));
    emulator_count(&after);
    ck_assert_uint_gt(count, 20);
    ck_assert_uint_eq(after.kernels - before.kernels, count * (WARM + MEASUREMENTS * RUNS + 1));
    step_plan_free(&p.p);
    graph_free(g);
}

TEST(launches_are_measured_only_between_two_steps_of_training)
{
    struct graph *g = gpu_graph();
    struct plan_options o = gpu_options(g);
    struct gpu_batch b;
    struct gpu_plan p;
    struct chex_error err;
    double seconds;

    gpu_make(&p, &backend_cuda, &o);
    ck_assert_int_eq(backend_cuda.measure_launches(p.p.plan, RUNS, &seconds, &err), CHEX_ERR_BUG);
    gpu_draw(&b, 1, GPU_BATCH);
    step_accumulate(&p.p, &b.batch, STEP_FIRST);
    ck_assert_int_eq(backend_cuda.measure_launches(p.p.plan, RUNS, &seconds, &err), CHEX_ERR_BUG);
    step_plan_free(&p.p);
    graph_free(g);
}

TEST(a_plan_that_fits_once_is_not_measured)
{
    struct graph *g = gpu_graph();
    struct plan_options o = gpu_options(g);
    struct gpu_plan p;
    struct chex_error err;
    double seconds;

    o.micro_batches = 1;
    make_trained(&p, &o, 1);
    emulator_fail("cudaMalloc", 1, cudaErrorMemoryAllocation);
    ck_assert_int_eq(backend_cuda.measure_launches(p.p.plan, RUNS, &seconds, &err), CHEX_ERR_MEMORY);
    ck_assert_ptr_nonnull(strstr(err.text, "twice"));
    step_plan_free(&p.p);
    graph_free(g);
}
