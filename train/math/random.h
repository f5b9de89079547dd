/*
 * random.h - random numbers that are a pure function of what they are for: Philox4x32-10
 *
 * Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, SC 2011.  There is no state that threads, ranks or a
 * restart could advance differently: number i of stream (seed, purpose, a, b) is always the same.  A purpose is an
 * enum, so that no two uses share a stream.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_RANDOM_H
#define CHEX_TRAIN_RANDOM_H

#include <stdint.h>

enum random_purpose {
    RANDOM_INIT = 1,  /* a = tensor */
    RANDOM_ORDER,     /* a = epoch */
    RANDOM_AUGMENT,   /* a = epoch, b = record */
    RANDOM_BOOTSTRAP, /* a = replicate */
};

struct random_stream {
    uint64_t seed;
    enum random_purpose purpose;
    uint32_t a, b;
};

/* The bijection itself, for tests against the published vectors. */
void random_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* 64 bits: number i of the stream, i below 2^32. */
uint64_t random_bits(const struct random_stream *s, uint32_t i);
/* 0 .. n - 1, uniform but for n / 2^64. */
uint64_t random_below(const struct random_stream *s, uint32_t i, uint64_t n);
/* In [0, 1), 53 bits. */
double random_uniform(const struct random_stream *s, uint32_t i);
/* Normal with mean 0 and deviation 1 (Box and Muller). */
double random_normal(const struct random_stream *s, uint32_t i);

#endif
