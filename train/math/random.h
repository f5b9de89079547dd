/*
 * random.h - counter-based random numbers: Philox4x32-10
 *
 * Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, SC 2011.  A number is a pure function of its stream
 * (seed, purpose, a, b) and its index i.  There is no state, so the numbers do not depend on threads, ranks or
 * restarts.  Each use has its own purpose, so no two uses share a stream.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_RANDOM_H
#define CHEX_TRAIN_RANDOM_H

#include <stdint.h>

enum random_purpose {
    RANDOM_INIT = 1,  /* a = tensor */
    RANDOM_ORDER,     /* a = epoch */
    RANDOM_AUGMENT,   /* a = epoch, b = shard */
    RANDOM_BOOTSTRAP, /* a = replicate */
    RANDOM_SWAP,      /* a = swap (compare.h) */
    RANDOM_ROTATE,    /* as RANDOM_AUGMENT */
    RANDOM_BRIGHTNESS,
    RANDOM_MIXUP,
    RANDOM_BOXES, /* a = box (localization.h) */
};

struct random_stream {
    uint64_t seed;
    enum random_purpose purpose;
    uint32_t a, b;
};

/* The Philox bijection, exported for tests with the published vectors. */
void random_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* Returns 64 bits: number i of the stream, i < 2^32. */
uint64_t random_bits(const struct random_stream *s, uint32_t i);
/* Returns 0 .. n - 1, uniform up to a bias of n / 2^64. */
uint64_t random_below(const struct random_stream *s, uint32_t i, uint64_t n);
/* Returns a number in [0, 1) with 53 bits. */
double random_uniform(const struct random_stream *s, uint32_t i);
/* Returns a normal number with mean 0 and deviation 1 (Box and Muller). */
double random_normal(const struct random_stream *s, uint32_t i);
/* Returns a number from Beta(alpha, alpha), alpha > 0, in [0, 1]; the same bits on every platform. */
double random_beta(const struct random_stream *s, uint32_t i, double alpha);

#endif
