/*
 * arithmetic.cc - instructions that compute: PTX ISA, "Integer Arithmetic Instructions", "Floating-Point Instructions",
 * "Comparison and Selection Instructions", "Logic and Shift Instructions", mov and cvt
 *
 * A lane of a register of 64 bits has 8 bytes, any other 4: values of 8 and 16 bits are in the low bits, and the rest
 * is 0.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "operations.h"

#include <algorithm>

namespace ptx
{
template <typename T> using lane_of = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <typename T>
static inline T
get(const lane_of<T> *row, unsigned lane)
{
    lane_of<T> bits = row[lane];
    T v;

    memcpy(&v, &bits, sizeof(v));
    return v;
}

template <typename T>
static inline void
put(lane_of<T> *row, unsigned lane, T v)
{
    lane_of<T> bits = 0;

    memcpy(&bits, &v, sizeof(v));
    row[lane] = bits;
}

template <typename OP, typename D, typename A>
static void
one(warp &w, const instruction &i, uint32_t mask)
{
    auto *d = w.operand<lane_of<D>>(i, 0);
    const auto *a = w.operand<lane_of<A>>(i, 1);

    each_lane(mask, [=](unsigned lane) { put<D>(d, lane, OP::template of<D>(get<A>(a, lane))); });
}

template <typename OP, typename D, typename A, typename B>
static void
two(warp &w, const instruction &i, uint32_t mask)
{
    auto *d = w.operand<lane_of<D>>(i, 0);
    const auto *a = w.operand<lane_of<A>>(i, 1);
    const auto *b = w.operand<lane_of<B>>(i, 2);

    each_lane(mask, [=](unsigned lane) { put<D>(d, lane, OP::template of<D>(get<A>(a, lane), get<B>(b, lane))); });
}

template <typename OP, typename D, typename A, typename B, typename C>
static void
three(warp &w, const instruction &i, uint32_t mask)
{
    auto *d = w.operand<lane_of<D>>(i, 0);
    const auto *a = w.operand<lane_of<A>>(i, 1);
    const auto *b = w.operand<lane_of<B>>(i, 2);
    const auto *c = w.operand<lane_of<C>>(i, 3);

    each_lane(mask, [=](unsigned lane) {
        put<D>(d, lane, OP::template of<D>(get<A>(a, lane), get<B>(b, lane), get<C>(c, lane)));
    });
}

/* d = a with bits c.. of length e replaced: bfi d, a, b, c, e inserts the low bits of a into b. */
static void
insert_bits(warp &w, const instruction &i, uint32_t mask)
{
    uint32_t *d = w.operand<uint32_t>(i, 0);
    const uint32_t *a = w.operand<uint32_t>(i, 1), *b = w.operand<uint32_t>(i, 2);
    const uint32_t *position = w.operand<uint32_t>(i, 3), *length = w.operand<uint32_t>(i, 4);

    each_lane(mask, [=](unsigned lane) {
        unsigned at = position[lane] & 255, count = std::min(length[lane] & 255, 32u);
        uint64_t field = ((uint64_t)1 << count) - 1;

        d[lane] = at > 31 ? b[lane] : (uint32_t)((b[lane] & ~(field << at)) | (a[lane] & field) << at);
    });
}

/* ---- the C++ type of an operand ---------------------------------------------------------------------------------- */

template <typename F>
static operation
with_integer(type t, F f)
{
    switch (t) {
    case U16:
    case B16:
        return f(uint16_t());
    case S16:
        return f(int16_t());
    case U32:
    case B32:
    case PRED:
        return f(uint32_t());
    case S32:
        return f(int32_t());
    case U64:
    case B64:
        return f(uint64_t());
    case S64:
        return f(int64_t());
    default:
        return nullptr;
    }
}

template <typename F>
static operation
with_float(type t, F f)
{
    return t == F32 ? f(float()) : t == F64 ? f(double()) : (operation) nullptr;
}

template <typename F>
static operation
with_number(type t, F f)
{
    return t == F32 || t == F64 ? with_float(t, f) : with_integer(t, f);
}

/* cvt takes bytes and halves too. */
template <typename F>
static operation
with_any(type t, F f)
{
    switch (t) {
    case U8:
        return f(uint8_t());
    case S8:
        return f(int8_t());
    case F16:
        return f(half());
    case BF16:
        return f(bfloat());
    default:
        return with_number(t, f);
    }
}

template <typename OP>
static operation
of_two(type t)
{
    return with_number(t, [](auto x) -> operation {
        typedef decltype(x) T;
        return two<OP, T, T, T>;
    });
}

template <typename OP>
static operation
of_two_integers(type t)
{
    return with_integer(t, [](auto x) -> operation {
        typedef decltype(x) T;
        return two<OP, T, T, T>;
    });
}

template <typename OP>
static operation
of_two_floats(type t)
{
    return with_float(t, [](auto x) -> operation {
        typedef decltype(x) T;
        return two<OP, T, T, T>;
    });
}

template <typename OP>
static operation
of_one(type t)
{
    return with_number(t, [](auto x) -> operation {
        typedef decltype(x) T;
        return one<OP, T, T>;
    });
}

template <typename OP>
static operation
of_one_integer(type t)
{
    return with_integer(t, [](auto x) -> operation {
        typedef decltype(x) T;
        return one<OP, T, T>;
    });
}

template <typename OP>
static operation
of_one_float(type t)
{
    return with_float(t, [](auto x) -> operation {
        typedef decltype(x) T;
        return one<OP, T, T>;
    });
}

template <typename OP>
static operation
shift(type t)
{
    return with_integer(t, [](auto x) -> operation {
        typedef decltype(x) T;
        return two<OP, T, T, uint32_t>;
    });
}

static operation
division(type t)
{
    return t == F32 || t == F64 ? of_two_floats<divide_floats>(t) : of_two_integers<divide_integers>(t);
}

static operation
smaller(type t)
{
    return t == F32 || t == F64 ? of_two_floats<smaller_float>(t) : of_two_integers<smaller_integer>(t);
}

static operation
larger(type t)
{
    return t == F32 || t == F64 ? of_two_floats<larger_float>(t) : of_two_integers<larger_integer>(t);
}

static operation
wide_product(type t)
{
    return t == U16   ? two<wide_multiply, uint32_t, uint16_t, uint16_t>
           : t == S16 ? two<wide_multiply, int32_t, int16_t, int16_t>
           : t == U32 ? two<wide_multiply, uint64_t, uint32_t, uint32_t>
           : t == S32 ? two<wide_multiply, int64_t, int32_t, int32_t>
                      : (operation) nullptr;
}

static operation
wide_product_and_sum(type t)
{
    return t == U32   ? three<wide_multiply_add, uint64_t, uint32_t, uint32_t, uint64_t>
           : t == S32 ? three<wide_multiply_add, int64_t, int32_t, int32_t, int64_t>
                      : (operation) nullptr;
}

static operation
high_product(type t)
{
    return t == U32   ? two<high_multiply, uint32_t, uint32_t, uint32_t>
           : t == S32 ? two<high_multiply, int32_t, int32_t, int32_t>
                      : (operation) nullptr;
}

static operation
product_and_sum(type t)
{
    return t == U32 || t == S32   ? three<multiply_add, uint32_t, uint32_t, uint32_t, uint32_t>
           : t == U64 || t == S64 ? three<multiply_add, uint64_t, uint64_t, uint64_t, uint64_t>
                                  : (operation) nullptr;
}

static operation
fused_product_and_sum(type t)
{
    return with_float(t, [](auto x) -> operation {
        typedef decltype(x) T;
        return three<fused_multiply_add, T, T, T, T>;
    });
}

static operation
selection(type t)
{
    return width_of(t) == 8 ? three<select, uint64_t, uint64_t, uint64_t, uint32_t>
                            : three<select, uint32_t, uint32_t, uint32_t, uint32_t>;
}

static operation
move(type t)
{
    return width_of(t) == 8 ? one<copy, uint64_t, uint64_t> : one<copy, uint32_t, uint32_t>;
}

static operation
inverse(type t)
{
    return t == PRED ? one<logical_not, uint32_t, uint32_t> : of_one_integer<bitwise_not>(t);
}

static operation
permutation(type t)
{
    return t == B32 ? three<permute_bytes, uint32_t, uint32_t, uint32_t, uint32_t> : (operation) nullptr;
}

static operation
insertion(type t)
{
    return t == B32 ? insert_bits : (operation) nullptr;
}

static operation
gross_inverse(type t)
{
    return t == F64 ? one<approximate_inverse, double, double> : (operation) nullptr;
}

/* ---- comparison and conversion ----------------------------------------------------------------------------------- */

static const char *const comparison_names[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                               "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};

template <typename T, comparison C = EQ>
static operation
compare_by(const std::string &name)
{
    if (name == comparison_names[C])
        return two<compare<C>, uint32_t, T, T>;
    if constexpr (C + 1 < COMPARISONS)
        return compare_by<T, (comparison)(C + 1)>(name);
    return nullptr;
}

/* setp.COMPARISON.TYPE */
static operation
find_comparison(const std::vector<std::string> &words)
{
    if (words.size() != 3)
        return nullptr;
    return with_number(type_of(words[2]), [&](auto x) -> operation { return compare_by<decltype(x)>(words[1]); });
}

/* The conversions that C++ has, and those to and from float. */
template <typename D, typename A>
constexpr bool
is_convertible()
{
    constexpr bool to_half = std::is_same_v<D, half> || std::is_same_v<D, bfloat>;
    constexpr bool from_half = std::is_same_v<A, half> || std::is_same_v<A, bfloat>;

    return to_half ? std::is_same_v<A, float> : from_half ? std::is_same_v<D, float> : true;
}

template <rounding R>
static operation
conversion(type to, type from)
{
    return with_any(to, [=](auto d) -> operation {
        return with_any(from, [](auto a) -> operation {
            typedef decltype(d) D;
            typedef decltype(a) A;
            if constexpr (is_convertible<D, A>())
                return one<convert<R>, D, A>;
            else
                return nullptr;
        });
    });
}

/* cvt[.rn|.rzi].TO.FROM, and cvt.rna.tf32.f32 */
static arithmetic
find_conversion(const std::vector<std::string> &words)
{
    std::string round = words.size() == 4 ? words[1] : "";
    type to = words.size() < 3 ? NO_TYPE : type_of(words[words.size() - 2]), from = type_of(words.back());

    if (words == std::vector<std::string>{"cvt", "rna", "tf32", "f32"})
        return {one<round_to_tf32, uint32_t, float>, {4, 4}};
    if (words.size() > 4 || (round != "" && round != "rn" && round != "rzi"))
        return {nullptr, {}};
    if (to == F16X2 && from == F32)
        return {two<pack_halves<half>, uint32_t, float, float>, {4, 4, 4}};
    if (to == BF16X2 && from == F32)
        return {two<pack_halves<bfloat>, uint32_t, float, float>, {4, 4, 4}};
    return {round == "rzi" ? conversion<TO_ZERO>(to, from) : conversion<TO_NEAREST>(to, from),
            {width_of(to), width_of(from)}};
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

/*
 * The opcodes NAME.TYPE and NAME.rn.TYPE.  widths: of the operands' registers; n that of the type, w twice that of the
 * type (64 bits for 32), 4 a 32-bit number, p a predicate.
 */
static const struct {
    const char *name;
    operation (*find)(type t);
    const char *widths;
} table[] = {
    {"add", of_two<add>, "nnn"},
    {"sub", of_two<subtract>, "nnn"},
    {"mul", of_two_floats<multiply>, "nnn"},
    {"mul.lo", of_two_integers<multiply>, "nnn"},
    {"mul.hi", high_product, "nnn"},
    {"mul.wide", wide_product, "wnn"},
    {"mad.lo", product_and_sum, "nnnn"},
    {"mad.wide", wide_product_and_sum, "wnnw"},
    {"fma", fused_product_and_sum, "nnnn"},
    {"div", division, "nnn"},
    {"rem", of_two_integers<remainder_of>, "nnn"},
    {"min", smaller, "nnn"},
    {"max", larger, "nnn"},
    {"and", of_two_integers<bitwise_and>, "nnn"},
    {"or", of_two_integers<bitwise_or>, "nnn"},
    {"xor", of_two_integers<bitwise_xor>, "nnn"},
    {"not", inverse, "nn"},
    {"shl", shift<shift_left>, "nn4"},
    {"shr", shift<shift_right>, "nn4"},
    {"neg", of_one<negate>, "nn"},
    {"abs", of_one_float<absolute>, "nn"},
    {"sqrt", of_one_float<square_root>, "nn"},
    {"rcp", of_one_float<inverse_of>, "nn"},
    {"rcp.approx.ftz", gross_inverse, "nn"},
    {"prmt", permutation, "4444"},
    {"bfi", insertion, "44444"},
    {"selp", selection, "nnnp"},
    {"mov", move, "nn"},
    {"cvta.to.global", move, "nn"},
};

arithmetic
find_arithmetic(const std::vector<std::string> &words)
{
    type t = type_of(words.back());
    unsigned n = t == PRED ? PREDICATE : width_of(t);
    std::string name;

    if (words[0] == "setp")
        return {find_comparison(words), {PREDICATE, n, n}};
    if (words[0] == "cvt")
        return find_conversion(words);
    for (size_t k = 0; k + 1 < words.size(); k++)
        if (words[k] != "rn")
            name += (k ? "." : "") + words[k];
    for (const auto &row : table)
        if (name == row.name && t != NO_TYPE) {
            arithmetic found = {row.find(t), {}};

            for (const char *c = row.widths; *c; c++)
                found.widths.push_back(*c == '4'              ? 4
                                       : *c == 'p'            ? PREDICATE
                                       : *c == 'n'            ? n
                                       : t == U16 || t == S16 ? 4
                                                              : 8);
            return found;
        }
    return {nullptr, {}};
}
} // namespace ptx
