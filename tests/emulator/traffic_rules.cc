/*
 * traffic_rules.cc - tests the counts of the emulator with kernels whose bytes, sectors and bank conflicts are known
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "emulator.h" /* before the macros for kernels, whose names are also names of its members */

#include "emulated.h"

#include <stdio.h>
#include <stdlib.h>
#include <vector>

/* ---- kernels: a lane is at t * stride + offset, in its own values----------------------------- */

struct walk {
    const void *in;
    void *out;
    unsigned stride, offset, lanes; /* lanes below this take part */
};

#define SHARED(type) ((type *)(void *)emulated::self->shared)

EMULATED_KERNEL(read_floats, walk, 1024)
{
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x;

    if (threadIdx.x < a.lanes)
        ((float *)a.out)[t] = ((const float *)a.in)[t * a.stride + a.offset];
}

/* All blocks read the same data. */
EMULATED_KERNEL(read_again, walk, 1024)
{
    ((float *)a.out)[blockIdx.x * blockDim.x + threadIdx.x] = ((const float *)a.in)[threadIdx.x * a.stride];
}

EMULATED_KERNEL(read_halves, walk, 1024)
{
    ((emulated::fp16 *)a.out)[threadIdx.x] = ((const emulated::fp16 *)a.in)[threadIdx.x * a.stride + a.offset];
}

EMULATED_KERNEL(read_wide, walk, 1024)
{
    uint4 v;

    emulated::load_whole(v, (const uint4 *)a.in + threadIdx.x * a.stride + a.offset, EMULATED_HERE);
    emulated::store_whole((uint4 *)a.out + threadIdx.x, v, EMULATED_HERE);
}

EMULATED_KERNEL(add_atomically, walk, 1024)
{
    atomicAdd((unsigned *)a.out + threadIdx.x * a.stride, 1u);
}

EMULATED_KERNEL(shared_floats, walk, 1024)
{
    if (threadIdx.x < a.lanes)
        SHARED(float)[threadIdx.x * a.stride + a.offset] = 1;
}

EMULATED_KERNEL(shared_halves, walk, 1024)
{
    SHARED(emulated::fp16)[threadIdx.x * a.stride + a.offset] = {1};
}

EMULATED_KERNEL(shared_doubles, walk, 1024)
{
    SHARED(double)[threadIdx.x * a.stride + a.offset] = 1;
}

EMULATED_KERNEL(shared_wide, walk, 1024)
{
    uint4 v = {1, 2, 3, 4};

    emulated::store_whole(SHARED(uint4) + threadIdx.x * a.stride + a.offset, v, EMULATED_HERE);
}

/* One access of 16 bytes, from shared memory to shared memory. */
EMULATED_KERNEL(shared_float4, walk, 1024)
{
    float4 *at = SHARED(float4) + threadIdx.x * a.stride;

    at[1] = at[0];
}

/* The second half of the warp iterates twice as often, so its later accesses have no partner in the first half. */
EMULATED_KERNEL(shared_rounds, walk, 1024)
{
    for (unsigned i = 0; i < (threadIdx.x < 16 ? 2u : 4u); i++)
        ((volatile float *)SHARED(float))[threadIdx.x * a.stride] = (float)i;
}

/* Two accesses by different lanes with a synchronisation between them count as two. */
EMULATED_KERNEL(shared_in_turns, walk, 1024)
{
    for (unsigned turn = 0; turn < 2; turn++) {
        if (threadIdx.x / 16 == turn)
            ((volatile float *)SHARED(float))[threadIdx.x * a.stride] = 1;
        __syncwarp();
    }
}

EMULATED_KERNEL(shared_copies, walk, 1024)
{
    emulated::copy_async(SHARED(uint4) + threadIdx.x * a.stride, (const uint4 *)a.in + threadIdx.x, 16,
                         threadIdx.x < a.lanes ? 16 : 0, EMULATED_HERE);
    emulated::copy_wait(0);
    emulated::copy_commit();
    emulated::copy_wait(0);
}

EMULATED_KERNEL(shared_matrices, walk, 1024)
{
    emulated::fp16 m[8];

    emulated::ldmatrix(m, 4, a.offset, SHARED(uint4) + threadIdx.x * a.stride, EMULATED_HERE);
    ((uint4 *)a.out)[threadIdx.x] = {m[0].bits, m[1].bits, m[2].bits, m[7].bits};
}

/* ---- expected counts --------------------------------------------------------------------------------------------- */

#define CASE(kernel) #kernel, (const void *)(kernel)

static const struct traffic_case {
    const char *name;
    const void *kernel;
    unsigned blocks, threads, stride, offset, lanes;
    uint64_t bytes_read, bytes_written, sectors_read, sectors_written;
} of_global[] = {
    {CASE(read_floats), 1, 32, 1, 0, 32, 128, 128, 4, 4},    {CASE(read_floats), 2, 64, 1, 0, 64, 512, 512, 16, 16},
    {CASE(read_floats), 1, 32, 2, 0, 32, 128, 128, 8, 4},    {CASE(read_floats), 1, 32, 8, 0, 32, 128, 128, 32, 4},
    {CASE(read_floats), 1, 32, 100, 0, 32, 128, 128, 32, 4}, {CASE(read_floats), 1, 32, 0, 0, 32, 128, 128, 1, 4},
    {CASE(read_floats), 1, 32, 1, 1, 32, 128, 128, 5, 4},    {CASE(read_floats), 1, 32, 1, 0, 9, 36, 36, 2, 2},
    {CASE(read_again), 4, 32, 1, 0, 0, 512, 512, 4, 16},     {CASE(read_halves), 1, 32, 1, 0, 0, 64, 64, 2, 2},
    {CASE(read_halves), 1, 32, 16, 0, 0, 64, 64, 32, 2},     {CASE(read_wide), 1, 32, 1, 0, 0, 512, 512, 16, 16},
    {CASE(read_wide), 1, 32, 1, 1, 0, 512, 512, 17, 16},     {CASE(read_wide), 1, 32, 2, 0, 0, 512, 512, 32, 16},
    {CASE(add_atomically), 1, 32, 1, 0, 0, 0, 128, 0, 4},    {CASE(shared_floats), 1, 32, 1, 0, 32, 0, 0, 0, 0},
    {CASE(shared_copies), 1, 32, 1, 0, 20, 320, 0, 10, 0},
};

static const struct bank_case {
    const char *name;
    const void *kernel;
    unsigned stride, offset, lanes, threads;
    enum emulator_shared_kind kind;
    uint64_t accesses, phases, conflicts;
} of_shared[] = {
    {CASE(shared_floats), 1, 0, 32, 32, SHARED_NARROW, 1, 1, 0},
    {CASE(shared_floats), 0, 0, 32, 32, SHARED_NARROW, 1, 1, 0},
    {CASE(shared_floats), 2, 0, 32, 32, SHARED_NARROW, 1, 1, 1},
    {CASE(shared_floats), 4, 7, 32, 32, SHARED_NARROW, 1, 1, 3},
    {CASE(shared_floats), 32, 0, 32, 32, SHARED_NARROW, 1, 1, 31},
    {CASE(shared_floats), 33, 0, 32, 32, SHARED_NARROW, 1, 1, 0},
    {CASE(shared_floats), 32, 0, 5, 32, SHARED_NARROW, 1, 1, 4},
    {CASE(shared_floats), 2, 0, 96, 96, SHARED_NARROW, 3, 3, 3},
    {CASE(shared_halves), 1, 0, 32, 32, SHARED_NARROW, 1, 1, 0},
    {CASE(shared_halves), 2, 0, 32, 32, SHARED_NARROW, 1, 1, 0},
    {CASE(shared_halves), 4, 0, 32, 32, SHARED_NARROW, 1, 1, 1},
    {CASE(shared_doubles), 1, 0, 32, 32, SHARED_NARROW, 1, 2, 0},
    {CASE(shared_doubles), 2, 0, 32, 32, SHARED_NARROW, 1, 2, 2},
    {CASE(shared_wide), 1, 0, 32, 32, SHARED_WIDE, 1, 4, 0},
    {CASE(shared_wide), 2, 0, 32, 32, SHARED_WIDE, 1, 4, 4},
    {CASE(shared_wide), 8, 0, 32, 32, SHARED_WIDE, 1, 4, 28},
    {CASE(shared_wide), 9, 3, 32, 32, SHARED_WIDE, 1, 4, 0},
    {CASE(shared_float4), 2, 0, 32, 32, SHARED_WIDE, 2, 8, 8},
    {CASE(shared_float4), 9, 0, 32, 32, SHARED_WIDE, 2, 8, 0},
    {CASE(shared_rounds), 2, 0, 32, 32, SHARED_NARROW, 4, 4, 2},
    {CASE(shared_in_turns), 2, 0, 32, 32, SHARED_NARROW, 2, 2, 0},
    {CASE(shared_copies), 1, 0, 32, 32, SHARED_COPIES, 1, 4, 0},
    {CASE(shared_copies), 4, 0, 0, 32, SHARED_COPIES, 1, 4, 12},
    {CASE(shared_matrices), 1, 0, 0, 32, SHARED_MATRICES, 1, 4, 0},
    {CASE(shared_matrices), 1, 1, 0, 32, SHARED_MATRICES, 1, 4, 0},
    {CASE(shared_matrices), 4, 0, 0, 32, SHARED_MATRICES, 1, 4, 12},
    {CASE(shared_matrices), 8, 1, 0, 32, SHARED_MATRICES, 1, 4, 28},
    {CASE(shared_matrices), 9, 0, 0, 32, SHARED_MATRICES, 1, 4, 0},
};

static unsigned passed, failed;
static cudaStream_t stream;
static char *memory;

static void
must(cudaError_t e)
{
    if (e == cudaSuccess)
        return;
    fprintf(stderr, "%s\n", cudaGetErrorName(e));
    exit(3);
}

static struct emulator_traffic
run(const char *name, const void *kernel, walk w, unsigned blocks, unsigned threads)
{
    void *arguments[] = {&w};
    struct emulator_traffic out;

    w.in = memory;
    w.out = memory + (64 << 10);
    emulator_forget_traffic();
    must(cudaLaunchKernel(kernel, dim3{blocks, 1, 1}, dim3{threads, 1, 1}, arguments, 32 << 10, stream));
    must(cudaStreamSynchronize(stream));
    if (!emulator_traffic_of(name, &out) || out.launches != 1) {
        printf("%s: no launch was counted\n", name);
        failed++;
    }
    return out;
}

static void
expect(const char *name, unsigned stride, const char *what, uint64_t got, uint64_t want)
{
    got == want ? passed++ : failed++;
    if (got != want)
        printf("%s, stride %u: %s %llu, not %llu\n", name, stride, what, (unsigned long long)got,
               (unsigned long long)want);
}

int
main()
{
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    must(cudaMalloc((void **)&memory, 128 << 10));
    must(cudaMemset(memory, 0, 128 << 10));
    for (const traffic_case &c : of_global) {
        emulator_traffic t = run(c.name, c.kernel, {NULL, NULL, c.stride, c.offset, c.lanes}, c.blocks, c.threads);

        expect(c.name, c.stride, "bytes read", t.bytes_read, c.bytes_read);
        expect(c.name, c.stride, "bytes written", t.bytes_written, c.bytes_written);
        expect(c.name, c.stride, "sectors read", t.sectors_read, c.sectors_read);
        expect(c.name, c.stride, "sectors written", t.sectors_written, c.sectors_written);
    }
    for (const bank_case &c : of_shared) {
        emulator_traffic t = run(c.name, c.kernel, {NULL, NULL, c.stride, c.offset, c.lanes}, 1, c.threads);
        uint64_t all = 0;

        for (const emulator_shared &s : t.shared)
            all += s.accesses;
        expect(c.name, c.stride, "accesses", t.shared[c.kind].accesses, c.accesses);
        expect(c.name, c.stride, "accesses of all kinds", all, c.accesses);
        expect(c.name, c.stride, "phases", t.shared[c.kind].phases, c.phases);
        expect(c.name, c.stride, "conflicts", t.shared[c.kind].conflicts, c.conflicts);
    }
    must(cudaFree(memory));
    printf("%u passed, %u failed\n", passed, failed);
    return failed > 0;
}
