/*
 * conv_data.cu - the kernels of cuda_gemm.h, kind DATA
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/cuda_gemm.h"

#define CONV_DATA(form, ...) GEMM_KERNELS(GEMM_DATA, conv_data_##form, __VA_ARGS__)
GEMM_TILES(CONV_DATA)
