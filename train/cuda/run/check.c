/*
 * check.c - translates errors of the CUDA runtime into messages for the user; see plan.h
 *
 * An error of a kernel, of the memory or of the bus is sticky: every later call of the process fails with it.  The next
 * call, whichever it is, returns it, so the failing call does not name the cause.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/run/plan.h"

#include "base/number_format.h"

#include <stdio.h>

#define CONTAINED 226 /* cudaErrorContained, which CUDA 11.8 does not have */

static enum chex_status
no_memory(const char *what, struct chex_error *err)
{
    size_t there, all;
    char text[FORMAT_TEXT];

    if (cudaMemGetInfo(&there, &all) != cudaSuccess)
        return error_set(err, CHEX_ERR_MEMORY, "%s: out of memory; try a smaller --micro-batch", what);
    return error_set(err, CHEX_ERR_MEMORY, "%s: out of memory, the GPU has %s free; try a smaller --micro-batch", what,
                     format_bytes(there, text));
}

static enum chex_status
old_driver(struct chex_error *err)
{
    int there = 0, needed = 0;

    (void)cudaDriverGetVersion(&there);
    (void)cudaRuntimeGetVersion(&needed);
    if (there == 0)
        return error_set(err, CHEX_ERR_UNSUPPORTED, "there is no NVIDIA driver");
    /* A program of CUDA 12.9 runs with every driver of CUDA 12. */
    return error_set(err, CHEX_ERR_UNSUPPORTED,
                     "the NVIDIA driver is one of CUDA %d.%d, and one of CUDA %d or newer is needed", there / 1000,
                     there % 1000 / 10, needed / 1000);
}

/* Returns true for errors that a kernel causes. */
static bool
is_of_kernel(cudaError_t e)
{
    return e == cudaErrorIllegalAddress || e == cudaErrorLaunchFailure || e == cudaErrorMisalignedAddress ||
           e == cudaErrorIllegalInstruction || e == cudaErrorHardwareStackError;
}

enum chex_status
cuda_check_open(cudaError_t e, const char *what, struct chex_error *err)
{
    const char *why = cudaGetErrorString(e);

    switch (e) {
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
        return error_set(err, CHEX_ERR_UNSUPPORTED, "there is no such GPU (%s)", why);
    case cudaErrorDevicesUnavailable:
        return error_set(err, CHEX_ERR_UNSUPPORTED,
                         "the GPU is used exclusively by another process, or broken (%s): see nvidia-smi -q -d "
                         "COMPUTE",
                         why);
    case cudaErrorMpsConnectionFailed:
    case cudaErrorMpsRpcFailure:
    case cudaErrorMpsServerNotReady:
    case cudaErrorMpsMaxClientsReached:
    case cudaErrorMpsMaxConnectionsReached:
        return error_set(err, CHEX_ERR_UNSUPPORTED, "the MPS server of the GPU does not work (%s)", why);
    default:
        return cuda_check(e, what, err);
    }
}

enum chex_status
cuda_check(cudaError_t e, const char *what, struct chex_error *err)
{
    const char *why = cudaGetErrorString(e);

    if ((int)e == CONTAINED)
        e = cudaErrorUnknown; /* why has the cause */
    if (is_of_kernel(e))
        return error_set(err, CHEX_ERR_BUG,
                         "%s: a kernel has failed (%s): with --no-graph the message names it; the last checkpoint is "
                         "complete",
                         what, why);
    switch (e) {
    case cudaSuccess:
        return CHEX_OK;
    case cudaErrorMemoryAllocation:
        return no_memory(what, err);
    case cudaErrorInsufficientDriver:
        return old_driver(err);
    case cudaErrorInitializationError:
    case cudaErrorSystemNotReady:
    case cudaErrorSystemDriverMismatch:
        return error_set(err, CHEX_ERR_UNSUPPORTED, "the NVIDIA driver does not work here (%s): see nvidia-smi", why);
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
        return error_set(err, CHEX_ERR_UNSUPPORTED, "%s: this build has no kernels for this GPU (%s)", what, why);
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorLaunchTimeout:
    case cudaErrorNoDevice:
    case cudaErrorDevicesUnavailable:
    case cudaErrorMpsConnectionFailed:
    case cudaErrorMpsRpcFailure:
    case cudaErrorMpsServerNotReady:
    case cudaErrorMpsMaxClientsReached:
    case cudaErrorMpsMaxConnectionsReached:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice:
    case cudaErrorUnknown:
        return error_set(err, CHEX_ERR_LOST,
                         "%s: the GPU has failed (%s): see dmesg for its Xid, then go on with another one; the last "
                         "checkpoint is complete",
                         what, why);
    default:
        return error_set(err, CHEX_ERR_BUG, "%s: %s (%s)", what, why, cudaGetErrorName(e));
    }
}

enum chex_status
cuda_check_kernel(cudaError_t e, const char *kernel, struct chex_error *err)
{
    char what[128];

    if (is_of_kernel(e))
        return error_set(err, CHEX_ERR_BUG, "the kernel %s has failed (%s); the last checkpoint is complete", kernel,
                         cudaGetErrorString(e));
    snprintf(what, sizeof(what), "the kernel %s", kernel);
    return cuda_check(e, what, err);
}
