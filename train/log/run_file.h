/*
 * run_file.h - run.json: what this run is, for a reader who finds its folder later (schemas/run.schema.json)
 *
 * Written when the run starts, and once more when it ends, each time whole by the safe-file helper.  One that starts
 * again in the same folder keeps the list of the earlier starts: "sessions", each with its command line, hosts and how
 * it ended; a session without "exit" was killed.
 *
 * Rank 0 alone calls these.  A failure is the caller's to judge: run.json is no checkpoint, but a folder where it
 * cannot be written at the start will not take a checkpoint either.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_RUN_FILE_H
#define CHEX_TRAIN_RUN_FILE_H

#include "checkpoint/run_value.h"
#include "eval/metrics.h"
#include "io/file.h"

#define RUN_FILE_NAME "run.json"

/* All pointers are read before the call returns. */
struct run_facts {
    int argc;
    char *const *argv;

    const struct run_value *option; /* as they are in effect, defaults too */
    size_t options;
    const struct run_value *library; /* versions of those that are running, RUN_TEXT */
    size_t libraries;
    const char *cpu; /* features: "x86-64 avx2 avx512bw" */

    const struct chex_dataset *dataset;
    const char *dataset_path;
    const char *train, *validation; /* names of the splits in use; NULL: none */

    const char *model;
    uint64_t parameters;
    const char *init;        /* path, or "random"; NULL: that of the earlier start */
    const char *init_sha256; /* NULL: not a file */

    const char *const *host; /* [ranks] */
    unsigned ranks, threads; /* threads of each rank */
    const char *backend;     /* "onednn" */
    const char *device;      /* what probe() says */
    const char *precision;

    uint64_t seed, global_batch;
    uint64_t step; /* that this session begins at */
};

struct run_file;

/*
 * Write run.json.  An earlier one that cannot be read is replaced, without its sessions.
 * CHEX_ERR_WRITE, CHEX_ERR_MEMORY
 */
enum chex_status run_file_start(const struct folder *folder, const struct run_facts *facts, struct run_file **out,
                                struct chex_error *err);

/* The result of one split. */
struct run_result {
    const char *split, *sha256; /* members_sha256 */
    const char *weights;        /* file name of the model that was evaluated */
    uint64_t step;
    const struct metrics *metrics;
};

struct run_outcome {
    int exit;           /* code of the process */
    const char *reason; /* one line where that is not 0; NULL */
    uint64_t step;
    uint32_t epochs;      /* complete ones */
    double best;          /* of the metric that selects; NaN: none yet */
    const char *selected; /* "auroc" or "loss" */
    uint64_t best_step;
    const char *best_file; /* "best.safetensors"; NULL: none */
    const struct run_result *result;
    size_t results;
};

/* Complete and write it once more.  CHEX_ERR_WRITE, CHEX_ERR_MEMORY: the file is as it was at the start. */
enum chex_status run_file_finish(struct run_file *r, const struct run_outcome *outcome, struct chex_error *err);
void run_file_free(struct run_file *r); /* NULL is allowed; the file stays */

#endif
