/*
 * launcher.c - see launcher.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "launcher.h"

#include "cli.h"

#include <stdlib.h>

/* A number of the environment; -1 where there is none. */
static int
number_of(const char *name)
{
    const char *text = getenv(name);
    uint64_t number;

    return text && cli_number(text, 0, 1000000, &number, NULL) == CHEX_OK ? (int)number : -1;
}

struct launcher
launcher_look(void)
{
    /*
     * SLURM_PROCID and SLURM_NTASKS also stand in the environment of a batch script, which is one process:
     * only srun sets SLURM_STEP_NUM_TASKS.
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
