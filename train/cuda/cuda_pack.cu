/*
 * cuda_pack.cu - master weights to packed ones, partial gradients of packed weights to gradients of master ones
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/cuda_device.h"

KERNEL(pack_weights, pack_weights_args, PACK_THREADS, 1)
{
    unsigned n = blockIdx.x * PACK_THREADS + threadIdx.x, in = n % a.in, tap = n / a.in % a.taps,
             out = n / a.in / a.taps;

    if (out < a.out)
        ((value_t *)a.packed)[n] = to_value(a.master[((size_t)out * a.in + in) * a.taps + tap]);
}

/* Neighbours read neighbours; they write taps apart, once. */
KERNEL(sum_splits, sum_splits_args, PACK_THREADS, 1)
{
    unsigned n = blockIdx.x * PACK_THREADS + threadIdx.x, in = n % a.in, tap = n / a.in % a.taps,
             out = n / a.in / a.taps;
    size_t count = (size_t)a.out * a.in * a.taps, to = ((size_t)out * a.in + in) * a.taps + tap;
    float sum = 0;

    if (out >= a.out)
        return;
    for (unsigned split = 0; split < a.splits; split++)
        sum += a.partial[split * count + n];
    a.gradient[to] = sum * a.scale + (a.keep ? a.gradient[to] : 0);
}
