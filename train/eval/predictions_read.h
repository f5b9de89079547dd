/*
 * predictions_read.h - reads predictions-SPLIT.csv (predictions.h), which may come from elsewhere
 *
 * Columns are found by name: image, patient, and prob_X and label_X of each finding X; age, sex and view may be
 * missing; others are ignored.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_PREDICTIONS_READ_H
#define CHEX_TRAIN_PREDICTIONS_READ_H

#include "base/memory.h"
#include "eval/metrics.h"

struct predictions {
    size_t count; /* images, in the order of the file */
    unsigned outputs;
    const char **image, **patient;        /* [count] */
    const char **view;                    /* [count]; "" if it is unknown */
    char *sex;                            /* [count] M, F, U */
    float *age;                           /* [count] years; NaN: unknown */
    bool people;                          /* it has the columns age, sex and view */
    const char *finding[METRICS_OUTPUTS]; /* in the order of the prob_ columns */
    float *probability;                   /* [count][outputs], 0 to 1 */
    uint8_t *label;                       /* [count][outputs], 0, 1 or CHEX_LABEL_UNKNOWN */
    bool leaky;                           /* it has the column leaky */
    char short_run[METRICS_SHORT_RUN];    /* of its first line; "" if it lacks the column */
    struct arena strings;
};

/*
 * Read a file.  Release *out with predictions_release(), also after a failure.
 * CHEX_ERR_INCOMPATIBLE with "PATH:LINE: ...": a column or a value is missing, a probability is not from 0 to 1, a
 * label is not 0, 1 or empty; no image, no finding, too many of them; not a CSV file
 * CHEX_ERR_MISSING, CHEX_ERR_READ, CHEX_ERR_MEMORY
 */
enum chex_status predictions_read(const char *path, struct predictions *out, struct chex_error *err);
void predictions_release(struct predictions *p);
/* Returns whether both have the same images in the same order, and the same labels. */
bool predictions_same_images(const struct predictions *a, const struct predictions *b);

#endif
