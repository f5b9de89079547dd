/*
 * conv_both.cu - the kernels of cuda_both.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conv/cuda_both.h"

BOTH_FORMS(BOTH_KERNEL)
