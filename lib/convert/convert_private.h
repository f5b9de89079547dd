/*
 * convert_private.h - what the files convert_*.c share
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_CONVERT_PRIVATE_H
#define CHEX_LIB_CONVERT_PRIVATE_H

#include "convert/convert.h"

/* ---- convert_index.c ------------------------------------------------------------------------------------------ */

/* Read the archives without decoding: missing[row] becomes false for rows whose image is in one. */
enum chex_status convert_index(struct convert *c, bool *missing, struct chex_error *err);

/* ---- convert_image.c ------------------------------------------------------------------------------------------- */

/*
 * Decode the images whose slots are empty and put them there, or reject them.  A shard that the disk failed to write is
 * rewritten, once; with rewrite_only there is nothing else to do.
 */
enum chex_status convert_fill(struct convert *c, struct store *store, const struct convert_watch *watch,
                              bool rewrite_only, struct chex_error *err);

/* More rejects than this end a run; and the error that says so. */
uint64_t convert_reject_limit(const struct convert *c);
enum chex_status convert_fail_rejects(const struct convert *c, uint64_t rejects, struct chex_error *err);

/* Before the archives are read once more: nothing is known of them. */
void convert_forget_archives(struct convert *c);

/* What became of the images of a part that is not published. */
void convert_count_part(struct convert *c, const struct store *store);

/* ---- convert_missing.c ----------------------------------------------------------------------------------------- */

/* Images of this part that came from no input: into c->missing. */
void convert_find_missing(struct convert *c, const struct store *store);
/*
 * After all was read: is what is missing an error?  Writes or removes the list of it (lists false: does neither).
 * CHEX_OK: nothing is missing, or archives were damaged and the rejects allowed suffice, with `rejects` so far.
 */
enum chex_status convert_evaluate_missing(struct convert *c, const struct folder *folder, bool lists, uint64_t rejects,
                                          struct chex_error *err);
/* Reject what is missing in this part. */
enum chex_status convert_reject_missing(struct convert *c, struct store *store, const struct convert_watch *watch,
                                        struct chex_error *err);

/* ---- convert_retry.c ------------------------------------------------------------------------------------------- */

/*
 * Of a complete data set: how many of the images that were rejected because they were not there, or changed while they
 * were read, can be read now?  Into c->retried.  CHEX_ERR_MEMORY, CHEX_ERR_STOPPED.
 */
enum chex_status convert_probe_rejects(struct convert *c, const struct folder *folder, struct chex_error *err);

/* ---- convert_publish.c ----------------------------------------------------------------------------------------- */

/* Count what became of the images, write rejects.jsonl and the manifest. */
enum chex_status convert_publish(struct convert *c, struct store *store, struct chex_error *err);

#endif
