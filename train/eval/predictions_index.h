/*
 * predictions_index.h - finds images of predictions by their names
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_PREDICTIONS_INDEX_H
#define CHEX_TRAIN_PREDICTIONS_INDEX_H

#include "eval/predictions_read.h"

#define PREDICTIONS_NONE SIZE_MAX

struct named_row {
    const char *name; /* of the predictions, which must outlive the index */
    size_t row;
};

/*
 * List the rows in the order of the names; free(*out), also after a failure.
 * CHEX_ERR_INCOMPATIBLE an image is in two rows;  CHEX_ERR_MEMORY
 */
enum chex_status predictions_index(const struct predictions *p, struct named_row **out, struct chex_error *err);
/* Returns the row of an image, or PREDICTIONS_NONE. */
size_t predictions_find(const struct named_row *index, size_t count, const char *name);

#endif
