/*
 * evaluate.h - scores a split and computes its metrics; exact for any number of ranks and any size of a micro-batch
 *
 * Position p of a split is sample p in the order of the shards.  Rank r of N scores the micro-batches r, r + N, ...
 * Then every rank gathers all scores, sorts them by position and computes the same numbers.  The bootstrap replicates
 * are divided among the ranks and gathered.  So the result has the same bits as with one process, provided that a
 * backend's logits of an image do not depend on the other images of the micro-batch.
 *
 * The score of an image is a probability, rounded to float.  AUROC, intervals and thresholds are computed from these
 * floats.  predictions.h writes them with all digits, so a reader gets the same numbers.  With several views per image
 * (test-time augmentation) the probability is the mean over the views, summed in double in the order below.  The logit
 * is log(mean of p / mean of 1 - p), and the loss is computed from that logit.
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
 * Views of an image, with `side` the network's input and `source` the image:
 *     none      the center crop
 *     flip      the center crop, and its mirror image
 *     tencrop   top left, top right, bottom left, bottom right, center; then the same five of the mirrored image
 * The center crop starts at (source - side) / 2, rounded half to even, as torchvision's CenterCrop; tencrop is its
 * TenCrop.
 */
enum tta { TTA_NONE, TTA_FLIP, TTA_TENCROP };
extern const char *const tta_names[];

#define EVALUATE_VIEWS 10

/* Fill view[]; returns the number of views. */
unsigned evaluate_views(enum tta tta, unsigned side, unsigned source, struct crop view[EVALUATE_VIEWS]);

/*
 * Average `count` outputs over the views, as described above; a single view keeps its logit.
 * logits  [views][count], as score_start() writes them;  logit, probability  [count]
 */
void evaluate_join_views(unsigned views, size_t count, const float *logits, float *logit, float *probability);

/* ---- a split ----------------------------------------------------------------------------------------------------- */

struct evaluate_options {
    const struct chex_dataset *ds;
    unsigned split;
    const struct samples *samples; /* of the split, in the order of the shards: from samples_list() */

    const struct backend *backend;
    struct plan *plan;     /* does not change */
    enum arena_id weights; /* ARENA_PARAMETERS or ARENA_AVERAGE: the weights to evaluate */
    unsigned batch;        /* of the plan */
    unsigned side;         /* of the network's input */
    enum tta tta;
    const struct loss_options *loss; /* as in training, with its smoothing; NULL: binary cross entropy */

    unsigned replicates;   /* of the bootstrap; 0: no intervals */
    uint64_t seed;         /* of its draws */
    unsigned threads;      /* of the loader and of the bootstrap, at least 1 */
    unsigned ahead;        /* micro-batches that the loader reads ahead, at least 2 */
    struct reader *reader; /* NULL: creates its own, with or without check_crc */
    bool check_crc;        /* of every record */
    bool leaky;            /* the data set or the model is: mark the metrics */
    const char *short_run; /* metrics.short_run; NULL: of a whole run */
    bool skip_bad;         /* leave out and list damaged records; otherwise one ends the evaluation */

    struct collective *collective; /* all ranks call with the same options; NULL: a single process */
    const atomic_bool *stop;       /* set from any thread: all ranks end with CHEX_ERR_STOPPED; may be NULL */
    double until;                  /* deadline by clock_now(), with the same effect; 0: none */
    /* Called after each micro-batch of this rank; `of` is their number.  May be NULL. */
    void (*progress)(void *context, uint64_t done, uint64_t of);
    void *context;
};

/* Identifies a scored image. */
struct evaluated_image {
    uint32_t sample;           /* index into samples */
    uint32_t patient;          /* 0 .. patients - 1, in order of first appearance */
    const char *name, *person; /* file name and patient id, as in the data set */
    const char *view;          /* "PA", "AP" or what the data set has */
    char sex;                  /* M, F, U */
    float age;                 /* years; NaN: unknown */
};

struct evaluation {
    unsigned split, outputs;
    const char *const *findings; /* [outputs] names; valid while the data set is open */
    enum tta tta;
    unsigned views;
    uint64_t seed; /* of the bootstrap; the number of replicates is in metrics */

    size_t count; /* scored images */
    uint32_t patients;
    struct evaluated_image *image; /* [count], ordered by position */
    float *logit, *probability;    /* [count][outputs]; the probabilities are the scores */
    uint8_t *label;                /* [count][outputs], 0, 1 or CHEX_LABEL_UNKNOWN */

    struct sample_place *skipped; /* damaged records, if skip_bad */
    size_t skipped_count;

    double loss;         /* mean over the known labels; NaN if none is known, or if a logit is not finite */
    uint64_t not_finite; /* images with such a logit; if there are any, no metric is computed */
    struct metrics metrics;

    double seconds;   /* total of this rank; of these: */
    double wait;      /* waiting for records */
    double gather;    /* waiting for other ranks */
    double computing; /* loss, metrics and bootstrap */

    struct arena strings;
};

/*
 * Score a split.  Release *out with evaluation_release(), also after a failure.  All ranks get the same status:
 * CHEX_ERR_USAGE      the split has no image, or none was readable
 * CHEX_ERR_STOPPED, CHEX_ERR_LOST CHEX_ERR_CHECKSUM, CHEX_ERR_DAMAGED and other statuses of records: a bad record,
 * named by reader_describe(), without skip_bad Statuses of the loader and of the backend
 */
enum chex_status evaluate(const struct evaluate_options *o, struct evaluation *out, struct chex_error *err);
void evaluation_release(struct evaluation *e);

#endif
