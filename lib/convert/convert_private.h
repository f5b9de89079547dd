/*
 * convert_private.h - declarations shared by convert_*.c
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_CONVERT_PRIVATE_H
#define CHEX_LIB_CONVERT_PRIVATE_H

#include "convert/convert.h"

/* ---- convert_index.c ------------------------------------------------------------------------------------------ */

/* Read the archives without decoding.  Sets missing[row] to false if the row's image is in an archive. */
enum chex_status convert_index(struct convert *c, bool *missing, struct chex_error *err);

/* ---- convert_stored.c: the inputs are data sets ---------------------------------------------------------------- */

/*
 * Set size, resize and limits in *spec from the options and the data sets, and set c->stored.
 * CHEX_ERR_USAGE  the options do not fit the data sets, or these do not fit each other;  CHEX_ERR_MEMORY
 */
enum chex_status convert_stored_spec(struct convert *c, struct spec *spec, struct chex_error *err);

/*
 * Set the rule to that of the data sets, with its result if it was read from files.  If the data sets have different
 * rules, or patients whose split depended on an id without prefix, the rule is `file`, with the split of each record.
 * CHEX_ERR_USAGE  --split official was given, and the data sets have another rule;  CHEX_ERR_MEMORY
 */
enum chex_status convert_stored_split(struct convert *c, struct split_rule *rule, struct chex_error *err);

/* Describe the data sets in the manifest, unless the inputs are image files. */
void convert_stored_describe(const struct convert *c, struct manifest *m);

/* ---- convert_image.c ------------------------------------------------------------------------------------------- */

/*
 * Decode the images with empty slots, and write each to its slot or reject it.  If writing a shard fails, rewrite it
 * once.  With rewrite_only, only do this rewriting.
 */
enum chex_status convert_fill(struct convert *c, struct store *store, const struct convert_watch *watch,
                              bool rewrite_only, struct chex_error *err);

/* Returns the number of rejects that a run may have; more rejects end it.  The second function sets that error. */
uint64_t convert_reject_limit(const struct convert *c);
enum chex_status convert_fail_rejects(const struct convert *c, uint64_t rejects, struct chex_error *err);

/* Discard the results of reading the archives before they are read again. */
void convert_forget_archives(struct convert *c);

/* Count the converted and rejected images of a part that is not published. */
void convert_count_part(struct convert *c, const struct store *store);

/* ---- convert_missing.c ----------------------------------------------------------------------------------------- */

/* Set c->missing for the images of this part that are still missing after all inputs were read. */
void convert_find_missing(struct convert *c, const struct store *store);
/*
 * Decide whether missing images are an error, after all inputs were read.  With `lists`, write or remove the list of
 * missing images.  `rejects` is the number so far.  Returns CHEX_OK if nothing is missing, or if archives are damaged
 * and the allowed number of rejects covers the missing images.
 */
enum chex_status convert_evaluate_missing(struct convert *c, const struct folder *folder, bool lists, uint64_t rejects,
                                          struct chex_error *err);
/* Reject the missing images of this part. */
enum chex_status convert_reject_missing(struct convert *c, struct store *store, const struct convert_watch *watch,
                                        struct chex_error *err);

/* ---- convert_retry.c ------------------------------------------------------------------------------------------- */

/*
 * Count in c->retried how many rejects of a complete data set are readable now.  Only images that were missing, or that
 * changed while they were read, are tried.  CHEX_ERR_MEMORY, CHEX_ERR_STOPPED.
 */
enum chex_status convert_probe_rejects(struct convert *c, const struct folder *folder, struct chex_error *err);

/* ---- convert_publish.c ----------------------------------------------------------------------------------------- */

/* Count the converted and rejected images, and write rejects.jsonl and the manifest. */
enum chex_status convert_publish(struct convert *c, struct store *store, struct chex_error *err);

/* Set mean and deviation of the pixels of m->shard_count shards.  Their sums and counts of images are in result[]. */
void convert_pixel_statistics(const struct shard_result *result, struct manifest *m);

#endif
