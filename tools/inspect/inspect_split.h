/*
 * inspect_split.h - the result of --check-split, between its computation and its words
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_SPLIT_H
#define CHEX_TOOLS_INSPECT_SPLIT_H

#include "base/sha256.h"
#include "common/ratio.h"
#include "inspect/inspect.h"
#include "plan/split.h"

/* Two-sided p < .001 for one comparison; of the 28 of three splits one in 36 data sets would exceed it by chance. */
#define SPLIT_Z        3.29
#define SPLIT_EXPECTED 5.0 /* images with a finding in either split, else nothing is compared */

/* An image of weight 1. */
struct seen {
    const char *name, *patient;
    uint8_t hash[WALK_HASH_HEAD]; /* of its pixels */
    uint32_t shard, index;
    uint32_t split;
    uint16_t findings;
};

struct split_sums {
    uint64_t patients;
    struct ratio finding[CHEX_FINDINGS]; /* patients are the clusters */
};

struct split_check {
    struct inspect *in;
    const char *path;
    uint64_t faults; /* of the records */
    const struct chex_dataset *dataset;
    struct seen *seen; /* the caller's; sorted by patient here */
    size_t count;
    struct seen **by_hash; /* [count] */
    struct arena strings;

    struct split_sums sums[SPLIT_MAX];
    uint64_t patients, shared_patients; /* shared: in more than one split */
    uint64_t shared_images;             /* groups of equal images in more than one split */
    uint64_t repeated_images;           /* images equal to another one of their split */
};

/* Sorts c->seen, fills in what is below it.  c->by_hash is the caller's to free. */
enum chex_status split_check_run(struct split_check *c, struct chex_error *err);
/*
 * The end of the images of the patient of seen[i], and how many each split has: true where more than one has some.
 */
bool split_check_patient(const struct split_check *c, size_t i, size_t *next, uint64_t images[SPLIT_MAX]);
/* The end of the images equal to by_hash[i]; true where they are in more than one split. */
bool split_check_image(const struct split_check *c, size_t i, size_t *next);
/* Is j an image that equals i?  Both are indices into by_hash. */
bool split_check_same(const struct split_check *c, size_t i, size_t j);
/* The difference b - a in standard errors; 0 where too few have the finding. */
double split_z(const struct split_sums *a, const struct split_sums *b, unsigned finding);

/* Its result is a struct split_check with in, path and faults. */
extern const struct inspect_result split_check_result;

#endif
