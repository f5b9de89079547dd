/*
 * near.h - finds pairs of nearly equal images in different splits
 *
 * Two images are nearly equal if the means of their 64 x 64 cells have a correlation of at least NEAR_LEAST.  Examples
 * are copies with another compression, brightness or contrast.  The search compares every image of a split with every
 * image of the other splits, and misses no pair:
 *
 *     u = the 4096 means, minus their mean, divided by their norm        correlation(a, b) = sum of u_a u_b
 *
 * An orthonormal Haar transform divides u into 64 coarse values, 192 finer values, and the rest.  Only the norm of the
 * rest is kept.  By Cauchy-Schwarz, the correlation is at most the sum of the products of the coarse values, plus the
 * product of the norms of the other values.  This bound excludes nearly all pairs after 64 products; the bound of all
 * 256 values excludes nearly all others.  The pixels of the few remaining pairs are read again for the exact value.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_NEAR_H
#define CHEX_TOOLS_INSPECT_NEAR_H

#include "inspect/check/leaks.h"

#define NEAR_SIDE   64
#define NEAR_LEAST  0.97
#define NEAR_COARSE 64
#define NEAR_VALUES 256
#define NEAR_MAX    100000 /* pairs that a search compares exactly */

/* What the search keeps of an image: 1 KiB. */
struct near_image {
    float value[NEAR_VALUES];     /* the first NEAR_COARSE are the coarse ones */
    float rest_coarse, rest_fine; /* norms: without the coarse values, and of the rest */
    bool described;               /* false: padding, an unreadable record, or an image of one value */
    const struct seen *seen;      /* set by near_find() */
};

struct near_pair {
    uint32_t a, b; /* indices into near_search.image; a is in an earlier split than b */
    double correlation;
};

struct near_search {
    struct inspect *in;
    const struct chex_dataset *dataset;
    struct near_image *image; /* by number of the record; near_find() removes some and keeps the order */
    size_t count;
    struct near_pair *pair; /* result: the highest correlation first */
    size_t pair_count;
    bool too_many; /* more than NEAR_MAX pairs may be nearly equal, so none is listed */
};

/* Allocate the images of a data set, none described.  Free them with near_release(). */
enum chex_status near_init(struct near_search *s, struct inspect *in, const struct chex_dataset *dataset,
                           struct chex_error *err);
void near_release(struct near_search *s);

/* Describe an image.  Threads may describe different images at the same time. */
void near_describe(const uint8_t *pixels, uint32_t width, uint32_t height, struct near_image *out);

/*
 * Find all pairs, after split_check_run(c).  Of equal images in one split, only the first is compared, and equal images
 * in two splits are not a pair.  The result does not depend on the number of threads.
 * CHEX_ERR_READ, CHEX_ERR_DAMAGED, CHEX_ERR_MEMORY
 */
enum chex_status near_find(struct near_search *s, const struct split_check *c, struct chex_error *err);

#endif
