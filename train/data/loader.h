/*
 * loader.h - from records on disk to micro-batches in memory, ahead of the step that uses them
 *
 * A loader gives the micro-batches of one pass in their order.  Its threads read the records of a batch by positioned
 * reads, check them, and put pixels, labels and crops side by side; the ring of batches that are ready is bounded, and
 * so is the memory: `ahead` batches.
 *
 *     loader_start(&options, &loader)
 *     while (loader_next(loader, &batch) == CHEX_OK && batch)      waits only where the disk is too slow: loader_wait()
 *         use batch->batch; loader_return(loader, batch)
 *     loader_free(loader)
 *
 * The content of a batch is a pure function of the options: threads and timing change nothing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_LOADER_H
#define CHEX_TRAIN_LOADER_H

#include "backend/backend.h"
#include "data/order.h"
#include "data/reader.h"
#include "dataset/record.h"

enum augment { AUGMENT_CROP = 1, AUGMENT_FLIP = 2 }; /* bits */
extern const char *const augment_names[];            /* of 0 to 3 */

struct loader_options {
    const struct chex_dataset *ds;
    const struct samples *samples;
    const uint32_t *order; /* [samples->count] */
    uint64_t seed;
    uint32_t epoch;
    unsigned augment; /* bits of enum augment; 0: the middle, not flipped */
    unsigned side;    /* of the crop, at most that of the images */

    /* Micro-batch i of the pass, 0 <= i < count, holds the positions first(i) .. first(i) + batch - 1, where
     * first(i) = start + (i / each) * stride + (i % each) * batch: `each` batches of every global batch of `stride`. */
    unsigned batch;
    uint64_t start, stride, count;
    unsigned each;

    unsigned threads, ahead; /* at least 1; at least 2 */
    bool skip_bad;           /* a damaged record becomes the next good one of the order; else it ends the pass */

    /*
     * Reads and checks the records; outlives the loader.  NULL: one of the loader's own, which checks them as check_crc
     * says.
     */
    struct reader *reader;
    bool check_crc;
    unsigned expect; /* positions ahead of the reader for which readahead is asked; 0: none */
};

/* Which image a record says that it is; the texts are not terminated. */
struct loaded_text {
    uint8_t name_size, patient_size;
    char name[RECORD_MAX_TEXT], patient[RECORD_MAX_TEXT];
};

struct loaded {
    struct batch batch;             /* source: the side of the data set's images */
    const uint32_t *sample;         /* [batch] index into samples->place; where the weight is 0 some other one */
    const struct loaded_text *text; /* [batch] of these samples */
    float *weights;                 /* batch.weight */
    uint64_t number;                /* of the micro-batch in the pass */
    unsigned images;                /* of weight 1 */
};

struct loader;

/* The options are copied, what they point to must outlive the loader.  CHEX_ERR_MEMORY */
enum chex_status loader_start(const struct loader_options *options, struct loader **out, struct chex_error *err);

/*
 * The next micro-batch, or NULL after the last.  It is the caller's until loader_return().
 * CHEX_ERR_DAMAGED and the like: a bad record (reader_describe(): "'FILE' record 37 (IMAGE): ..."), with skip_bad only
 * where no good one is left;
 * CHEX_ERR_READ, CHEX_ERR_MISSING
 */
enum chex_status loader_next(struct loader *l, struct loaded **out, struct chex_error *err);
void loader_return(struct loader *l, struct loaded *b);

/* Seconds that loader_next() waited so far; by the thread that calls loader_next(). */
double loader_wait(const struct loader *l);

/*
 * Append the places of damaged records that were replaced: those of positions before `end` that no such call has taken.
 * The loader reads ahead; so the caller counts only what it has used.
 * CHEX_ERR_MEMORY
 */
enum chex_status loader_take_skipped(struct loader *l, uint64_t end, struct buffer *places, struct chex_error *err);

void loader_free(struct loader *l); /* NULL is allowed; ends the threads */

/* The crop of a sample: a pure function of (seed, epoch, place). */
struct crop loader_crop(const struct loader_options *o, const struct sample_place *place, unsigned source);

#endif
