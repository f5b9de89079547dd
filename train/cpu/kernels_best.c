/*
 * kernels_best.c - selects the instruction set; see kernels.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/cpu.h"
#include "cpu/kernels.h"

#include <stdlib.h>
#include <string.h>

enum set { SET_PLAIN, SET_AVX2, SET_AVX512 };

static enum set
best(void)
{
#ifdef KERNELS_X86
    const char *requested = getenv("CHEX_CPU");
    bool avx2 = cpu_has(CPU_AVX2 | CPU_FMA);
    bool avx512 = avx2 && cpu_has(CPU_AVX512F | CPU_AVX512DQ | CPU_AVX512VL);

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
        if (cpu_has(CPU_AVX512_BF16))
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
