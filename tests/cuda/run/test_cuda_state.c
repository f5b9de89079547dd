/*
 * test_cuda_state.c - state that the backend of NVIDIA GPUs keeps on the device: times, steps that change nothing, loss
 * scales, evaluations between micro-batches, images
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "gpu_fixture.h"

#include <stdlib.h>
#include <string.h>

/* ---- times ------------------------------------------------------------------------------------------------------- */

struct told_parts {
    double seconds[PART_COUNT], last;
    unsigned count;
};

static void
tell_part(void *context, enum step_part part, double begin, double end)
{
    struct told_parts *told = context;

    ck_assert_double_le(begin, end);
    ck_assert_double_ge(begin, told->last);
    told->seconds[part] += end - begin;
    told->last = end;
    told->count++;
}

TEST_CASE("cuda_state", "cuda_state", NULL, NULL);

TEST(times_are_measured_on_the_device)
{
    struct graph *g = gpu_graph();
    struct plan_options o = gpu_options(g);
    struct told_parts told = {.count = 0};
    unsigned batches, part;

    o.part = tell_part;
    o.context = &told;
    for (batches = 1; batches <= GPU_MICRO; batches += GPU_MICRO - 1) {
        struct step_result r;
        struct gpu_plan p;

        told = (struct told_parts){.count = 0};
        gpu_make(&p, &backend_cuda, &o);
        gpu_step(&p.p, 1, batches, &r);
        ck_assert_uint_ge(told.count, 2 * batches + 1);
        ck_assert_uint_le(told.count, 2 * batches + 1 + batches - 1); /* copies that were not hidden */
        for (part = 0; part < PART_COUNT; part++) {
            bool there = part == PART_FORWARD || part == PART_BACKWARD || part == PART_UPDATE;

            if (part != PART_COPY)
                ck_assert(there == (r.times.seconds[part] > 0));
            ck_assert_double_le(told.seconds[part], r.times.seconds[part] + 1e-6);
        }
        step_plan_free(&p.p);
    }
    graph_free(g);
}

#define EVENTS 1e-3 /* seconds of the emulated clock, longer than the events of a step */

/* While the host queues no work the device is idle, and its parts take no longer. */
TEST(a_device_without_work_is_idle)
{
    const struct step_end end = {.requests = 0};
    struct graph *g = gpu_graph();
    struct plan_options o = gpu_options(g);
    float *parameters = malloc(g->param_floats * sizeof(*parameters));
    struct step_result r;
    struct gpu_plan p;
    struct gpu_batch b;
    struct chex_error err;
    uint64_t ticket;

    emulator_set_clock(1);
    gpu_make(&p, &backend_cuda, &o);
    gpu_step(&p.p, 1, 1, &r);
    ck_assert(r.idle == 0); /* no step before it */
    emulator_set_clock(2);
    gpu_step(&p.p, 2, 1, &r);
    ck_assert_double_eq_tol(r.idle, 1, EVENTS);
    gpu_step(&p.p, 3, 1, &r);
    ck_assert_double_lt(r.idle, EVENTS);

    /* Between two micro-batches of a step, once the first one is over. */
    gpu_draw(&b, 4, GPU_BATCH);
    step_check_ok(backend_cuda.accumulate(p.p.plan, &b.batch, STEP_FIRST, NULL, &err), &err);
    step_check_ok(backend_cuda.read(p.p.plan, ARENA_PARAMETERS, parameters, &err), &err);
    emulator_set_clock(5);
    step_check_ok(backend_cuda.accumulate(p.p.plan, &b.batch, STEP_LAST, &end, &err), &err);
    step_check_ok(backend_cuda.update(p.p.plan, 0.01, 0, &ticket, &err), &err);
    step_check_ok(gpu_wait(&p.p, ticket, &r, &err), &err);
    ck_assert_double_eq_tol(r.idle, 3, EVENTS);
    step_plan_free(&p.p);
    free(parameters);
    graph_free(g);
}

/* ---- running statistics ------------------------------------------------------------------------------------------ */

#define ULP 1.2e-7f /* relative */

/* Makes a plan with these running statistics, all multiplied by `factor`. */
static void
make_with_statistics(struct gpu_plan *p, const struct plan_options *o, const float *statistics, float factor)
{
    size_t count = o->graph->stat_floats, i;
    float *changed = malloc(count * sizeof(*changed));
    struct chex_error err;

    for (i = 0; i < count; i++)
        changed[i] = statistics[i] * factor;
    gpu_make(p, &backend_cuda, o);
    step_check_ok(backend_cuda.write(p->p.plan, ARENA_STATISTICS, changed, &err), &err);
    free(changed);
}

static void
is_unchanged_by_a_rounding(enum precision precision)
{
    struct graph *g = gpu_graph();
    struct plan_options o = gpu_options(g);
    struct gpu_plan first, same, near;
    struct step_result r, s;
    unsigned step, applied = 0;
    float *statistics;

    o.precision = precision;
    gpu_make(&first, &backend_cuda, &o);
    gpu_step(&first.p, 1, 1, &r);
    statistics = gpu_read(&first, ARENA_STATISTICS);
    make_with_statistics(&same, &o, statistics, 1);
    make_with_statistics(&near, &o, statistics, 1 + ULP);
    for (step = 2; step < 8; step++) {
        float *a, *b;

        gpu_step(&same.p, step, GPU_MICRO, &r);
        gpu_step(&near.p, step, GPU_MICRO, &s);
        a = gpu_read(&same, ARENA_GRADIENTS);
        b = gpu_read(&near, ARENA_GRADIENTS);
        ck_assert_msg(memcmp(a, b, g->param_floats * sizeof(*a)) == 0, "precision %d, step %u: gradients differ by %g",
                      (int)precision, step, gpu_distance(b, a, g->param_floats));
        free(a);
        free(b);
        applied += r.applied;
    }
    ck_assert_uint_gt(applied, 3);
    free(statistics);
    step_plan_free(&first.p);
    step_plan_free(&same.p);
    step_plan_free(&near.p);
    graph_free(g);
}

TEST(gradients_do_not_depend_on_a_rounding_of_the_running_statistics)
{
    is_unchanged_by_a_rounding(PRECISION_FP16);
    is_unchanged_by_a_rounding(PRECISION_BF16);
}

/* ---- steps that change nothing ----------------------------------------------------------------------------------- */

TEST(a_first_micro_batch_without_an_image_leaves_the_others_their_sum)
{
    const struct step_end end = {.requests = 0};
    struct graph *g = gpu_graph();
    struct plan_options o = gpu_options(g);
    struct gpu_plan one, two;
    struct gpu_batch empty, full;
    struct step_result r;
    struct chex_error err;
    uint64_t ticket = 0;
    float *a, *b;

    gpu_make(&one, &backend_cuda, &o);
    gpu_make(&two, &backend_cuda, &o);
    gpu_draw(&empty, 1, 0);
    gpu_draw(&full, 2, 2);
    step_accumulate(&one.p, &full.batch, STEP_FIRST | STEP_LAST);
    step_update(&one.p, 0.1, &r);
    step_accumulate(&two.p, &empty.batch, STEP_FIRST);
    step_accumulate(&two.p, &full.batch, 0);
    step_check_ok(backend_cuda.accumulate(two.p.plan, NULL, STEP_LAST, &end, &err), &err);
    step_check_ok(backend_cuda.update(two.p.plan, 0.1, 0, &ticket, &err), &err);
    step_check_ok(gpu_wait(&two.p, ticket, &r, &err), &err);
    ck_assert(r.applied);
    a = gpu_read(&one, ARENA_PARAMETERS);
    b = gpu_read(&two, ARENA_PARAMETERS);
    ck_assert_mem_eq(a, b, g->param_floats * sizeof(*a));
    /* A step without any image: gradients are zero, and Adam is applied. */
    step_check_ok(backend_cuda.accumulate(two.p.plan, NULL, STEP_FIRST | STEP_LAST, &end, &err), &err);
    step_check_ok(backend_cuda.update(two.p.plan, 0.1, 0, &ticket, &err), &err);
    step_check_ok(gpu_wait(&two.p, ticket, &r, &err), &err);
    ck_assert(r.applied && r.loss == 0 && r.norm == 0);
    step_plan_free(&one.p);
    step_plan_free(&two.p);
    free(a);
    free(b);
    graph_free(g);
}

/* A loss of 1e300 is finite, but its gradient overflows a half; a loss of 1e-6 works with any loss scale. */
static void
odd_step(struct gpu_plan *p, double scale, struct step_result *r)
{
    struct gpu_batch b;

    gpu_draw(&b, 5, GPU_BATCH);
    b.batch.scale = scale;
    step_make(&p->p, &b.batch, 0.1, r);
}

static void
set_scale(struct gpu_plan *p, double scale, uint32_t good)
{
    const struct plan_state state = {.applied = 3, .loss_scale = scale, .good = good};
    struct chex_error err;

    step_check_ok(backend_cuda.set_state(p->p.plan, &state, &err), &err);
}

TEST(the_loss_scale_falls_with_a_skipped_step_grows_with_good_ones_and_has_an_end)
{
    struct graph *g = gpu_graph();
    struct plan_options o = gpu_options(g);
    struct step_result r;
    struct chex_error err;
    struct gpu_plan p;
    float *before, *after;

    o.precision = PRECISION_FP16;
    gpu_make(&p, &backend_cuda, &o);
    set_scale(&p, 0, 0);
    before = gpu_read(&p, ARENA_PARAMETERS);
    odd_step(&p, 1e300, &r);
    ck_assert(!r.applied && !r.halted && r.state.applied == 3 && r.state.good == 0);
    ck_assert_double_eq(r.state.loss_scale, LOSS_SCALE_START / 2.0);
    after = gpu_read(&p, ARENA_PARAMETERS);
    ck_assert_mem_eq(after, before, g->param_floats * sizeof(*after));
    gpu_step(&p.p, 2, 1, &r);
    ck_assert(r.applied && !r.halted && r.state.applied == 4 && r.state.good == 1);
    set_scale(&p, 4096, LOSS_SCALE_GROW - 1);
    gpu_step(&p.p, 2, 1, &r);
    ck_assert(r.applied && r.state.good == 0 && r.state.loss_scale == 8192);
    set_scale(&p, LOSS_SCALE_MOST, LOSS_SCALE_GROW - 1);
    odd_step(&p, 1e-6, &r);
    ck_assert(r.applied);
    ck_assert_double_eq(r.state.loss_scale, LOSS_SCALE_MOST);
    /* The lowest scale cannot be halved: the plan halts. */
    set_scale(&p, 2, 0);
    odd_step(&p, 1e300, &r);
    ck_assert(!r.halted && r.state.loss_scale == LOSS_SCALE_LEAST);
    odd_step(&p, 1e300, &r);
    ck_assert(r.halted && !r.applied);
    ck_assert_double_eq(r.state.loss_scale, LOSS_SCALE_LEAST);
    gpu_step(&p.p, 2, 1, &r);
    ck_assert(!r.applied && r.halted);
    step_check_ok(backend_cuda.resume(p.p.plan, &err), &err);
    set_scale(&p, LOSS_SCALE_LEAST, 7); /* a run that resumes at the lowest scale keeps it */
    gpu_step(&p.p, 2, 1, &r);
    ck_assert(r.applied && !r.halted && r.state.good == 8);
    ck_assert_double_eq(r.state.loss_scale, LOSS_SCALE_LEAST);
    set_scale(&p, 0, 0);
    gpu_step(&p.p, 2, 1, &r);
    ck_assert(r.applied && !r.halted);
    ck_assert_double_eq(r.state.loss_scale, LOSS_SCALE_START);
    free(before);
    free(after);
    step_plan_free(&p.p);
    graph_free(g);
}

/* Steps that were queued before the host knew. */
TEST(steps_after_a_halt_change_nothing)
{
    struct graph *g = gpu_graph();
    struct plan_options o = gpu_options(g);
    const struct step_end end = {.requests = 0};
    uint64_t ticket[2];
    struct step_result r;
    struct chex_error err;
    struct gpu_plan p;
    float *before, *after;

    gpu_make(&p, &backend_cuda, &o);
    gpu_step(&p.p, 1, 2, &r);
    before = gpu_read(&p, ARENA_PARAMETERS);
    step_check_ok(backend_cuda.accumulate(p.p.plan, NULL, STEP_FIRST | STEP_LAST | STEP_FAULT, &end, &err), &err);
    step_check_ok(backend_cuda.update(p.p.plan, 0.1, 0, &ticket[0], &err), &err);
    step_check_ok(gpu_start(&p.p, 2, 2, &ticket[1], &err), &err);
    step_check_ok(gpu_wait(&p.p, ticket[0], &r, &err), &err);
    ck_assert(r.halted && !r.applied && r.faults == 1);
    step_check_ok(gpu_wait(&p.p, ticket[1], &r, &err), &err);
    ck_assert(r.halted && !r.applied && r.faults == 0 && r.state.applied == 1);
    after = gpu_read(&p, ARENA_PARAMETERS);
    ck_assert_mem_eq(after, before, g->param_floats * sizeof(*after));
    step_check_ok(backend_cuda.resume(p.p.plan, &err), &err);
    gpu_step(&p.p, 3, 2, &r);
    ck_assert(r.applied && !r.halted && r.state.applied == 2);
    free(before);
    free(after);
    step_plan_free(&p.p);
    graph_free(g);
}

/* ---- evaluation in the middle of steps --------------------------------------------------------------------------- */

TEST(an_evaluation_in_the_middle_of_a_step_changes_nothing_and_sees_the_step_before)
{
    static const struct crop view[4 * GPU_BATCH] = {{.x = 0},
                                                    {.x = 1, .y = 2, .flip = true},
                                                    {.x = 3, .y = 3, .flip = true},
                                                    {.x = 4, .y = 4},
                                                    {.x = 2, .y = 1},
                                                    {.flip = true},
                                                    {.x = 1, .y = 1},
                                                    {.x = 4, .flip = true}};
    struct graph *g = gpu_graph();
    struct plan_options o = gpu_options(g);
    float got[4][GPU_BATCH * OUTPUTS], wanted[4][GPU_BATCH * OUTPUTS];
    struct gpu_plan gpu, ref, other;
    struct gpu_batch b[3];
    struct step_result r;
    struct chex_error err;
    float *a, *c;
    unsigned i;

    gpu_make(&gpu, &backend_cuda, &o);
    gpu_make(&ref, &backend_ref, &o);
    gpu_make(&other, &backend_cuda, &o);
    for (i = 0; i < 3; i++)
        gpu_draw(&b[i], i, i == 2 ? 1 : GPU_BATCH);
    step_make(&gpu.p, &b[0].batch, 0.01, &r);
    step_make(&ref.p, &b[0].batch, 0.01, &r);
    step_make(&other.p, &b[0].batch, 0.01, &r);
    step_accumulate(&gpu.p, &b[1].batch, STEP_FIRST);
    step_accumulate(&other.p, &b[1].batch, STEP_FIRST);
    for (i = 0; i < 2; i++) {
        enum arena_id weights = i == 0 ? ARENA_AVERAGE : ARENA_PARAMETERS;

        step_check_ok(backend_score(&backend_cuda, gpu.p.plan, &b[2].batch, 4, view, weights, got[0], &err), &err);
        step_check_ok(backend_score(&backend_ref, ref.p.plan, &b[2].batch, 4, view, weights, wanted[0], &err), &err);
        ck_assert_double_lt(gpu_distance(got[0], wanted[0], 4 * GPU_BATCH * OUTPUTS), 1e-3);
        ck_assert(got[3][OUTPUTS] == 0 && got[1][2 * OUTPUTS - 1] == 0); /* padding */
        if (i == 1)                                                      /* it waits for update() */
            break;
        step_accumulate(&gpu.p, &b[2].batch, STEP_LAST);
        step_accumulate(&other.p, &b[2].batch, STEP_LAST);
    }
    step_update(&gpu.p, 0.01, &r);
    step_update(&other.p, 0.01, &r);
    a = gpu_read(&gpu, ARENA_PARAMETERS);
    c = gpu_read(&other, ARENA_PARAMETERS);
    ck_assert_mem_eq(a, c, g->param_floats * sizeof(*a));
    free(a);
    free(c);
    step_plan_free(&gpu.p);
    step_plan_free(&ref.p);
    step_plan_free(&other.p);
    graph_free(g);
}

TEST(images_of_two_stores_in_turn_equal_the_batch)
{
    static const uint32_t index[GPU_BATCH] = {1, 0};
    struct graph *g = gpu_graph();
    struct plan_options o = gpu_options(g);
    struct image_store *store[2] = {NULL, NULL};
    struct gpu_plan with, without;
    struct step_result r, s;
    struct chex_error err;
    struct gpu_batch b;
    uint32_t i, k;

    gpu_make(&with, &backend_cuda, &o);
    gpu_make(&without, &backend_cuda, &o);
    for (i = 0; i < 4; i++) {
        gpu_draw(&b, i, GPU_BATCH);
        if (i < 2) {
            step_check_ok(backend_cuda.store_new(with.p.device, GPU_BATCH, GPU_FROM, &store[i], &err), &err);
            for (k = 0; k < GPU_BATCH; k++)
                step_check_ok(backend_cuda.store_put(store[i], index[k], b.pixels + k * GPU_FROM * GPU_FROM, &err),
                              &err);
        } else {
            gpu_draw(&b, i - 2, GPU_BATCH);
        }
        step_make(&without.p, &b.batch, 1e-3, &r);
        b.batch.pixels = NULL;
        b.batch.index = index;
        b.batch.store = store[i % 2];
        step_make(&with.p, &b.batch, 1e-3, &s);
        ck_assert(r.loss == s.loss && r.norm == s.norm);
    }
    step_plan_free(&with.p);
    step_plan_free(&without.p);
    backend_cuda.store_free(store[0]);
    backend_cuda.store_free(store[1]);
    graph_free(g);
}

TEST(a_store_that_is_too_large_does_not_crash)
{
    struct image_store *store;
    struct device *device;
    struct chex_error err;

    step_check_ok(backend_cuda.device_open(0, &device, &err), &err);
    ck_assert_int_eq(backend_cuda.store_new(device, 1u << 30, 1024, &store, &err), CHEX_ERR_MEMORY);
    ck_assert_ptr_null(store);
    ck_assert_ptr_nonnull(strstr(err.text, "free"));
    ck_assert_int_eq(backend_cuda.store_new(device, UINT32_MAX, UINT32_MAX, &store, &err), CHEX_ERR_MEMORY);
    backend_cuda.device_close(device);
}
