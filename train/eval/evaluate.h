/*
 * evaluate.h - the scores of a split and the metrics of them: exact, whatever the number of ranks and the size of a
 * micro-batch
 *
 * Position p of a split is sample p in the order of the shards.  Rank r of N scores the micro-batches r, r + N, ...;
 * then every rank gets all scores, puts them into the order of the positions and computes the same numbers from them.
 * The replicates of the bootstrap are shared: each rank makes its part of them, and gets those of all.
 * So the result is that of one process, to the last bit, as far as a backend's logits of an image do not depend on the
 * images beside it.
 *
 * The score of an image is a probability, rounded to float; AUROC, intervals and thresholds are those of these floats,
 * which predictions.h writes with all their digits: read back, they are the same numbers.  With several views
 * of an image (test-time augmentation) the probability is the mean of theirs, summed in double in the order below; its
 * logit is log(mean of p / mean of 1 - p), and the loss is that of this logit.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_EVALUATE_H
#define CHEX_TRAIN_EVALUATE_H

#include "backend/backend.h"
#include "data/order.h"
#include "eval/metrics.h"

#include <stdatomic.h>

struct collective; /* collective.h */
struct reader;     /* reader.h */

/* ---- views ------------------------------------------------------------------------------------------------------- */

/*
 * Which parts of an image are scored, with `side` the network's input and `source` the image:
 *     none      the middle
 *     flip      the middle, and the same pixels mirrored
 *     tencrop   left top, right top, left bottom, right bottom, the middle; then the same five of the mirrored image
 * The middle begins at (source - side) / 2, a half rounded to the even number: torchvision's CenterCrop; the ten are
 * its TenCrop.
 */
enum tta { TTA_NONE, TTA_FLIP, TTA_TENCROP };
extern const char *const tta_names[];

#define EVALUATE_VIEWS 10

/* Their number. */
unsigned evaluate_views(enum tta tta, unsigned side, unsigned source, struct crop view[EVALUATE_VIEWS]);

/* ---- a split ----------------------------------------------------------------------------------------------------- */

struct evaluate_options {
    const struct chex_dataset *ds;
    unsigned split;
    const struct samples *samples; /* of the split, in the order of the shards: samples_list() */

    const struct backend *backend;
    struct plan *plan;     /* nothing in it changes */
    enum arena_id weights; /* ARENA_PARAMETERS or ARENA_AVERAGE: those to be judged */
    unsigned batch;        /* of the plan */
    unsigned side;         /* of the network's input */
    enum tta tta;
    const struct loss_options *loss; /* as in training; NULL: plain cross entropy */

    unsigned replicates;   /* of the bootstrap; 0: no intervals */
    uint64_t seed;         /* of its draws */
    unsigned threads;      /* of the loader and of the bootstrap, at least 1 */
    unsigned ahead;        /* micro-batches that the loader reads ahead, at least 2 */
    struct reader *reader; /* reads and checks the records; NULL: one of its own, which checks as check_crc says */
    bool check_crc;        /* of every record */
    bool skip_bad;         /* a damaged record is left out and listed; else it ends the evaluation */

    struct collective *collective; /* all ranks call with the same options; NULL: this process alone */
    const atomic_bool *stop;       /* set from anywhere: all ranks end with CHEX_ERR_STOPPED; may be NULL */
    double until;                  /* progress_clock() from which on the same; 0: never */
    /* Called after each micro-batch of this rank, of that many in all; may be NULL. */
    void (*progress)(void *context, uint64_t done, uint64_t of);
    void *context;
};

/* Which image, and how it was scored. */
struct evaluated_image {
    uint32_t sample;           /* index into samples */
    uint32_t patient;          /* 0 .. patients - 1, in the order in which they come first */
    const char *name, *person; /* file name and patient id, as in the data set */
};

struct evaluation {
    unsigned split, outputs; /* outputs: findings, CHEX_FINDINGS */
    enum tta tta;
    unsigned views;
    uint64_t seed; /* of the bootstrap; its replicates are in metrics */

    size_t count; /* images that were scored */
    uint32_t patients;
    struct evaluated_image *image; /* [count], in the order of the positions */
    float *logit, *probability;    /* [count][outputs]; the probabilities are the scores */
    uint8_t *label;                /* [count][outputs] */

    struct sample_place *skipped; /* damaged records, with skip_bad */
    size_t skipped_count;

    double loss;         /* mean over images and findings; NaN where a logit is not finite */
    uint64_t not_finite; /* images with such a logit: where there is one, no metric is computed */
    struct metrics metrics;

    double seconds; /* of this rank, all of it; of these: */
    double wait;    /* for records */
    double gather;  /* for other ranks */
    double judging; /* loss, metrics and bootstrap */

    struct arena strings;
};

/*
 * Score a split.  evaluation_release() frees *out, also after a failure.
 * On all ranks alike:
 * CHEX_ERR_USAGE      the split has no image, or none was readable
 * CHEX_ERR_STOPPED, CHEX_ERR_LOST
 * CHEX_ERR_CHECKSUM, CHEX_ERR_DAMAGED and the like: a bad record, named by reader_describe(), without skip_bad
 * and those of the loader and of the backend
 */
enum chex_status evaluate(const struct evaluate_options *o, struct evaluation *out, struct chex_error *err);
void evaluation_release(struct evaluation *e);

#endif
