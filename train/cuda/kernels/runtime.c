/*
 * runtime.c - see runtime.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/kernels/runtime.h"

cudaError_t
cuda_prepare(const struct cuda_kernel *set)
{
    struct cudaFuncAttributes attributes;
    int device, of_device = 0;
    cudaError_t e = cudaGetDevice(&device);
    unsigned i;

    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&of_device, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    /* This call also loads the kernel, which is not allowed during capture. */
    for (i = 0; i < CUDA_KERNEL_COUNT && e == cudaSuccess; i++) {
        /* a tile shape that needs more than the device has is not chosen (cuda_shared_of()) */
        size_t shared = set[i].most < (size_t)of_device ? set[i].most : (size_t)of_device;

        e = cudaFuncGetAttributes(&attributes, set[i].function);
        if (e == cudaSuccess && shared > 48u << 10)
            e = cudaFuncSetAttribute(set[i].function, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
        /*
         * The same split of shared memory and L1 for all of these kernels: a multiprocessor must be idle to change it.
         * The cost model counts resident CTAs with all of the shared memory.
         */
        if (e == cudaSuccess && set[i].most > 0)
            e = cudaFuncSetAttribute(set[i].function, cudaFuncAttributePreferredSharedMemoryCarveout,
                                     cudaSharedmemCarveoutMaxShared);
    }
    return e;
}

cudaError_t
cuda_launch(const struct cuda_kernel *set, const struct cuda_op *op, cudaStream_t stream)
{
    const struct cuda_kernel *kernel = &set[op->kernel];
    struct cuda_op copy = *op; /* the runtime wants a pointer to non-const memory */
    void *arguments[] = {&copy.args};
    dim3 grid = {op->x, op->y, op->z}, block = {kernel->threads, 1, 1};

    return cudaLaunchKernel(kernel->function, grid, block, arguments, kernel->shared + op->shared, stream);
}

cudaError_t
cuda_launch_early(const struct cuda_kernel *set, const struct cuda_op *op, cudaStream_t stream)
{
    const struct cuda_kernel *kernel = &set[op->kernel];
    struct cuda_op copy = *op;
    void *arguments[] = {&copy.args};
    cudaLaunchAttribute early = {.id = cudaLaunchAttributeProgrammaticStreamSerialization,
                                 .val.programmaticStreamSerializationAllowed = 1};
    cudaLaunchConfig_t config = {.gridDim = {op->x, op->y, op->z},
                                 .blockDim = {kernel->threads, 1, 1},
                                 .dynamicSmemBytes = kernel->shared + op->shared,
                                 .stream = stream,
                                 .attrs = &early,
                                 .numAttrs = 1};

    return cudaLaunchKernelExC(&config, kernel->function, arguments);
}

cudaError_t
cuda_launches_early(const struct cuda_kernel *set, bool *early)
{
    struct cudaFuncAttributes attributes;
    int device, major = 0;
    cudaError_t e = cudaGetDevice(&device);
    unsigned i;

    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    *early = e == cudaSuccess && major >= 9;
    for (i = 0; i < CUDA_KERNEL_COUNT && *early && e == cudaSuccess; i++) {
        e = cudaFuncGetAttributes(&attributes, set[i].function);
        *early = e == cudaSuccess && attributes.ptxVersion >= 90;
    }
    return e;
}
