/*
 * conv_forward.cu - the kernels of cuda_gemm.h, kind FORWARD
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/cuda_gemm.h"

#define CONV_FORWARD(form, ...) GEMM_KERNELS(GEMM_FORWARD, conv_forward_##form, __VA_ARGS__)
GEMM_TILES(CONV_FORWARD)
