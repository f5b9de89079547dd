/*
 * conv_data.cu - the kernels of gemm.h: dgrad
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/kernels/gemm.h"

#define CONV_DATA(form, ...)                           \
    DGRAD_KERNEL(conv_data_##form, false, __VA_ARGS__) \
    DGRAD_KERNEL(conv_data_##form##_pointwise, true, __VA_ARGS__)
GEMM_TILES(CONV_DATA)
