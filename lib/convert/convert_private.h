/*
 * convert_private.h - what the files convert_*.c share
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_CONVERT_PRIVATE_H
#define CHEX_LIB_CONVERT_PRIVATE_H

#include "base/feed.h"
#include "convert/convert.h"

#include <pthread.h>

/* ---- convert_index.c ------------------------------------------------------------------------------------------ */

/* Read the archives without decoding: missing[row] becomes false for rows whose image is in one. */
enum chex_status convert_index(struct convert *c, bool *missing, struct chex_error *err);

/* ---- convert_intake.c: readers of loose files and archives, to the feed ---------------------------------------- */

struct intake;

/* For what the store still wants, and for all that is in archives. */
enum chex_status intake_new(struct convert *c, const struct store *store, const struct convert_watch *watch,
                            pthread_mutex_t *watch_lock, struct intake **out, struct chex_error *err);
void intake_free(struct intake *in); /* NULL is allowed */

/* Threads that read; all of them fetch from one stock. */
unsigned intake_readers(const struct intake *in);
/* pipeline.h: one step of reader number `reader`. */
enum chex_status intake_read(struct intake *in, unsigned reader, bool *more, struct chex_error *err);
/* Where the images come out; item is the number of a planned image. */
struct feed *intake_feed(struct intake *in);

/* ---- convert_image.c ------------------------------------------------------------------------------------------- */

/*
 * Decode the images whose slots are empty and put them there, or reject them.  With again only where shards were begun
 * anew since.
 */
enum chex_status convert_fill(struct convert *c, struct store *store, const struct convert_watch *watch, bool again,
                              struct chex_error *err);

/* More rejects than this end a run; and the error that says so. */
uint64_t convert_reject_limit(const struct convert *c);
enum chex_status convert_fail_rejects(const struct convert *c, uint64_t rejects, struct chex_error *err);

/* Before the archives are read once more: nothing is known of them. */
void convert_forget_archives(struct convert *c);

/* What became of the images of a part that is not published. */
void convert_count_part(struct convert *c, const struct store *store);

/* ---- convert_missing.c ----------------------------------------------------------------------------------------- */

/* Images of this part that came from no input: into c->absent. */
enum chex_status convert_find_absent(struct convert *c, const struct store *store, struct chex_error *err);
/*
 * After all was read: is what is absent an error?  Writes or removes the list of it (lists false: does neither).
 * CHEX_OK: nothing is absent, or archives were damaged and the rejects allowed suffice, with `rejects` so far.
 */
enum chex_status convert_judge_absent(struct convert *c, const struct folder *folder, bool lists, uint64_t rejects,
                                      struct chex_error *err);
/* Reject what is absent in this part. */
enum chex_status convert_reject_absent(struct convert *c, struct store *store, const struct convert_watch *watch,
                                       struct chex_error *err);

/* ---- convert_retry.c ------------------------------------------------------------------------------------------- */

/*
 * Of a complete data set: how many of the images that were rejected because they could not be read, or were not there,
 * can be read now?  Into c->retried.  CHEX_ERR_MEMORY, CHEX_ERR_STOPPED.
 */
enum chex_status convert_look_for_retries(struct convert *c, const struct folder *folder, struct chex_error *err);

/* ---- convert_publish.c ----------------------------------------------------------------------------------------- */

/* Count what became of the images, write rejects.jsonl and the manifest. */
enum chex_status convert_publish(struct convert *c, struct store *store, struct chex_error *err);

#endif
