/*
 * store_fixture.h - converts a small data set with the store, without images and decoders
 *
 * The pixels of an image are computed from its position in the plan.  The fixture computes the expected content of a
 * shard again, by the rule of chex-shard(5), and compares it with the file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_STORE_FIXTURE_H
#define CHEX_TESTS_STORE_FIXTURE_H

#include "store/store.h"

#define BENCH_MAX_IMAGES 64

struct bench {
    char path[600];
    struct folder folder;
    struct spec spec;
    struct labels labels;
    struct slot_plan plan;
    bool rejected[BENCH_MAX_IMAGES]; /* indexed by item, its position in plan.image */

    struct store_options options;
    struct store *store;
    struct store_state state;
    struct chex_error err;
};

/* Images of 8x8, four per shard, one split. */
struct spec bench_spec(void);
/* A rule that puts odd patients into train and even ones into test; three images per patient. */
struct split_rule bench_two_splits(void);

/*
 * Makes a plan for this number of images and a new, empty folder.  bench_release() frees everything except the files.
 */
void bench_make(struct bench *b, const struct spec *spec, unsigned images);
void bench_release(struct bench *b);
/* Changes to another empty folder with the same plan. */
void bench_move(struct bench *b);

enum chex_status bench_try_open(struct bench *b);
void bench_open(struct bench *b); /* must succeed */
void bench_close(struct bench *b);

/* Returns the slot of item number `item` of the plan. */
void bench_slot(const struct bench *b, size_t item, size_t *shard, uint32_t *index);
/* Returns the sealed record of a slot with a copy of this item's image; on the heap. */
uint8_t *bench_record(const struct bench *b, size_t shard, uint32_t index, size_t item, uint8_t weight);

/* Puts or rejects an item, if the store wants it.  Thread-safe. */
enum chex_status bench_try_item(struct bench *b, size_t item, struct chex_error *err);
void bench_item(struct bench *b, size_t item); /* must succeed */
/* Handles all items in random order, and calls store_finish(). */
void bench_fill(struct bench *b, uint64_t seed);
/* Opens, fills, closes. */
void bench_run(struct bench *b, uint64_t seed);
/* Writes rejects.jsonl, if there are rejects, and a manifest. */
void bench_publish(struct bench *b);

/* Requires that every shard is correct, byte for byte, and that its result says so. */
void bench_expect_shards(const struct bench *b);
/* Returns the SHA-256 over names and contents of all files except the journal. */
void bench_digest(const struct bench *b, char out[DIGEST_HEX]);

/* ---- files of the folder -------------------------------------------------------------------------------------- */

bool bench_has(const struct bench *b, const char *name);
void bench_put(const struct bench *b, const char *name, const void *data, size_t size);
void bench_text(const struct bench *b, const char *name, const char *text);
/* Returns the whole file; release it. */
struct buffer bench_get(const struct bench *b, const char *name);
/* Flips the bits of `mask` in one byte; a negative offset counts from the end. */
void bench_flip(const struct bench *b, const char *name, long offset, uint8_t mask);
void bench_resize(const struct bench *b, const char *name, long size);
/* Returns ".NAME.part" of a shard; static. */
const char *bench_part(const struct bench *b, size_t shard);

#endif
