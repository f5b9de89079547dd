/*
 * mpi_opened.c - see mpi_opened.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "common/mpi_opened.h"

#include "base/error.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define OPEN_MPI "libmpi.so.40"    /* of Open MPI 4 and 5 */
#define MPI_5    "libmpi_abi.so.1" /* of MPI 5 */

struct mpi_opened mpi_opened;

static bool is_open;

static const struct call {
    const char *name;
    size_t offset; /* of its pointer in struct mpi_opened */
} calls[] = {
    {"MPI_Init_thread", offsetof(struct mpi_opened, init_thread)},
    {"MPI_Finalize", offsetof(struct mpi_opened, finalize)},
    {"MPI_Abort", offsetof(struct mpi_opened, abort)},
    {"MPI_Error_string", offsetof(struct mpi_opened, error_string)},
    {"MPI_Get_library_version", offsetof(struct mpi_opened, library_version)},
    {"MPI_Comm_dup", offsetof(struct mpi_opened, comm_dup)},
    {"MPI_Comm_free", offsetof(struct mpi_opened, comm_free)},
    {"MPI_Comm_rank", offsetof(struct mpi_opened, comm_rank)},
    {"MPI_Comm_size", offsetof(struct mpi_opened, comm_size)},
    {"MPI_Comm_set_errhandler", offsetof(struct mpi_opened, set_errhandler)},
    {"MPI_Isend", offsetof(struct mpi_opened, isend)},
    {"MPI_Irecv", offsetof(struct mpi_opened, irecv)},
    {"MPI_Improbe", offsetof(struct mpi_opened, improbe)},
    {"MPI_Imrecv", offsetof(struct mpi_opened, imrecv)},
    {"MPI_Get_count", offsetof(struct mpi_opened, get_count)},
    {"MPI_Test", offsetof(struct mpi_opened, test)},
    {"MPI_Wait", offsetof(struct mpi_opened, wait)},
};

/* Sets the function or, with `offset`, the object `name` of the library in mpi_opened. */
static bool
find(void *library, const char *name, size_t offset)
{
    void *found = dlsym(library, name);

    memcpy((char *)&mpi_opened + offset, &found, sizeof(found));
    return found != NULL;
}

/* Handles of Open MPI are the addresses of objects. */
static const char *
find_open_mpi(void *library)
{
    if (!find(library, "ompi_mpi_comm_world", offsetof(struct mpi_opened, comm_world)))
        return "ompi_mpi_comm_world";
    if (!find(library, "ompi_mpi_byte", offsetof(struct mpi_opened, byte)))
        return "ompi_mpi_byte";
    if (!find(library, "ompi_mpi_errors_return", offsetof(struct mpi_opened, errors_return)))
        return "ompi_mpi_errors_return";
    mpi_opened.any_tag = -1;
    mpi_opened.thread_funneled = 1;
    return NULL;
}

/* Handles of MPI 5 are numbers (MPI 5.0, appendix A). */
static void
set_mpi_5(void)
{
    mpi_opened.comm_world = (MPI_Comm)(uintptr_t)0x101;
    mpi_opened.byte = (MPI_Datatype)(uintptr_t)0x247;
    mpi_opened.errors_return = (MPI_Errhandler)(uintptr_t)0x143;
    mpi_opened.any_tag = -2;
    mpi_opened.thread_funneled = 1024;
}

/* Returns the name of a function that the library lacks, or NULL. */
static const char *
fill(void *library, const char *name)
{
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        if (!find(library, calls[i].name, calls[i].offset))
            return calls[i].name;
    if (strcmp(name, OPEN_MPI) == 0)
        return find_open_mpi(library);
    set_mpi_5();
    return NULL;
}

bool
mpi_is_open(void)
{
    return is_open;
}

enum chex_status
mpi_open(struct chex_error *err)
{
    /* srun --mpi=pmix sets no variable of Open MPI, which is what it mostly starts. */
    bool open_mpi_first = getenv("OMPI_COMM_WORLD_RANK") || getenv("PMIX_RANK");
    const char *lacks = NULL, *lacking = "";
    const char *const names[] = {open_mpi_first ? OPEN_MPI : MPI_5, open_mpi_first ? MPI_5 : OPEN_MPI};

    for (size_t i = 0; i < 2 && !is_open; i++) {
        /* Open MPI's modules look for its symbols among those of the program. */
        void *library = dlopen(names[i], RTLD_NOW | RTLD_GLOBAL);
        const char *missing = library ? fill(library, names[i]) : NULL;

        is_open = library && !missing;
        if (missing) {
            lacks = missing;
            lacking = names[i];
            dlclose(library);
        }
    }
    if (is_open)
        return CHEX_OK;
    if (lacks)
        return error_set(err, CHEX_ERR_USAGE, "%s lacks %s", lacking, lacks);
    return error_set(err, CHEX_ERR_USAGE,
                     "no MPI was found: neither " OPEN_MPI " (Open MPI 4, 5) nor " MPI_5
                     " (MPI 5); is its folder in LD_LIBRARY_PATH?");
}
