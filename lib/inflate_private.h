/*
 * inflate_private.h - the tables that inflate_tables.c makes and inflate.c reads
 *
 * A symbol, 32 bits:
 *     literal    bit 31; 0-7 the byte; 24-27 bits of its code
 *     length     0-8 the base; 9-11 extra bits; 24-27 bits of the code
 *     end        bits 30 and 29; 24-27 bits of the code
 *     subtable   bits 30 and 28; 0-15 where it begins; 16-19 bits of its index
 *     invalid    bit 30 alone
 *     distance   0-14 the base - 1; 16-19 extra bits; 24-27 bits of the code
 * An entry of the first table for literals and lengths, 64 bits:
 *     0-23 literals; 24-27 bits of all codes; 28-29 how many literals; 32-63 a length, end or subtable (a symbol whose
 *     bits are counted already), or 0 for none
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_INFLATE_PRIVATE_H
#define CHEX_LIB_INFLATE_PRIVATE_H

#include "inflate.h"

#define MAX_BITS     15
#define LITLEN_BITS  10
#define DIST_BITS    8
#define LITLEN_CODES 288
#define DIST_CODES   32
#define LENGTH_CODES 19
/*
 * First level and the largest second levels of a complete code of at most 15 bits: 1,334 entries for 286 symbols and
 * 10 bits, 402 for 30 and 8 (zlib's examples/enough.c counts them); bounds are checked all the same.
 */
#define LITLEN_ENTRIES 1536
#define DIST_ENTRIES   512

#define IS_LITERAL  0x80000000u
#define IS_OTHER    0x40000000u
#define IS_END      (IS_OTHER | 0x20000000u)
#define IS_SUBTABLE (IS_OTHER | 0x10000000u)
#define BITS(e)     ((unsigned)((e) >> 24) & 15)
#define COUNT(e)    ((unsigned)((e) >> 28) & 3)

struct stream;
typedef bool coded_block_fn(const struct inflate_tables *t, struct stream *stream);

struct inflate_tables {
    coded_block_fn *coded_block; /* what suits this CPU */
    uint64_t entry[1 << LITLEN_BITS];
    uint32_t symbol[LITLEN_ENTRIES]; /* one at a time, with the second level */
    uint32_t dist[DIST_ENTRIES];
    uint8_t lengths[LITLEN_CODES + DIST_CODES];
};

/*
 * From the lengths of `litlen` and, behind them, `dist` symbols in t->lengths.  False where zlib would
 * refuse the code.
 */
bool inflate_make_tables(struct inflate_tables *t, unsigned litlen, unsigned dist);

/* A code of few symbols, the one that code lengths come in: symbol and bits for each value of the next 7 bits. */
bool inflate_make_small_table(const uint8_t *length, unsigned symbols, uint8_t *symbol, uint8_t *bits);

#define INFLATE_SMALL_BITS 7

#endif
