/*
 * store_fixture.h - a small data set on its way through the store, without images and decoders
 *
 * The pixels of an image follow from its place in the plan; what a shard must hold is worked out here once more, by
 * the rule of chex-shard(5), and compared with the file.
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
    bool rejected[BENCH_MAX_IMAGES]; /* by item: its place in plan.image */

    struct store_options options;
    struct store *store;
    struct store_state state;
    struct chex_error err;
};

/* Images of 8x8, four a shard, one split. */
struct spec bench_spec(void);
/* The rule that gives the odd patients to train and the even ones to test; there are three images to a patient. */
struct split_rule bench_two_splits(void);

/* A plan for this number of images and a new, empty folder.  bench_release() frees all but the files. */
void bench_make(struct bench *b, const struct spec *spec, unsigned images);
void bench_release(struct bench *b);
/* Another empty folder for the same plan. */
void bench_move(struct bench *b);

enum chex_status bench_try_open(struct bench *b);
void bench_open(struct bench *b); /* must succeed */
void bench_close(struct bench *b);

/* Where item number `item` of the plan goes. */
void bench_slot(const struct bench *b, size_t item, size_t *shard, uint32_t *index);
/* The sealed record of a slot, a copy of this item's image; on the heap. */
uint8_t *bench_record(const struct bench *b, size_t shard, uint32_t index, size_t item, uint8_t weight);

/* Put or reject an item, if the store wants it.  Thread-safe. */
enum chex_status bench_try_item(struct bench *b, size_t item, struct chex_error *err);
void bench_item(struct bench *b, size_t item); /* must succeed */
/* All items in random order, and store_finish(). */
void bench_fill(struct bench *b, uint64_t seed);
/* Open, fill, close. */
void bench_run(struct bench *b, uint64_t seed);
/* rejects.jsonl, if there are rejects, and a manifest. */
void bench_publish(struct bench *b);

/* Every shard is what it must be, byte for byte, and its result says so. */
void bench_expect_shards(const struct bench *b);
/* SHA-256 over names and contents of all files but the journal. */
void bench_digest(const struct bench *b, char out[DIGEST_HEX]);

/* ---- files of the folder -------------------------------------------------------------------------------------- */

bool bench_has(const struct bench *b, const char *name);
void bench_put(const struct bench *b, const char *name, const void *data, size_t size);
void bench_text(const struct bench *b, const char *name, const char *text);
/* The whole file, to be released. */
struct buffer bench_get(const struct bench *b, const char *name);
/* Turn the bits of `mask` in one byte; offset from the end where negative. */
void bench_flip(const struct bench *b, const char *name, long offset, uint8_t mask);
void bench_resize(const struct bench *b, const char *name, long size);
/* ".NAME.part" of a shard; static. */
const char *bench_part(const struct bench *b, size_t shard);

#endif
