/*
 * store.h - the shards of a conversion while their slots are filled, in any order and by any thread
 *
 * A shard that is not finished is a partial file of its final size (file.h); slot i lies at i * stride.  A slot is full
 * when its record is there with good checksums, of this data set and for this slot.  Nothing else counts, so after a
 * kill the next run keeps the full slots and fills the rest.  The thread that fills the last slot of a shard
 * finishes it: rejected slots and the tail get padding records, copies of other images with weight 0; everything is
 * read back, checked and hashed; and the file gets its name.
 *
 * Several processes may fill the shards of one folder, each those of its part: store_wants() is false for all others.
 * Then one of them opens the store for all shards, takes over the work of the others, and publishes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_STORE_H
#define CHEX_LIB_STORE_H

#include "plan/plan.h"
#include "store/journal.h"

#include <stdatomic.h>

/* The list of missing images beside the shards; removed when the data set is published. */
#define STORE_MISSING_NAME "missing.txt"

/* The list of rejects, beside the manifest. */
#define STORE_REJECTS_NAME "rejects.jsonl"

/* Is it a file of somebody else, as far as the name says: neither hidden nor one that a conversion makes? */
bool store_is_foreign(const char *name);

struct store;

struct store_options {
    bool verify; /* read each finished shard once more, under its name and from the disk, and compare */
    bool force;  /* replace a data set made with other options */
    struct part part;
    unsigned threads; /* for reading what is there already; 0: one */
    /* Called meanwhile by the calling thread, about five times a second; NULL: never. */
    void (*tick)(void *context);
    void *context;
    const atomic_bool *stop; /* NULL: never */
    /*
     * It is not known yet which images will come: space for a shard is reserved when a quarter of its images are there,
     * and not when the first comes: of an incomplete download that would be most of a data set for a few images.
     */
    bool uncertain;
    /* The id of an unfinished data set that this one replaces, where the folder has it; NULL: none. */
    const char *replaces;
    bool repair; /* check every byte of a complete data set, and rewrite shards that are damaged or have rejects */
};

/* What was there when the store was opened. */
struct store_state {
    size_t shards;   /* of this part */
    uint64_t images; /* planned in them */
    size_t shards_done;
    uint64_t images_done; /* planned in shards that are done */
    uint64_t slots_full;  /* in shards that are not done */
    bool complete;        /* a data set with this id and a manifest: nothing is left to do */
    uint64_t rejects;     /* that its manifest counts */
    bool replaced;        /* store_prepare() removed what options->replaces names */
};

/*
 * Prepare the folder, which the caller has locked, for this plan: empty it under options->force; remove useless files
 * of killed processes, and an unfinished data set of the id options->replaces, unless it is published or may have been.
 * One process calls it, before any opens the store.
 * CHEX_ERR_INCOMPATIBLE  the folder holds a data set, finished or not, of another id, and not options->force
 * CHEX_ERR_DAMAGED  the data set is complete, but for a shard
 * CHEX_ERR_WRITE, CHEX_ERR_READ, CHEX_ERR_MEMORY, CHEX_ERR_STOPPED
 */
enum chex_status store_prepare(const struct folder *folder, const struct slot_plan *plan,
                               const struct store_options *options, struct store_state *state, struct chex_error *err);
/*
 * Is the data set complete?  Writes nothing, so that the folder need be neither locked nor writable.
 * The same errors.
 */
enum chex_status store_probe(const struct folder *folder, const struct slot_plan *plan,
                             const struct store_options *options, struct store_state *state, struct chex_error *err);
/*
 * Open this part of the store in the prepared `folder`, and take over what is there; folder and plan must outlive it.
 * The same errors.
 */
enum chex_status store_open(const struct folder *folder, const struct slot_plan *plan,
                            const struct store_options *options, struct store **out, struct store_state *state,
                            struct chex_error *err);
void store_free(struct store *store); /* NULL is allowed; what is unfinished stays for the next run */

/* Bytes that the unfinished shards will still take. */
uint64_t store_space_needed(const struct store *store);

/* True where slot `index` of `shard` still needs its image.  Thread-safe. */
bool store_wants(const struct store *store, size_t shard, uint32_t index);

/*
 * Put a sealed record of `stride` bytes into its slot.  Thread-safe; each slot by one thread.  May finish the shard.
 * CHEX_ERR_WRITE: the partial file stays for the next run.
 */
enum chex_status store_put(struct store *store, size_t shard, uint32_t index, const uint8_t *record,
                           struct chex_error *err);
/*
 * After each image was put or rejected once: images of the shards that are rewritten since the last call, because the
 * disk failed (EIO).  What an fsync did not write may be lost although it can still be read, so they are made from
 * their sources again, once; the second failure is an error.  *shards: how many shards that is.
 */
uint64_t store_rewrites(struct store *store, unsigned *shards);

/* Say that the slot's image cannot be used.  Thread-safe.  May finish the shard. */
enum chex_status store_reject(struct store *store, size_t shard, uint32_t index, const struct chex_error *why,
                              struct chex_error *err);

/*
 * After the last slot: finish the shards without any usable image, with a donor from their split, and check that
 * all are done.  CHEX_ERR_DAMAGED "no image of split 'val' could be read".
 */
enum chex_status store_finish(struct store *store, struct chex_error *err);

/* Was the shard, one of this part, made again, and has another SHA-256 than before?  Its images differ then. */
bool store_differs(const struct store *store, size_t shard);

/* The results of all shards, plan->shard_count of them, once store_finish() was good. */
const struct shard_result *store_results(const struct store *store);

/* Write rejects.jsonl and the manifest, and remove the journals: the data set is complete. */
enum chex_status store_publish(struct store *store, const void *rejects, size_t rejects_size, const void *manifest,
                               size_t manifest_size, struct chex_error *err);

#endif
