/*
 * kernels_best.c - selects the instruction set; see kernels.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cpu/kernels.h"

#include <stdlib.h>
#include <string.h>

const struct kernels *
kernels_best(void)
{
#ifdef KERNELS_X86
    const char *requested = getenv("CHEX_CPU");
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");

    if (requested && strcmp(requested, "plain") == 0)
        return &kernels_plain;
    if (avx512 && !(requested && strcmp(requested, "avx2") == 0))
        return &kernels_avx512;
    if (avx2)
        return &kernels_avx2;
#endif
    return &kernels_plain;
}
