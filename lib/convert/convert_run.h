/*
 * convert_run.h - the phases of a run: lock, resume, fill, finish, publish
 *
 * A process converts all shards, or one part of them.  Only a process with all shards publishes.  Rank r of N converts
 * part r + 1 of N (convert_ranks.c).  When all parts are done, rank 0 opens all shards in the folder and publishes
 * them, like the command without --part after runs with --part.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_CONVERT_RUN_H
#define CHEX_LIB_CONVERT_RUN_H

#include "convert/convert_private.h"
#include "convert/rank_work.h"
#include "io/lock.h"

struct convert_run {
    struct convert *c;
    struct rank_work *work; /* NULL: this process is alone */
    const struct convert_watch *watch;
    const atomic_bool *stop;
    struct part part;
    bool publishing; /* rank 0, after all parts are done */
    struct folder folder;
    struct lock lock;
    struct store *store;
    uint64_t needed; /* bytes of the unfinished shards of all ranks */
};

/*
 * Lock the folder and prepare it.  If c->resumed.complete is set, nothing else must be done.  The caller calls
 * run_close_output(), also after a failure.
 */
enum chex_status run_open_output(struct convert_run *r, struct chex_error *err);
/*
 * Close the store and release the lock.  Returns status.  If status is CHEX_OK and closing fails, returns that failure.
 */
enum chex_status run_close_output(struct convert_run *r, enum chex_status status, struct chex_error *err);

/* Open the store and resume the work of earlier runs. */
enum chex_status run_resume(struct convert_run *r, struct chex_error *err);
/* Check the free space for the unfinished shards, then call watch->begin. */
enum chex_status run_begin(struct convert_run *r, struct chex_error *err);
/* Read the inputs, and fill the slots of all images found. */
enum chex_status run_read_inputs(struct convert_run *r, struct chex_error *err);

/*
 * Call the three functions above and handle missing images: fail or reject them.  If this process has the whole data
 * set, publish it.
 */
enum chex_status run_all(struct convert_run *r, struct chex_error *err);

#endif
