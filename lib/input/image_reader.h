/*
 * image_reader.h - threads that read loose files and archives and push encoded images into a queue
 *
 * Loose files are read in the order of the plan, archives from their beginning to their end.  Every archive is read to
 * its end, even when all images are there: its checksums are at the end, and so may be a second image of some name.
 * The bytes of the data set must not depend on which of two images came first.  So for every row the hash of what an
 * archive held is kept; a second image of that name must have the same content, and so must a loose file.
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
    bool wanted; /* its slot is empty: push it */
};

/* What was found in an archive. */
struct archive_content {
    uint64_t images;            /* named like images, whether or not they have a row */
    uint64_t others;            /* other files, links, devices */
    bool damaged;               /* and then: */
    struct archive_fault fault; /* what was wrong first */
};

struct image_reader {
    const struct labels *labels;
    const struct source *source;
    const struct planned_image *planned; /* [planned_count], in the order of the plan */
    size_t planned_count;
    struct image_archive_options archive_options;
    uint64_t max_size; /* of an image */
    struct threads *threads;
    struct queue *queue;
    /* An archive was read to its end, or as far as possible, and is damaged; by any thread. */
    void (*damaged)(void *context, const char *path, const struct archive_fault *fault);
    void *context;

    /* results: */
    struct archive_content *content; /* [source->archive_count], of the caller */
    struct unlabeled *unlabeled;     /* images in archives without a row, of the caller */
    uint64_t repeated;               /* second copies with the same content */

    unsigned wanted; /* threads to start, once it is initialised */

    /* internal: */
    unsigned archives_first; /* threads that begin with archives; the others begin with files */
    atomic_uint started, active;
    atomic_size_t next_file, next_archive;
    uint32_t *planned_of; /* [labels->count]: the number of a row's planned image; with archives only, as `arrival` */
    pthread_mutex_t lock; /* for what follows, and the results */
    struct arrival *arrival; /* [labels->count] */
    struct hash_key key;     /* of its hashes */
};

/*
 * The first group of members is set, but for `queue`, which the threads need, and the pointers of the second group; all
 * others are zero.  `threads` threads will decode.  CHEX_ERR_MEMORY; image_reader_release() frees it after that too.
 */
enum chex_status image_reader_init(struct image_reader *r, unsigned threads, struct chex_error *err);
void image_reader_release(struct image_reader *r);

/*
 * A loop for threads.h, with the struct image_reader as context.  All threads take from one stock, so one alone reads
 * everything.  The last thread to end closes the queue.
 * CHEX_ERR_USAGE    two images of one name with different content
 * CHEX_ERR_MISSING  an archive cannot be opened any more
 * CHEX_ERR_READ     an archive cannot be read, or a loose image that an archive has too
 * CHEX_ERR_MEMORY, CHEX_ERR_STOPPED.  An unreadable loose image is no error here: its queue entry has the reason.
 */
enum chex_status image_reader_run(void *reader, uint64_t *item, struct chex_error *err);

#endif
