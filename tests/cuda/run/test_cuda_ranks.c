/*
 * test_cuda_ranks.c - ranks on emulated GPUs, with sums by messages and by NCCL (fakes/nccl): the step equals that of
 * one process, all ranks have the same bits, and an error of one rank ends all
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/comm/reduce.h"
#include "fakes/nccl/fake_nccl.h"
#include "gpu_fixture.h"
#include "lib/ranks/rank_fixture.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 2

/* The final state of each rank. */
static struct {
    float *arena[ARENA_COUNT];
    struct step_result result;
    struct told {
        double reduce;
    } told;
    unsigned halts; /* steps that a fault halted */
} left[POST_RANKS];

static struct plan_options shared_options;

/* The method of the sums: ranks on one GPU use messages, ranks with a GPU each use NCCL; `own`: always NCCL. */
static struct {
    bool apart, own;
} way;

/* ---- a rank ------------------------------------------------------------------------------------------------------ */

static void
on_part(void *context, enum step_part part, double begin, double end)
{
    struct told *told = context;

    if (part == PART_REDUCE)
        told->reduce += end - begin;
}

/* Rank r of N has micro-batch r of each step; with two ranks, rank 1 has none in the last step. */
static enum chex_status
play_step(struct step_plan *p, int of, int size, uint32_t number, struct step_result *out, struct chex_error *err)
{
    unsigned images = number + 1 == STEPS ? 1 : (unsigned)size; /* micro-batches of the step */
    unsigned behind = (unsigned)of + 1 < images ? images - (unsigned)of - 1 : 0;
    const struct step_end end = {.requests = of == 1 ? 2 : 4, .following = behind, .uneven = images < (unsigned)size};
    enum chex_status status;
    struct gpu_batch b;
    uint64_t ticket;

    gpu_draw(&b, number * 10 + (uint32_t)of, GPU_BATCH);
    status = p->backend->accumulate(p->plan, (unsigned)of < images ? &b.batch : NULL, STEP_FIRST | STEP_LAST, &end,
                                    err);
    if (status == CHEX_OK)
        status = p->backend->update(p->plan, 1e-3, 1, &ticket, err);
    return status == CHEX_OK ? gpu_wait(p, ticket, out, err) : status;
}

static void
keep(const struct gpu_plan *p, int of)
{
    static const enum arena_id arenas[] = {ARENA_PARAMETERS, ARENA_STATISTICS, ARENA_GRADIENTS, ARENA_MOMENT1};
    size_t i;

    for (i = 0; i < 4; i++)
        left[of].arena[arenas[i]] = gpu_read(p, arenas[i]);
}

static void
play_steps(struct rank *r, struct collective *c)
{
    int of = collective_rank(c);
    struct plan_options o = shared_options;
    struct device *device;
    struct gpu_plan p;
    uint32_t i;

    ranks_good(backend_cuda.device_open(way.apart ? (unsigned)of : 0, &device, &r->err), &r->err);
    ranks_good((way.own ? reduce_nccl_new : backend_cuda.reduce_new)(device, c, &o.reduce, &r->err), &r->err);
    ck_assert_int_eq(o.reduce->on_device, way.apart || way.own);
    ck_assert_int_eq(o.reduce->fallback, !way.apart && !way.own);
    o.part = on_part;
    o.context = &left[of].told;
    gpu_make_on(&p, &backend_cuda, way.apart ? (unsigned)of : 0, &o);
    for (i = 0; i < STEPS; i++)
        ranks_good(play_step(&p.p, of, collective_size(c), i, &left[of].result, &r->err), &r->err);
    keep(&p, of);
    step_plan_free(&p.p);
    o.reduce->ops->free(o.reduce);
    backend_cuda.device_close(device);
}

/* One process without a reducer. */
static void
play_alone_on_gpu(struct rank *r, struct collective *c)
{
    struct gpu_plan p;
    uint32_t i;

    (void)c;
    gpu_make(&p, &backend_cuda, &shared_options);
    for (i = 0; i < STEPS; i++)
        ranks_good(play_step(&p.p, 0, 1, i, &left[0].result, &r->err), &r->err);
    keep(&p, 0);
    step_plan_free(&p.p);
}

static struct emulator_counts before_step;

/* The requests to NCCL in one step. */
static void
play_first_step(struct rank *r, struct collective *c)
{
    int of = collective_rank(c);
    struct plan_options o = shared_options;
    struct device *device;
    struct gpu_plan p;

    ranks_good(backend_cuda.device_open((unsigned)of, &device, &r->err), &r->err);
    ranks_good(reduce_nccl_new(device, c, &o.reduce, &r->err), &r->err);
    gpu_make_on(&p, &backend_cuda, (unsigned)of, &o);
    ranks_good(collective_agree(c, CHEX_OK, NULL, &r->err), &r->err); /* all ranks have completed their first sum */
    if (of == 0) {
        (void)fake_nccl_count();
        emulator_count(&before_step);
    }
    ranks_good(collective_agree(c, CHEX_OK, NULL, &r->err), &r->err);
    ranks_good(play_step(&p.p, of, collective_size(c), 0, &left[of].result, &r->err), &r->err);
    step_plan_free(&p.p);
    o.reduce->ops->free(o.reduce);
    backend_cuda.device_close(device);
}

/* Makes the steps of all micro-batches on the reference, in one process. */
static void
play_alone(struct gpu_plan *p, int size, struct step_result *out)
{
    const struct step_end end = {.requests = 6};
    struct chex_error err;
    uint64_t ticket;
    uint32_t i;
    int k;

    gpu_make(p, &backend_ref, &shared_options);
    for (i = 0; i < STEPS; i++) {
        int batches = i + 1 == STEPS ? 1 : size;

        for (k = 0; k < batches; k++) {
            unsigned flags = (k == 0 ? STEP_FIRST : 0) | (k + 1 == batches ? STEP_LAST : 0);
            struct gpu_batch b;

            gpu_draw(&b, i * 10 + (uint32_t)k, GPU_BATCH);
            step_check_ok(backend_ref.accumulate(p->p.plan, &b.batch, flags, flags & STEP_LAST ? &end : NULL, &err),
                          &err);
        }
        step_check_ok(backend_ref.update(p->p.plan, 1e-3, 1, &ticket, &err), &err);
        step_check_ok(gpu_wait(&p->p, ticket, out, &err), &err);
    }
}

static void
forget(int of)
{
    int i;

    for (i = 0; i < ARENA_COUNT; i++) {
        free(left[of].arena[i]);
        left[of].arena[i] = NULL;
    }
}

/* Sets the number of GPUs, before the first call of the runtime. */
static void
be_four(void)
{
    setenv("EMULATOR_DEVICES", "90 90 90 90", 1);
    setenv("FAKE_NCCL_LATE", "7", 1);
}

#define CASES 7

TEST_CASE("cuda_ranks", "cuda_ranks", ranks_setup, NULL);

LOOP_TEST(ranks_make_the_step_of_one_process_with_the_same_bits, 0, CASES)
{
    static const enum arena_id arenas[] = {ARENA_PARAMETERS, ARENA_STATISTICS, ARENA_GRADIENTS, ARENA_MOMENT1};
    static const struct {
        int size;
        bool apart, no_graph;
        enum wire wire;
        double most; /* the first update of Adam takes only the sign of a gradient, which rounding to bf16 may change */
    } cases[CASES] = {
        {2, false, false, WIRE_FP32, 1e-3}, {3, false, false, WIRE_FP32, 1e-3}, {2, true, false, WIRE_FP32, 1e-3},
        {4, true, false, WIRE_FP32, 1e-3},  {3, true, true, WIRE_FP32, 1e-3},   {2, true, false, WIRE_BF16, 2e-2},
        {4, true, false, WIRE_BF16, 1e-1},
    };
    int size = cases[_i].size, of;
    struct graph *g = gpu_graph();
    struct step_result alone;
    struct gpu_plan ref;
    size_t i;

    shared_options = gpu_options(g);
    shared_options.wire = cases[_i].wire;
    shared_options.no_graph = cases[_i].no_graph;
    way.apart = cases[_i].apart;
    be_four();
    ranks_play(size, 3, play_steps);
    ranks_expect(size, CHEX_OK);
    play_alone(&ref, size, &alone);
    for (i = 0; i < 4; i++) {
        size_t floats = arena_floats(g, arenas[i]);
        float *wanted = gpu_read(&ref, arenas[i]);

        for (of = 0; of < size; of++)
            ck_assert_mem_eq(left[of].arena[arenas[i]], left[0].arena[arenas[i]], floats * sizeof(float));
        ck_assert_msg(gpu_distance(left[0].arena[arenas[i]], wanted, floats) < cases[_i].most,
                      "arena %d: relative error %g", (int)arenas[i],
                      gpu_distance(left[0].arena[arenas[i]], wanted, floats));
        free(wanted);
    }
    for (of = 0; of < size; of++) {
        ck_assert(left[of].result.applied && left[of].result.requests == 6 && left[of].result.bad == STEP_NONE);
        ck_assert_double_eq_tol(left[of].result.loss, alone.loss, 1e-4 * alone.loss);
        ck_assert_double_eq_tol(left[of].result.norm, alone.norm, cases[_i].most * alone.norm);
        ck_assert_double_gt(left[of].result.times.seconds[PART_REDUCE], 0);
        ck_assert_double_gt(left[of].told.reduce, 0);
        forget(of);
    }
    step_plan_free(&ref.p);
    graph_free(g);
}

/* ---- sums on the device ------------------------------------------------------------------------------------------ */

/* The order of addition differs, and messages use doubles. */
TEST(nccl_makes_the_sums_of_messages_but_for_rounding)
{
    static float *staged[ARENA_COUNT];
    struct graph *g = gpu_graph();
    double apart;

    shared_options = gpu_options(g);
    be_four();
    ranks_play(4, 3, play_steps);
    ranks_expect(4, CHEX_OK);
    memcpy(staged, left[0].arena, sizeof(staged));
    memset(left[0].arena, 0, sizeof(left[0].arena));
    way.apart = true;
    ranks_play(4, 3, play_steps);
    ranks_expect(4, CHEX_OK);
    apart = gpu_distance(left[3].arena[ARENA_GRADIENTS], staged[ARENA_GRADIENTS], g->param_floats);
    ck_assert_msg(apart > 0 && apart < 1e-5, "gradients are %g apart", apart);
    apart = gpu_distance(left[3].arena[ARENA_STATISTICS], staged[ARENA_STATISTICS], g->stat_floats);
    ck_assert_msg(apart < 1e-5, "running statistics are %g apart", apart);
    graph_free(g);
}

/* The graph of a step contains its sums although there is no other rank. */
LOOP_TEST(one_rank_with_nccl_makes_the_step_without, 0, 3)
{
    struct graph *g = gpu_graph();
    float *with, *without;

    shared_options = gpu_options(g);
    shared_options.no_graph = _i == 1;
    shared_options.pdl = _i == 2;
    way.own = true;
    ranks_play(1, 3, play_steps);
    ranks_expect(1, CHEX_OK);
    with = left[0].arena[ARENA_PARAMETERS];
    way.own = false;
    shared_options.pdl = false;
    ranks_play(1, 3, play_alone_on_gpu);
    without = left[0].arena[ARENA_PARAMETERS];
    ck_assert_mem_eq(with, without, g->param_floats * sizeof(float));
    graph_free(g);
}

/*
 * Kernels of backward run between the first sum and the last one, on the slower rank.  At most four of them belong to
 * the update, which the other rank may have started before.
 */
TEST(sums_have_priority_and_the_first_one_does_not_wait_for_the_end_of_the_way_back)
{
    struct graph *g = gpu_graph();
    struct fake_nccl_counts counts;
    struct emulator_counts after;

    shared_options = gpu_options(g);
    way.apart = true;
    be_four();
    setenv("FAKE_NCCL_LATE", "0", 1); /* a sum runs as soon as all ranks have its input */
    ranks_play(2, 3, play_first_step);
    ranks_expect(2, CHEX_OK);
    counts = fake_nccl_count();
    emulator_count(&after);
    ck_assert_uint_ge(counts.sums, 2 * 3);
    ck_assert_uint_eq(after.urgent - before_step.urgent, counts.sums);
    ck_assert_uint_ge(counts.bytes, 2 * g->param_floats * sizeof(float));
    ck_assert_msg(counts.kernels_before_last > counts.kernels_before_first + 4, "sums between kernels %llu and %llu",
                  (unsigned long long)counts.kernels_before_first, (unsigned long long)counts.kernels_before_last);
    graph_free(g);
}

/* Tests rules of tests/fakes/nccl/ on which other tests here depend: a violation ends with SIGABRT. */

static void
play_wait(struct rank *r, struct collective *c)
{
    struct device *device;
    struct reduce *reduce;
    cudaStream_t stream;
    void *data;

    ranks_good(backend_cuda.device_open(0, &device, &r->err), &r->err);
    ranks_good(reduce_nccl_new(device, c, &reduce, &r->err), &r->err);
    ck_assert_int_eq(cudaMalloc(&data, 4), cudaSuccess);
    ck_assert_int_eq(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    ck_assert_int_eq(cudaMemsetAsync(data, 0, 4, stream), cudaSuccess);
    ranks_good(reduce->ops->start(reduce, data, 1, stream, &r->err), &r->err);
    ck_assert_int_eq(cudaStreamSynchronize(stream), cudaSuccess); /* waiting is allowed here */
    ranks_good(reduce->ops->join(reduce, stream, &r->err), &r->err);
    (void)cudaStreamSynchronize(stream);
}

SIGNAL_TEST(a_host_that_waits_for_a_sum_otherwise_than_by_polling_is_caught, SIGABRT)
{
    ranks_play(1, 3, play_wait);
}

/* What rank 1 does while rank 0 records a sum and replays it. */
enum { RECORD_TWICE, RECORD_NOTHING, RECORD_AND_KEEP };
static int rank_1_does;

static void
play_recordings(struct rank *r, struct collective *c)
{
    int of = collective_rank(c), i;
    struct device *device;
    struct reduce *reduce;
    cudaStream_t stream;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    void *data;

    ranks_good(backend_cuda.device_open((unsigned)of, &device, &r->err), &r->err);
    ranks_good(reduce_nccl_new(device, c, &reduce, &r->err), &r->err);
    ck_assert_int_eq(cudaMalloc(&data, 4), cudaSuccess);
    ck_assert_int_eq(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    ck_assert_int_eq(cudaMemsetAsync(data, 0, 4, stream), cudaSuccess);
    for (i = 0; i < (of == 1 && rank_1_does == RECORD_TWICE ? 2 : 1); i++) {
        bool records = of == 0 || rank_1_does != RECORD_NOTHING;

        if (records)
            ck_assert_int_eq(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
        ranks_good(reduce->ops->start(reduce, data, 1, stream, &r->err), &r->err);
        ranks_good(reduce->ops->join(reduce, stream, &r->err), &r->err);
        if (records)
            ck_assert_int_eq(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    }
    if (graph) {
        ck_assert_int_eq(cudaGraphInstantiateWithFlags(&exec, graph, 0), cudaSuccess);
        cudaGraphDestroy(graph);
    }
    if (exec && rank_1_does != RECORD_AND_KEEP)
        ck_assert_int_eq(cudaGraphLaunch(exec, stream), cudaSuccess);
    while (cudaStreamQuery(stream) == cudaErrorNotReady)
        ranks_good(reduce->ops->wait(reduce, false, &r->err), &r->err);
    if (exec)
        cudaGraphExecDestroy(exec);
    reduce->ops->free(reduce);
    backend_cuda.device_close(device);
}

SIGNAL_TEST(a_rank_that_records_a_sum_alone_is_caught, SIGABRT)
{
    be_four();
    rank_1_does = RECORD_NOTHING;
    ranks_play(2, 3, play_recordings);
}

SIGNAL_TEST(a_rank_that_replays_a_graph_of_another_recording_is_caught, SIGABRT)
{
    be_four();
    rank_1_does = RECORD_TWICE;
    ranks_play(2, 3, play_recordings);
}

TEST(ranks_that_record_sums_together_are_accepted)
{
    be_four();
    rank_1_does = RECORD_AND_KEEP;
    ranks_play(2, 3, play_recordings);
    ranks_expect(2, CHEX_OK);
}

/* ---- one rank cannot go on --------------------------------------------------------------------------------------- */

static void
play_fault(struct rank *r, struct collective *c)
{
    const struct step_end end = {.requests = 0};
    int of = collective_rank(c);
    struct plan_options o = shared_options;
    struct device *device;
    struct gpu_batch b;
    struct gpu_plan p;
    uint64_t ticket;
    unsigned step, i, flags;

    gpu_draw(&b, 1, GPU_BATCH);
    ranks_good(backend_cuda.device_open(way.apart ? (unsigned)of : 0, &device, &r->err), &r->err);
    ranks_good(backend_cuda.reduce_new(device, c, &o.reduce, &r->err), &r->err);
    gpu_make_on(&p, &backend_cuda, way.apart ? (unsigned)of : 0, &o);
    /* In step n of three, rank 1 has a fault in micro-batch n; it has none in the last step. */
    for (step = 0; step <= o.micro_batches; step++) {
        for (i = 0, flags = STEP_FIRST; !(flags & STEP_LAST); i++, flags &= ~(unsigned)STEP_FIRST) {
            bool fault = of == 1 && i == step;

            flags |= fault || i + 1 == o.micro_batches ? STEP_LAST : 0;
            ranks_good(backend_cuda.accumulate(p.p.plan, fault ? NULL : &b.batch, flags | (fault ? STEP_FAULT : 0),
                                               flags & STEP_LAST ? &end : NULL, &r->err),
                       &r->err);
        }
        ranks_good(backend_cuda.update(p.p.plan, 1e-3, 1, &ticket, &r->err), &r->err);
        ranks_good(gpu_wait(&p.p, ticket, &left[of].result, &r->err), &r->err);
        left[of].halts += left[of].result.halted && !left[of].result.applied && left[of].result.faults == 1;
        ranks_good(backend_cuda.resume(p.p.plan, &r->err), &r->err);
    }
    keep(&p, of);
    step_plan_free(&p.p);
    o.reduce->ops->free(o.reduce);
    backend_cuda.device_close(device);
}

LOOP_TEST(a_fault_of_one_rank_halts_all_and_changes_nothing, 0, 4)
{
    struct graph *g = gpu_graph();
    int of;

    shared_options = gpu_options(g);
    shared_options.micro_batches = 1 + (unsigned)_i / 2;
    way.apart = _i % 2;
    be_four();
    ranks_play(3, 5, play_fault);
    ranks_expect(3, CHEX_OK);
    for (of = 0; of < 3; of++) {
        ck_assert_uint_eq(left[of].halts, shared_options.micro_batches);
        ck_assert(left[of].result.applied && !left[of].result.halted && isfinite(left[of].result.norm));
        ck_assert_mem_eq(left[of].arena[ARENA_PARAMETERS], left[0].arena[ARENA_PARAMETERS],
                         g->param_floats * sizeof(float));
    }
    graph_free(g);
}

/* Rank 1 is gone before its sums. */
static void
play_lost(struct rank *r, struct collective *c)
{
    const struct step_end end = {.requests = 0};
    int of = collective_rank(c);
    struct plan_options o = shared_options;
    struct gpu_batch b;
    struct gpu_plan p;
    uint64_t ticket;

    struct device *device;

    gpu_draw(&b, 1, GPU_BATCH);
    ranks_good(backend_cuda.device_open(way.apart ? (unsigned)of : 0, &device, &r->err), &r->err);
    ranks_good(backend_cuda.reduce_new(device, c, &o.reduce, &r->err), &r->err);
    gpu_make_on(&p, &backend_cuda, way.apart ? (unsigned)of : 0, &o);
    if (of == 1)
        return;
    r->status = backend_cuda.accumulate(p.p.plan, &b.batch, STEP_FIRST | STEP_LAST, &end, &r->err);
    if (r->status == CHEX_OK)
        r->status = backend_cuda.update(p.p.plan, 1e-3, 1, &ticket, &r->err);
    if (r->status == CHEX_OK)
        r->status = gpu_wait(&p.p, ticket, &left[of].result, &r->err);
    step_plan_free(&p.p);
    o.reduce->ops->free(o.reduce);
    backend_cuda.device_close(device);
}

LOOP_TEST(a_rank_that_is_lost_is_named_and_the_plan_is_freed, 0, 2)
{
    struct graph *g = gpu_graph();
    char host[128];

    shared_options = gpu_options(g);
    way.apart = _i;
    be_four();
    rank[0].options.timeout = rank[2].options.timeout = 3;
    ranks_play(3, 5, play_lost);
    rank_host(host, sizeof(host), 1);
    ck_assert_int_eq(rank[0].status, CHEX_ERR_LOST);
    ck_assert_int_eq(rank[2].status, CHEX_ERR_LOST);
    ck_assert_msg(strstr(rank[0].err.text, host), "%s", rank[0].err.text);
    graph_free(g);
}
