/*
 * test_cuda_engine.c - plans with --engine cudnn: compares steps with the reference; tests which convolutions cuDNN
 * computes, and their cost model
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "gpu_fixture.h"

#include "cuda/plan/cost_seconds.h"
#include "cuda/plan/model.h"
#include "cuda/plan/product.h"
#include "fakes/cudnn/fake_cudnn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- whole steps ------------------------------------------------------------------------------------------------- */

/* Adds a bottleneck of a ResNet, in -> 8 -> 8 (3 x 3, stride) -> 32 channels; returns the sum. */
static unsigned
add_block(struct graph_builder *b, const char *const names[8], unsigned in, unsigned channels, unsigned side,
          unsigned stride)
{
    unsigned after = side / stride, shortcut = in, i, x = in, made[6], out = 0;
    unsigned kernel[] = {1, 3, 1}, width[] = {8, 8, 32};

    for (i = 0; i < 3; i++) {
        unsigned to = i == 0 ? side : after;

        made[2 * i] = graph_add_buffer(b, width[i], to, to);
        made[2 * i + 1] = graph_add_buffer(b, width[i], to, to);
        graph_add_conv(b, names[2 * i], graph_whole(b, x), graph_whole(b, made[2 * i]), kernel[i], i == 1 ? stride : 1,
                       kernel[i] / 2);
        graph_add_norm(b, names[2 * i + 1], graph_whole(b, made[2 * i]), graph_whole(b, made[2 * i + 1]), i < 2);
        x = made[2 * i + 1];
    }
    if (channels != 32) {
        unsigned raw = graph_add_buffer(b, 32, after, after);

        shortcut = graph_add_buffer(b, 32, after, after);
        graph_add_conv(b, names[6], graph_whole(b, in), graph_whole(b, raw), 1, stride, 0);
        graph_add_norm(b, names[7], graph_whole(b, raw), graph_whole(b, shortcut), false);
    }
    out = graph_add_buffer(b, 32, after, after);
    graph_add_sum(b, graph_whole(b, x), graph_whole(b, shortcut), graph_whole(b, out), true);
    return out;
}

static struct graph *
small_resnet(void)
{
    static const char *const names[2][8] = {
        {"a.conv1", "a.bn1", "a.conv2", "a.bn2", "a.conv3", "a.bn3", "a.down", "a.bn"},
        {"b.conv1", "b.bn1", "b.conv2", "b.bn2", "b.conv3", "b.bn3", "", ""}};
    struct graph_builder b = {.graph = calloc(1, sizeof(*b.graph))};
    unsigned stem, active, pooled, x, mean;
    struct chex_error err;

    b.graph->model = "small";
    b.graph->input = graph_add_buffer(&b, INPUT_CHANNELS, GPU_SIDE, GPU_SIDE);
    stem = graph_add_buffer(&b, 16, GPU_SIDE / 2, GPU_SIDE / 2);
    active = graph_add_buffer(&b, 16, GPU_SIDE / 2, GPU_SIDE / 2);
    pooled = graph_add_buffer(&b, 16, GPU_SIDE / 4, GPU_SIDE / 4);
    graph_add_conv(&b, "conv1", graph_whole(&b, b.graph->input), graph_whole(&b, stem), 7, 2, 3);
    graph_add_norm(&b, "bn1", graph_whole(&b, stem), graph_whole(&b, active), true);
    graph_add_pool(&b, GRAPH_MAX_POOL, graph_whole(&b, active), graph_whole(&b, pooled), 3, 2, 1);
    x = add_block(&b, names[0], pooled, 16, GPU_SIDE / 4, 2);
    x = add_block(&b, names[1], x, 32, GPU_SIDE / 8, 1);
    mean = graph_add_buffer(&b, 32, 1, 1);
    b.graph->output = graph_add_buffer(&b, OUTPUTS, 1, 1);
    graph_add_pool(&b, GRAPH_MEAN_POOL, graph_whole(&b, x), graph_whole(&b, mean), 1, 1, 0);
    graph_add_linear(&b, "fc", graph_whole(&b, mean), graph_whole(&b, b.graph->output));
    ck_assert(!b.failed);
    step_check_ok(graph_check(b.graph, &err), &err);
    return b.graph;
}

static void
compare_scores(const struct gpu_plan *gpu, const struct gpu_plan *ref)
{
    float got[GPU_BATCH * OUTPUTS], wanted[GPU_BATCH * OUTPUTS];
    struct chex_error err;
    struct gpu_batch b;

    gpu_draw(&b, 7, GPU_BATCH);
    step_check_ok(backend_score(&backend_cuda, gpu->p.plan, &b.batch, 1, b.crop, ARENA_AVERAGE, got, &err), &err);
    step_check_ok(backend_score(&backend_ref, ref->p.plan, &b.batch, 1, b.crop, ARENA_AVERAGE, wanted, &err), &err);
    ck_assert_double_lt(gpu_distance(got, wanted, GPU_BATCH * OUTPUTS), 1e-3);
}

/* Compares steps of two micro-batches with the reference; `kinds` are the kinds of convolutions that cuDNN runs. */
static void
compare_with_ref(const struct plan_options *o, unsigned kinds)
{
    struct plan_options plain = *o;
    struct gpu_plan gpu, ref;
    struct fake_cudnn_counts before = fake_cudnn_count(), after;
    unsigned i;

    plain.engine = ENGINE_OWN;
    gpu_make(&gpu, &backend_cuda, o);
    gpu_make(&ref, &backend_ref, &plain);
    for (i = 0; i < 2; i++) {
        struct step_result a, b;

        gpu_step(&gpu.p, i, 2, &a);
        gpu_step(&ref.p, i, 2, &b);
        ck_assert(a.applied && !a.halted);
        ck_assert_double_eq_tol(a.loss, b.loss, (i == 0 ? 1e-4 : 1e-3) * b.loss);
        ck_assert_double_eq_tol(a.norm, b.norm, (i == 0 ? 1e-4 : 1e-2) * b.norm);
        if (i == 0)
            gpu_is_near(&gpu, &ref, ARENA_GRADIENTS, 1e-4);
    }
    gpu_is_near(&gpu, &ref, ARENA_STATISTICS, 1e-3);
    compare_scores(&gpu, &ref);
    after = fake_cudnn_count();
    ck_assert_int_eq(after.forward > before.forward, kinds >> CONV_FPROP & 1);
    ck_assert_int_eq(after.data > before.data, kinds >> CONV_DGRAD & 1);
    ck_assert_int_eq(after.weights > before.weights, kinds >> CONV_WGRAD & 1);
    step_plan_free(&gpu.p);
    step_plan_free(&ref.p);
    ck_assert_uint_eq(fake_cudnn_count().descriptors, 0);
}

static struct graph *
network(int number)
{
    struct chex_error err;
    struct graph *g = NULL;

    if (number == 0)
        return small_resnet();
    if (number == 1)
        return gpu_graph();
    step_check_ok(graph_new("densenet-micro", GPU_SIDE, OUTPUTS, &g, &err), &err);
    return g;
}

TEST_CASE("cuda_engine", "cuda_engine", NULL, NULL);

/*
 * A ResNet and two DenseNets, whose convolutions read and write slices of slabs; as a graph, and as single launches.
 * In the graph own kernels may start early, except after a convolution of cuDNN.
 */
LOOP_TEST(steps_with_cudnn_equal_the_reference, 0, 6)
{
    struct graph *g = network(_i / 2);
    struct plan_options o = gpu_options(g);

    o.engine = ENGINE_CUDNN;
    o.no_graph = _i % 2 == 1;
    o.pdl = true;
    compare_with_ref(&o, 7);
    graph_free(g);
}

/* Own kernels run what cuDNN refuses. */
LOOP_TEST(steps_partly_refused_by_cudnn_equal_the_reference, 0, 4)
{
    static const char *const refused[] = {"forward", "data", "add", "weights"};
    static const unsigned kinds[] = {6, 5, 7, 3};
    struct graph *g = small_resnet();
    struct plan_options o = gpu_options(g);

    setenv("FAKE_CUDNN_REFUSE", refused[_i], 1);
    o.engine = ENGINE_CUDNN;
    compare_with_ref(&o, kinds[_i]);
    graph_free(g);
}

/* In half precision the gradients of both engines differ only by rounding. */
LOOP_TEST(both_engines_agree_in_half_precision, 0, 2)
{
    struct graph *g = small_resnet();
    struct plan_options o = gpu_options(g);
    struct gpu_plan own, theirs;
    struct step_result a, b;

    o.precision = _i == 0 ? PRECISION_FP16 : PRECISION_BF16;
    o.engine = ENGINE_OWN;
    gpu_make(&own, &backend_cuda, &o);
    o.engine = ENGINE_CUDNN;
    gpu_make(&theirs, &backend_cuda, &o);
    gpu_step(&own.p, 0, 2, &a);
    gpu_step(&theirs.p, 0, 2, &b);
    ck_assert(a.applied && b.applied);
    ck_assert_double_eq_tol(a.loss, b.loss, (_i == 0 ? 0.01 : 0.05) * a.loss);
    gpu_is_near(&theirs, &own, ARENA_GRADIENTS, _i == 0 ? 0.1 : 0.5);
    step_plan_free(&own.p);
    step_plan_free(&theirs.p);
    graph_free(g);
}

/* ---- choices ----------------------------------------------------------------------------------------------------- */

static struct plan_facts
facts_of(const struct plan_options *o)
{
    struct gpu_plan p;
    struct plan_facts facts, size;
    struct chex_error err;

    gpu_make(&p, &backend_cuda, o);
    facts = p.p.facts;
    step_check_ok(backend_cuda.plan_size(p.p.device, o, &size, &err), &err);
    ck_assert_str_eq(size.algorithms, facts.algorithms);
    ck_assert_mem_eq(&size.memory, &facts.memory, sizeof(size.memory));
    step_plan_free(&p.p);
    return facts;
}

TEST(the_engine_is_a_part_of_the_algorithms)
{
    struct graph *g = small_resnet();
    struct plan_options o = gpu_options(g);
    struct plan_facts own = facts_of(&o), theirs;

    o.engine = ENGINE_CUDNN;
    theirs = facts_of(&o);
    ck_assert_str_eq(own.engine, "own kernels");
    ck_assert_msg(strstr(theirs.engine, "7 of 8 convolutions by cuDNN 9."), "%s", theirs.engine);
    ck_assert_str_ne(theirs.algorithms, own.algorithms);
    graph_free(g);
}

TEST(an_engine_that_is_not_there_is_an_error)
{
    struct graph *g = small_resnet();
    struct plan_options o = gpu_options(g);
    struct device *device;
    struct plan_facts facts;
    struct chex_error err;
    struct plan *plan;

    o.engine = ENGINE_CUDNN;
    step_check_ok(backend_cuda.device_open(0, &device, &err), &err);
    setenv("FAKE_CUDNN", "none", 1);
    ck_assert_int_eq(backend_cuda.plan_size(device, &o, &facts, &err), CHEX_ERR_UNSUPPORTED);
    ck_assert_str_eq(err.text, "--engine cudnn: libcudnn.so.9 was not found");
    ck_assert_int_eq(backend_cuda.plan_new(device, &o, &plan, &facts, &err), CHEX_ERR_UNSUPPORTED);
    setenv("FAKE_CUDNN", "no-device", 1);
    ck_assert_int_eq(backend_cuda.plan_new(device, &o, &plan, &facts, &err), CHEX_ERR_UNSUPPORTED);
    ck_assert_str_eq(err.text, "cuDNN, the GPU: CUDNN_STATUS 1001; --engine own does without it");
    backend_cuda.device_close(device);
    step_check_ok(backend_ref.device_open(0, &device, &err), &err);
    o.precision = PRECISION_AUTO;
    ck_assert_int_eq(backend_ref.plan_size(device, &o, &facts, &err), CHEX_ERR_UNSUPPORTED);
    ck_assert_str_eq(err.text, "the backend ref has no cuDNN");
    backend_ref.device_close(device);
    graph_free(g);
}

TEST(a_gpu_is_known_by_a_word_of_its_name)
{
    static const struct {
        const char *name, *like;
        unsigned major;
    } cases[] = {
        {"NVIDIA H200", "H200", 9},
        {"NVIDIA H100 80GB HBM3", "H100", 9},
        {"NVIDIA A100-SXM4-80GB", "A100", 8},
        {"Tesla V100-SXM2-32GB", "V100", 7},
        {"NVIDIA GH200 480GB", "H200", 9},
        {"NVIDIA RTX A1000", "A100", 8},
        {"NVIDIA RTX A1000", "H200", 12},
        {"XH100 H1000", "H200", 9},
        {"H1000 H100", "H100", 9},
        {"", "H200", 0},
    };
    size_t i;

    for (i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        ck_assert_str_eq(cuda_gpu_like(cases[i].name, cases[i].major).name, cases[i].like);
}

/* NVIDIA's data sheets: 156 of 312 TFLOP/s (A100), 495 of 989 (H100). */
TEST(tf32_has_half_the_products_and_counts_of_its_own)
{
    const char *const names[] = {"A100", "H100", "H200"};
    size_t i;

    for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
        const struct cuda_gpu half = cuda_gpu_like(names[i], 0);
        struct cuda_gpu gpu = half;

        cuda_gpu_set_value(&gpu, CUDA_TF32);
        ck_assert(gpu.mma * 2 == half.mma);
        ck_assert_uint_eq(gpu.value_bytes, 2 * half.value_bytes);
        ck_assert_uint_eq(gpu.counts[CUDA_CONV_FPROP_128x128].shared, 2 * half.counts[CUDA_CONV_FPROP_128x128].shared);
        ck_assert_str_eq(gpu.counts[CUDA_WIDEN].name, "widen");
    }
}

/* Known values of CUDA's occupancy calculator. */
TEST(resident_ctas_are_those_of_the_occupancy_calculator)
{
    static const struct {
        const char *gpu;
        unsigned threads, registers, shared, resident;
    } cases[] = {
        {"A100", 256, 32, 0, 8},      /* all 64 warps */
        {"A100", 256, 37, 0, 6},      /* 75 %: registers are allocated by 8 for each thread */
        {"A100", 256, 41, 0, 5},      /* 62.5 % */
        {"A100", 256, 64, 0, 4},      /* 50 % */
        {"A100", 256, 104, 0, 2},     /* 16 warps: a scheduler has registers for 4, not for 4.9 */
        {"A100", 256, 255, 0, 1},     /* 12.5 % */
        {"A100", 1024, 32, 0, 2},     /* 64 warps */
        {"A100", 32, 16, 0, 32},      /* at most 32 CTAs */
        {"A100", 128, 32, 81920, 2},  /* 164 KiB, of which each CTA takes 81 */
        {"A100", 128, 32, 82945, 1},  /* 1 KiB more for each CTA does not fit twice */
        {"H100", 256, 126, 49152, 2}, /* registers */
        {"H100", 128, 114, 68224, 3}, /* shared memory: 228 KiB */
        {"H100", 256, 124, 101376, 2}, {"V100", 128, 32, 49152, 2}, /* 96 KiB, and no CTA takes more than it asks for */
        {"V100", 128, 32, 49153, 1},
    };
    size_t i;

    for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct cuda_gpu gpu = cuda_gpu_like(cases[i].gpu, 0);

        ck_assert_msg(cuda_resident(&gpu, cases[i].threads, cases[i].registers, cases[i].shared) == cases[i].resident,
                      "case %zu", i);
    }
}

/* check_sass.py writes the table in this order. */
TEST(counts_of_machine_code_are_in_the_order_of_the_kernels)
{
    static const struct {
        unsigned major;
        enum cuda_value value;
        const struct cuda_kernel *set;
    } tables[] = {{7, CUDA_FP16, cuda_kernels_fp16}, {8, CUDA_FP16, cuda_kernels_fp16},
                  {8, CUDA_BF16, cuda_kernels_bf16}, {8, CUDA_TF32, cuda_kernels_tf32},
                  {9, CUDA_FP16, cuda_kernels_fp16}, {9, CUDA_BF16, cuda_kernels_bf16},
                  {9, CUDA_TF32, cuda_kernels_tf32}};
    unsigned n, i;

    for (n = 0; n < sizeof(tables) / sizeof(*tables); n++)
        for (i = 0; i < CUDA_KERNEL_COUNT; i++) {
            const struct cuda_counts *k = &cuda_counts_of(tables[n].major, tables[n].value)[i];
            const struct cuda_kernel *kernel = &tables[n].set[i];

            ck_assert_msg(strlen(k->name) + 5 == strlen(kernel->name) &&
                              strncmp(k->name, kernel->name, strlen(k->name)) == 0,
                          "%s", kernel->name);
            ck_assert_uint_gt(k->registers, 0);
            ck_assert_uint_gt(k->unit.instructions, 0);
            ck_assert_uint_eq(k->threads, kernel->threads);
            ck_assert_uint_eq(k->shared, kernel->shared);
        }
}

/* Of two launches with the same work, the one with fewer resident warps is slower. */
TEST(few_resident_warps_and_few_bytes_in_flight_cost_time)
{
    const struct cuda_gpu gpu = cuda_gpu_like("H200", 9);
    struct cuda_load many = {.ctas = 4 * gpu.processors, .threads = 128, .registers = 64, .shared_bytes = 1024};
    struct cuda_load few;
    enum cuda_limit limit;

    many.cta.instructions = 1e6;
    few = many;
    few.shared_bytes = 200u << 10;
    ck_assert_double_gt(cuda_load_seconds(&gpu, &few, &limit), 1.5 * cuda_load_seconds(&gpu, &many, &limit));
    ck_assert_int_eq(limit, CUDA_LIMIT_ISSUE);
    many.cta.shared = 1e6;
    cuda_load_seconds(&gpu, &many, &limit);
    ck_assert_int_eq(limit, CUDA_LIMIT_SHARED);
    many.cta.flop = 1e13 / gpu.processors;
    cuda_load_seconds(&gpu, &many, &limit);
    ck_assert_int_eq(limit, CUDA_LIMIT_PRODUCTS);
    many.l2 = 1e12;
    cuda_load_seconds(&gpu, &many, &limit);
    ck_assert_int_eq(limit, CUDA_LIMIT_L2);
    many.bytes = 1e13;
    few = many;
    few.in_flight = 512;
    ck_assert_double_gt(cuda_load_seconds(&gpu, &few, &limit), 2 * cuda_load_seconds(&gpu, &many, &limit));
    ck_assert_int_eq(limit, CUDA_LIMIT_DRAM);
}

/* The larger of the memory time and the product time, at 70 % of the peak of a Hopper. */
TEST(the_model_of_a_launch_of_cudnn_has_its_bytes_and_products)
{
    const struct cuda_gpu gpu = cuda_gpu_like("H200", 9);
    const struct cuda_chip chip = {
        .set = cuda_kernels_fp16, .value_bytes = 2, .processors = gpu.processors, .major = 9};
    struct plan_model p = {.launch = NULL};
    struct plan_options o;
    struct chex_error err;
    struct cuda_layout l;
    size_t launches = 0, i;
    struct graph *g;

    step_check_ok(graph_new("resnet50", 224, 14, &g, &err), &err);
    o = gpu_options(g);
    o.batch = 64;
    o.source = 256;
    o.precision = PRECISION_FP16;
    o.engine = ENGINE_CUDNN;
    step_check_ok(cuda_layout_make(&l, &o, &chip, 0, &err), &err);
    step_check_ok(cuda_model_make(&l, &gpu, &p, &err), &err);
    for (i = 0; i < p.count; i++) {
        const struct plan_launch *k = &p.launch[i];
        double moves = cuda_memory_seconds(&gpu, (double)(k->read + k->written)), computes = k->flop / (0.70 * 989e12);

        if (strcmp(k->tile, "cuDNN") != 0)
            continue;
        ck_assert_double_eq_tol(k->seconds, (moves > computes ? moves : computes) + gpu.gap, 1e-12);
        launches++;
    }
    ck_assert_uint_eq(launches, 3 * 52); /* three kinds; cuDNN does not run the first convolution */
    plan_model_free(&p);
    cuda_layout_free(&l);
    graph_free(g);
}

/* Returns whether a reduce_sums launch of this list wrote these rows: they are not reduced a second time. */
static bool
is_reduced(const struct cuda_list *list, const struct channel_sums *sums)
{
    size_t i;

    for (i = 0; i < list->count; i++)
        if (list->op[i].kernel == CUDA_REDUCE_SUMS && list->op[i].args.reduce_sums.to.partial == sums->partial)
            return true;
    return false;
}

/*
 * A prologue must not take longer than one with fewer rows and half as much again as the reduce_sums launch before it.
 * 10 %: the plan does not know the shared memory of a convolution's BN when it decides.
 */
static void
reduces_enough(const struct cuda_gpu *gpu, const struct cuda_list *list, const struct cuda_op *op)
{
    const struct cuda_place place = {.value_bytes = 2};
    const struct channel_sums *sums = cuda_prologue_of(op).sums;
    unsigned to;
    struct cuda_work work;
    double seconds;

    if (!sums || sums->blocks == 0 || is_reduced(list, sums))
        return;
    cuda_work_of(&place, op, &work);
    seconds = cuda_load_of(gpu, op, &work).before;
    ck_assert_double_gt(seconds, 0);
    for (to = 2; to <= sums->blocks / 2; to *= 2) {
        double launch = cuda_reduce_seconds(gpu, sums->blocks, to, sums->channels);

        ck_assert_double_le(seconds, 1.1 * (1.5 * launch + seconds * to / sums->blocks));
    }
}

/* The tiles of an fprop are those that the model prefers for its final arguments, with the prologue. */
static void
takes_the_best_tiles(const struct cuda_gpu *gpu, const struct cuda_op *op)
{
    struct cuda_conv c = cuda_conv_of(op);

    c.major = gpu->major;
    cuda_conv_choose(&c, gpu->processors);
    ck_assert_int_eq(cuda_conv_kernel(&c), op->kernel);
    ck_assert_uint_eq(c.fprop.tiles_each, op->args.fprop.tiles_each);
}

LOOP_TEST(tiles_are_chosen_with_the_prologue, 0, 3)
{
    static const char *const names[] = {"V100", "A100", "H200"};
    const struct cuda_gpu gpu = cuda_gpu_like(names[_i], 7 + (unsigned)_i);
    struct cuda_chip chip = {
        .set = cuda_kernels_fp16, .value_bytes = 2, .processors = gpu.processors, .major = gpu.major};
    struct plan_options o;
    struct chex_error err;
    struct cuda_layout l;
    unsigned convolutions = 0;
    struct graph *g;
    size_t k;

    step_check_ok(graph_new("densenet121", 224, 14, &g, &err), &err);
    o = gpu_options(g);
    o.batch = 64;
    o.source = 256;
    o.precision = PRECISION_FP16;
    step_check_ok(cuda_layout_make(&l, &o, &chip, 0, &err), &err);
    for (k = 0; k < l.list[CUDA_LIST_FORWARD].count; k++)
        if (cuda_is_conv(&l.list[CUDA_LIST_FORWARD].op[k])) {
            takes_the_best_tiles(&gpu, &l.list[CUDA_LIST_FORWARD].op[k]);
            convolutions++;
        }
    ck_assert_uint_eq(convolutions, 120);
    cuda_layout_free(&l);
    graph_free(g);
}

/* The same constants of a GPU decide about reduce_sums launches and give their times. */
LOOP_TEST(sums_are_reduced_where_the_model_says_that_it_pays, 0, 6)
{
    static const struct {
        const char *name;
        unsigned major, batch;
    } cases[] = {{"V100", 7, 16},  {"V100", 7, 256}, {"A100", 8, 16},
                 {"A100", 8, 256}, {"H200", 9, 16},  {"H200", 9, 256}};
    const struct cuda_gpu gpu = cuda_gpu_like(cases[_i].name, cases[_i].major);
    struct cuda_chip chip = {
        .set = cuda_kernels_fp16, .value_bytes = 2, .processors = gpu.processors, .major = cases[_i].major};
    static const enum cuda_list_id lists[] = {CUDA_LIST_FORWARD, CUDA_LIST_BACKWARD};
    struct plan_options o;
    struct chex_error err;
    struct cuda_layout l;
    unsigned launches = 0;
    struct graph *g;
    size_t i, k;

    step_check_ok(graph_new("densenet121", 224, 14, &g, &err), &err);
    o = gpu_options(g);
    o.batch = cases[_i].batch;
    o.source = 256;
    o.precision = PRECISION_FP16;
    step_check_ok(cuda_layout_make(&l, &o, &chip, 0, &err), &err);
    for (i = 0; i < 2; i++)
        for (k = 0; k < l.list[lists[i]].count; k++) {
            const struct cuda_op *op = &l.list[lists[i]].op[k];
            const struct reduce_sums_args *a = &op->args.reduce_sums;
            const struct cuda_place place = {.value_bytes = 2};
            struct cuda_work work;
            enum cuda_limit limit;

            reduces_enough(&gpu, &l.list[lists[i]], op);
            if (op->kernel != CUDA_REDUCE_SUMS)
                continue;
            cuda_work_of(&place, op, &work);
            ck_assert_double_eq(cuda_seconds(&gpu, op, &work, &limit),
                                cuda_reduce_seconds(&gpu, a->from.blocks, a->to.blocks, a->from.channels));
            launches++;
        }
    ck_assert_uint_gt(launches, 0);
    cuda_layout_free(&l);
    graph_free(g);
}

static unsigned
count_kind(const struct plan_model *m, const char *kind)
{
    unsigned count = 0;
    size_t i;

    for (i = 0; i < m->count; i++)
        count += strcmp(m->launch[i].kind, kind) == 0;
    return count;
}

static void
same_model(const struct plan_model *a, const struct plan_model *b)
{
    size_t i;

    ck_assert_uint_gt(a->count, 0);
    ck_assert_uint_eq(a->count, b->count);
    for (i = 0; i < a->count; i++) {
        ck_assert_str_eq(a->launch[i].kernel, b->launch[i].kernel);
        ck_assert_uint_eq(a->launch[i].read, b->launch[i].read);
        ck_assert_uint_eq(a->launch[i].written, b->launch[i].written);
        ck_assert_double_eq(a->launch[i].seconds, b->launch[i].seconds);
    }
    ck_assert_double_eq(a->score.seconds, b->score.seconds);
}

/* The model of a plan is made from its layout: equal to the one before the plan, unless cuDNN refused a convolution. */
LOOP_TEST(the_model_of_a_plan_has_the_launches_of_the_plan, 0, 3)
{
    struct graph *g = gpu_graph();
    struct plan_options o = gpu_options(g);
    struct plan_model before, of_plan;
    struct chex_error err;
    struct gpu_plan gpu;

    o.engine = _i > 0 ? ENGINE_CUDNN : ENGINE_OWN;
    if (_i == 2)
        setenv("FAKE_CUDNN_REFUSE", "forward", 1);
    gpu_make(&gpu, &backend_cuda, &o);
    step_check_ok(backend_cuda.plan_model(gpu.p.device, &gpu.options, NULL, &before, &err), &err);
    step_check_ok(backend_cuda.plan_model(gpu.p.device, &gpu.options, gpu.p.plan, &of_plan, &err), &err);
    if (_i < 2) {
        same_model(&before, &of_plan);
    } else {
        ck_assert_uint_gt(count_kind(&before, "cudnn_conv_fprop"), 0);
        ck_assert_uint_eq(count_kind(&of_plan, "cudnn_conv_fprop"), 0);
        ck_assert_uint_gt(count_kind(&of_plan, "cudnn_conv_dgrad"), 0);
    }
    plan_model_free(&before);
    plan_model_free(&of_plan);
    step_plan_free(&gpu.p);
    graph_free(g);
}
