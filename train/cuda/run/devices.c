/*
 * devices.c - GPUs and their abilities; see plan.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/run/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_MAJOR 7 /* compute capability: older GPUs have no tensor cores */

/* With a driver that is too old this returns 1: opening that device then reports the reason. */
unsigned
cuda_device_count(void)
{
    int count = 0, driver = 0;
    cudaError_t e = cudaGetDeviceCount(&count);

    if (e == cudaErrorNoDevice || count < 0)
        return 0;
    if (e == cudaErrorInsufficientDriver)
        return cudaDriverGetVersion(&driver) == cudaSuccess && driver > 0;
    return e == cudaSuccess ? (unsigned)count : 1;
}

bool
cuda_device_absence(char why[BACKEND_LIBRARY])
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    int driver = 0;

    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
        snprintf(why, BACKEND_LIBRARY, "there is no NVIDIA driver: libcuda.so.1 cannot be loaded");
        return false;
    }
    if (visible)
        snprintf(why, BACKEND_LIBRARY, "CUDA_VISIBLE_DEVICES='%.30s' hides all GPUs", visible);
    else
        snprintf(why, BACKEND_LIBRARY, "the NVIDIA driver finds no GPU: see nvidia-smi -L");
    return true;
}

static void
set_id(struct device_info *info, const char bytes[16])
{
    const unsigned char *b = (const unsigned char *)bytes;

    snprintf(info->id, sizeof(info->id), "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

static enum chex_status
ask_device(struct cuda_device *d, struct chex_error *err)
{
    struct cudaDeviceProp properties;
    size_t there = 0, all = 0;
    struct cudaFuncAttributes attributes;
    cudaError_t e = cudaGetDeviceProperties(&properties, d->number);

    if (e != cudaSuccess)
        return cuda_check_open(e, "asking the GPU", err);
    d->major = (unsigned)properties.major;
    d->minor = (unsigned)properties.minor;
    d->processors = (unsigned)properties.multiProcessorCount;
    snprintf(d->device.info.text, sizeof(d->device.info.text), "%.100s, %u.%u", properties.name, d->major, d->minor);
    set_id(&d->device.info, properties.uuid.bytes);
    snprintf(d->bus, sizeof(d->bus), "%04x:%02x:%02x", (unsigned)properties.pciDomainID, (unsigned)properties.pciBusID,
             (unsigned)properties.pciDeviceID);
    if (d->major < LEAST_MAJOR)
        return error_set(err, CHEX_ERR_UNSUPPORTED,
                         "%.100s has compute capability %u.%u, and %d.0 is needed (V100 or newer)", properties.name,
                         d->major, d->minor, LEAST_MAJOR);
    e = cudaSetDevice(d->number);
    if (e == cudaSuccess)
        e = cudaMemGetInfo(&there, &all);
    if (e == cudaSuccess)
        e = cudaFuncGetAttributes(&attributes, cuda_kernels_fp16[CUDA_STEP_END].function);
    d->device.info.memory = there;
    return cuda_check_open(e, d->device.info.text, err);
}

enum chex_status
cuda_device_open(const struct backend *backend, unsigned number, struct device **out, struct chex_error *err)
{
    struct cuda_device *d = cuda_device_new(backend);
    enum chex_status status;

    *out = NULL;
    if (!d)
        return error_memory(err);
    d->number = (int)number;
    status = ask_device(d, err);
    if (status != CHEX_OK) {
        cuda_device_close(&d->device);
        return status;
    }
    cuda_device_set_precisions(d);
    *out = &d->device;
    return CHEX_OK;
}
