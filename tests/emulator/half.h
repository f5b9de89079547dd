/*
 * half.h - fp16 and bf16 to float and back, rounded to nearest even; float to tf32
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EMULATOR_HALF_H
#define EMULATOR_HALF_H

#include <math.h>
#include <stdint.h>
#include <string.h>
#ifdef __F16C__
#include <immintrin.h>
#endif

namespace emulated
{
struct fp16 {
    uint16_t bits;
};
struct bf16 {
    uint16_t bits;
};

static inline uint32_t
bits_of(float f)
{
    uint32_t bits;

    memcpy(&bits, &f, 4);
    return bits;
}

static inline float
float_of(uint32_t bits)
{
    float f;

    memcpy(&f, &bits, 4);
    return f;
}

static inline float
fp16_to_float_plain(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, magnitude = h & 0x7fffu;

    if (magnitude >= 0x7c00)
        return float_of(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
    if (magnitude >= 0x400)
        return float_of(sign | ((magnitude << 13) + (112u << 23)));
    return float_of(sign | bits_of((float)magnitude * 0x1p-24f));
}

static inline uint16_t
float_to_fp16_plain(float f)
{
    uint32_t bits = bits_of(f), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;

    if (magnitude > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
    if (magnitude >= 0x477ff000)
        return (uint16_t)(sign | 0x7c00);
    if (magnitude < 0x38800000)
        return (uint16_t)(sign | (uint32_t)nearbyintf(float_of(magnitude) * 0x1p24f));
    magnitude += 0xfff + (magnitude >> 13 & 1);
    return (uint16_t)(sign | (magnitude - (112u << 23)) >> 13);
}

static inline float
to_float(fp16 h)
{
#ifdef __F16C__
    return _cvtsh_ss(h.bits);
#else
    return fp16_to_float_plain(h.bits);
#endif
}

static inline void
from_float(fp16 &h, float f)
{
#ifdef __F16C__
    h.bits = (uint16_t)_cvtss_sh(f, 0);
#else
    h.bits = float_to_fp16_plain(f);
#endif
}

static inline float
to_float(bf16 h)
{
    return float_of((uint32_t)h.bits << 16);
}

static inline void
from_float(bf16 &h, float f)
{
    uint32_t bits = bits_of(f);

    if ((bits & 0x7fffffff) > 0x7f800000)
        h.bits = (uint16_t)(bits >> 16 | 0x40);
    else
        h.bits = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* PTX ISA, cvt.rna.tf32: to the nearest value of ten bits of mantissa, ties away from zero. */
static inline float
to_tf32(float f)
{
    uint32_t bits = bits_of(f);

    if (f != f)
        return float_of(0x7fffffff);
    if ((bits & 0x7fffffff) == 0x7f800000)
        return f;
    return float_of((bits + 0x1000) & ~0x1fffu);
}

static inline float
to_float(float f)
{
    return f;
}

static inline void
from_float(float &to, float f)
{
    to = f;
}
} // namespace emulated

#endif
