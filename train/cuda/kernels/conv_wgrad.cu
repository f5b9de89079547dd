/*
 * conv_wgrad.cu - the kernels of gemm.h: wgrad
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/kernels/gemm.h"

#define CONV_WGRAD(shape, ...)      WGRAD_KERNEL(conv_wgrad_##shape, false, __VA_ARGS__)
#define WGRAD_POINTWISE(shape, ...) WGRAD_KERNEL(conv_wgrad_##shape##_pointwise, true, __VA_ARGS__)
GEMM_TAP_TILES(CONV_WGRAD)
GEMM_TILES(WGRAD_POINTWISE)
