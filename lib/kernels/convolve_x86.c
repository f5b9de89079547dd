/*
 * convolve_x86.c - convolve_small.h in SSE4.1 and AVX2
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/convolve_private.h"

#ifdef CONVOLVE_HAVE_X86

#include <immintrin.h>
#include <string.h>

bool
convolve_sse41_supported(void)
{
    return __builtin_cpu_supports("sse4.1");
}

bool
convolve_avx2_supported(void)
{
    return __builtin_cpu_supports("avx2");
}

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

#endif
