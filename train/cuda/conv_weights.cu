/*
 * conv_weights.cu - the kernels of cuda_gemm.h, kind WEIGHTS
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/cuda_gemm.h"

#define CONV_WEIGHTS(form, ...) GEMM_KERNELS(GEMM_WEIGHTS, conv_weights_##form, __VA_ARGS__)
GEMM_TILES(CONV_WEIGHTS)
