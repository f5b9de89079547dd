/*
 * convolve_x86.c - convolve_small.h in SSE4.1 and AVX2, convolve_wide.h in AVX2 and AVX-512
 *
 * Transposing 32 rows in AVX2 takes half of the instructions of SSE2 (counted), which copies registers.
 *
 * AVX-512 means registers of 256 bits: vpdpwssd multiplies and adds in one instruction, and 32 registers hold all sums.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/convolve_private.h"

#ifdef CONVOLVE_HAVE_X86

#include "base/cpu.h"

#include <immintrin.h>
#include <string.h>

bool
convolve_sse41_supported(void)
{
    return cpu_has(CPU_SSE41);
}

bool
convolve_avx2_supported(void)
{
    return cpu_has(CPU_AVX2);
}

bool
convolve_avx512_supported(void)
{
    return cpu_has(CPU_AVX2 | CPU_AVX512VL | CPU_AVX512_VNNI);
}

/* ---- small factors ------------------------------------------------------------------------------------------- */

#define SMALL_TARGET  __attribute__((target("sse4.1")))
#define SMALL_NAME(x) x##_sse41
#define vec           __m128i
#define V(op)         _mm_##op
#define LOAD(p)       _mm_loadu_si128((const __m128i *)(const void *)(p))
#define STORE(p, v)   _mm_storeu_si128((__m128i *)(void *)(p), v)
#define IN_ORDER(v)   (v)

#include "kernels/convolve_small.h"

#define SMALL_TARGET  __attribute__((target("avx2")))
#define SMALL_NAME(x) x##_avx2
#define vec           __m256i
#define V(op)         _mm256_##op
#define LOAD(p)       _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define STORE(p, v)   _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define IN_ORDER(v)   _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7))

#include "kernels/convolve_small.h"

/* ---- factors of any size ------------------------------------------------------------------------------------- */

static inline __attribute__((target("avx2"))) __m256i
load_32(const uint8_t *from)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)from);
}

static inline __attribute__((target("avx2"))) void
store_32(uint8_t *to, __m256i v)
{
    _mm256_storeu_si256((__m256i *)(void *)to, v);
}

/* Repeat a pair of numbers eight times. */
static inline __attribute__((target("avx2"))) __m256i
repeat_pair(const int16_t *pair)
{
    int32_t both;

    memcpy(&both, pair, sizeof(both));
    return _mm256_set1_epi32(both);
}

#define WIDE_TARGET                      __attribute__((target("avx2")))
#define WIDE_NAME(x)                     x##_avx2
#define ADD_PAIRS(sum, samples, factors) _mm256_add_epi32(sum, _mm256_madd_epi16(samples, factors))

#include "kernels/convolve_wide.h"

#define WIDE_TARGET                      __attribute__((target("avx2,avx512vl,avx512vnni")))
#define WIDE_NAME(x)                     x##_avx512
#define ADD_PAIRS(sum, samples, factors) _mm256_dpwssd_epi32(sum, samples, factors)

#include "kernels/convolve_wide.h"

/* ---- transposes ---------------------------------------------------------------------------------------------- */

#define TARGET __attribute__((target("avx2")))

#define BLOCK_TARGET  TARGET
#define BLOCK_NAME(x) x##_blocks
#define vec           __m256i
#define V(op)         _mm256_##op

#include "kernels/transpose_block.h"

_Static_assert(CONVOLVE_STRIP == 32, "a register has one byte of each row");

static inline TARGET __m128i
load_16(const uint8_t *from)
{
    return _mm_loadu_si128((const __m128i *)(const void *)from);
}

static inline TARGET void
store_16(uint8_t *to, __m128i v)
{
    _mm_storeu_si128((__m128i *)(void *)to, v);
}

TARGET void
convolve_turn_avx2(const uint8_t *rows, size_t stride, uint32_t width, uint8_t *strip)
{
    uint32_t x = 0;

    for (; width - x >= 16; x += 16, rows += 16, strip += 16 * CONVOLVE_STRIP) {
        __m256i block[16];

#pragma GCC unroll 16
        for (int i = 0; i < 16; i++)
            block[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(load_16(rows + i * stride)),
                                               load_16(rows + (i + 16) * stride), 1);
        transpose_blocks(block);
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++)
            store_32(strip + i * CONVOLVE_STRIP, block[i]);
    }
    for (; x < width; x++, rows++, strip += CONVOLVE_STRIP)
        for (size_t i = 0; i < CONVOLVE_STRIP; i++)
            strip[i] = rows[i * stride];
}

TARGET void
convolve_turn_back_avx2(const uint8_t *strip, uint32_t width, uint8_t *rows)
{
    const size_t stride = width;
    uint32_t x = 0;

    for (; width - x >= 16; x += 16, rows += 16, strip += 16 * CONVOLVE_STRIP) {
        __m256i block[16];

#pragma GCC unroll 16
        for (int i = 0; i < 16; i++)
            block[i] = load_32(strip + i * CONVOLVE_STRIP);
        transpose_blocks(block);
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) {
            store_16(rows + i * stride, _mm256_castsi256_si128(block[i]));
            store_16(rows + (i + 16) * stride, _mm256_extracti128_si256(block[i], 1));
        }
    }
    for (; x < width; x++, rows++, strip += CONVOLVE_STRIP)
        for (size_t i = 0; i < CONVOLVE_STRIP; i++)
            rows[i * stride] = strip[i];
}

#endif
