/*
 * kernels_best.c - selects the instruction set; see kernels.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cpu/kernels.h"

#include <stdlib.h>
#include <string.h>

enum set { SET_PLAIN, SET_AVX2, SET_AVX512 };

static enum set
best(void)
{
#ifdef KERNELS_X86
    const char *requested = getenv("CHEX_CPU");
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");

    if (requested && strcmp(requested, "plain") == 0)
        return SET_PLAIN;
    if (avx512 && !(requested && strcmp(requested, "avx2") == 0))
        return SET_AVX512;
    if (avx2)
        return SET_AVX2;
#endif
    return SET_PLAIN;
}

const struct kernels *
kernels_best(void)
{
    switch (best()) {
#ifdef KERNELS_X86
    case SET_AVX512:
        return &kernels_avx512;
    case SET_AVX2:
        return &kernels_avx2;
#endif
    default:
        return &kernels_plain;
    }
}

const struct kernels *
kernels_bf16(const struct products **products)
{
    switch (best()) {
#ifdef KERNELS_X86
    case SET_AVX512:
        *products = &products_avx2;
#ifdef KERNELS_AVX512_BF16
        if (__builtin_cpu_supports("avx512bf16"))
            *products = &products_avx512;
#endif
        return &kernels_avx512;
    case SET_AVX2:
        *products = &products_avx2;
        return &kernels_avx2;
#endif
    default:
        *products = &products_plain;
        return &kernels_fused;
    }
}
