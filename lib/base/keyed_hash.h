/*
 * keyed_hash.h - a hash with a secret key, so that nobody else can construct collisions
 *
 * It compares untrusted contents.  An attacker can make two contents with the same plain checksum, but not with the
 * same keyed hash.  Each process makes a new key, so never write or send a hash.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_KEYED_HASH_H
#define CHEX_LIB_KEYED_HASH_H

#include <stddef.h>
#include <stdint.h>

#define KEYED_HASH_SECRET 192 /* bytes; XXH3 requires at least 136, and its own secret has 192 */

struct hash_key {
    uint8_t secret[KEYED_HASH_SECRET];
};

/* Make a random key. */
void hash_key_make(struct hash_key *key);

/* Returns the 64-bit XXH3 with this key. */
uint64_t keyed_hash(const struct hash_key *key, const void *data, size_t size);

#endif
