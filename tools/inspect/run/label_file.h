/*
 * label_file.h - reads --labels: other labels of the images of a run, such as those of a panel of radiologists
 *
 * A CSV file with a column of images (image_file.h), in one of two forms:
 *
 *     Image Index,Finding Labels           names of findings separated by '|', or "No Finding"; as in NIH's label file.
 *     00000001_000.png,Mass|Nodule         A finding that is not named is negative
 *
 *     Image Index,Mass,Nodule              a column for each finding: 1, 0, or empty for unknown.  A finding without a
 *     00000001_000.png,1,                  column is unknown.  Other columns are ignored
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_RUN_LABEL_FILE_H
#define CHEX_TOOLS_INSPECT_RUN_LABEL_FILE_H

#include "eval/predictions_read.h"

#define LABEL_FILE_NAME 64

struct label_file {
    size_t found, others;           /* images that the predictions have, and that they do not have */
    bool *has;                      /* [images of the predictions] the file has it; owned */
    uint8_t *label;                 /* [images][outputs], of the images that it has; owned */
    bool known[METRICS_OUTPUTS];    /* it has the finding */
    uint64_t strange;               /* names in "Finding Labels" that are no finding of the run */
    char stranger[LABEL_FILE_NAME]; /* the first of them */
};

/*
 * Read a file.  Release *out with label_file_release(), also after a failure.
 * CHEX_ERR_INCOMPATIBLE "PATH:LINE: ...": no column of labels, a column twice, a label that is not 0, 1 or empty, "No
 * Finding" with a finding;  statuses of image_file_read()
 */
enum chex_status label_file_read(const char *path, const struct predictions *p, struct label_file *out,
                                 struct chex_error *err);
void label_file_release(struct label_file *f);

#endif
