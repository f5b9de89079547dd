/*
 * order.h - which sample comes when: a pure function of (seed, epoch, position)
 *
 * Position p of an epoch names one record, whatever the number of ranks or threads and wherever a run was resumed.
 * Global batch g holds positions g * G .. (g + 1) * G - 1; micro-batch m of it the positions g * G + m * B ...; rank r
 * of N computes the micro-batches r * A .. (r + 1) * A - 1 (G = N * A * B).  Positions behind the last sample are
 * padding of weight 0, so all ranks make equally many steps and nothing is dropped or repeated.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_ORDER_H
#define CHEX_TRAIN_ORDER_H

#include "base/error.h"

/* Where a sample lies: a record of weight 1. */
struct sample_place {
    uint32_t shard; /* of the data set */
    uint32_t index; /* record in it */
};

/* The samples of a split, in the order of the shards. */
struct samples {
    struct sample_place *place;
    size_t count;
};

/*
 * List the records of weight 1 of a split.  Only shards that hold fewer images than records (the tail, rejects) are
 * read.  samples_release() frees, also after a failure.
 * Statuses of chex_shard_open() and chex_record_view(), CHEX_ERR_MEMORY
 */
enum chex_status samples_list(const struct chex_dataset *ds, unsigned split, struct samples *out,
                              struct chex_error *err);
void samples_release(struct samples *s);

/*
 * The order of an epoch: out[count] becomes a permutation of 0 .. count - 1, indices into place.
 * window  0: shuffled as a whole.  Else: the shards are shuffled, and the samples of each `window` consecutive ones
 *         among them, so that no more than two windows need be in memory.
 */
enum chex_status order_epoch(const struct samples *s, uint64_t seed, uint32_t epoch, unsigned window, uint32_t *out,
                             struct chex_error *err);

/*
 * A window for the samples of `shards` shards of `bytes` bytes where `memory` bytes may hold what was read: 0, as a
 * whole, where all of it fits; else the largest power of two of shards of which two windows fit, at least 1.
 * It is chosen once for a run, and then is part of its state: the order never follows the memory of the machine at
 * hand.
 */
unsigned order_choose_window(uint64_t bytes, unsigned shards, uint64_t memory);

/* SHA-256 over the ids (shard, index) in that order, as 16 hexadecimal digits: equal orders can be seen to be equal. */
#define ORDER_HASH 17
enum chex_status order_hash(const struct samples *s, const uint32_t *order, char out[ORDER_HASH],
                            struct chex_error *err);

/* Steps of an epoch: ceil(samples / global batch). */
uint64_t order_steps(size_t samples, uint64_t global_batch);

#endif
