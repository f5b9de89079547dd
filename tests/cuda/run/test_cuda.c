/*
 * test_cuda.c - compares the backend of NVIDIA GPUs, on emulated ones, with the reference: steps, graphs, evaluations
 *
 * Comparisons with the reference use fp32, which only the emulated device supports.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "gpu_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- comparison with the reference ------------------------------------------------------------------------------- */

/* Returns the difference of the changes of the parameters, relative to the reference's change. */
static double
moved(const struct gpu_plan *gpu, const struct gpu_plan *ref, const float *before)
{
    float *got = gpu_read(gpu, ARENA_PARAMETERS), *wanted = gpu_read(ref, ARENA_PARAMETERS);
    size_t floats = gpu->options.graph->param_floats, i;
    double far;

    for (i = 0; i < floats; i++) {
        got[i] -= before[i];
        wanted[i] -= before[i];
    }
    far = gpu_distance(got, wanted, floats);
    free(got);
    free(wanted);
    return far;
}

static void
compare_steps(const struct plan_options *o, unsigned steps, unsigned batches)
{
    struct gpu_plan gpu, ref;
    float *before;
    unsigned i;

    gpu_make(&gpu, &backend_cuda, o);
    gpu_make(&ref, &backend_ref, o);
    before = gpu_read(&ref, ARENA_PARAMETERS);
    for (i = 0; i < steps; i++) {
        struct step_result a, b;

        gpu_step(&gpu.p, i, batches, &a);
        gpu_step(&ref.p, i, batches, &b);
        ck_assert(a.applied && !a.halted && a.bad == STEP_NONE && a.faults == 0);
        ck_assert_uint_eq(a.requests, b.requests);
        ck_assert_uint_eq(a.state.applied, i + 1);
        ck_assert_double_eq_tol(a.loss, b.loss, (i == 0 ? 1e-4 : 1e-3) * b.loss);
        ck_assert_double_eq_tol(a.norm, b.norm, (i == 0 ? 1e-4 : 1e-2) * b.norm);
        if (i == 0) {
            gpu_is_near(&gpu, &ref, ARENA_GRADIENTS, 1e-4);
            /* Adagrad, with an epsilon of 1e-10, moves a parameter by the sign of its gradient */
            ck_assert_double_lt(moved(&gpu, &ref, before), o->optimizer.kind == OPTIMIZER_ADAGRAD ? 3e-2 : 1e-2);
        }
    }
    gpu_is_near(&gpu, &ref, ARENA_PARAMETERS, 1e-3);
    gpu_is_near(&gpu, &ref, ARENA_STATISTICS, 1e-3);
    gpu_is_near(&gpu, &ref, ARENA_MOMENT1, 5e-2);
    gpu_is_near(&gpu, &ref, ARENA_AVERAGE, 1e-3);
    ck_assert_double_lt(moved(&gpu, &ref, before), 5e-2);
    free(before);
    step_plan_free(&gpu.p);
    step_plan_free(&ref.p);
}

TEST_CASE("cuda", "cuda", NULL, NULL);

TEST(ten_steps_of_densenet_micro_are_those_of_the_reference)
{
    struct chex_error err;
    struct plan_options o;
    struct graph *g;

    step_check_ok(graph_new("densenet-micro", GPU_SIDE, OUTPUTS, &g, &err), &err);
    o = gpu_options(g);
    compare_steps(&o, 10, 1);
    graph_free(g);
}

TEST(steps_of_several_micro_batches_are_those_of_the_reference)
{
    struct graph *g = gpu_graph();
    struct plan_options o = gpu_options(g);

    compare_steps(&o, 3, GPU_MICRO);
    graph_free(g);
}

LOOP_TEST(optimizers_and_losses_are_those_of_the_reference, OPTIMIZER_ADAM, OPTIMIZER_COUNT)
{
    static const double positive[OUTPUTS] = {1, 2, 0.5, 3, 1};
    struct graph *g = gpu_graph();
    struct plan_options o = gpu_options(g);

    o.optimizer = optimizer_default((enum optimizer_kind)_i);
    o.optimizer.decay = 0.01;
    o.loss = (struct loss_options){.kind = _i == OPTIMIZER_SGD ? LOSS_FOCAL : LOSS_BCE, .gamma = 2};
    o.loss.smoothing = _i == OPTIMIZER_ADAM ? 0 : 0.1;
    o.loss.positive_weight = _i == OPTIMIZER_ADAM ? NULL : positive;
    compare_steps(&o, 2, 1);
    graph_free(g);
}

/* A normalised tensor of this graph has a single consumer, which applies BN itself: the tensor is never stored. */
static bool
is_nowhere(const struct graph *g, unsigned buffer)
{
    size_t i;

    for (i = 0; i < g->node_count; i++)
        if (g->node[i].op == GRAPH_NORM && g->node[i].out.buffer == buffer)
            return true;
    return false;
}

/*
 * A 1x1 convolution or a max pool finalizes the gradient of its output in its prologue, if a single BN reads exactly
 * that output.  So the finalized gradient is never stored.
 */
static bool
is_finished_by_reader(const struct graph *g, unsigned buffer)
{
    const struct graph_node *norm;
    size_t i;

    for (i = 0; i < g->node_count; i++) {
        const struct graph_node *n = &g->node[i];
        bool can = n->op == GRAPH_MAX_POOL || (n->op == GRAPH_CONV && n->kernel == 1 && n->stride == 1);

        if (n->out.buffer != buffer)
            continue;
        if (!can)
            continue;
        for (norm = n; norm < g->node + g->node_count; norm++)
            if (norm->op == GRAPH_NORM && norm->in.buffer == buffer)
                break;
        if (norm < g->node + g->node_count && norm->in.first == n->out.first && norm->in.channels == n->out.channels)
            return true;
    }
    return false;
}

/* Compares every value and gradient that is kept, after a step of two micro-batches. */
TEST(all_that_is_kept_is_that_of_the_reference)
{
    enum { COUNTS = 1 }; /* images of the last micro-batch that are not padding */
    struct graph *g = gpu_graph();
    struct plan_options o = gpu_options(g);
    struct gpu_plan gpu, ref;
    unsigned i, gradient, kept = 0;
    struct chex_error err;
    uint64_t ticket = 0;

    o.keep = true;
    gpu_make(&gpu, &backend_cuda, &o);
    gpu_make(&ref, &backend_ref, &o);
    step_check_ok(gpu_start(&gpu.p, 3, 2, &ticket, &err), &err);
    step_check_ok(gpu_start(&ref.p, 3, 2, &ticket, &err), &err);
    for (i = 0; i < g->buffer_count; i++) {
        size_t all = (size_t)GPU_BATCH * g->buffer[i].channels * g->buffer[i].height * g->buffer[i].width;
        float *got = calloc(all, sizeof(*got)), *wanted = calloc(all, sizeof(*wanted));

        for (gradient = 0; gradient < 2; gradient++) {
            size_t floats = gradient ? all : all / GPU_BATCH * COUNTS; /* ignore the values of padding */
            bool there = i != g->input && !is_nowhere(g, i) && !(gradient && is_finished_by_reader(g, i));
            enum chex_status status = gpu.p.backend->peek(gpu.p.plan, i, gradient, got, &err);

            ck_assert_int_eq(status, there ? CHEX_OK : CHEX_ERR_UNSUPPORTED);
            if (!there)
                continue;
            step_check_ok(ref.p.backend->peek(ref.p.plan, i, gradient, wanted, &err), &err);
            ck_assert_msg(gpu_distance(got, wanted, floats) < 1e-4, "buffer %u, gradient %u: relative error %g", i,
                          gradient, gpu_distance(got, wanted, floats));
            kept++;
        }
        free(got);
        free(wanted);
    }
    ck_assert_uint_gt(kept, g->buffer_count / 2);
    step_plan_free(&gpu.p);
    step_plan_free(&ref.p);
    graph_free(g);
}

/* ---- one graph a step -------------------------------------------------------------------------------------------- */

/* Makes steps whose results are requested one step late; returns all arenas in one array, free(). */
static float *
late_steps(const struct plan_options *o, unsigned steps, unsigned batches, struct emulator_counts *during)
{
    static const enum arena_id arenas[] = {ARENA_PARAMETERS, ARENA_STATISTICS, ARENA_MOMENT1, ARENA_MOMENT2,
                                           ARENA_AVERAGE};
    float *all = calloc(5, (o->graph->param_floats + o->graph->stat_floats) * sizeof(*all)), *at = all;
    struct emulator_counts before, after;
    struct step_result r;
    struct chex_error err;
    struct gpu_plan p;
    uint64_t ticket = 0;
    unsigned i;

    gpu_make(&p, &backend_cuda, o);
    emulator_count(&before);
    for (i = 0; i < steps; i++) {
        step_check_ok(gpu_start(&p.p, i, batches, &ticket, &err), &err);
        ck_assert_uint_eq(ticket, i + 1);
        if (i > 0)
            step_check_ok(gpu_wait(&p.p, ticket - 1, &r, &err), &err);
    }
    step_check_ok(gpu_wait(&p.p, ticket, &r, &err), &err);
    ck_assert_uint_eq(r.state.applied, steps);
    emulator_count(&after);
    for (i = 0; i < 5; at += arena_floats(o->graph, arenas[i++]))
        step_check_ok(backend_cuda.read(p.p.plan, arenas[i], at, &err), &err);
    step_plan_free(&p.p);
    *during = (struct emulator_counts){.graphs = after.graphs - before.graphs,
                                       .early = after.early - before.early,
                                       .waits = after.waits - before.waits,
                                       .copies = after.copies - before.copies,
                                       .kernels = after.kernels - before.kernels,
                                       .allocations = after.allocations - before.allocations};
    return all;
}

static size_t
late_bytes(const struct graph *g)
{
    return (4 * g->param_floats + g->stat_floats) * sizeof(float);
}

TEST(a_step_is_one_graph_and_the_host_waits_for_none)
{
    struct graph *g = gpu_graph();
    struct plan_options o = gpu_options(g);
    struct emulator_counts c;

    free(late_steps(&o, 6, 1, &c));
    ck_assert_uint_eq(c.graphs, 6);
    ck_assert_uint_eq(c.copies, 6); /* only that of the micro-batch: kernels read and write mapped host memory */
    ck_assert_uint_eq(c.waits, 0);
    ck_assert_uint_eq(c.allocations, 0);
    /* Micro-batches before the last one are two graphs each; the host may wait for a pinned slot. */
    free(late_steps(&o, 4, GPU_MICRO, &c));
    ck_assert_uint_eq(c.graphs, 4 * (2 * (GPU_MICRO - 1) + 1));
    ck_assert_uint_le(c.waits, 4 * GPU_MICRO);
    graph_free(g);
}

TEST(without_graphs_and_in_any_order_of_streams_and_threads_the_bits_are_the_same)
{
    struct graph *g = gpu_graph();
    struct plan_options o = gpu_options(g);
    struct emulator_counts with, without;
    float *wanted = late_steps(&o, 3, 2, &with), *got;
    uint64_t seed;

    o.no_graph = true;
    got = late_steps(&o, 3, 2, &without);
    ck_assert_mem_eq(got, wanted, late_bytes(g));
    ck_assert_uint_eq(without.graphs, 0);
    ck_assert_uint_eq(without.kernels, with.kernels);
    ck_assert_uint_ge(without.waits, without.kernels);
    free(got);
    o.no_graph = false;
    for (seed = 1; seed <= 4; seed++) {
        emulator_seed(seed, seed);
        got = late_steps(&o, 3, 2, &with);
        ck_assert_mem_eq(got, wanted, late_bytes(g));
        free(got);
    }
    free(wanted);
    graph_free(g);
}

/* A copy, an event or nothing precedes the first kernel of each list; all other kernels may start early. */
TEST(kernels_may_begin_early_and_the_bits_are_the_same)
{
    enum { STEPS = 3, BATCHES = 2, LISTS = STEPS * (3 + 3 * BATCHES) };
    struct graph *g = gpu_graph();
    struct plan_options o = gpu_options(g);
    struct emulator_counts with, without;
    float *wanted = late_steps(&o, STEPS, BATCHES, &without), *got;
    uint64_t seed;

    ck_assert_uint_eq(without.early, 0);
    o.pdl = true;
    for (seed = 0; seed < 3; seed++) {
        emulator_seed(seed, seed);
        got = late_steps(&o, STEPS, BATCHES, &with);
        ck_assert_mem_eq(got, wanted, late_bytes(g));
        ck_assert_uint_eq(with.kernels, without.kernels);
        ck_assert_uint_eq(with.early, with.kernels - LISTS);
        free(got);
    }
    o.no_graph = true; /* the host waits for each kernel */
    got = late_steps(&o, STEPS, BATCHES, &with);
    ck_assert_mem_eq(got, wanted, late_bytes(g));
    ck_assert_uint_eq(with.early, 0);
    free(got);
    free(wanted);
    graph_free(g);
}

/* On a GPU without such launches, or if the driver compiled the kernels from older PTX, they would not wait. */
LOOP_TEST(where_kernels_do_not_wait_none_begins_early, 0, 3)
{
    struct graph *g = gpu_graph();
    struct plan_options o = gpu_options(g);
    struct emulator_counts during;
    struct plan_facts facts;
    struct device *device;
    struct plan *plan;
    struct chex_error err;

    setenv(_i == 0 ? "EMULATOR_DEVICES" : "EMULATOR_PTX", _i == 2 ? "90" : "80", 1);
    o.pdl = true;
    free(late_steps(&o, 1, 1, &during));
    ck_assert_uint_gt(during.kernels, 0);
    ck_assert_int_eq(during.early > 0, _i == 2);
    step_check_ok(backend_cuda.device_open(0, &device, &err), &err);
    step_check_ok(backend_cuda.plan_new(device, &o, &plan, &facts, &err), &err);
    ck_assert_int_eq(facts.pdl, _i == 2);
    backend_cuda.plan_free(plan);
    o.pdl = false;
    step_check_ok(backend_cuda.plan_size(device, &o, &facts, &err), &err);
    ck_assert(!facts.pdl);
    backend_cuda.device_close(device);
    graph_free(g);
}

/* ---- evaluation -------------------------------------------------------------------------------------------------- */

#define LOGITS (GPU_BATCH * OUTPUTS)

/* Compares the logits of one view with the reference; returns the number of kernels. */
static unsigned
score_both(struct gpu_plan *gpu, struct gpu_plan *ref, enum arena_id weights)
{
    float got[LOGITS], wanted[LOGITS];
    struct emulator_counts before, after;
    struct gpu_batch b;
    struct chex_error err;

    gpu_draw(&b, 7, GPU_BATCH);
    emulator_count(&before);
    step_check_ok(backend_score(&backend_cuda, gpu->p.plan, &b.batch, 1, b.crop, weights, got, &err), &err);
    emulator_count(&after);
    step_check_ok(backend_score(&backend_ref, ref->p.plan, &b.batch, 1, b.crop, weights, wanted, &err), &err);
    ck_assert_double_lt(gpu_distance(got, wanted, LOGITS), 1e-4);
    return (unsigned)(after.kernels - before.kernels);
}

TEST(maps_of_micro_batches_in_flight_equal_the_reference)
{
    enum { BATCHES = 4 };
    struct graph *g = gpu_graph();
    struct plan_options o = gpu_options(g);
    struct gpu_plan gpu, ref;
    struct graph_head head;
    float logits[LOGITS], *got, *wanted;
    struct gpu_batch b;
    struct chex_error err;
    size_t floats;
    unsigned i;

    o.maps = true;
    ck_assert(graph_find_head(g, &head));
    floats = GPU_BATCH * head.map_floats;
    got = calloc(BATCHES * floats, sizeof(*got));
    wanted = calloc(floats, sizeof(*wanted));
    gpu_make(&gpu, &backend_cuda, &o);
    gpu_make(&ref, &backend_ref, &o);
    for (i = 0; i < BATCHES; i++) {
        gpu_draw(&b, i, 1 + i % GPU_BATCH);
        step_check_ok(backend_cuda.score_start(gpu.p.plan, &b.batch, 1, b.crop, ARENA_PARAMETERS, logits,
                                               i == 1 ? NULL : got + i * floats, &err),
                      &err);
        if (i > 0)
            step_check_ok(backend_cuda.score_finish(gpu.p.plan, &err), &err);
    }
    step_check_ok(backend_cuda.score_finish(gpu.p.plan, &err), &err);
    for (i = 0; i < BATCHES; i++) {
        gpu_draw(&b, i, 1 + i % GPU_BATCH);
        step_check_ok(backend_ref.score_start(ref.p.plan, &b.batch, 1, b.crop, ARENA_PARAMETERS, logits, wanted, &err),
                      &err);
        step_check_ok(backend_ref.score_finish(ref.p.plan, &err), &err);
        if (i == 1) /* not asked for */
            memset(wanted, 0, floats * sizeof(*wanted));
        ck_assert_double_le(gpu_distance(got + i * floats, wanted, floats), i == 1 ? 0 : 1e-4);
    }
    step_plan_free(&gpu.p);
    step_plan_free(&ref.p);
    free(got);
    free(wanted);
    graph_free(g);
}

TEST(the_second_micro_batch_is_launched_before_the_host_waits_for_the_first)
{
    struct graph *g = gpu_graph();
    struct plan_options o = gpu_options(g);
    float got[6][LOGITS], wanted[6][LOGITS];
    struct emulator_counts before, after;
    struct gpu_plan gpu;
    struct gpu_batch b;
    struct chex_error err;
    unsigned i;

    gpu_make(&gpu, &backend_cuda, &o);
    for (i = 0; i < 6; i++) {
        gpu_draw(&b, i, 1 + i % GPU_BATCH);
        step_check_ok(backend_score(&backend_cuda, gpu.p.plan, &b.batch, 1, b.crop, ARENA_PARAMETERS, wanted[i], &err),
                      &err);
    }
    for (i = 0; i < 6; i++) {
        gpu_draw(&b, i, 1 + i % GPU_BATCH);
        emulator_count(&before);
        step_check_ok(backend_cuda.score_start(gpu.p.plan, &b.batch, 1, b.crop, ARENA_PARAMETERS, got[i], NULL, &err),
                      &err);
        emulator_count(&after);
        ck_assert_uint_eq(after.graphs - before.graphs, 1);
        ck_assert_uint_eq(after.waits, before.waits);
        if (i == 0)
            continue;
        emulator_count(&before);
        step_check_ok(backend_cuda.score_finish(gpu.p.plan, &err), &err);
        emulator_count(&after);
        ck_assert_uint_le(after.waits - before.waits, 1);
        ck_assert_mem_eq(got[i - 1], wanted[i - 1], sizeof(got[0]));
    }
    step_check_ok(backend_cuda.score_finish(gpu.p.plan, &err), &err);
    ck_assert_mem_eq(got, wanted, sizeof(got));
    step_plan_free(&gpu.p);
    graph_free(g);
}

/* The weights are prepared again after any change of their inputs or of their memory. */
TEST(weights_to_score_with_are_made_once_for_an_evaluation)
{
    struct graph *g = gpu_graph();
    struct plan_options o = gpu_options(g);
    struct gpu_plan gpu, ref;
    struct step_result r;
    struct chex_error err;
    unsigned first, i;
    float *statistics;

    gpu_make(&gpu, &backend_cuda, &o);
    gpu_make(&ref, &backend_ref, &o);
    first = score_both(&gpu, &ref, ARENA_PARAMETERS);
    ck_assert_uint_eq(score_both(&gpu, &ref, ARENA_PARAMETERS), first - 1);
    gpu_step(&gpu.p, 0, 1, &r);
    gpu_step(&ref.p, 0, 1, &r);
    ck_assert_uint_eq(score_both(&gpu, &ref, ARENA_PARAMETERS), first);
    ck_assert_uint_eq(score_both(&gpu, &ref, ARENA_AVERAGE), first);
    ck_assert_uint_eq(score_both(&gpu, &ref, ARENA_AVERAGE), first - 1);
    ck_assert_uint_eq(score_both(&gpu, &ref, ARENA_PARAMETERS), first);
    statistics = gpu_read(&ref, ARENA_STATISTICS);
    for (i = 0; i < g->stat_floats; i++)
        statistics[i] += 0.25f;
    step_check_ok(backend_cuda.write(gpu.p.plan, ARENA_STATISTICS, statistics, &err), &err);
    step_check_ok(backend_ref.write(ref.p.plan, ARENA_STATISTICS, statistics, &err), &err);
    ck_assert_uint_eq(score_both(&gpu, &ref, ARENA_PARAMETERS), first);
    free(statistics);
    step_plan_free(&gpu.p);
    step_plan_free(&ref.p);
    graph_free(g);
}

/* Includes convolutions in front of a sum; with cuDNN, the BNs after its convolutions are kernels. */
LOOP_TEST(an_evaluation_of_a_resnet_is_that_of_the_reference, 0, 3)
{
    struct chex_error err;
    struct plan_options o;
    struct gpu_plan gpu, ref;
    const unsigned all = 2 + 53 + 16 + 3; /* weights, images; convolutions, sums, two pools and the linear layer */
    struct graph *g;
    unsigned kernels;

    step_check_ok(graph_new("resnet50", GPU_SIDE, OUTPUTS, &g, &err), &err);
    o = gpu_options(g);
    o.train = _i == 0;
    o.pdl = _i == 1;
    gpu_make(&ref, &backend_ref, &o);
    o.engine = _i == 2 ? ENGINE_CUDNN : ENGINE_OWN;
    gpu_make(&gpu, &backend_cuda, &o);
    kernels = score_both(&gpu, &ref, ARENA_PARAMETERS);
    if (_i < 2)
        ck_assert_uint_eq(kernels, all);
    step_plan_free(&gpu.p);
    step_plan_free(&ref.p);
    graph_free(g);
}
