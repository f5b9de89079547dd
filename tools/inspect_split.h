/*
 * inspect_split.h - what --check-split found, between its computation and its words
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_SPLIT_H
#define CHEX_TOOLS_INSPECT_SPLIT_H

#include "digest.h"
#include "inspect.h"
#include "split.h"

/* Two-sided p < .001 for one comparison; of the 28 of three splits one in 36 data sets would exceed it by chance. */
#define SPLIT_Z        3.29
#define SPLIT_EXPECTED 5.0 /* images with a finding in either split, else nothing is compared */

/* An image of weight 1. */
struct seen {
    const char *name, *patient;
    uint8_t hash[16]; /* head of the SHA-256 of its pixels */
    uint32_t shard, index;
    uint32_t split;
    uint16_t findings;
};

/* Over the patients of a split: n images, y of them with a finding. */
struct split_sums {
    uint64_t patients;
    double n, nn;
    double y[CHEX_FINDINGS], yy[CHEX_FINDINGS], yn[CHEX_FINDINGS];
};

struct split_check {
    const struct chex_dataset *dataset;
    struct seen *seen; /* by patient */
    size_t count;
    struct seen **by_hash; /* [count] */
    struct arena strings;

    struct split_sums sums[SPLIT_MAX];
    uint64_t patients, shared_patients; /* shared: in more than one split */
    uint64_t shared_images;             /* groups of equal images in more than one split */
    uint64_t repeated_images;           /* images equal to another one of their split */
};

/* Whether j is an image, and equal to i; both count in by_hash. */
bool split_check_same(const struct split_check *c, size_t i, size_t j);
double split_prevalence(const struct split_sums *s, unsigned finding);
/* The difference b - a in standard errors; 0 where too few have the finding. */
double split_z(const struct split_sums *a, const struct split_sums *b, unsigned finding);

void split_check_print(const struct inspect *in, const struct split_check *c);
json_t *split_check_json(const struct split_check *c, const char *path, uint64_t faults);

#endif
