/*
 * nccl_none.c - replaces nccl.c in a build without NCCL
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/comm/reduce.h"

#include <stdio.h>

int
reduce_nccl_version(char text[BACKEND_LIBRARY])
{
    snprintf(text, BACKEND_LIBRARY, "this build has no NCCL");
    return 0;
}

enum chex_status
reduce_nccl_new(struct device *device, struct collective *c, struct reduce **out, struct chex_error *err)
{
    (void)device;
    (void)c;
    *out = NULL;
    return error_set(err, CHEX_ERR_UNSUPPORTED, "this build has no NCCL");
}
