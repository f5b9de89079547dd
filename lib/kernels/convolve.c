/*
 * convolve.c - see convolve.h
 *
 * One kernel does both passes: it computes LANES columns at once and reads two rows at a time.  The row pass transposes
 * a strip of CONVOLVE_STRIP rows, calls the same kernel, and transposes the result back; this costs less than sums
 * along a row.
 *
 * The portable kernel for factors of any size, convolve_wide_columns_c(), needs one operation that C cannot express:
 * the pairwise multiply-add of 16-bit integers, which nearly every CPU has.  The rest uses GCC's vector types (clang
 * has them too), which work on any CPU.  All of it is integer arithmetic, so the result does not depend on the order.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/convolve_private.h"

#include "base/memory.h"

#include <string.h>

#define LANES               16
#define HALF                (1u << (RESAMPLE_PRECISION - 1))
#define LITTLE_ENDIAN_BYTES (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)

typedef uint8_t bytes16 __attribute__((vector_size(16)));
typedef int16_t short8 __attribute__((vector_size(16)));
typedef int32_t int4 __attribute__((vector_size(16)));
typedef uint32_t uint4 __attribute__((vector_size(16)));

/* ---- vectors ------------------------------------------------------------------------------------------------- */

static inline bytes16
load(const uint8_t *from)
{
    bytes16 v;

    memcpy(&v, from, sizeof(v));
    return v;
}

static inline void
store(uint8_t *to, bytes16 v)
{
    memcpy(to, &v, sizeof(v));
}

/* a0 b0 a1 b1 ... of the first halves, and of the second halves. */
static inline bytes16
interleave_first(bytes16 a, bytes16 b)
{
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}

static inline bytes16
interleave_second(bytes16 a, bytes16 b)
{
    return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

static inline bytes16
swap_halves(bytes16 v)
{
    return __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
}

/* Widen to 16 bits: add a zero byte after or before each byte, depending on the byte order of the CPU. */
static inline short8
widen_first(bytes16 v)
{
    const bytes16 zero = {0};

    return (short8)(LITTLE_ENDIAN_BYTES ? interleave_first(v, zero) : interleave_first(zero, v));
}

static inline short8
widen_second(bytes16 v)
{
    const bytes16 zero = {0};

    return (short8)(LITTLE_ENDIAN_BYTES ? interleave_second(v, zero) : interleave_second(zero, v));
}

/* a0 b0 + a1 b1, a2 b2 + a3 b3, ... */
static inline uint4
multiply_add(short8 a, short8 b)
{
#ifdef __SSE2__
    return (uint4)__builtin_ia32_pmaddwd128(a, b);
#else
    int4 sum = {0};

    for (int i = 0; i < 4; i++)
        sum[i] = a[2 * i] * b[2 * i] + a[2 * i + 1] * b[2 * i + 1];
    return (uint4)sum;
#endif
}

/* Repeat a pair of numbers four times. */
static inline short8
repeat(const int16_t *pair)
{
    int32_t both;

    memcpy(&both, pair, sizeof(both));
    return (short8)(int4){both, both, both, both};
}

/* ---- kernel -------------------------------------------------------------------------------------------------- */

/*
 * Like to_byte() in convolve_plain.c for four sums; each byte is in the lowest bits of its lane.  A comparison yields
 * all bits or none.
 */
static inline uint4
to_bytes(uint4 sum)
{
    int4 value = (int4)(sum + HALF) >> RESAMPLE_PRECISION;

    value &= value > 0;
    value |= value > 255;
    return (uint4)(value & 255);
}

/* Pack the lowest bytes of 16 lanes into one vector: as a 4 x 4 matrix, transposed by interleaving its halves twice. */
static inline bytes16
pack(uint4 a, uint4 b, uint4 c, uint4 d)
{
    bytes16 v = (bytes16)(LITTLE_ENDIAN_BYTES ? a | b << 8 | c << 16 | d << 24 : d | c << 8 | b << 16 | a << 24);

    v = interleave_first(v, swap_halves(v));
    return interleave_first(v, swap_halves(v));
}

/*
 * Compute one output sample for each of LANES columns.  coarse: all low parts are 0; it is a constant wherever this
 * function is expanded.
 */
static inline void
convolve_lanes(const uint8_t *from, size_t stride, const struct wide_factors *f, bool coarse, uint8_t *out)
{
    uint4 low0 = {0}, low1 = {0}, low2 = {0}, low3 = {0};
    uint4 high0 = {0}, high1 = {0}, high2 = {0}, high3 = {0};

    for (uint32_t t = 0; t < f->count; t += 2, from += 2 * stride) {
        bytes16 a = load(from), b = t + 1 < f->count ? load(from + stride) : a;
        bytes16 first = interleave_first(a, b), second = interleave_second(a, b);
        short8 sample0 = widen_first(first), sample1 = widen_second(first);
        short8 sample2 = widen_first(second), sample3 = widen_second(second);
        short8 factor = repeat(f->high + t);

        high0 += multiply_add(sample0, factor);
        high1 += multiply_add(sample1, factor);
        high2 += multiply_add(sample2, factor);
        high3 += multiply_add(sample3, factor);
        if (coarse)
            continue;
        factor = repeat(f->low + t);
        low0 += multiply_add(sample0, factor);
        low1 += multiply_add(sample1, factor);
        low2 += multiply_add(sample2, factor);
        low3 += multiply_add(sample3, factor);
    }
    store(out, pack(to_bytes((high0 << RESAMPLE_LOW_BITS) + low0), to_bytes((high1 << RESAMPLE_LOW_BITS) + low1),
                    to_bytes((high2 << RESAMPLE_LOW_BITS) + low2), to_bytes((high3 << RESAMPLE_LOW_BITS) + low3)));
}

void
convolve_wide_columns_c(const uint8_t *from, size_t stride, const struct wide_factors *f, uint32_t width, uint8_t *out)
{
    uint32_t x = 0;

    if (f->coarse)
        for (; width - x >= LANES; x += LANES)
            convolve_lanes(from + x, stride, f, true, out + x);
    for (; width - x >= LANES; x += LANES)
        convolve_lanes(from + x, stride, f, false, out + x);
    for (; x < width; x++)
        out[x] = convolve_wide_one(from + x, stride, f);
}

/* ---- columns ------------------------------------------------------------------------------------------------- */

static struct small_factors
small_factors_of(const struct resample_axis *axis, uint32_t o)
{
    return (struct small_factors){axis->small + o * axis->taps, axis->count[o], axis->small_bits[o]};
}

static struct wide_factors
wide_factors_of(const struct resample_axis *axis, uint32_t o)
{
    return (struct wide_factors){axis->low + o * axis->taps, axis->high + o * axis->taps, axis->count[o],
                                 axis->coarse[o]};
}

void
convolve_columns(const struct convolve_kind *kind, const struct resample_axis *axis, const uint8_t *rows,
                 uint32_t first_row, size_t stride, uint32_t width, uint8_t *out)
{
    for (uint32_t o = 0; o < axis->out; o++, out += width) {
        const uint8_t *from = rows + (axis->first[o] - first_row) * stride;

        if (axis->small_bits[o] != RESAMPLE_NOT_SMALL) {
            struct small_factors f = small_factors_of(axis, o);

            kind->small_columns(from, stride, &f, width, out);
        } else {
            struct wide_factors f = wide_factors_of(axis, o);

            /* The portable kernel has the narrowest registers. */
            (width < CONVOLVE_STRIP ? convolve_wide_columns_c : kind->wide_columns)(from, stride, &f, width, out);
        }
    }
}

/* ---- rows ---------------------------------------------------------------------------------------------------- */

#define BLOCK_TARGET
#define BLOCK_NAME(x)       x##_block
#define vec                 bytes16
#define V(op)               plain_##op
#define plain_unpacklo_epi8 interleave_first
#define plain_unpackhi_epi8 interleave_second
#include "kernels/transpose_block.h"

static inline void
move_block(const uint8_t *from, size_t from_stride, uint8_t *to, size_t to_stride)
{
    bytes16 block[LANES];

#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
        block[i] = load(from + i * from_stride);
    transpose_block(block);
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
        store(to + i * to_stride, block[i]);
}

/* to[x][y] = from[y][x] */
static void
transpose(const uint8_t *from, size_t from_stride, uint32_t height, uint32_t width, uint8_t *to, size_t to_stride)
{
    for (uint32_t y = 0; y < height; y += LANES) {
        uint32_t rows = height - y < LANES ? height - y : LANES, x = 0;

        if (rows == LANES)
            for (; width - x >= LANES; x += LANES)
                move_block(from + y * from_stride + x, from_stride, to + x * to_stride + y, to_stride);
        for (; x < width; x++)
            for (uint32_t i = 0; i < rows; i++)
                to[x * to_stride + y + i] = from[(y + i) * from_stride + x];
    }
}

void
convolve_turn_c(const uint8_t *rows, size_t stride, uint32_t width, uint8_t *strip)
{
    transpose(rows, stride, CONVOLVE_STRIP, width, strip, CONVOLVE_STRIP);
}

void
convolve_turn_back_c(const uint8_t *strip, uint32_t width, uint8_t *rows)
{
    transpose(strip, CONVOLVE_STRIP, width, CONVOLVE_STRIP, rows, width);
}

bool
convolve_rows_scratch(const struct resample_axis *axis, size_t *size)
{
    size_t lines;

    return size_add(axis->in, axis->out, &lines) && size_mul(lines, CONVOLVE_STRIP, size);
}

/* The row pass: transpose strips of CONVOLVE_STRIP rows and resize their columns. */
static void
convolve_rows_turned(const struct convolve_kind *kind, const struct resample_axis *axis, const uint8_t *rows,
                     size_t stride, uint32_t count, uint8_t *scratch, uint8_t *out)
{
    const uint32_t lanes = CONVOLVE_STRIP;
    uint8_t *strip = scratch, *result = scratch + (size_t)axis->in * lanes; /* [in][lanes], [out][lanes] */

    if (count < lanes) /* zero the lanes without a row */
        memset(strip, 0, (size_t)axis->in * lanes);
    for (uint32_t y = 0; y < count; y += lanes) {
        uint32_t n = count - y < lanes ? count - y : lanes;

        if (n == lanes)
            kind->turn(rows + y * stride, stride, axis->in, strip);
        else
            transpose(rows + y * stride, stride, n, axis->in, strip, lanes);
        convolve_columns(kind, axis, strip, 0, lanes, lanes, result);
        if (n == lanes)
            kind->turn_back(result, axis->out, out + (size_t)y * axis->out);
        else
            transpose(result, lanes, axis->out, n, out + (size_t)y * axis->out, axis->out);
    }
}

/* An axis with equal factors except at its ends: convolve along the row. */
static void
convolve_row_along(const struct convolve_kind *kind, const struct resample_axis *axis, const uint8_t *row, uint8_t *out)
{
    struct small_factors f = small_factors_of(axis, axis->even_from);

    for (uint32_t o = 0; o < axis->out; o++) {
        if (o == axis->even_from) {
            kind->small_rows(row + axis->first[o], &f, axis->even_to - o, out + o);
            o = axis->even_to;
        }
        if (o < axis->out) {
            struct wide_factors end = wide_factors_of(axis, o);

            out[o] = convolve_wide_one(row + axis->first[o], 1, &end);
        }
    }
}

void
convolve_rows(const struct convolve_kind *kind, const struct resample_axis *axis, const uint8_t *rows, size_t stride,
              uint32_t count, uint8_t *scratch, uint8_t *out)
{
    uint32_t even = axis->even_to - axis->even_from;

    /* With 8 small factors an end has only a few samples; for longer ends use the general kernel. */
    if (even == 0 || axis->out - even > 8) {
        convolve_rows_turned(kind, axis, rows, stride, count, scratch, out);
        return;
    }
    for (uint32_t y = 0; y < count; y++)
        convolve_row_along(kind, axis, rows + y * stride, out + (size_t)y * axis->out);
}

/* ---- the table of implementations ---------------------------------------------------------------------------- */

static bool
always(void)
{
    return true;
}

const struct convolve_kind convolve_kinds[] = {
#ifdef CONVOLVE_HAVE_X86
    {"avx512", convolve_avx512_supported, convolve_small_columns_avx2, convolve_small_rows_avx2,
     convolve_wide_columns_avx512, convolve_turn_avx2, convolve_turn_back_avx2},
    {"avx2", convolve_avx2_supported, convolve_small_columns_avx2, convolve_small_rows_avx2, convolve_wide_columns_avx2,
     convolve_turn_avx2, convolve_turn_back_avx2},
    {"sse4.1", convolve_sse41_supported, convolve_small_columns_sse41, convolve_small_rows_sse41,
     convolve_wide_columns_c, convolve_turn_c, convolve_turn_back_c},
#endif
#ifdef CONVOLVE_HAVE_NEON
    {"neon", always, convolve_small_columns_neon, convolve_small_rows_neon, convolve_wide_columns_neon, convolve_turn_c,
     convolve_turn_back_c},
#endif
    {"c", always, convolve_small_columns_c, convolve_small_rows_c, convolve_wide_columns_c, convolve_turn_c,
     convolve_turn_back_c},
    {NULL, NULL, NULL, NULL, NULL, NULL, NULL},
};

const struct convolve_kind *
convolve_best(void)
{
    const struct convolve_kind *kind = convolve_kinds;

    while (!kind->supported())
        kind++;
    return kind;
}
