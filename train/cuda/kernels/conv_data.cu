/*
 * conv_data.cu - the kernels of gemm.h: dgrad
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/kernels/gemm.h"

#define CONV_DATA(form, ...)                                         \
    GEMM_ONE_KERNEL(conv_data_##form, GEMM_DATA, false, __VA_ARGS__) \
    GEMM_ONE_KERNEL(conv_data_##form##_pointwise, GEMM_DATA, true, __VA_ARGS__)
GEMM_TILES(CONV_DATA)
