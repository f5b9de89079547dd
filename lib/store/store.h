/*
 * store.h - the shards of a conversion; threads fill their slots in any order
 *
 * An unfinished shard is a partial file of the final size (file.h); slot i is at i * stride.  A slot is full if it
 * contains a record with valid checksums, of this data set and for this slot.  Nothing else records which slots are
 * full, so after a kill the next run keeps the full slots and fills the others.  The thread that fills the last slot of
 * a shard finishes it.  It writes padding records (copies of other images with weight 0) to rejected slots and to the
 * tail.  Then it reads the whole file back, checks and hashes it, and renames it to its final name.
 *
 * Several processes may fill the shards of one folder, each the shards of its part: store_wants() is false for all
 * others.  Then one process opens the store for all shards, resumes the work of the others, and publishes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_STORE_H
#define CHEX_LIB_STORE_H

#include "plan/plan.h"
#include "store/journal.h"

#include <stdatomic.h>

/* The list of missing images next to the shards; removed when the data set is published. */
#define STORE_MISSING_NAME "missing.txt"

/* The list of rejects, next to the manifest. */
#define STORE_REJECTS_NAME "rejects.jsonl"

/* Returns whether chex-convert did not write this file, judging by its name; hidden files do not count. */
bool store_is_foreign(const char *name);

/*
 * Like folder_open_output().  CHEX_ERR_USAGE: the name is that of a file of the data set in this folder, or hidden
 * there; the output would replace it.
 */
enum chex_status store_open_output(const char *path, struct folder *out, const char **name, struct chex_error *err);

/*
 * Remove what killed conversions left: partial and temporary files, journals, the list of missing images.  The caller
 * has locked the folder of a complete data set.
 */
enum chex_status store_clean(const struct folder *folder, struct chex_error *err);

/* Add the pixels of an image, and their squares, to the sums of a shard. */
void store_add_pixels(const uint8_t *pixel, size_t count, struct shard_result *r);

struct store;

struct store_options {
    bool verify; /* read each finished shard again, by its name and from the disk, and compare it */
    bool force;  /* replace a data set with other options */
    struct part part;
    unsigned threads; /* number of threads for resuming and checking; 0: one */
    /* The calling thread calls it meanwhile, about five times per second; NULL: never. */
    void (*tick)(void *context);
    void *context;
    const atomic_bool *stop; /* NULL: never */
    /*
     * It is not known yet which images will come.  So reserve space for a shard only when a quarter of its images are
     * in their slots.  With an incomplete download, reserving at the first image would take most of a data set's space
     * for a few images.
     */
    bool uncertain;
    /* The id of an unfinished data set in the folder that this data set replaces; NULL: none. */
    const char *replaces;
    bool repair; /* check every byte of a complete data set; rewrite shards that are damaged or have rejects */
};

/* The state of the folder when the store was opened. */
struct store_state {
    size_t shards;   /* shards of this part */
    uint64_t images; /* planned images in them */
    size_t shards_done;
    uint64_t images_done; /* planned images in finished shards */
    uint64_t slots_full;  /* full slots in unfinished shards */
    bool complete;        /* the folder has a manifest with this id: nothing must be done */
    uint64_t rejects;     /* number of rejects in its manifest */
    bool replaced;        /* store_prepare() removed the data set options->replaces */
};

/*
 * Prepare the folder for this plan.  The caller has locked the folder.  One process calls this before any process opens
 * the store.  With options->force, remove a data set in the folder.  Remove useless files of killed processes, and an
 * unfinished data set with the id options->replaces, unless it is or was published.
 * CHEX_ERR_INCOMPATIBLE  the folder has another data set, complete or unfinished, and options->force is not set
 * CHEX_ERR_DAMAGED  the data set is complete except for a shard
 * CHEX_ERR_WRITE, CHEX_ERR_READ, CHEX_ERR_MEMORY, CHEX_ERR_STOPPED
 */
enum chex_status store_prepare(const struct folder *folder, const struct slot_plan *plan,
                               const struct store_options *options, struct store_state *state, struct chex_error *err);
/*
 * Find out whether the data set is complete.  Writes nothing, so the folder need not be locked or writable.  The errors
 * are the same.
 */
enum chex_status store_probe(const struct folder *folder, const struct slot_plan *plan,
                             const struct store_options *options, struct store_state *state, struct chex_error *err);
/*
 * Open this part of the store in the prepared `folder` and resume the work of earlier runs.  Folder and plan must
 * outlive the store.  The errors are the same.
 */
enum chex_status store_open(const struct folder *folder, const struct slot_plan *plan,
                            const struct store_options *options, struct store **out, struct store_state *state,
                            struct chex_error *err);
void store_free(struct store *store); /* NULL is allowed; unfinished shards stay for the next run */

/* Returns the bytes of disk space that the unfinished shards still need. */
uint64_t store_space_needed(const struct store *store);

/* Returns whether slot `index` of `shard` is in this part and empty.  Thread-safe. */
bool store_wants(const struct store *store, size_t shard, uint32_t index);

/*
 * Write `count` sealed records of `stride` bytes each to the slots index, index + 1, ...  May finish the shard.
 * Thread-safe, but only one thread may write to a slot.
 * CHEX_ERR_WRITE: the partial file stays for the next run.
 */
enum chex_status store_put(struct store *store, size_t shard, uint32_t index, uint32_t count, const uint8_t *records,
                           struct chex_error *err);
/*
 * Returns the number of images in shards that must be rewritten since the last call, because the disk failed (EIO).
 * *shards is the number of these shards.  Call it after every image was put or rejected once.  After a failed fsync,
 * data may be lost although it is still readable.  So these shards are written again from their images, once; a second
 * failure is an error.
 */
uint64_t store_rewrites(struct store *store, unsigned *shards);

/* Reject the image of a slot.  Thread-safe.  May finish the shard. */
enum chex_status store_reject(struct store *store, size_t shard, uint32_t index, const struct chex_error *why,
                              struct chex_error *err);

/*
 * Call this after the last slot: finishes the shards without a usable image, with a donor from their split, and checks
 * that all shards are finished.  CHEX_ERR_DAMAGED "no image of split 'val' could be read".
 */
enum chex_status store_finish(struct store *store, struct chex_error *err);

/* Returns whether this shard of this part was written again with another SHA-256: its images have changed. */
bool store_differs(const struct store *store, size_t shard);

/* Returns the results of all plan->shard_count shards, after store_finish() returned CHEX_OK. */
const struct shard_result *store_results(const struct store *store);

/* Write rejects.jsonl and the manifest, and remove the journals: then the data set is complete. */
enum chex_status store_publish(struct store *store, const void *rejects, size_t rejects_size, const void *manifest,
                               size_t manifest_size, struct chex_error *err);

#endif
