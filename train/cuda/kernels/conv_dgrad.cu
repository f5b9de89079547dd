/*
 * conv_dgrad.cu - the kernels of gemm.h: dgrad
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/kernels/gemm.h"

#define CONV_DGRAD(shape, ...)                           \
    DGRAD_KERNEL(conv_dgrad_##shape, false, __VA_ARGS__) \
    DGRAD_KERNEL(conv_dgrad_##shape##_pointwise, true, __VA_ARGS__)
GEMM_TILES(CONV_DGRAD)
