/*
 * keyed_hash.c - see keyed_hash.h
 *
 * Each block becomes a sum of products, NH of UMAC (Black, Halevi, Krawczyk, Krovetz, Rogaway: "UMAC: fast and secure
 * message authentication", CRYPTO 1999), whose multiplications do not wait for each other; the sums are the
 * coefficients of a polynomial, which is evaluated at a point of the key, modulo 2^61 - 1.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/keyed_hash.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#define PRIME ((UINT64_C(1) << 61) - 1)
#define BLOCK (KEYED_HASH_WORDS * sizeof(uint64_t))

_Static_assert(BLOCK <= 256, "getentropy() gives no more");

void
hash_key_make(struct hash_key *key)
{
    struct timespec now;
    uint64_t x;
    size_t i;

    if (getentropy(key->block, sizeof(key->block)) != 0 || getentropy(&key->point, sizeof(key->point)) != 0) {
        clock_gettime(CLOCK_REALTIME, &now);
        x = ((uint64_t)now.tv_sec << 30 ^ (uint64_t)now.tv_nsec) * (uint64_t)getpid();
        for (i = 0; i < KEYED_HASH_WORDS; i++)
            key->block[i] = x = (x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9) + i;
        key->point = x;
    }
    key->point = key->point >> 4 | 1u << 16;
}

/* a * b, and then + c, modulo the prime or that much more; a and c below 2^62, b below 2^61. */
static inline uint64_t
step(uint64_t a, uint64_t b, uint64_t c)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    uint64_t sum = (uint64_t)(product & PRIME) + (uint64_t)(product >> 61);

    return (sum & PRIME) + (sum >> 61) + c;
}

static uint64_t
add_block(const struct hash_key *key, uint64_t hash, const uint8_t *data)
{
    uint64_t word[KEYED_HASH_WORDS];
    unsigned __int128 sum = 0;
    size_t i;

    memcpy(word, data, BLOCK);
    for (i = 0; i < KEYED_HASH_WORDS; i += 2)
        sum += (unsigned __int128)(word[i] + key->block[i]) * (word[i + 1] + key->block[i + 1]);
    hash = step(hash, key->point, (uint64_t)sum & PRIME);
    hash = step(hash, key->point, (uint64_t)(sum >> 61) & PRIME);
    return step(hash, key->point, (uint64_t)(sum >> 122));
}

uint64_t
keyed_hash(const struct hash_key *key, const void *data, size_t size)
{
    const uint8_t *p = data;
    uint64_t hash = (size & PRIME) + 1; /* so zeros behind the end are no matter */
    uint8_t rest[BLOCK] = {0};

    for (; size >= BLOCK; size -= BLOCK, p += BLOCK)
        hash = add_block(key, hash, p);
    if (size > 0) {
        memcpy(rest, p, size);
        hash = add_block(key, hash, rest);
    }
    return hash % PRIME;
}
