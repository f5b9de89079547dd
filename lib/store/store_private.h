/*
 * store_private.h - what the files of the store share
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_STORE_PRIVATE_H
#define CHEX_LIB_STORE_PRIVATE_H

#include "dataset/manifest.h"
#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>

enum slot_state { SLOT_EMPTY, SLOT_FULL, SLOT_REJECTED };

struct store_shard {
    bool ours;            /* of the part of this process */
    pthread_mutex_t lock; /* for what follows, until the last slot is filled; then its filler's alone */
    uint8_t
        *slot; /* enum slot_state of each planned image; NULL once the shard is finished, and where it is not ours */
    uint32_t left;          /* images neither full nor rejected */
    struct safe_file *part; /* open from the first put on, or from put to put where too many are */
    bool reserved;          /* space for all of it */
    unsigned users;         /* threads that write to it */
    bool borrows;           /* no image is usable: store_finish() borrows one */
    bool again;             /* the disk failed: begin anew once all slots are decided */
    bool begun_anew, waits; /* that was done; and nobody has filled it since */
    char was[DIGEST_HEX];   /* SHA-256 of the shard without rejects that lay here, and is made again; else "" */
};

struct store {
    const struct folder *folder;
    const struct plan *plan;
    struct store_options options;
    unsigned max_open;      /* parts that stay open between puts */
    atomic_uint open_parts; /* that are open */
    struct journal journal;
    pthread_mutex_t journal_lock;
    struct store_shard *shard;
    struct shard_result *result;
};

/* Open a shard's part for writing, if it is not. */
enum chex_status store_open_part(struct store *store, size_t shard, struct chex_error *err);

/* Close it; what is in it stays, unless that fails.  No thread may be at work with it. */
enum chex_status store_close_part(struct store *store, size_t shard, struct chex_error *err);

/*
 * Is this the sealed record of slot `index` of the shard in this data set?  *values is then set and points into it.
 */
enum chex_status store_check_record(const struct store *store, size_t shard, uint32_t index, const uint8_t *record,
                                    struct record_values *values, struct chex_error *err);

/* The same work on numbers 0 .. count - 1 by options.threads threads; see pipeline.h. */
typedef enum chex_status store_work(void *context, void *worker, size_t item, struct chex_error *err);
enum chex_status store_each(const struct store *store, size_t count, store_work *work, void *context,
                            struct chex_error *err);

/* Add the pixels of a record of weight 1 to the sums of its shard. */
void store_add_pixels(const uint8_t *pixel, size_t count, struct shard_result *r);

/*
 * --repair of a complete data set: *damaged says whether there is anything to do (a shard with rejects counts, since
 * their files may have been repaired), and then it is an unfinished one now, whose journal knows the good shards.  m is
 * its manifest, NULL where that is damaged or missing itself.
 * CHEX_ERR_INCOMPATIBLE  nothing of this data set is there
 */
enum chex_status store_repair(const struct store *store, const struct manifest *m, bool *damaged,
                              struct chex_error *err);

/* SHA-256 of a file of the folder, read from the disk as far as the kernel can be told so. */
enum chex_status store_hash_file(const struct store *store, const char *name, char hex[DIGEST_HEX],
                                 struct chex_error *err);

/* Whether this failure is the disk's, for once: then the shard is begun anew instead. */
bool store_may_begin_anew(const struct store *store, size_t shard, enum chex_status status);

/*
 * All slots of the shard are decided: fill the others, check, hash, rename, note in the journal.  Or begin it anew
 * where the disk failed the first time: then all its slots are wanted again.
 */
enum chex_status store_finish_shard(struct store *store, size_t shard, struct chex_error *err);

#endif
