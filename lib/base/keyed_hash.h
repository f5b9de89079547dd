/*
 * keyed_hash.h - a hash that nobody can make agree who does not know its key
 *
 * To tell contents of others apart: by a checksum two of them could be made to pass for one.  The key is a new one in
 * each process, so no hash may be written or sent.
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

/* A key that is not known to those who made the input. */
void hash_key_make(struct hash_key *key);

/* XXH3 of 64 bits with that secret. */
uint64_t keyed_hash(const struct hash_key *key, const void *data, size_t size);

#endif
