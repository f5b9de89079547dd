/*
 * staging.h - a copy of a data set on a local disk, made once and used by all processes of a node
 *
 * The copy is in DIR/chex-ID, with DIR from --stage and ID the id of the data set, so copies of several data sets can
 * share one DIR.  A shard gets its name once it is complete (safe_file) and has the SHA-256 of the manifest.  A shard
 * that is already there is read.  It counts only if the checksums of all its records and the manifest's checksum over
 * them match (without such a checksum: the SHA-256).  manifest.json is written last.  The copy stays for the next run,
 * until a user removes DIR/chex-ID.
 *
 * DIR may be /tmp, where other users can make or exchange DIR/chex-ID.  So folder_open_private() opens it: no link is
 * followed, and the folder must be this user's alone.  All files are read and written relative to that opened folder.
 * Only temporary files of the copy's own names are removed.
 *
 * A lock (lock.h) keeps processes apart; a process that does not get it waits, and then finds what the other one has
 * copied.  A shard whose source is damaged is left out: its records are read and checked where they are.
 *
 *     staging_start(&options, &s, err)       in threads of its own
 *     while (!staging_progress(s, &p))       the caller meets other ranks meanwhile
 *         ...
 *     staging_end(s, err)
 *     staging_open(folder, ds, &copy, err)   in every process of the node
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_STAGING_H
#define CHEX_TRAIN_STAGING_H

#include "base/error.h"

#include <stdatomic.h>

struct staging_options {
    const struct chex_dataset *ds;
    const char *folder;      /* DIR; made where it is missing, its parent must be there */
    const bool *split;       /* [split_count]: shards of these are copied */
    unsigned threads;        /* at least 1 */
    bool break_lock;         /* take over a lock whose holder cannot be looked for here */
    const atomic_bool *stop; /* NULL: never */
};

struct staging;

/* The options are copied, what they point to outlives it.  CHEX_ERR_MEMORY */
enum chex_status staging_start(const struct staging_options *options, struct staging **out, struct chex_error *err);

struct staging_progress {
    uint64_t done, total;      /* bytes probed or copied; total is 0 until it is known */
    uint64_t copied;           /* bytes */
    unsigned shards;           /* to be there in the end */
    unsigned there;            /* that were there already, and good */
    unsigned left_out;         /* damaged at their source */
    bool waiting;              /* for another process that is at work there */
    char why[CHEX_ERROR_TEXT]; /* that process; else why of the first shard that was left out; "" */
};

/* True once it has ended, well or not. */
bool staging_progress(struct staging *s, struct staging_progress *out);

/*
 * Free s (NULL is allowed).  One that has not ended is stopped: what it has copied stays.
 * CHEX_ERR_WRITE    no space ("'/scratch' has 2.0 GB free, 7.4 GB are needed for ..."), or what the disk said
 * CHEX_ERR_USAGE    DIR/chex-ID is a link, a folder of another user, or one that other users may write to
 * CHEX_ERR_MISSING, CHEX_ERR_READ of the data set;  CHEX_ERR_STOPPED;  CHEX_ERR_MEMORY
 */
enum chex_status staging_end(struct staging *s, struct chex_error *err);

/*
 * Open the copy in DIR, to be closed by chex_dataset_close().
 * CHEX_ERR_INCOMPATIBLE  its id is not that of ds
 * CHEX_ERR_USAGE         as in staging_end();  else as chex_dataset_open()
 */
enum chex_status staging_open(const char *dir, const struct chex_dataset *ds, struct chex_dataset **out,
                              struct chex_error *err);

#endif
