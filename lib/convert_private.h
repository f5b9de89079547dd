/*
 * convert_private.h - what convert_run.c and convert_publish.c share
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_CONVERT_PRIVATE_H
#define CHEX_LIB_CONVERT_PRIVATE_H

#include "convert.h"

/* Count what became of the images, write the indexes, rejects.jsonl and the manifest. */
enum chex_status convert_publish(struct convert *c, struct store *store, const struct folder *folder,
                                 struct chex_error *err);

#endif
