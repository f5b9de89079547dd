/*
 * comm.h - messages between the processes of one job
 *
 * A mailbox: any process sends to any other, messages of one sender arrive in the order in which they were sent, and
 * the receiver asks whether something came.  Transfers are for much data: both sides name the memory, and
 * nothing is copied on the way.  No call waits: a process that has to wait sleeps and asks again.  MPI implements this
 * seam (tools/common/comm_mpi.c); a single process has comm_self().
 *
 * Only the thread that opened it may call it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_COMM_H
#define CHEX_LIB_COMM_H

#include "base/memory.h"

/* Bytes of one message, or transfer. */
#define COMM_MAX_MESSAGE (1u << 30)

/* Tags are 0 .. COMM_MAX_TAG; their meaning is the callers'. */
#define COMM_MAX_TAG 32767

struct comm_message {
    int from, tag;
    struct buffer data; /* reused from message to message; buffer_release() it at the end */
};

struct comm;
struct comm_transfer; /* one that is under way */

struct comm_ops {
    /* The caller may change the data when it returns.  CHEX_ERR_LOST, CHEX_ERR_MEMORY */
    enum chex_status (*send)(struct comm *comm, int to, int tag, const void *data, size_t size, struct chex_error *err);
    /* The next message, if one has come whole: *arrived.  The same errors. */
    enum chex_status (*poll)(struct comm *comm, struct comm_message *out, bool *arrived, struct chex_error *err);
    /* The orderly end: every process calls it, after its last message was received. */
    void (*close)(struct comm *comm);
    /* End all processes at once, with this exit code. */
    void (*abort)(struct comm *comm, int exit_code);

    /*
     * A transfer: size bytes of data, which must not change until it is done, to the memory that process `to` names in
     * a receive of the same tag and size.  Between two processes, transfers of one tag keep their order.  Tags of
     * transfers and tags of messages are apart.  The same errors.
     */
    enum chex_status (*start_send)(struct comm *comm, int to, int tag, const void *data, size_t size,
                                   struct comm_transfer **out, struct chex_error *err);
    enum chex_status (*start_receive)(struct comm *comm, int from, int tag, void *data, size_t size,
                                      struct comm_transfer **out, struct chex_error *err);
    /*
     * Is it done?  Then it is freed, and *transfer is NULL.  A transfer without its other side is never done.
     * CHEX_ERR_BUG: the other side has another size
     */
    enum chex_status (*finish)(struct comm *comm, struct comm_transfer **transfer, struct chex_error *err);
    /* Free a transfer that is not done.  Its memory may be read or written until abort(), the only end then. */
    void (*forget)(struct comm *comm, struct comm_transfer **transfer);
};

struct comm {
    int rank, size; /* 0 <= rank < size */
    const struct comm_ops *ops;
    void *state;
};

/* A single process: rank 0 of 1.  Its abort() does nothing. */
struct comm comm_self(void);

#endif
