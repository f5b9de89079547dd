/*
 * preflight.h - are all images of the label file there?  Answered before any is opened
 *
 * Rows without an image are counted in all and, where the label file is that of the whole data set (112,120 rows), for
 * each of NIH's twelve archives, which hold the images in the order of their names: 4,999 in images_001, 10,000 in each
 * of images_002 to images_011, 7,121 in images_012 (README_CHESTXRAY.pdf of the data set).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_PREFLIGHT_H
#define CHEX_LIB_PREFLIGHT_H

#include "labels.h"
#include "source.h"

#define PREFLIGHT_ARCHIVES 12
#define PREFLIGHT_SAMPLES  5

struct preflight {
    size_t wanted;                         /* rows that take part */
    size_t found;                          /* with an image */
    size_t missing;                        /* without */
    size_t extra;                          /* images without a row (or whose row takes no part) */
    const char *sample[PREFLIGHT_SAMPLES]; /* the first missing names; owned by the labels */

    bool whole; /* the label file is that of the whole data set */
    struct {
        size_t wanted, found;
    } archive[PREFLIGHT_ARCHIVES];
};

/* skip as for split_assign().  Sets missing_image[labels->count], if not NULL: true for rows without an image. */
void preflight_count(const struct labels *labels, const bool *skip, const struct source *source, bool *missing_image,
                     struct preflight *out);

#endif
