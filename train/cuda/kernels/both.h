/*
 * both.h - dgrad and wgrad of a pointwise convolution in one pass over its pixels
 *
 *            rows M           columns N       k                lines of A   lines of B
 *   dgrad    pixels           input channels  output channels  M            k ("turned")
 *   wgrad    output channels  input channels  pixels           k ("turned") k ("turned")
 *
 * A CTA has a slice of the input channels and a stripe of the pixels.  The weights of the slice stay in shared memory,
 * and its wgrad sums in registers, until the end of the stripe.  Each tile of BOTH_PIXELS pixels is loaded once for
 * both products: A and the values of y, and x.  The gradient of y is finalized in place (norm_finish), and BN is
 * applied to x in place; each thread keeps the x values that it loaded.  The product of dgrad overwrites the values of
 * y in shared memory, so that the epilogue writes whole rows of the gradient of x, with ReLU mask and partial sums as
 * in dgrad of gemm.h.  The next tile is loaded meanwhile.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_KERNELS_BOTH_H
#define CHEX_CUDA_KERNELS_BOTH_H

#include "cuda/kernels/both_tile.h"

namespace
{
/* Shared memory of a CTA. */
template <typename FORM> struct both_memory {
    value_t *weights;      /* [BOTH_OUT][COLUMNS], of the slice */
    norm_table of_y, of_x; /* finish_figure; norm_figure and gamma */
    unsigned *images;      /* one bit per image: does it have weight? */
    unsigned char *stages;
};

template <typename FORM>
DEVICE both_memory<FORM>
both_memory_at(unsigned char *shared)
{
    value_t *weights = (value_t *)(void *)shared;
    float *tables = (float *)(void *)(weights + BOTH_OUT * FORM::COLUMNS);
    float *of_x = tables + BOTH_OUT * NORM_FINISH_FIGURES,
          *behind = of_x + FORM::COLUMNS * BOTH_NORM_FIGURES(FORM::END);

    return {weights,
            {tables, FORM::Y_PIECES},
            {of_x, FORM::X_PIECES},
            (unsigned *)(void *)behind,
            (unsigned char *)(void *)tables + BOTH_TABLE_BYTES(FORM::COLUMNS, FORM::END)};
}

/* Kept until the end of the stripe: the wgrad sums, and the per-channel sums of each thread. */
template <typename FORM> struct both_sums {
    tile_sum weights[FORM::WEIGHTS_DOWN][FORM::WEIGHTS_ACROSS];
    both_channels of_norm, of_end;
};

/* ---- before the first tile --------------------------------------------------------------------------------------- */

/* Makes the table of x: that of its BN, or the identity. */
template <typename FORM>
DEVICE void
both_make_norm(const conv_args &a, const norm_table &t, double *scratch, const both_work &w, bool first)
{
    unsigned count = min((unsigned)FORM::COLUMNS, a.in - w.column0);

    for (unsigned c = threadIdx.x; c < FORM::COLUMNS; c += BOTH_THREADS) {
        norm_entry(t, BOTH_GAMMA, c) = !a.norm.gamma ? 1.0f : c < count ? a.norm.gamma[w.column0 + c] : 0.0f;
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
template <typename FORM>
DEVICE void
both_load_weights(const conv_args &a, const both_work &w, value_t *to)
{
#pragma unroll
    for (unsigned i = threadIdx.x; i < BOTH_OUT * FORM::X_PIECES; i += BOTH_THREADS) {
        unsigned line = i / FORM::X_PIECES, piece = i % FORM::X_PIECES;
        bool there = line < a.out && w.column0 + piece * 8 < a.in;

        copy8(to + both_place<FORM::X_PIECES>(line, piece),
              (const value_t *)a.w + (there ? (size_t)line * a.in + w.column0 + piece * 8 : 0), there);
    }
}

/* Sets the bits of the images with weight. */
DEVICE void
both_load_images(const conv_args &a, unsigned *to)
{
    for (unsigned image = threadIdx.x; image < BOTH_IMAGES; image += BOTH_THREADS) {
        unsigned all = __ballot_sync(0xffffffffu, image < a.images && (!a.weight || a.weight[image] != 0.0f));

        if (lane_id() == 0)
            to[image / 32] = all;
    }
}

/* Prepares what is constant; also starts to load the first tile, if there is a stage in addition to the scratch. */
template <typename FORM>
DEVICE void
both_begin(const conv_both_args &a, const both_work &w, const both_memory<FORM> &m)
{
    /* The last stage is not in use yet. */
    double *scratch = (double *)(void *)(m.stages + (a.stages - 1) * FORM::STAGE);

    static_assert(FINISH_SCRATCH <= FORM::STAGE && NORM_SCRATCH <= FORM::STAGE, "sums fit into a stage");
    both_load_weights<FORM>(a.conv, w, m.weights);
    both_load_images(a.conv, m.images);
    __syncthreads();
    if (a.stages > 1 && w.first < w.end)
        both_load(a, w, w.first, m.images, both_stage_at<FORM>(m.stages));
    copy_commit();
    if (a.finish.values)
        finish_make(a, m.of_y, scratch, blockIdx.x == 0 && blockIdx.y == 0);
    both_make_norm<FORM>(a.conv, m.of_x, scratch, w, blockIdx.y == 0);
    if (FORM::END)
        both_make_end(a, m.of_x, w.column0);
}

/* ---- after the last tile ----------------------------------------------------------------------------------------- */

/*
 * Reduces the per-channel sums of the CTA in a fixed order; in shared memory they are [X_EACH][first, second][low, high
 * half of a group][X_PIECES][4].
 */
template <typename FORM>
DEVICE void
both_store_sums(const channel_sums &to, const both_work &w, const norm_table &t, const both_channels &of, float *shared)
{
    enum { PIECES = FORM::X_PIECES, ROW = 2 * FORM::COLUMNS };
    unsigned piece = threadIdx.x % PIECES;
    float4 *at = (float4 *)(void *)(shared + threadIdx.x / PIECES * ROW) + piece;
    const float *one = of.by_one, *by_x = of.by_x;
    float f[8];

    static_assert(FORM::X_EACH * ROW * sizeof(float) <= FORM::STAGE, "sums fit into a stage");
    norm_load8(f, t, NORM_INVERSE, piece * 8);
    at[0] = {one[0], one[1], one[2], one[3]};
    at[PIECES] = {one[4], one[5], one[6], one[7]};
    at[2 * PIECES] = {by_x[0] * f[0], by_x[1] * f[1], by_x[2] * f[2], by_x[3] * f[3]};
    at[3 * PIECES] = {by_x[4] * f[4], by_x[5] * f[5], by_x[6] * f[6], by_x[7] * f[7]};
    __syncthreads();
    for (unsigned i = threadIdx.x; i < ROW; i += BOTH_THREADS) {
        unsigned which = i / FORM::COLUMNS, half = i / (FORM::COLUMNS / 2) % 2;
        unsigned column = w.column0 + i % (FORM::COLUMNS / 2) / 4 * 8 + half * 4 + i % 4;
        float sum = 0;

#pragma unroll
        for (unsigned k = 0; k < FORM::X_EACH; k++)
            sum += shared[k * ROW + i];
        if (column < to.channels)
            to.partial[((size_t)blockIdx.y * 2 + which) * to.channels + column] = sum;
    }
}

/* Stores the wgrad sums of a single stripe, as floats. */
template <typename FORM>
DEVICE void
both_store_single(const conv_args &a, const both_work &w,
                  const tile_sum (&sum)[FORM::WEIGHTS_DOWN][FORM::WEIGHTS_ACROSS])
{
    const both_corner at = both_weights_at<FORM>();

#pragma unroll
    for (unsigned i = 0; i < FORM::WEIGHTS_DOWN; i++)
#pragma unroll
        for (unsigned j = 0; j < FORM::WEIGHTS_ACROSS; j++)
#pragma unroll
            for (unsigned e = 0; e < 8; e += 2) {
                unsigned row = at.row + i * 16 + tile_row(e), column = w.column0 + at.column + j * 16 + tile_column(e);

                if (row < a.out && column < a.in)
                    *(float2 *)(void *)((float *)a.partial + (size_t)row * a.in + column) = {sum[i][j].at[e],
                                                                                             sum[i][j].at[e + 1]};
            }
}

/* Stores the wgrad sums of one of several stripes, through shared memory. */
template <typename FORM>
DEVICE void
both_store_weights(const conv_args &a, const both_work &w,
                   const tile_sum (&sum)[FORM::WEIGHTS_DOWN][FORM::WEIGHTS_ACROSS], partial_t *shared)
{
    enum { PIECES = FORM::X_PIECES, WIDE = FORM::COLUMNS + 8 };
    const both_corner at = both_weights_at<FORM>();

    static_assert(BOTH_OUT * WIDE * sizeof(partial_t) <= FORM::STAGE, "sums fit into a stage");
#pragma unroll
    for (unsigned i = 0; i < FORM::WEIGHTS_DOWN; i++)
#pragma unroll
        for (unsigned j = 0; j < FORM::WEIGHTS_ACROSS; j++)
#pragma unroll
            for (unsigned e = 0; e < 8; e += 2)
                partial_store2(shared + (at.row + i * 16 + tile_row(e)) * WIDE + at.column + j * 16 + tile_column(e),
                               sum[i][j].at[e], sum[i][j].at[e + 1]);
    __syncthreads();
    for (unsigned i = threadIdx.x; i < BOTH_OUT * PIECES; i += BOTH_THREADS) {
        unsigned row = i / PIECES, piece = i % PIECES, column = w.column0 + piece * 8;

        if (row < a.out && column < a.in)
            partial_store8((partial_t *)a.partial + ((size_t)blockIdx.y * a.out + row) * a.in + column,
                           partial_load8(shared + row * WIDE + piece * 8));
    }
    __syncthreads(); /* the per-channel sums use this memory next */
}

/* ---- all together ------------------------------------------------------------------------------------------------ */

template <typename FORM>
DEVICE void
both_tile(const conv_both_args &a, const both_work &w, unsigned tile, const both_memory<FORM> &m, bool idle,
          both_sums<FORM> &sums)
{
    const float least = a.conv.norm.gamma && a.conv.norm.relu ? 0.0f : -3.4e38f;
    unsigned turn = (tile - w.first) & (a.stages - 1);
    const both_stage<FORM> s = both_stage_at<FORM>(m.stages + turn * FORM::STAGE);
    value8 raw[FORM::X_SEEN], old[FORM::X_SEEN];

    if (a.stages == 1) {
        __syncthreads(); /* the previous tile has been stored */
        both_load(a, w, tile, m.images, s);
        copy_commit();
        __syncthreads(); /* all threads know which pixels have weight */
    }
    copy_wait<0>();
    both_finish<FORM>(s, m.of_y, a.finish.values != NULL);
    both_see<FORM>(s, m.of_x, least, raw);
    __syncthreads(); /* this tile is complete, and the previous one has been stored */
    if (a.stages > 1 && tile + 1 < w.end)
        both_load(a, w, tile + 1, m.images, both_stage_at<FORM>(m.stages + (turn ^ 1) * FORM::STAGE));
    copy_commit();
    if (FORM::END)
        both_load_means<FORM>(a, w, s, old);
    else
        both_load_old<FORM>(a.conv, w, tile, old);
    both_data<FORM>(m.weights, s, a.conv.out);
    if (!idle)
        both_weights<FORM>(sums.weights, s);
    __syncthreads(); /* the product is complete */
    both_store<FORM>(a, w, tile, s, m.of_x, least, raw, old, sums.of_norm, sums.of_end);
}

template <typename FORM>
DEVICE void
both(const conv_both_args &a, unsigned char *shared)
{
    const conv_args &c = a.conv;
    const both_memory<FORM> m = both_memory_at<FORM>(shared);
    const unsigned pixels = c.images * c.height * c.width, tiles = (pixels + BOTH_PIXELS - 1) / BOTH_PIXELS;
    const both_work w = {blockIdx.x * FORM::COLUMNS, min(tiles, blockIdx.y * c.steps_each),
                         min(tiles, (blockIdx.y + 1) * c.steps_each), pixels};
    const both_corner mine = both_weights_at<FORM>();
    const bool idle = mine.row >= c.out || w.column0 + mine.column >= c.in;
    both_sums<FORM> sums;

    both_begin(a, w, m);
#pragma unroll
    for (unsigned i = 0; i < FORM::WEIGHTS_DOWN; i++)
#pragma unroll
        for (unsigned j = 0; j < FORM::WEIGHTS_ACROSS; j++)
#pragma unroll
            for (unsigned e = 0; e < 8; e++)
                sums.weights[i][j].at[e] = 0;
#pragma unroll
    for (unsigned e = 0; e < 8; e++) {
        sums.of_norm.by_one[e] = sums.of_norm.by_x[e] = 0;
        sums.of_end.by_one[e] = sums.of_end.by_x[e] = 0;
    }
    for (unsigned tile = w.first; tile < w.end; tile++)
        both_tile(a, w, tile, m, idle, sums);
    copy_wait<0>();
    __syncthreads();
    if (c.steps_each >= tiles)
        both_store_single<FORM>(c, w, sums.weights);
    else
        both_store_weights<FORM>(c, w, sums.weights, (partial_t *)(void *)m.stages);
    if (c.sums.partial)
        both_store_sums<FORM>(c.sums, w, m.of_x, sums.of_norm, (float *)(void *)m.stages);
    if (FORM::END) {
        __syncthreads(); /* the previous sums have been read */
        both_store_sums<FORM>(a.end.sums, w, m.of_x, sums.of_end, (float *)(void *)m.stages);
    }
}
} // namespace

/* Two CTAs would need too many registers for sm_70's fragments. */
#if DEVICE_ARCH >= 800
#define BOTH_BLOCKS(blocks) blocks
#else
#define BOTH_BLOCKS(blocks) 1
#endif
#define BOTH_KERNEL(form, columns, blocks, end)                                 \
    KERNEL(conv_both_##form, conv_both_args, BOTH_THREADS, BOTH_BLOCKS(blocks)) \
    {                                                                           \
        SHARED_BYTES(shared);                                                   \
        both<both_form<columns, blocks, end>>(a, shared);                       \
    }

#endif
