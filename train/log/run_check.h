/*
 * run_check.h - are metrics.jsonl and run.json of a run what chex-train writes?
 *
 * Every line of metrics.jsonl, and run.json, must be JSON with the members of schemas/metrics.schema.json and
 * schemas/run.schema.json, of their types and within their bounds.  Other members are allowed, and members that earlier
 * versions did not write may be missing.
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
    uint64_t lines; /* of metrics.jsonl with a fault */
    bool cut;       /* metrics.jsonl ends within a line, as a kill leaves it: no fault */
};

/* A file that is missing is no fault.  CHEX_ERR_READ, CHEX_ERR_MEMORY */
enum chex_status run_check(const struct folder *folder, struct run_check *out, struct chex_error *err);

#endif
