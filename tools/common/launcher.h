/*
 * launcher.h - was this process started as one of several, and how do they talk
 *
 * What mpirun or srun put into the environment is looked at before MPI is touched: a plain start never initialises it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_LAUNCHER_H
#define CHEX_TOOLS_LAUNCHER_H

#include "base/comm.h"

struct launcher {
    int rank, size; /* 0 of 1: a plain start */
};

struct launcher launcher_look(void);

/*
 * mpirun binds each process to a core, or to a few, where it is not told otherwise.  The cores that this one may use,
 * and those that mpirun itself may use; where it was not started by mpirun, or that is not known, both are the same.
 */
struct launcher_cores {
    unsigned own, all;
};

struct launcher_cores launcher_cores(void);

/*
 * The processes of this job.  comm_mpi.c has it, or in a build without MPI comm_none.c.  The caller ends with
 * comm->ops->close().
 * CHEX_ERR_USAGE  one of several, but this build has no MPI, or MPI does not find the others
 */
enum chex_status launcher_comm(struct launcher launcher, struct comm *out, struct chex_error *err);

/* "Open MPI 4.1.4 ..." or "none", for --version --verbose. */
const char *launcher_library(char *out, size_t size);
/* Its line there. */
void launcher_print_version(void);

#endif
