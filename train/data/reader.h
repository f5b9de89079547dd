/*
 * reader.h - reads and checks the records of a data set for all passes of a run, and optionally keeps them in memory
 *
 * A reader outlives the loaders of the passes, so it knows which records it has checked and which it keeps.  It uses
 * positioned reads and never maps files: a truncated file is an error, not a signal.
 *
 * A damaged record is read a second time before it counts as damaged: past the page cache, and from the data set itself
 * instead of a copy (staging.h).  The first damage may come from a network file system, a cable or the local disk.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_READER_H
#define CHEX_TRAIN_READER_H

#include "backend/backend.h"

enum reader_check {
    READER_FIRST,  /* check the checksums when this reader reads a record for the first time */
    READER_ALWAYS, /* on every read from a file */
    READER_NEVER   /* check only the form */
};
extern const char *const reader_check_names[];

/*
 * Stores the pixels of kept records; the reader stores the rest of a record.  The pixels in the store of a device
 * (backend.h) cannot be read back; its images are identified by number, reader_image().
 */
struct image_keeper {
    struct image_store *store;
    enum chex_status (*put)(struct image_store *store, uint32_t image, const uint8_t *pixels, struct chex_error *err);
    const uint8_t *(*get)(const struct image_store *store, uint32_t image); /* NULL: device memory */
};

struct reader_options {
    const struct chex_dataset *ds;
    const struct chex_dataset *staged; /* a complete or partial copy of the data set on a faster disk; or NULL */
    enum reader_check check;
    const bool *keep;           /* [split_count]: keep the records of these splits; NULL: keep none */
    struct image_keeper keeper; /* with keep: has space for reader_images(); must outlive the reader */
};

struct reader;

/* Both data sets must outlive the reader; the rest is copied.  CHEX_ERR_MEMORY */
enum chex_status reader_new(const struct reader_options *options, struct reader **out, struct chex_error *err);
void reader_free(struct reader *r); /* ends the threads of reader_fill(); NULL is allowed */

/*
 * Read a record; thread-safe.  `record` has `stride` bytes, and *view points into it.  For a kept record the pixels
 * point into the keeper, or are NULL.  Statuses of chex_shard_open(), chex_shard_read() and chex_record_view()
 */
enum chex_status reader_read(struct reader *r, unsigned shard, uint32_t index, uint8_t *record,
                             struct chex_record *view, struct chex_error *err);

/* Returns the number of a record in the store, below reader_images(); STORE_NONE if its split is not kept. */
uint32_t reader_image(const struct reader *r, unsigned shard, uint32_t index);
/* Returns the store for these numbers if the pixels of kept records are NULL; otherwise NULL. */
const struct image_store *reader_store(const struct reader *r);

/*
 * Describe a record for a message about damage: "'chest-train-00000-of-00006.tfrecord' record 37 (00000012_003.png)".
 * Reads the record again into `record` to get the name, which is left out if it is unreadable.  Thread-safe.  Returns
 * out.
 */
#define READER_TEXT 640
char *reader_describe(struct reader *r, unsigned shard, uint32_t index, uint8_t *record, char out[READER_TEXT]);

/* Request readahead of a record.  Never fails or waits; thread-safe. */
void reader_expect(struct reader *r, unsigned shard, uint32_t index);

/*
 * Start `threads` threads that read all records to keep, shard by shard, which is faster than in shuffled order.  If
 * memory runs out, no more records are kept.  CHEX_ERR_MEMORY: no thread can be started
 */
enum chex_status reader_fill(struct reader *r, unsigned threads, struct chex_error *err);

/* Counts so far; thread-safe. */
struct reader_counts {
    uint64_t read;   /* records read from files, including reader_fill() */
    uint64_t kept;   /* records in memory */
    uint64_t reread; /* records that were good in the second read */
};
struct reader_counts reader_counts(const struct reader *r);

/* Return the number of records of these splits, and the bytes that they need. */
uint32_t reader_images(const struct chex_dataset *ds, const bool *keep);
uint64_t reader_size(const struct chex_dataset *ds, const bool *keep);

#endif
