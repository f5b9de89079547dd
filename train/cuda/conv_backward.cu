/*
 * conv_backward.cu - the kernels of cuda_gemm.h, kinds DATA and WEIGHTS of one convolution in one launch
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/cuda_gemm.h"

#define CONV_BACKWARD(form, ...) GEMM_PAIR_KERNELS(conv_backward_##form, __VA_ARGS__)
GEMM_TILES(CONV_BACKWARD)
