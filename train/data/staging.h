/*
 * staging.h - copies a data set once to a local disk, for all processes of a node
 *
 * The copy is in DIR/chex-ID-UID, with DIR from --stage, ID the id of the data set and UID that of the user.  So copies
 * of several data sets and users can share one DIR.  A shard gets its name after it is complete (safe_file) and has the
 * SHA-256 of the manifest.  An existing shard is read.  It is valid only if the checksums of all its records and the
 * manifest's checksum over them match (without such a checksum: the SHA-256).  manifest.json is written last.  The copy
 * is kept for later runs until the user removes DIR/chex-ID-UID.
 *
 * DIR may be /tmp, where other users can create or replace DIR/chex-ID-UID.  So folder_open_private() opens it: it
 * follows no link, and the folder must belong to this user only.  All files are read and written relative to that
 * opened folder.  Only temporary files with names of the copy are removed.
 *
 * A lock (lock.h) excludes other processes; a process that does not get it waits, and then uses the other's copies.  A
 * shard with a damaged source is left out: its records are read and checked in the data set.
 *
 *     staging_start(&options, &s, err)       starts its own threads
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
    const char *folder;      /* DIR; if missing, created with mode 0700, its parents with that of the umask */
    const bool *split;       /* [split_count]: copy the shards of these splits */
    unsigned threads;        /* at least 1 */
    bool break_lock;         /* take over a lock even if its holder cannot be checked from this machine */
    const atomic_bool *stop; /* NULL: never */
};

struct staging;

/* "chex-ID-UID", the name of this user's copy of a data set. */
#define STAGING_NAME 64
const char *staging_name(const struct chex_dataset *ds, char out[STAGING_NAME]);

/* The options are copied; the objects that they point to must outlive it.  CHEX_ERR_MEMORY */
enum chex_status staging_start(const struct staging_options *options, struct staging **out, struct chex_error *err);

struct staging_progress {
    uint64_t done, total;      /* bytes checked or copied; total is 0 until it is known */
    uint64_t copied;           /* bytes */
    unsigned shards;           /* total number */
    unsigned there;            /* valid before this run */
    unsigned left_out;         /* damaged in the data set */
    bool waiting;              /* for another process that is copying */
    char why[CHEX_ERROR_TEXT]; /* that process, otherwise the error of the first shard that was left out; "" if none */
};

/* Returns true after the end, with or without success. */
bool staging_progress(struct staging *s, struct staging_progress *out);

/*
 * Release s (NULL is allowed).  Stops it if it still runs; finished copies are kept.
 * CHEX_ERR_WRITE    no space ("'/scratch' has 2.0 GB free, 7.4 GB are needed for ..."), or an error of the disk
 * CHEX_ERR_USAGE    DIR/chex-ID-UID is a link, belongs to another user, or is writable by other users
 * CHEX_ERR_MISSING, CHEX_ERR_READ of the data set; CHEX_ERR_STOPPED; CHEX_ERR_MEMORY
 */
enum chex_status staging_end(struct staging *s, struct chex_error *err);

/*
 * Open the copy in DIR; close it with chex_dataset_close().  CHEX_ERR_INCOMPATIBLE its id differs from that of ds
 * CHEX_ERR_USAGE         as in staging_end()
 * Other statuses of chex_dataset_open()
 */
enum chex_status staging_open(const char *dir, const struct chex_dataset *ds, struct chex_dataset **out,
                              struct chex_error *err);

#endif
