/*
 * conv_dgrad_halo.cu - the kernels of dgrad_halo.h and wgrad_halo.h: dgrad of 3x3 kernels, alone and with wgrad
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/kernels/dgrad_halo.h"
#include "cuda/kernels/wgrad_halo.h"

namespace
{
/* Both in one launch.  The CTAs of wgrad come first, because they take longer. */
template <typename DGRAD_TILE, typename WGRAD_TILE>
DEVICE void
dgrad_and_wgrad_with_halo(const conv_pair_args &a, unsigned char *shared)
{
    const conv_shape &s = a.dgrad.shape;
    unsigned across = (s.in + DGRAD_TILE::COLUMNS - 1) / DGRAD_TILE::COLUMNS, block = blockIdx.x;
    unsigned dgrads = (s.images * s.height * s.width + DGRAD_TILE::ROWS - 1) / DGRAD_TILE::ROWS;
    unsigned down = (s.in + WGRAD_TILE::ROWS - 1) / WGRAD_TILE::ROWS, wgrads;

    static_assert((int)DGRAD_TILE::THREADS == (int)WGRAD_TILE::THREADS, "one block size for both");
    wgrads = gridDim.x - (dgrads + a.dgrad.tiles_each - 1) / a.dgrad.tiles_each * across;
    if (block < wgrads) {
        wgrad_halo_tile<WGRAD_TILE>(a.wgrad, shared, {block % down, block / down % 3, block / down / 3});
        return;
    }
    block -= wgrads;
    dgrad_with_halo<DGRAD_TILE>(a.dgrad, shared, {block / across, block % across, 0});
}
} // namespace

#define DGRAD_HALO(shape, ...)                                                    \
    GEMM_KERNEL(conv_dgrad_##shape##_halo, dgrad_args, GEMM_THREADS(__VA_ARGS__), \
                (dgrad_with_halo<gemm_tile<__VA_ARGS__>>(a, shared, pixels_first())))
#define DGRAD_WGRAD_HALO(shapes, r, c, wr, wc, ...)                                           \
    GEMM_KERNEL(conv_dgrad_wgrad_##shapes##_halo, conv_pair_args, GEMM_THREADS(r, c, wr, wc), \
                (dgrad_and_wgrad_with_halo<gemm_tile<r, c, wr, wc>, gemm_tile<__VA_ARGS__>>(a, shared)))
HALO_DGRAD_TILES(DGRAD_HALO)
HALO_PAIRS(DGRAD_WGRAD_HALO)
