/*
 * inflate_x86.c - the loop of inflate_loop.h for BMI2 (shifts by any register, bzhi) and SSSE3, which every CPU with
 * BMI2 has; Adler-32 for AVX2
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/inflate_private.h"

#ifdef INFLATER_HAVE_X86

#include "base/cpu.h"

#include <immintrin.h>

bool
inflater_bmi2_supported(void)
{
    return cpu_has(CPU_BMI | CPU_BMI2 | CPU_SSSE3);
}

#define LOOP_TARGET       __attribute__((target("bmi,bmi2,ssse3")))
#define LOOP_NAME(x)      x##_bmi2
#define LOOP_LOWEST(v, n) _bzhi_u64(v, n)
/* Assembly, because compilers would make a branch that is mispredicted half of the time. */
#define LOOP_UNLESS(to, condition, from) \
    __asm__("test %[c], %[c]\n\tcmovz %[f], %[t]" : [t] "+r"(to) : [c] "r"(condition), [f] "r"(from) : "cc")
#define LOOP_KEEP(pointer)         __asm__("" : "+r"(pointer))
#define LOOP_SPREAD(out, distance) spread(out, distance)

/* i modulo distance. */
#define REPEAT(d)                                                                                                 \
    {                                                                                                             \
        0, 1 % d, 2 % d, 3 % d, 4 % d, 5 % d, 6 % d, 7 % d, 8 % d, 9 % d, 10 % d, 11 % d, 12 % d, 13 % d, 14 % d, \
            15 % d                                                                                                \
    }

static inline LOOP_TARGET void
spread(uint8_t *out, size_t distance)
{
    static const uint8_t order[15][16] = {REPEAT(1),  REPEAT(2),  REPEAT(3),  REPEAT(4),  REPEAT(5),
                                          REPEAT(6),  REPEAT(7),  REPEAT(8),  REPEAT(9),  REPEAT(10),
                                          REPEAT(11), REPEAT(12), REPEAT(13), REPEAT(14), REPEAT(15)};
    /* The load may read bytes at and after out; the shuffle does not use them. */
    __m128i before = _mm_loadu_si128((const __m128i *)(const void *)(out - distance));
    __m128i places = _mm_loadu_si128((const __m128i *)(const void *)order[distance - 1]);

    _mm_storeu_si128((__m128i *)(void *)out, _mm_shuffle_epi8(before, places));
}

/*
 * gcc's scheduler before register allocation, off by default on x86: the loop over two streams has more values than
 * there are registers, and takes 0.95 of the time with it (measured, Zen 4, gcc 12).
 */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("schedule-insns", "sched-pressure")
#endif
#include "kernels/inflate_loop.h"
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif

/* ---- Adler-32 ------------------------------------------------------------------------------------------------- */

#define ADLER_BASE 65521u
#define ADLER_STEP 32
/* No lane of 32 bits overflows: the largest sum, `before`, is below 172 * 172 * 8 * 255. */
#define ADLER_PIECE (172 * ADLER_STEP)

bool
inflater_avx2_supported(void)
{
    return inflater_bmi2_supported() && cpu_has(CPU_AVX2);
}

/* The sums of 8 lanes of a piece of steps.  In each step, byte i has the weight 32 - i in the second sum. */
struct adler_sums {
    uint32_t bytes[8];
    uint32_t before[8]; /* the sum of `bytes` before each step */
    uint32_t weighted[8];
};

static inline __attribute__((target("avx2"))) void
add_steps(const uint8_t *p, size_t size, struct adler_sums *sums)
{
    const __m256i weights = _mm256_setr_epi8(32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14,
                                             13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1);
    const __m256i zero = _mm256_setzero_si256(), one = _mm256_set1_epi16(1);
    __m256i bytes = zero, before = zero, weighted = zero;
    size_t i;

    for (i = 0; i < size; i += ADLER_STEP) {
        __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)(p + i));

        before = _mm256_add_epi32(before, bytes);
        bytes = _mm256_add_epi32(bytes, _mm256_sad_epu8(v, zero));
        weighted = _mm256_add_epi32(weighted, _mm256_madd_epi16(_mm256_maddubs_epi16(v, weights), one));
    }
    _mm256_storeu_si256((__m256i *)(void *)sums->bytes, bytes);
    _mm256_storeu_si256((__m256i *)(void *)sums->before, before);
    _mm256_storeu_si256((__m256i *)(void *)sums->weighted, weighted);
}

uint32_t __attribute__((target("avx2"))) inflater_adler_avx2(uint32_t adler, const uint8_t *p, uint64_t size)
{
    uint32_t a = adler & 0xffff, b = adler >> 16;

    while (size >= ADLER_STEP) {
        size_t piece = size < ADLER_PIECE ? (size_t)size / ADLER_STEP * ADLER_STEP : ADLER_PIECE;
        uint64_t second = b + (uint64_t)a * piece;
        struct adler_sums sums;
        int i;

        add_steps(p, piece, &sums);
        for (i = 0; i < 8; i++) {
            a += sums.bytes[i];
            second += (uint64_t)ADLER_STEP * sums.before[i] + sums.weighted[i];
        }
        a %= ADLER_BASE;
        b = (uint32_t)(second % ADLER_BASE);
        p += piece;
        size -= piece;
    }
    for (; size > 0; size--) {
        a += *p++;
        b += a;
    }
    return (b % ADLER_BASE) << 16 | a % ADLER_BASE;
}

#endif
