/*
 * reduce.h - sums over the ranks, as a backend asks for them
 *
 * The owner of the memory knows the way, so a backend makes its own reducer (backend.h: reduce_new).  Host memory:
 * messages between processes, and a sum in the order of the ranks (comm/reduce_host.c).  A GPU: its vendor's library.
 *
 * `queue` is where the data are computed (a stream of a device), or NULL for host memory, where data are final at the
 * call.  With a queue nothing waits on the host, and the calls may be recorded.  What the numbers are is between a
 * backend and its reducer: doubles in host memory.
 *
 * Promise: the same bits on every rank, and the same bits in every run of the same ranks on the same machines.  Not:
 * the bits of another reducer.
 *
 * Any call may fail with CHEX_ERR_LOST, which names the rank, or with the error of another rank.  After CHEX_ERR_LOST
 * nothing waits for a peer any more, free() neither.
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
    bool on_device; /* sums are made by the device itself: start() and join() wait for nothing, and may be recorded */
    bool fallback;  /* not the way that this device has where it can: `text` says why, and the user should know it */
    char text[192]; /* how sums are made, "by NCCL 2.28.9"; "" where there is one way alone */
    const struct reduce_ops *ops;
};

struct reduce_ops {
    /* Sum `count` numbers in place, behind all that `queue` holds so far; returns at once.  No two sums overlap. */
    enum chex_status (*start)(struct reduce *r, void *data, size_t count, void *queue, struct chex_error *err);
    /* The same of bfloat16; NULL where there are no such sums. */
    enum chex_status (*start_bf16)(struct reduce *r, void *data, size_t count, void *queue, struct chex_error *err);
    /* What is put into `queue` from now on sees all sums that were started.  Host memory: waits for them. */
    enum chex_status (*join)(struct reduce *r, void *queue, struct chex_error *err);
    /* Called again and again in a long computation or a wait: moves sums, and sends heartbeats. */
    enum chex_status (*poll)(struct reduce *r, struct chex_error *err);
    /*
     * Of sums on the device, else NULL: called in the place of poll() while this rank waits for its device, which may
     * wait for those of others; `begins` with the first call of a wait.  CHEX_ERR_LOST also where nothing gets on.
     * What it has failed with stays.
     */
    enum chex_status (*wait)(struct reduce *r, bool begins, struct chex_error *err);
    /* Of sums on the device, else NULL: those that are under way end, whatever they are; there are no others. */
    void (*give_up)(struct reduce *r);
    void (*free)(struct reduce *r);
};

#endif
