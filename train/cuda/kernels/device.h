/*
 * device.h - the common language of the kernels: one source for nvcc, NVRTC and the emulator
 *
 * CUDA_VALUE is the type of activations and packed weights: fp16, bf16, tf32 or, only in the emulator, float.  It is a
 * part of a kernel's name, so one program can contain all of them.  tf32 values are floats in memory; products round
 * them to ten bits of mantissa (tile.h).  DEVICE_ARCH is 700, 750, or 800 and higher; tf32 needs 800.  HAS_LDMATRIX and
 * HAS_ASYNC_COPY say what an architecture has; tile.h and copy8() replace what it lacks.
 *
 * A kernel takes one struct (args.h).  This header and those that use it put everything into an unnamed namespace, so
 * each file has its own copy for its own CUDA_VALUE.
 *
 * Every kernel starts with the wait of programmatic dependent launch (sm_90 and newer), because it may start while the
 * preceding kernel is still running (cuda_launch_early()).  No thread accesses device memory before that wait.  So a
 * kernel ends after the preceding one, and waiting for a kernel includes all kernels before it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_KERNELS_DEVICE_H
#define CHEX_CUDA_KERNELS_DEVICE_H

#define CUDA_VALUE_IS_fp16  1
#define CUDA_VALUE_IS_bf16  2
#define CUDA_VALUE_IS_float 3
#define CUDA_VALUE_IS_tf32  4
#define CUDA_JOIN_(a, b)    a##b
#define CUDA_JOIN(a, b)     CUDA_JOIN_(a, b)
#define CUDA_VALUE_IS(type) (CUDA_JOIN(CUDA_VALUE_IS_, CUDA_VALUE) == CUDA_VALUE_IS_##type)
#define VALUE_IS_FLOAT      (CUDA_VALUE_IS(float) || CUDA_VALUE_IS(tf32)) /* in memory */
#define KERNEL_NAME(name)   CUDA_JOIN(name##_, CUDA_VALUE)
#define KERNEL_BODY(name)   CUDA_JOIN(name##_body_, CUDA_VALUE)

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define DEVICE_ARCH __CUDA_ARCH__
#elif !defined(DEVICE_ARCH)
#define DEVICE_ARCH 800
#endif
/* sm_75: ldmatrix and mma.m16n8k8.  sm_80: cp.async, mma.m16n8k16 and bf16.  0 or 1, also for the host code of nvcc. */
#if DEVICE_ARCH >= 800
#define HAS_LDMATRIX   1
#define HAS_ASYNC_COPY 1
#elif DEVICE_ARCH >= 750
#define HAS_LDMATRIX   1
#define HAS_ASYNC_COPY 0
#else
#define HAS_LDMATRIX   0
#define HAS_ASYNC_COPY 0
#endif

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#include <cuda_fp16.h>
#if CUDA_VALUE_IS(bf16)
#include <cuda_bf16.h>
#endif
#include "cuda/kernels/args.h"
#define DEVICE static __device__ __forceinline__
#define KERNEL(name, type, threads, blocks)                                                                         \
    DEVICE void KERNEL_BODY(name)(const type &a);                                                                   \
    extern "C" __global__ void __launch_bounds__(threads, blocks) KERNEL_NAME(name)(const __grid_constant__ type a) \
    {                                                                                                               \
        wait_for_kernels();                                                                                         \
        KERNEL_BODY(name)(a);                                                                                       \
    }                                                                                                               \
    DEVICE void KERNEL_BODY(name)(const type &a)
#define SHARED_BYTES(name)                                             \
    extern __shared__ __align__(128) unsigned char all_shared_bytes[]; \
    unsigned char *name = all_shared_bytes
namespace
{
#if CUDA_VALUE_IS(bf16)
typedef __nv_bfloat16 value_t;
DEVICE float
to_float(value_t v)
{
    return __bfloat162float(v);
}
DEVICE value_t
to_value(float f)
{
    return __float2bfloat16_rn(f);
}
#elif CUDA_VALUE_IS(tf32)
typedef float value_t;
DEVICE float
to_float(value_t v)
{
    return v;
}
DEVICE value_t
to_value(float f)
{
    return f;
}
#else
typedef __half value_t;
DEVICE float
to_float(value_t v)
{
    return __half2float(v);
}
DEVICE value_t
to_value(float f)
{
    return __float2half_rn(f);
}
#endif
/*
 * Waits until the preceding kernels have ended and their stores are visible.  Then allows the next kernel to start,
 * which waits in turn.
 */
DEVICE void
wait_for_kernels()
{
#if DEVICE_ARCH >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

DEVICE unsigned
lane_id()
{
    return threadIdx.x & 31;
}

DEVICE unsigned
shared_address(const void *p)
{
    return (unsigned)__cvta_generic_to_shared(p);
}

/* Copies eight values to shared memory asynchronously, or zeros if not valid; complete after copy_wait(). */
DEVICE void
copy8(value_t *to, const value_t *from, bool valid)
{
#if HAS_ASYNC_COPY
#pragma unroll
    for (unsigned i = 0; i < 8; i += 16 / sizeof(value_t))
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to + i)), "l"(from + i),
                     "r"(valid ? 16 : 0)
                     : "memory");
#else
    *(uint4 *)to = valid ? *(const uint4 *)from : make_uint4(0, 0, 0, 0);
#endif
}

DEVICE void
copy_commit()
{
#if HAS_ASYNC_COPY
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

template <int groups_left>
DEVICE void
copy_wait()
{
#if HAS_ASYNC_COPY
    asm volatile("cp.async.wait_group %0;" ::"n"(groups_left) : "memory");
#endif
}

#if CUDA_VALUE_IS(tf32)
/* Eight consecutive values: two accesses of 16 bytes. */
union value8 {
    float4 half[2];
    value_t at[8];
    __device__ value8()
    {
    }
};
DEVICE void
load8(value8 &v, const value_t *from)
{
    v.half[0] = ((const float4 *)from)[0];
    v.half[1] = ((const float4 *)from)[1];
}
DEVICE void
store8(value_t *to, const value8 &v)
{
    ((float4 *)to)[0] = v.half[0];
    ((float4 *)to)[1] = v.half[1];
}
/* As below; only the host code of nvcc, which belongs to no architecture, refers to it. */
DEVICE void
fetch8(value8 &v, const value_t *from, bool valid)
{
    v.half[0] = valid ? ((const float4 *)from)[0] : make_float4(0, 0, 0, 0);
    v.half[1] = valid ? ((const float4 *)from)[1] : make_float4(0, 0, 0, 0);
}
DEVICE void
unpack8(float *to, const value8 &v)
{
#pragma unroll
    for (unsigned i = 0; i < 8; i++)
        to[i] = v.at[i];
}
DEVICE void
pack8(value8 &v, const float *from)
{
#pragma unroll
    for (unsigned i = 0; i < 8; i++)
        v.at[i] = from[i];
}
DEVICE void
store2(value_t *to, float low, float high)
{
    *(float2 *)to = make_float2(low, high);
}
#else
/* Eight consecutive values: one access of 16 bytes. */
union value8 {
    uint4 all;
    value_t at[8];
    __device__ value8()
    {
    }
};
DEVICE void
load8(value8 &v, const value_t *from)
{
    v.all = *(const uint4 *)from;
}
DEVICE void
store8(value_t *to, const value8 &v)
{
    *(uint4 *)to = v.all;
}
/* Loads eight values, or zeros if not valid; with store8() after other work, it replaces copy8() before sm_80. */
DEVICE void
fetch8(value8 &v, const value_t *from, bool valid)
{
    v.all = valid ? *(const uint4 *)from : make_uint4(0, 0, 0, 0);
}

/* Converts eight values to floats and back, two per instruction. */
#if CUDA_VALUE_IS(bf16)
typedef __nv_bfloat162 value2;
#define VALUE2_FLOATS __bfloat1622float2
#define FLOATS_VALUE2 __floats2bfloat162_rn
#else
typedef __half2 value2;
#define VALUE2_FLOATS __half22float2
#define FLOATS_VALUE2 __floats2half2_rn
#endif
DEVICE void
unpack8(float *to, const value8 &v)
{
#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
        float2 two = VALUE2_FLOATS(*(const value2 *)(v.at + 2 * i));

        to[2 * i] = two.x;
        to[2 * i + 1] = two.y;
    }
}
DEVICE void
pack8(value8 &v, const float *from)
{
#pragma unroll
    for (unsigned i = 0; i < 4; i++)
        *(value2 *)(v.at + 2 * i) = FLOATS_VALUE2(from[2 * i], from[2 * i + 1]);
}
DEVICE void
store2(value_t *to, float low, float high)
{
    *(value2 *)to = FLOATS_VALUE2(low, high);
}
#endif
} // namespace

#else /* the emulator */
#include "cuda/kernels/args.h"
#include <emulated.h>
#define DEVICE static inline
#define KERNEL(name, type, threads, blocks)              \
    DEVICE void KERNEL_BODY(name)(const type &a);        \
    EMULATED_KERNEL_AS(KERNEL_NAME(name), type, threads) \
    {                                                    \
        emulated::wait_for_kernels(EMULATED_HERE);       \
        KERNEL_BODY(name)(a);                            \
    }                                                    \
    DEVICE void KERNEL_BODY(name)(const type &a)
#define EMULATED_KERNEL_AS(name, type, threads) EMULATED_KERNEL(name, type, threads)
#define SHARED_BYTES(name)                      unsigned char *name = emulated::self->shared
namespace
{
#if CUDA_VALUE_IS(fp16)
typedef emulated::fp16 value_t;
#elif CUDA_VALUE_IS(bf16)
typedef emulated::bf16 value_t;
#else
typedef float value_t;
#endif
using emulated::to_float;
DEVICE value_t
to_value(float f)
{
    value_t v;

    emulated::from_float(v, f);
    return v;
}
DEVICE unsigned
lane_id()
{
    return emulated::self->lane;
}
/* Before sm_80 it is an ordinary access: it orders nothing and needs no wait. */
DEVICE void
copy8(value_t *to, const value_t *from, bool valid, emulated::place at = EMULATED_HERE)
{
    for (unsigned i = 0; i < 8; i += 16 / sizeof(value_t)) {
#if HAS_ASYNC_COPY
        emulated::copy_async(to + i, from + i, 16, valid ? 16 : 0, at);
#else
        emulated::check_aligned(valid ? from : to, 16, at);
        for (unsigned k = 0; k < 16 / sizeof(value_t); k++)
            to[i + k] = valid ? from[i + k] : value_t{};
#endif
    }
}
DEVICE void
copy_commit()
{
    emulated::copy_commit();
}
template <int groups_left>
DEVICE void
copy_wait()
{
    emulated::copy_wait(groups_left);
}
struct alignas(16) value8 {
    value_t at[8];
};
DEVICE void
load8(value8 &v, const value_t *from, emulated::place at = EMULATED_HERE)
{
    emulated::load_whole(v, from, at);
}
DEVICE void
store8(value_t *to, const value8 &v, emulated::place at = EMULATED_HERE)
{
    emulated::store_whole(to, v, at);
}
DEVICE void
fetch8(value8 &v, const value_t *from, bool valid, emulated::place at = EMULATED_HERE)
{
    v = value8{};
    if (valid)
        emulated::load_whole(v, from, at);
}
DEVICE void
unpack8(float *to, const value8 &v)
{
    for (unsigned i = 0; i < 8; i++)
        to[i] = to_float(v.at[i]);
}
DEVICE void
pack8(value8 &v, const float *from)
{
    for (unsigned i = 0; i < 8; i++)
        v.at[i] = to_value(from[i]);
}
DEVICE void
store2(value_t *to, float low, float high)
{
    to[0] = to_value(low);
    to[1] = to_value(high);
}
} // namespace
#endif

namespace
{
/* Rounds to the nearest bfloat16, ties to even.  Overflow becomes infinity, NaN stays NaN. */
DEVICE uint16_t
bf16_of(float x)
{
    unsigned bits = __float_as_uint(x);

    if (x != x)
        return 0x7fff;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Returns the entry to which a CTA belongs; each entry has CTAs first_block .. first_block of the next entry - 1. */
template <typename T>
DEVICE const T &
entry_of_block(const T *entry, unsigned entries, unsigned block)
{
    unsigned low = 0, high = entries;

    while (high - low > 1) { /* binary search for the last entry with first_block <= block */
        unsigned middle = (low + high) / 2;

        if (entry[middle].first_block <= block)
            low = middle;
        else
            high = middle;
    }
    return entry[low];
}
} // namespace

#endif
