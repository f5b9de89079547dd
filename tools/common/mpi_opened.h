/*
 * mpi_opened.h - the calls of MPI that comm_mpi.c uses, from a library that is opened at run time
 *
 * One program then runs under the mpirun of Open MPI 4 and 5 (libmpi.so.40) and of every MPI with the interface of
 * MPI 5 (libmpi_abi.so.1: MPICH 5, Intel MPI 2021.17 and later), and without any MPI.  Both interfaces have pointers
 * as handles and return 0 for success.  Sources: mpi.h of Open MPI 4.1 and 5.0; MPI 5.0, chapter 20, and its mpi_abi.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_MPI_OPENED_H
#define CHEX_TOOLS_MPI_OPENED_H

#include "chex.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct opened_comm *MPI_Comm;
typedef struct opened_request *MPI_Request;
typedef struct opened_message *MPI_Message;
typedef struct opened_datatype *MPI_Datatype;
typedef struct opened_errhandler *MPI_Errhandler;

/* Both interfaces begin with these three; the larger one has 32 bytes. */
typedef struct {
    alignas(8) int MPI_SOURCE;
    int MPI_TAG, MPI_ERROR, other[5];
} MPI_Status;

struct mpi_opened {
    int (*init_thread)(int *, char ***, int, int *);
    int (*finalize)(void);
    int (*abort)(MPI_Comm, int);
    int (*error_string)(int, char *, int *);
    int (*library_version)(char *, int *);
    int (*comm_dup)(MPI_Comm, MPI_Comm *);
    int (*comm_free)(MPI_Comm *);
    int (*comm_rank)(MPI_Comm, int *);
    int (*comm_size)(MPI_Comm, int *);
    int (*set_errhandler)(MPI_Comm, MPI_Errhandler);
    int (*isend)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
    int (*irecv)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
    int (*improbe)(int, int, MPI_Comm, int *, MPI_Message *, MPI_Status *);
    int (*imrecv)(void *, int, MPI_Datatype, MPI_Message *, MPI_Request *);
    int (*get_count)(const MPI_Status *, MPI_Datatype, int *);
    int (*test)(MPI_Request *, int *, MPI_Status *);
    int (*wait)(MPI_Request *, MPI_Status *);
    MPI_Comm comm_world;
    MPI_Datatype byte;
    MPI_Errhandler errors_return;
    int any_tag, thread_funneled;
};

/* Filled by mpi_open(). */
extern struct mpi_opened mpi_opened;

/*
 * Open the library of the MPI that started this process: Open MPI's first if Open MPI's mpirun did.  The dynamic linker
 * looks for it (LD_LIBRARY_PATH, the run path of the program).  It stays open.
 * CHEX_ERR_USAGE  there is none, or it lacks a function; the text says what was tried
 */
enum chex_status mpi_open(struct chex_error *err);
bool mpi_is_open(void);

#define MPI_SUCCESS                    0
#define MPI_STATUS_IGNORE              ((MPI_Status *)0)
#define MPI_ANY_SOURCE                 (-1)
#define MPI_MAX_ERROR_STRING           512
#define MPI_MAX_LIBRARY_VERSION_STRING 8192
#define MPI_COMM_WORLD                 mpi_opened.comm_world
#define MPI_BYTE                       mpi_opened.byte
#define MPI_ERRORS_RETURN              mpi_opened.errors_return
#define MPI_ANY_TAG                    mpi_opened.any_tag
#define MPI_THREAD_FUNNELED            mpi_opened.thread_funneled
#define MPI_Init_thread                mpi_opened.init_thread
#define MPI_Finalize                   mpi_opened.finalize
#define MPI_Abort                      mpi_opened.abort
#define MPI_Error_string               mpi_opened.error_string
#define MPI_Get_library_version        mpi_opened.library_version
#define MPI_Comm_dup                   mpi_opened.comm_dup
#define MPI_Comm_free                  mpi_opened.comm_free
#define MPI_Comm_rank                  mpi_opened.comm_rank
#define MPI_Comm_size                  mpi_opened.comm_size
#define MPI_Comm_set_errhandler        mpi_opened.set_errhandler
#define MPI_Isend                      mpi_opened.isend
#define MPI_Irecv                      mpi_opened.irecv
#define MPI_Improbe                    mpi_opened.improbe
#define MPI_Imrecv                     mpi_opened.imrecv
#define MPI_Get_count                  mpi_opened.get_count
#define MPI_Test                       mpi_opened.test
#define MPI_Wait                       mpi_opened.wait

#endif
