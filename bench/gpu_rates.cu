/*
 * gpu_rates.cu - measures what limits every kernel on a device: bandwidths, products, the gap between launches
 *
 *     gpu-rates [--table]
 *
 * Prints one JSON object per line.  Copies: of 1 GiB within device memory, by the runtime and by a kernel with 16 bytes
 * per thread, counting bytes read and written; between pinned host memory and the device.  L2: all multiprocessors read
 * a buffer of about a quarter of the L2 again and again, past their L1.  Products: mma.m16n8k16 of values in
 * registers, on all multiprocessors, in fp16 and bf16, which is the limit for every kernel that uses mma.  Clock:
 * cycles per second of a multiprocessor in that kernel.  Gap: time per node of a graph of empty kernels that
 * run one after the other.  Medians.
 *
 * --table: prints only the row of this device in the table of train/cuda/plan/gpu.c; gpu_table.py puts it there.  The
 * figure of cuDNN is not measured: 0.
 *
 * Exit status: 0 good, 1 an error, 2 usage, 77 there is no device
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <cuda_runtime_api.h>

#include <algorithm>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <vector>

#define MUST(call) must(call, #call)
static void
must(cudaError_t e, const char *what)
{
    if (e == cudaSuccess)
        return;
    fprintf(stderr, "gpu-rates: %s: %s\n", what, cudaGetErrorString(e));
    exit(e == cudaErrorNoDevice || e == cudaErrorInsufficientDriver ? 77 : 1);
}

static cudaStream_t stream;
static bool table; /* print only the row */

/* For the row. */
struct constants {
    double clock, copy, l2, mma, gap;
};

static void
print_rate(const char *rate, const char *unit, double value)
{
    if (!table)
        printf("{\"rate\": \"%s\", \"%s\": %.*f}\n", rate, unit, value < 10 ? 3 : 1, value);
    fflush(stdout);
}

/* Returns the milliseconds of one call. */
template <typename F>
static double
median_ms(F call)
{
    std::vector<float> times;
    cudaEvent_t begin, end;

    MUST(cudaEventCreateWithFlags(&begin, cudaEventDefault));
    MUST(cudaEventCreateWithFlags(&end, cudaEventDefault));
    for (int i = 0; i < 3; i++)
        call();
    for (int i = 0; i < 15; i++) {
        float ms;

        MUST(cudaEventRecord(begin, stream));
        call();
        MUST(cudaEventRecord(end, stream));
        MUST(cudaEventSynchronize(end));
        MUST(cudaEventElapsedTime(&ms, begin, end));
        times.push_back(ms);
    }
    MUST(cudaEventDestroy(begin));
    MUST(cudaEventDestroy(end));
    std::sort(times.begin(), times.end());
    return (double)times[times.size() / 2];
}

__global__ void
copy_kernel(uint4 *to, const uint4 *from)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

    to[i] = from[i];
}

/* Different numbers: zeros are faster. */
__global__ void
fill_kernel(unsigned *to)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    unsigned v = (unsigned)i * 2654435761u;

    to[i] = v ^ v >> 15;
}

enum { CHAINS = 8, TURNS = 2048 };

/* What a CTA took. */
struct span {
    long long cycles, ns;
};

static __device__ long long
nanoseconds()
{
    long long ns;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

/* Each warp has eight independent sums, so that no product waits for the previous one. */
template <bool bf16>
__global__ void
mma_kernel(float *out, span *spans, unsigned seed)
{
    const span begin = {clock64(), nanoseconds()};
    float d[CHAINS][4] = {};
    /* values between 1 and 2, equal in both types */
    unsigned v = (bf16 ? 0x3f803f80u : 0x3c003c00u) | ((threadIdx.x + seed) & 7) << 2, a[4] = {v, v, v, v};
    unsigned b[2] = {v, v ^ 4};

    for (int turn = 0; turn < TURNS; turn++)
#pragma unroll
        for (int c = 0; c < CHAINS; c++) {
            if (bf16)
                asm volatile(
                    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                    "{%0,%1,%2,%3};"
                    : "+f"(d[c][0]), "+f"(d[c][1]), "+f"(d[c][2]), "+f"(d[c][3])
                    : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
            else
                asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                             "{%0,%1,%2,%3};"
                             : "+f"(d[c][0]), "+f"(d[c][1]), "+f"(d[c][2]), "+f"(d[c][3])
                             : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
        }
    float sum = 0;
    for (int c = 0; c < CHAINS; c++)
        sum += d[c][0] + d[c][1] + d[c][2] + d[c][3];
    out[blockIdx.x * (size_t)blockDim.x + threadIdx.x] = sum;
    if (threadIdx.x == 0)
        spans[blockIdx.x] = {clock64() - begin.cycles, nanoseconds() - begin.ns};
}

/* Each thread reads four pieces at a time.  `pieces` is a multiple of four times the number of threads. */
__global__ void
read_kernel(const uint4 *from, unsigned pieces, unsigned turns, unsigned *out)
{
    unsigned threads = gridDim.x * blockDim.x, all = 0;

    for (unsigned turn = 0; turn < turns; turn++)
        for (unsigned i = 0; i < pieces; i += 4 * threads) {
            /* in each turn, a multiprocessor reads what others read in the previous turn */
            unsigned at = i + ((blockIdx.x + turn) % gridDim.x) * blockDim.x + threadIdx.x;
            uint4 v[4];

#pragma unroll
            for (int k = 0; k < 4; k++)
                v[k] = __ldcg(from + at + k * threads);
#pragma unroll
            for (int k = 0; k < 4; k++)
                all ^= v[k].x ^ v[k].y ^ v[k].z ^ v[k].w;
        }
    out[blockIdx.x * blockDim.x + threadIdx.x] = all;
}

__global__ void
empty_kernel()
{
}

/* Returns FLOP/s, and sets the clock in Hz. */
template <bool bf16>
static double
products(const cudaDeviceProp &p, float *out, double *clock)
{
    enum { THREADS = 256, BLOCKS = 8 };
    unsigned blocks = (unsigned)p.multiProcessorCount * BLOCKS;
    span *spans = (span *)(void *)(out + blocks * THREADS);
    std::vector<span> found(blocks);
    std::vector<double> clocks;
    double ms = median_ms([&] {
        mma_kernel<bf16><<<blocks, THREADS, 0, stream>>>(out, spans, 1);
        MUST(cudaGetLastError());
    });
    double flops = 2.0 * 16 * 8 * 16 * CHAINS * TURNS * (THREADS / 32) * blocks;

    MUST(cudaMemcpy(found.data(), spans, blocks * sizeof(span), cudaMemcpyDeviceToHost));
    for (const span &s : found)
        clocks.push_back(s.ns > 0 ? 1e9 * (double)s.cycles / (double)s.ns : 0);
    std::sort(clocks.begin(), clocks.end());
    *clock = clocks[blocks / 2];
    print_rate(bf16 ? "mma.m16n8k16 bf16" : "mma.m16n8k16 fp16", "TFLOP_s", flops / ms / 1e9);
    return flops / ms * 1e3;
}

/* Returns bytes per second. */
static double
cached_reads(const cudaDeviceProp &p, const char *from, char *out)
{
    enum { THREADS = 512, TURNS_OF_READS = 200 };
    unsigned blocks = (unsigned)p.multiProcessorCount, sweep = 4 * blocks * THREADS;
    unsigned sweeps = (unsigned)p.l2CacheSize / 4 / 16 / sweep, pieces = sweep * (sweeps > 0 ? sweeps : 1);
    double ms = median_ms([&] {
        read_kernel<<<blocks, THREADS, 0, stream>>>((const uint4 *)from, pieces, TURNS_OF_READS, (unsigned *)out);
        MUST(cudaGetLastError());
    });
    double bytes = 16.0 * pieces * TURNS_OF_READS;

    print_rate("reads of the L2", "GB_s", bytes / ms / 1e6);
    return bytes / ms * 1e3;
}

/* Returns the milliseconds of a graph of empty kernels. */
static double
chain_ms(unsigned kernels)
{
    cudaGraphExec_t exec;
    cudaGraph_t graph;
    double ms;

    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (unsigned i = 0; i < kernels; i++)
        empty_kernel<<<1, 32, 0, stream>>>();
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    ms = median_ms([&] { MUST(cudaGraphLaunch(exec, stream)); });
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(graph));
    return ms;
}

/* Returns seconds. */
static double
gap_of_launches()
{
    enum { FEW = 256 };
    double seconds = (chain_ms(2 * FEW) - chain_ms(FEW)) * 1e-3 / FEW;

    print_rate("gap between nodes of a graph", "us", seconds * 1e6);
    return seconds;
}

/* Returns bytes per second, read and written, within the memory of the device. */
static double
copies(char *to, char *from, size_t size)
{
    size_t part = size / 4;
    void *host;
    double ms, best;

    best = ms = median_ms([&] { MUST(cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, stream)); });
    print_rate("copy by the runtime", "GB_s", 2.0 * (double)size / ms / 1e6);
    ms = median_ms([&] {
        copy_kernel<<<(unsigned)(size / 16 / 256), 256, 0, stream>>>((uint4 *)to, (const uint4 *)from);
        MUST(cudaGetLastError());
    });
    print_rate("copy by a kernel", "GB_s", 2.0 * (double)size / ms / 1e6);
    best = std::min(best, ms);
    MUST(cudaMallocHost(&host, part));
    ms = median_ms([&] { MUST(cudaMemcpyAsync(to, host, part, cudaMemcpyHostToDevice, stream)); });
    print_rate("host to device", "GB_s", (double)part / ms / 1e6);
    ms = median_ms([&] { MUST(cudaMemcpyAsync(host, from, part, cudaMemcpyDeviceToHost, stream)); });
    print_rate("device to host", "GB_s", (double)part / ms / 1e6);
    MUST(cudaFreeHost(host));
    return 2.0 * (double)size / best * 1e3;
}

/* Returns the first word of the name that has a digit: "H200" of "NVIDIA H200", "A100" of "NVIDIA A100-SXM4-40GB". */
static std::string
short_name(const char *name)
{
    std::string word;

    for (;; name++) {
        if (isalnum((unsigned char)*name)) {
            word += *name;
            continue;
        }
        if (word.find_first_of("0123456789") != std::string::npos)
            return word;
        word.clear();
        if (!*name)
            return "GPU";
    }
}

/* The members of struct cuda_gpu, in their order. */
static void
print_row(const cudaDeviceProp &p, const constants &c)
{
    printf("{\"%s\", %d, %d, %.3fe9, %.3fe12, %.2fe12, %.0fe12, 0, %g * MIB, %.2fe-6, %zu * KIB, %d, NULL, 2},\n",
           short_name(p.name).c_str(), p.major, p.multiProcessorCount, c.clock / 1e9, c.copy / 1e12, c.l2 / 1e12,
           c.mma / 1e12, p.l2CacheSize / 1048576.0, c.gap * 1e6, p.sharedMemPerMultiprocessor / 1024,
           p.maxThreadsPerMultiProcessor / 32);
}

static void
print_device(const cudaDeviceProp &p)
{
    size_t available, total;
    int driver, runtime;

    MUST(cudaMemGetInfo(&available, &total));
    MUST(cudaDriverGetVersion(&driver));
    MUST(cudaRuntimeGetVersion(&runtime));
    printf("{\"device\": \"%s\", \"arch\": %d, \"multiprocessors\": %d, \"l2_bytes\": %d, \"shared_bytes\": %zu, "
           "\"memory_bytes\": %zu, \"free_bytes\": %zu, \"driver\": %d, \"runtime\": %d, \"ecc\": %d}\n",
           p.name, 10 * p.major + p.minor, p.multiProcessorCount, p.l2CacheSize, p.sharedMemPerBlockOptin, total,
           available, driver, runtime, p.ECCEnabled);
}

int
main(int argc, char **argv)
{
    cudaDeviceProp p;
    constants c = {};
    size_t available, total, size = (size_t)1 << 30;
    char *to, *from;
    double ignored;

    table = argc == 2 && strcmp(argv[1], "--table") == 0;
    if (argc > 1 && !table) {
        fprintf(stderr, "usage: gpu-rates [--table]\n");
        return 2;
    }
    MUST(cudaGetDeviceProperties(&p, 0));
    MUST(cudaMemGetInfo(&available, &total));
    while (size > available / 4)
        size /= 2;
    if (!table)
        print_device(p);
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaMalloc((void **)&to, size));
    MUST(cudaMalloc((void **)&from, size));
    fill_kernel<<<(unsigned)(size / 4 / 256), 256, 0, stream>>>((unsigned *)from);
    MUST(cudaGetLastError());
    MUST(cudaStreamSynchronize(stream));
    c.copy = copies(to, from, size);
    c.l2 = cached_reads(p, from, to);
    c.mma = products<false>(p, (float *)(void *)to, &c.clock);
    products<true>(p, (float *)(void *)to, &ignored);
    print_rate("clock under load", "GHz", c.clock / 1e9);
    c.gap = gap_of_launches();
    if (table)
        print_row(p, c);
    MUST(cudaFree(to));
    MUST(cudaFree(from));
    return 0;
}
