/*
 * gpu_rates.cu - measures the two limits of every kernel on a device: the bandwidth of copies and the rate of products
 *
 *     gpu-rates
 *
 * Prints one JSON object per line.  Copies: of 1 GiB within device memory, by the runtime and by a kernel with 16 bytes
 * per thread, counting bytes read and written; between pinned host memory and the device.  Products: mma.m16n8k16 of
 * values in registers, on all multiprocessors, in fp16 and bf16, which is the limit for every kernel that uses mma.
 * Medians.
 *
 * Exit status: 0 good, 1 an error, 77 there is no device
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <cuda_runtime_api.h>

#include <algorithm>
#include <stdio.h>
#include <stdlib.h>
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

/* Each warp has eight independent sums, so that no product waits for the previous one. */
template <bool bf16>
__global__ void
mma_kernel(float *out, unsigned seed)
{
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
}

template <bool bf16>
static void
products(const cudaDeviceProp &p, float *out)
{
    enum { THREADS = 256, BLOCKS = 8 };
    unsigned blocks = (unsigned)p.multiProcessorCount * BLOCKS;
    double ms = median_ms([&] {
        mma_kernel<bf16><<<blocks, THREADS, 0, stream>>>(out, 1);
        MUST(cudaGetLastError());
    });
    double flops = 2.0 * 16 * 8 * 16 * CHAINS * TURNS * (THREADS / 32) * blocks;

    printf("{\"rate\": \"mma.m16n8k16 %s\", \"TFLOP_s\": %.1f}\n", bf16 ? "bf16" : "fp16", flops / ms / 1e9);
    fflush(stdout);
}

static void
copies(char *to, char *from, size_t size)
{
    size_t part = size / 4;
    void *host;
    double ms;

    ms = median_ms([&] { MUST(cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, stream)); });
    printf("{\"rate\": \"copy by the runtime\", \"GB_s\": %.1f}\n", 2.0 * (double)size / ms / 1e6);
    ms = median_ms([&] {
        copy_kernel<<<(unsigned)(size / 16 / 256), 256, 0, stream>>>((uint4 *)to, (const uint4 *)from);
        MUST(cudaGetLastError());
    });
    printf("{\"rate\": \"copy by a kernel\", \"GB_s\": %.1f}\n", 2.0 * (double)size / ms / 1e6);
    MUST(cudaMallocHost(&host, part));
    ms = median_ms([&] { MUST(cudaMemcpyAsync(to, host, part, cudaMemcpyHostToDevice, stream)); });
    printf("{\"rate\": \"host to device\", \"GB_s\": %.1f}\n", (double)part / ms / 1e6);
    ms = median_ms([&] { MUST(cudaMemcpyAsync(host, from, part, cudaMemcpyDeviceToHost, stream)); });
    printf("{\"rate\": \"device to host\", \"GB_s\": %.1f}\n", (double)part / ms / 1e6);
    MUST(cudaFreeHost(host));
    fflush(stdout);
}

int
main()
{
    cudaDeviceProp p;
    size_t available, total, size = (size_t)1 << 30;
    char *to, *from;
    int driver, runtime;

    MUST(cudaGetDeviceProperties(&p, 0));
    MUST(cudaMemGetInfo(&available, &total));
    MUST(cudaDriverGetVersion(&driver));
    MUST(cudaRuntimeGetVersion(&runtime));
    while (size > available / 4)
        size /= 2;
    printf("{\"device\": \"%s\", \"arch\": %d, \"multiprocessors\": %d, \"l2_bytes\": %d, \"shared_bytes\": %zu, "
           "\"memory_bytes\": %zu, \"free_bytes\": %zu, \"driver\": %d, \"runtime\": %d, \"ecc\": %d}\n",
           p.name, 10 * p.major + p.minor, p.multiProcessorCount, p.l2CacheSize, p.sharedMemPerBlockOptin, total,
           available, driver, runtime, p.ECCEnabled);
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaMalloc((void **)&to, size));
    MUST(cudaMalloc((void **)&from, size));
    fill_kernel<<<(unsigned)(size / 4 / 256), 256, 0, stream>>>((unsigned *)from);
    MUST(cudaGetLastError());
    MUST(cudaStreamSynchronize(stream));
    copies(to, from, size);
    products<false>(p, (float *)(void *)to);
    products<true>(p, (float *)(void *)to);
    MUST(cudaFree(to));
    MUST(cudaFree(from));
    return 0;
}
