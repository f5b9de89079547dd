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

/* Count what became of the images, write the indexes, rejects.jsonl and the manifest. */
enum chex_status convert_publish(struct convert *c, struct store *store, const struct folder *folder,
                                 struct chex_error *err);

#endif
