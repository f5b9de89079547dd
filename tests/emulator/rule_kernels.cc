/*
 * rule_kernels.cc - see rule_kernels.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rule_kernels.h"

#include "emulated.h"

using emulated::bf16;
using emulated::fp16;

#define SHARED_FLOATS ((float *)(void *)emulated::self->shared)

EMULATED_KERNEL(block_barrier, rule, 1024)
{
    float *s = SHARED_FLOATS;
    unsigned t = threadIdx.x;

    s[t] = a.in[t];
    if (!a.broken)
        __syncthreads();
    a.out[t] = s[RULE_THREADS - 1 - t];
}

EMULATED_KERNEL(warp_barrier, rule, 1024)
{
    float *s = SHARED_FLOATS;
    unsigned t = threadIdx.x;

    s[t] = a.in[t];
    if (!a.broken)
        __syncwarp();
    a.out[t] = s[t ^ 31];
}

EMULATED_KERNEL(places_of_blocks, rule, 1024)
{
    if (threadIdx.x == 0)
        a.out[a.broken ? 0 : blockIdx.x] = (float)blockIdx.x;
}

EMULATED_KERNEL(blocks_in_a_row, rule, 1024)
{
    if (threadIdx.x == 0)
        a.out[blockIdx.x + 1] = a.broken ? a.out[blockIdx.x] + 1 : (float)(blockIdx.x + 1);
}

/* Thread t starts the copy of 16 bytes of `in`, group t / 4, to shared memory. */
static void
begin_copy(const rule &a, unsigned t)
{
    if (t < RULE_THREADS / 4)
        emulated::copy_async(SHARED_FLOATS + t * 4, a.in + t * 4, 16, 16, EMULATED_HERE);
    emulated::copy_commit();
}

EMULATED_KERNEL(async_wait, rule, 1024)
{
    unsigned t = threadIdx.x;
    float early;

    begin_copy(a, t);
    if (!a.broken)
        emulated::copy_wait(0);
    __syncthreads();
    early = SHARED_FLOATS[t ^ 1];
    emulated::copy_wait(0);
    a.out[t] = early;
}

EMULATED_KERNEL(async_group, rule, 1024)
{
    unsigned t = threadIdx.x;
    float early;

    if (t == 0)
        emulated::copy_async(SHARED_FLOATS + RULE_THREADS, a.in, 16, 0, EMULATED_HERE);
    emulated::copy_commit();
    begin_copy(a, t);
    emulated::copy_wait(a.broken ? 1 : 0);
    __syncthreads();
    early = SHARED_FLOATS[t ^ 1] + SHARED_FLOATS[RULE_THREADS + t % 4]; /* zeros: none of the 16 bytes was valid */
    emulated::copy_wait(0);
    a.out[t] = early;
}

EMULATED_KERNEL(async_forgotten, rule, 1024)
{
    unsigned t = threadIdx.x;

    begin_copy(a, t);
    emulated::copy_wait(0);
    __syncthreads();
    a.out[t] = SHARED_FLOATS[t ^ 1];
    if (a.broken && t == 5)
        emulated::copy_async(SHARED_FLOATS + RULE_THREADS, a.in, 16, 16, EMULATED_HERE);
}

EMULATED_KERNEL(async_early, rule, 1024)
{
    unsigned t = threadIdx.x;

    begin_copy(a, t);
    emulated::copy_wait(0);
    __syncthreads();
    a.out[t] = SHARED_FLOATS[t ^ 63];
    if (!a.broken)
        __syncthreads();
    begin_copy(a, t);
    __syncthreads();
    emulated::copy_wait(0);
}

EMULATED_KERNEL(tensor_end, rule, 1024)
{
    unsigned t = threadIdx.x;

    a.out[t] = a.in[a.broken ? t + RULE_THREADS : t];
}

EMULATED_KERNEL(shared_end, rule, 1024)
{
    float *s = SHARED_FLOATS;
    unsigned t = threadIdx.x;

    s[a.broken ? t + RULE_THREADS : t] = a.in[t];
    __syncthreads();
    a.out[t] = s[RULE_THREADS - 1 - t];
}

EMULATED_KERNEL(vector_access, rule, 1024)
{
    unsigned t = threadIdx.x;

    if (t < RULE_THREADS / 4 - 1)
        *(float4 *)(void *)(a.out + t * 4) = *(const float4 *)(const void *)(a.in + t * 4 + a.broken);
}

EMULATED_KERNEL(same_barrier, rule, 1024)
{
    float *s = SHARED_FLOATS;
    unsigned t = threadIdx.x;

    s[t] = a.in[t];
    if (a.broken && t < 32)
        __syncthreads();
    else
        __syncthreads();
    a.out[t] = s[RULE_THREADS - 1 - t];
}

EMULATED_KERNEL(all_at_barrier, rule, 1024)
{
    float *s = SHARED_FLOATS;
    unsigned t = threadIdx.x;

    s[t] = a.in[t];
    if (a.broken && t < 3)
        return;
    __syncthreads();
    a.out[t] = s[RULE_THREADS - 1 - t];
}

EMULATED_KERNEL(all_in_shuffle, rule, 1024)
{
    unsigned t = threadIdx.x;

    if (a.broken && t % 32 >= 16)
        return;
    a.out[t] = __shfl_xor_sync(0xffffffffu, a.in[t], 1);
}

EMULATED_KERNEL(lane_of_mask, rule, 1024)
{
    unsigned t = threadIdx.x;

    a.out[t] = a.in[t ^ 1];
    if (t % 32 < 16)
        a.out[t] = __shfl_xor_sync(0xffffu, a.in[t], a.broken ? 16 : 1);
}

EMULATED_KERNEL(initialised_shared, rule, 1024)
{
    float *s = SHARED_FLOATS;
    unsigned t = threadIdx.x;

    if (!a.broken)
        s[t] = 0;
    a.out[t] = s[t];
}

EMULATED_KERNEL(matrix_row, rule, 1024)
{
    fp16 out[2];
    unsigned char *s = emulated::self->shared;
    unsigned t = threadIdx.x;

    ((uint32_t *)(void *)s)[t] = 0x3c003c00u; /* ones */
    ((uint32_t *)(void *)s)[t + RULE_THREADS] = 0x3c003c00u;
    __syncthreads();
    emulated::ldmatrix(out, 1, false, s + t % 8 * 16 + (a.broken ? 2 : 0), EMULATED_HERE);
    a.out[t] = to_float(out[0]);
}

EMULATED_KERNEL(waits_first, rule, 1024)
{
    unsigned t = threadIdx.x;
    float early = a.broken ? a.in[t] : 0;

    emulated::wait_for_kernels(EMULATED_HERE);
    a.out[t] = a.broken ? early : a.in[t];
}

EMULATED_KERNEL(all_wait, rule, 1024)
{
    unsigned t = threadIdx.x;

    if (a.broken && t == 5)
        return;
    emulated::wait_for_kernels(EMULATED_HERE);
    a.out[t] = a.in[t];
}

EMULATED_KERNEL(votes, rule, 1024)
{
    unsigned t = threadIdx.x;
    float *out = a.out + t * 5;

    out[0] = (float)(__ballot_sync(0xffffffffu, t % 3 == 0) & 0xffff);
    out[1] = (float)__any_sync(0xffffffffu, t == 40);
    out[2] = (float)__all_sync(0xffffffffu, t < 32);
    out[3] = __shfl_up_sync(0xffffffffu, (float)t, 3u);
    out[4] = __shfl_down_sync(0xffffffffu, (float)t, 3u);
}

EMULATED_KERNEL(atomics, rule, 1024)
{
    unsigned *out = (unsigned *)(void *)a.out;

    atomicAdd(out, 1u);
    atomicAdd(a.out + 1, (float)threadIdx.x);
    atomicMax(out + 2, threadIdx.x);
}

EMULATED_KERNEL(shape, rule, 1024)
{
    unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    unsigned t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    unsigned n = block * blockDim.x * blockDim.y * blockDim.z + t;

    a.out[n] = (float)n;
}

template <typename T>
static void
product_16816_of(const product &a)
{
    T fa[8], fb[4];
    float d[4] = {0};
    unsigned lane = threadIdx.x;

    memcpy(fa, a.a + lane * 8, sizeof(fa));
    memcpy(fb, a.b + lane * 4, sizeof(fb));
    emulated::mma_16816(d, fa, fb, EMULATED_HERE);
    for (unsigned i = 0; i < 4; i++)
        a.out[lane * 4 + i] = d[i];
}

EMULATED_KERNEL(product_16816, product, 32)
{
    if (a.bf16)
        product_16816_of<bf16>(a);
    else
        product_16816_of<fp16>(a);
}

EMULATED_KERNEL(product_1688, product, 32)
{
    fp16 fa[4], fb[2];
    float d[4] = {0};
    unsigned lane = threadIdx.x;

    memcpy(fa, a.a + lane * 4, sizeof(fa));
    memcpy(fb, a.b + lane * 2, sizeof(fb));
    emulated::mma_1688(d, fa, fb, EMULATED_HERE);
    for (unsigned i = 0; i < 4; i++)
        a.out[lane * 4 + i] = d[i];
}

EMULATED_KERNEL(product_tf32, product, 32)
{
    float fa[4], fb[2], d[4] = {0};
    unsigned lane = threadIdx.x;

    memcpy(fa, a.a + lane * 8, sizeof(fa));
    memcpy(fb, a.b + lane * 4, sizeof(fb));
    emulated::mma_1688_tf32(d, fa, fb, EMULATED_HERE);
    for (unsigned i = 0; i < 4; i++)
        a.out[lane * 4 + i] = d[i];
}

EMULATED_KERNEL(product_884, product, 32)
{
    fp16 fa[4], fb[4];
    float d[8] = {0};
    unsigned lane = threadIdx.x;

    memcpy(fa, a.a + lane * 8, sizeof(fa));
    memcpy(fb, a.b + lane * 4, sizeof(fb));
    emulated::mma_884(d, fa, fb, a.transposed_a, a.transposed_b, EMULATED_HERE);
    for (unsigned i = 0; i < 8; i++)
        a.out[lane * 8 + i] = d[i];
}

template <typename T>
static void
product_loaded_of(const product &a)
{
    T *s = (T *)(void *)emulated::self->shared, fa[8], fb[4];
    float d[4] = {0};
    unsigned lane = threadIdx.x;

    for (unsigned i = lane; i < 256; i += 32)
        s[i].bits = a.a[i];
    for (unsigned i = lane; i < 128; i += 32)
        s[256 + i].bits = a.b[i];
    __syncwarp();
    if (a.transposed_a) /* [k][m]: matrices (m 0, k 0), (m 8, k 0), (m 0, k 8), (m 8, k 8) */
        ldmatrix(fa, 4, true, s + (lane % 8 + lane / 16 * 8) * 16 + lane / 8 % 2 * 8, EMULATED_HERE);
    else
        ldmatrix(fa, 4, false, s + lane % 16 * 16 + lane / 16 * 8, EMULATED_HERE);
    if (a.transposed_b) /* [k][n] */
        ldmatrix(fb, 2, true, s + 256 + lane % 16 * 8, EMULATED_HERE);
    else
        ldmatrix(fb, 2, false, s + 256 + lane % 8 * 16 + lane / 8 % 2 * 8, EMULATED_HERE);
    emulated::mma_16816(d, fa, fb, EMULATED_HERE);
    for (unsigned i = 0; i < 4; i++)
        a.out[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = d[i];
}

EMULATED_KERNEL(product_loaded, product, 32)
{
    if (a.bf16)
        product_loaded_of<bf16>(a);
    else
        product_loaded_of<fp16>(a);
}

EMULATED_KERNEL(load_matrices, load, 32)
{
    uint16_t *s = (uint16_t *)(void *)emulated::self->shared;
    fp16 out[8];
    unsigned lane = threadIdx.x;

    for (unsigned i = lane; i < a.count * 64; i += 32)
        s[i] = a.in[i];
    __syncwarp();
    ldmatrix(out, a.count, a.transposed, s + lane % (a.count * 8) * 8, EMULATED_HERE);
    for (unsigned i = 0; i < 2 * a.count; i++)
        a.out[lane * 2 * a.count + i] = out[i].bits;
}
