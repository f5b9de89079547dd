/*
 * convolve_wide.h - convolution with factors of any size (convolve_private.h), for registers of 32 bytes
 *
 * Included by convolve_x86.c once for each CPU, after it has defined
 *     WIDE_TARGET       the function attribute      WIDE_NAME(x)    x with the CPU in its name
 *     ADD_PAIRS(sum, samples, factors)   sum + the pairwise multiply-add of 16-bit integers
 *
 * SPDX-License-Identifier: Apache-2.0
 */

#define WIDTH 32
_Static_assert(CONVOLVE_STRIP % WIDTH == 0, "strips fill registers");

/* Join the sums of the two parts, and round: the same bits as to_byte() in convolve_plain.c before it clips. */
static inline WIDE_TARGET __m256i
WIDE_NAME(join)(__m256i high, __m256i low)
{
    const __m256i half = _mm256_set1_epi32(1 << (RESAMPLE_PRECISION - 1));
    __m256i sum = _mm256_add_epi32(_mm256_slli_epi32(high, RESAMPLE_LOW_BITS), low);

    return _mm256_srai_epi32(_mm256_add_epi32(sum, half), RESAMPLE_PRECISION);
}

/*
 * Compute WIDTH columns.  Samples of two rows are interleaved and widened to 16 bits, as the multiply-add needs them.
 * The packs undo the interleaving, because both work within halves of 128 bits.  coarse: all low parts are 0; it is a
 * constant wherever this function is expanded.
 */
static inline WIDE_TARGET void
WIDE_NAME(wide)(const uint8_t *from, size_t stride, const struct wide_factors *f, bool coarse, uint8_t *out)
{
    const __m256i zero = _mm256_setzero_si256();
    __m256i high0 = zero, high1 = zero, high2 = zero, high3 = zero;
    __m256i low0 = zero, low1 = zero, low2 = zero, low3 = zero;
    uint32_t t;

    for (t = 0; t < f->count; t += 2, from += 2 * stride) {
        __m256i a = load_32(from), b = t + 1 < f->count ? load_32(from + stride) : a;
        __m256i first = _mm256_unpacklo_epi8(a, b), second = _mm256_unpackhi_epi8(a, b);
        __m256i sample0 = _mm256_unpacklo_epi8(first, zero), sample1 = _mm256_unpackhi_epi8(first, zero);
        __m256i sample2 = _mm256_unpacklo_epi8(second, zero), sample3 = _mm256_unpackhi_epi8(second, zero);
        __m256i factors = repeat_pair(f->high + t);

        high0 = ADD_PAIRS(high0, sample0, factors);
        high1 = ADD_PAIRS(high1, sample1, factors);
        high2 = ADD_PAIRS(high2, sample2, factors);
        high3 = ADD_PAIRS(high3, sample3, factors);
        if (coarse)
            continue;
        factors = repeat_pair(f->low + t);
        low0 = ADD_PAIRS(low0, sample0, factors);
        low1 = ADD_PAIRS(low1, sample1, factors);
        low2 = ADD_PAIRS(low2, sample2, factors);
        low3 = ADD_PAIRS(low3, sample3, factors);
    }
    store_32(out, _mm256_packus_epi16(_mm256_packs_epi32(WIDE_NAME(join)(high0, low0), WIDE_NAME(join)(high1, low1)),
                                      _mm256_packs_epi32(WIDE_NAME(join)(high2, low2), WIDE_NAME(join)(high3, low3))));
}

void WIDE_TARGET
WIDE_NAME(convolve_wide_columns)(const uint8_t *from, size_t stride, const struct wide_factors *f, uint32_t width,
                                 uint8_t *out)
{
    ptrdiff_t x = 0, end = (ptrdiff_t)width;

    if (f->coarse)
        for (; end - x >= WIDTH; x += WIDTH)
            WIDE_NAME(wide)(from + x, stride, f, true, out + x);
    for (; end - x >= WIDTH; x += WIDTH)
        WIDE_NAME(wide)(from + x, stride, f, false, out + x);
    /* Compute the last WIDTH samples again, so that a whole register ends at the last one. */
    if (x < end && end >= WIDTH)
        WIDE_NAME(wide)(from + end - WIDTH, stride, f, false, out + end - WIDTH), x = end;
    for (; x < end; x++)
        out[x] = convolve_wide_one(from + x, stride, f);
}

#undef WIDTH
#undef WIDE_TARGET
#undef WIDE_NAME
#undef ADD_PAIRS
