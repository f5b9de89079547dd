/*
 * kernels_vector.h - vectors of LANES floats, for the files that are compiled once per instruction set
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_KERNELS_VECTOR_H
#define CHEX_TRAIN_KERNELS_VECTOR_H

#include "cpu/kernels.h"

#include <string.h>
#if LANES > 4
#include <immintrin.h>
#endif

#define VECTORS (BLOCK / LANES) /* vectors per block */
#define INLINE  static inline __attribute__((always_inline))
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif

typedef float vec __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t ivec __attribute__((vector_size(LANES * sizeof(float))));

/* Fetch the next lines of `a`; may fetch a few lines after the end of a run. */
INLINE void
fetch_ahead(struct ahead *a)
{
    const char *at;
    size_t i;

    if (!a || a->now == a->runs)
        return;
    at = a->run[a->now].at;
    for (i = 0; i < a->lines; i++)
        __builtin_prefetch(at + i * CACHE_LINE, 0, 2);
    a->run[a->now].at = at + a->lines * CACHE_LINE;
    if (a->run[a->now].at >= a->run[a->now].end)
        a->now++;
}

/* All these addresses are aligned: blocks start at multiples of 64 bytes. */
INLINE vec
load(const float *p)
{
    return *(const vec *)(const void *)p;
}

INLINE void
store(float *p, vec v)
{
    *(vec *)(void *)p = v;
}

/* Load from an unaligned address. */
INLINE vec
load_unaligned(const float *p)
{
    vec v;

    memcpy(&v, p, sizeof(v));
    return v;
}

/* Returns v in the lanes with where > 0, otherwise 0; NaN in `where` gives 0. */
INLINE vec
positive(vec v, vec where)
{
    return (vec)((ivec)v & (where > 0));
}

/*
 * Returns a b + c, with one rounding if the instruction set has it or FUSED asks for it.  It is explicit, because a
 * compiler contracts only with optimisation.
 */
INLINE vec
fused(vec a, vec b, vec c)
{
#if LANES == 16
    return (vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif LANES == 8
    return (vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(FUSED)
    vec v;
    size_t i;

    for (i = 0; i < LANES; i++)
        v[i] = __builtin_fmaf(a[i], b[i], c[i]);
    return v;
#else
    return a * b + c;
#endif
}

/* Returns v, rounded: a compiler must not fuse the product v with a sum. */
INLINE vec
rounded(vec v)
{
#ifdef __x86_64__
    __asm__("" : "+v"(v));
#elif defined(__aarch64__)
    __asm__("" : "+w"(v));
#endif
    return v;
}

/* Returns normalised values before the ReLU. */
INLINE vec
normal(vec x, vec mean, vec scale, vec beta)
{
    return fused(scale, x - mean, beta);
}

/* Returns k0 a + (k1 (x - mean) + k2). */
INLINE vec
finished(vec k0, vec k1, vec k2, vec mean, vec a, vec x)
{
    return fused(k0, a, fused(k1, x - mean, k2));
}

#endif
