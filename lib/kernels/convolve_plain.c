/*
 * convolve_plain.c - convolution in plain C; the tests compare the vector versions with it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/convolve_private.h"

/* Conversion to signed is modulo 2^32 and >> of a negative number arithmetic in gcc and clang. */
static uint8_t
to_byte(uint32_t sum)
{
    int32_t value = (int32_t)(sum + (1u << (RESAMPLE_PRECISION - 1))) >> RESAMPLE_PRECISION;

    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

uint8_t
convolve_wide_one(const uint8_t *from, size_t stride, const struct wide_factors *f)
{
    uint32_t sum = 0;

    for (uint32_t t = 0; t < f->count; t++, from += stride)
        sum += *from * ((uint32_t)f->high[t] << RESAMPLE_LOW_BITS | (uint32_t)f->low[t]);
    return to_byte(sum);
}

uint8_t
convolve_small_one(const uint8_t *from, size_t stride, const struct small_factors *f)
{
    uint32_t sum = (1u << f->bits) >> 1;

    for (uint32_t t = 0; t < f->count; t++, from += stride)
        sum += (uint32_t)f->factor[t] * *from;
    sum >>= f->bits;
    return (uint8_t)(sum > 255 ? 255 : sum);
}

void
convolve_small_columns_c(const uint8_t *from, size_t stride, const struct small_factors *f, uint32_t width,
                         uint8_t *out)
{
    for (uint32_t x = 0; x < width; x++)
        out[x] = convolve_small_one(from + x, stride, f);
}

void
convolve_small_rows_c(const uint8_t *from, const struct small_factors *f, uint32_t count, uint8_t *out)
{
    for (uint32_t o = 0; o < count; o++)
        out[o] = convolve_small_one(from + 4 * (size_t)o, 1, f);
}
