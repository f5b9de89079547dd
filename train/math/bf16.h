/*
 * bf16.h - bfloat16 on CPUs: conversion, and sums of products exactly as the instruction vdpbf16ps computes them
 *
 * A bf16 is the upper half of a float: 8 bits of exponent, 7 of fraction.  The functions below give the same bits on
 * every machine as the instructions of AVX-512 BF16 (vcvtneps2bf16, vdpbf16ps), for all values except the payload of a
 * NaN:
 *
 * - Conversion rounds to nearest, ties to even.  A denormal float becomes 0 with its sign.  A NaN stays a NaN.
 * - A pair holds two bf16 in a 32-bit word: the first in the lower half, the second in the upper half.  bf16_dot() adds
 *   the product of the second elements, then that of the first.  Each of the two steps is one fused multiply-add,
 *   rounded to nearest.  A result that is denormal becomes 0 with its sign.  Denormal means: below 2^-126 after
 *   rounding to 24 bits.  The instruction also reads denormal operands as 0; here no operand is denormal, because
 *   bf16_round() has made all of them.
 *
 * vdpbf16ps ignores the rounding mode of the thread.  fmaf() does not, but no part of the program changes that mode.
 *
 * Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, VDPBF16PS.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_BF16_H
#define CHEX_TRAIN_BF16_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define BF16_SIGN  0x80000000u
#define BF16_LEAST 0x00800000u /* bits of 2^-126, the least normal float */
#define BF16_INF   0x7f800000u

static inline uint32_t
float_bits(float f)
{
    uint32_t u;

    memcpy(&u, &f, sizeof(u));
    return u;
}

static inline float
bits_float(uint32_t u)
{
    float f;

    memcpy(&f, &u, sizeof(f));
    return f;
}

static inline uint16_t
bf16_round(float f)
{
    uint32_t u = float_bits(f), size = u & ~BF16_SIGN;

    if (size < BF16_LEAST)
        return (uint16_t)((u & BF16_SIGN) >> 16);
    if (size > BF16_INF)
        return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static inline float
bf16_float(uint16_t h)
{
    return bits_float((uint32_t)h << 16);
}

/*
 * Returns fused = fmaf(a, b, c), or 0 with its sign if that is denormal before fmaf() rounds it to a multiple of
 * 2^-149.  Only results of 2^-126 itself need a second look: they may have been less.  Less than T = 2^-126 - 2^-151
 * rounds to less than 2^-126 in 24 bits.  T - |c| is exact in double, and so is the product.
 */
static inline float
bf16_flush(float fused, float a, float b, float c)
{
    uint32_t u = float_bits(fused), size = u & ~BF16_SIGN;
    double sign = u & BF16_SIGN ? -1 : 1;

    if (size < BF16_LEAST ||
        (size == BF16_LEAST && sign * (double)a * (double)b < 0x1p-126 - 0x1p-151 - sign * (double)c))
        return bits_float(u & BF16_SIGN);
    return fused;
}

/* Returns sum + x1 w1 + x0 w0 of two pairs, as vdpbf16ps. */
static inline float
bf16_dot(float sum, uint32_t x, uint32_t w)
{
    float x1 = bits_float(x & 0xffff0000u), w1 = bits_float(w & 0xffff0000u);
    float x0 = bits_float(x << 16), w0 = bits_float(w << 16);

    sum = bf16_flush(fmaf(x1, w1, sum), x1, w1, sum);
    return bf16_flush(fmaf(x0, w0, sum), x0, w0, sum);
}

#endif
