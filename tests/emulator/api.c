/*
 * api.c - tests the emulated runtime: errors, devices, lazy execution, events, captures, graphs
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "emulator.h"
#include "rule_kernels.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N RULE_THREADS

static unsigned passed, failed;
static bool fine;
static cudaStream_t stream, other;

#define CHECK(condition)                                       \
    do {                                                       \
        if (!(condition)) {                                    \
            printf("    line %d: %s\n", __LINE__, #condition); \
            fine = false;                                      \
        }                                                      \
    } while (0)
#define OK(call) CHECK((call) == cudaSuccess)

static cudaError_t
launch(void (*kernel)(struct rule), struct rule a, unsigned threads, size_t shared, cudaStream_t s)
{
    void *arguments[] = {&a};

    return cudaLaunchKernel((const void *)kernel, (dim3){1, 1, 1}, (dim3){threads, 1, 1}, arguments, shared, s);
}

static void
set_flag(void *context)
{
    *(int *)context += 1;
}

static float *
device_numbers(float first)
{
    float *p, in[N];
    unsigned i;

    for (i = 0; i < N; i++)
        in[i] = first + (float)i;
    OK(cudaMalloc((void **)&p, sizeof(in)));
    OK(cudaMemcpy(p, in, sizeof(in), cudaMemcpyHostToDevice));
    return p;
}

static float
first_of(const float *p)
{
    float value = -1;

    OK(cudaMemcpy(&value, p, 4, cudaMemcpyDeviceToHost));
    return value;
}

/* ---- devices and errors ------------------------------------------------------------------------------------------ */

static void
devices_have_properties(void)
{
    struct cudaDeviceProp p;
    int count, number, value;
    size_t available, total;

    OK(cudaGetDeviceCount(&count));
    CHECK(count == 2);
    OK(cudaGetDeviceProperties(&p, 1));
    CHECK(p.major == 7 && p.minor == 0 && p.sharedMemPerBlockOptin == 96u << 10);
    CHECK(strcmp(p.name, "Emulated sm_70") == 0);
    OK(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 0));
    CHECK(value == 9);
    CHECK(cudaGetDeviceProperties(&p, 2) == cudaErrorInvalidDevice);
    CHECK(cudaSetDevice(-1) == cudaErrorInvalidDevice);
    CHECK(cudaGetLastError() == cudaErrorInvalidDevice && cudaGetLastError() == cudaSuccess);
    OK(cudaGetDevice(&number));
    CHECK(number == 0);
    OK(cudaMemGetInfo(&available, &total));
    CHECK(total == 1 << 20 && available == total);
}

static void
memory_is_counted(void)
{
    size_t before, after, total;
    void *p, *q;

    OK(cudaMemGetInfo(&before, &total));
    OK(cudaMalloc(&p, 1000));
    OK(cudaMemGetInfo(&after, &total));
    CHECK(before - after == 1024);
    CHECK(cudaMalloc(&q, total) == cudaErrorMemoryAllocation && q == NULL);
    CHECK(strcmp(cudaGetErrorString(cudaGetLastError()), "out of memory") == 0);
    OK(cudaFree(p));
    CHECK(cudaFree(p) == cudaErrorInvalidValue);
    OK(cudaFree(NULL));
    OK(cudaMemGetInfo(&after, &total));
    CHECK(before == after);
}

static void
copies_know_their_direction(void)
{
    float *p = device_numbers(1), host[N + 1];

    CHECK(cudaMemcpy(host, p, 4, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    CHECK(cudaMemcpy(p, host, (N + 1) * 4, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    CHECK(cudaMemcpyAsync(p, host, 4, cudaMemcpyDeviceToDevice, stream) == cudaErrorInvalidValue);
    OK(cudaMemcpy(host, p + 1, 4, cudaMemcpyDefault));
    CHECK(host[0] == 2);
    OK(cudaMemset(p, 0, 8));
    CHECK(first_of(p + 1) == 0 && first_of(p + 2) == 3);
    OK(cudaFree(p));
    CHECK(cudaMemcpy(p, host, 4, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
}

static void
launches_have_limits(void)
{
    struct rule a = {NULL, NULL, 0};
    void *arguments[] = {&a};
    struct cudaFuncAttributes attributes;

    CHECK(launch(block_barrier, a, 1025, 0, stream) == cudaErrorInvalidConfiguration);
    CHECK(launch(block_barrier, a, 0, 0, stream) == cudaErrorInvalidConfiguration);
    CHECK(launch(block_barrier, a, 32, 49 << 10, stream) == cudaErrorInvalidConfiguration);
    OK(cudaFuncSetAttribute((const void *)shape, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10));
    OK(cudaFuncGetAttributes(&attributes, (const void *)shape));
    CHECK(attributes.maxDynamicSharedSizeBytes == 200 << 10 && attributes.maxThreadsPerBlock == 1024);
    CHECK(cudaFuncSetAttribute((const void *)shape, cudaFuncAttributeMaxDynamicSharedMemorySize, 228 << 10) ==
          cudaErrorInvalidValue);
    CHECK(attributes.preferredShmemCarveout == cudaSharedmemCarveoutDefault);
    OK(cudaFuncSetAttribute((const void *)shape, cudaFuncAttributePreferredSharedMemoryCarveout,
                            cudaSharedmemCarveoutMaxShared));
    OK(cudaFuncGetAttributes(&attributes, (const void *)shape));
    CHECK(attributes.preferredShmemCarveout == 100 && attributes.maxDynamicSharedSizeBytes == 200 << 10);
    CHECK(cudaFuncSetAttribute((const void *)shape, cudaFuncAttributePreferredSharedMemoryCarveout, 101) ==
          cudaErrorInvalidValue);
    CHECK(cudaLaunchKernel((const void *)block_barrier, (dim3){1, 65536, 1}, (dim3){1, 1, 1}, arguments, 0, stream) ==
          cudaErrorInvalidConfiguration);
    CHECK(cudaLaunchKernel((const void *)set_flag, (dim3){1, 1, 1}, (dim3){1, 1, 1}, arguments, 0, stream) ==
          cudaErrorInvalidDeviceFunction);
}

static void
calls_fail_when_they_are_to(void)
{
    void *p, *q;

    emulator_fail("cudaMalloc", 2, cudaErrorMemoryAllocation);
    OK(cudaMalloc(&p, 1));
    CHECK(cudaMalloc(&q, 1) == cudaErrorMemoryAllocation && q == NULL);
    OK(cudaMalloc(&q, 1));
    OK(cudaFree(p));
    OK(cudaFree(q));
}

/* The second device fails here and stays failed. */
static void
a_kernel_that_fails_takes_its_device_along(void)
{
    struct rule a = {NULL, NULL, 0};
    cudaStream_t s, second;
    float *p;
    int count;

    OK(cudaSetDevice(1));
    OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    OK(cudaMalloc((void **)&p, N * 4));
    a.in = a.out = p;
    OK(cudaMemsetAsync(p, 0, N * 4, s));
    emulator_fail("tensor_end", 2, cudaErrorECCUncorrectable);
    OK(launch(tensor_end, a, N, 0, s));
    OK(launch(tensor_end, a, N, 0, s));
    OK(launch(tensor_end, a, N, 0, s));
    CHECK(cudaStreamSynchronize(s) == cudaErrorECCUncorrectable);
    CHECK(cudaStreamSynchronize(s) == cudaErrorECCUncorrectable);
    CHECK(cudaStreamQuery(second) == cudaErrorECCUncorrectable);
    CHECK(launch(tensor_end, a, N, 0, second) == cudaErrorECCUncorrectable);
    CHECK(cudaMalloc((void **)&p, 4) == cudaErrorECCUncorrectable);
    OK(cudaGetDeviceCount(&count));
    OK(cudaSetDevice(0));
    OK(cudaStreamSynchronize(stream));
    OK(cudaStreamDestroy(s));
    OK(cudaStreamDestroy(second));
    CHECK(cudaGetLastError() == cudaErrorECCUncorrectable);
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

static void
call_the_runtime(void *context)
{
    *(cudaError_t *)context = cudaStreamSynchronize(stream);
}

static void
work_is_late(void)
{
    struct emulator_counts before, after;
    int done = 0, done_there = 0;
    cudaEvent_t event;
    cudaError_t inside = cudaSuccess;

    emulator_count(&before);
    OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    OK(cudaLaunchHostFunc(other, set_flag, &done_there));
    OK(cudaLaunchHostFunc(stream, set_flag, &done));
    OK(cudaEventRecord(event, stream));
    OK(cudaLaunchHostFunc(stream, set_flag, &done));
    CHECK(done == 0 && done_there == 0);
    OK(cudaEventSynchronize(event));
    CHECK(done == 1 && done_there == 0);
    OK(cudaStreamSynchronize(stream));
    CHECK(done == 2 && done_there == 0);
    OK(cudaDeviceSynchronize());
    CHECK(done_there == 1);
    emulator_count(&after);
    CHECK(after.waits - before.waits == 3);
    OK(cudaLaunchHostFunc(stream, call_the_runtime, &inside));
    OK(cudaStreamSynchronize(stream));
    CHECK(inside == cudaErrorNotPermitted);
    OK(cudaEventDestroy(event));
}

static void
a_host_that_polls_gets_on(void)
{
    cudaEvent_t event;
    int done = 0, polls = 0;

    OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    OK(cudaEventQuery(event));
    OK(cudaLaunchHostFunc(stream, set_flag, &done));
    OK(cudaLaunchHostFunc(stream, set_flag, &done));
    OK(cudaEventRecord(event, stream));
    while (cudaEventQuery(event) == cudaErrorNotReady)
        polls++;
    CHECK(polls == 3 && done == 2);
    OK(cudaLaunchHostFunc(stream, set_flag, &done));
    CHECK(cudaStreamQuery(stream) == cudaErrorNotReady);
    OK(cudaStreamQuery(stream));
    CHECK(done == 3);
    OK(cudaEventDestroy(event));
}

static void
events_have_times(void)
{
    cudaEvent_t from, to, untimed;
    float milliseconds = -1;

    OK(cudaEventCreateWithFlags(&from, cudaEventDefault));
    OK(cudaEventCreateWithFlags(&to, cudaEventDefault));
    OK(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
    CHECK(cudaEventElapsedTime(&milliseconds, from, to) == cudaErrorInvalidResourceHandle);
    OK(cudaEventRecord(from, stream));
    OK(cudaEventRecord(to, stream));
    OK(cudaEventRecord(untimed, stream));
    CHECK(cudaEventElapsedTime(&milliseconds, from, to) == cudaErrorNotReady);
    OK(cudaStreamSynchronize(stream));
    OK(cudaEventElapsedTime(&milliseconds, from, to));
    CHECK(milliseconds >= 0 && milliseconds < 1000);
    CHECK(cudaEventElapsedTime(&milliseconds, from, untimed) == cudaErrorInvalidResourceHandle);
    OK(cudaEventDestroy(from));
    OK(cudaEventDestroy(to));
    OK(cudaEventDestroy(untimed));
}

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

static cudaGraphExec_t
end_capture(void)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec = NULL;

    OK(cudaStreamEndCapture(stream, &graph));
    OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cudaGraphDestroy(graph));
    return exec;
}

/* A kernel of a graph reads mapped host memory at each replay, and writes it. */
static void
a_graph_reads_and_writes_mapped_memory(void)
{
    float *in, *out;
    struct rule a = {NULL, NULL, 0};
    cudaGraphExec_t exec;
    unsigned i;

    CHECK(cudaHostAlloc((void **)&in, N * 4, 0) == cudaErrorInvalidValue && in == NULL);
    OK(cudaHostAlloc((void **)&in, N * 4, cudaHostAllocMapped));
    OK(cudaHostAlloc((void **)&out, N * 4, cudaHostAllocMapped));
    CHECK(cudaHostGetDevicePointer((void **)&a.in, in + 1, 0) == cudaErrorInvalidValue);
    OK(cudaHostGetDevicePointer((void **)&a.in, in, 0));
    OK(cudaHostGetDevicePointer((void **)&a.out, out, 0));
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    OK(launch(tensor_end, a, N, 0, stream));
    exec = end_capture();
    for (i = 1; i <= 3; i++) {
        in[N - 1] = (float)i;
        OK(cudaGraphLaunch(exec, stream));
        CHECK(out[N - 1] != (float)i);
        OK(cudaStreamSynchronize(stream));
        CHECK(out[N - 1] == (float)i);
    }
    OK(cudaGraphExecDestroy(exec));
    OK(cudaFreeHost(in));
    OK(cudaFreeHost(out));
    CHECK(cudaFreeHost(out) == cudaErrorInvalidValue);
}

/* A node copies the parameter block of a step from pinned memory. */
static void
a_graph_reads_its_parameters_at_each_replay(void)
{
    float *host, *in = device_numbers(0), *out = device_numbers(0);
    struct rule a = {out, in, 0};
    struct emulator_counts before, after;
    cudaGraphExec_t exec;
    unsigned i;

    OK(cudaMallocHost((void **)&host, N * 4));
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    OK(cudaMemcpyAsync(in, host, N * 4, cudaMemcpyHostToDevice, stream));
    OK(launch(tensor_end, a, N, 0, stream));
    exec = end_capture();
    emulator_count(&before);
    for (i = 1; i <= 3; i++) {
        host[0] = (float)i;
        OK(cudaGraphLaunch(exec, stream));
        OK(cudaStreamSynchronize(stream));
        CHECK(first_of(out) == (float)i);
    }
    emulator_count(&after);
    CHECK(after.graphs - before.graphs == 3 && after.kernels - before.kernels == 3);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaFree(in));
    OK(cudaFree(out));
    OK(cudaFreeHost(host));
}

static void
launch_early(struct rule a)
{
    void *arguments[] = {&a};
    cudaLaunchAttribute early = {.id = cudaLaunchAttributeProgrammaticStreamSerialization,
                                 .val.programmaticStreamSerializationAllowed = 1};
    cudaLaunchConfig_t config = {
        .gridDim = {1, 1, 1}, .blockDim = {N, 1, 1}, .stream = stream, .attrs = &early, .numAttrs = 1};

    OK(cudaLaunchKernelExC(&config, (const void *)waits_first, arguments));
}

/* In a stream and in a graph, in order; host functions and copies access their memory later. */
static void
kernels_may_begin_early(void)
{
    float *a = device_numbers(1), *b = device_numbers(2), *c = device_numbers(3);
    struct cudaFuncAttributes attributes;
    struct emulator_counts before, after;
    cudaGraphExec_t exec;
    unsigned i;

    OK(cudaFuncGetAttributes(&attributes, (const void *)waits_first));
    CHECK(attributes.ptxVersion == 90);
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    OK(launch(tensor_end, (struct rule){b, a, 0}, N, 0, stream)); /* b = a */
    launch_early((struct rule){c, b, 0});
    launch_early((struct rule){b, c, 0});
    exec = end_capture();
    for (i = 0; i < 3; i++) {
        OK(cudaMemset(b, 0xff, N * 4));
        OK(cudaMemset(c, 0xff, N * 4));
        emulator_count(&before);
        if (i == 0)
            OK(cudaGraphLaunch(exec, stream));
        OK(launch(tensor_end, (struct rule){b, a, 0}, N, 0, stream));
        launch_early((struct rule){c, b, 0});
        OK(cudaStreamSynchronize(stream));
        emulator_count(&after);
        CHECK(after.early - before.early == (i == 0 ? 3 : 1) && after.kernels - before.kernels == (i == 0 ? 5 : 2));
        CHECK(first_of(b) == 1 && first_of(c) == 1);
    }
    OK(cudaGraphExecDestroy(exec));
    OK(cudaFree(a));
    OK(cudaFree(b));
    OK(cudaFree(c));
}

static void
a_capture_forks_and_joins(void)
{
    float *a = device_numbers(1), *b = device_numbers(2), *c = device_numbers(3), *d = device_numbers(4);
    cudaEvent_t fork, join;
    cudaGraphExec_t exec;
    unsigned seed;

    OK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    OK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    OK(launch(tensor_end, (struct rule){b, a, 0}, N, 0, stream)); /* b = a */
    OK(cudaEventRecord(fork, stream));
    OK(cudaStreamWaitEvent(other, fork, 0));
    OK(launch(tensor_end, (struct rule){c, b, 0}, N, 0, other)); /* c = b, in the other stream */
    OK(cudaEventRecord(join, other));
    OK(cudaStreamWaitEvent(stream, join, 0));
    OK(launch(tensor_end, (struct rule){d, c, 0}, N, 0, stream)); /* d = c */
    exec = end_capture();
    for (seed = 0; seed < 8; seed++) {
        emulator_seed(0, seed);
        OK(cudaMemset(d, 0xff, N * 4));
        OK(cudaGraphLaunch(exec, stream));
        OK(cudaStreamSynchronize(stream));
        CHECK(first_of(d) == 1);
    }
    emulator_seed(0, 0);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaEventDestroy(fork));
    OK(cudaEventDestroy(join));
    OK(cudaFree(a));
    OK(cudaFree(b));
    OK(cudaFree(c));
    OK(cudaFree(d));
}

static void
a_capture_that_is_not_joined_fails(void)
{
    float *a = device_numbers(1);
    cudaEvent_t fork;
    cudaGraph_t graph;

    OK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    OK(cudaEventRecord(fork, stream));
    OK(cudaStreamWaitEvent(other, fork, 0));
    OK(cudaMemsetAsync(a, 0, 4, other));
    CHECK(cudaStreamEndCapture(other, &graph) == cudaErrorStreamCaptureUnmatched);
    CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureUnjoined && !graph);
    OK(cudaStreamSynchronize(other));
    CHECK(first_of(a) == 1);
    OK(cudaEventDestroy(fork));
    OK(cudaFree(a));
}

static void
a_capture_does_not_survive_a_wait(void)
{
    float *a = device_numbers(1);
    enum cudaStreamCaptureStatus status;
    cudaEvent_t event;
    cudaGraph_t graph;
    void *p;

    OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    OK(cudaStreamIsCapturing(stream, &status));
    CHECK(status == cudaStreamCaptureStatusActive);
    OK(cudaEventRecord(event, stream));
    CHECK(cudaEventSynchronize(event) == cudaErrorCapturedEvent);
    CHECK(cudaStreamSynchronize(stream) == cudaErrorStreamCaptureUnsupported);
    CHECK(cudaMemsetAsync(a, 0, 4, stream) == cudaErrorStreamCaptureInvalidated);
    CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(cudaMalloc(&p, 4) == cudaErrorStreamCaptureUnsupported);
    CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
    OK(cudaStreamIsCapturing(stream, &status));
    CHECK(status == cudaStreamCaptureStatusNone);
    OK(cudaEventRecord(event, stream));
    OK(cudaEventSynchronize(event));
    OK(cudaEventDestroy(event));
    OK(cudaFree(a));
}

static void
a_graph_records_times(void)
{
    cudaEvent_t from, to;
    cudaGraphExec_t exec;
    float milliseconds = -1;
    int done = 0;

    OK(cudaEventCreateWithFlags(&from, cudaEventDefault));
    OK(cudaEventCreateWithFlags(&to, cudaEventDefault));
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    OK(cudaEventRecordWithFlags(from, stream, cudaEventRecordExternal));
    OK(cudaLaunchHostFunc(stream, set_flag, &done));
    OK(cudaEventRecordWithFlags(to, stream, cudaEventRecordExternal));
    exec = end_capture();
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK(done == 2);
    OK(cudaEventElapsedTime(&milliseconds, from, to));
    CHECK(milliseconds >= 0);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaEventDestroy(from));
    OK(cudaEventDestroy(to));
}

/* ---- memory as kernels see it ------------------------------------------------------------------------------------ */

static void
threads_know_their_place(void)
{
    float *out, got[2 * 3 * 2 * 24];
    struct rule a = {NULL, NULL, 0};
    void *arguments[] = {&a};
    unsigned seed, i;

    for (seed = 0; seed < 3; seed++) {
        emulator_seed(seed, 0);
        OK(cudaMalloc((void **)&out, sizeof(got)));
        a.out = out;
        OK(cudaLaunchKernel((const void *)shape, (dim3){2, 3, 2}, (dim3){4, 3, 2}, arguments, 0, stream));
        OK(cudaStreamSynchronize(stream));
        OK(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
        for (i = 0; i < sizeof(got) / 4; i++)
            CHECK(got[i] == (float)i);
        OK(cudaFree(out));
    }
    emulator_seed(0, 0);
}

static void
lanes_vote_and_shuffle(void)
{
    float *out, got[N][5];
    unsigned t, want[2] = {0, 0};
    struct rule a = {NULL, NULL, 0};

    OK(cudaMalloc((void **)&out, sizeof(got)));
    a.out = out;
    OK(launch(votes, a, N, 0, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
    for (t = 0; t < N; t++)
        if (t % 3 == 0 && t % 32 < 16)
            want[t / 32] |= 1u << t % 32;
    for (t = 0; t < N; t++) {
        CHECK(got[t][0] == (float)want[t / 32]);
        CHECK(got[t][1] == (float)(t >= 32) && got[t][2] == (float)(t < 32));
        CHECK(got[t][3] == (float)(t % 32 >= 3 ? t - 3 : t));
        CHECK(got[t][4] == (float)(t % 32 + 3 < 32 ? t + 3 : t));
    }
    OK(cudaFree(out));
}

static void
atomics_add_up(void)
{
    struct {
        unsigned count;
        float sum;
        unsigned most;
    } got = {0, 0, 0};
    struct rule a = {NULL, NULL, 0};

    OK(cudaMalloc((void **)&a.out, sizeof(got)));
    OK(cudaMemcpy(a.out, &got, sizeof(got), cudaMemcpyHostToDevice));
    OK(launch(atomics, a, 100, 0, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemcpy(&got, a.out, sizeof(got), cudaMemcpyDeviceToHost));
    CHECK(got.count == 100 && got.sum == 4950 && got.most == 99);
    OK(cudaFree(a.out));
}

int
main(void)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } tests[] = {
        {"devices have properties", devices_have_properties},
        {"memory is counted", memory_is_counted},
        {"copies know their direction", copies_know_their_direction},
        {"launches have limits", launches_have_limits},
        {"calls fail when they are to", calls_fail_when_they_are_to},
        {"a kernel that fails takes its device along", a_kernel_that_fails_takes_its_device_along},
        {"work is late", work_is_late},
        {"a host that polls gets on", a_host_that_polls_gets_on},
        {"events have times", events_have_times},
        {"a graph reads and writes mapped memory", a_graph_reads_and_writes_mapped_memory},
        {"a graph reads its parameters at each replay", a_graph_reads_its_parameters_at_each_replay},
        {"kernels may begin early", kernels_may_begin_early},
        {"a capture forks and joins", a_capture_forks_and_joins},
        {"a capture that is not joined fails", a_capture_that_is_not_joined_fails},
        {"a capture does not survive a wait", a_capture_does_not_survive_a_wait},
        {"a graph records times", a_graph_records_times},
        {"threads know their place", threads_know_their_place},
        {"lanes vote and shuffle", lanes_vote_and_shuffle},
        {"atomics add up", atomics_add_up},
    };
    size_t i;

    setenv("EMULATOR_DEVICES", "90 70", 1);
    setenv("EMULATOR_MEMORY", "1048576", 1);
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess ||
        cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking) != cudaSuccess)
        return 2;
    for (i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
        fine = true;
        tests[i].run();
        printf("%s %s\n", fine ? "ok  " : "FAIL", tests[i].name);
        if (fine)
            passed++;
        else
            failed++;
    }
    printf("%u passed, %u failed, 0 skipped\n", passed, failed);
    return failed > 0;
}
