/*
 * convert_image.h - converts the images of a pass, one or two at a time
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CONVERT_CONVERT_IMAGE_H
#define CHEX_CONVERT_CONVERT_IMAGE_H

#include "convert/convert_private.h"

#include "convert/profile.h"
#include "image/decode.h"
#include "input/entry_decode.h"

#include <pthread.h>

struct convert_job {
    struct convert *convert;
    const struct convert_watch *watch;
    struct store *store;   /* NULL with `profile` */
    uint64_t reject_limit; /* more rejects end the run */
    atomic_size_t processed;
    pthread_mutex_t lock; /* protects the counts and the calls of watch->reject, watch->unread and watch->damaged */
    /* Of one pass: */
    unsigned unread;                /* number of images with a read error; their slots stay empty */
    uint64_t first_unread;          /* the first of them in the order of the slots: its number for threads_fail() */
    struct chex_error unread_error; /* its error */
    struct threads threads;
    struct image_reader reader;
    struct queue *queue;
    struct profile *profile; /* convert_profile(): measure, and drop the records; NULL: a conversion */
};

/* Per-thread buffers and decoders, reused for every image. */
struct convert_worker {
    struct convert_job *job;
    struct decoder decoder[ENTRIES_TOGETHER];
    struct image image[ENTRIES_TOGETHER];
    struct image again; /* of cross_check() */
    struct resampler resampler;
    uint8_t *record;
    struct profile_thread measured;
};

/* CHEX_ERR_MEMORY; the caller releases the worker after an error too. */
enum chex_status convert_worker_init(struct convert_worker *w, struct convert_job *job, struct chex_error *err);
void convert_worker_release(struct convert_worker *w);

/*
 * Decode `count` entries of the queue (at most ENTRIES_TOGETHER), and put their records into the store.  Images that
 * cannot be decoded are rejects; those that cannot be read are counted in `job`.  After an error, *item is the number
 * of the image for threads_fail().
 */
enum chex_status convert_entries(struct convert_worker *w, struct queue_entry *const *e, unsigned count, uint64_t *item,
                                 struct chex_error *err);
/* Set and return the error of a pass with images that could not be read. */
enum chex_status convert_fail_unread(const struct convert_job *job, struct chex_error *err);

#endif
