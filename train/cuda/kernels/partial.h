/*
 * partial.h - the type of wgrad partial sums, between the splits of a product and sum_all
 *
 * Partial sums are written once and read once, so they only cost memory bandwidth.  If values are halves, the sums of
 * several splits are bfloat16; fp16 would overflow or underflow in sums over pixels.  A single split is the gradient
 * itself, and is float.  Conversion rounds to nearest even and keeps infinity and NaN.  Positions count partial sums
 * from `to` or `from`; each has PARTIAL_SIZE() bytes (conv_args.h).  Groups of eight are aligned to eight.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_KERNELS_PARTIAL_H
#define CHEX_CUDA_KERNELS_PARTIAL_H

#include "cuda/kernels/device.h"

namespace
{
#if VALUE_IS_FLOAT
typedef float partial_t;
struct partial8 {
    float4 low, high;
};
#else
typedef uint16_t partial_t;
typedef uint4 partial8;

/* The first value is in the lower half. */
DEVICE unsigned
bf16_two(float low, float high)
{
#if DEVICE_ARCH >= 800 && (defined(__CUDACC__) || defined(__CUDACC_RTC__))
    unsigned two;

    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(high), "f"(low));
    return two;
#else
    return bf16_of(low) | (unsigned)bf16_of(high) << 16;
#endif
}

DEVICE float2
bf16_floats(unsigned two)
{
    return {__uint_as_float(two << 16), __uint_as_float(two & 0xffff0000u)};
}
#endif

DEVICE void
partial_store2(partial_t *to, float low, float high)
{
#if VALUE_IS_FLOAT
    *(float2 *)(void *)to = {low, high};
#else
    *(unsigned *)(void *)to = bf16_two(low, high);
#endif
}

DEVICE partial_t
partial_of(float x)
{
#if VALUE_IS_FLOAT
    return x;
#else
    return (partial_t)bf16_two(x, x);
#endif
}

DEVICE partial8
partial_load8(const partial_t *from)
{
    return *(const partial8 *)(const void *)from;
}

DEVICE void
partial_store8(partial_t *to, const partial8 &v)
{
    *(partial8 *)(void *)to = v;
}

DEVICE void
partial_add8(float *sum, const partial8 &v)
{
#if VALUE_IS_FLOAT
    const float x[8] = {v.low.x, v.low.y, v.low.z, v.low.w, v.high.x, v.high.y, v.high.z, v.high.w};
#else
    const float2 a = bf16_floats(v.x), b = bf16_floats(v.y), c = bf16_floats(v.z), d = bf16_floats(v.w);
    const float x[8] = {a.x, a.y, b.x, b.y, c.x, c.y, d.x, d.y};
#endif

#pragma unroll
    for (unsigned i = 0; i < 8; i++)
        sum[i] += x[i];
}

DEVICE float2
partial_load2(const partial_t *from)
{
#if VALUE_IS_FLOAT
    return *(const float2 *)(const void *)from;
#else
    return bf16_floats(*(const unsigned *)(const void *)from);
#endif
}
} // namespace

#endif
