/*
 * convert_private.h - what the files convert_*.c share
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_CONVERT_PRIVATE_H
#define CHEX_LIB_CONVERT_PRIVATE_H

#include "convert.h"
#include "feed.h"

#include <pthread.h>

/* No image file of the data set is above a megabyte; a radiograph of 64 megapixels in 16 bits stays below this. */
#define CONVERT_MAX_FILE (256u << 20)

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

/* The shard that image number `item` of the plan is in. */
size_t convert_shard_of(const struct plan *plan, size_t item);

/* Decode the images whose slots are empty and put them there, or reject them. */
enum chex_status convert_fill(struct convert *c, struct store *store, const struct convert_watch *watch,
                              struct chex_error *err);

/* ---- convert_missing.c ----------------------------------------------------------------------------------------- */

/*
 * After all was read: images that came from nowhere.  Writes or removes their list; where archives were damaged and
 * the rejects allowed suffice, they are rejected.
 */
enum chex_status convert_settle(struct convert *c, struct store *store, const struct folder *folder,
                                const struct convert_watch *watch, struct chex_error *err);

/* ---- convert_publish.c ----------------------------------------------------------------------------------------- */

/* Count what became of the images, write the indexes, rejects.jsonl and the manifest. */
enum chex_status convert_publish(struct convert *c, struct store *store, const struct folder *folder,
                                 struct chex_error *err);

#endif
