/*
 * reduce.h - sums over ranks that have GPUs: the choice of the method, and the methods
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_COMM_REDUCE_H
#define CHEX_CUDA_COMM_REDUCE_H

#include "backend/backend.h"

/*
 * Creates the reducer.  It uses NCCL if every rank has the same version of NCCL and a GPU of its own.  Otherwise the
 * hosts exchange messages, and reduce.text gives the reason.  All ranks must call this.  A single rank needs no sums.
 */
enum chex_status cuda_reduce_new(struct device *device, struct collective *c, struct reduce **out,
                                 struct chex_error *err);

/* ---- methods ----------------------------------------------------------------------------------------------------- */

/* Sums by messages between the hosts, through pinned memory: floats on the device, in place (staged.c). */
enum chex_status reduce_staged_new(struct device *device, struct collective *c, struct reduce **out,
                                   struct chex_error *err);

/* Sums by NCCL on the devices: floats or bfloat16, in place (nccl.c).  A failure of NCCL is CHEX_ERR_LOST as well. */
enum chex_status reduce_nccl_new(struct device *device, struct collective *c, struct reduce **out,
                                 struct chex_error *err);
/*
 * Returns the version of the library and writes its text: 22809 and "2.28.9".  Returns 0 and writes the reason if NCCL
 * cannot be used.
 */
int reduce_nccl_version(char text[BACKEND_LIBRARY]);

#endif
