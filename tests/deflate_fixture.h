/*
 * deflate_fixture.h - zlib streams put together bit by bit, and what zlib and ours make of them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_DEFLATE_FIXTURE_H
#define CHEX_TESTS_DEFLATE_FIXTURE_H

#include "kernels/inflate_private.h"

#define ROOM (1u << 17) /* bytes of a stream, and of what comes out of it */

struct bits {
    uint8_t data[ROOM + INFLATER_IN_SLACK];
    size_t used; /* bits */
};

/* A stream with its header of two bytes; judge() frees it. */
struct bits *new_bits(void);
void put(struct bits *b, uint32_t value, unsigned n);
/* Huffman codes come with their first bit first. */
void put_code(struct bits *b, uint32_t code, unsigned n);

/* The head of a block; type: 0 stored, 1 fixed code, 2 with codes of its own. */
void put_block(struct bits *b, bool last, unsigned type);
/* A symbol in the fixed code of RFC 1951, 3.2.6. */
void put_fixed(struct bits *b, unsigned symbol);

/* The head of a last block with codes of its own: then this number of lengths, in the code of put_length(). */
void put_counts(struct bits *b, unsigned litlen, unsigned dist);
/* A code length or a repetition, in a code where 0 to 12 have four bits and 13 to 18 five: it is complete. */
void put_length(struct bits *b, unsigned symbol);
/* Both; what is behind the arrays' contents is 0, a symbol without a code. */
void put_dynamic(struct bits *b, unsigned litlen, const uint8_t *litlen_bits, unsigned dist, const uint8_t *dist_bits);
/* A symbol in the code of these lengths (RFC 1951, 3.2.2). */
void put_symbol(struct bits *b, const uint8_t *length, unsigned symbols, unsigned symbol);

/* The end of the stream: zlib's word on it is `text`, NULL for a good one, and ours is the same.  Frees b. */
void judge(struct bits *b, const char *text);

#endif
