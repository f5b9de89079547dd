/*
 * checkpoint.h - what a run needs to resume as if it had never stopped
 *
 * A checkpoint is two files of the run's folder, both safetensors:
 *     step-004800.safetensors       parameters and running statistics, named as torchvision's (weights.h): the model
 *     step-004800.opt.safetensors   moments of the optimizer and the moving average, "moment1.NAME" ...
 * with the state of the run as JSON in the metadata of the first.  `latest` has a line for each of the newest
 * checkpoints, the newest first: its name and the SHA-256 of both files.  It is replaced last, so what it names is
 * whole; older files are removed after that.  All are written by the safe-file helper.
 * No clock time and no host name: the same run writes the same bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_CHECKPOINT_H
#define CHEX_TRAIN_CHECKPOINT_H

#include "backend/backend.h"
#include "base/sha256.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/settings.h"
#include "io/file.h"
#include "math/schedule.h"

#define CHECKPOINT_FORMAT 1
#define CHECKPOINT_LATEST "latest"
#define CHECKPOINT_NAME   64

/*
 * The largest values of a state.  Options of a run have the same limits, so each run stays within them.
 * MAX_COUNT  steps, micro-batches and images of a run; exact as a double
 * MAX_BATCH  images of a step; steps of an epoch
 */
#define CHECKPOINT_MAX_COUNT  (UINT64_C(1) << 53)
#define CHECKPOINT_MAX_BATCH  UINT32_MAX
#define CHECKPOINT_MAX_EPOCHS 1000000
#define CHECKPOINT_MAX_SEED   INT64_MAX
#define CHECKPOINT_MAX_WINDOW 1000000
#define CHECKPOINT_MAX_RATE   1e30
#define CHECKPOINT_MAX_WARMUP UINT32_MAX

/* All that is not in an arena.  Each member has a line in checkpoint_fields.c, with its bounds. */
struct checkpoint_state {
    char model[32];
    unsigned side; /* of the network's input */
    char dataset_id[CHEX_ID_LENGTH + 1];
    uint64_t seed;
    uint64_t step;          /* steps of the optimizer that were made */
    uint32_t epoch;         /* the current one, from 0 */
    uint64_t batches;       /* global batches of it that were used */
    uint64_t micro_batches; /* computed since the first step, by all ranks; one a step if a file does not say */
    uint64_t global_batch;  /* images */
    unsigned window;        /* of the order (order.h) */
    enum optimizer_kind optimizer;
    struct plan_state plan;
    struct schedule schedule;
    double best; /* of the metric that selects; NaN before the first evaluation */
    uint64_t best_step;
    uint32_t bad_epochs; /* since the best one */
    double loss_sum;     /* of the epoch so far, and its images: so that its mean is exact after a resume */
    uint64_t loss_images;
    uint64_t skipped; /* damaged records that were replaced, or left out of a validation; each time counts */
    char settings[SETTINGS_TEXT]; /* what the run was started with, as settings_keep() writes it */
};

/*
 * The arrays of a checkpoint, in the form of the graph; moment2 and average NULL where there is none.
 * Reading wants them allocated.
 */
struct checkpoint_arrays {
    float *params, *stats, *moment1, *moment2, *average;
};

/*
 * Save, and make it the latest.  Of older checkpoints `keep` stay (0: all).
 * CHEX_ERR_DAMAGED a weight is not finite, or the state is out of bounds: nothing is written
 * CHEX_ERR_WRITE, CHEX_ERR_MEMORY: the latest is the one before
 */
enum chex_status checkpoint_save(const struct folder *folder, const struct graph *g,
                                 const struct checkpoint_state *state, const struct checkpoint_arrays *arrays,
                                 unsigned keep, struct chex_error *err);

/*
 * Remove what checkpoint_save() of this run would have removed, but for a power loss behind its replacement of
 * `latest`: checkpoints older than the newest of `latest` which it does not name and of which `keep` (0: all) newer
 * ones are there.  Nothing else: neither files of another run nor, where `latest` is full or not readable, any.
 * state: of the run.  CHEX_ERR_READ, CHEX_ERR_WRITE, CHEX_ERR_MEMORY
 */
enum chex_status checkpoint_sweep(const struct folder *folder, const struct graph *g,
                                  const struct checkpoint_state *state, unsigned keep, struct chex_error *err);

/* The model alone under another name, such as "best.safetensors", and its SHA-256 (hex may be NULL). */
enum chex_status checkpoint_save_model(const struct folder *folder, const char *name, const struct graph *g,
                                       const struct checkpoint_state *state, const struct checkpoint_arrays *arrays,
                                       char *hex, struct chex_error *err);

/*
 * Which checkpoint to resume from: the first of `latest` or, where its files have changed, the next (*fallback says so,
 * with the reason in err).  Where `latest` itself is not readable, the newest files with good headers.  name:
 * "step-004800".
 * CHEX_ERR_MISSING there is none;  CHEX_ERR_DAMAGED none is whole
 */
enum chex_status checkpoint_find(const struct folder *folder, char name[CHECKPOINT_NAME], bool *fallback,
                                 struct chex_error *err);

/* Is this one whole?  By its hashes where `latest` names it, else by the headers of its files.  Statuses of reading. */
enum chex_status checkpoint_check(const struct folder *folder, const char *name, struct chex_error *err);

/* Rename the files of all later checkpoints to NAME.bad, so that a user can look at them.  CHEX_ERR_WRITE */
enum chex_status checkpoint_set_aside(const struct folder *folder, const char *name, struct chex_error *err);

/*
 * Read the state alone, to build the graph by; then all arrays.
 * CHEX_ERR_INCOMPATIBLE a newer format, no state, another model, tensors that do not fit (up to five are named)
 * CHEX_ERR_DAMAGED also a field of the state that is missing, of another type or out of bounds: err names it
 * CHEX_ERR_TRUNCATED, CHEX_ERR_MISSING, CHEX_ERR_READ
 */
enum chex_status checkpoint_read_state(const struct folder *folder, const char *name, struct checkpoint_state *state,
                                       struct chex_error *err);
/* The same of an open file. */
enum chex_status checkpoint_parse_state(const struct safetensors *s, struct checkpoint_state *state,
                                        struct chex_error *err);
enum chex_status checkpoint_read(const struct folder *folder, const char *name, const struct graph *g,
                                 const struct checkpoint_arrays *arrays, struct chex_error *err);

#endif
