/*
 * loader.h - reads records from disk and prepares micro-batches in memory, ahead of their use
 *
 * A loader returns the micro-batches of one pass in order.  Its threads read the records of a batch by positioned
 * reads, check them, and store pixels, labels and crops in contiguous arrays.  A ring of `ahead` batches bounds the
 * memory.
 *
 *     loader_start(&options, &loader)
 *     while (loader_next(loader, &batch) == CHEX_OK && batch)      waits only if the disk is too slow: loader_wait()
 *         use batch->batch; loader_return(loader, batch)
 *     loader_free(loader)
 *
 * The content of a batch is a pure function of the options; it does not depend on threads and timing.
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
extern const char *const augment_names[];            /* for values 0 to 3 */

struct loader_options {
    const struct chex_dataset *ds;
    const struct samples *samples;
    const uint32_t *order; /* [samples->count] */
    uint64_t seed;
    uint32_t epoch;
    unsigned augment;  /* bits of enum augment; 0: center crop, no flip */
    double rotate;     /* an angle from -rotate to rotate degrees, at most 180; 0: none */
    double brightness; /* a factor from 1 - brightness to 1 + brightness, at most 1; 0: none */
    double mixup;      /* mix images (batch.h), with shares from Beta(mixup, mixup); 0: none */
    unsigned side;     /* of the crop; not larger than the images */

    /*
     * Micro-batch i of the pass, 0 <= i < count, has the positions first(i) .. first(i) + batch - 1, with first(i) =
     * start + (i / each) * stride + (i % each) * batch: `each` batches of every global batch of `stride`.
     */
    unsigned batch;
    uint64_t start, stride, count;
    unsigned each;

    unsigned threads, ahead; /* at least 1; at least 2 */
    bool skip_bad; /* replace a damaged record by the next good one of the order; otherwise it ends the pass */

    /*
     * Reads and checks the records; must outlive the loader.  NULL: the loader creates its own, with or without
     * check_crc.
     */
    struct reader *reader;
    bool check_crc;
    unsigned expect; /* positions of readahead in front of the reader; 0: none */
};

/* The names in a record, not terminated, and the facts about its patient. */
struct loaded_text {
    uint8_t name_size, patient_size, view_size;
    char sex;  /* M, F, U */
    float age; /* NaN: unknown */
    char name[RECORD_MAX_TEXT], patient[RECORD_MAX_TEXT], view[RECORD_MAX_TEXT];
};

struct loaded {
    /*
     * The images have the side of the data set.  The partner of an image for mix-up is the next image of the order,
     * that of the last image the first one.  An image is mixed with the same partner in any micro-batch.
     */
    struct batch batch;
    const uint32_t *sample;         /* [batch]: index into samples->place; arbitrary if the weight is 0 */
    const struct loaded_text *text; /* [batch] of these samples */
    float *weights;                 /* batch.weight */
    uint64_t number;                /* index of the micro-batch in the pass */
    unsigned images;                /* with weight 1 */
};

struct loader;

/* The options are copied; the objects that they point to must outlive the loader.  CHEX_ERR_MEMORY */
enum chex_status loader_start(const struct loader_options *options, struct loader **out, struct chex_error *err);

/*
 * Returns the next micro-batch, or NULL after the last.  The caller owns it until loader_return().  CHEX_ERR_DAMAGED
 * and other statuses of records: a bad record (reader_describe(): "'FILE' record 37 (IMAGE): ..."); with skip_bad only
 * if no good record is left CHEX_ERR_READ, CHEX_ERR_MISSING
 */
enum chex_status loader_next(struct loader *l, struct loaded **out, struct chex_error *err);
void loader_return(struct loader *l, struct loaded *b);

/* Returns the seconds that loader_next() has waited; call it in the thread that calls loader_next(). */
double loader_wait(const struct loader *l);

/*
 * Append the places of replaced damaged records: those before position `end` that no earlier call has returned.  The
 * loader reads ahead, so the caller passes the end of what it has used.  CHEX_ERR_MEMORY
 */
enum chex_status loader_take_skipped(struct loader *l, uint64_t end, struct buffer *places, struct chex_error *err);

void loader_free(struct loader *l); /* ends the threads; NULL is allowed */

/* Returns the crop of a sample, a pure function of (seed, epoch, place). */
struct crop loader_crop(const struct loader_options *o, const struct sample_place *place, unsigned source);
/* Returns the share of its partner in a sample, batch.mix, a pure function of (seed, epoch, place). */
float loader_mix(const struct loader_options *o, const struct sample_place *place);

#endif
