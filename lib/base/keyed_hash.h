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

#define KEYED_HASH_WORDS 32

struct hash_key {
    uint64_t block[KEYED_HASH_WORDS]; /* for a block of so many words */
    uint64_t point;                   /* for all blocks */
};

/* A key that is not known to those who made the input. */
void hash_key_make(struct hash_key *key);

/*
 * Two contents, or sizes, have the same hash by a chance of about 1 in 2^61 a block of 256 bytes, whoever chose them.
 */
uint64_t keyed_hash(const struct hash_key *key, const void *data, size_t size);

#endif
