/*
 * devices.c - GPUs and their abilities, and the imagined GPU for plan_size() without one; see plan.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/run/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_MAJOR 7 /* compute capability: older GPUs have no tensor cores */
#define BF16_MAJOR  8

/* The GPU that plan_size() assumes if there is none: an H200. */
#define IMAGINED_NAME       "H200"
#define IMAGINED_MAJOR      9
#define IMAGINED_PROCESSORS 132

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
set_precisions(struct cuda_device *d)
{
    d->device.info.precisions = 1u << PRECISION_FP16;
    if (d->major >= BF16_MAJOR)
        d->device.info.precisions |= 1u << PRECISION_BF16;
#ifdef CUDA_EMULATED
    d->device.info.precisions |= 1u << PRECISION_FP32;
#endif
    d->device.info.precision = PRECISION_FP16;
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

static void
imagine(struct cuda_device *d)
{
    d->number = -1;
    d->major = IMAGINED_MAJOR;
    d->processors = IMAGINED_PROCESSORS;
    d->device.info.imagined = true;
    d->device.info.memory = UINT64_MAX;
    snprintf(d->device.info.text, sizeof(d->device.info.text),
             "no GPU here; the plan is for an %s (%d multiprocessors)", IMAGINED_NAME, IMAGINED_PROCESSORS);
}

enum chex_status
cuda_device_open(const struct backend *backend, unsigned number, struct device **out, struct chex_error *err)
{
    struct cuda_device *d = calloc(1, sizeof(*d));
    enum chex_status status = CHEX_OK;

    *out = NULL;
    if (!d)
        return error_memory(err);
    d->device.backend = backend;
    d->device.info.own_memory = d->device.info.own_clock = true;
    d->device.info.ahead = 1;
    d->number = (int)number;
    if (number == DEVICE_IMAGINED)
        imagine(d);
    else
        status = ask_device(d, err);
    if (status != CHEX_OK) {
        free(d);
        return status;
    }
    set_precisions(d);
    *out = &d->device;
    return CHEX_OK;
}

void
cuda_device_close(struct device *device)
{
    free(device);
}

enum chex_status
cuda_chip_of(const struct cuda_device *device, enum precision precision, struct cuda_chip *out, struct chex_error *err)
{
    const struct device_info *info = &device->device.info;
    char names[64] = "";
    int i;

    if (precision == PRECISION_AUTO)
        precision = info->precision;
    for (i = 0; precision_names[i]; i++)
        if (info->precisions >> i & 1)
            snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", names[0] ? ", " : "",
                     precision_names[i]);
    if (!(info->precisions >> precision & 1))
        return error_set(err, CHEX_ERR_UNSUPPORTED, "%s does not compute in %s, but in %s", info->text,
                         precision_names[precision], names);
    *out = (struct cuda_chip){.set = cuda_kernels_fp16,
                              .value_bytes = 2,
                              .processors = device->processors,
                              .launch = CUDA_LAUNCH,
                              .major = device->major};
    if (precision == PRECISION_BF16)
        out->set = cuda_kernels_bf16;
#ifdef CUDA_EMULATED
    if (precision == PRECISION_FP32) {
        out->set = cuda_kernels_float;
        out->value_bytes = sizeof(float);
    }
#endif
    return CHEX_OK;
}
