/*
 * store_private.h - what store.c, store_open.c and store_finish.c share
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_STORE_PRIVATE_H
#define CHEX_LIB_STORE_PRIVATE_H

#include "store.h"

#include <pthread.h>
#include <stdatomic.h>

enum slot_state { SLOT_EMPTY, SLOT_FULL, SLOT_REJECTED };

struct store_shard {
    pthread_mutex_t lock;   /* for what follows, until the last slot is filled; then its filler's alone */
    uint8_t *slot;          /* enum slot_state of each planned image; NULL once the shard is finished */
    uint32_t left;          /* images neither full nor rejected */
    struct safe_file *part; /* open from the first put on, or from put to put where too many are */
    unsigned users;         /* threads that write to it */
    bool borrows;           /* no image is usable: store_finish() borrows one */
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

/* Close it; what is in it stays.  No thread may be at work with it. */
void store_close_part(struct store *store, size_t shard);

/*
 * Is this the sealed record of slot `index` of the shard in this data set?  *values is then set and points into it.
 */
enum chex_status store_check_record(const struct store *store, size_t shard, uint32_t index, const uint8_t *record,
                                    struct record_values *values, struct chex_error *err);

/* Add the pixels of a record of weight 1 to the sums of its shard. */
void store_add_pixels(const uint8_t *pixel, size_t count, struct shard_result *r);

/* SHA-256 of a file of the folder, read from the disk as far as the kernel can be told so. */
enum chex_status store_hash_file(const struct store *store, const char *name, char hex[DIGEST_HEX],
                                 struct chex_error *err);

/* All slots of the shard are decided: fill the others, check, hash, rename, note in the journal. */
enum chex_status store_finish_shard(struct store *store, size_t shard, struct chex_error *err);

#endif
