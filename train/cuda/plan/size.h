/*
 * size.h - the choices, the memory and the modelled launches of a plan, without a call to CUDA
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_PLAN_SIZE_H
#define CHEX_CUDA_PLAN_SIZE_H

#include "cuda/plan/device.h"

/* Returns the precision of a plan: the given one, or that of the device for PRECISION_AUTO. */
enum precision cuda_size_precision(const struct device *device, enum precision wanted);

/*
 * Computes the layout for these options, whose precision is already chosen, and describes the choices in *facts.  The
 * layout has base 0, or only sizes if `measure` is true.  Call cuda_layout_free() also after an error.
 *
 * refused   see struct cuda_chip
 * version   of cuDNN; "" if only own kernels are used
 * Errors as plan_size().
 */
enum chex_status cuda_size_layout(const struct cuda_device *device, const struct plan_options *o,
                                  const unsigned char *refused, const char *version, bool measure,
                                  struct cuda_layout *layout, struct plan_facts *facts, struct chex_error *err);

/* Returns true if cuDNN runs a convolution of this layout. */
bool cuda_size_has_cudnn(const struct cuda_layout *layout);

/* As plan_size() of the backend. */
enum chex_status cuda_size(const struct device *device, const struct plan_options *o, const char *version,
                           struct plan_facts *facts, struct chex_error *err);

/*
 * As plan_model() of the backend, for the layout of a plan, or if it is NULL, for the plan that these options would
 * give.  Models the GPU of the device, or a similar one if it is unknown.
 */
enum chex_status cuda_size_model(const struct device *device, const struct plan_options *o,
                                 const struct cuda_layout *layout, const char *version, struct plan_model *out,
                                 struct chex_error *err);

#endif
