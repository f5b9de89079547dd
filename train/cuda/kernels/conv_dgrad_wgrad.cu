/*
 * conv_dgrad_wgrad.cu - the kernels of gemm.h: dgrad and wgrad of one convolution in one launch
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/kernels/gemm.h"

#define CONV_DGRAD_WGRAD(shapes, ...)     DGRAD_WGRAD_KERNEL(conv_dgrad_wgrad_##shapes, false, __VA_ARGS__)
#define DGRAD_WGRAD_POINTWISE(shape, ...) DGRAD_WGRAD_KERNEL(conv_dgrad_wgrad_##shape##_pointwise, true, __VA_ARGS__)
GEMM_TAP_PAIRS(CONV_DGRAD_WGRAD)
GEMM_PAIRS(DGRAD_WGRAD_POINTWISE)
