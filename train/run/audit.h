/*
 * audit.h - trains the steps between the checkpoints of a run again, and compares the results with its files
 *
 * The checkpoints of a run form a chain: each one follows from the one before, the data set and the seed.  An audit
 * takes pairs of consecutive checkpoints of RUN, starts from the first, trains the steps up to the second from the
 * shards, and compares every bit: weights, running statistics, moments, moving average and the state of the run.  The
 * first checkpoint is compared with the initial weights if it is of step 0 or the only one.  Then the audit compares
 * best.safetensors with the checkpoint that it is of, and evaluates it again on val and test: its operating points must
 * follow from val, and predictions-SPLIT.csv and metrics-SPLIT.json must be of this model.  Nothing in RUN changes.
 *
 *     audit_recall()      options of the run, from its newest checkpoint and run.json
 *     trainer_prepare()   as for a run (trainer.h), with these options
 *     trainer_audit()     trains and compares
 *
 * On as many ranks as the run had, all bits must be equal.  On another number of ranks, CPUs sum gradients to the same
 * bits, but not running statistics (doc/design/training.md).  So running statistics and what depends on them are not
 * compared then.  Every rank reads RUN for its options; only rank 0 reads its weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_AUDIT_H
#define CHEX_TRAIN_AUDIT_H

#include "run/trainer.h"

/* ---- options of the run ------------------------------------------------------------------------------------------ */

/* What the recalled options point to.  Initialize with zeros; release with audit_recall_release(). */
struct audit_recalled {
    struct given_weight given[CHEX_FINDINGS_MAX];
    struct arena strings;
    bool failed; /* memory ran out */
};

/*
 * Set the options of the run in the folder o->audit, for `ranks` ranks.  Kept as given: data (if not NULL), stage,
 * cache, check, timeout, threads; max_steps moves to audit_steps.
 * CHEX_ERR_MISSING       no checkpoint, no run.json
 * CHEX_ERR_INCOMPATIBLE  a damaged checkpoint, a setting that this program does not know
 * CHEX_ERR_USAGE         the ranks cannot share the micro-batches of a step equally
 */
enum chex_status audit_recall(struct trainer_options *o, unsigned ranks, struct audit_recalled *r,
                              struct chex_error *err);
void audit_recall_release(struct audit_recalled *r);

/* ---- results ----------------------------------------------------------------------------------------------------- */

enum audit_outcome {
    AUDIT_EQUAL,
    AUDIT_DIFFERS,
    AUDIT_SKIPPED, /* could not be compared: text has the reason */
    AUDIT_OUTCOMES
};
extern const char *const audit_outcome_names[];

#define AUDIT_NAME 320

/* The comparison of one pair, or of one file; val -> best.safetensors: its operating points. */
struct audit_part {
    char from[CHECKPOINT_NAME]; /* "step-000100", "best.safetensors", "val"; "start": initial weights */
    char to[CHECKPOINT_NAME];   /* "step-000200", "best.safetensors", "metrics-val.json" */
    uint64_t steps;             /* trained again */
    enum audit_outcome outcome;
    bool reduced;               /* without running statistics and what depends on them: another number of ranks */
    char name[AUDIT_NAME];      /* the first tensor, field or prediction that differs: "moment1.classifier.weight" */
    char was[64], now[64];      /* its first value that differs, in the file and made again; both "": none */
    uint64_t differing, values; /* of this tensor, or of the predictions; 0: it is a field of the state */
    double largest;             /* of these differences; NaN: not finite, or not a number */
    uint64_t others;            /* tensors and fields after it that differ, too */
    char text[CHEX_ERROR_TEXT]; /* AUDIT_SKIPPED */
};

struct audit_watch {
    void *context;
    void (*begun)(void *context, const struct trainer *t, const struct audit_part *part); /* before its first step */
    void (*ended)(void *context, const struct trainer *t, const struct audit_part *part);
};

struct audit_result {
    uint64_t parts[AUDIT_OUTCOMES]; /* by outcome */
    uint64_t pairs, left_out;       /* audited; left out because of audit_steps */
    uint64_t steps;                 /* trained again */
};

/*
 * Audit the run.  The callbacks are called on rank 0.  *out is equal on all ranks.
 * CHEX_OK                also if something differs: out->parts[AUDIT_DIFFERS]
 * CHEX_ERR_INCOMPATIBLE  nothing could be compared: the text has the first reason
 * CHEX_ERR_STOPPED, CHEX_ERR_LOST, statuses of reading, of records and of the backend
 */
enum chex_status trainer_audit(struct trainer *t, const struct audit_watch *watch, struct audit_result *out,
                               struct chex_error *err);

#endif
