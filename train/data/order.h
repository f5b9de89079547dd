/*
 * order.h - the order of the samples, a pure function of (seed, epoch, position)
 *
 * Position p of an epoch is the same record for any number of ranks and threads, also after a resume.  Global batch g
 * has positions g * G .. (g + 1) * G - 1.  Its micro-batch m has the positions from g * G + m * B on; rank r of N
 * computes the micro-batches r * A .. (r + 1) * A - 1 (G = N * A * B).  Positions after the last sample are padding of
 * weight 0.  So all ranks make the same number of steps, and no sample is dropped or repeated.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_ORDER_H
#define CHEX_TRAIN_ORDER_H

#include "base/error.h"

/* The location of a sample: a record of weight 1. */
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
 * List the records of weight 1 of a split.  Reads only shards with fewer images than records (the tail, rejects).
 * Release *out with samples_release(), also after a failure.  Statuses of chex_shard_open() and chex_record_view(),
 * CHEX_ERR_MEMORY
 */
enum chex_status samples_list(const struct chex_dataset *ds, unsigned split, struct samples *out,
                              struct chex_error *err);
void samples_release(struct samples *s);

/*
 * Compute the order of an epoch: out[count] becomes a permutation of 0 .. count - 1, indices into place.  window 0:
 * shuffle all samples.  Otherwise shuffle the shards, then the samples of each `window` consecutive shards, so that at
 * most two windows need to be in memory.
 */
enum chex_status order_epoch(const struct samples *s, uint64_t seed, uint32_t epoch, unsigned window, uint32_t *out,
                             struct chex_error *err);

/*
 * Returns a window for `shards` shards of `bytes` bytes, if `memory` bytes may hold the records: 0 (shuffle all
 * samples) if all shards fit; otherwise the largest power of two such that two windows fit, at least 1.  A run chooses
 * it once and keeps it in its state, so the order does not change with the memory of the machine.
 */
unsigned order_choose_window(uint64_t bytes, unsigned shards, uint64_t memory);

/* Compute the SHA-256 over the ids (shard, index) in that order, as 16 hexadecimal digits, to compare orders. */
#define ORDER_HASH 17
enum chex_status order_hash(const struct samples *s, const uint32_t *order, char out[ORDER_HASH],
                            struct chex_error *err);

/* Returns the steps of an epoch: ceil(samples / global batch). */
uint64_t order_steps(size_t samples, uint64_t global_batch);

#endif
