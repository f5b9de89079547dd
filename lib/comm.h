/*
 * comm.h - messages between the processes of one job
 *
 * A mailbox: any process sends to any other, messages of one sender arrive in the order in which they were sent, and
 * the receiver asks whether something came.  Nothing waits: who wants to wait sleeps and asks again.  The seam behind
 * which MPI stands (tools/comm_mpi.c); a process that is alone has comm_self().
 *
 * One thread of a process uses it, the one that opened it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_COMM_H
#define CHEX_LIB_COMM_H

#include "mem.h"

/* Bytes of one message. */
#define COMM_MAX_MESSAGE (1u << 30)

struct comm_message {
    int from, tag;      /* tag: 0 .. 32767, the users' business */
    struct buffer data; /* reused from message to message; buffer_release() it at the end */
};

struct comm;

struct comm_ops {
    /* The data are copied, or gone, when it returns.  CHEX_ERR_LOST, CHEX_ERR_MEMORY */
    enum chex_status (*send)(struct comm *comm, int to, int tag, const void *data, size_t size, struct chex_error *err);
    /* The next message, if one is there: *arrived.  The same errors. */
    enum chex_status (*poll)(struct comm *comm, struct comm_message *out, bool *arrived, struct chex_error *err);
    /* The orderly end: every process calls it, after its last message was received. */
    void (*close)(struct comm *comm);
    /* End all processes at once, with this exit code. */
    void (*abort)(struct comm *comm, int exit_code);
};

struct comm {
    int rank, size; /* 0 <= rank < size */
    const struct comm_ops *ops;
    void *state;
};

/* A process that is alone: rank 0 of 1.  Its abort() does nothing. */
struct comm comm_self(void);

#endif
