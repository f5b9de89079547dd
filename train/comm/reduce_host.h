/*
 * reduce_host.h - the reducer for host memory (reduce.h), shared by all backends that compute there
 *
 * The numbers are doubles; the sum is ((x0 + x1) + x2) + ... in rank order (collective.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_REDUCE_HOST_H
#define CHEX_TRAIN_REDUCE_HOST_H

#include "backend/backend.h"

/* reduce_new() of struct backend; ignores the device. */
enum chex_status reduce_host_new(struct device *device, struct collective *c, struct reduce **out,
                                 struct chex_error *err);

#endif
