/*
 * image_file.h - reads a CSV file with a row for each image, and finds the images among the predictions
 *
 * The image is in the column image, Image Index, Image ID or filename.  Images that the predictions do not have are
 * counted and skipped, because such a file is often about a whole data set.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_RUN_IMAGE_FILE_H
#define CHEX_TOOLS_INSPECT_RUN_IMAGE_FILE_H

#include "eval/predictions_read.h"
#include "io/csv.h"

struct image_table {
    const struct predictions *p;
    /* Called once, for the first row; image: its column of images. */
    enum chex_status (*header)(void *context, const struct table_row *row, size_t image, struct chex_error *err);
    /* Called for each image that the predictions have; at: its row there.  The row has at least the image. */
    enum chex_status (*image)(void *context, const struct table_row *row, size_t at, struct chex_error *err);
    void *context;

    size_t found, others; /* out: images of the file that are among the predictions, and those that are not */
};

/*
 * Read the file.
 * CHEX_ERR_INCOMPATIBLE with "PATH:LINE: ...": no column of images, an image twice or without a name, no image that the
 * predictions have, not a CSV file;  CHEX_ERR_MISSING, CHEX_ERR_READ, CHEX_ERR_MEMORY, and statuses of both functions
 */
enum chex_status image_file_read(const char *path, struct image_table *f, struct chex_error *err);

#endif
