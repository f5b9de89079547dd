/*
 * ranking.h - the images of a split, for each finding in the order of their scores
 *
 * A finding is sorted once, by falling score, and cut into steps: a step is a positive with all images of the same
 * score, and the negatives before it.  Images of one score are negatives first, then positives.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_RANKING_H
#define CHEX_TRAIN_RANKING_H

#include "eval/metrics.h"

struct curve_step {
    uint32_t before;    /* negatives with scores between this step's and the one above */
    uint32_t negatives; /* of this score */
    uint32_t positives; /* of this score, at least one */
    float score;
};

struct ranking {
    uint32_t *patient; /* of the images, by falling score as above; behind the last step negatives */
    struct curve_step *step;
    size_t steps;
};

/*
 * *out [outputs] is the caller's: rankings_free(), also after a failure.
 * CHEX_ERR_USAGE  a score that is no number;  CHEX_ERR_MEMORY
 */
enum chex_status rankings_new(const struct scores *s, unsigned threads, struct ranking **out, struct chex_error *err);
void rankings_free(struct ranking *ranking, unsigned outputs); /* NULL is allowed */

#endif
