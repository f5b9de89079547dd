/*
 * store_private.h - what the files of the store share
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_STORE_PRIVATE_H
#define CHEX_LIB_STORE_PRIVATE_H

#include "dataset/manifest.h"
#include "dataset/shard_scan.h"
#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>

enum slot_state { SLOT_EMPTY, SLOT_FULL, SLOT_REJECTED };

struct store_shard {
    bool ours;            /* of the part of this process */
    pthread_mutex_t lock; /* for what follows, until the last slot is filled; then its filler's alone */
    uint8_t
        *slot; /* enum slot_state of each planned image; NULL once the shard is finished, and where it is not ours */
    uint32_t left;             /* images neither full nor rejected */
    struct safe_file *partial; /* open from the first put on, or from put to put where too many are */
    bool reserved;             /* space for all of it */
    unsigned users;            /* threads that write to it */
    bool needs_donor;          /* no image is usable: store_finish() finds one in its split */
    bool rewrite;              /* the disk failed: rewrite the shard once all its slots are decided */
    bool rewritten;            /* that was begun */
    bool rewrite_pending;      /* and its slots are wanted again */
    char was[DIGEST_HEX];      /* SHA-256 of the shard without rejects that lay here, and is made again; else "" */
};

struct store {
    const struct folder *folder;
    const struct slot_plan *plan;
    struct store_options options;
    unsigned max_open;         /* partial files that stay open between puts */
    atomic_uint open_partials; /* that are open */
    struct journal journal;
    pthread_mutex_t journal_lock;
    struct store_shard *shard;
    struct shard_result *result;
};

/* ".NAME.part" */
#define STORE_PARTIAL_NAME (SHARD_NAME_MAX + 8)
void store_partial_name(const struct store *store, size_t shard, char out[STORE_PARTIAL_NAME]);

/* Open a shard's partial file for writing, if it is not. */
enum chex_status store_open_partial(struct store *store, size_t shard, struct chex_error *err);

/* Close it; what is in it stays, unless that fails.  No thread may be at work with it. */
enum chex_status store_close_partial(struct store *store, size_t shard, struct chex_error *err);

/* What the records of the shard must be. */
struct shard_identity store_shard_identity(const struct store *store, size_t shard);

/* What was found in the file of a shard; the caller sets what to compute. */
struct store_found {
    bool strict;   /* end at the first record that is not that of its slot: its status */
    bool sha256;   /* compute it */
    uint8_t *slot; /* NULL, or enum slot_state of each planned image: those that are there become SLOT_FULL */

    struct shard_result result; /* but for its size; images of the plan, and the sums of their pixels */
    uint32_t good;              /* records that are those of their slots */
    uint32_t next;              /* the record at which the scan ended */
};

/* Read a shard from fd, or back from its partial file.  The errors of shard_scan(). */
enum chex_status store_scan(const struct store *store, size_t shard, int fd, struct safe_file *partial,
                            struct store_found *out, struct chex_error *err);

/* The same work on numbers 0 .. count - 1 by options.threads threads; see threads.h. */
typedef enum chex_status store_work(void *context, void *worker, size_t item, struct chex_error *err);
enum chex_status store_each(const struct store *store, size_t count, store_work *work, void *context,
                            struct chex_error *err);

/*
 * --repair of a complete data set: *damaged says whether a shard is to be made again (one with rejects counts, since
 * their files may have been repaired), and then it is an unfinished one now, whose journal knows the good shards.  m is
 * its manifest, NULL where that is damaged or missing itself.
 * CHEX_ERR_INCOMPATIBLE  nothing of this data set is there
 */
enum chex_status store_repair(const struct store *store, const struct manifest *m, bool *damaged,
                              struct chex_error *err);

/* SHA-256 of a file of the folder, read from the disk where the kernel drops its pages when asked to. */
enum chex_status store_hash_file(const struct store *store, const char *name, char hex[DIGEST_HEX],
                                 struct chex_error *err);

/*
 * A step of making the shard ended with this status.  The first EIO of a shard, and no other failure, is taken:
 * s->rewrite is set, and the result is CHEX_OK.  The only place that decides whether a write is retried.
 */
enum chex_status store_take_failure(struct store_shard *s, enum chex_status status, const struct chex_error *why);

/*
 * All slots of the shard are decided: fill the others, check, hash, rename, note in the journal.  Or rewrite it where
 * the disk failed the first time: then all its slots are wanted again.
 */
enum chex_status store_finish_shard(struct store *store, size_t shard, struct chex_error *err);

#endif
