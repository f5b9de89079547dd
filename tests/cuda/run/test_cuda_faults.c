/*
 * test_cuda_faults.c - GPUs that cannot be used, and failures of each call of the runtime: the message gives the cause
 * and a solution, and nothing leaks
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "gpu_fixture.h"

#include "cuda/plan/gpu.h"
#include "train/backends.h"

#include <stdlib.h>
#include <string.h>

static bool
says(const struct chex_error *err, const char *what)
{
    if (!strstr(err->text, what))
        ck_abort_msg("'%s' does not say '%s'", err->text, what);
    return true;
}

/* ---- devices ----------------------------------------------------------------------------------------------------- */

TEST_CASE("cuda_faults", "cuda_faults", NULL, NULL);

TEST(devices_describe_themselves)
{
    struct device *device[3];
    struct chex_error err;
    unsigned i;

    setenv("EMULATOR_DEVICES", "90 70 61", 1);
    ck_assert_uint_eq(backend_cuda.device_count(), 3);
    for (i = 0; i < 2; i++)
        step_check_ok(backend_cuda.device_open(i, &device[i], &err), &err);
    ck_assert_str_eq(device[0]->info.text, "Emulated sm_90, 9.0");
    ck_assert_str_eq(device[1]->info.text, "Emulated sm_70, 7.0");
    ck_assert_str_ne(device[0]->info.id, device[1]->info.id);
    ck_assert_uint_eq(strlen(device[0]->info.id), strlen("GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"));
    ck_assert(device[0]->info.own_memory && !device[0]->info.imagined && device[0]->info.ahead == 1);
    ck_assert_uint_eq(device[0]->info.memory, 1u << 30);
    ck_assert_int_eq(device[0]->info.precision, PRECISION_FP16);
    ck_assert(device[0]->info.precisions >> PRECISION_BF16 & 1);
    ck_assert(!(device[1]->info.precisions >> PRECISION_BF16 & 1));
    ck_assert_int_eq(backend_cuda.device_open(2, &device[2], &err), CHEX_ERR_UNSUPPORTED);
    ck_assert(says(&err, "6.1") && says(&err, "7.0 is needed"));
    ck_assert_ptr_null(device[2]);
    ck_assert_int_eq(backend_cuda.device_open(7, &device[2], &err), CHEX_ERR_UNSUPPORTED);
    backend_cuda.device_close(device[0]);
    backend_cuda.device_close(device[1]);
    backend_cuda.device_close(NULL);
}

LOOP_TEST(a_machine_without_a_gpu_has_none_and_imagines_one_for_the_memory_of_a_plan, 0, 2)
{
    struct graph *g = gpu_graph();
    struct plan_options o = gpu_options(g);
    struct device *there, *imagined;
    struct plan_facts real, facts;
    struct chex_error err;

    if (_i == 0)
        setenv("EMULATOR_DEVICES", "", 1);
    ck_assert_int_eq(backend_cuda.device_count(), _i);
    step_check_ok(backend_cuda.device_imagine(NULL, &imagined, &err), &err);
    ck_assert(imagined->info.imagined && imagined->info.memory == UINT64_MAX);
    o.precision = PRECISION_AUTO;
    step_check_ok(backend_cuda.plan_size(imagined, &o, &facts, &err), &err);
    ck_assert_uint_gt(facts.memory.activations, 0);
    ck_assert_int_eq(facts.precision, PRECISION_FP16);
    if (_i == 0) {
        ck_assert_int_eq(backend_cuda.device_open(0, &there, &err), CHEX_ERR_UNSUPPORTED);
        ck_assert(says(&err, "no such GPU"));
    } else { /* the emulated device has it */
        step_check_ok(backend_cuda.device_open(0, &there, &err), &err);
        step_check_ok(backend_cuda.plan_size(there, &o, &real, &err), &err);
        ck_assert_mem_eq(&real.memory, &facts.memory, sizeof(real.memory));
        backend_cuda.device_close(there);
    }
    backend_cuda.device_close(imagined);
    graph_free(g);
}

/* The models that --device lists (cuda_models in train/local.mk), and only these. */
TEST(every_model_of_a_gpu_that_the_options_name_can_be_imagined)
{
    static const char *const names[] = {BACKEND_NAMES};
    struct chex_error err;
    size_t i, models = 0;

    for (i = 0; names[i]; i++) {
        const char *model = strchr(names[i], ':');
        struct device *device;

        if (!model)
            continue;
        step_check_ok(backend_cuda.device_imagine(model + 1, &device, &err), &err);
        ck_assert_ptr_nonnull(strstr(device->info.text, model + 1));
        backend_cuda.device_close(device);
        ck_assert_str_eq(cuda_gpu_name(models++), model + 1);
    }
    ck_assert_ptr_null(cuda_gpu_name(models));
}

TEST(a_plan_for_another_model_has_its_precisions_memory_and_model)
{
    struct graph *g = gpu_graph();
    struct plan_options o = gpu_options(g);
    struct device *old, *new, *none;
    struct plan_model slow, fast;
    struct plan_facts facts;
    struct chex_error err;

    step_check_ok(backend_cuda.device_imagine("V100", &old, &err), &err);
    step_check_ok(backend_cuda.device_imagine("H200", &new, &err), &err);
    ck_assert_int_eq(backend_cuda.device_imagine("V1000", &none, &err), CHEX_ERR_USAGE);
    ck_assert(says(&err, "'V1000'") && says(&err, "V100, A100, H100, H200"));
    ck_assert_ptr_null(none);
    o.precision = PRECISION_BF16;
    ck_assert_int_eq(backend_cuda.plan_size(old, &o, &facts, &err), CHEX_ERR_UNSUPPORTED);
    step_check_ok(backend_cuda.plan_size(new, &o, &facts, &err), &err);
    o.precision = PRECISION_FP16;
    step_check_ok(backend_cuda.plan_model(old, &o, NULL, &slow, &err), &err);
    step_check_ok(backend_cuda.plan_model(new, &o, NULL, &fast, &err), &err);
    ck_assert(strstr(slow.device, "V100") && strstr(fast.device, "H200"));
    ck_assert(slow.seconds > fast.seconds && fast.seconds > 0 && slow.score.seconds > fast.score.seconds);
    plan_model_free(&slow);
    plan_model_free(&fast);
    backend_cuda.device_close(old);
    backend_cuda.device_close(new);
    graph_free(g);
}

/* The error of a call when devices are counted or opened, the resulting status, and words of its text. */
static const struct refusal {
    const char *call;
    cudaError_t error;
    enum chex_status status;
    const char *words[2];
} refusals[] = {
    {"cudaGetDeviceProperties", cudaErrorInsufficientDriver, CHEX_ERR_UNSUPPORTED, {"driver", "12 or newer"}},
    {"cudaSetDevice", cudaErrorDevicesUnavailable, CHEX_ERR_UNSUPPORTED, {"another process", "nvidia-smi"}},
    {"cudaFuncGetAttributes", cudaErrorNoKernelImageForDevice, CHEX_ERR_UNSUPPORTED, {"no kernels", "sm_90"}},
    {"cudaMemGetInfo", cudaErrorMemoryAllocation, CHEX_ERR_MEMORY, {"out of memory", "sm_90"}},
    {"cudaMemGetInfo", cudaErrorECCUncorrectable, CHEX_ERR_LOST, {"ECC", "dmesg"}},
    {"cudaMemGetInfo", cudaErrorNvlinkUncorrectable, CHEX_ERR_LOST, {"NVLink", "dmesg"}},
    {"cudaSetDevice", cudaErrorInitializationError, CHEX_ERR_UNSUPPORTED, {"driver does not work", "nvidia-smi"}},
    {"cudaSetDevice", cudaErrorSystemNotReady, CHEX_ERR_UNSUPPORTED, {"not yet initialized", "nvidia-smi"}},
    {"cudaSetDevice", cudaErrorSystemDriverMismatch, CHEX_ERR_UNSUPPORTED, {"combination", "nvidia-smi"}},
    {"cudaSetDevice", cudaErrorMpsConnectionFailed, CHEX_ERR_UNSUPPORTED, {"MPS server", "control daemon"}},
};

LOOP_TEST(a_device_that_cannot_be_used_says_why, 0, sizeof(refusals) / sizeof(refusals[0]))
{
    const struct refusal *r = &refusals[_i];
    struct device *device;
    struct chex_error err;

    emulator_fail("cudaGetDeviceCount", 1, r->error);
    ck_assert_uint_eq(backend_cuda.device_count(), 1); /* opening it reports the reason */
    emulator_fail(r->call, 1, r->error);
    ck_assert_int_eq(backend_cuda.device_open(0, &device, &err), r->status);
    ck_assert(says(&err, r->words[0]) && says(&err, r->words[1]));
    ck_assert_ptr_null(device);
}

static const cudaError_t lost[] = {cudaErrorContained,           cudaErrorExternalDevice, cudaErrorMpsConnectionFailed,
                                   cudaErrorMpsClientTerminated, cudaErrorNoDevice,       cudaErrorDevicesUnavailable};

LOOP_TEST(a_device_that_disappears_from_a_plan_is_lost, 0, sizeof(lost) / sizeof(lost[0]))
{
    struct graph *g = gpu_graph();
    struct plan_options o = gpu_options(g);
    float *params = calloc(g->param_floats, sizeof(*params));
    struct chex_error err;
    struct gpu_plan p;

    gpu_make(&p, &backend_cuda, &o);
    emulator_fail("cudaMemcpyAsync", 1, lost[_i]);
    ck_assert_int_eq(backend_cuda.read(p.p.plan, ARENA_PARAMETERS, params, &err), CHEX_ERR_LOST);
    ck_assert(says(&err, "the GPU has failed"));
    step_plan_free(&p.p);
    free(params);
    graph_free(g);
}

TEST(a_machine_without_a_driver_has_no_device)
{
    emulator_fail("cudaGetDeviceCount", 1, cudaErrorInsufficientDriver);
    emulator_fail("cudaDriverGetVersion", 1, cudaErrorInsufficientDriver);
    ck_assert_uint_eq(backend_cuda.device_count(), 0);
}

TEST(a_plan_that_is_too_large_names_the_memory_needed_and_free)
{
    struct graph *g = gpu_graph();
    struct plan_options o = gpu_options(g);
    struct plan_facts facts;
    struct device *device;
    struct chex_error err;
    struct plan *plan;

    o.batch = 1u << 14;
    step_check_ok(backend_cuda.device_open(0, &device, &err), &err);
    step_check_ok(backend_cuda.plan_size(device, &o, &facts, &err), &err);
    ck_assert_int_eq(backend_cuda.plan_new(device, &o, &plan, &facts, &err), CHEX_ERR_MEMORY);
    ck_assert(says(&err, "16384 images") && says(&err, "needs") && says(&err, "free"));
    ck_assert_ptr_null(plan);
    backend_cuda.device_close(device);
    graph_free(g);
}

/* ---- kernels and memory that fail -------------------------------------------------------------------------------- */

/* Scores the same micro-batch twice, both in flight. */
static enum chex_status
score_two(struct plan *plan, const struct batch *batch, struct chex_error *err)
{
    static const struct crop crop[2 * GPU_BATCH] = {{.x = 0}};
    float logits[2][2 * GPU_BATCH * OUTPUTS];
    enum chex_status status = CHEX_OK, finished;
    struct chex_error later = {.status = CHEX_OK};
    unsigned started = 0, i;

    for (i = 0; i < 2 && status == CHEX_OK; i++) {
        status = backend_cuda.score_start(plan, batch, 1 + i, crop, ARENA_AVERAGE, logits[i], NULL, err);
        started += status == CHEX_OK;
    }
    for (i = 0; i < started; i++) {
        finished = backend_cuda.score_finish(plan, &later);
        if (status == CHEX_OK && finished != CHEX_OK) {
            *err = later;
            status = finished;
        }
    }
    ck_assert_int_eq(backend_cuda.score_finish(plan, &later), CHEX_ERR_BUG); /* none is left */
    if (status == CHEX_OK)
        ck_assert_mem_eq(logits[0], logits[1], sizeof(logits[0]) / 2);
    return status;
}

/* Everything that a run does with a plan; frees and closes in any case. */
static enum chex_status
use_all(struct gpu_plan *p, const struct plan_options *o, float *params, struct chex_error *err)
{
    static const uint32_t index[GPU_BATCH] = {1, STORE_NONE};
    struct plan_state state = {.applied = 0};
    struct image_store *store = NULL;
    struct step_result r;
    struct gpu_batch b;
    uint64_t ticket[2];
    enum chex_status status = backend_cuda.device_open(0, &p->p.device, err);

    gpu_draw(&b, 1, GPU_BATCH);
    b.batch.index = index;
    if (status == CHEX_OK)
        status = backend_cuda.plan_new(p->p.device, o, &p->p.plan, &p->p.facts, err);
    if (status == CHEX_OK)
        status = backend_cuda.store_new(p->p.device, 2, GPU_FROM, &store, err);
    if (status == CHEX_OK)
        status = backend_cuda.store_put(store, 1, b.pixels, err);
    if (status == CHEX_OK)
        status = backend_cuda.write(p->p.plan, ARENA_PARAMETERS, params, err);
    if (status == CHEX_OK)
        status = backend_cuda.set_state(p->p.plan, &state, err);
    if (status == CHEX_OK)
        status = gpu_start(&p->p, 1, 2, &ticket[0], err);
    if (status == CHEX_OK)
        status = gpu_start(&p->p, 2, 1, &ticket[1], err);
    if (status == CHEX_OK)
        status = gpu_wait(&p->p, ticket[0], &r, err);
    if (status == CHEX_OK)
        status = gpu_wait(&p->p, ticket[1], &r, err);
    b.batch.store = store;
    if (status == CHEX_OK)
        status = score_two(p->p.plan, &b.batch, err);
    if (status == CHEX_OK)
        status = backend_cuda.resume(p->p.plan, err);
    if (status == CHEX_OK)
        status = backend_cuda.read(p->p.plan, ARENA_PARAMETERS, params, err);
    backend_cuda.plan_free(p->p.plan);
    backend_cuda.store_free(store);
    backend_cuda.device_close(p->p.device);
    return status;
}

static enum chex_status
use_once(bool no_graph, bool pdl, struct chex_error *err)
{
    struct graph *g = gpu_graph();
    struct plan_options o = gpu_options(g);
    float *params = calloc(g->param_floats, sizeof(*params));
    struct gpu_plan p = {.options = o};
    enum chex_status status;

    o.no_graph = no_graph;
    o.pdl = pdl;
    p.p.backend = &backend_cuda;
    *err = (struct chex_error){.status = CHEX_OK};
    status = use_all(&p, &o, params, err);
    free(params);
    graph_free(g);
    return status;
}

static const char *const calls[] = {
    "cudaSetDevice",
    "cudaMemGetInfo",
    "cudaMalloc",
    "cudaMallocHost",
    "cudaHostAlloc",
    "cudaHostGetDevicePointer",
    "cudaMemcpy",
    "cudaMemcpyAsync",
    "cudaMemset",
    "cudaMemsetAsync",
    "cudaStreamCreateWithFlags",
    "cudaEventCreateWithFlags",
    "cudaEventRecord",
    "cudaStreamWaitEvent",
    "cudaEventQuery",
    "cudaEventSynchronize",
    "cudaEventElapsedTime",
    "cudaStreamBeginCapture",
    "cudaStreamEndCapture",
    "cudaGraphInstantiateWithFlags",
    "cudaGraphLaunch",
    "cudaLaunchKernel",
    "cudaLaunchKernelExC",
    "cudaFuncSetAttribute",
    "cudaFuncGetAttributes",
    "cudaGetDeviceProperties",
    "cudaStreamSynchronize",
};

/* Makes each call fail in turn, until none is left. */
LOOP_TEST(an_error_of_any_call_is_one_of_the_backend_with_a_text, 0, sizeof(calls) / sizeof(calls[0]))
{
    struct chex_error err;
    unsigned n = 0, failed = 0, step = 1;

    for (;;) {
        enum chex_status status;

        n += step;
        emulator_fail(calls[_i], n, n % 2 ? cudaErrorMemoryAllocation : cudaErrorUnknown);
        status = use_once(false, strcmp(calls[_i], "cudaLaunchKernelExC") == 0, &err);
        if (emulator_unfail() > 0)
            break;
        failed++;
        /* Times are missing if they cannot be read; nothing reports an error while everything is freed. */
        if (status == CHEX_OK)
            continue;
        ck_assert_msg(err.text[0] && err.status == status, "%s, call %u: no text", calls[_i], n);
        ck_assert_msg(status == (n % 2 ? CHEX_ERR_MEMORY : CHEX_ERR_LOST), "%s, call %u: %s", calls[_i], n, err.text);
        if (n >= 12) /* there are hundreds: test every 41st */
            step = 41;
    }
    ck_assert_msg(failed > 0, "%s is never called", calls[_i]);
}

static const char *const kernels[] = {"input_float", "sum_all_float", "linear_gradient_float", "loss_float",
                                      "optimizer_float"};

LOOP_TEST(a_kernel_that_fails_is_named_without_graphs_and_a_graph_says_how, 0, 10)
{
    struct chex_error err;

    emulator_fail(kernels[_i % 5], 2, _i < 5 ? cudaErrorIllegalAddress : cudaErrorECCUncorrectable);
    ck_assert_int_eq(use_once(_i % 2 == 0, _i > 5, &err), _i < 5 ? CHEX_ERR_BUG : CHEX_ERR_LOST);
    ck_assert(says(&err, "the last checkpoint is complete"));
    if (_i % 2 == 0)
        ck_assert(says(&err, kernels[_i % 5]));
    else if (_i < 5)
        ck_assert(says(&err, "--no-graph"));
}
