/*
 * convolve_small.h - convolution with small factors (convolve_private.h), for one register width
 *
 * Included by convolve_x86.c once for each width, after it has defined
 *     SMALL_TARGET      the function attribute      SMALL_NAME(x)   x with the width in its name
 *     vec               the register type           V(op)           the intrinsic of this name for it
 *     LOAD(p), STORE(p, v)
 *     IN_ORDER(v)       restores the order of the 32-bit parts, after the packs of small_rows mixed the 128-bit lanes
 *
 * SPDX-License-Identifier: Apache-2.0
 */

#define WIDTH ((ptrdiff_t)sizeof(vec))
_Static_assert(CONVOLVE_STRIP % sizeof(vec) == 0, "strips fill registers");

/* Compute WIDTH columns.  The bytes of two rows are interleaved, as maddubs needs them. */
static inline SMALL_TARGET void
SMALL_NAME(columns)(const uint8_t *from, size_t stride, const struct small_factors *f, uint8_t *out)
{
    vec half = V(set1_epi16)((short)((1 << f->bits) >> 1)), first = half, second = half;
    __m128i bits = _mm_cvtsi32_si128((int)f->bits);
    uint32_t t;

    for (t = 0; t < f->count; t += 2, from += 2 * stride) {
        vec a = LOAD(from), b = t + 1 < f->count ? LOAD(from + stride) : a;
        vec factors = V(set1_epi16)((short)(f->factor[t] | f->factor[t + 1] << 8));

        first = V(add_epi16)(first, V(maddubs_epi16)(V(unpacklo_epi8)(a, b), factors));
        second = V(add_epi16)(second, V(maddubs_epi16)(V(unpackhi_epi8)(a, b), factors));
    }
    STORE(out, V(packus_epi16)(V(srl_epi16)(first, bits), V(srl_epi16)(second, bits)));
}

void SMALL_TARGET
SMALL_NAME(convolve_small_columns)(const uint8_t *from, size_t stride, const struct small_factors *f, uint32_t width,
                                   uint8_t *out)
{
    ptrdiff_t x = 0, end = (ptrdiff_t)width;

    for (; end - x >= WIDTH; x += WIDTH)
        SMALL_NAME(columns)(from + x, stride, f, out + x);
    /* Compute the last WIDTH samples again, so that a whole register ends at the last one. */
    if (x < end && end >= WIDTH)
        SMALL_NAME(columns)(from + end - WIDTH, stride, f, out + end - WIDTH), x = end;
    for (; x < end; x++)
        out[x] = convolve_small_one(from + x, stride, f);
}

/* Compute WIDTH outputs, 4 samples apart, with 8 factors: the sum of 4 samples fills a 32-bit part. */
static inline SMALL_TARGET void
SMALL_NAME(row)(const uint8_t *from, vec factors0, vec factors1, vec half, __m128i bits, uint8_t *out)
{
    const vec ones = V(set1_epi16)(1);
    vec sum[4], first, second;
    int i;

    for (i = 0; i < 4; i++, from += WIDTH)
        sum[i] = V(madd_epi16)(
            V(add_epi16)(V(maddubs_epi16)(LOAD(from), factors0), V(maddubs_epi16)(LOAD(from + 4), factors1)), ones);
    first = V(srl_epi16)(V(add_epi16)(V(packs_epi32)(sum[0], sum[1]), half), bits);
    second = V(srl_epi16)(V(add_epi16)(V(packs_epi32)(sum[2], sum[3]), half), bits);
    STORE(out, IN_ORDER(V(packus_epi16)(first, second)));
}

void SMALL_TARGET
SMALL_NAME(convolve_small_rows)(const uint8_t *from, const struct small_factors *f, uint32_t count, uint8_t *out)
{
    ptrdiff_t x = 0, end = (ptrdiff_t)count;
    vec half = V(set1_epi16)((short)((1 << f->bits) >> 1)), factors0, factors1;
    __m128i bits = _mm_cvtsi32_si128((int)f->bits);
    int32_t four[2];

    memcpy(four, f->factor, sizeof(four));
    factors0 = V(set1_epi32)(four[0]);
    factors1 = V(set1_epi32)(four[1]);
    for (; end - x >= WIDTH; x += WIDTH)
        SMALL_NAME(row)(from + 4 * x, factors0, factors1, half, bits, out + x);
    if (x < end && end >= WIDTH)
        SMALL_NAME(row)(from + 4 * (end - WIDTH), factors0, factors1, half, bits, out + end - WIDTH), x = end;
    for (; x < end; x++)
        out[x] = convolve_small_one(from + 4 * x, 1, f);
}

#undef WIDTH
#undef SMALL_TARGET
#undef SMALL_NAME
#undef vec
#undef V
#undef LOAD
#undef STORE
#undef IN_ORDER
