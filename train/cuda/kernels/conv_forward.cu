/*
 * conv_forward.cu - the kernels of gemm.h: fprop
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/kernels/gemm.h"

#define CONV_FORWARD(form, ...)                           \
    FPROP_KERNEL(conv_forward_##form, false, __VA_ARGS__) \
    FPROP_KERNEL(conv_forward_##form##_pointwise, true, __VA_ARGS__)
GEMM_TILES(CONV_FORWARD)
