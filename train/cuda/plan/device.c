/*
 * device.c - see device.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/plan/device.h"

#include "cuda/plan/gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BF16_MAJOR 8 /* and of tf32 */

struct cuda_device *
cuda_device_new(const struct backend *backend)
{
    struct cuda_device *d = calloc(1, sizeof(*d));

    if (!d)
        return NULL;
    d->device.backend = backend;
    d->device.info.own_memory = d->device.info.own_clock = d->device.info.fixed_time = true;
    d->device.info.ahead = 1;
    return d;
}

void
cuda_device_close(struct device *device)
{
    free(device);
}

void
cuda_device_set_precisions(struct cuda_device *d)
{
    d->device.info.precisions = 1u << PRECISION_FP16;
    if (d->major >= BF16_MAJOR)
        d->device.info.precisions |= 1u << PRECISION_BF16 | 1u << PRECISION_TF32;
#ifdef CUDA_EMULATED
    d->device.info.precisions |= 1u << PRECISION_FP32;
#endif
    d->device.info.precision = PRECISION_FP16;
}

#define IMAGINED "H200" /* if no model is given */

/*
 * The memory of each GPU, from its data sheet.  The driver reports at least 5 % more than this number of GB (1e9
 * bytes), for example 16,160 MiB for 16 GB.  The context of CUDA and the buffers of NCCL need the difference
 * (assumption).
 */
static const struct {
    const char *name;
    unsigned sold[DEVICE_SIZES];
} memories[] = {{"V100", {16, 32}}, {"A100", {40, 80}}, {"H100", {80}}, {"H200", {141}}};

static void
set_memory(struct cuda_device *d, const char *name)
{
    size_t i;

    d->device.info.memory = UINT64_MAX; /* any plan can be modelled */
    for (i = 0; i < sizeof(memories) / sizeof(*memories); i++)
        if (strcmp(memories[i].name, name) == 0)
            memcpy(d->device.info.sold, memories[i].sold, sizeof(memories[i].sold));
}

static enum chex_status
unknown_model(const char *model, struct chex_error *err)
{
    char names[128] = "";
    size_t used = 0, i;

    for (i = 0; cuda_gpu_name(i) && used < sizeof(names); i++)
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i > 0 ? ", " : "", cuda_gpu_name(i));
    return error_set(err, CHEX_ERR_USAGE, "there is no model of a GPU '%.40s', but of %s", model, names);
}

enum chex_status
cuda_device_imagine(const struct backend *backend, const char *model, struct device **out, struct chex_error *err)
{
    const char *name = model ? model : IMAGINED;
    struct cuda_device *d;
    struct cuda_gpu gpu;
    size_t i = 0;

    *out = NULL;
    while (cuda_gpu_name(i) && strcmp(cuda_gpu_name(i), name) != 0)
        i++;
    if (!cuda_gpu_name(i))
        return unknown_model(name, err);
    d = cuda_device_new(backend);
    if (!d)
        return error_memory(err);
    gpu = cuda_gpu_like(name, 0);
    d->number = -1;
    d->major = gpu.major;
    d->processors = gpu.processors;
    d->device.info.imagined = true;
    set_memory(d, name);
    snprintf(d->device.info.text, sizeof(d->device.info.text), "a model of an NVIDIA %s (%u multiprocessors)%s", name,
             gpu.processors, model ? "" : ", since there is no GPU here");
    cuda_device_set_precisions(d);
    *out = &d->device;
    return CHEX_OK;
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
    *out = (struct cuda_chip){
        .set = cuda_kernels_fp16, .value_bytes = 2, .processors = device->processors, .major = device->major};
    if (precision == PRECISION_BF16)
        out->set = cuda_kernels_bf16;
    if (precision == PRECISION_TF32) {
        out->set = cuda_kernels_tf32;
        out->value = CUDA_TF32;
    }
#ifdef CUDA_EMULATED
    if (precision == PRECISION_FP32)
        out->set = cuda_kernels_float;
#endif
    if (precision == PRECISION_TF32 || precision == PRECISION_FP32)
        out->value_bytes = sizeof(float);
    return CHEX_OK;
}
