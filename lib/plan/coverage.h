/*
 * coverage.h - are all images of the label file there?  Counted before any is opened
 *
 * Rows without an image are counted in all and, where the label file is that of the whole data set (112,120 rows), for
 * each of NIH's twelve archives, which hold the images in the order of their names: 4,999 in images_001, 10,000 in each
 * of images_002 to images_011, 7,121 in images_012 (README_CHESTXRAY.pdf of the data set).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_PREFLIGHT_H
#define CHEX_LIB_PREFLIGHT_H

#include "input/input_scan.h"
#include "input/unlabeled.h"
#include "labels/label_file.h"

#define PREFLIGHT_ARCHIVES 12
#define PREFLIGHT_SAMPLES  5

struct preflight {
    size_t wanted;                         /* rows that take part */
    size_t found;                          /* with an image */
    size_t missing;                        /* without */
    size_t expected;                       /* neither: they are taken to be in archives, which have not been read */
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

/* Count again, from missing_image; out->extra and out->expected stay. */
void preflight_recount(const struct labels *labels, const bool *skip, const bool *missing_image, struct preflight *out);

/* What is missing is expected to be in archives from now on: missing_image becomes false, found does not change. */
void preflight_expect(const struct labels *labels, bool *missing_image, struct preflight *out);

/*
 * How many of the missing images are there under another ending, as 00000001_000.jpg for 00000001_000.png?  *text says
 * so, with one of them; it is "" where there are none.
 * unlabeled  images without a row, sorted
 */
#define PREFLIGHT_HINT 700
size_t preflight_endings(const struct labels *labels, const bool *missing_image, const struct unlabeled *unlabeled,
                         char text[PREFLIGHT_HINT]);

/* Which of NIH's archives, from 0, holds the image of this row where the label file is that of the whole data set. */
size_t preflight_archive(size_t row);

#endif
