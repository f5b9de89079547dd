/*
 * conv_forward.cu - the kernels of gemm.h: fprop
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/kernels/gemm.h"

#define CONV_FORWARD(form, ...)                                            \
    GEMM_ONE_KERNEL(conv_forward_##form, GEMM_FORWARD, false, __VA_ARGS__) \
    GEMM_ONE_KERNEL(conv_forward_##form##_pointwise, GEMM_FORWARD, true, __VA_ARGS__)
GEMM_TILES(CONV_FORWARD)
