/*
 * coverage.h - counts which rows of the label file have an image, before any image is opened
 *
 * Rows without an image are counted in total.  If the label file is that of the whole data set (112,120 rows), they are
 * also counted for each of NIH's twelve archives.  The archives contain the images in the order of their names: 4,999
 * in images_001, 10,000 in each of images_002 to images_011, 7,121 in images_012 (README_CHESTXRAY.pdf of the data
 * set).
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
    size_t wanted;                         /* rows that are converted */
    size_t found;                          /* of these, rows with an image */
    size_t missing;                        /* of these, rows without an image */
    size_t expected;                       /* of these, rows whose image is expected in an unread archive */
    size_t extra;                          /* images without a row, or whose row is skipped */
    const char *sample[PREFLIGHT_SAMPLES]; /* the first missing names; the labels own them */

    bool whole; /* the label file is that of the whole data set */
    struct {
        size_t wanted, found;
    } archive[PREFLIGHT_ARCHIVES];
};

/*
 * Count rows and images; skip as for split_assign().  missing_image is NULL or has labels->count elements, which become
 * true for rows without an image.
 */
void preflight_count(const struct labels *labels, const bool *skip, const struct source *source, bool *missing_image,
                     struct preflight *out);

/* Count again, from missing_image; out->extra and out->expected keep their values. */
void preflight_recount(const struct labels *labels, const bool *skip, const bool *missing_image, struct preflight *out);

/* Expect all missing images in archives: clears missing_image and out->missing; out->found keeps its value. */
void preflight_expect(const struct labels *labels, bool *missing_image, struct preflight *out);

/*
 * Returns the number of missing images that exist with another suffix, such as 00000001_000.jpg for 00000001_000.png.
 * *text reports the number with one example; it is "" if there are none.
 * unlabeled  images without a row, sorted
 */
#define PREFLIGHT_HINT 700
size_t preflight_endings(const struct labels *labels, const bool *missing_image, const struct unlabeled *unlabeled,
                         char text[PREFLIGHT_HINT]);

/*
 * Returns which of NIH's archives, counted from 0, contains the image of this row of the whole data set's label file.
 */
size_t preflight_archive(size_t row);

#endif
