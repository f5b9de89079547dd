/*
 * run_file.h - writes run.json, the description of a run, for later readers of its folder (schemas/run.schema.json)
 *
 * It is written with safe_file when the run starts and again when it ends.  A restart in the same folder keeps the list
 * of earlier sessions: "sessions", each with its command line, hosts and exit.  A session without "exit" was killed.
 *
 * Only rank 0 calls these functions.  The caller decides about a failure.  run.json is not a checkpoint, but a folder
 * in which it cannot be written will not accept a checkpoint either.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_RUN_FILE_H
#define CHEX_TRAIN_RUN_FILE_H

#include "checkpoint/run_value.h"
#include "eval/metrics.h"
#include "io/file.h"

#define RUN_FILE_NAME "run.json"

/* The call copies everything that it needs. */
struct run_facts {
    int argc;
    char *const *argv;

    const struct run_value *option; /* effective values, including defaults */
    size_t options;
    const struct run_value *library; /* versions of the loaded libraries, RUN_TEXT */
    size_t libraries;
    const char *cpu; /* features: "x86-64 avx2 avx512bw" */

    const struct chex_dataset *dataset;
    const struct certificate *certificate; /* of its split; without a hash if there is none */
    const char *dataset_path;
    const char *train, *validation; /* names of the used splits; NULL: none */

    const char *model;
    uint64_t parameters;
    const char *init;        /* path, or "random"; NULL: as in the earlier session */
    const char *init_sha256; /* NULL: not a file */

    const char *const *host; /* [ranks] */
    unsigned ranks, threads; /* threads of each rank */
    const char *backend;     /* "onednn" */
    const char *device;      /* description by the backend */
    const char *precision;

    bool leaky;            /* the data set or the weights are */
    const char *short_run; /* the options of a short run; NULL or "": a whole run */
    uint64_t seed, global_batch;
    uint64_t epoch_images; /* images of an epoch: of the training split, or of the part that --limit chose */
    uint64_t step;         /* first step of this session */
};

struct run_file;

/*
 * Write run.json.  An unreadable earlier file is replaced, without its sessions.  CHEX_ERR_WRITE, CHEX_ERR_MEMORY
 */
enum chex_status run_file_start(const struct folder *folder, const struct run_facts *facts, struct run_file **out,
                                struct chex_error *err);

/*
 * Read what the weights of the run in this folder began with: "random", or the path of --init.  "" if its run.json is
 * missing or invalid.  CHEX_ERR_MEMORY
 */
enum chex_status run_file_init(const struct folder *folder, char *out, size_t size, struct chex_error *err);

/*
 * Read an option of the run in this folder, with its effective value as text.  "" if its run.json is missing or
 * invalid, or lacks the option.  CHEX_ERR_MEMORY
 */
enum chex_status run_file_option(const struct folder *folder, const char *name, char *out, size_t size,
                                 struct chex_error *err);

/*
 * Read the name of the split that the run in this folder trains on.
 * CHEX_ERR_MISSING run.json is missing, invalid or without such a split;  CHEX_ERR_MEMORY
 */
enum chex_status run_file_train_split(const struct folder *folder, char *out, size_t size, struct chex_error *err);

/*
 * Read the images that the run in this folder was trained on: their side in pixels, 0 if its run.json is missing or
 * invalid, and the method that made them this small (image/resample.h), "" if run.json does not name it.
 * CHEX_ERR_MEMORY
 */
enum chex_status run_file_images(int folder_fd, unsigned *side, char *resize, size_t size, struct chex_error *err);

/* The result of one split. */
struct run_result {
    const char *split, *sha256; /* members_sha256 */
    const char *weights;        /* file name of the model that was evaluated */
    uint64_t step;
    const struct metrics *metrics;
    const char *const *findings; /* [metrics->outputs] names */
};

struct run_outcome {
    int exit;           /* exit code of the process */
    const char *reason; /* one line if the exit code is not 0; may be NULL */
    uint64_t step;
    uint32_t epochs;      /* complete ones */
    double best;          /* best value of the selected metric; NaN: none yet */
    const char *selected; /* "auroc" or "loss" */
    bool leaky;
    const char *short_run; /* as in run_facts */
    uint64_t best_step;
    const char *best_file; /* "best.safetensors"; NULL: none */
    const struct run_result *result;
    size_t results;
};

/* *leaky: whether the run.json of this folder, if there is one, marks the run as leaky.  CHEX_ERR_MEMORY */
enum chex_status run_file_is_leaky(int folder_fd, bool *leaky, struct chex_error *err);

/* Complete the document and write it again.  CHEX_ERR_WRITE, CHEX_ERR_MEMORY: the file of the start remains */
enum chex_status run_file_finish(struct run_file *r, const struct run_outcome *outcome, struct chex_error *err);
void run_file_free(struct run_file *r); /* NULL is allowed; the file stays */

#endif
