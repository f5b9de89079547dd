/*
 * predict_write.h - the results of a prediction as CSV and JSON (schemas/predict.schema.json)
 *
 * The bytes depend on the models, the images and the options, and on nothing else: they contain no time, host or path.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_PREDICT_WRITE_H
#define CHEX_TOOLS_PREDICT_WRITE_H

#include "io/lock.h"
#include "predict/predict_maps.h"

#include <jansson.h>

#define PREDICT_CSV     "predictions.csv"
#define PREDICT_REFUSED "refused.csv"
#define PREDICT_JSON    "predictions.json"

/* Everything that a document is made of. */
struct prediction {
    const struct predict_options *options;
    const struct models *models;
    const struct flags *flags;
    const struct images *images;
    const struct results *results;
    const struct map_writer *maps; /* NULL: no maps */
    const struct box_run *boxes;   /* NULL: no boxes (predict_boxes.h) */
};

/* Returns whether a data set among the inputs is synthetic. */
bool prediction_synthetic(const struct images *images);
/* Returns the number of damaged archives. */
size_t prediction_damaged(const struct images *images);

/*
 * Append a line per image, ordered by name: image, status, prob_ of each finding, with several models sd_, then cal_
 * and flag_, and research_use_only.  Numbers have nine digits.  CHEX_ERR_MEMORY
 */
enum chex_status prediction_csv(const struct prediction *p, struct buffer *out, struct chex_error *err);
/* Append a line per refused image or damaged archive: image, reason, detail, research_use_only.  CHEX_ERR_MEMORY */
enum chex_status prediction_refused(const struct prediction *p, struct buffer *out, struct chex_error *err);

/* A refused image or a damaged archive. */
struct refusal {
    const char *name, *reason, *detail;
};

/* List the refusals, ordered by name; the list is freed by the caller.  NULL when out of memory.  predict_refusals.c */
struct refusal *prediction_refusals(const struct prediction *p, size_t *count);

/* Returns the document (predict_json.c); the caller owns it.  NULL when out of memory. */
json_t *prediction_json(const struct prediction *p);

/* The folder of the results, locked: two processes must not write one. */
struct prediction_output {
    struct folder folder;
    struct lock lock;
    bool is_new; /* it was made for this run */
};

/*
 * Check that the folder of the results has none yet, before the work; makes nothing.
 * CHEX_ERR_USAGE  it has, and options->force is not set;  CHEX_ERR_WRITE
 */
enum chex_status prediction_check_output(const struct predict_options *o, struct chex_error *err);

/*
 * Before the first image: open the folder, make it if missing, lock it, and check it again.  Initialize *out with
 * {.folder.fd = -1}; close it with prediction_close_output(), also after a failure.
 * CHEX_ERR_LOCKED, CHEX_ERR_MEMORY; statuses of prediction_check_output()
 */
enum chex_status prediction_open_output(const struct predict_options *o, struct prediction_output *out,
                                        struct chex_error *err);
/* Release the lock, and remove a folder that was made for this run if it is empty.  CHEX_ERR_WRITE */
enum chex_status prediction_close_output(const struct predict_options *o, struct prediction_output *out,
                                         struct chex_error *err);

/* Write the files, predictions.json last: a folder that has it is complete.  CHEX_ERR_WRITE, CHEX_ERR_MEMORY */
enum chex_status prediction_write(const struct prediction *p, const struct prediction_output *out,
                                  struct chex_error *err);

#endif
