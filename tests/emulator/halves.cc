/*
 * halves.cc - tests fp16 and bf16: round trip of every value, rounding to nearest even, comparison of our conversion
 * with the processor's; tests how floats become tf32
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "half.h"

#include <stdio.h>

using namespace emulated;

static unsigned passed, failed;

static void
report(const char *name, unsigned wrong)
{
    printf("%s %s\n", wrong ? "FAIL" : "ok  ", name);
    if (wrong)
        failed++;
    else
        passed++;
}

template <typename T>
static uint16_t
rounded(float f)
{
    T h;

    from_float(h, f);
    return h.bits;
}

/* For two adjacent halves: a float between them rounds to the nearer one, the midpoint to the even one. */
template <typename T>
static unsigned
wrong_between(uint16_t largest)
{
    unsigned wrong = 0;

    for (uint16_t bits = 0; bits < largest; bits++) {
        float low = to_float(T{bits}), high = to_float(T{(uint16_t)(bits + 1)}), middle = low + (high - low) / 2;
        uint16_t even = (uint16_t)(bits % 2 == 0 ? bits : bits + 1);

        wrong += rounded<T>(low) != bits || rounded<T>(-low) != (bits | 0x8000);
        wrong += rounded<T>(middle) != even;
        wrong += rounded<T>(nextafterf(middle, low)) != bits || rounded<T>(nextafterf(middle, high)) != bits + 1;
    }
    return wrong;
}

/* For two adjacent values of tf32: a float between them rounds to the nearer one, the midpoint to the larger one. */
static unsigned
wrong_tf32(uint32_t first, uint32_t last)
{
    unsigned wrong = 0;

    for (uint32_t bits = first; bits < last; bits += 0x2000) {
        float low = float_of(bits), high = float_of(bits + 0x2000), middle = float_of(bits + 0x1000);

        wrong += to_tf32(low) != low || to_tf32(middle) != high || to_tf32(-middle) != -high;
        wrong += to_tf32(nextafterf(middle, low)) != low || to_tf32(nextafterf(middle, high)) != high;
    }
    return wrong;
}

int
main(void)
{
    unsigned wrong = 0;
    uint32_t state = 1;

    report("fp16 rounds to nearest even", wrong_between<fp16>(0x7bff));
    report("bf16 rounds to nearest even", wrong_between<bf16>(0x7f7f));
    for (unsigned i = 0; i <= 0xffff; i++) {
        float a = to_float(fp16{(uint16_t)i}), b = fp16_to_float_plain((uint16_t)i);

        wrong += bits_of(a) != bits_of(b) && !(isnan(a) && isnan(b));
    }
    for (unsigned i = 0; i < 1000000; i++) {
        float f = float_of(state = state * 1664525u + 1013904223u);

        wrong += !isnan(f) && rounded<fp16>(f) != float_to_fp16_plain(f);
    }
    report("the processor converts as the formulas do", wrong);
    report("what is too large is infinite, NaN stays NaN",
           rounded<fp16>(65520) != 0x7c00 || rounded<fp16>(65519) != 0x7bff ||
               !isnan(to_float(fp16{rounded<fp16>(NAN)})) || rounded<bf16>(3.4e38f) != 0x7f80 ||
               !isnan(to_float(bf16{rounded<bf16>(NAN)})));
    report("tf32 rounds to nearest, ties away from zero", wrong_tf32(0, 0x800000) + wrong_tf32(0x3f000000, 0x40800000));
    report("too large a tf32 is infinite, NaN stays NaN",
           to_tf32(3.4028235e38f) != INFINITY || to_tf32(-INFINITY) != -INFINITY || !isnan(to_tf32(NAN)));
    printf("%u passed, %u failed, 0 skipped\n", passed, failed);
    return failed > 0;
}
