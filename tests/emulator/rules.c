/*
 * rules.c - tests each rule of the execution model, obeyed and violated
 *
 *     rules                all rules obeyed: exit code 0
 *     rules NAME           the rule obeyed: exit code 0
 *     rules device         print the devices that the environment configures
 *     rules NAME broken    the rule violated.  Exit code 1: the numbers are wrong.  Others: the emulator or a sanitizer
 *                          found the violation and ended the process
 *
 * check_emulator.py lists which build finds which violation.  Plain C, like the host side of a backend.
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

static cudaStream_t stream;

#define MUST(call) must(call, #call)
static void
must(cudaError_t e, const char *what)
{
    if (e == cudaSuccess)
        return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorName(e));
    exit(3);
}

static void *
on_device(const void *from, size_t size)
{
    void *p;

    MUST(cudaMalloc(&p, size));
    if (from) {
        MUST(cudaMemcpyAsync(p, from, size, cudaMemcpyHostToDevice, stream));
        MUST(cudaStreamSynchronize(stream));
    }
    return p;
}

static void
to_host(void *to, const void *from, size_t size)
{
    MUST(cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToHost, stream));
    MUST(cudaStreamSynchronize(stream));
}

static void
launch(void (*kernel)(struct rule), unsigned blocks, unsigned threads, size_t shared, struct rule a, cudaStream_t s)
{
    void *arguments[] = {&a};

    MUST(cudaLaunchKernel((const void *)kernel, (dim3){blocks, 1, 1}, (dim3){threads, 1, 1}, arguments, shared, s));
}

static int
differ(const float *got, const float *want, unsigned count)
{
    unsigned i;

    for (i = 0; i < count; i++)
        if (!(got[i] == want[i])) {
            printf("value %u is %g, not %g\n", i, (double)got[i], (double)want[i]);
            return 1;
        }
    return 0;
}

static void
numbers(float *in)
{
    unsigned i;

    for (i = 0; i < N; i++)
        in[i] = (float)(i + 1);
}

/* ---- one block: out[t] is in[t ^ swap], or given by `zero` ------------------------------------------------------- */

static const struct block_rule {
    const char *name;
    void (*kernel)(struct rule);
    unsigned swap, count;
    size_t shared;
    int zero; /* 1: expect zeros; 2: expect ones */
} block_rules[] = {
    {"block_barrier", block_barrier, N - 1, N, N * 4, 0},
    {"warp_barrier", warp_barrier, 31, N, N * 4, 0},
    {"async_wait", async_wait, 1, N, N * 4, 0},
    {"async_group", async_group, 1, N, N * 4 + 16, 0},
    {"async_forgotten", async_forgotten, 1, N, N * 4 + 16, 0},
    {"async_early", async_early, 63, N, N * 4, 0},
    {"tensor_end", tensor_end, 0, N, 0, 0},
    {"shared_end", shared_end, N - 1, N, N * 4, 0},
    {"vector_access", vector_access, 0, N - 4, 0, 0},
    {"same_barrier", same_barrier, N - 1, N, N * 4, 0},
    {"all_at_barrier", all_at_barrier, N - 1, N, N * 4, 0},
    {"all_in_shuffle", all_in_shuffle, 1, N, 0, 0},
    {"lane_of_mask", lane_of_mask, 1, N, 0, 0},
    {"initialised_shared", initialised_shared, 0, N, N * 4, 1},
    {"matrix_row", matrix_row, 0, N, 512, 2},
};

static int
run_block_rule(const struct block_rule *r, bool broken)
{
    float in[N], want[N], out[N];
    struct rule a = {NULL, NULL, broken};
    unsigned i;

    numbers(in);
    for (i = 0; i < N; i++)
        want[i] = r->zero ? (float)(r->zero - 1) : in[i ^ r->swap];
    a.in = on_device(in, sizeof(in));
    a.out = on_device(NULL, sizeof(out));
    launch(r->kernel, 1, N, r->shared, a, stream);
    to_host(out, a.out, sizeof(out));
    MUST(cudaFree(a.out));
    MUST(cudaFree((void *)a.in));
    return differ(out, want, r->count);
}

/* ---- several blocks ---------------------------------------------------------------------------------------------- */

/* Exit code 1 only with some seeds; the thread sanitizer finds it in any order. */
static int
run_blocks(void (*kernel)(struct rule), bool broken, unsigned first)
{
    float want[5] = {0, 1, 2, 3, 4}, out[5] = {0};
    struct rule a = {NULL, NULL, broken};
    unsigned seed;
    int wrong = 0;

    for (seed = 0; seed < 8 && !wrong; seed++) {
        emulator_seed(seed, 0);
        a.out = on_device(want, 4); /* out[0] = 0 */
        MUST(cudaFree(a.out));
        a.out = on_device(out, sizeof(out));
        launch(kernel, 4, 32, 0, a, stream);
        to_host(out, a.out, sizeof(out));
        MUST(cudaFree(a.out));
        wrong = differ(out, want, 4 + first);
        memset(out, 0, sizeof(out));
    }
    return wrong;
}

static int
rule_places_of_blocks(bool broken)
{
    return run_blocks(places_of_blocks, broken, 0);
}

static int
rule_blocks_in_a_row(bool broken)
{
    return run_blocks(blocks_in_a_row, broken, 1);
}

/* ---- the host ---------------------------------------------------------------------------------------------------- */

/* The host may not access device memory. */
static int
rule_host_stays_out(bool broken)
{
    float *device, one = 1, got;

    device = on_device(NULL, 4);
    if (broken)
        *device = one;
    else
        MUST(cudaMemcpy(device, &one, 4, cudaMemcpyHostToDevice));
    to_host(&got, device, 4);
    MUST(cudaFree(device));
    return differ(&got, &one, 1);
}

/* The host may not change a buffer until it has waited for the copy. */
static int
rule_buffer_is_kept(bool broken)
{
    float *host, *device = on_device(NULL, 4), one = 1, got;

    MUST(cudaMallocHost((void **)&host, 4));
    *host = 1;
    MUST(cudaMemcpyAsync(device, host, 4, cudaMemcpyHostToDevice, stream));
    if (!broken)
        MUST(cudaStreamSynchronize(stream));
    *host = 2;
    to_host(&got, device, 4);
    MUST(cudaFree(device));
    MUST(cudaFreeHost(host));
    return differ(&got, &one, 1);
}

/* The result of a copy is valid only after waiting for it. */
static int
rule_result_is_awaited(bool broken)
{
    float *host, *device, one = 1, got;

    device = on_device(&one, 4);
    MUST(cudaMallocHost((void **)&host, 4));
    MUST(cudaMemcpyAsync(host, device, 4, cudaMemcpyDeviceToHost, stream));
    if (!broken)
        MUST(cudaStreamSynchronize(stream));
    got = *host;
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(device));
    MUST(cudaFreeHost(host));
    return differ(&got, &one, 1);
}

/* Runs a kernel that reads mapped memory, where the host has put 1 .. N, and writes mapped memory. */
struct mapped {
    float *in, *out;       /* addresses of the host */
    float *in_at, *out_at; /* addresses of the device */
};

static struct mapped
copy_mapped(void)
{
    struct mapped m;
    struct rule a = {NULL, NULL, 0};

    MUST(cudaHostAlloc((void **)&m.in, N * sizeof(float), cudaHostAllocMapped));
    MUST(cudaHostAlloc((void **)&m.out, N * sizeof(float), cudaHostAllocMapped));
    MUST(cudaHostGetDevicePointer((void **)&m.in_at, m.in, 0));
    MUST(cudaHostGetDevicePointer((void **)&m.out_at, m.out, 0));
    numbers(m.in);
    a.in = m.in_at;
    a.out = m.out_at;
    launch(tensor_end, 1, N, 0, a, stream);
    return m;
}

static int
end_mapped(const struct mapped *m, const float *got)
{
    float want[N];
    int wrong;

    numbers(want);
    MUST(cudaStreamSynchronize(stream));
    wrong = differ(got ? got : m->out, want, N);
    MUST(cudaFreeHost(m->in));
    MUST(cudaFreeHost(m->out));
    return wrong;
}

/* The host may not change what a kernel reads in mapped memory until it has waited for the kernel. */
static int
rule_mapped_block_is_kept(bool broken)
{
    struct mapped m = copy_mapped();

    if (!broken)
        MUST(cudaStreamSynchronize(stream));
    m.in[0] = 7;
    return end_mapped(&m, NULL);
}

/* What a kernel writes to mapped memory is valid only after an event behind the kernel. */
static int
rule_mapped_result_is_awaited(bool broken)
{
    struct mapped m = copy_mapped();
    float got[N];
    cudaEvent_t event;

    MUST(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    MUST(cudaEventRecord(event, stream));
    if (!broken)
        MUST(cudaEventSynchronize(event));
    memcpy(got, m.out, sizeof(got));
    MUST(cudaEventDestroy(event));
    return end_mapped(&m, got);
}

/* Each side uses its own address of mapped memory. */
static int
rule_mapped_memory_has_two_addresses(bool broken)
{
    struct mapped m = copy_mapped();
    float got[N];

    MUST(cudaStreamSynchronize(stream));
    memcpy(got, broken ? m.out_at : m.out, sizeof(got));
    return end_mapped(&m, got);
}

/* Memory must be written before it is read. */
static int
rule_memory_is_written(bool broken)
{
    float in[N], out[N];
    struct rule a = {NULL, NULL, 0};

    numbers(in);
    a.in = on_device(broken ? NULL : in, sizeof(in));
    a.out = on_device(NULL, sizeof(out));
    launch(tensor_end, 1, N, 0, a, stream);
    to_host(out, a.out, sizeof(out));
    MUST(cudaFree(a.out));
    MUST(cudaFree((void *)a.in));
    return differ(out, in, N);
}

/* A kernel may not write past the tensor: here one value, into the padding to 256 bytes. */
static int
rule_tensor_is_large_enough(bool broken)
{
    float in[N];
    struct rule a = {NULL, NULL, 0};

    numbers(in);
    a.in = on_device(in, sizeof(in));
    a.out = on_device(NULL, (N - broken) * 4);
    launch(tensor_end, 1, N, 0, a, stream);
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(a.out));
    MUST(cudaFree((void *)a.in));
    return 0;
}

/* Freed memory may not be used. */
static int
rule_memory_is_live(bool broken)
{
    float in[N], out[N];
    struct rule a = {NULL, NULL, 0};

    numbers(in);
    a.in = on_device(in, sizeof(in));
    a.out = on_device(NULL, sizeof(out));
    if (broken)
        MUST(cudaFree((void *)a.in));
    launch(tensor_end, 1, N, 0, a, stream);
    to_host(out, a.out, sizeof(out));
    MUST(cudaFree(a.out));
    if (!broken)
        MUST(cudaFree((void *)a.in));
    return differ(out, in, N);
}

/* Only events order streams. */
static int
rule_streams_are_ordered(bool broken)
{
    float in[N], out[N];
    struct rule a = {NULL, NULL, 0};
    cudaStream_t other;
    cudaEvent_t event;
    unsigned seed;
    int wrong = 0;

    numbers(in);
    MUST(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    MUST(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    for (seed = 0; seed < 8 && !wrong; seed++) {
        emulator_seed(0, seed);
        a.in = on_device(NULL, sizeof(in));
        a.out = on_device(NULL, sizeof(out));
        MUST(cudaMemcpyAsync((void *)a.in, in, sizeof(in), cudaMemcpyHostToDevice, other));
        MUST(cudaEventRecord(event, other));
        if (!broken)
            MUST(cudaStreamWaitEvent(stream, event, 0));
        launch(tensor_end, 1, N, 0, a, stream);
        to_host(out, a.out, sizeof(out));
        wrong = differ(out, in, N);
        MUST(cudaFree(a.out));
        MUST(cudaFree((void *)a.in));
    }
    MUST(cudaEventDestroy(event));
    MUST(cudaStreamDestroy(other));
    return wrong;
}

/* A graph contains addresses: the memory must exist as long as the graph. */
static int
rule_graph_keeps_memory(bool broken)
{
    float in[N], out[N];
    struct rule a = {NULL, NULL, 0};
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    numbers(in);
    a.in = on_device(in, sizeof(in));
    a.out = on_device(NULL, sizeof(out));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    launch(tensor_end, 1, N, 0, a, stream);
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    MUST(cudaGraphDestroy(graph));
    MUST(cudaGraphLaunch(exec, stream));
    to_host(out, a.out, sizeof(out));
    if (broken)
        MUST(cudaFree((void *)a.in));
    MUST(cudaGraphLaunch(exec, stream));
    to_host(out, a.out, sizeof(out));
    if (!broken)
        MUST(cudaFree((void *)a.in));
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaFree(a.out));
    return differ(out, in, N);
}

/* A device may access only its own memory. */
static int
rule_own_device(bool broken)
{
    float in[N], out[N];
    struct rule a = {NULL, NULL, 0};
    cudaStream_t second;

    numbers(in);
    MUST(cudaSetDevice(1));
    MUST(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    MUST(cudaSetDevice(broken ? 0 : 1));
    a.in = on_device(in, sizeof(in));
    MUST(cudaSetDevice(1));
    a.out = on_device(NULL, sizeof(out));
    launch(tensor_end, 1, N, 0, a, second);
    MUST(cudaStreamSynchronize(second));
    to_host(out, a.out, sizeof(out));
    MUST(cudaFree(a.out));
    MUST(cudaFree((void *)a.in));
    MUST(cudaStreamDestroy(second));
    MUST(cudaSetDevice(0));
    return differ(out, in, N);
}

/* One kernel computes tmp = in; the next, out = tmp, may begin before the first ends. */
static int
run_early(void (*kernel)(struct rule), bool broken, bool between)
{
    float in[N], out[N];
    struct rule first = {NULL, NULL, 0}, second = {NULL, NULL, broken && !between};
    void *arguments[] = {&second};
    cudaLaunchAttribute early = {.id = cudaLaunchAttributeProgrammaticStreamSerialization,
                                 .val.programmaticStreamSerializationAllowed = 1};
    cudaLaunchConfig_t config = {
        .gridDim = {1, 1, 1}, .blockDim = {N, 1, 1}, .stream = stream, .attrs = &early, .numAttrs = 1};

    numbers(in);
    first.in = on_device(in, sizeof(in));
    first.out = on_device(NULL, sizeof(in));
    second.in = first.out;
    second.out = on_device(NULL, sizeof(out));
    launch(tensor_end, 1, N, 0, first, stream);
    if (broken && between)
        MUST(cudaMemsetAsync(second.out, 0, sizeof(out), stream));
    MUST(cudaLaunchKernelExC(&config, (const void *)kernel, arguments));
    to_host(out, second.out, sizeof(out));
    MUST(cudaFree((void *)first.in));
    MUST(cudaFree(first.out));
    MUST(cudaFree(second.out));
    return differ(out, in, N);
}

/* Programmatic dependent launch: no access to device memory before the wait. */
static int
rule_waits_first(bool broken)
{
    return run_early(waits_first, broken, false);
}

/* Every thread must wait.  Otherwise a kernel may end before its predecessor, and a later kernel waits only for it. */
static int
rule_all_wait(bool broken)
{
    return run_early(all_wait, broken, false);
}

/* The predecessor must be a kernel. */
static int
rule_early_behind_a_kernel(bool broken)
{
    return run_early(waits_first, broken, true);
}

static const struct host_rule {
    const char *name;
    int (*run)(bool broken);
} host_rules[] = {
    {"places_of_blocks", rule_places_of_blocks},
    {"blocks_in_a_row", rule_blocks_in_a_row},
    {"host_stays_out", rule_host_stays_out},
    {"buffer_is_kept", rule_buffer_is_kept},
    {"result_is_awaited", rule_result_is_awaited},
    {"mapped_block_is_kept", rule_mapped_block_is_kept},
    {"mapped_result_is_awaited", rule_mapped_result_is_awaited},
    {"mapped_memory_has_two_addresses", rule_mapped_memory_has_two_addresses},
    {"memory_is_written", rule_memory_is_written},
    {"tensor_is_large_enough", rule_tensor_is_large_enough},
    {"memory_is_live", rule_memory_is_live},
    {"streams_are_ordered", rule_streams_are_ordered},
    {"graph_keeps_memory", rule_graph_keeps_memory},
    {"own_device", rule_own_device},
    {"waits_first", rule_waits_first},
    {"all_wait", rule_all_wait},
    {"early_behind_a_kernel", rule_early_behind_a_kernel},
};

static int
print_devices(void)
{
    struct cudaDeviceProp p;
    size_t available = 0, total;
    int count;
    cudaError_t e = cudaGetDeviceCount(&count);

    printf("%d devices: %s\n", count, cudaGetErrorName(e));
    if (e == cudaSuccess && cudaGetDeviceProperties(&p, 0) == cudaSuccess) {
        e = cudaMemGetInfo(&available, &total);
        printf("%s, %zu bytes: %s\n", p.name, available, cudaGetErrorName(e));
    }
    return 0;
}

int
main(int argc, char **argv)
{
    bool broken = argc > 2 && strcmp(argv[2], "broken") == 0, any = false;
    int wrong = 0;
    size_t i;

    if (argc > 1 && strcmp(argv[1], "device") == 0)
        return print_devices();
    setenv("EMULATOR_DEVICES", "90 90", 1);
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (i = 0; i < sizeof(block_rules) / sizeof(*block_rules); i++)
        if (argc < 2 || strcmp(argv[1], block_rules[i].name) == 0) {
            any = true;
            wrong |= run_block_rule(&block_rules[i], broken);
        }
    for (i = 0; i < sizeof(host_rules) / sizeof(*host_rules); i++)
        if (argc < 2 || strcmp(argv[1], host_rules[i].name) == 0) {
            any = true;
            wrong |= host_rules[i].run(broken);
        }
    MUST(cudaStreamDestroy(stream));
    return any ? wrong : 2;
}
