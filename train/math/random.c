/*
 * random.c - see random.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "math/random.h"

#include <math.h>

void
random_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3], k0 = key[0], k1 = key[1];
    int round;

    for (round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xd2511f53 * c0, p1 = (uint64_t)0xcd9e8d57 * c2;

        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9e3779b9;
        k1 += 0xbb67ae85;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* Returns the 128 bits of number i. */
static void
block(const struct random_stream *s, uint32_t i, uint32_t out[4])
{
    const uint32_t counter[4] = {i, s->a, s->b, (uint32_t)s->purpose};
    const uint32_t key[2] = {(uint32_t)s->seed, (uint32_t)(s->seed >> 32)};

    random_philox(counter, key, out);
}

uint64_t
random_bits(const struct random_stream *s, uint32_t i)
{
    uint32_t v[4];

    block(s, i, v);
    return (uint64_t)v[1] << 32 | v[0];
}

uint64_t
random_below(const struct random_stream *s, uint32_t i, uint64_t n)
{
    return (uint64_t)((unsigned __int128)random_bits(s, i) * n >> 64);
}

double
random_uniform(const struct random_stream *s, uint32_t i)
{
    return (double)(random_bits(s, i) >> 11) * 0x1p-53;
}

double
random_normal(const struct random_stream *s, uint32_t i)
{
    uint32_t v[4];
    double radius, angle;

    block(s, i, v);
    /* In (0, 1], so the logarithm is finite. */
    radius = sqrt(-2 * log((double)(((uint64_t)v[1] << 32 | v[0]) >> 11) * 0x1p-53 + 0x1p-53));
    angle = 2 * 3.14159265358979323846 * ((double)(((uint64_t)v[3] << 32 | v[2]) >> 11) * 0x1p-53);
    return radius * cos(angle);
}
