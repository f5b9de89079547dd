/*
 * reader.h - the records of a data set for all passes of a run: read, checked, and kept in memory where that is wanted
 *
 * A reader outlives the loaders of the passes, so it knows which records it has checked and which it has.  Records are
 * read by positioned reads, never mapped: a file that becomes shorter is an error, not a signal.
 *
 * A record that is found damaged is read once more before it counts as damaged: past the page cache, and not from a
 * copy (staging.h) but from the data set itself.  What a network file system, a cable or the local disk made of it may
 * not be what lies there.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_READER_H
#define CHEX_TRAIN_READER_H

#include "backend/backend.h"

enum reader_check {
    READER_FIRST,  /* the checksums of a record when it is read for the first time by this reader */
    READER_ALWAYS, /* whenever it is read from a file */
    READER_NEVER   /* the form alone */
};
extern const char *const reader_check_names[];

/*
 * Where the pixels of records go that are kept; what else is in a record stays with the reader.  A store of the device
 * (backend.h) gives nothing back: its images are known by their numbers, reader_image().
 */
struct image_keeper {
    struct image_store *store;
    enum chex_status (*put)(struct image_store *store, uint32_t image, const uint8_t *pixels, struct chex_error *err);
    const uint8_t *(*get)(const struct image_store *store, uint32_t image); /* NULL: of the device */
};

struct reader_options {
    const struct chex_dataset *ds;
    const struct chex_dataset *staged; /* the same data set on a nearer disk, in whole or in part; or NULL */
    enum reader_check check;
    const bool *keep;           /* [split_count]: keep the records of these splits; NULL: of none */
    struct image_keeper keeper; /* with keep: for reader_images() of them; outlives the reader */
};

struct reader;

/* Both data sets outlive the reader, the rest is copied.  CHEX_ERR_MEMORY */
enum chex_status reader_new(const struct reader_options *options, struct reader **out, struct chex_error *err);
void reader_free(struct reader *r); /* NULL is allowed; ends the threads of reader_fill() */

/*
 * Look into a record; thread-safe.  `record` holds `stride` bytes, into which *view points; the pixels of a record that
 * is kept are those of the keeper, or NULL.
 * Statuses of chex_shard_open(), chex_shard_read() and chex_record_view()
 */
enum chex_status reader_read(struct reader *r, unsigned shard, uint32_t index, uint8_t *record,
                             struct chex_record *view, struct chex_error *err);

/* The number of a record in the store, below reader_images(); STORE_NONE where its split is not kept. */
uint32_t reader_image(const struct reader *r, unsigned shard, uint32_t index);
/* The store whose numbers these are, where the pixels of kept records are NULL; else NULL. */
const struct image_store *reader_store(const struct reader *r);

/*
 * Which record that is, for a message about damage: "'chest-train-00000-of-00006.tfrecord' record 37
 * (00000012_003.png)".  The name is what the record says, where that can be read; for that it is read again into
 * `record`.  Thread-safe.  Returns out.
 */
#define READER_TEXT 640
char *reader_describe(struct reader *r, unsigned shard, uint32_t index, uint8_t *record, char out[READER_TEXT]);

/* This record will be read soon: the system may begin.  Never fails, never waits for it; thread-safe. */
void reader_expect(struct reader *r, unsigned shard, uint32_t index);

/*
 * From now on `threads` threads read the records to keep, shard by shard: a disk gives that faster than the order of a
 * shuffle.  Where memory runs out no more is kept.  CHEX_ERR_MEMORY no thread can be started
 */
enum chex_status reader_fill(struct reader *r, unsigned threads, struct chex_error *err);

/* So far; thread-safe. */
struct reader_counts {
    uint64_t read;   /* records from files, with those of reader_fill() */
    uint64_t kept;   /* records in memory */
    uint64_t reread; /* records that were good when they were read once more */
};
struct reader_counts reader_counts(const struct reader *r);

/* Records of these splits; and the bytes that they take. */
uint32_t reader_images(const struct chex_dataset *ds, const bool *keep);
uint64_t reader_size(const struct chex_dataset *ds, const bool *keep);

#endif
