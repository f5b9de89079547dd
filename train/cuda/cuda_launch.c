/*
 * cuda_launch.c - see cuda_launch.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/cuda_launch.h"

/* Shared memory of a block at most; one that takes more than this device has is not chosen (cuda_both.c). */
static size_t
most_shared(const struct cuda_kernel *set, unsigned kernel, size_t of_device)
{
    if (kernel < CUDA_INPUT)
        return set[kernel].shared + CUDA_MORE_SHARED;
    return kernel - CUDA_CONV_BOTH_64x64 < BOTH_FORM_COUNT ? of_device : set[kernel].shared; /* before it is far */
}

cudaError_t
cuda_prepare(const struct cuda_kernel *set)
{
    struct cudaFuncAttributes attributes;
    int device, of_device = 0;
    cudaError_t e = cudaGetDevice(&device);
    unsigned i;

    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&of_device, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    /* To ask for a kernel loads it: while a graph is recorded is no time for that. */
    for (i = 0; i < CUDA_KERNEL_COUNT && e == cudaSuccess; i++) {
        size_t shared = most_shared(set, i, (size_t)of_device);

        e = cudaFuncGetAttributes(&attributes, set[i].function);
        if (e == cudaSuccess && shared > 48u << 10)
            e = cudaFuncSetAttribute(set[i].function, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
    }
    return e;
}

cudaError_t
cuda_launch(const struct cuda_kernel *set, const struct cuda_op *op, cudaStream_t stream)
{
    const struct cuda_kernel *kernel = &set[op->kernel];
    struct cuda_op copy = *op; /* the runtime wants what it may write */
    void *arguments[] = {&copy.args};
    dim3 grid = {op->x, op->y, op->z}, block = {kernel->threads, 1, 1};

    return cudaLaunchKernel(kernel->function, grid, block, arguments, kernel->shared + op->shared, stream);
}

unsigned
cuda_blocks(size_t count, unsigned each)
{
    return (unsigned)((count + each - 1) / each);
}

unsigned
cuda_sum_blocks(const struct splits_entry *e)
{
    if (e->stem)
        return cuda_blocks((size_t)e->out * STEM_KERNEL * STEM_KERNEL, SUM_STEM);
    return cuda_blocks((size_t)e->out * e->in / 4, SUM_QUADS(e->taps, e->splits));
}
