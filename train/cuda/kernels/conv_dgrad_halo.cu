/*
 * conv_dgrad_halo.cu - the kernels of dgrad_halo.h: dgrad of 3x3 kernels, also with wgrad in the same launch
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/kernels/dgrad_halo.h"

#define DGRAD_HALO(shape, ...)                                                    \
    GEMM_KERNEL(conv_dgrad_##shape##_halo, dgrad_args, GEMM_THREADS(__VA_ARGS__), \
                (dgrad_with_halo<gemm_tile<__VA_ARGS__>>(a, shared, pixels_first())))
#define DGRAD_WGRAD_HALO(shapes, r, c, wr, wc, ...)                                           \
    GEMM_KERNEL(conv_dgrad_wgrad_##shapes##_halo, conv_pair_args, GEMM_THREADS(r, c, wr, wc), \
                (dgrad_and_wgrad<gemm_tile<r, c, wr, wc>, gemm_tile<__VA_ARGS__>, false>(     \
                    a, shared,                                                                \
                    [&](const gemm_tile_at &at) { dgrad_with_halo<gemm_tile<r, c, wr, wc>>(a.dgrad, shared, at); })))
HALO_DGRAD_TILES(DGRAD_HALO)
HALO_PAIRS(DGRAD_WGRAD_HALO)
