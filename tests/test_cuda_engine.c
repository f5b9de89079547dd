/*
 * test_cuda_engine.c - plans whose convolutions are cuDNN's (train/cuda/plan/engine.c): steps beside ref, and which
 * ones they are
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "gpu_fixture.h"

#include "cuda/plan/model.h"
#include "fake_cudnn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- whole steps ------------------------------------------------------------------------------------------------- */

/* A bottleneck of a ResNet, in -> 8 -> 8 (3 x 3, stride) -> 32 channels; returns the sum. */
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
    step_check_ok(backend_cuda.score(gpu->p.plan, &b.batch, 1, b.crop, ARENA_AVERAGE, got, &err), &err);
    step_check_ok(backend_ref.score(ref->p.plan, &b.batch, 1, b.crop, ARENA_AVERAGE, wanted, &err), &err);
    ck_assert_double_lt(gpu_distance(got, wanted, GPU_BATCH * OUTPUTS), 1e-3);
}

/* Steps of two micro-batches beside ref; `kinds` of convolutions that cuDNN has run. */
static void
compare_with_ref(const struct plan_options *o, unsigned kinds)
{
    struct plan_options plain = *o;
    struct gpu_plan gpu, ref;
    struct fake_cudnn_counts before = fake_cudnn_count(), after;
    unsigned i;

    plain.engine = ENGINE_AUTO;
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
    ck_assert_int_eq(after.forward > before.forward, kinds >> CONV_FORWARD & 1);
    ck_assert_int_eq(after.data > before.data, kinds >> CONV_DATA & 1);
    ck_assert_int_eq(after.weights > before.weights, kinds >> CONV_WEIGHTS & 1);
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

/*
 * A ResNet, and two DenseNets, whose convolutions read and write slices of slabs; as a graph and one by one.  In the
 * graph own kernels may begin early, but none behind a convolution of cuDNN.
 */
START_TEST(steps_with_cudnn_are_those_of_the_reference)
{
    struct graph *g = network(_i / 2);
    struct plan_options o = gpu_options(g);

    o.engine = ENGINE_CUDNN;
    o.no_graph = _i % 2 == 1;
    o.pdl = true;
    compare_with_ref(&o, 7);
    graph_free(g);
}
END_TEST

/* Own kernels do what cuDNN refuses. */
START_TEST(steps_of_which_cudnn_refuses_a_part_are_those_of_the_reference)
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
END_TEST

/* In half precision the gradients of both engines are as close as their rounding. */
START_TEST(both_engines_agree_in_half_precision)
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
END_TEST

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

START_TEST(the_engine_is_a_part_of_the_algorithms)
{
    struct graph *g = small_resnet();
    struct plan_options o = gpu_options(g);
    struct plan_facts automatic = facts_of(&o), own, theirs, none;

    o.engine = ENGINE_OWN;
    own = facts_of(&o);
    o.engine = ENGINE_CUDNN;
    theirs = facts_of(&o);
    ck_assert_str_eq(automatic.algorithms, own.algorithms); /* small convolutions gain nothing */
    ck_assert_str_eq(automatic.engine, "own kernels");
    ck_assert_str_eq(own.engine, "own kernels");
    ck_assert_msg(strstr(theirs.engine, " convolutions by cuDNN 9."), "%s", theirs.engine);
    ck_assert_str_ne(theirs.algorithms, own.algorithms);
    setenv("FAKE_CUDNN", "none", 1);
    o.engine = ENGINE_AUTO;
    none = facts_of(&o);
    ck_assert_str_eq(none.algorithms, own.algorithms);
    ck_assert_str_eq(none.engine, "own kernels: libcudnn.so.9 is not there");
    graph_free(g);
}
END_TEST

START_TEST(an_engine_that_is_not_there_is_an_error)
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
    ck_assert_str_eq(err.text, "--engine cudnn: libcudnn.so.9 is not there");
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
END_TEST

/* Wide enough that `auto` leaves something to cuDNN. */
static struct graph *
wide_network(void)
{
    struct graph_builder b = {.graph = calloc(1, sizeof(*b.graph))};
    unsigned stem, side = GPU_SIDE / 2, wide[2], normed, mean, i;
    struct chex_error err;

    b.graph->model = "wide";
    b.graph->input = graph_add_buffer(&b, INPUT_CHANNELS, GPU_SIDE, GPU_SIDE);
    stem = graph_add_buffer(&b, 64, side, side);
    for (i = 0; i < 2; i++)
        wide[i] = graph_add_buffer(&b, 512, side, side);
    normed = graph_add_buffer(&b, 512, side, side);
    mean = graph_add_buffer(&b, 512, 1, 1);
    b.graph->output = graph_add_buffer(&b, OUTPUTS, 1, 1);
    graph_add_conv(&b, "conv1", graph_whole(&b, b.graph->input), graph_whole(&b, stem), 7, 2, 3);
    graph_add_conv(&b, "conv2", graph_whole(&b, stem), graph_whole(&b, wide[0]), 3, 1, 1);
    graph_add_norm(&b, "bn2", graph_whole(&b, wide[0]), graph_whole(&b, normed), true);
    graph_add_conv(&b, "conv3", graph_whole(&b, normed), graph_whole(&b, wide[1]), 3, 1, 1);
    graph_add_pool(&b, GRAPH_MEAN_POOL, graph_whole(&b, wide[1]), graph_whole(&b, mean), 1, 1, 0);
    graph_add_linear(&b, "fc", graph_whole(&b, mean), graph_whole(&b, b.graph->output));
    ck_assert(!b.failed);
    step_check_ok(graph_check(b.graph, &err), &err);
    return b.graph;
}

/* cuDNN is there when the plan is sized, and does not work on the GPU: own kernels do all, and the plan says why. */
START_TEST(without_a_cudnn_that_works_auto_has_own_kernels)
{
    static const struct {
        const char *setting, *why;
    } cases[] = {{"none", "own kernels: libcudnn.so.9 is not there"},
                 {"old", "own kernels: cuDNN is 9.10.2, and 9.11 is needed"},
                 {"no-device", "own kernels: cuDNN, the GPU: CUDNN_STATUS 1001"}};
    struct graph *g = wide_network();
    struct plan_options o = gpu_options(g);
    struct gpu_plan own, p;
    struct plan_facts size;
    struct device *device;
    struct chex_error err;

    o.engine = ENGINE_AUTO;
    step_check_ok(backend_cuda.device_open(0, &device, &err), &err);
    step_check_ok(backend_cuda.plan_size(device, &o, &size, &err), &err);
    ck_assert_msg(strncmp(size.engine, "2 of 3 convolutions by cuDNN", 28) == 0, "%s", size.engine);
    backend_cuda.device_close(device);
    setenv("FAKE_CUDNN", cases[_i].setting, 1);
    gpu_make(&p, &backend_cuda, &o);
    ck_assert_str_eq(p.p.facts.engine, cases[_i].why);
    o.engine = ENGINE_OWN;
    gpu_make(&own, &backend_cuda, &o);
    ck_assert_str_eq(p.p.facts.algorithms, own.p.facts.algorithms);
    ck_assert_str_ne(p.p.facts.algorithms, size.algorithms);
    step_plan_free(&p.p);
    step_plan_free(&own.p);
    graph_free(g);
}
END_TEST

START_TEST(a_gpu_is_known_by_a_word_of_its_name)
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
        ck_assert_str_eq(cuda_gpu_like(cases[i].name, cases[i].major)->name, cases[i].like);
}
END_TEST

/* What -n -v prints of cuDNN: the longer of its bytes and its products, at the rate that is taken for it. */
static void
check_cudnn_launches(const struct plan_model *p, const struct cuda_gpu *gpu)
{
    size_t i;

    for (i = 0; i < p->count; i++) {
        const struct plan_launch *l = &p->launch[i];
        double moves = cuda_memory_seconds(gpu, (double)(l->read + l->written)), computes = l->flop / (0.70 * 989e12);

        if (strcmp(l->tile, "cuDNN") == 0)
            ck_assert_double_eq_tol(l->seconds, (moves > computes ? moves : computes) + gpu->gap, 1e-12);
    }
}

/* A step of a model on a GPU: how many convolutions are cuDNN's, and seconds by the cost model. */
struct modelled {
    size_t of_cudnn;
    double seconds;
};

static struct modelled
model_of(const char *model, const char *name, unsigned major, unsigned batch, enum engine engine)
{
    const struct cuda_gpu *gpu = cuda_gpu_like(name, major);
    const struct cuda_chip chip = {.set = cuda_kernels_fp16,
                                   .value_bytes = 2,
                                   .processors = gpu->processors,
                                   .launch = CUDA_LAUNCH,
                                   .major = major,
                                   .cudnn = true};
    struct modelled m = {.of_cudnn = 0};
    struct plan_model p = {.launch = NULL};
    struct plan_options o;
    struct chex_error err;
    struct cuda_layout l;
    struct graph *g;
    size_t i;

    step_check_ok(graph_new(model, 224, 14, &g, &err), &err);
    o = gpu_options(g);
    o.batch = batch;
    o.micro_batches = 1;
    o.source = 256;
    o.precision = PRECISION_FP16;
    o.engine = engine;
    step_check_ok(cuda_layout_make(&l, &o, &chip, 0, &err), &err);
    step_check_ok(cuda_model_make(&l, gpu, &p, &err), &err);
    for (i = 0; i < l.graph->node_count; i++)
        m.of_cudnn += l.cudnn[i];
    m.seconds = p.seconds;
    if (gpu->cudnn > 0)
        check_cudnn_launches(&p, gpu);
    plan_model_free(&p);
    cuda_layout_free(&l);
    graph_free(g);
    return m;
}

/* The engine that is chosen is never slower than either, by the same figures that -n -v prints. */
START_TEST(auto_is_never_slower_than_one_engine_by_the_model)
{
    static const struct {
        const char *model, *gpu;
        unsigned major, batch;
        size_t chosen, all;
    } cases[] = {
        {"densenet121", "H200", 9, 16, 0, 119},  {"densenet121", "H200", 9, 64, 0, 119},
        {"densenet121", "H200", 9, 256, 0, 119}, {"resnet50", "H200", 9, 16, 45, 52},
        {"resnet50", "H200", 9, 64, 37, 52},     {"resnet50", "H200", 9, 256, 37, 52},
        {"resnet50", "H100", 9, 64, 37, 52},     {"densenet121", "A100", 8, 64, 0, 119},
        {"resnet50", "A100", 8, 64, 0, 52},      {"resnet50", "H200", 9, 48, 37, 52}, /* by bytes of partial sums */
        {"resnet50", "H100", 9, 32, 37, 52},
    };
    struct modelled own = model_of(cases[_i].model, cases[_i].gpu, cases[_i].major, cases[_i].batch, ENGINE_OWN);
    struct modelled cudnn = model_of(cases[_i].model, cases[_i].gpu, cases[_i].major, cases[_i].batch, ENGINE_CUDNN);
    struct modelled chosen = model_of(cases[_i].model, cases[_i].gpu, cases[_i].major, cases[_i].batch, ENGINE_AUTO);

    ck_assert_uint_eq(own.of_cudnn, 0);
    ck_assert_uint_eq(cudnn.of_cudnn, cases[_i].all);
    ck_assert_uint_eq(chosen.of_cudnn, cases[_i].chosen);
    ck_assert_double_le(chosen.seconds, own.seconds);
    ck_assert_double_le(chosen.seconds, cudnn.seconds);
}
END_TEST

/* The figures that stand for chips to come are a Hopper's, whose instructions they do not have. */
START_TEST(auto_leaves_cudnn_nothing_without_faster_instructions)
{
    ck_assert_uint_gt(model_of("resnet50", "H200", 10, 64, ENGINE_AUTO).of_cudnn, 0);
    ck_assert_uint_eq(model_of("resnet50", "H200", 12, 64, ENGINE_AUTO).of_cudnn, 0);
    ck_assert_uint_eq(model_of("resnet50", "H200", 12, 64, ENGINE_CUDNN).of_cudnn, 52);
}
END_TEST

Suite *
cuda_engine_suite(void)
{
    Suite *s = suite_create("cuda_engine");
    TCase *t = tcase_create("cuda_engine");

    tcase_set_timeout(t, 600);
    tcase_add_loop_test(t, steps_with_cudnn_are_those_of_the_reference, 0, 6);
    tcase_add_loop_test(t, steps_of_which_cudnn_refuses_a_part_are_those_of_the_reference, 0, 4);
    tcase_add_loop_test(t, both_engines_agree_in_half_precision, 0, 2);
    tcase_add_test(t, the_engine_is_a_part_of_the_algorithms);
    tcase_add_test(t, an_engine_that_is_not_there_is_an_error);
    tcase_add_loop_test(t, without_a_cudnn_that_works_auto_has_own_kernels, 0, 3);
    tcase_add_test(t, a_gpu_is_known_by_a_word_of_its_name);
    tcase_add_loop_test(t, auto_is_never_slower_than_one_engine_by_the_model, 0, 11);
    tcase_add_test(t, auto_leaves_cudnn_nothing_without_faster_instructions);
    suite_add_tcase(s, t);
    return s;
}
