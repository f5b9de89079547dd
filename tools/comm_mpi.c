/*
 * comm_mpi.c - launcher.h by MPI, the only file that sees mpi.h
 *
 * Sends are MPI_Isend of a copy, kept until they are done, so that no process ever waits inside MPI: a peer that is
 * gone shows as silence (crew.h), not as a hang.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "launcher.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A message on its way. */
struct sending {
    struct sending *next;
    MPI_Request request;
    unsigned char data[];
};

struct state {
    struct sending *sending;
};

static enum chex_status
fail_mpi(int code, const char *what, struct chex_error *err)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;

    MPI_Error_string(code, text, &length);
    return chex_fail(err, CHEX_ERR_LOST, "%s failed: %s", what, text);
}

/* Forget the messages that are delivered. */
static enum chex_status
reap(struct state *state, struct chex_error *err)
{
    struct sending **at = &state->sending;

    while (*at) {
        struct sending *s = *at;
        int done = 0, code = MPI_Test(&s->request, &done, MPI_STATUS_IGNORE);

        if (code != MPI_SUCCESS)
            return fail_mpi(code, "MPI_Test", err);
        if (done) {
            *at = s->next;
            free(s);
        } else {
            at = &s->next;
        }
    }
    return CHEX_OK;
}

static enum chex_status
mpi_send(struct comm *comm, int to, int tag, const void *data, size_t size, struct chex_error *err)
{
    struct state *state = comm->state;
    struct sending *s = size <= COMM_MAX_MESSAGE ? malloc(sizeof(*s) + size) : NULL;
    int code;

    if (!s)
        return chex_fail_memory(err);
    if (size > 0)
        memcpy(s->data, data, size);
    code = MPI_Isend(s->data, (int)size, MPI_BYTE, to, tag, MPI_COMM_WORLD, &s->request);
    if (code != MPI_SUCCESS) {
        free(s);
        return fail_mpi(code, "MPI_Isend", err);
    }
    s->next = state->sending;
    state->sending = s;
    return reap(state, err);
}

static enum chex_status
mpi_poll(struct comm *comm, struct comm_message *out, bool *arrived, struct chex_error *err)
{
    enum chex_status status = reap(comm->state, err);
    int there = 0, size = 0, code;
    MPI_Status probe;

    *arrived = false;
    if (status != CHEX_OK)
        return status;
    code = MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, &probe);
    if (code == MPI_SUCCESS && there)
        code = MPI_Get_count(&probe, MPI_BYTE, &size);
    if (code != MPI_SUCCESS)
        return fail_mpi(code, "MPI_Iprobe", err);
    if (!there)
        return CHEX_OK;
    status = buffer_reserve(&out->data, (size_t)size + 1, err);
    if (status != CHEX_OK)
        return status;
    code = MPI_Recv(out->data.data, size, MPI_BYTE, probe.MPI_SOURCE, probe.MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS)
        return fail_mpi(code, "MPI_Recv", err);
    out->data.size = (size_t)size;
    out->from = probe.MPI_SOURCE;
    out->tag = probe.MPI_TAG;
    *arrived = true;
    return CHEX_OK;
}

static void
mpi_close(struct comm *comm)
{
    struct state *state = comm->state;

    while (state->sending) {
        struct sending *s = state->sending;

        MPI_Wait(&s->request, MPI_STATUS_IGNORE);
        state->sending = s->next;
        free(s);
    }
    free(state);
    MPI_Finalize();
}

static void
mpi_abort(struct comm *comm, int exit_code)
{
    (void)comm;
    MPI_Abort(MPI_COMM_WORLD, exit_code);
}

enum chex_status
launcher_comm(struct launcher launcher, struct comm *out, struct chex_error *err)
{
    static const struct comm_ops ops = {mpi_send, mpi_poll, mpi_close, mpi_abort};
    struct state *state;
    int level, code;

    *out = comm_self();
    if (launcher.size <= 1)
        return CHEX_OK;
    state = calloc(1, sizeof(*state));
    if (!state)
        return chex_fail_memory(err);
    code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
    if (code != MPI_SUCCESS) {
        free(state);
        return chex_fail(err, CHEX_ERR_USAGE, "started as rank %d of %d, but MPI does not start", launcher.rank,
                         launcher.size);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    *out = (struct comm){.ops = &ops, .state = state};
    MPI_Comm_rank(MPI_COMM_WORLD, &out->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &out->size);
    if (out->size > 1)
        return CHEX_OK;
    mpi_close(out);
    *out = comm_self();
    return chex_fail(err, CHEX_ERR_USAGE,
                     "started as rank %d of %d, but MPI finds no others: with srun try --mpi=pmix or --mpi=pmi2",
                     launcher.rank, launcher.size);
}

const char *
launcher_library(char *out, size_t size)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;

    if (MPI_Get_library_version(text, &length) != MPI_SUCCESS)
        snprintf(text, sizeof(text), "unknown");
    text[strcspn(text, ",\n")] = '\0';
    snprintf(out, size, "%s", text);
    return out;
}
