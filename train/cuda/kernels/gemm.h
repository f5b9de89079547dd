/*
 * gemm.h - convolutions as one product (implicit GEMM): C[M][N] = sum over k of A[M][k] B[k][N]
 *
 *           rows M            columns N                k
 *   fprop   output pixels     output channels          taps x input channels
 *   dgrad   input pixels      input channels           taps x output channels
 *   wgrad   input channels    taps x output channels   pixels
 *     1x1   output channels   input channels           pixels
 *
 * Each kernel is a composition of four parts:
 *
 *   loader     copies A and B of a k-step to shared memory                       loader.h
 *   prologue   normalises x in shared memory, if the convolution has a BN        prologue.h
 *   mainloop   waits for copies, multiplies with tensor cores, starts copies     mainloop.h
 *   epilogue   stores the tile, per-channel partial sums, or a split of k        epilogue.h
 *
 * A CTA of fprop or dgrad computes tiles_each tiles, one below the other.  It computes the table of its prologue once,
 * and stores one row of partial sums.  A CTA of wgrad computes one tile of one split; sum_all reduces the splits in a
 * fixed order.  No kernel uses atomics, so every run has the same bits.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_KERNELS_GEMM_H
#define CHEX_CUDA_KERNELS_GEMM_H

#include "cuda/kernels/epilogue.h"
#include "cuda/kernels/mainloop.h"

namespace
{
/* ---- a tile ------------------------------------------------------------------------------------------------------ */

template <typename TILE, bool POINTWISE>
DEVICE void
fprop_tile(const fprop_args &a, unsigned char *shared, const gemm_tile_at &at, bool first, gemm_totals<TILE> &totals)
{
    typedef gemm_stage<TILE, false, false> stage;
    const gemm_work w = work_of<TILE>(a, at);
    const gemm_warp warp = gemm_warp_of<TILE>(w);
    fprop_prologue prologue = {norm_table_at<stage>(shared, w.chunks * GEMM_DEEP), w.chunks, 0};
    fprop_loader<stage, POINTWISE> loader;
    gemm_sums<TILE> sum;

    clear_sums(sum);
    begin_loader(loader, a, w);
    fill_stages<stage>(loader, a, w, shared);
    if (a.bias)
        begin_with_bias(a.bias, w, warp.column0, sum);
    if (a.norm.gamma && first)
        begin_prologue<stage>(prologue, a, w, shared);
    run_mainloop<stage>(loader, prologue, a, w, warp, shared, sum);
    sums_to_shared<TILE>(shared, warp.row0, warp.column0, sum);
    if (a.sums.partial)
        store_with_sums<TILE>(a, shared, w, totals);
    else
        store_tile<TILE>(shared, (value_t *)a.y, a.shape.y_ld, false, a.relu, w);
}

template <typename TILE, bool POINTWISE>
DEVICE void
dgrad_tile(const dgrad_args &a, unsigned char *shared, const gemm_tile_at &at, bool first, gemm_totals<TILE> &totals)
{
    typedef gemm_stage<TILE, false, true> stage;
    const gemm_work w = work_of<TILE>(a, at);
    const gemm_warp warp = gemm_warp_of<TILE>(w);
    dgrad_prologue prologue = {norm_table_at<stage>(shared, TILE::COLUMNS)};
    dgrad_loader<stage, POINTWISE> loader;
    gemm_sums<TILE> sum;

    clear_sums(sum);
    begin_loader(loader, a, w);
    fill_stages<stage>(loader, a, w, shared);
    if (a.norm.gamma && first)
        begin_prologue<stage>(prologue, a, w, shared);
    run_mainloop<stage>(loader, prologue, a, w, warp, shared, sum);
    sums_to_shared<TILE>(shared, warp.row0, warp.column0, sum);
    if (a.norm.gamma)
        store_masked<TILE>(a, shared, prologue.table, w, totals);
    else
        store_tile<TILE>(shared, (value_t *)a.dx, a.shape.x_ld, a.add, false, w);
}

template <typename TILE, bool POINTWISE>
DEVICE void
wgrad_tile(const wgrad_args &a, unsigned char *shared, const gemm_tile_at &at)
{
    typedef gemm_stage<TILE, true, true> stage;
    const gemm_work w = wgrad_work<TILE, POINTWISE>(a, at);
    const gemm_warp warp = gemm_warp_of<TILE>(w);
    wgrad_prologue<POINTWISE> prologue = {norm_table_at<stage>(shared, POINTWISE ? TILE::COLUMNS : TILE::ROWS)};
    wgrad_loader<stage, POINTWISE> loader;
    gemm_sums<TILE> sum;

    clear_sums(sum);
    begin_loader(loader, a, w);
    fill_stages<stage>(loader, a, w, shared);
    if (a.norm.gamma)
        begin_prologue<stage>(prologue, a, w, shared);
    run_mainloop<stage>(loader, prologue, a, w, warp, shared, sum);
    if (is_unsplit(a, w))
        store_unsplit<TILE, POINTWISE>(a, w, warp, sum);
    else
        store_partial<TILE, POINTWISE>(a, w, warp, sum, (partial_t *)(void *)shared);
}

/* ---- the tiles of a CTA ------------------------------------------------------------------------------------------ */

/* Calls tile(at, first) for each tile of a CTA.  In the argument, at.down counts CTAs; in the calls, tiles. */
template <typename TILE, typename F>
DEVICE void
each_tile(const gemm_tile_at &at, unsigned tiles_each, unsigned rows, F tile)
{
    unsigned first = at.down * tiles_each, end = min(first + tiles_each, (rows + TILE::ROWS - 1) / TILE::ROWS);

#pragma unroll 1
    for (unsigned down = first; down < end; down++) {
        if (down > first)
            __syncthreads(); /* the previous tile is stored */
        tile(gemm_tile_at{down, at.across, 0}, down == first);
    }
}

template <typename TILE, bool POINTWISE>
DEVICE void
fprop(const fprop_args &a, unsigned char *shared, const gemm_tile_at &at)
{
    const conv_shape &s = a.shape;
    gemm_totals<TILE> totals = {};

    each_tile<TILE>(at, a.tiles_each, s.images * s.out_height * s.out_width, [&](const gemm_tile_at &tile, bool first) {
        fprop_tile<TILE, POINTWISE>(a, shared, tile, first, totals);
    });
    if (a.sums.partial)
        store_sums<TILE>(totals, a.sums, at, s.out);
}

template <typename TILE, bool POINTWISE>
DEVICE void
dgrad(const dgrad_args &a, unsigned char *shared, const gemm_tile_at &at)
{
    const conv_shape &s = a.shape;
    gemm_totals<TILE> totals = {};

    each_tile<TILE>(at, a.tiles_each, s.images * s.height * s.width, [&](const gemm_tile_at &tile, bool first) {
        dgrad_tile<TILE, POINTWISE>(a, shared, tile, first, totals);
    });
    if (a.sums.partial)
        store_sums<TILE>(totals, a.sums, at, s.in);
}

/* dgrad and wgrad of one convolution in one launch.  The CTAs of wgrad come first, because they take longer. */
template <typename DGRAD_TILE, typename WGRAD_TILE, bool POINTWISE>
DEVICE void
dgrad_and_wgrad(const conv_pair_args &a, unsigned char *shared)
{
    const conv_shape &d = a.dgrad.shape, &w = a.wgrad.shape;
    unsigned rows = POINTWISE ? w.out : w.in, columns = POINTWISE ? w.in : w.out, block = blockIdx.x;
    unsigned taps = w.kernel_h * w.kernel_w, down = (rows + WGRAD_TILE::ROWS - 1) / WGRAD_TILE::ROWS;
    unsigned across = w.stride == 1 ? (taps * columns + WGRAD_TILE::COLUMNS - 1) / WGRAD_TILE::COLUMNS
                                    : taps * ((columns + WGRAD_TILE::COLUMNS - 1) / WGRAD_TILE::COLUMNS);
    unsigned of_dgrad = (d.in + DGRAD_TILE::COLUMNS - 1) / DGRAD_TILE::COLUMNS;
    unsigned dgrads = (d.images * d.height * d.width + DGRAD_TILE::ROWS - 1) / DGRAD_TILE::ROWS;

    static_assert((int)DGRAD_TILE::THREADS == (int)WGRAD_TILE::THREADS, "one block size for both");
    dgrads = (dgrads + a.dgrad.tiles_each - 1) / a.dgrad.tiles_each * of_dgrad;
    if (block < gridDim.x - dgrads) {
        wgrad_tile<WGRAD_TILE, POINTWISE>(a.wgrad, shared,
                                          {block % down, block / down % across, block / down / across});
        return;
    }
    block -= gridDim.x - dgrads;
    dgrad<DGRAD_TILE, POINTWISE>(a.dgrad, shared, {block / of_dgrad, block % of_dgrad, 0});
}

/*
 * Blocks start in the order of their numbers.  Tiles of the same pixels follow each other: pixels then come from memory
 * once, and the weights, which are few, from the L2 cache.
 */
DEVICE gemm_tile_at
pixels_first()
{
    unsigned block = blockIdx.y * gridDim.x + blockIdx.x;

    return {block / gridDim.y, block % gridDim.y, 0};
}
} // namespace

/*
 * Blocks of a multiprocessor at least: two, with half of the registers for each.  Before sm_80, this is too few for
 * some pairs.  There, tiles of 128 threads have as many blocks as shared memory holds: 96 KiB, 64 KiB on sm_75.  On
 * sm_70, gradients have one block less: with all of them, nvcc 11.8 and 12 spill 8 to 20 bytes of registers.  Pieces
 * and fragments of tf32 have twice as many registers, so gradients have one block.
 */
#if HAS_ASYNC_COPY
#define GEMM_BLOCKS                   (CUDA_VALUE_IS(tf32) ? 1 : 2)
#define GEMM_BLOCKS_OF(r, c, ...)     2
#define GRADIENT_BLOCKS_OF(r, c, ...) GEMM_BLOCKS
#else
#define GEMM_BLOCKS 1
#define GEMM_BLOCKS_OF(r, c, ...)          \
    (GEMM_THREADS(r, c, __VA_ARGS__) > 128 \
         ? 1                               \
         : ((HAS_LDMATRIX ? 64 : 96) << 10) / GEMM_STAGE_BYTES(r, c, sizeof(value_t)))
#define GRADIENT_BLOCKS_OF(r, c, ...) \
    (GEMM_BLOCKS_OF(r, c, __VA_ARGS__) - (!HAS_LDMATRIX && GEMM_BLOCKS_OF(r, c, __VA_ARGS__) > 1))
#endif

#define GEMM_KERNEL(name, type, threads, call) GEMM_KERNEL_OF(name, type, threads, GEMM_BLOCKS, call)
#define GEMM_KERNEL_OF(name, type, threads, blocks, call) \
    KERNEL(name, type, threads, blocks)                   \
    {                                                     \
        SHARED_BYTES(shared);                             \
        call;                                             \
    }
#define FPROP_KERNEL(name, pointwise, ...)                                                   \
    GEMM_KERNEL_OF(name, fprop_args, GEMM_THREADS(__VA_ARGS__), GEMM_BLOCKS_OF(__VA_ARGS__), \
                   (fprop<gemm_tile<__VA_ARGS__>, pointwise>(a, shared, pixels_first())))
#define DGRAD_KERNEL(name, pointwise, ...)                                                       \
    GEMM_KERNEL_OF(name, dgrad_args, GEMM_THREADS(__VA_ARGS__), GRADIENT_BLOCKS_OF(__VA_ARGS__), \
                   (dgrad<gemm_tile<__VA_ARGS__>, pointwise>(a, shared, pixels_first())))
#define WGRAD_KERNEL(name, pointwise, ...)                                                       \
    GEMM_KERNEL_OF(name, wgrad_args, GEMM_THREADS(__VA_ARGS__), GRADIENT_BLOCKS_OF(__VA_ARGS__), \
                   (wgrad_tile<gemm_tile<__VA_ARGS__>, pointwise>(a, shared, {blockIdx.x, blockIdx.y, blockIdx.z})))
#define DGRAD_WGRAD_KERNEL(name, pointwise, r, c, wr, wc, ...)    \
    GEMM_KERNEL(name, conv_pair_args, GEMM_THREADS(r, c, wr, wc), \
                (dgrad_and_wgrad<gemm_tile<r, c, wr, wc>, gemm_tile<__VA_ARGS__>, pointwise>(a, shared)))

#endif
