/*
 * convert_image.h - converts the images of a pass, a few at a time
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

/* The most images that a thread takes from the queue at once.  It writes records of adjacent slots with one call. */
#define CONVERT_TOGETHER 4

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
    uint8_t *records; /* [room][stride] */
    uint32_t room;    /* 1 to CONVERT_TOGETHER */
    uint32_t waiting; /* records that are not written yet: of the slots index, index + 1, ... of the shard */
    uint32_t shard, index;
    struct profile_thread measured;
};

/* CHEX_ERR_MEMORY; the caller releases the worker after an error too. */
enum chex_status convert_worker_init(struct convert_worker *w, struct convert_job *job, struct chex_error *err);
void convert_worker_release(struct convert_worker *w);

/*
 * Decode `count` entries of the queue, and put their records into the store.  Images that cannot be decoded are
 * rejects; those that cannot be read are counted in `job`.  After an error, *item is the number of the image for
 * threads_fail(), and the records of the images before it are in the store.
 */
enum chex_status convert_entries(struct convert_worker *w, struct queue_entry *const *e, unsigned count, uint64_t *item,
                                 struct chex_error *err);
/* Returns the number of the entry's slot, in the order of the slots. */
uint64_t convert_item(const struct queue_entry *e);
/* Set and return the error of a pass with images that could not be read. */
enum chex_status convert_fail_unread(const struct convert_job *job, struct chex_error *err);

#endif
