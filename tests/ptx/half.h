/*
 * half.h - fp16, bf16 and tf32 as PTX converts them: cvt.rn rounds to nearest even, cvt.rna to nearest with ties away
 * from zero; NaN becomes 0x7fff, of tf32 0x7fffffff
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef PTX_HALF_H
#define PTX_HALF_H

#include <math.h>
#include <stdint.h>
#include <string.h>

namespace ptx
{
struct half {
    uint16_t bits;
};
struct bfloat {
    uint16_t bits;
};

static inline uint32_t
bits_of(float f)
{
    uint32_t bits;

    memcpy(&bits, &f, sizeof(bits));
    return bits;
}

static inline float
float_of_bits(uint32_t bits)
{
    float f;

    memcpy(&f, &bits, sizeof(f));
    return f;
}

static inline float
to_float(bfloat b)
{
    return float_of_bits((uint32_t)b.bits << 16);
}

static inline bfloat
bfloat_of(float f)
{
    uint32_t bits = bits_of(f);

    return {f != f ? (uint16_t)0x7fff : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

static inline float
to_float(half h)
{
    uint32_t sign = (uint32_t)(h.bits & 0x8000) << 16, rest = h.bits & 0x7fff;

    if (rest >= 0x7c00) /* infinity, NaN */
        return float_of_bits(sign | 0x7f800000 | (rest & 0x3ff) << 13);
    /* 2^112 moves the exponent, for subnormal numbers too */
    return float_of_bits(sign | bits_of(float_of_bits(rest << 13) * 0x1p112f));
}

static inline half
half_of(float f)
{
    uint16_t sign = (uint16_t)(bits_of(f) >> 16 & 0x8000);
    float size = fabsf(f);

    if (f != f)
        return {0x7fff};
    if (size >= 65520)
        return {(uint16_t)(sign | 0x7c00)};
    if (size < 0x1p-14f) /* subnormal: a multiple of 2^-24 */
        return {(uint16_t)(sign | (uint16_t)nearbyintf(size * 0x1p24f))};
    uint32_t bits = bits_of(size) - (112u << 23);
    return {(uint16_t)(sign | (bits + 0xfff + (bits >> 13 & 1)) >> 13)};
}

/* The bits of a register with a tf32, whose lower 13 bits are 0. */
static inline uint32_t
tf32_bits(float f)
{
    uint32_t bits = bits_of(f);

    return f != f ? 0x7fffffff : fabsf(f) == INFINITY ? bits : (bits + 0x1000) & ~0x1fffu;
}
} // namespace ptx

#endif
