/*
 * plan.h - which image goes to which slot, decided before the first one is decoded
 *
 * A slot is (split, shard, index).  Order within a split: by the first 8 bytes of SHA-256("chex-order:SEED:NAME"), so
 * it depends on no other image.  Shards are numbered over all splits, in the order of the splits; file names count
 * within the split, as TFDS does: chestxray14-train.tfrecord-00012-of-00338.
 *
 * The data set id is the head of the SHA-256 over the text of plan_describe(): the format version, the specification
 * and a line for each slot with everything that its record will say besides the pixels.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_PLAN_H
#define CHEX_LIB_PLAN_H

#include "dataset/format.h"
#include "dataset/record.h"
#include "image/image.h"
#include "image/resample.h"
#include "plan/split.h"

/* The options that decide about bytes. */
struct spec {
    uint32_t size; /* images are size x size */
    enum resample_method resize;
    uint32_t shard_size;
    enum tail tail;
    uint32_t align;
    uint64_t seed; /* of the order within a split */
    struct split_rule split;
    struct decode_limits limits;
};

/* The defaults of chex-convert(1), with the rule patient:70,10,20. */
struct spec spec_default(void);
/* One line for messages and the journal: "256x256 bilinear, 256 a shard, tail pad, ...".  Equal text, equal spec. */
void spec_format(const struct spec *spec, char *out, size_t size);
/*
 * The parts of two such lines that differ: "it has 256x256 bilinear, seed 0, wanted is 128x128 bilinear, seed 1"; where
 * the lines are equal, the text says that the sources differ.  Returns out.
 */
#define SPEC_DIFFERENCE 640
char *spec_difference(const char *held, const char *wanted, char out[SPEC_DIFFERENCE]);

struct plan_shard {
    unsigned split;
    uint32_t number, of; /* within the split, from 0 */
    size_t first;        /* its first image in plan->image */
    uint32_t images;     /* slots 0 .. images - 1 are images of the plan */
    uint32_t records;    /* those from images on are padding records */
    char name[SHARD_NAME_MAX];
};

struct slot_plan {
    struct spec spec;
    const struct labels *labels; /* not owned: must outlive the plan */
    struct split_set splits;
    struct record_layout layout;
    char dataset_id[CHEX_ID_LENGTH + 1];
    char members_sha256[SPLIT_MAX][DIGEST_HEX]; /* of the sorted names of a split, each followed by a newline */

    uint32_t *image; /* entry (index into labels->entry) of each planned image, shard after shard */
    size_t image_count;
    struct plan_shard *shard;
    size_t shard_count;
    size_t dropped; /* images left out by TAIL_DROP */
};

/*
 * Make the plan.  skip as for split_assign().  plan_release() frees it, also after a failure.
 * CHEX_ERR_USAGE  from split_assign(), record_choose(), or no image at all, or too many shards
 */
enum chex_status plan_make(const struct spec *spec, const struct labels *labels, const bool *skip,
                           struct slot_plan *out, struct chex_error *err);
void plan_release(struct slot_plan *plan);

/* The values of the record in slot `index` of a shard for this entry. */
void plan_values(const struct slot_plan *plan, const struct entry *entry, uint32_t shard, uint32_t index,
                 uint8_t weight, struct record_values *out);

/* The shard of image `item` of plan->image. */
size_t plan_shard_of(const struct slot_plan *plan, size_t item);

/* Bytes of all shards. */
uint64_t plan_size(const struct slot_plan *plan);

#endif
