/*
 * inflate_private.h - the tables that inflate_tables.c builds, and the loops that read them
 *
 * An iteration of the loop (inflate_loop.h) reads an entry of `first`, then one of `second`.  Rare symbols are in
 * neither table; they are decoded one by one, from `symbol` and `dist`.
 *
 * Entries of symbol, 64 bits.  They are sums: adding the entries of consecutive symbols joins them.
 *     0-5 bits of the code; 10 it is a length, 16-23 that length, at most LOOP_COPY; 24-25 how many literals, 32-55 the
 *     literals; 26-29 bits of the literals' codes
 *   or, with bit 15, symbols that an iteration cannot decode:
 *     length      bit 11; 0-5 bits of its code with the extra bits; 16-24 the length without its extra bits; 26-29 bits
 *                 of its code.  For lengths above LOOP_COPY or with extra bits
 *     end         bit 12; 0-5 bits of its code
 *     subtable    bit 13; 0-5 bits of this table's index; 26-29 bits of the subtable's index; 32-63 its first entry
 *     invalid     none of these
 * Entries of dist, 32 bits:
 *     0-5 bits of the code with the extra bits; 8-11 bits of the code; 16-31 the distance without its extra bits
 *     subtable    bit 15; 0-5 and 8-11 as above; 16-31 its first entry
 *     invalid     bit 15; 16-31 are 0; the other bits have no meaning
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_INFLATE_PRIVATE_H
#define CHEX_LIB_INFLATE_PRIVATE_H

#include "kernels/inflate.h"

#include <string.h>

#define MAX_BITS     15
#define LITLEN_BITS  10 /* index of symbol */
#define LOOP_BITS    9  /* index of first; larger tables do not fit into the L1 cache */
#define DIST_BITS    8
#define LITLEN_CODES 288
#define DIST_CODES   32
#define LENGTH_CODES 19
/*
 * The first level plus the largest second levels of a complete code of at most 15 bits: 1,334 entries for 286 symbols
 * and 10 bits, 402 for 30 symbols and 8 bits (counted by zlib's examples/enough.c).  The code checks the bounds anyway.
 */
#define LITLEN_ENTRIES 1536
#define DIST_ENTRIES   512
#define WINDOW         32768 /* a distance is at most this */
/* A length of at most 16 at a distance of at least 16 is copied by one load and one store. */
#define LOOP_COPY 16

#define HAS_LENGTH        0x400u
#define IS_LENGTH         0x800u
#define IS_END            0x1000u
#define IS_SUBTABLE       0x2000u
#define IS_OTHER          0x8000u
#define IS_OTHER_DIST     0x8000u
#define BITS(e)           ((unsigned)(e)&63)
#define LENGTH(e)         ((unsigned)((e) >> 16) & 511) /* if the entry has no literal */
#define COUNT(e)          ((unsigned)((e) >> 24) & 3)
#define CODE_BITS(e)      ((unsigned)((e) >> CODE_SHIFT) & 15)
#define CODE_SHIFT        26
#define DIST_CODE_BITS(e) ((unsigned)((e) >> DIST_CODE_SHIFT) & 15)
#define DIST_CODE_SHIFT   8

struct stream {
    const uint8_t *in, *in_end; /* in may pass in_end by INFLATER_IN_SLACK */
    uint64_t bits;
    unsigned count; /* valid bits in bits */
    uint8_t *out, *out_begin, *out_end;
    uint8_t *checked; /* adler is the Adler-32 of the output before this */
    uint32_t adler;
    size_t tables;       /* number of tables that may still be built */
    bool in_block, last; /* inside a compressed block; the current or just ended block is the last */
    bool damaged;        /* found by inflater_together(); inflater_until() reports it */
};

enum block_end { BLOCK_DAMAGED, BLOCK_ENDED, BLOCK_GOES_ON };

struct inflater {
    /*
     * The second look-up of an iteration, as bytes.  It is the first member, so its address is that of the struct.
     *     [0] used if the first look-up found no length: up to three literals.  Bits 0-5 of byte 0: bits of their
     *         codes; bits 6-7: their number; bytes 1-3: the literals
     *     [1] used if the first look-up found a length: the distance, as in dist.  0 if dist has no such entry, or if
     *         the distance is below 16, because then the copy may overlap itself
     */
    uint8_t second[1 << DIST_BITS][2][4];
    /* The first look-up: the lower 16 bits of an entry as in symbol, its literals and length.  Three arrays, so that
       each look-up is one instruction. */
    uint16_t first[1 << LOOP_BITS];
    uint8_t count[1 << LOOP_BITS];                                   /* number of literals */
    uint8_t literals[1 << LOOP_BITS][4];                             /* three literals and the length */
    uint64_t symbol[LITLEN_ENTRIES];                                 /* first and second level */
    uint32_t dist[DIST_ENTRIES];                                     /* first and second level */
    uint64_t litlen_payload[LITLEN_CODES], dist_payload[DIST_CODES]; /* entries without the code's bits */
    uint8_t lengths[LITLEN_CODES + DIST_CODES];
    uint8_t turned[1 << DIST_BITS]; /* index with its bits reversed */
    const struct inflater_kind *kind;
    struct stream stream;
};

#define THEN_SIZE 4

/* ---- tables --------------------------------------------------------------------------------------------------- */

/* Call this once, before the others. */
void inflater_prepare_tables(struct inflater *t);

/*
 * Build the tables from t->lengths: the code lengths of `litlen` symbols, then of `dist` symbols.  Returns false if
 * zlib would refuse the code.
 */
bool inflater_make_tables(struct inflater *t, unsigned litlen, unsigned dist);

/* Build the table of the code-length code: symbol and bits for each value of the next 7 bits. */
bool inflater_make_small_table(const uint8_t *length, unsigned symbols, uint8_t *symbol, uint8_t *bits);

#define INFLATER_SMALL_BITS 7

/* ---- bits ----------------------------------------------------------------------------------------------------- */

static inline uint64_t
inflater_load(const uint8_t *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof(v));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

/* Load at least 56 bits.  After the end of the input they have any value; the position is checked at the end. */
#define REFILL(s)                                       \
    do {                                                \
        (s).bits |= inflater_load((s).in) << (s).count; \
        (s).in += (63 - (s).count) >> 3;                \
        (s).count |= 56;                                \
    } while (0)

static inline bool
inflate_within(const struct stream *s)
{
    return s->in <= s->in_end + 8;
}

/* ---- blocks --------------------------------------------------------------------------------------------------- */

/* Decode until the block ends or the output passes `stop`, by less than INFLATER_OUT_SLACK. */
typedef enum block_end inflater_block_fn(const struct inflater *t, struct stream *stream, const uint8_t *stop);

/*
 * Decode a block of each of two inflaters, both after their first 32 KiB of output, until the output of one passes its
 * stop, or the block of one ends or is damaged.  Returns what inflater_block_fn returns for that one, except that
 * BLOCK_GOES_ON does not mean that its input and output are within bounds; *number is its index.
 */
typedef enum block_end inflater_blocks_fn(struct inflater *const *t, const uint8_t *const *stop, unsigned *number);

/* Returns the Adler-32 (RFC 1950) of data with checksum `adler` followed by these bytes.  ISA-L has this type. */
typedef uint32_t inflater_adler_fn(uint32_t adler, const uint8_t *p, uint64_t size);

/* The implementations in order of preference; the last is plain C and always available. */
struct inflater_kind {
    const char *name; /* "avx2", "bmi2", "c" */
    bool (*supported)(void);
    inflater_block_fn *block;
    inflater_blocks_fn *blocks;
    inflater_adler_fn *adler;
};

extern const struct inflater_kind inflater_kinds[]; /* ends with a NULL name */

inflater_block_fn inflater_block_c;
inflater_blocks_fn inflater_blocks_c;
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define INFLATER_HAVE_X86 1
bool inflater_avx2_supported(void); /* and all of bmi2 */
bool inflater_bmi2_supported(void);
inflater_block_fn inflater_block_bmi2;
inflater_blocks_fn inflater_blocks_bmi2;
inflater_adler_fn inflater_adler_avx2;
#endif

#endif
