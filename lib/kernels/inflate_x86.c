/*
 * inflate_x86.c - the loop of inflate_loop.h for BMI2 (shifts by any register, bzhi) and SSSE3, which every CPU with
 * BMI2 has
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

#include "kernels/inflate_loop.h"

#endif
