/*
 * run_check.h - checks metrics.jsonl and run.json of a run against the format that chex-train writes
 *
 * Every line of metrics.jsonl, and run.json, must be JSON with the members of schemas/metrics.schema.json and
 * schemas/run.schema.json, with their types and bounds.  Other members are allowed, and members that earlier versions
 * did not write may be missing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_RUN_CHECK_H
#define CHEX_TRAIN_RUN_CHECK_H

#include "io/file.h"

#define RUN_CHECK_TEXT 330

struct run_check {
    /* The first fault: "metrics.jsonl line 3: 'loss' is \"x\", not a number", "" if there is none. */
    char metrics[RUN_CHECK_TEXT], file[RUN_CHECK_TEXT];
    uint64_t lines; /* faulty lines of metrics.jsonl */
    bool cut;       /* metrics.jsonl ends within a line, as after a kill: not a fault */
};

/* A file that is missing is no fault.  CHEX_ERR_READ, CHEX_ERR_MEMORY */
enum chex_status run_check(const struct folder *folder, struct run_check *out, struct chex_error *err);

#endif
