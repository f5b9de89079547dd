/*
 * reduce.h - the interface of a reducer, which sums numbers over the ranks for a backend
 *
 * Each backend creates the reducer for its memory (backend.h: reduce_new).  Host memory: messages between processes,
 * added in the order of the ranks (comm/reduce_host.c).  GPU memory: the vendor's library.
 *
 * `queue` is the stream of a device in which the data are computed, or NULL for host memory, where data are final at
 * the call.  With a queue the host does not wait, and the calls may be captured.  A backend and its reducer agree on
 * the type of the numbers: double in host memory.
 *
 * The bits are the same on every rank, and in every run of the same ranks on the same machines.  Another reducer may
 * give other bits.
 *
 * Any call may fail with CHEX_ERR_LOST, which names the rank, or with the error of another rank.  After CHEX_ERR_LOST
 * no call waits for a peer, including free().
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_REDUCE_H
#define CHEX_TRAIN_REDUCE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

struct reduce {
    int rank, size;
    bool on_device; /* the device computes the sums: start() and join() do not wait and may be captured */
    bool fallback;  /* not the preferred method of this device; `text` explains why, for the user */
    char text[192]; /* the method, "by NCCL 2.28.9"; "" if there is only one */
    const struct reduce_ops *ops;
};

struct reduce_ops {
    /* Sum `count` numbers in place, after all work in `queue`; returns immediately.  Sums must not overlap. */
    enum chex_status (*start)(struct reduce *r, void *data, size_t count, void *queue, struct chex_error *err);
    /* As start(), for bfloat16; NULL if not supported. */
    enum chex_status (*start_bf16)(struct reduce *r, void *data, size_t count, void *queue, struct chex_error *err);
    /* Order later work in `queue` after all started sums.  Host memory: wait for them. */
    enum chex_status (*join)(struct reduce *r, void *queue, struct chex_error *err);
    /* Call it repeatedly in a long computation or wait: it makes progress on sums and sends heartbeats. */
    enum chex_status (*poll)(struct reduce *r, struct chex_error *err);
    /*
     * For sums on the device, otherwise NULL.  Call it instead of poll() while this rank waits for its device, which
     * may be waiting for other ranks; `begins` is true in the first call of a wait.  Fails with CHEX_ERR_LOST also if
     * there is no progress.  An error is permanent.
     */
    enum chex_status (*wait)(struct reduce *r, bool begins, struct chex_error *err);
    /* For sums on the device, otherwise NULL: abort the sums in flight, with undefined results; no more may follow. */
    void (*give_up)(struct reduce *r);
    /*
     * Returns false if a thread of the vendor's library still aborts its sums.  Then end the process by _exit(), since
     * exit handlers of that library must not run next to the thread.
     */
    bool (*free)(struct reduce *r);
};

#endif
