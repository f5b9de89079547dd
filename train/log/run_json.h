/*
 * run_json.h - JSON objects of which every part must be there, for metrics.jsonl and run.json
 *
 * What fails (out of memory, or a text that is not UTF-8, which is escaped first) is remembered, so that a whole object
 * can be made without a test behind each key.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_RUN_JSON_H
#define CHEX_TRAIN_RUN_JSON_H

#include "base/json.h"
#include "checkpoint/run_value.h"

/* Reals of logs: as many digits as make sense, so that 0.1 is 0.1. */
#define RUN_JSON_DIGITS 12

struct run_json {
    json_t *object; /* NULL after a failure to make it */
    bool failed;
};

/* A new object; run_json_take() or json_decref(j.object) ends it. */
struct run_json run_json_object(void);

void run_json_text(struct run_json *j, const char *key, const char *text); /* NULL: null */
void run_json_count(struct run_json *j, const char *key, uint64_t number); /* at most 2^63 - 1 */
void run_json_real(struct run_json *j, const char *key, double number);    /* not finite: null */
void run_json_bool(struct run_json *j, const char *key, bool yes);
void run_json_add(struct run_json *j, const char *key, json_t *value); /* taken; NULL is a failure */
/* {"NAME": value, ...} */
void run_json_values(struct run_json *j, const char *key, const struct run_value *value, size_t count);

/* The object, the caller's; NULL where anything failed. */
json_t *run_json_take(struct run_json *j);

#endif
