/*
 * convolve_neon.c - the kernels of convolve_private.h in NEON
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/convolve_private.h"

#ifdef CONVOLVE_HAVE_NEON

#include <arm_neon.h>

#define WIDTH 16

/* ---- small factors ------------------------------------------------------------------------------------------- */

/* Factors are 0 .. 128 and sums are below 2^15, so unsigned arithmetic is enough. */
static inline uint8x16_t
to_bytes(uint16x8_t first, uint16x8_t second, unsigned bits)
{
    int16x8_t shift = vdupq_n_s16((int16_t) - (int)bits);

    /* vrshl adds one half before it shifts; a shift by 0 changes nothing. */
    return vcombine_u8(vqmovn_u16(vrshlq_u16(first, shift)), vqmovn_u16(vrshlq_u16(second, shift)));
}

static inline void
columns(const uint8_t *from, size_t stride, const struct small_factors *f, uint8_t *out)
{
    uint16x8_t first = vdupq_n_u16(0), second = first;
    uint32_t t;

    for (t = 0; t < f->count; t++, from += stride) {
        uint8x16_t v = vld1q_u8(from);
        uint8x8_t factor = vdup_n_u8((uint8_t)f->factor[t]);

        first = vmlal_u8(first, vget_low_u8(v), factor);
        second = vmlal_u8(second, vget_high_u8(v), factor);
    }
    vst1q_u8(out, to_bytes(first, second, f->bits));
}

void
convolve_small_columns_neon(const uint8_t *from, size_t stride, const struct small_factors *f, uint32_t width,
                            uint8_t *out)
{
    ptrdiff_t x = 0, end = (ptrdiff_t)width;

    for (; end - x >= WIDTH; x += WIDTH)
        columns(from + x, stride, f, out + x);
    /* Compute the last WIDTH samples again, so that a whole register ends at the last one. */
    if (x < end && end >= WIDTH)
        columns(from + end - WIDTH, stride, f, out + end - WIDTH), x = end;
    for (; x < end; x++)
        out[x] = convolve_small_one(from + x, stride, f);
}

/* vld4 splits the samples by their index modulo 4. */
static inline void
row(const uint8_t *from, const struct small_factors *f, uint8_t *out)
{
    uint16x8_t first = vdupq_n_u16(0), second = first;
    int group, i;

    for (group = 0; group < 8; group += 4) {
        uint8x16x4_t v = vld4q_u8(from + group);

        for (i = 0; i < 4; i++) {
            uint8x8_t factor = vdup_n_u8((uint8_t)f->factor[group + i]);

            first = vmlal_u8(first, vget_low_u8(v.val[i]), factor);
            second = vmlal_u8(second, vget_high_u8(v.val[i]), factor);
        }
    }
    vst1q_u8(out, to_bytes(first, second, f->bits));
}

void
convolve_small_rows_neon(const uint8_t *from, const struct small_factors *f, uint32_t count, uint8_t *out)
{
    ptrdiff_t x = 0, end = (ptrdiff_t)count;

    for (; end - x >= WIDTH; x += WIDTH)
        row(from + 4 * x, f, out + x);
    if (x < end && end >= WIDTH)
        row(from + 4 * (end - WIDTH), f, out + end - WIDTH), x = end;
    for (; x < end; x++)
        out[x] = convolve_small_one(from + 4 * x, 1, f);
}

/* ---- factors of any size ------------------------------------------------------------------------------------- */

/* Join the sums of the two parts and round, as convolve_wide_one() does. */
static inline int16x4_t
join(int32x4_t high, int32x4_t low)
{
    const int32x4_t half = vdupq_n_s32(1 << (RESAMPLE_PRECISION - 1));
    int32x4_t sum = vaddq_s32(vshlq_n_s32(high, RESAMPLE_LOW_BITS), low);

    return vmovn_s32(vshrq_n_s32(vaddq_s32(sum, half), RESAMPLE_PRECISION));
}

/* coarse: all low parts are 0; it is a constant wherever this function is expanded. */
static inline void
wide(const uint8_t *from, size_t stride, const struct wide_factors *f, bool coarse, uint8_t *out)
{
    const int32x4_t zero = vdupq_n_s32(0);
    int32x4_t high0 = zero, high1 = zero, high2 = zero, high3 = zero, low0 = zero, low1 = zero, low2 = zero,
              low3 = zero;
    uint32_t t;

    for (t = 0; t < f->count; t++, from += stride) {
        uint8x16_t v = vld1q_u8(from);
        int16x8_t first = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(v)));
        int16x8_t second = vreinterpretq_s16_u16(vmovl_u8(vget_high_u8(v)));

        high0 = vmlal_n_s16(high0, vget_low_s16(first), f->high[t]);
        high1 = vmlal_n_s16(high1, vget_high_s16(first), f->high[t]);
        high2 = vmlal_n_s16(high2, vget_low_s16(second), f->high[t]);
        high3 = vmlal_n_s16(high3, vget_high_s16(second), f->high[t]);
        if (coarse)
            continue;
        low0 = vmlal_n_s16(low0, vget_low_s16(first), f->low[t]);
        low1 = vmlal_n_s16(low1, vget_high_s16(first), f->low[t]);
        low2 = vmlal_n_s16(low2, vget_low_s16(second), f->low[t]);
        low3 = vmlal_n_s16(low3, vget_high_s16(second), f->low[t]);
    }
    vst1q_u8(out, vcombine_u8(vqmovun_s16(vcombine_s16(join(high0, low0), join(high1, low1))),
                              vqmovun_s16(vcombine_s16(join(high2, low2), join(high3, low3)))));
}

void
convolve_wide_columns_neon(const uint8_t *from, size_t stride, const struct wide_factors *f, uint32_t width,
                           uint8_t *out)
{
    ptrdiff_t x = 0, end = (ptrdiff_t)width;

    if (f->coarse)
        for (; end - x >= WIDTH; x += WIDTH)
            wide(from + x, stride, f, true, out + x);
    for (; end - x >= WIDTH; x += WIDTH)
        wide(from + x, stride, f, false, out + x);
    /* Compute the last WIDTH samples again, so that a whole register ends at the last one. */
    if (x < end && end >= WIDTH)
        wide(from + end - WIDTH, stride, f, false, out + end - WIDTH), x = end;
    for (; x < end; x++)
        out[x] = convolve_wide_one(from + x, stride, f);
}

#endif
