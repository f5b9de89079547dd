/*
 * comm_mpi.c - implements launcher.h with MPI, linked (mpi.h) or opened at run time (mpi_opened.h)
 *
 * No process ever blocks inside MPI, so a lost peer shows as silence (ranks.h, collective.h), not as a hang.  A send
 * copies the message, calls MPI_Isend() and keeps the copy until the request completes.  A receive starts a nonblocking
 * request and tests it, because MPI_Recv() of a probed message would wait for its data.  Transfers use a communicator
 * of their own, so that the probe for messages does not match them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "common/launcher.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef MPI_OPENED
#include "common/mpi_opened.h"
#else
#include <mpi.h>
#define mpi_open(err) ((void)(err), CHEX_OK)
#define mpi_is_open() true
#endif

/* A pending send. */
struct sending {
    struct sending *next;
    MPI_Request request;
    unsigned char data[];
};

/* A probed message and its receive request. */
struct receiving {
    struct receiving *next;
    MPI_Request request;
    bool done;
    int from, tag;
    struct buffer data;
};

struct comm_transfer {
    MPI_Request request;
    bool receives;
    size_t size;
};

struct state {
    MPI_Comm transfers;
    struct sending *sending;
    struct receiving *first, **last; /* in the order of the probes */
};

static enum chex_status
fail_mpi(int code, const char *what, struct chex_error *err)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;

    MPI_Error_string(code, text, &length);
    return error_set(err, CHEX_ERR_LOST, "%s failed: %s", what, text);
}

/* Frees the sends that are complete. */
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

/* ---- messages that go out ------------------------------------------------------------------------------------- */

static enum chex_status
mpi_send(struct comm *comm, int to, int tag, const void *data, size_t size, struct chex_error *err)
{
    struct state *state = comm->state;
    struct sending *s = size <= COMM_MAX_MESSAGE ? malloc(sizeof(*s) + size) : NULL;
    int code;

    if (!s)
        return error_memory(err);
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

/* ---- messages that come in ------------------------------------------------------------------------------------ */

static enum chex_status
receive(struct state *state, MPI_Message *message, const MPI_Status *probe, struct chex_error *err)
{
    struct receiving *r = calloc(1, sizeof(*r));
    int size = 0, code = MPI_Get_count(probe, MPI_BYTE, &size);

    if (!r || buffer_reserve(&r->data, (size_t)size + 1, err) != CHEX_OK) {
        free(r);
        return error_memory(err);
    }
    r->data.size = (size_t)size;
    r->from = probe->MPI_SOURCE;
    r->tag = probe->MPI_TAG;
    if (code == MPI_SUCCESS)
        code = MPI_Imrecv(r->data.data, size, MPI_BYTE, message, &r->request);
    if (code != MPI_SUCCESS) {
        buffer_release(&r->data);
        free(r);
        return fail_mpi(code, "MPI_Imrecv", err);
    }
    *state->last = r;
    state->last = &r->next;
    return CHEX_OK;
}

/* Starts to receive all messages that a probe finds. */
static enum chex_status
look(struct state *state, struct chex_error *err)
{
    for (;;) {
        MPI_Message message;
        MPI_Status probe;
        enum chex_status status;
        int there = 0, code = MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, &message, &probe);

        if (code != MPI_SUCCESS)
            return fail_mpi(code, "MPI_Improbe", err);
        if (!there)
            return CHEX_OK;
        status = receive(state, &message, &probe, err);
        if (status != CHEX_OK)
            return status;
    }
}

/* Returns whether an earlier message of the same sender is still pending. */
static bool
has_earlier_message(const struct state *state, const struct receiving *r)
{
    const struct receiving *before;

    for (before = state->first; before != r; before = before->next)
        if (before->from == r->from)
            return true;
    return false;
}

static enum chex_status
mpi_poll(struct comm *comm, struct comm_message *out, bool *arrived, struct chex_error *err)
{
    struct state *state = comm->state;
    enum chex_status status = reap(state, err);
    struct receiving **at;

    *arrived = false;
    if (status == CHEX_OK)
        status = look(state, err);
    for (at = &state->first; status == CHEX_OK && *at && !*arrived; at = &(*at)->next) {
        struct receiving *r = *at;
        int done = r->done, code = done ? MPI_SUCCESS : MPI_Test(&r->request, &done, MPI_STATUS_IGNORE);

        if (code != MPI_SUCCESS)
            return fail_mpi(code, "MPI_Test", err);
        r->done = done;
        if (!done || has_earlier_message(state, r))
            continue;
        *at = r->next;
        if (!*at)
            state->last = at;
        buffer_release(&out->data);
        *out = (struct comm_message){r->from, r->tag, r->data};
        free(r);
        *arrived = true;
        break;
    }
    return status;
}

/* ---- transfers ------------------------------------------------------------------------------------------------ */

static enum chex_status
start_transfer(struct comm *comm, bool receives, int peer, int tag, void *data, size_t size, struct comm_transfer **out,
               struct chex_error *err)
{
    struct state *state = comm->state;
    struct comm_transfer *t = size <= COMM_MAX_MESSAGE ? calloc(1, sizeof(*t)) : NULL;
    int code;

    *out = NULL;
    if (!t)
        return error_memory(err);
    t->receives = receives;
    t->size = size;
    code = receives ? MPI_Irecv(data, (int)size, MPI_BYTE, peer, tag, state->transfers, &t->request)
                    : MPI_Isend(data, (int)size, MPI_BYTE, peer, tag, state->transfers, &t->request);
    if (code != MPI_SUCCESS) {
        free(t);
        return fail_mpi(code, receives ? "MPI_Irecv" : "MPI_Isend", err);
    }
    *out = t;
    return CHEX_OK;
}

static enum chex_status
mpi_start_send(struct comm *comm, int to, int tag, const void *data, size_t size, struct comm_transfer **out,
               struct chex_error *err)
{
    return start_transfer(comm, false, to, tag, (void *)(uintptr_t)data, size, out, err);
}

static enum chex_status
mpi_start_receive(struct comm *comm, int from, int tag, void *data, size_t size, struct comm_transfer **out,
                  struct chex_error *err)
{
    return start_transfer(comm, true, from, tag, data, size, out, err);
}

static enum chex_status
mpi_finish(struct comm *comm, struct comm_transfer **transfer, struct chex_error *err)
{
    struct comm_transfer *t = *transfer;
    int done = 0, size = 0, code;
    MPI_Status result;

    (void)comm;
    code = MPI_Test(&t->request, &done, &result);
    if (code == MPI_SUCCESS && done && t->receives)
        code = MPI_Get_count(&result, MPI_BYTE, &size);
    if (code != MPI_SUCCESS)
        return fail_mpi(code, "MPI_Test", err);
    if (!done)
        return CHEX_OK;
    if (t->receives && (size_t)size != t->size)
        return error_set(err, CHEX_ERR_BUG, "a transfer of %d bytes where %zu were expected", size, t->size);
    free(t);
    *transfer = NULL;
    return CHEX_OK;
}

static void
mpi_forget(struct comm *comm, struct comm_transfer **transfer)
{
    (void)comm;
    free(*transfer); /* MPI still owns the request */
    *transfer = NULL;
}

/* ---- the end -------------------------------------------------------------------------------------------------- */

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
    while (state->first) {
        struct receiving *r = state->first;

        state->first = r->next;
        if (!r->done)
            MPI_Wait(&r->request, MPI_STATUS_IGNORE);
        buffer_release(&r->data);
        free(r);
    }
    MPI_Comm_free(&state->transfers);
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
    static const struct comm_ops ops = {.send = mpi_send,
                                        .poll = mpi_poll,
                                        .close = mpi_close,
                                        .abort = mpi_abort,
                                        .start_send = mpi_start_send,
                                        .start_receive = mpi_start_receive,
                                        .finish = mpi_finish,
                                        .forget = mpi_forget};
    struct state *state;
    char library[128];
    int level, code;

    *out = comm_self();
    if (launcher.size <= 1)
        return CHEX_OK;
    if (mpi_open(err) != CHEX_OK) {
        char why[CHEX_ERROR_TEXT];

        snprintf(why, sizeof(why), "%s", err->text);
        return error_set(err, CHEX_ERR_USAGE, "started as rank %d of %d, but %s", launcher.rank, launcher.size, why);
    }
    state = calloc(1, sizeof(*state));
    if (!state)
        return error_memory(err);
    code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
    if (code != MPI_SUCCESS) {
        free(state);
        return error_set(err, CHEX_ERR_USAGE, "started as rank %d of %d, but MPI does not start", launcher.rank,
                         launcher.size);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &state->transfers); /* the duplicate inherits the error handler */
    state->last = &state->first;
    *out = (struct comm){.ops = &ops, .state = state};
    MPI_Comm_rank(MPI_COMM_WORLD, &out->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &out->size);
    if (out->size > 1)
        return CHEX_OK;
    mpi_close(out);
    *out = comm_self();
    return error_set(err, CHEX_ERR_USAGE,
                     "started as rank %d of %d, but %s finds no others: with srun try --mpi=pmix or --mpi=pmi2",
                     launcher.rank, launcher.size, launcher_library(false, library, sizeof(library)));
}

const char *
launcher_library(bool open, char *out, size_t size)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    struct chex_error err;
    int length = 0;

    if (!mpi_is_open() && (!open || mpi_open(&err) != CHEX_OK)) {
        snprintf(out, size, open ? "none found" : "not opened");
        return out;
    }

    if (MPI_Get_library_version(text, &length) != MPI_SUCCESS)
        snprintf(text, sizeof(text), "unknown");
    text[strcspn(text, ",\n")] = '\0';
    snprintf(out, size, "%s", text);
    return out;
}
