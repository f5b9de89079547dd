/*
 * leaks.h - the result of check --leaks: computed by leaks_find.c, printed by leaks_report.c
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_LEAKS_H
#define CHEX_TOOLS_INSPECT_LEAKS_H

#include "base/sha256.h"
#include "common/ratio.h"
#include "inspect/inspect.h"
#include "plan/split.h"

/* Two-sided p < .001 for one comparison.  Three splits give 28 comparisons: 1 in 36 data sets exceeds it by chance. */
#define SPLIT_Z        3.29
#define SPLIT_EXPECTED 5.0 /* minimum of images with a finding in each compared split */

struct near_search;

/* One image of weight 1. */
struct seen {
    const char *name, *patient;
    const uint8_t *label;         /* [finding_count] of the data set */
    uint8_t hash[WALK_HASH_HEAD]; /* of its pixels */
    uint32_t shard, index;
    uint32_t number; /* of the record in the data set */
    uint32_t split;
};

struct split_sums {
    uint64_t patients;
    struct ratio finding[FINDINGS_MAX]; /* clustered by patient */
};

struct split_check {
    struct inspect *in;
    const char *path;
    uint64_t faults; /* number of faulty records */
    const struct chex_dataset *dataset;
    struct seen *seen; /* owned by the caller; split_check_run() sorts it by patient */
    size_t count;
    struct seen **by_hash; /* [count] */
    struct arena strings;

    struct split_sums sums[SPLIT_MAX];
    uint64_t patients, shared_patients; /* shared: patients in more than one split */
    uint64_t shared_images;             /* groups of equal images in more than one split */
    uint64_t repeated_images;           /* images that equal another image of their split */
    struct near_search *near;           /* of --near, not owned; or NULL */
    char certificate[DIGEST_HEX];       /* SHA-256 of the file of --certificate; "" if there is none */
};

/* Sort c->seen and set the members after it.  The caller frees c->by_hash. */
enum chex_status split_check_run(struct split_check *c, struct chex_error *err);
/*
 * Find the end of the images of seen[i]'s patient and count them per split.  Returns true if several splits have some.
 */
bool split_check_patient(const struct split_check *c, size_t i, size_t *next, uint64_t images[SPLIT_MAX]);
/* Find the end of the images equal to by_hash[i].  Returns true if they are in more than one split. */
bool split_check_image(const struct split_check *c, size_t i, size_t *next);
/* Returns true if images i and j, indices into by_hash, are equal. */
bool split_check_same(const struct split_check *c, size_t i, size_t j);
/* Returns the difference b - a in standard errors, or 0 if too few images have the finding. */
double split_z(const struct split_sums *a, const struct split_sums *b, unsigned finding);

/* Returns the lists of the JSON document, each with the first `most` elements.  No list of pairs without --near. */
json_t *split_check_patients_json(const struct split_check *c, size_t most);
json_t *split_check_images_json(const struct split_check *c, size_t most);
json_t *split_check_near_json(const struct split_check *c, size_t most);

/*
 * Write the certificate after a check with --near.
 * CHEX_ERR_DAMAGED  a record is damaged;  CHEX_ERR_LIMIT, CHEX_ERR_WRITE, CHEX_ERR_MEMORY
 */
enum chex_status certificate_write(const struct split_check *c, const char *path, char sha256[DIGEST_HEX],
                                   struct chex_error *err);

/* Formats a struct split_check; uses in, path and faults too. */
extern const struct inspect_result split_check_result;

#endif
