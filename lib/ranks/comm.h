/*
 * comm.h - messages between the processes of one job
 *
 * Any process can send a message to any other.  Messages from one sender arrive in the order of sending.  The receiver
 * polls for them.  Large data use transfers: both sides name their memory, and nothing is copied in between.  No call
 * waits: a process that must wait sleeps and polls again.  tools/common/comm_mpi.c implements this interface with MPI;
 * comm_self() implements it for a single process.
 *
 * Only the thread that opened a comm may use it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_COMM_H
#define CHEX_LIB_COMM_H

#include "base/memory.h"

/* The most bytes of a message or transfer. */
#define COMM_MAX_MESSAGE (1u << 30)

/* Tags are 0 .. COMM_MAX_TAG; the callers define their meaning. */
#define COMM_MAX_TAG 32767

struct comm_message {
    int from, tag;
    struct buffer data; /* reused for every message; free it with buffer_release() at the end */
};

struct comm;
struct comm_transfer; /* an unfinished transfer */

struct comm_ops {
    /* Send a message.  The caller may change the data after the return.  CHEX_ERR_LOST, CHEX_ERR_MEMORY */
    enum chex_status (*send)(struct comm *comm, int to, int tag, const void *data, size_t size, struct chex_error *err);
    /* Receive the next message if one has arrived completely (*arrived).  The errors are the same. */
    enum chex_status (*poll)(struct comm *comm, struct comm_message *out, bool *arrived, struct chex_error *err);
    /* Close normally.  Every process calls it after it has received its last message. */
    void (*close)(struct comm *comm);
    /* End all processes at once with this exit code. */
    void (*abort)(struct comm *comm, int exit_code);

    /*
     * Start a transfer of size bytes.  Process `to` starts a receive with the same tag and size, which names the target
     * memory.  The data must not change until the transfer is finished.  Transfers with the same tag between two
     * processes keep their order.  Tags of transfers are independent of tags of messages.  The errors are the same.
     */
    enum chex_status (*start_send)(struct comm *comm, int to, int tag, const void *data, size_t size,
                                   struct comm_transfer **out, struct chex_error *err);
    enum chex_status (*start_receive)(struct comm *comm, int from, int tag, void *data, size_t size,
                                      struct comm_transfer **out, struct chex_error *err);
    /*
     * If the transfer is finished, free it and set *transfer to NULL.  A transfer whose other side was never started
     * does not finish.  CHEX_ERR_BUG: the other side has another size
     */
    enum chex_status (*finish)(struct comm *comm, struct comm_transfer **transfer, struct chex_error *err);
    /*
     * Free an unfinished transfer.  Its memory may be read or written until abort(), which must end the process then.
     */
    void (*forget)(struct comm *comm, struct comm_transfer **transfer);
};

struct comm {
    int rank, size; /* 0 <= rank < size */
    const struct comm_ops *ops;
    void *state;
};

/* Returns a comm for a single process: rank 0 of 1.  Its abort() does nothing. */
struct comm comm_self(void);

#endif
