/*
 * launcher.c - see launcher.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "common/launcher.h"

#include "common/cli.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Reads a number from the environment.  Returns -1 without a valid number. */
static int
number_of(const char *name)
{
    const char *text = getenv(name);
    uint64_t number;

    return text && cli_number(text, 0, 1000000, &number, NULL) == CHEX_OK ? (int)number : -1;
}

struct launcher
launcher_probe(void)
{
    /*
     * Slurm also sets SLURM_PROCID and SLURM_NTASKS for a batch script, which is one process.  Only srun sets
     * SLURM_STEP_NUM_TASKS.
     */
    static const struct {
        const char *rank, *size;
    } known[] = {
        {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
        {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
        {"PMI_RANK", "PMI_SIZE"},
        {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
    };
    size_t i;

    for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        int rank = number_of(known[i].rank), size = number_of(known[i].size);

        if (rank >= 0 && size > 1 && rank < size)
            return (struct launcher){rank, size};
    }
    return (struct launcher){0, 1};
}

/* Returns the number of cores that a process (0: this one) may use, or 0 if unknown. */
static unsigned
count_cores(pid_t pid)
{
#ifdef HAVE_SCHED_GETAFFINITY
    cpu_set_t set;

    if (sched_getaffinity(pid, sizeof(set), &set) == 0)
        return (unsigned)CPU_COUNT(&set);
#else
    (void)pid;
#endif
    return 0;
}

struct launcher_cores
launcher_cores(void)
{
    struct launcher_cores cores = {.own = count_cores(0)};

    /* The parent of a rank is mpirun, or its helper on this host. */
    cores.all = number_of("OMPI_COMM_WORLD_RANK") >= 0 ? count_cores(getppid()) : 0;
    if (cores.all < cores.own)
        cores.all = cores.own;
    return cores;
}

void
launcher_print_version(void)
{
    char text[256];

    printf("%-14s %s\n", "mpi", launcher_library(true, text, sizeof(text)));
}

void
launcher_end(struct comm *comm, struct collective *ranks, int exit_code)
{
    fflush(stdout);
    if (ranks) {
        collective_abort(ranks, exit_code);
        return;
    }
    sleep(comm->rank == 0 ? 0 : 2);
    comm->ops->abort(comm, exit_code);
}
