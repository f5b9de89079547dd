/*
 * reduce.h - sums over ranks that have GPUs: which way they go, and the ways
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_COMM_REDUCE_H
#define CHEX_CUDA_COMM_REDUCE_H

#include "backend/backend.h"

/*
 * By NCCL where every rank has NCCL, of one version, and a GPU of its own; else by messages between the hosts, and
 * reduce.text says why.  All ranks call.  A single rank has nothing to sum.
 */
enum chex_status cuda_reduce_new(struct device *device, struct collective *c, struct reduce **out,
                                 struct chex_error *err);

/* ---- the ways ---------------------------------------------------------------------------------------------------- */

/* Through pinned memory and messages: floats on the device, in place (staged.c). */
enum chex_status reduce_staged_new(struct device *device, struct collective *c, struct reduce **out,
                                   struct chex_error *err);

/* By NCCL, on the device (nccl.c): floats or bfloat16, in place.  CHEX_ERR_LOST also where NCCL fails. */
enum chex_status reduce_nccl_new(struct device *device, struct collective *c, struct reduce **out,
                                 struct chex_error *err);
/* The version of the library that is there, 22809 and "2.28.9"; or 0, and why none can be used. */
int reduce_nccl_version(char text[BACKEND_LIBRARY]);

#endif
