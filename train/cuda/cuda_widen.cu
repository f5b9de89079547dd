/*
 * cuda_widen.cu - values as floats
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/cuda_device.h"

/* A thread has eight. */
KERNEL(widen, widen_args, WIDEN_THREADS, 1)
{
    unsigned first = (blockIdx.x * WIDEN_THREADS + threadIdx.x) * 8;
    value8 v;

    if (first >= a.count)
        return;
    load8(v, (const value_t *)a.values + first);
#pragma unroll
    for (unsigned i = 0; i < 8; i++)
        a.sum[first + i] = to_float(v.at[i]);
}
