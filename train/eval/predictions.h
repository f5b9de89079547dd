/*
 * predictions.h - what an evaluation leaves behind: every prediction as CSV, every number as JSON
 *
 * Neither holds a time, a host or a path, so the same weights on the same split give the same bytes, whatever the
 * number of ranks.  Both are written by the safe-file helper.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_PREDICTIONS_H
#define CHEX_TRAIN_PREDICTIONS_H

#include "eval/evaluate.h"
#include "io/file.h"

/* Where the numbers come from. */
struct evaluation_source {
    const struct chex_dataset *ds;
    const char *model;             /* "densenet121" */
    unsigned side;                 /* of its input */
    const char *checkpoint;        /* file name, without a folder; NULL: none was written */
    const char *checkpoint_sha256; /* of that file; or NULL */
    uint64_t step;                 /* of the optimizer, at which these weights were */
    double epochs;                 /* passes over the training set by then */
};

/*
 * A line for each image, in the order of the positions:
 *     image,patient,split,prob_Atelectasis, ... ,prob_Hernia,label_Atelectasis, ... ,label_Hernia
 * prob_ is the probability (float, nine digits: reading it as float32 gives the same bits), label_ is 0 or 1.  Lines
 * end with LF; a field is quoted as RFC 4180 says where that is needed.
 * CHEX_ERR_WRITE, CHEX_ERR_MEMORY
 */
enum chex_status predictions_write(const struct evaluation *e, const struct evaluation_source *from,
                                   const struct folder *folder, const char *name, struct chex_error *err);

/*
 * All numbers of the evaluation, as schemas/evaluation.schema.json says: data set, split and its hash, model,
 * checkpoint; loss; for each finding positives, prevalence, AUROC and AUPRC with their intervals, and two operating
 * points with their confusion counts; the means.  An undefined number is null.
 * CHEX_ERR_WRITE, CHEX_ERR_MEMORY
 */
#define METRICS_DOCUMENT_FORMAT 1
enum chex_status metrics_write(const struct evaluation *e, const struct evaluation_source *from,
                               const struct folder *folder, const char *name, struct chex_error *err);

#endif
