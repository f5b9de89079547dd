/*
 * launcher.h - was this process started as one of several, and how do they talk
 *
 * The environment that mpirun or srun set up is read before MPI is touched: a plain start never initialises it.
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
 * By default mpirun binds each process to a core, or to a few.  The cores that this process may use, and those that
 * mpirun itself may use; both are the same where they are unknown, or mpirun did not start this process.
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
/* That line, printed. */
void launcher_print_version(void);

#endif
