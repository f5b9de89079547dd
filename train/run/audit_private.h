/*
 * audit_private.h - shared by the files of an audit
 *
 *     audit.c              the pairs: what they are, training, and the sequence of an audit
 *     audit_part.c         begins and ends a part
 *     audit_predictions.c  predictions and numbers of the best model, and its operating points
 *     audit_compare.c      comparisons of tensors and states
 *     audit_texts.c        comparisons of files of text
 *     audit_recall.c       the options of the run
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_AUDIT_PRIVATE_H
#define CHEX_TRAIN_AUDIT_PRIVATE_H

#include "run/audit.h"
#include "run/trainer_private.h"

#include "eval/predictions.h"

/* A pair: indices into audit.step. */
struct audit_pair {
    size_t to;
    bool fresh; /* from the initial weights; otherwise from to - 1 */
};

/* What all ranks must know about a part. */
struct audit_order {
    uint64_t skipped; /* nothing to compute */
    uint64_t step, epoch;
    uint64_t replicates, seed, tta; /* of an evaluation */
    double loss;                    /* of metrics-SPLIT.json; NaN: none */
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
    struct chex_error best_error; /* why there is no best model */
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

/*
 * Evaluate the best model on this split, and compare its predictions and numbers; on val also its operating points.
 * All ranks.
 */
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
/* Note a difference of two texts. */
void audit_differ(struct audit_part *part, const char *prefix, const char *name, const char *was, const char *now);
/* Count one differing value of the first difference; a difference that is not a number stays the largest. */
void audit_count_value(struct audit_part *part, float was, float now);

/*
 * ---- audit_texts.c -----------------------------------------------------------------------------------------------
 *
 * As above, for whole files; `was` comes from RUN and may be anything.
 */

/* Compare all columns of predictions-SPLIT.csv.  CHEX_ERR_MEMORY */
enum chex_status audit_compare_csv(struct audit_part *part, const struct buffer *was, const struct buffer *now,
                                   struct chex_error *err);
/*
 * Compare all members of two JSON documents; but_version: except the version of the program.  prefix: of the names
 * of members.  CHEX_ERR_MEMORY
 */
enum chex_status audit_compare_json(struct audit_part *part, const char *prefix, bool but_version,
                                    const struct buffer *was, const struct buffer *now, struct chex_error *err);

#endif
