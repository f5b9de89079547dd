/*
 * keyed_hash.h - a hash whose collisions nobody can make without its key
 *
 * It tells contents from outside apart: two contents with one checksum can be made, two with one keyed hash cannot.
 * Each process makes a new key, so no hash may be written or sent.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_KEYED_HASH_H
#define CHEX_LIB_KEYED_HASH_H

#include <stddef.h>
#include <stdint.h>

#define KEYED_HASH_SECRET 192 /* bytes; XXH3 asks for 136 at least, and has 192 of its own */

struct hash_key {
    uint8_t secret[KEYED_HASH_SECRET];
};

/* A random key. */
void hash_key_make(struct hash_key *key);

/* XXH3 of 64 bits with this key. */
uint64_t keyed_hash(const struct hash_key *key, const void *data, size_t size);

#endif
