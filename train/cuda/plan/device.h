/*
 * device.h - what a plan needs to know of a GPU; the GPU may be imagined, so that a plan can be computed without one
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_PLAN_DEVICE_H
#define CHEX_CUDA_PLAN_DEVICE_H

#include "backend/backend.h"
#include "cuda/plan/layout.h"

#define CUDA_BUS 32
struct cuda_device {
    struct device device; /* must be the first member */
    int number;           /* number in the CUDA runtime; -1: an imagined device */
    char bus[CUDA_BUS];   /* PCI address, "0000:3b:00"; all parts of one GPU (MIG) have the same */
    unsigned major, minor, processors;
};

/* Returns a device without properties, or NULL. */
struct cuda_device *cuda_device_new(const struct backend *backend);
void cuda_device_close(struct device *device);

/* Sets the precisions that a GPU of this compute capability supports. */
void cuda_device_set_precisions(struct cuda_device *d);

/* As device_imagine() of the backend: a model of GPU of gpu.c, or an H200 if model is NULL. */
enum chex_status cuda_device_imagine(const struct backend *backend, const char *model, struct device **out,
                                     struct chex_error *err);

/*
 * Returns the kernels of a precision and the properties that a layout depends on.  CHEX_ERR_UNSUPPORTED lists the
 * precisions of the device.
 */
enum chex_status cuda_chip_of(const struct cuda_device *device, enum precision precision, struct cuda_chip *out,
                              struct chex_error *err);

#endif
