/*
 * comm.h - messages between the processes of one job
 *
 * A mailbox: any process sends to any other, messages of one sender arrive in the order in which they were sent, and
 * the receiver asks whether something came.  And transfers, for much data: both sides name the memory, nothing is
 * copied on the way.  No call waits: a process that has to wait sleeps and asks again.  MPI stands behind this seam
 * (tools/common/comm_mpi.c); a process that is alone has comm_self().
 *
 * One thread of a process uses it, the one that opened it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_COMM_H
#define CHEX_LIB_COMM_H

#include "base/memory.h"

/* Bytes of one message, or transfer. */
#define COMM_MAX_MESSAGE (1u << 30)

/* Tags are 0 .. COMM_MAX_TAG, the users' business. */
#define COMM_MAX_TAG 32767

struct comm_message {
    int from, tag;
    struct buffer data; /* reused from message to message; buffer_release() it at the end */
};

struct comm;
struct comm_transfer; /* one that is under way */

struct comm_ops {
    /* The data are copied, or gone, when it returns.  CHEX_ERR_LOST, CHEX_ERR_MEMORY */
    enum chex_status (*send)(struct comm *comm, int to, int tag, const void *data, size_t size, struct chex_error *err);
    /* The next message, if one has come whole: *arrived.  The same errors. */
    enum chex_status (*poll)(struct comm *comm, struct comm_message *out, bool *arrived, struct chex_error *err);
    /* The orderly end: every process calls it, after its last message was received. */
    void (*close)(struct comm *comm);
    /* End all processes at once, with this exit code. */
    void (*abort)(struct comm *comm, int exit_code);

    /*
     * A transfer: size bytes of data here, which stay as they are until it is done, to the memory that process `to`
     * names in a receive of the same tag and size.  Of several with one tag between the same two the first goes to the
     * first.  Tags are a space of their own beside those of messages.  The same errors.
     */
    enum chex_status (*start_send)(struct comm *comm, int to, int tag, const void *data, size_t size,
                                   struct comm_transfer **out, struct chex_error *err);
    enum chex_status (*start_receive)(struct comm *comm, int from, int tag, void *data, size_t size,
                                      struct comm_transfer **out, struct chex_error *err);
    /*
     * Is it done?  Then it is freed, and *transfer is NULL.  Where one of the two never comes it is never done.
     * CHEX_ERR_BUG: of another size
     */
    enum chex_status (*finish)(struct comm *comm, struct comm_transfer **transfer, struct chex_error *err);
    /* Free one that is not done.  Its memory may be read or written until abort(), which is the only end then. */
    void (*forget)(struct comm *comm, struct comm_transfer **transfer);
};

struct comm {
    int rank, size; /* 0 <= rank < size */
    const struct comm_ops *ops;
    void *state;
};

/* A process that is alone: rank 0 of 1.  Its abort() does nothing. */
struct comm comm_self(void);

#endif
