/*
 * inflate_private.h - the tables that inflate_tables.c makes and inflate.c reads
 *
 * An entry for literals and lengths, 64 bits; all are sums, so that the entries of symbols behind each other are joined
 * by adding them:
 *     0-5 bits of all codes and of the extra bits behind them; 8-13 of the codes alone; 14-15 how many literals;
 *     16-24 a length before its extra bits, 0 for none; 32-55 the literals
 *   or, where no code of a literal or length fits into the index:
 *     subtable    bits 31 and 28; 0-5 bits of this table's index; 8-11 those of the other one's; 32-63 where it begins
 *     end         bits 31 and 29; 0-5 and 8-13 bits of its code
 *     invalid     bit 31 alone
 * An entry for distances, 32 bits:
 *     0-5 bits of the code and the extra bits; 8-11 of the code alone; 16-31 a distance before its extra bits
 *     subtable    bit 15; 0-5 and 8-11 as above; 16-31 where it begins
 *     invalid     bit 15, all others 0
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

#define IS_OTHER         0x80000000u
#define IS_END           0x20000000u
#define IS_SUBTABLE      0x10000000u
#define IS_OTHER_DIST    0x8000u
#define BITS(e)          ((unsigned)(e)&63)
#define CODE_BITS(e)     ((unsigned)((e) >> 8) & 63)
#define SUBTABLE_BITS(e) ((unsigned)((e) >> 8) & 15)
#define COUNT(e)         ((unsigned)((e) >> 14) & 3)
#define LENGTH(e)        ((uint32_t)(e) >> 16) /* 0 where literals are all; includes the bits of IS_OTHER */

struct stream {
    const uint8_t *in, *in_end; /* in may run over the end by the slack */
    uint64_t bits;
    unsigned count; /* of bits that are there */
    uint8_t *out, *out_begin, *out_end;
    uint8_t *checked; /* the Adler-32 of what stands before is in adler */
    uint32_t adler;
    bool in_block, last; /* inside a block of codes; it, or the one just ended, is the last */
};

enum block_end { BLOCK_DAMAGED, BLOCK_ENDED, BLOCK_GOES_ON };

/* Until the block ends or `stop` is passed. */
typedef enum block_end coded_block_fn(const struct inflate_tables *t, struct stream *stream, const uint8_t *stop);

/* In plain C, for any CPU. */
coded_block_fn inflate_coded_block_c;

struct inflate_tables {
    struct stream stream;
    coded_block_fn *coded_block;      /* what suits this CPU */
    uint64_t entry[1 << LITLEN_BITS]; /* joined */
    uint32_t dist[DIST_ENTRIES];
    uint64_t symbol[LITLEN_ENTRIES];                                 /* one at a time, with the second level */
    uint64_t litlen_payload[LITLEN_CODES], dist_payload[DIST_CODES]; /* entries without the bits of their codes */
    uint8_t lengths[LITLEN_CODES + DIST_CODES];
};

/* Once, before all others. */
void inflate_prepare_tables(struct inflate_tables *t);

/*
 * From the lengths of `litlen` and, behind them, `dist` symbols in t->lengths.  False where zlib would
 * refuse the code.
 */
bool inflate_make_tables(struct inflate_tables *t, unsigned litlen, unsigned dist);

/* A code of few symbols, the one that code lengths come in: symbol and bits for each value of the next 7 bits. */
bool inflate_make_small_table(const uint8_t *length, unsigned symbols, uint8_t *symbol, uint8_t *bits);

#define INFLATE_SMALL_BITS 7

#endif
