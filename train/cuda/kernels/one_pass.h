/*
 * one_pass.h - dgrad and wgrad of a pointwise convolution in one pass over its pixels
 *
 *            rows M           columns N       k                lines of A   lines of B
 *   dgrad    pixels           input channels  output channels  M            k ("turned")
 *   wgrad    output channels  input channels  pixels           k ("turned") k ("turned")
 *
 * A CTA has a slice of the input channels and a range of the pixels.  The weights of the slice stay in shared memory,
 * and its wgrad sums in registers, until its last tile.  Each tile of ONE_PASS_PIXELS pixels is loaded once for
 * both products: A and the values of y, and x.  The gradient of y is finalized in place (finalize_view), and BN is
 * applied to x in place; each thread keeps the x values that it loaded.  The product of dgrad overwrites the values of
 * y in shared memory, so that the epilogue writes whole rows of the gradient of x, with ReLU mask and partial sums as
 * in dgrad of gemm.h.  With two stages the next tile is loaded meanwhile: as soon as a tile is stored, its stage is
 * loaded with the tile after the next.
 *
 * A thread has the same eight channels of y, and of x, in all tiles.  If there are enough registers (SHAPE::HOLDS), the
 * constants of these channels stay in registers for all tiles; otherwise they are read from the tables once per tile.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_KERNELS_ONE_PASS_H
#define CHEX_CUDA_KERNELS_ONE_PASS_H

#include "cuda/kernels/one_pass_tile.h"

namespace
{
/* Shared memory of a CTA. */
template <typename SHAPE> struct one_pass_memory {
    value_t *weights;      /* [ONE_PASS_OUT][COLUMNS], of the slice */
    norm_table of_y, of_x; /* finalize_figure; norm_figure and gamma */
    unsigned *images;      /* one bit per image: does it have weight? */
    unsigned char *stages;
};

template <typename SHAPE>
DEVICE one_pass_memory<SHAPE>
one_pass_memory_at(unsigned char *shared)
{
    value_t *weights = (value_t *)(void *)shared;
    float *tables = (float *)(void *)(weights + ONE_PASS_OUT * SHAPE::COLUMNS);
    float *of_x = tables + ONE_PASS_OUT * FINALIZE_FIGURES,
          *behind = of_x + SHAPE::COLUMNS * ONE_PASS_NORM_FIGURES(SHAPE::END);

    return {weights,
            {tables, SHAPE::Y_PIECES},
            {of_x, SHAPE::X_PIECES},
            (unsigned *)(void *)behind,
            (unsigned char *)(void *)tables + ONE_PASS_TABLE_BYTES(SHAPE::COLUMNS, SHAPE::END)};
}

/* Kept until the last tile: the wgrad sums, and the per-channel sums of each thread. */
template <typename SHAPE> struct one_pass_sums {
    tile_sum weights[SHAPE::WGRAD_DOWN][SHAPE::WGRAD_ACROSS];
    one_pass_channels of_norm, of_end;
};

/* ---- before the first tile --------------------------------------------------------------------------------------- */

/* Makes the table of x: that of its BN, or the identity. */
template <typename SHAPE>
DEVICE void
one_pass_make_norm(const dgrad_args &a, const norm_table &t, double *scratch, const one_pass_work &w, bool first)
{
    unsigned count = min((unsigned)SHAPE::COLUMNS, a.shape.in - w.column0);

    for (unsigned c = threadIdx.x; c < SHAPE::COLUMNS; c += ONE_PASS_THREADS) {
        norm_entry(t, ONE_PASS_GAMMA, c) = !a.norm.gamma ? 1.0f : c < count ? a.norm.gamma[w.column0 + c] : 0.0f;
        if (!a.norm.gamma) {
            norm_entry(t, NORM_SCALE, c) = 1;
            norm_entry(t, NORM_SHIFT, c) = norm_entry(t, NORM_MEAN, c) = norm_entry(t, NORM_INVERSE, c) = 0;
        }
    }
    if (a.norm.gamma)
        norm_make<4>(a.norm, w.column0, count, t, scratch, first);
    else
        __syncthreads();
}

/* Loads the weights of the slice, which stay. */
template <typename SHAPE>
DEVICE void
one_pass_load_weights(const dgrad_args &a, const one_pass_work &w, value_t *to)
{
#pragma unroll
    for (unsigned i = threadIdx.x; i < ONE_PASS_OUT * SHAPE::X_PIECES; i += ONE_PASS_THREADS) {
        unsigned line = i / SHAPE::X_PIECES, piece = i % SHAPE::X_PIECES;
        bool there = line < a.shape.out && w.column0 + piece * 8 < a.shape.in;

        copy8(to + one_pass_offset<SHAPE::X_PIECES>(line, piece),
              (const value_t *)a.w + (there ? (size_t)line * a.shape.in + w.column0 + piece * 8 : 0), there);
    }
}

/* Sets the bits of the images with weight. */
DEVICE void
one_pass_load_images(const dgrad_args &a, unsigned *to)
{
    for (unsigned image = threadIdx.x; image < ONE_PASS_IMAGES; image += ONE_PASS_THREADS) {
        unsigned all = __ballot_sync(0xffffffffu, image < a.shape.images && (!a.weight || a.weight[image] != 0.0f));

        if (lane_id() == 0)
            to[image / 32] = all;
    }
}

/* Prepares what is constant, and starts to load the first tiles, one for each stage. */
template <typename SHAPE>
DEVICE void
one_pass_begin(const one_pass_args &a, const one_pass_work &w, const one_pass_memory<SHAPE> &m)
{
    /* The last stage is not in use yet. */
    double *scratch = (double *)(void *)(m.stages + (a.stages - 1) * SHAPE::STAGE);

    static_assert(FINALIZE_SCRATCH <= SHAPE::STAGE && NORM_SCRATCH <= SHAPE::STAGE, "sums fit into a stage");
    one_pass_load_weights<SHAPE>(a.dgrad, w, m.weights);
    one_pass_load_images(a.dgrad, m.images);
    __syncthreads();
    if (a.stages > 1 && w.first < w.end)
        one_pass_load(a, w, w.first, m.images, one_pass_stage_at<SHAPE>(m.stages));
    copy_commit();
    if (a.finalize.values)
        finalize_make(a, m.of_y, scratch, blockIdx.x == 0 && blockIdx.y == 0);
    one_pass_make_norm<SHAPE>(a.dgrad, m.of_x, scratch, w, blockIdx.y == 0);
    if (SHAPE::END)
        one_pass_make_end(a, m.of_x, w.column0);
    if (w.first + a.stages - 1 < w.end)
        one_pass_load(a, w, w.first + a.stages - 1, m.images,
                      one_pass_stage_at<SHAPE>(m.stages + (a.stages - 1) * SHAPE::STAGE));
    copy_commit();
}

/* ---- after the last tile ----------------------------------------------------------------------------------------- */

/*
 * Reduces the per-channel sums of the CTA in a fixed order; in shared memory they are [X_EACH][first, second][low, high
 * half of a group][X_PIECES][4].
 */
template <typename SHAPE>
DEVICE void
one_pass_store_sums(const channel_sums &to, const one_pass_work &w, const norm_table &t, const one_pass_channels &of,
                    float *shared)
{
    enum { PIECES = SHAPE::X_PIECES, ROW = 2 * SHAPE::COLUMNS };
    unsigned piece = threadIdx.x % PIECES;
    float4 *at = (float4 *)(void *)(shared + threadIdx.x / PIECES * ROW) + piece;
    const float *one = of.by_one, *by_x = of.by_x;
    float f[8];

    static_assert(SHAPE::X_EACH * ROW * sizeof(float) <= SHAPE::STAGE, "sums fit into a stage");
    norm_load8(f, t, NORM_INVERSE, piece * 8);
    at[0] = {one[0], one[1], one[2], one[3]};
    at[PIECES] = {one[4], one[5], one[6], one[7]};
    at[2 * PIECES] = {by_x[0] * f[0], by_x[1] * f[1], by_x[2] * f[2], by_x[3] * f[3]};
    at[3 * PIECES] = {by_x[4] * f[4], by_x[5] * f[5], by_x[6] * f[6], by_x[7] * f[7]};
    __syncthreads();
    for (unsigned i = threadIdx.x; i < ROW; i += ONE_PASS_THREADS) {
        unsigned which = i / SHAPE::COLUMNS, half = i / (SHAPE::COLUMNS / 2) % 2;
        unsigned column = w.column0 + i % (SHAPE::COLUMNS / 2) / 4 * 8 + half * 4 + i % 4;
        float sum = 0;

#pragma unroll
        for (unsigned k = 0; k < SHAPE::X_EACH; k++)
            sum += shared[k * ROW + i];
        if (column < to.channels)
            to.partial[((size_t)blockIdx.y * 2 + which) * to.channels + column] = sum;
    }
}

/* Stores the wgrad sums as floats, if one CTA has all pixels. */
template <typename SHAPE>
DEVICE void
one_pass_store_single(const one_pass_args &a, const one_pass_work &w,
                      const tile_sum (&sum)[SHAPE::WGRAD_DOWN][SHAPE::WGRAD_ACROSS])
{
    const one_pass_corner at = one_pass_wgrad_at<SHAPE>();
    const conv_shape &s = a.dgrad.shape;

#pragma unroll
    for (unsigned i = 0; i < SHAPE::WGRAD_DOWN; i++)
#pragma unroll
        for (unsigned j = 0; j < SHAPE::WGRAD_ACROSS; j++)
#pragma unroll
            for (unsigned e = 0; e < 8; e += 2) {
                unsigned row = at.row + i * 16 + tile_row(e), column = w.column0 + at.column + j * 16 + tile_column(e);

                if (row < s.out && column < s.in)
                    *(float2 *)(void *)((float *)a.partial + (size_t)row * s.in + column) = {sum[i][j].at[e],
                                                                                             sum[i][j].at[e + 1]};
            }
}

/* Stores the wgrad sums of one of several CTAs, through shared memory. */
template <typename SHAPE>
DEVICE void
one_pass_store_split(const one_pass_args &a, const one_pass_work &w,
                     const tile_sum (&sum)[SHAPE::WGRAD_DOWN][SHAPE::WGRAD_ACROSS], partial_t *shared)
{
    enum { PIECES = SHAPE::X_PIECES, WIDE = SHAPE::COLUMNS + 8 };
    const one_pass_corner at = one_pass_wgrad_at<SHAPE>();
    const conv_shape &s = a.dgrad.shape;

    static_assert(ONE_PASS_OUT * WIDE * sizeof(partial_t) <= SHAPE::STAGE, "sums fit into a stage");
#pragma unroll
    for (unsigned i = 0; i < SHAPE::WGRAD_DOWN; i++)
#pragma unroll
        for (unsigned j = 0; j < SHAPE::WGRAD_ACROSS; j++)
#pragma unroll
            for (unsigned e = 0; e < 8; e += 2)
                partial_store2(shared + (at.row + i * 16 + tile_row(e)) * WIDE + at.column + j * 16 + tile_column(e),
                               sum[i][j].at[e], sum[i][j].at[e + 1]);
    __syncthreads();
    for (unsigned i = threadIdx.x; i < ONE_PASS_OUT * PIECES; i += ONE_PASS_THREADS) {
        unsigned row = i / PIECES, piece = i % PIECES, column = w.column0 + piece * 8;

        if (row < s.out && column < s.in)
            partial_store8((partial_t *)a.partial + ((size_t)blockIdx.y * s.out + row) * s.in + column,
                           partial_load8(shared + row * WIDE + piece * 8));
    }
    __syncthreads(); /* the per-channel sums use this memory next */
}

/* ---- all together ------------------------------------------------------------------------------------------------ */

template <typename SHAPE>
DEVICE void
one_pass_tile(const one_pass_args &a, const one_pass_work &w, unsigned tile, const one_pass_memory<SHAPE> &m, bool idle,
              one_pass_constants &held, one_pass_sums<SHAPE> &sums)
{
    const bool relu = a.dgrad.norm.gamma && a.dgrad.norm.relu;
    unsigned turn = (tile - w.first) & (a.stages - 1);
    const one_pass_stage<SHAPE> s = one_pass_stage_at<SHAPE>(m.stages + turn * SHAPE::STAGE);
    value8 raw[SHAPE::X_SEEN], old[SHAPE::X_SEEN];
    one_pass_constants mine, &c = SHAPE::HOLDS ? held : mine;

    if (a.stages == 1) {
        __syncthreads(); /* all threads know which pixels have weight */
        copy_wait<0>();
    } else {
        copy_wait<1>(); /* the next tile may still be on its way */
    }
    if (!SHAPE::HOLDS)
        one_pass_load_y<SHAPE>(c, m.of_y);
    one_pass_finalize<SHAPE>(s, c, a.finalize.values != NULL);
    if (!SHAPE::HOLDS)
        one_pass_load_x<SHAPE>(c, m.of_x);
    one_pass_normalise<SHAPE>(s, c, relu, raw);
    __syncthreads(); /* this tile is complete */
    if (SHAPE::END)
        one_pass_load_means<SHAPE>(a, w, s, old);
    else
        one_pass_load_old<SHAPE>(a.dgrad, w, tile, old);
    one_pass_dgrad<SHAPE>(m.weights, s, a.dgrad.shape.out);
    if (!idle)
        one_pass_wgrad<SHAPE>(sums.weights, s);
    __syncthreads(); /* the product is complete */
    one_pass_load_gradient<SHAPE>(c, m.of_x);
    one_pass_store<SHAPE>(a, w, tile, s, m.of_x, c, relu, raw, old, sums.of_norm, sums.of_end);
    __syncthreads(); /* the product has been read */
    if (tile + a.stages < w.end)
        one_pass_load(a, w, tile + a.stages, m.images, s);
    copy_commit();
}

template <typename SHAPE>
DEVICE void
one_pass(const one_pass_args &a, unsigned char *shared)
{
    const dgrad_args &d = a.dgrad;
    const conv_shape &c = d.shape;
    const one_pass_memory<SHAPE> m = one_pass_memory_at<SHAPE>(shared);
    const unsigned pixels = c.images * c.height * c.width, tiles = (pixels + ONE_PASS_PIXELS - 1) / ONE_PASS_PIXELS;
    const one_pass_work w = {blockIdx.x * SHAPE::COLUMNS, min(tiles, blockIdx.y * d.tiles_each),
                             min(tiles, (blockIdx.y + 1) * d.tiles_each), pixels};
    const one_pass_corner mine = one_pass_wgrad_at<SHAPE>();
    const bool idle = mine.row >= c.out || w.column0 + mine.column >= c.in;
    one_pass_sums<SHAPE> sums;
    one_pass_constants held;

    one_pass_begin(a, w, m);
    if (SHAPE::HOLDS) {
        one_pass_load_y<SHAPE>(held, m.of_y);
        one_pass_load_x<SHAPE>(held, m.of_x);
    }
#pragma unroll
    for (unsigned i = 0; i < SHAPE::WGRAD_DOWN; i++)
#pragma unroll
        for (unsigned j = 0; j < SHAPE::WGRAD_ACROSS; j++)
#pragma unroll
            for (unsigned e = 0; e < 8; e++)
                sums.weights[i][j].at[e] = 0;
#pragma unroll
    for (unsigned e = 0; e < 8; e++) {
        sums.of_norm.by_one[e] = sums.of_norm.by_x[e] = 0;
        sums.of_end.by_one[e] = sums.of_end.by_x[e] = 0;
    }
    for (unsigned tile = w.first; tile < w.end; tile++)
        one_pass_tile(a, w, tile, m, idle, held, sums);
    copy_wait<0>();
    __syncthreads();
    if (d.tiles_each >= tiles)
        one_pass_store_single<SHAPE>(a, w, sums.weights);
    else
        one_pass_store_split<SHAPE>(a, w, sums.weights, (partial_t *)(void *)m.stages);
    if (d.sums.partial)
        one_pass_store_sums<SHAPE>(d.sums, w, m.of_x, sums.of_norm, (float *)(void *)m.stages);
    if (SHAPE::END) {
        __syncthreads(); /* the previous sums have been read */
        one_pass_store_sums<SHAPE>(a.end.sums, w, m.of_x, sums.of_end, (float *)(void *)m.stages);
    }
}
} // namespace

/* Two CTAs would need too many registers for the fragments of sm_70 and of tf32. */
#if DEVICE_ARCH >= 800 && !CUDA_VALUE_IS(tf32)
#define ONE_PASS_BLOCKS(blocks) blocks
#else
#define ONE_PASS_BLOCKS(blocks) 1
#endif
#define ONE_PASS_KERNEL(shape, columns, blocks, end)                                        \
    KERNEL(conv_one_pass_##shape, one_pass_args, ONE_PASS_THREADS, ONE_PASS_BLOCKS(blocks)) \
    {                                                                                       \
        SHARED_BYTES(shared);                                                               \
        one_pass<one_pass_shape<columns, blocks, end>>(a, shared);                          \
    }

#endif
