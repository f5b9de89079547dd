/*
 * train_storage.h - the report of the storage check (--device none), and its part of the JSON document
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_TRAIN_STORAGE_H
#define CHEX_TOOLS_TRAIN_STORAGE_H

#include "train/train_report.h"

#include <jansson.h>

/* A callback of struct trainer_watch. */
void train_storage_progress(void *context, const struct trainer *t, uint64_t done, uint64_t of);
/* Print the result, r->storage. */
void train_storage_report(const struct train_report *r, const struct trainer *t);
/* Returns the result as JSON; null if the check did not end. */
json_t *train_storage_json(const struct train_report *r, const struct trainer *t);

#endif
