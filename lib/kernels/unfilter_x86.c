/*
 * unfilter_x86.c - the wavefront of unfilter_wave.h in SSE4.1 (16 rows), AVX2 and AVX-512VL (32 rows)
 *
 * AVX-512VL is AVX2 with enough registers and with a one-cycle instruction for the choice.  512-bit registers would
 * lower the clock of the code that follows.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/unfilter_private.h"

#ifdef UNFILTER_HAVE_X86

#include "base/cpu.h"

#include <immintrin.h>
#include <string.h>

bool
unfilter_sse41_supported(void)
{
    return cpu_has(CPU_SSE41);
}

bool
unfilter_avx2_supported(void)
{
    return cpu_has(CPU_AVX2);
}

bool
unfilter_avx512_supported(void)
{
    return cpu_has(CPU_AVX2 | CPU_AVX512VL | CPU_AVX512BW);
}

static const uint8_t lane_numbers[32] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                         16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};

/* ---- SSE4.1 --------------------------------------------------------------------------------------------------- */

#define WAVE_TARGET  __attribute__((target("sse4.1")))
#define WAVE_NAME(x) x##_sse41
#define WAVE_LANES   16
#define WAVE_STARTED(v, t) \
    _mm_and_si128(         \
        v, _mm_cmpgt_epi8(_mm_set1_epi8((char)(t)), _mm_loadu_si128((const __m128i *)(const void *)lane_numbers)))
#define WAVE_UP(pixels, above)  _mm_alignr_epi8(pixels, above, 15)
#define WAVE_LOAD(p, d)         _mm_loadu_si128((const __m128i *)(const void *)(p))
#define WAVE_STORE(v, p, d)     _mm_storeu_si128((__m128i *)(void *)(p), v)
#define WAVE_CHOOSE(a, b, mask) _mm_blendv_epi8(a, b, mask)
#define WAVE_ABOVE_AT(above, j) _mm_slli_si128(above, 15 - (j))
#define WAVE_LOAD_16(p)         _mm_loadu_si128((const __m128i *)(const void *)(p))
#define WAVE_ZERO_16()          _mm_setzero_si128()
#define vec16                   __m128i
#define V(op)                   _mm_##op
#define V_SI(op)                _mm_##op##_si128
#define vec                     __m128i

#include "kernels/unfilter_wave.h"

#undef WAVE_TARGET
#undef WAVE_NAME
#undef WAVE_LANES
#undef WAVE_STARTED
#undef WAVE_UP
#undef WAVE_LOAD
#undef WAVE_STORE
#undef WAVE_CHOOSE
#undef V
#undef V_SI
#undef vec

/* ---- AVX2, AVX-512VL ------------------------------------------------------------------------------------------ */

#define WAVE_LANES 32
#define WAVE_STARTED(v, t)                                             \
    _mm256_and_si256(v, _mm256_cmpgt_epi8(_mm256_set1_epi8((char)(t)), \
                                          _mm256_loadu_si256((const __m256i *)(const void *)lane_numbers)))
/* The low half shifts in `above`; the high half shifts in the last lane of the low half. */
#define WAVE_UP(pixels, above) \
    _mm256_alignr_epi8(pixels, _mm256_permute2x128_si256(pixels, _mm256_castsi128_si256(above), 0x02), 15)
#define WAVE_LOAD(p, d)                                                                                  \
    _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(p))), \
                            _mm_loadu_si128((const __m128i *)(const void *)((p) + (d))), 1)
#define WAVE_STORE(v, p, d)                                               \
    (_mm_storeu_si128((__m128i *)(void *)(p), _mm256_castsi256_si128(v)), \
     _mm_storeu_si128((__m128i *)(void *)((p) + (d)), _mm256_extracti128_si256(v, 1)))
#define V(op)    _mm256_##op
#define V_SI(op) _mm256_##op##_si256
#define vec      __m256i

#define WAVE_TARGET             __attribute__((target("avx2")))
#define WAVE_NAME(x)            x##_avx2
#define WAVE_CHOOSE(a, b, mask) _mm256_blendv_epi8(a, b, mask)

#include "kernels/unfilter_wave.h"

#undef WAVE_TARGET
#undef WAVE_NAME
#undef WAVE_CHOOSE

#define WAVE_TARGET             __attribute__((target("avx2,avx512f,avx512vl,avx512bw")))
#define WAVE_NAME(x)            x##_avx512
#define WAVE_CHOOSE(a, b, mask) _mm256_ternarylogic_epi32(mask, b, a, 0xca)

#include "kernels/unfilter_wave.h"

#endif
