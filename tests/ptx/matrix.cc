/*
 * matrix.cc - mma.sync: PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type", "... for mma.m16n8k8",
 * of halves and of tf32, and "... for mma.m8n8k4 with .f16 floating point type"
 *
 * The ISA does not say how a tensor core rounds.  Fasi, Higham, Mikaitis and Pranesh ("Numerical behavior of NVIDIA
 * tensor cores", 2021) measured it: products are exact; a group of them and the sum before it are aligned to the
 * largest exponent, truncated after a few additional bits, and added; the result is truncated to float.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core.h"
#include "half.h"

#include <algorithm>

namespace ptx
{
/* A value and its exponent e: 2^e <= |value| < 2^(e + 1). */
struct factor {
    float value;
    int exponent;
};
enum { EXPONENT_OF_ZERO = -10000, EXPONENT_OF_INFINITY = 10000 };

static inline int
exponent_of(float f)
{
    int e = (int)(bits_of(f) >> 23 & 255) - 127;

    return e == 128 ? EXPONENT_OF_INFINITY : f == 0 ? EXPONENT_OF_ZERO : e == -127 ? ilogbf(f) : e;
}

template <bool BF16>
static const std::vector<factor> &
factors()
{
    static const std::vector<factor> all = [] {
        std::vector<factor> table(1 << 16);

        for (uint32_t bits = 0; bits < 1 << 16; bits++) {
            float f = BF16 ? to_float(bfloat{(uint16_t)bits}) : to_float(half{(uint16_t)bits});

            table[bits] = {f, exponent_of(f)};
        }
        return table;
    }();

    return all;
}

/* 2^e */
static inline double
power(int e)
{
    uint64_t bits = (uint64_t)(e + 1023) << 52;
    double d;

    memcpy(&d, &bits, sizeof(d));
    return d;
}

/* c + the sum of a[k] * b[k], as a tensor core adds one group. */
static inline float
add_group(float c, const factor *a, const factor *b, unsigned count)
{
    int extra_bits = setting().arch >= 90 ? 2 : setting().arch >= 80 ? 1 : 0, largest = exponent_of(c);
    double sum = 0;

    for (unsigned k = 0; k < count; k++)
        largest = std::max(largest, a[k].exponent + b[k].exponent);
    if (largest > 200) { /* infinity or NaN */
        for (unsigned k = 0; k < count; k++)
            c = fmaf(a[k].value, b[k].value, c);
        return c;
    }
    if (largest < -1000)
        return 0;
    int unit = std::max(largest - 23 - extra_bits, -149);
    double scale = power(-unit);
    for (unsigned k = 0; k < count; k++)
        sum += trunc((double)a[k].value * (double)b[k].value * scale);
    sum = (sum + trunc((double)c * scale)) * power(unit);
    float f = (float)sum;
    return fabs((double)f) > fabs(sum) ? nextafterf(f, 0) : f;
}

/* The group has half as many products if factors have 32 bits. */
static float
add_products(float c, const factor *a, const factor *b, unsigned count, unsigned bits = 16)
{
    unsigned group = (setting().arch >= 90 ? 16 : setting().arch >= 80 ? 8 : 4) * 16 / bits;

    if (!setting().mma_as_cores) {
        float sum = 0;

        for (unsigned k = 0; k < count; k++)
            sum += a[k].value * b[k].value;
        return c + sum;
    }
    for (unsigned k = 0; k < count; k += group)
        c = add_group(c, a + k, b + k, std::min(group, count - k));
    return c;
}

/* Value k of a fragment: the low or the high half of register `first` + k / 2 of a lane. */
template <bool BF16>
static factor
fragment(warp &w, const instruction &i, unsigned first, unsigned lane, unsigned k)
{
    return factors<BF16>()[w.operand<uint32_t>(i, first + k / 2)[lane] >> (k & 1) * 16 & 0xffff];
}

/* DEEP is k, 16 or 8.  Operands: d (4 registers), a (DEEP / 4 of two values each), b (DEEP / 8 of them), c (4). */
template <bool BF16, unsigned DEEP>
static void
mma_168(warp &w, const instruction &i, uint32_t)
{
    enum { B_AT = 4 + DEEP / 4, C_AT = B_AT + DEEP / 8 };
    factor a[16][DEEP], b[8][DEEP]; /* b by columns */
    float d[4][LANES];

    for (unsigned lane = 0; lane < LANES; lane++) {
        unsigned group = lane / 4, in_group = lane % 4;

        for (unsigned k = 0; k < DEEP / 2; k++)
            a[group + (k / 2 % 2 ? 8 : 0)][in_group * 2 + k % 2 + (k >= 4 ? 8 : 0)] = fragment<BF16>(w, i, 4, lane, k);
        for (unsigned k = 0; k < DEEP / 4; k++)
            b[group][in_group * 2 + k % 2 + (k >= 2 ? 8 : 0)] = fragment<BF16>(w, i, B_AT, lane, k);
    }
    for (unsigned lane = 0; lane < LANES; lane++)
        for (unsigned k = 0; k < 4; k++)
            d[k][lane] = add_products(w.operand<float>(i, C_AT + k)[lane], a[lane / 4 + (k < 2 ? 0 : 8)],
                                      b[lane % 4 * 2 + k % 2], DEEP);
    for (unsigned k = 0; k < 4; k++)
        memcpy(w.operand<float>(i, k), d[k], sizeof(d[k]));
}

/* The lower 13 bits of a factor are ignored.  Operands: d (4 registers), a (4), b (2), c (4). */
static void
mma_1688_tf32(warp &w, const instruction &i, uint32_t)
{
    factor a[16][8], b[8][8]; /* b by columns */
    float d[4][LANES];
    auto fragment_of = [&](unsigned n, unsigned lane) {
        float f = float_of_bits(w.operand<uint32_t>(i, n)[lane] & ~0x1fffu);

        return factor{f, exponent_of(f)};
    };

    for (unsigned lane = 0; lane < LANES; lane++) {
        unsigned group = lane / 4, in_group = lane % 4;

        for (unsigned k = 0; k < 4; k++)
            a[k % 2 ? group + 8 : group][k < 2 ? in_group : in_group + 4] = fragment_of(4 + k, lane);
        for (unsigned k = 0; k < 2; k++)
            b[group][in_group + 4 * k] = fragment_of(8 + k, lane);
    }
    for (unsigned lane = 0; lane < LANES; lane++)
        for (unsigned k = 0; k < 4; k++)
            d[k][lane] = add_products(w.operand<float>(i, 10 + k)[lane], a[lane / 4 + (k < 2 ? 0 : 8)],
                                      b[lane % 4 * 2 + k % 2], 8, 32);
    for (unsigned k = 0; k < 4; k++)
        memcpy(w.operand<float>(i, k), d[k], sizeof(d[k]));
}

/*
 * Four products of 8 x 4 by 4 x 8: product q is made by lanes 4 q to 4 q + 3 and 16 + 4 q to 16 + 4 q + 3.  Operands: d
 * (8 registers), a (2 of two values each), b (2 of two values), c (8).
 */
template <bool COLUMN_A, bool ROW_B>
static void
mma_884(warp &w, const instruction &i, uint32_t)
{
    float d[8][LANES];

    for (unsigned q = 0; q < 4; q++) {
        factor a[8][4], b[8][4]; /* b by columns */

        for (unsigned n = 0; n < 8; n++) {
            unsigned lane = q * 4 + n % 4 + (n < 4 ? 0 : 16), upper = n < 4 ? 0 : 4;

            for (unsigned k = 0; k < 4; k++) {
                a[COLUMN_A ? k + upper : n % 4 + upper][COLUMN_A ? n % 4 : k] = fragment<false>(w, i, 8, lane, k);
                b[ROW_B ? k + upper : n % 4 + upper][ROW_B ? n % 4 : k] = fragment<false>(w, i, 10, lane, k);
            }
        }
        for (unsigned n = 0; n < 8; n++) {
            unsigned lane = q * 4 + n % 4 + (n < 4 ? 0 : 16);

            for (unsigned k = 0; k < 8; k++) {
                unsigned row = (lane & 1) + (k & 2) + (n < 4 ? 0 : 4), column = (k & 4) + (lane & 2) + (k & 1);

                d[k][lane] = add_products(w.operand<float>(i, 12 + k)[lane], a[row], b[column], 4);
            }
        }
    }
    for (unsigned k = 0; k < 8; k++)
        memcpy(w.operand<float>(i, k), d[k], sizeof(d[k]));
}

operation
mma_16816_operation(bool bf16)
{
    return bf16 ? mma_168<true, 16> : mma_168<false, 16>;
}

operation
mma_1688_operation()
{
    return mma_168<false, 8>;
}

operation
mma_1688_tf32_operation()
{
    return mma_1688_tf32;
}

operation
mma_884_operation(bool column_a, bool row_b)
{
    return column_a ? row_b ? mma_884<true, true> : mma_884<true, false>
           : row_b ? mma_884<false, true>
                    : mma_884<false, false>;
}
} // namespace ptx
