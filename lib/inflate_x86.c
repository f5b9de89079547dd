/*
 * inflate_x86.c - the loop of inflate_turn.h with BMI2: shifts by any register, and the lowest bits in one instruction
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inflate_private.h"

#ifdef INFLATE_HAVE_X86

#include <immintrin.h>

bool
inflate_bmi2_supported(void)
{
    return __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}

#define TURN_TARGET       __attribute__((target("bmi,bmi2")))
#define TURN_NAME(x)      x##_bmi2
#define TURN_LOWEST(v, n) _bzhi_u64(v, n)
/* Compilers make a branch of it, which is as often wrong as right. */
#define TURN_UNLESS(to, condition, from) \
    __asm__("test %[c], %[c]\n\tcmovz %[f], %[t]" : [t] "+r"(to) : [c] "r"(condition), [f] "r"(from) : "cc")
#define TURN_KEEP(pointer) __asm__("" : "+r"(pointer))

#include "inflate_turn.h"

#endif
