/*
 * conv_fprop.cu - the kernels of gemm.h: fprop
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/kernels/gemm.h"

#define CONV_FPROP(shape, ...)                           \
    FPROP_KERNEL(conv_fprop_##shape, false, __VA_ARGS__) \
    FPROP_KERNEL(conv_fprop_##shape##_pointwise, true, __VA_ARGS__)
GEMM_TILES(CONV_FPROP)
