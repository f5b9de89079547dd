/*
 * image_reader.h - threads that read loose files and archives, and push encoded images into a queue
 *
 * If the inputs are data sets, they push the pixels of records instead: stored_reader.h.
 *
 * The threads read loose files in the order of the plan, and each archive from its beginning to its end.  They read
 * every archive to its end even if all images were found, because its checksums are at the end, and because a second
 * image with the same name may follow.
 *
 * The data set's bytes must not depend on which of two images with one name came first.  So the reader keeps a hash of
 * each row's image from an archive.  A second image with this name must have the same content, in another archive or as
 * a loose file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_IMAGE_READER_H
#define CHEX_LIB_IMAGE_READER_H

#include "base/keyed_hash.h"
#include "base/queue.h"
#include "input/archive.h"
#include "input/input_scan.h"
#include "input/unlabeled.h"
#include "labels/label_file.h"

/* An image of the plan. */
struct planned_image {
    uint32_t row, shard, index;
    bool wanted; /* its slot is empty: push the image */
};

/* Reserve a queue entry for this image.  Returns NULL if the run is ending. */
static inline struct queue_entry *
planned_image_reserve(struct queue *queue, const struct planned_image *image, uint64_t size)
{
    struct queue_entry *e = queue_reserve(queue, size);

    if (e) {
        e->row = image->row;
        e->shard = image->shard;
        e->index = image->index;
    }
    return e;
}

/* Content of an archive. */
struct archive_content {
    uint64_t images;            /* members that are named like images, with or without a row */
    uint64_t others;            /* other files, links, devices */
    bool damaged;               /* fault is valid */
    struct archive_fault fault; /* the first fault */
};

struct image_reader {
    const struct labels *labels;
    const struct source *source;
    const struct planned_image *planned; /* [planned_count], in the order of the plan */
    size_t planned_count;
    struct image_archive_options archive_options;
    uint64_t max_size; /* of an image, in bytes */
    struct threads *threads;
    struct queue *queue;
    /* Called by any thread when it has read a damaged archive, to its end or as far as possible. */
    void (*damaged)(void *context, const char *path, const struct archive_fault *fault);
    void *context;

    /* Results: */
    struct archive_content *content; /* [source->archive_count], owned by the caller */
    struct unlabeled *unlabeled;     /* images in archives that have no row; owned by the caller */
    uint64_t repeated;               /* second copies of an image, with the same content */

    unsigned wanted; /* out: number of threads to start */

    /* Internal: */
    unsigned archives_first; /* threads that begin with archives; the others begin with loose files */
    atomic_uint started, active;
    atomic_size_t next_file, next_archive;
    uint32_t *planned_of;         /* [labels->count] row -> index of its planned image; NULL without archives */
    pthread_mutex_t lock;         /* protects `arrival`, `unlabeled` and `repeated` */
    struct arrival *arrival;      /* [labels->count]; NULL without archives */
    struct hash_key key;          /* of the hashes in `arrival` */
    struct stored_reader *stored; /* NULL without data sets */
};

/*
 * Initialise the reader for a run with `threads` decoding threads.  Before the call, set the first group of members and
 * the pointers of the results, and zero all others.  `queue` may be set later, before the threads start.  Returns
 * CHEX_OK or CHEX_ERR_MEMORY; call image_reader_release() in both cases.
 */
enum chex_status image_reader_init(struct image_reader *r, unsigned threads, struct chex_error *err);
void image_reader_release(struct image_reader *r);

/*
 * A loop for threads.h; its context is the struct image_reader.  All threads take the next file or archive from shared
 * counters, so a single thread also reads everything.  The last thread to end closes the queue.  An unreadable loose
 * image is not an error here: its queue entry gets the reason.
 * CHEX_ERR_USAGE    two images with the same name and different content
 * CHEX_ERR_MISSING  an archive can no longer be opened
 * CHEX_ERR_READ     an archive is unreadable, or a loose image that is also in an archive; a shard of a data set
 *                   cannot be opened any more, or became shorter
 * CHEX_ERR_MEMORY, CHEX_ERR_STOPPED
 */
enum chex_status image_reader_run(void *reader, uint64_t *item, struct chex_error *err);

#endif
