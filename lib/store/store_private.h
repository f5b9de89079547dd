/*
 * store_private.h - declarations shared by the files of the store
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
    bool ours;            /* in the part of this process */
    pthread_mutex_t lock; /* protects the members below; after the last slot is filled, only its thread uses them */
    uint8_t *slot;        /* enum slot_state of each planned image; NULL in finished shards and other parts */
    uint32_t left;        /* number of empty slots */
    struct safe_file *partial; /* open after the first put, or only during puts if too many are open */
    bool reserved;             /* disk space for the whole shard is reserved */
    unsigned users;            /* threads that are writing to it */
    bool needs_donor;          /* no image is usable: store_finish() uses an image of the split */
    bool rewrite;              /* the disk failed: rewrite the shard after all slots are full or rejected */
    bool rewritten;            /* the rewrite has begun */
    bool rewrite_pending;      /* its slots are empty again, and store_rewrites() has not counted them yet */
    char was[DIGEST_HEX];      /* SHA-256 of the earlier shard without rejects that is written again; otherwise "" */
};

struct store {
    const struct folder *folder;
    const struct slot_plan *plan;
    struct store_options options;
    unsigned max_open;         /* the most partial files that stay open between puts */
    atomic_uint open_partials; /* number of open partial files */
    struct journal journal;
    pthread_mutex_t journal_lock;
    struct store_shard *shard;
    struct shard_result *result;
};

/* ".NAME.part" */
#define STORE_PARTIAL_NAME (SHARD_NAME_MAX + 8)
void store_partial_name(const struct store *store, size_t shard, char out[STORE_PARTIAL_NAME]);

/* Open a shard's partial file for writing, unless it is open. */
enum chex_status store_open_partial(struct store *store, size_t shard, struct chex_error *err);

/* Close it and keep its content, unless closing fails.  No thread may be using it. */
enum chex_status store_close_partial(struct store *store, size_t shard, struct chex_error *err);

/* Returns the layout, data set and number that all records of the shard must have. */
struct shard_identity store_shard_identity(const struct store *store, size_t shard);

/* The result of scanning the file of a shard.  The caller sets the first three members. */
struct store_found {
    bool strict;   /* end with the error of the first record that is not valid for its slot */
    bool sha256;   /* compute the SHA-256 */
    uint8_t *slot; /* NULL, or enum slot_state of each planned image: SLOT_FULL is set for valid images */

    struct shard_result result; /* without its size; counts planned images and sums their pixels */
    uint32_t good;              /* number of records that are valid for their slots */
    uint32_t padding;           /* of these, padding records in slots of planned images */
    uint32_t next;              /* the record at which the scan ended */
    bool unreadable;            /* it ended at a block that cannot be read */
};

/* Scan a shard: the open file fd, or its partial file.  The errors are those of shard_scan(). */
enum chex_status store_scan(const struct store *store, size_t shard, int fd, struct safe_file *partial,
                            struct store_found *out, struct chex_error *err);

/* Call work() for the items 0 .. count - 1 with options.threads threads; see threads.h. */
typedef enum chex_status store_work(void *context, void *worker, size_t item, struct chex_error *err);
enum chex_status store_each(const struct store *store, size_t count, store_work *work, void *context,
                            struct chex_error *err);

/*
 * Repair a complete data set (--repair).  *damaged is set if a shard must be rewritten: one that is damaged, or one
 * with rejects, because their files may have been repaired.  Then the data set becomes an unfinished one with a journal
 * of its valid shards.  m is the manifest, or NULL if it is damaged or missing.
 * CHEX_ERR_INCOMPATIBLE  the folder has no record of this data set
 */
enum chex_status store_repair(const struct store *store, const struct manifest *m, bool *damaged,
                              struct chex_error *err);

/*
 * Compute the SHA-256 of a file in the folder.  Asks the kernel to drop its cached pages first, to read from the disk.
 */
enum chex_status store_hash_file(const struct store *store, const char *name, char hex[DIGEST_HEX],
                                 struct chex_error *err);

/*
 * Handle the status of a step of writing the shard.  For the first EIO of a shard, set s->rewrite and return CHEX_OK.
 * For all other failures, return status.  No other code decides whether a write is retried.
 */
enum chex_status store_take_failure(struct store_shard *s, enum chex_status status, const struct chex_error *why);

/*
 * Finish a shard after all its slots are full or rejected: write padding records, check, hash, rename, add it to the
 * journal.  If the disk failed for the first time, empty all slots instead, to rewrite the shard.
 */
enum chex_status store_finish_shard(struct store *store, size_t shard, struct chex_error *err);

#endif
