/*
 * tile.h - a warp's product of two tiles of 16 x 16 values in shared memory, accumulated in float
 *
 *   D += A * B;  A is 16 x k, B is k x 16
 *
 * k is either the fast index of an operand (its lines are rows of A, or columns of B), or the slow one (the operand is
 * transposed, its lines are k).  p(line, piece) returns the address of values piece * 8 .. + 7 of a line; lines are
 * 0 .. 15, pieces 0 and 1.  A tile is loaded by ldmatrix and multiplied by mma.m16n8k16.  sm_75 has mma.m16n8k8 only:
 * its fragments are the first and the second halves of those of m16n8k16, so both load the same registers.  sm_70 uses
 * mma.m8n8k4, whose four quad pairs form a square of 2 x 2.  tf32 uses its own mma.m16n8k8, and ldmatrix only if k is
 * the fast index: it does not transpose values of 32 bits.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_KERNELS_TILE_H
#define CHEX_CUDA_KERNELS_TILE_H

#include "cuda/kernels/device.h"

namespace
{
/*
 * Value e of a lane is at row tile_row(e) and column tile_column(e); for even e, the columns of e and e + 1 are
 * adjacent.
 */
struct tile_sum {
    float at[8];
};

/*
 * In shared memory, piece q of line l is stored at q ^ tile_swizzle(l), so what lanes read at once is in different
 * banks: eight adjacent lines of a piece (ldmatrix); on sm_70 lines l .. l + 3 and l + 8 .. l + 11 of a piece, or,
 * transposed, four adjacent lines of two adjacent pieces.  WHOLE: a line has a multiple of eight pieces; otherwise, of
 * four.  Pieces of tf32 have 32 bytes: four adjacent lines of a piece, transposed, are in different banks; of the eight
 * half pieces that ldmatrix reads at once, two share their banks.
 */
template <bool WHOLE>
DEVICE unsigned
tile_swizzle(unsigned line)
{
#if CUDA_VALUE_IS(tf32)
    return line & 3;
#elif HAS_LDMATRIX
    return WHOLE ? line & 7 : line / 2 & 3;
#else
    return WHOLE ? (line & 3) * 2 | ((line / 4 ^ line / 8) & 1) : (line & 2) | ((line / 4 ^ line / 8) & 1);
#endif
}

#if HAS_LDMATRIX
DEVICE unsigned
tile_row(unsigned e)
{
    return lane_id() / 4 + (e & 2) * 4;
}
DEVICE unsigned
tile_column(unsigned e)
{
    return (e & 4) * 2 + lane_id() % 4 * 2 + (e & 1);
}

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
/* Loads four squares of 16-byte lines; a lane gives the address of one line. */
DEVICE void
ldmatrix(unsigned (&r)[4], const value_t *line)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(line))
                 : "memory");
}
#endif

#if CUDA_VALUE_IS(tf32)
/* Values of the two products over eight k: four of A each; of B, two for each of the two squares of columns. */
struct tile {
    float at[8];
};

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
DEVICE void
tile_fill(float *t, const value_t *line)
{
    unsigned r[4];

    ldmatrix(r, line);
#pragma unroll
    for (unsigned i = 0; i < 4; i++)
        t[i] = __uint_as_float(r[i]);
}
/* Rounds to the nearest value of ten bits of mantissa, ties away from zero. */
DEVICE float
tile_round(float x)
{
    unsigned rounded;

    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(x));
    return __uint_as_float(rounded);
}
/* A 16 x 8 square of D. */
DEVICE void
tile_mma(float *d, const float *a, const float *b)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])),
                   "r"(__float_as_uint(a[3])), "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
}
DEVICE void
tile_multiply(tile_sum &d, const tile &a, const tile &b)
{
#pragma unroll
    for (unsigned k = 0; k < 8; k += 4) {
        tile_mma(d.at, a.at + k, b.at + k);
        tile_mma(d.at + 4, a.at + k, b.at + k + 2);
    }
}
#else
DEVICE void
tile_fill(float *t, const value_t *line, emulated::place at = EMULATED_HERE)
{
    emulated::ldmatrix_words(t, 4, line, at);
}
DEVICE float
tile_round(float x)
{
    return emulated::to_tf32(x);
}
DEVICE void
tile_multiply(tile_sum &d, const tile &a, const tile &b, emulated::place at = EMULATED_HERE)
{
    for (unsigned k = 0; k < 8; k += 4)
        emulated::mma_1688_tf32_twice(d.at, a.at + k, b.at + k, at);
}
#endif

DEVICE void
tile_round_all(tile &t)
{
#pragma unroll
    for (unsigned i = 0; i < 8; i++)
        t.at[i] = tile_round(t.at[i]);
}
/* Returns the line of A whose address a lane provides, if lines are rows. */
DEVICE unsigned
tile_line_a()
{
    return lane_id() % 16;
}
/*
 * A lane has rows lane / 4 and, in every second value, 8 more; k is lane % 4, then 4 more.  Transposed, a line has one
 * k and pieces are rows.
 */
template <bool transposed, typename P>
DEVICE void
tile_load_a(tile &t, P p)
{
#pragma unroll
    for (unsigned i = 0; i < 8; i += transposed ? 1 : 4) {
        if (transposed)
            t.at[i] = p(lane_id() % 4 + i / 2 * 4, i % 2)[lane_id() / 4];
        else
            tile_fill(t.at + i, p(lane_id() % 16, i / 4) + lane_id() / 16 * 4);
    }
    tile_round_all(t);
}
/* A lane has columns lane / 4 and, in values 2 and 3, 8 more; k is lane % 4 and, in every second value, 4 more. */
template <bool transposed, typename P>
DEVICE void
tile_load_b(tile &t, P p)
{
#pragma unroll
    for (unsigned i = 0; i < 8; i += transposed ? 1 : 4) {
        if (transposed)
            t.at[i] = p(lane_id() % 4 + i / 4 * 8 + i % 2 * 4, i / 2 % 2)[lane_id() / 4];
        else
            tile_fill(t.at + i, p(lane_id() % 8 + lane_id() / 16 * 8, i / 4) + lane_id() / 8 % 2 * 4);
    }
    tile_round_all(t);
}
#else /* halves; in the emulator, also float */

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
struct tile {
    unsigned r[4];
};
template <bool transposed>
DEVICE void
tile_fill(tile &t, const value_t *line)
{
    if (transposed)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(t.r[0]), "=r"(t.r[1]), "=r"(t.r[2]), "=r"(t.r[3])
                     : "r"(shared_address(line))
                     : "memory");
    else
        ldmatrix(t.r, line);
}
#if CUDA_VALUE_IS(bf16)
#define TILE_TYPE "bf16"
#else
#define TILE_TYPE "f16"
#endif
/* A 16 x 8 square of D. */
DEVICE void
tile_mma(float *d, const unsigned *a, const unsigned *b)
{
#if HAS_ASYNC_COPY
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." TILE_TYPE "." TILE_TYPE ".f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
#pragma unroll
    for (unsigned half = 0; half < 2; half++)
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
                     "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a[2 * half]), "r"(a[2 * half + 1]), "r"(b[half]));
#endif
}
DEVICE void
tile_multiply(tile_sum &d, const tile &a, const tile &b)
{
    tile_mma(d.at, a.r, b.r);
    tile_mma(d.at + 4, a.r, b.r + 2);
}
#else
struct tile {
    value_t at[8];
};
template <bool transposed>
DEVICE void
tile_fill(tile &t, const value_t *line, emulated::place at = EMULATED_HERE)
{
    emulated::ldmatrix(t.at, 4, transposed, line, at);
}
DEVICE void
tile_multiply(tile_sum &d, const tile &a, const tile &b, emulated::place at = EMULATED_HERE)
{
#if HAS_ASYNC_COPY
    emulated::mma_16816_twice(d.at, a.at, b.at, at);
#else
    for (unsigned half = 0; half < 2; half++) {
        emulated::mma_1688(d.at, a.at + 4 * half, b.at + 2 * half, at);
        emulated::mma_1688(d.at + 4, a.at + 4 * half, b.at + 4 + 2 * half, at);
    }
#endif
}
#endif

/* Returns the line of A whose address a lane provides, if lines are rows. */
DEVICE unsigned
tile_line_a()
{
    return lane_id() % 16;
}
/* The four matrices of A: lines 0 and 8 of piece 0, then lines 0 and 8 of piece 1. */
template <bool transposed, typename P>
DEVICE void
tile_load_a(tile &t, P p)
{
    if (transposed)
        tile_fill<true>(t, p(lane_id() % 8 + lane_id() / 16 * 8, lane_id() / 8 % 2));
    else
        tile_fill<false>(t, p(lane_id() % 16, lane_id() / 16));
}
/* The four matrices of B: k 0 and k 8 of the first eight columns, then of the others. */
template <bool transposed, typename P>
DEVICE void
tile_load_b(tile &t, P p)
{
    if (transposed)
        tile_fill<true>(t, p(lane_id() % 16, lane_id() / 16));
    else
        tile_fill<false>(t, p(lane_id() % 8 + lane_id() / 16 * 8, lane_id() / 8 % 2));
}
#endif
template <bool transposed_a, bool transposed_b>
DEVICE void
tile_multiply_as(tile_sum &d, const tile &a, const tile &b)
{
    tile_multiply(d, a, b);
}

#else /* sm_70 */
DEVICE unsigned
tile_row(unsigned e)
{
    return (lane_id() / 4 & 1) * 8 + (lane_id() & 1) + (e & 2) + lane_id() / 16 * 4;
}
DEVICE unsigned
tile_column(unsigned e)
{
    return (lane_id() / 8 & 1) * 8 + (e & 4) + (lane_id() & 2) + (e & 1);
}

/* Four values for each step of four k: of one line, or of four adjacent lines if the lines are k. */
struct tile {
    value_t at[4][4];
};
struct alignas(8) value4 {
    value_t at[4];
};
template <bool transposed, typename P>
DEVICE void
tile_fill(tile &t, unsigned half, P p)
{
    unsigned upper = lane_id() / 16;

#pragma unroll
    for (unsigned k = 0; k < 4; k++) {
        const value_t *from = transposed ? p(k * 4 + lane_id() % 4, half) + upper * 4
                                         : p(half * 8 + lane_id() % 4 + upper * 4, k / 2) + k % 2 * 4;

        *(value4 *)(void *)t.at[k] = *(const value4 *)(const void *)from;
    }
}
DEVICE unsigned
tile_line_a()
{
    return (lane_id() / 4 & 1) * 8 + lane_id() % 4 + lane_id() / 16 * 4;
}
template <bool transposed, typename P>
DEVICE void
tile_load_a(tile &t, P p)
{
    tile_fill<transposed>(t, lane_id() / 4 & 1, p);
}
template <bool transposed, typename P>
DEVICE void
tile_load_b(tile &t, P p)
{
    tile_fill<transposed>(t, lane_id() / 8 & 1, p);
}

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define TILE_MMA(layout_a, layout_b)                                                                              \
    asm volatile("mma.sync.aligned.m8n8k4." layout_a "." layout_b ".f32.f16.f16.f32 "                             \
                 "{%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%9}, {%10,%11}, {%0,%1,%2,%3,%4,%5,%6,%7};"                      \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]) \
                 : "r"(a.x), "r"(a.y), "r"(b.x), "r"(b.y))
template <bool transposed_a, bool transposed_b>
DEVICE void
tile_mma(float *d, const value_t *fa, const value_t *fb)
{
    uint2 a = *(const uint2 *)(const void *)fa, b = *(const uint2 *)(const void *)fb;

    if (transposed_a && transposed_b)
        TILE_MMA("col", "row");
    else if (transposed_a)
        TILE_MMA("col", "col");
    else if (transposed_b)
        TILE_MMA("row", "row");
    else
        TILE_MMA("row", "col");
}
#else
template <bool transposed_a, bool transposed_b>
DEVICE void
tile_mma(float *d, const value_t *a, const value_t *b, emulated::place at = EMULATED_HERE)
{
    emulated::mma_884(d, a, b, transposed_a, transposed_b, at);
}
#endif
template <bool transposed_a, bool transposed_b>
DEVICE void
tile_multiply_as(tile_sum &d, const tile &a, const tile &b)
{
#pragma unroll
    for (unsigned k = 0; k < 4; k++)
        tile_mma<transposed_a, transposed_b>(d.at, a.at[k], b.at[k]);
}
#endif
} // namespace

#endif
