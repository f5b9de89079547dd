/*
 * conv_weights.cu - the kernels of gemm.h: wgrad
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/kernels/gemm.h"

#define CONV_WEIGHTS(form, ...)      WGRAD_KERNEL(conv_weights_##form, false, __VA_ARGS__)
#define WEIGHTS_POINTWISE(form, ...) WGRAD_KERNEL(conv_weights_##form##_pointwise, true, __VA_ARGS__)
GEMM_TAP_TILES(CONV_WEIGHTS)
GEMM_TILES(WEIGHTS_POINTWISE)
