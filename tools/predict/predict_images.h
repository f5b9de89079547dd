/*
 * predict_images.h - lists the images of all PATHs by name, before the first is decoded
 *
 * The list is sorted by name, so no result depends on the order of the PATHs.  Archives are read once for their names
 * and later again for their images.  `names` is the form in which image_reader.h takes a list of names: its entries
 * have a name and nothing else, because there are no labels.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_PREDICT_IMAGES_H
#define CHEX_TOOLS_PREDICT_IMAGES_H

#include "input/image_reader.h"
#include "predict/predict_options.h"

struct images {
    struct source source;
    struct labels names;           /* [count], sorted */
    struct planned_image *planned; /* [count] of each name; its index is the row */
    size_t count;
    bool synthetic;                  /* a path is in a folder of chex-synth; data sets say it themselves */
    struct unlabeled *member;        /* [source.archive_count] names in each archive */
    struct archive_content *content; /* as `member`; set by the reader */
    struct unlabeled others;         /* names in archives that are not in the list; set by the reader */
    locale_t utf8;                   /* for names in archives */
};

/*
 * List the images.  size: side of the images of the models, which must not be smaller than those of a data set.  Zero
 * *out before the call; free it with images_release(), also after a failure.
 * CHEX_ERR_USAGE    --split without a data set, or a data set without this split; errors of source_scan()
 * CHEX_ERR_MISSING  there are no images;  CHEX_ERR_INCOMPATIBLE  a data set of smaller images, or with a
 *                   damaged manifest
 * CHEX_ERR_STOPPED, CHEX_ERR_READ, CHEX_ERR_MEMORY and other errors of source_scan() and image_archive_open()
 */
enum chex_status images_list(const struct predict_options *o, unsigned size, enum resample_method resize,
                             unsigned threads, const atomic_bool *stop, struct images *out, struct chex_error *err);
void images_release(struct images *images);

/*
 * Returns how the images became as small as those of the models: the method of the data set if its images have this
 * size, otherwise `resize`; "mixed" for data sets of which some were made in other ways.
 */
const char *images_resize(const struct images *images, unsigned size, enum resample_method resize);
/* Returns whether images may be larger than those of the models, so that they are shrunk now. */
bool images_are_shrunk(const struct images *images, unsigned size);

/* Returns the options for reading the archives. */
struct image_archive_options images_archive_options(const struct images *images, const atomic_bool *stop);

#endif
