/*
 * conv_backward.cu - the kernels of gemm.h: dgrad and wgrad of one convolution in one launch
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/kernels/gemm.h"

#define CONV_BACKWARD(forms, ...)     DGRAD_WGRAD_KERNEL(conv_backward_##forms, false, __VA_ARGS__)
#define BACKWARD_POINTWISE(form, ...) DGRAD_WGRAD_KERNEL(conv_backward_##form##_pointwise, true, __VA_ARGS__)
GEMM_TAP_PAIRS(CONV_BACKWARD)
GEMM_PAIRS(BACKWARD_POINTWISE)
