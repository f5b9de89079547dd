/*
 * comm.c - implements comm.h for a single process
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "ranks/comm.h"

static enum chex_status
self_send(struct comm *comm, int to, int tag, const void *data, size_t size, struct chex_error *err)
{
    (void)comm;
    (void)tag;
    (void)data;
    (void)size;
    return error_set(err, CHEX_ERR_BUG, "a message for rank %d from a single process", to);
}

static enum chex_status
self_poll(struct comm *comm, struct comm_message *out, bool *arrived, struct chex_error *err)
{
    (void)comm;
    (void)out;
    (void)err;
    *arrived = false;
    return CHEX_OK;
}

static void
self_close(struct comm *comm)
{
    (void)comm;
}

static void
self_abort(struct comm *comm, int exit_code)
{
    (void)comm;
    (void)exit_code;
}

static enum chex_status
self_start_send(struct comm *comm, int to, int tag, const void *data, size_t size, struct comm_transfer **out,
                struct chex_error *err)
{
    *out = NULL;
    return self_send(comm, to, tag, data, size, err);
}

static enum chex_status
self_start_receive(struct comm *comm, int from, int tag, void *data, size_t size, struct comm_transfer **out,
                   struct chex_error *err)
{
    *out = NULL;
    return self_send(comm, from, tag, data, size, err);
}

static enum chex_status
self_finish(struct comm *comm, struct comm_transfer **transfer, struct chex_error *err)
{
    (void)comm;
    (void)transfer;
    (void)err;
    return CHEX_OK;
}

static void
self_forget(struct comm *comm, struct comm_transfer **transfer)
{
    (void)comm;
    (void)transfer;
}

struct comm
comm_self(void)
{
    static const struct comm_ops ops = {.send = self_send,
                                        .poll = self_poll,
                                        .close = self_close,
                                        .abort = self_abort,
                                        .start_send = self_start_send,
                                        .start_receive = self_start_receive,
                                        .finish = self_finish,
                                        .forget = self_forget};

    return (struct comm){.rank = 0, .size = 1, .ops = &ops};
}
