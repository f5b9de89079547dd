/*
 * convert_run.h - the phases of a run: lock, resume, fill, finish, publish
 *
 * A process works on one part of the shards, or on all; only what has all of them is published.  Rank r of N does part
 * r + 1 of N (convert_ranks.c), and when all parts are done rank 0 runs once more on all: it finds them in the folder,
 * as the command without --part finds them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_CONVERT_RUN_H
#define CHEX_LIB_CONVERT_RUN_H

#include "base/ranks.h"
#include "convert/convert_private.h"
#include "io/lock.h"

struct convert_run {
    struct convert *c;
    struct ranks *ranks; /* NULL: this process is alone */
    const struct convert_watch *watch;
    const atomic_bool *stop;
    struct part part;
    bool publishing; /* rank 0, when all parts are done */
    struct folder folder;
    struct lock lock;
    struct store *store;
    uint64_t needed; /* bytes that the unfinished shards will take, those of all ranks */
};

/*
 * Take the lock, and make the folder fit; c->resumed.complete: there is nothing to do.  The caller closes, also after a
 * failure.
 */
enum chex_status run_open_output(struct convert_run *r, struct chex_error *err);
/* Close the store and drop the lock.  Returns status; or, with its text, a failure of this where status is CHEX_OK. */
enum chex_status run_close_output(struct convert_run *r, enum chex_status status, struct chex_error *err);

/* Take over what is there. */
enum chex_status run_resume(struct convert_run *r, struct chex_error *err);
/* Is there room for the rest?  Then the user is told what was there. */
enum chex_status run_begin(struct convert_run *r, struct chex_error *err);
/* Read the inputs, and fill the slots whose image is there. */
enum chex_status run_read_inputs(struct convert_run *r, struct chex_error *err);

/* These three; then what is missing is an error or rejected.  Where this is all of the data set, it is published. */
enum chex_status run_all(struct convert_run *r, struct chex_error *err);

#endif
