/*
 * audit_private.h - shared by the files of an audit
 *
 *     audit.c              the pairs: what they are, training, and the sequence of an audit
 *     audit_part.c         begins and ends a part
 *     audit_predictions.c  the predictions of the best model
 *     audit_compare.c      comparisons of tensors, states and predictions
 *     audit_recall.c       the options of the run
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_AUDIT_PRIVATE_H
#define CHEX_TRAIN_AUDIT_PRIVATE_H

#include "run/audit.h"
#include "run/trainer_private.h"

#include "eval/predictions_read.h"

/* A pair: indices into audit.step. */
struct audit_pair {
    size_t to;
    bool fresh; /* from the initial weights; otherwise from to - 1 */
};

/* What all ranks must know about a part. */
struct audit_order {
    uint64_t skipped; /* nothing to compute */
    uint64_t step, epoch;
};

struct audit {
    struct trainer *t;
    const struct audit_watch *watch;
    struct audit_result *result;
    bool data_open;
    struct audit_part part;
    struct chex_error first; /* reason of the first part that was skipped */

    /* Rank 0. */
    struct folder folder; /* RUN */
    uint64_t *step;       /* of the checkpoints, ascending */
    size_t steps;
    struct audit_pair *pair;
    size_t pairs;
    struct checkpoint_state was;    /* of the second checkpoint of the pair */
    struct checkpoint_arrays found; /* its arrays */
    struct checkpoint_state best;   /* of best.safetensors, if has_best */
    bool has_best, best_compared;
    char best_hash[DIGEST_HEX];
};

/* ---- audit_part.c ------------------------------------------------------------------------------------------------ */

/* Rank 0: skip the current part. */
void audit_skip(struct audit *a, const char *why);
/* Rank 0: report the part before its first step; count and report it at its end. */
void audit_begin_part(struct audit *a);
void audit_end_part(struct audit *a);
/* Copy state and arrays of rank 0 to every rank, and open the images before the first part.  All ranks. */
enum chex_status audit_spread(struct audit *a, struct chex_error *err);

/* ---- audit_predictions.c ----------------------------------------------------------------------------------------- */

/* Evaluate the best model on this split and compare its predictions, if RUN has any.  All ranks. */
enum chex_status audit_split(struct audit *a, unsigned split, struct chex_error *err);

/*
 * ---- audit_compare.c ---------------------------------------------------------------------------------------------
 *
 * Each function adds to *part: the first value that differs sets its outcome, name and values; later tensors and fields
 * are only counted.
 */

/* Compare the tensors of an arena; prefix: "moment1.", or "".  was: in the file; now: made again. */
void audit_compare_tensors(struct audit_part *part, const char *prefix, const struct graph_tensor *tensor, size_t count,
                           const float *was, const float *now);
/* Compare all fields but the settings; with part->reduced none that depends on an evaluation. */
void audit_compare_state(struct audit_part *part, const struct checkpoint_state *was,
                         const struct checkpoint_state *now);
/* Compare images, patients, probabilities and labels. */
void audit_compare_predictions(struct audit_part *part, const struct predictions *was, const struct evaluation *now);

#endif
