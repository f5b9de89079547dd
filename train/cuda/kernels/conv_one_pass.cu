/*
 * conv_one_pass.cu - the kernels of one_pass.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/kernels/one_pass.h"

ONE_PASS_SHAPES(ONE_PASS_KERNEL)
