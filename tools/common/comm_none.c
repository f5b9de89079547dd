/*
 * comm_none.c - implements launcher.h in a build without MPI
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "common/launcher.h"

#include <stdio.h>

enum chex_status
launcher_comm(struct launcher launcher, struct comm *out, struct chex_error *err)
{
    *out = comm_self();
    if (launcher.size > 1)
        return error_set(err, CHEX_ERR_USAGE,
                         "started as rank %d of %d, but this build has no MPI: use --part, or build with it",
                         launcher.rank, launcher.size);
    return CHEX_OK;
}

const char *
launcher_library(bool open, char *out, size_t size)
{
    (void)open;
    snprintf(out, size, "none");
    return out;
}
