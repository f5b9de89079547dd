/*
 * ranking.h - the images of a split with a known label, sorted by score for each finding
 *
 * Each finding is sorted once, by descending score, and divided into steps.  A step has all images of one score with at
 * least one positive, and the negatives between it and the previous step.  Among images of equal score, negatives come
 * first.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_RANKING_H
#define CHEX_TRAIN_RANKING_H

#include "eval/metrics.h"

struct curve_step {
    uint32_t before;    /* negatives with scores between this step and the previous one */
    uint32_t negatives; /* with this score */
    uint32_t positives; /* with this score, at least one */
    float score;
};

struct ranking {
    uint32_t *patient; /* [count] of the images, in sorted order; after the last step only negatives */
    size_t count;      /* images whose label is known */
    struct curve_step *step;
    size_t steps;
};

/*
 * Sort all findings.  Release *out [outputs] with rankings_free(), also after a failure.
 * CHEX_ERR_USAGE a NaN score, even if its label is unknown;  CHEX_ERR_MEMORY
 */
enum chex_status rankings_new(const struct scores *s, unsigned threads, struct ranking **out, struct chex_error *err);
void rankings_free(struct ranking *ranking, unsigned outputs); /* NULL is allowed */

#endif
