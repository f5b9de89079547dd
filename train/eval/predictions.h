/*
 * predictions.h - writes the results of an evaluation: every prediction as CSV, every number as JSON
 *
 * Neither file has a time, a host or a path.  So the same weights on the same split give the same bytes for any number
 * of ranks.  Both are written with safe_file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_PREDICTIONS_H
#define CHEX_TRAIN_PREDICTIONS_H

#include "dataset/certificate.h"
#include "eval/operating.h"
#include "io/file.h"

/*
 * The last column of a CSV file of results, 1 in every line.  A comment before the header would break readers of CSV,
 * and a column stays with the numbers when a program copies some of the lines.
 */
#define RESEARCH_COLUMN "research_use_only"

/* The origin of the numbers, for the JSON document. */
struct evaluation_source {
    const struct chex_dataset *ds;
    const struct certificate *certificate; /* of its split; without a hash if there is none */
    const char *model;                     /* "densenet121" */
    unsigned side;                         /* of its input */
    const char *checkpoint;                /* file name without folder; NULL: none was written */
    const char *checkpoint_sha256;         /* of that file; or NULL */
    uint64_t step;                         /* optimizer step of these weights */
    double epochs;                         /* passes over the training set until that step */
    const struct operating *operating;     /* of the model; NULL: none */
    bool unmarked;                         /* CSV without RESEARCH_COLUMN, as versions before it wrote it */
};

/*
 * Write a line per image, ordered by position:
 *     image,patient,split,age,sex,view,prob_Atelectasis, ... ,prob_Hernia,label_Atelectasis, ... ,label_Hernia
 * age is in years, empty if it is unknown; sex is M, F or U (unknown); view is the text of the data set.
 * prob_ is the probability (float with nine digits: parsed as float32 it has the same bits).  label_ is 0 or 1, or
 * empty if the label is unknown.  A leaky result has another column, leaky, that is 1 in each line; that of a short run
 * has another column, short_run, with the options.  The last column is RESEARCH_COLUMN.  Lines end with LF; fields are
 * quoted as in RFC 4180 if necessary.
 * CHEX_ERR_WRITE, CHEX_ERR_MEMORY
 */
enum chex_status predictions_write(const struct evaluation *e, const struct evaluation_source *from,
                                   const struct folder *folder, const char *name, struct chex_error *err);
/* Append the text of this file instead.  CHEX_ERR_MEMORY */
enum chex_status predictions_text(const struct evaluation *e, const struct evaluation_source *from, struct buffer *text,
                                  struct chex_error *err);

/*
 * Write all numbers of the evaluation as defined by schemas/evaluation.schema.json: data set, split and its hash,
 * model, checkpoint, loss; per finding positives, prevalence, AUROC and AUPRC with intervals, and thresholds with
 * confusion counts: two that are chosen on this split, and those of the model (operating.h); the means.  An undefined
 * number is null.  CHEX_ERR_WRITE, CHEX_ERR_MEMORY
 */
#define METRICS_DOCUMENT_FORMAT 1
enum chex_status metrics_write(const struct evaluation *e, const struct evaluation_source *from,
                               const struct folder *folder, const char *name, struct chex_error *err);
/* Append the text of this file instead.  CHEX_ERR_MEMORY */
enum chex_status metrics_text(const struct evaluation *e, const struct evaluation_source *from, struct buffer *text,
                              struct chex_error *err);

#endif
