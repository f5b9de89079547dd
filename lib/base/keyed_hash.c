/*
 * keyed_hash.c - see keyed_hash.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/keyed_hash.h"

#include <string.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

_Static_assert(KEYED_HASH_SECRET >= XXH3_SECRET_SIZE_MIN && KEYED_HASH_SECRET <= 256, "getentropy() gives no more");

void
hash_key_make(struct hash_key *key)
{
    uint64_t x, i;
    struct timespec now;

    if (getentropy(key->secret, sizeof(key->secret)) == 0)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    x = ((uint64_t)now.tv_sec << 30 ^ (uint64_t)now.tv_nsec) * (uint64_t)getpid();
    for (i = 0; i < sizeof(key->secret) / sizeof(x); i++) {
        x = (x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9) + i;
        memcpy(key->secret + i * sizeof(x), &x, sizeof(x));
    }
}

uint64_t
keyed_hash(const struct hash_key *key, const void *data, size_t size)
{
    return XXH3_64bits_withSecret(data, size, key->secret, sizeof(key->secret));
}
