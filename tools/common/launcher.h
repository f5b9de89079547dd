/*
 * launcher.h - detects whether a launcher started several processes, and opens their communicator
 *
 * The tools read the environment that mpirun or srun sets before they call MPI.  A plain start never initialises MPI.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_LAUNCHER_H
#define CHEX_TOOLS_LAUNCHER_H

#include "ranks/collective.h"

struct launcher {
    int rank, size; /* rank 0 of size 1: a plain start */
};

struct launcher launcher_probe(void);

/*
 * Counts the cores that this process may use, and those that mpirun itself may use.  By default mpirun binds each
 * process to one core or a few.  Both counts are equal if they are unknown or mpirun did not start this process.
 */
struct launcher_cores {
    unsigned own, all;
};

struct launcher_cores launcher_cores(void);

/*
 * Open the communicator of this job.  comm_mpi.c implements it, or comm_none.c in a build without MPI.  The caller
 * closes it with comm->ops->close().
 * CHEX_ERR_USAGE  the job has several processes, but this build has no MPI or MPI does not find the others
 */
enum chex_status launcher_comm(struct launcher launcher, struct comm *out, struct chex_error *err);

/*
 * End all processes after a rank was lost, or if the ranks could not be connected (`ranks` is NULL then).  A rank that
 * does not report the error first waits two seconds for the rank that does.  With a single process: does nothing.
 */
void launcher_end(struct comm *comm, struct collective *ranks, int exit_code);

/*
 * Writes "Open MPI 4.1.4 ..." or "none" to out.  Where MPI is opened at run time and is not open yet: opens it
 * if `open`, else writes "not opened".
 */
const char *launcher_library(bool open, char *out, size_t size);
/* Print that line. */
void launcher_print_version(void);

#endif
