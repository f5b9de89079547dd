/*
 * conv_both.cu - the kernels of both.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/kernels/both.h"

BOTH_FORMS(BOTH_KERNEL)
