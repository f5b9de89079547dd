/*
 * synth_random.h - random numbers that depend only on their key
 *
 * A draw is a hash of (key, number of the draw), without any state between images: any thread may make any image at any
 * time, with the same bytes.  The hash is the output function of splitmix64 (Steele, Lea and Flood, "Fast splittable
 * pseudorandom number generators", OOPSLA 2014).  Draws are integers, or floats made from 24 bits by an exact
 * multiplication, so the numbers are the same on every machine.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_SYNTH_RANDOM_H
#define CHEX_TOOLS_SYNTH_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

static inline uint64_t
random_hash(uint64_t key, uint64_t number)
{
    uint64_t z = key + (number + 1) * UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/*
 * A sequence of draws; copy the struct to replay it.
 *
 * The order of draws determines their values, but C does not define the order in which the arguments of a call, the
 * values of an initializer and the operands of an operator are evaluated.  So each of these contains at most one draw
 * of a sequence.
 */
struct draws {
    uint64_t key, number;
};

static inline struct draws
draws_of(uint64_t key, uint64_t purpose)
{
    return (struct draws){.key = random_hash(key, purpose)};
}

/* 0 <= draw < 1, a multiple of 2^-24. */
static inline float
draw(struct draws *d)
{
    return (float)(random_hash(d->key, d->number++) >> 40) * 0x1p-24f;
}

static inline float
draw_between(struct draws *d, float low, float high)
{
    return low + (high - low) * draw(d);
}

/* low <= draw <= high */
static inline int
draw_whole(struct draws *d, int low, int high)
{
    return low + (int)(draw(d) * (float)(high - low + 1));
}

static inline bool
draw_chance(struct draws *d, float probability)
{
    return draw(d) < probability;
}

#endif
