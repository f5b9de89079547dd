/*
 * operations.h - what one lane computes: OP::of<D>(a, b, ...) has a result of type D
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef PTX_OPERATIONS_H
#define PTX_OPERATIONS_H

#include "core.h"
#include "half.h"

#include <limits>
#include <math.h>
#include <type_traits>

namespace ptx
{
#define OPERATION_OF_ONE(name, expression)                 \
    struct name {                                          \
        template <typename D, typename A> static D of(A a) \
        {                                                  \
            return (D)(expression);                        \
        }                                                  \
    }
#define OPERATION_OF_TWO(name, expression)                                  \
    struct name {                                                           \
        template <typename D, typename A, typename B> static D of(A a, B b) \
        {                                                                   \
            return (D)(expression);                                         \
        }                                                                   \
    }
#define OPERATION_OF_THREE(name, expression)                                                 \
    struct name {                                                                            \
        template <typename D, typename A, typename B, typename C> static D of(A a, B b, C c) \
        {                                                                                    \
            return (D)(expression);                                                          \
        }                                                                                    \
    }

OPERATION_OF_ONE(copy, a);
OPERATION_OF_ONE(bitwise_not, ~a);
OPERATION_OF_ONE(logical_not, !a);
OPERATION_OF_ONE(negate, -a);
OPERATION_OF_ONE(square_root, std::sqrt(a));
OPERATION_OF_ONE(inverse_of, (D)1 / a);
OPERATION_OF_ONE(absolute, std::fabs(a));
OPERATION_OF_TWO(add, a + b);
OPERATION_OF_TWO(subtract, a - b);
OPERATION_OF_TWO(multiply, a *b);
OPERATION_OF_TWO(bitwise_and, a &b);
OPERATION_OF_TWO(bitwise_or, a | b);
OPERATION_OF_TWO(bitwise_xor, a ^ b);
OPERATION_OF_TWO(smaller_integer, a < b ? a : b);
OPERATION_OF_TWO(larger_integer, a > b ? a : b);
OPERATION_OF_TWO(divide_floats, a / b);
/* Division by 0: the result is unspecified, and there is no trap.  nvcc divides before loops that never run. */
OPERATION_OF_TWO(divide_integers, b == 0 ? (D)-1 : (D)(a / b));
OPERATION_OF_TWO(remainder_of, b == 0 ? (D)a : (D)(a % b));
OPERATION_OF_TWO(wide_multiply, (D)a *(D)b);
OPERATION_OF_TWO(high_multiply, ((std::conditional_t<std::is_signed_v<A>, int64_t, uint64_t>)a * b) >> 32);
/* Shifts: the count is unsigned, and at most the width. */
OPERATION_OF_TWO(shift_left, b < sizeof(A) * 8 ? (D)(a << b) : (D)0);
OPERATION_OF_TWO(shift_right, b < sizeof(A) * 8 ? (D)(a >> b) : a < 0 ? (D)-1 : (D)0);
OPERATION_OF_THREE(multiply_add, a *b + c);
OPERATION_OF_THREE(wide_multiply_add, (D)a *(D)b + c);
OPERATION_OF_THREE(fused_multiply_add, std::fma(a, b, c));
OPERATION_OF_THREE(select, c ? a : b);

/* If one number is NaN, the result is the other one; -0 is smaller than 0. */
struct smaller_float {
    template <typename D> static D of(D a, D b)
    {
        return a != a ? b : b != b ? a : a == b ? (std::signbit(a) ? a : b) : a < b ? a : b;
    }
};
struct larger_float {
    template <typename D> static D of(D a, D b)
    {
        return a != a ? b : b != b ? a : a == b ? (std::signbit(a) ? b : a) : a > b ? a : b;
    }
};

/* rcp.approx.ftz.f64: the low 32 bits of the mantissa are neither read nor written; subnormal numbers are 0. */
struct approximate_inverse {
    static double high_word(double a)
    {
        uint64_t bits;

        memcpy(&bits, &a, sizeof(bits));
        bits &= 0xffffffff00000000u;
        memcpy(&a, &bits, sizeof(bits));
        return std::fpclassify(a) == FP_SUBNORMAL ? copysign(0, a) : a;
    }
    template <typename D> static D of(double a)
    {
        return high_word(1 / high_word(a));
    }
};

/* prmt.b32: each nibble of c selects a byte of b:a; its bit 3 replicates the sign of that byte. */
struct permute_bytes {
    template <typename D> static D of(uint32_t a, uint32_t b, uint32_t c)
    {
        uint64_t both = (uint64_t)b << 32 | a;
        uint32_t d = 0;

        for (unsigned k = 0; k < 4; k++) {
            unsigned selected = c >> (4 * k) & 15;
            uint32_t byte = (uint32_t)(both >> (8 * (selected & 7))) & 255;

            if (selected & 8)
                byte = byte & 128 ? 255 : 0;
            d |= byte << (8 * k);
        }
        return d;
    }
};

/* cvt.rn.f16x2.f32 d, a, b: b is in the low half. */
template <typename H> struct pack_halves {
    static uint32_t bits(float f)
    {
        if constexpr (std::is_same_v<H, half>)
            return half_of(f).bits;
        else
            return bfloat_of(f).bits;
    }
    template <typename D> static D of(float a, float b)
    {
        return bits(a) << 16 | bits(b);
    }
};

/* cvt.rna.tf32.f32 */
struct round_to_tf32 {
    template <typename D> static D of(float a)
    {
        return tf32_bits(a);
    }
};

enum rounding { TO_NEAREST, TO_ZERO };

/* Floating point to integers saturates.  NaN becomes 0; if one of the types has 64 bits, only the upper bit is 1. */
template <rounding R> struct convert {
    template <typename D, typename A> static D of(A a)
    {
        if constexpr (std::is_same_v<A, half> || std::is_same_v<A, bfloat>) {
            return (D)to_float(a);
        } else if constexpr (std::is_same_v<D, half>) {
            return half_of(a);
        } else if constexpr (std::is_same_v<D, bfloat>) {
            return bfloat_of(a);
        } else if constexpr (std::is_floating_point_v<A> && std::is_integral_v<D>) {
            A r = R == TO_ZERO ? std::trunc(a) : std::nearbyint(a);

            if (a != a)
                return sizeof(A) == 8 || sizeof(D) == 8 ? (D)((uint64_t)1 << (sizeof(D) * 8 - 1)) : (D)0;
            if (r <= (A)std::numeric_limits<D>::min())
                return std::numeric_limits<D>::min();
            return r >= (A)std::numeric_limits<D>::max() ? std::numeric_limits<D>::max() : (D)r;
        } else if constexpr (std::is_same_v<A, D> && std::is_floating_point_v<A>) {
            return R == TO_ZERO ? std::trunc(a) : std::nearbyint(a);
        } else {
            return (D)a;
        }
    }
};

enum comparison { EQ, NE, LT, LE, GT, GE, EQU, NEU, LTU, LEU, GTU, GEU, NUM, NOT_A_NUM, COMPARISONS };

/* Comparisons whose names end in u are true if an operand is NaN, the others false. */
template <comparison C> struct compare {
    template <typename D, typename A> static D of(A a, A b)
    {
        bool unordered = a != a || b != b;

        switch (C) {
        case EQ:
            return a == b;
        case NE:
            return a != b && !unordered;
        case LT:
            return a < b;
        case LE:
            return a <= b;
        case GT:
            return a > b;
        case GE:
            return a >= b;
        case EQU:
            return a == b || unordered;
        case NEU:
            return a != b;
        case LTU:
            return a < b || unordered;
        case LEU:
            return a <= b || unordered;
        case GTU:
            return a > b || unordered;
        case GEU:
            return a >= b || unordered;
        case NUM:
            return !unordered;
        default:
            return unordered;
        }
    }
};
} // namespace ptx

#endif
