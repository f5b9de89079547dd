/*
 * blake2b.c - see blake2b.h; names and numbers of sections are those of RFC 7693
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "blake2b.h"

#include <string.h>

#define BLOCK 128

/* 2.6: the fractions of the square roots of the first eight primes. */
static const uint64_t iv[8] = {0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
                               0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};

/* 2.7, where rounds 10 and 11 are as 0 and 1. */
static const uint8_t sigma[12][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
};

static inline uint64_t
rotate(uint64_t x, unsigned by)
{
    return x >> by | x << (64 - by);
}

static inline uint64_t
load(const uint8_t *p)
{
    uint64_t x = 0;
    int i;

    for (i = 7; i >= 0; i--)
        x = x << 8 | p[i];
    return x;
}

/* 3.1 */
#define MIX(a, b, c, d, x, y)  \
    do {                       \
        a += b + (x);          \
        d = rotate(d ^ a, 32); \
        c += d;                \
        b = rotate(b ^ c, 24); \
        a += b + (y);          \
        d = rotate(d ^ a, 16); \
        c += d;                \
        b = rotate(b ^ c, 63); \
    } while (0)

/* 3.2.  done: bytes with this block; no input here has 2^64 of them. */
static void
compress(uint64_t h[8], const uint8_t block[BLOCK], uint64_t done, int last)
{
    uint64_t v[16], m[16];
    unsigned i;

    for (i = 0; i < 16; i++)
        m[i] = load(block + 8 * i);
    memcpy(v, h, 8 * sizeof(*v));
    memcpy(v + 8, iv, sizeof(iv));
    v[12] ^= done;
    v[14] = last ? ~v[14] : v[14];
    for (i = 0; i < 12; i++) {
        const uint8_t *s = sigma[i];

        MIX(v[0], v[4], v[8], v[12], m[s[0]], m[s[1]]);
        MIX(v[1], v[5], v[9], v[13], m[s[2]], m[s[3]]);
        MIX(v[2], v[6], v[10], v[14], m[s[4]], m[s[5]]);
        MIX(v[3], v[7], v[11], v[15], m[s[6]], m[s[7]]);
        MIX(v[0], v[5], v[10], v[15], m[s[8]], m[s[9]]);
        MIX(v[1], v[6], v[11], v[12], m[s[10]], m[s[11]]);
        MIX(v[2], v[7], v[8], v[13], m[s[12]], m[s[13]]);
        MIX(v[3], v[4], v[9], v[14], m[s[14]], m[s[15]]);
    }
    for (i = 0; i < 8; i++)
        h[i] ^= v[i] ^ v[i + 8];
}

/* 3.3 */
void
blake2b(const uint8_t *data, size_t size, uint8_t out[BLAKE2B_SIZE])
{
    uint8_t last[BLOCK] = {0};
    uint64_t h[8];
    size_t at = 0;
    unsigned i;

    memcpy(h, iv, sizeof(h));
    h[0] ^= 0x01010000 ^ BLAKE2B_SIZE;
    for (; size - at > BLOCK; at += BLOCK)
        compress(h, data + at, at + BLOCK, 0);
    if (size > at)
        memcpy(last, data + at, size - at);
    compress(h, last, size, 1);
    for (i = 0; i < BLAKE2B_SIZE; i++)
        out[i] = (uint8_t)(h[i / 8] >> 8 * (i % 8));
}
