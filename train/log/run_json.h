/*
 * run_json.h - builds JSON objects for metrics.jsonl and run.json, with a single check for errors
 *
 * A failure (out of memory, or invalid UTF-8 that could not be escaped) is recorded, so that a whole object can be
 * built without a check after each key.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_RUN_JSON_H
#define CHEX_TRAIN_RUN_JSON_H

#include "base/json.h"
#include "checkpoint/run_value.h"

/* Digits of reals in logs: few enough that 0.1 is printed as 0.1. */
#define RUN_JSON_DIGITS 12

struct run_json {
    json_t *object; /* NULL if the allocation failed */
    bool failed;
};

/* Returns a new object; release it with run_json_take() or json_decref(j.object). */
struct run_json run_json_object(void);

void run_json_text(struct run_json *j, const char *key, const char *text); /* NULL: null */
void run_json_count(struct run_json *j, const char *key, uint64_t number); /* at most 2^63 - 1 */
void run_json_real(struct run_json *j, const char *key, double number);    /* not finite: null */
void run_json_bool(struct run_json *j, const char *key, bool yes);
void run_json_add(struct run_json *j, const char *key, json_t *value); /* takes ownership; NULL counts as a failure */
/* {"NAME": value, ...} */
void run_json_values(struct run_json *j, const char *key, const struct run_value *value, size_t count);

/* Returns the object, owned by the caller, or NULL after any failure. */
json_t *run_json_take(struct run_json *j);

#endif
