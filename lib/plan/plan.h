/*
 * plan.h - assigns every image to a slot before the first image is decoded
 *
 * A slot is (split, shard, index).  The order within a split is by the first 8 bytes of
 * SHA-256("chex-order:SEED:NAME"), so the key of an image does not depend on other images.  Shards are numbered over
 * all splits, in the order of the splits.  File names count within the split, as in TFDS:
 * chestxray14-train.tfrecord-00012-of-00338.
 *
 * The data set id is the beginning of a SHA-256 over a text: the format version, the specification, and a line per slot
 * with all values of its record except the pixels.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_PLAN_H
#define CHEX_LIB_PLAN_H

#include "dataset/format.h"
#include "dataset/manifest.h"
#include "dataset/where.h"
#include "image/image.h"
#include "image/resample.h"
#include "plan/split.h"

/* The options that determine the bytes of the data set. */
struct spec {
    uint32_t size; /* images are size x size */
    enum resample_method resize;
    uint32_t shard_size;
    enum tail tail;
    uint32_t align;
    uint64_t seed; /* of the order within a split */
    struct split_rule split;
    struct decode_limits limits;
    /*
     * If the pixels are records of another data set, made smaller: their size and method there, "256x256 bilinear".  If
     * those were also made from records: "256x256 bilinear of 512x512 area".  "": the pixels were resized once.
     */
    char from[MANIFEST_FROM];
    char where[WHERE_TEXT];   /* of where_format(): the selected rows; "": all */
    struct findings findings; /* not owned; count 0: nih14.  plan_make() sets those of the labels */
};

/* The defaults of chex-convert(1), with the rule patient:70,10,20. */
struct spec spec_default(void);
/*
 * Format the specification in one line for messages and the journal: "256x256 bilinear, 256 a shard, tail pad, ...".
 * The lines of two specifications are equal only if the specifications are.
 */
#define SPEC_TEXT (384 + WHERE_TEXT)
void spec_format(const struct spec *spec, char *out, size_t size);
/*
 * Write the parts that differ between two such lines: "it has 256x256 bilinear, seed 0, wanted is 128x128 bilinear,
 * seed 1".  If the lines are equal, the text says that the sources differ.  Returns out.
 */
#define SPEC_DIFFERENCE 1024
char *spec_difference(const char *held, const char *wanted, char out[SPEC_DIFFERENCE]);

struct plan_shard {
    unsigned split;
    uint32_t number, of; /* within the split, from 0 */
    size_t first;        /* its first image in plan->image */
    uint32_t images;     /* slots 0 .. images - 1 are images of the plan */
    uint32_t records;    /* slots images .. records - 1 get padding records */
    char name[SHARD_NAME_MAX];
};

struct slot_plan {
    struct spec spec;
    const struct labels *labels; /* not owned: must outlive the plan */
    struct split_set splits;
    struct record_layout layout;
    char dataset_id[CHEX_ID_LENGTH + 1];
    char members_sha256[SPLIT_MAX][DIGEST_HEX]; /* of the sorted names in a split, each followed by a newline */

    uint32_t *image; /* [image_count] index into labels->entry, shard by shard */
    size_t image_count;
    struct plan_shard *shard;
    size_t shard_count;
    size_t dropped; /* images dropped by TAIL_DROP */
};

/*
 * Make the plan; skip as for split_assign().  Free it with plan_release(), also after a failure.
 * CHEX_ERR_USAGE  from split_assign() or record_choose(), or no image at all, or too many shards
 */
enum chex_status plan_make(const struct spec *spec, const struct labels *labels, const bool *skip,
                           struct slot_plan *out, struct chex_error *err);
void plan_release(struct slot_plan *plan);

/* Make the values of the record of this entry in slot `index` of a shard. */
void plan_values(const struct slot_plan *plan, const struct entry *entry, uint32_t shard, uint32_t index,
                 uint8_t weight, struct record_values *out);

/* Returns the shard of image `item` of plan->image. */
size_t plan_shard_of(const struct slot_plan *plan, size_t item);

/* Returns the bytes of all shards. */
uint64_t plan_size(const struct slot_plan *plan);

#endif
