/*
 * deflate_fixture.h - builds zlib streams bit by bit, and compares the results of zlib and of our inflate
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_DEFLATE_FIXTURE_H
#define CHEX_TESTS_DEFLATE_FIXTURE_H

#include "kernels/inflate_private.h"

#define ROOM (1u << 17) /* bytes of a stream, and of its output */

struct bits {
    uint8_t data[ROOM + INFLATER_IN_SLACK];
    size_t used; /* in bits */
};

/* Returns a stream with its header of two bytes; judge() frees it. */
struct bits *new_bits(void);
void put(struct bits *b, uint32_t value, unsigned n);
/* Appends a Huffman code, most significant bit first. */
void put_code(struct bits *b, uint32_t code, unsigned n);

/* Appends the header of a block; type: 0 stored, 1 fixed codes, 2 dynamic codes. */
void put_block(struct bits *b, bool last, unsigned type);
/* Appends a symbol in the fixed code of RFC 1951, 3.2.6. */
void put_fixed(struct bits *b, unsigned symbol);

/* Appends the header of a last block with dynamic codes; these numbers of lengths must follow, by put_length(). */
void put_counts(struct bits *b, unsigned litlen, unsigned dist);
/* Appends a code length or a repetition, in a complete code where 0 to 12 have four bits and 13 to 18 five. */
void put_length(struct bits *b, unsigned symbol);
/* Appends header and lengths; symbols after the end of the arrays have length 0, no code. */
void put_dynamic(struct bits *b, unsigned litlen, const uint8_t *litlen_bits, unsigned dist, const uint8_t *dist_bits);
/* Appends a symbol in the code of these lengths (RFC 1951, 3.2.2). */
void put_symbol(struct bits *b, const uint8_t *length, unsigned symbols, unsigned symbol);

/* Ends the stream and requires that zlib reports `text` (NULL: no error), and that our inflate agrees.  Frees b. */
void judge(struct bits *b, const char *text);

#endif
