/*
 * checkpoint.h - saves and reads the complete state of a run, so that it can resume as if it had never stopped
 *
 * A checkpoint is two safetensors files in the folder of the run:
 *     step-004800.safetensors       the model: parameters and running statistics, with torchvision's names (weights.h)
 *     step-004800.opt.safetensors   moments of the optimizer and the moving average, "moment1.NAME" ...
 * The metadata of the first file has the state of the run as JSON.  `latest` has a line per checkpoint, for the newest
 * ones, newest first: the name and the SHA-256 of both files.  It is replaced last, so its checkpoints are complete;
 * older files are removed afterwards.  All files are written with safe_file.  They have no clock time and no host name,
 * so the same run writes the same bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_CHECKPOINT_H
#define CHEX_TRAIN_CHECKPOINT_H

#include "backend/backend.h"
#include "base/sha256.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/settings.h"
#include "checkpoint/weights.h"
#include "io/file.h"
#include "math/schedule.h"

#define CHECKPOINT_FORMAT 1
#define CHECKPOINT_LATEST "latest"
#define CHECKPOINT_NAME   64

/*
 * Upper bounds of a state.  The options of a run have the same limits, so every run stays within them.  MAX_COUNT
 * steps, micro-batches and images of a run; exact as a double MAX_BATCH images of a step; steps of an epoch
 */
#define CHECKPOINT_MAX_COUNT  (UINT64_C(1) << 53)
#define CHECKPOINT_MAX_BATCH  UINT32_MAX
#define CHECKPOINT_MAX_EPOCHS 1000000
#define CHECKPOINT_MAX_SEED   INT64_MAX
#define CHECKPOINT_MAX_WINDOW 1000000
#define CHECKPOINT_MAX_RATE   1e30
#define CHECKPOINT_MAX_WARMUP UINT32_MAX

/*
 * The state outside of the arenas.  Each member has a line in checkpoint_fields.c, with its bounds, except leaky and
 * short_run: they are texts of their own in the metadata of the file, so that every reader of weights sees them.
 */
struct checkpoint_state {
    char model[32];
    unsigned side; /* of the network's input */
    char dataset_id[CHEX_ID_LENGTH + 1];
    uint64_t seed;
    uint64_t step;          /* completed optimizer steps */
    uint32_t epoch;         /* the current one, from 0 */
    uint64_t batches;       /* used global batches of the current epoch */
    uint64_t micro_batches; /* computed since the first step, by all ranks; if missing in a file, one per step */
    uint64_t global_batch;  /* images */
    unsigned window;        /* of the order (order.h) */
    enum optimizer_kind optimizer;
    struct plan_state plan;
    struct schedule schedule;
    double best; /* best value of the selected metric; NaN before the first evaluation */
    uint64_t best_step;
    uint32_t bad_epochs; /* since best_step */
    double loss_sum;     /* loss_sum, loss_images: of the current epoch, so that its mean is exact after a resume */
    uint64_t loss_images;
    uint64_t skipped; /* damaged records, replaced in training or left out of a validation; counted every time */
    bool leaky;       /* the run used a leaky data set, or weights of a leaky run */
    char short_run[WEIGHTS_SHORT]; /* the options of a short run: "--max-steps 100"; "": a whole run */
    char settings[SETTINGS_TEXT];  /* options at the start of the run, as written by settings_keep() */
};

/*
 * The arrays of a checkpoint, in the form of the graph; moment2 and average are NULL if unused.  For reading, the
 * caller allocates them.
 */
struct checkpoint_arrays {
    float *params, *stats, *moment1, *moment2, *average;
};

/*
 * Save a checkpoint and make it the latest; keep the newest `keep` checkpoints (0: all).
 * CHEX_ERR_DAMAGED   a weight is not finite, or the state is out of bounds: nothing is written
 * CHEX_ERR_WRITE, CHEX_ERR_MEMORY   the previous checkpoint remains the latest
 */
enum chex_status checkpoint_save(const struct folder *folder, const struct graph *g,
                                 const struct checkpoint_state *state, const struct checkpoint_arrays *arrays,
                                 unsigned keep, struct chex_error *err);

/*
 * Remove the files that checkpoint_save() of this run did not remove because of a power loss after it replaced
 * `latest`.  These are checkpoints that are older than the newest in `latest`, are not listed there, and have at least
 * `keep` newer ones (0: keep all).  Files of other runs are kept, and all files if `latest` is full or unreadable.
 * `state` is that of the run.  CHEX_ERR_READ, CHEX_ERR_WRITE, CHEX_ERR_MEMORY
 */
enum chex_status checkpoint_sweep(const struct folder *folder, const struct graph *g,
                                  const struct checkpoint_state *state, unsigned keep, struct chex_error *err);

/*
 * Save only the model under another name, such as "best.safetensors"; returns its SHA-256 in hex (may be NULL).
 * operating: the text of its operating points for the metadata (operating.h), or NULL
 */
enum chex_status checkpoint_save_model(const struct folder *folder, const char *name, const struct graph *g,
                                       const struct checkpoint_state *state, const struct checkpoint_arrays *arrays,
                                       const char *operating, char *hex, struct chex_error *err);

/*
 * Find the checkpoint to resume from: the first in `latest`.  If its files have changed, the next one (sets *fallback,
 * with the reason in err).  If `latest` is unreadable, the newest files with valid headers.  name: "step-004800".
 * CHEX_ERR_MISSING there is none; CHEX_ERR_DAMAGED none is complete
 */
enum chex_status checkpoint_find(const struct folder *folder, char name[CHECKPOINT_NAME], bool *fallback,
                                 struct chex_error *err);

/*
 * Check a checkpoint: by its hashes if `latest` lists it, otherwise by the headers of its files.  Statuses of reading.
 */
enum chex_status checkpoint_check(const struct folder *folder, const char *name, struct chex_error *err);

/* Rename the files of all later checkpoints to NAME.bad, so a user can inspect them.  CHEX_ERR_WRITE */
enum chex_status checkpoint_set_aside(const struct folder *folder, const char *name, struct chex_error *err);

/*
 * Read the state first, to build the graph from it, and then all arrays.  g: the findings must be those of this graph;
 * NULL: any.  CHEX_ERR_INCOMPATIBLE a newer format, no state, another model, other findings, tensors that do not fit
 * (the text names up to five)
 * CHEX_ERR_DAMAGED       also a state with a missing field, a wrong type or a value out of bounds: err names it
 * CHEX_ERR_TRUNCATED, CHEX_ERR_MISSING, CHEX_ERR_READ
 */
enum chex_status checkpoint_read_state(const struct folder *folder, const char *name, const struct graph *g,
                                       struct checkpoint_state *state, struct chex_error *err);
/* As checkpoint_read_state() with g NULL, from an open file. */
enum chex_status checkpoint_parse_state(const struct safetensors *s, struct checkpoint_state *state,
                                        struct chex_error *err);
enum chex_status checkpoint_read(const struct folder *folder, const char *name, const struct graph *g,
                                 const struct checkpoint_arrays *arrays, struct chex_error *err);

#endif
