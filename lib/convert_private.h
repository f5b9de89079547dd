/*
 * convert_private.h - what convert_run.c, convert_image.c and convert_publish.c share
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_CONVERT_PRIVATE_H
#define CHEX_LIB_CONVERT_PRIVATE_H

#include "convert.h"

/* Decode the images whose slots are empty and put them there, or reject them. */
enum chex_status convert_fill(struct convert *c, struct store *store, const struct convert_watch *watch,
                              struct chex_error *err);

/* More rejects than this end a run; and the error that says so. */
uint64_t convert_reject_limit(const struct convert *c);
enum chex_status convert_fail_rejects(const struct convert *c, uint64_t rejects, struct chex_error *err);

/* What became of the images of a share that is not published. */
void convert_count_share(struct convert *c, const struct store *store);

/* Count what became of the images, write the indexes, rejects.jsonl and the manifest. */
enum chex_status convert_publish(struct convert *c, struct store *store, const struct folder *folder,
                                 struct chex_error *err);

#endif
