/*
 * reduce_host.h - the reducer of host memory (reduce.h), for every backend that computes there
 *
 * Its numbers are doubles, and their sum is ((x0 + x1) + x2) + ... in the order of the ranks (collective.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_REDUCE_HOST_H
#define CHEX_TRAIN_REDUCE_HOST_H

#include "backend/backend.h"

/* reduce_new() of struct backend; the device is not looked at. */
enum chex_status reduce_host_new(struct device *device, struct collective *c, struct reduce **out,
                                 struct chex_error *err);

#endif
