/*
 * inflate_private.h - the tables that inflate_tables.c makes, and the loops that read them
 *
 * An iteration of the loop (inflate_loop.h) looks into `first`, and then into `second`.  Rare symbols stand in neither:
 * they are decoded one by one, from `symbol` and `dist`.
 *
 * Entries of symbol, 64 bits; they are sums, so that those of symbols behind each other are joined by adding them:
 *     0-5 bits of the code; 10 it is a length, 16-23 that length, at most LOOP_COPY; 24-25 how many literals, 32-55 the
 *     literals; 26-29 bits of the literals' codes
 *   or, with bit 15, which no iteration holds:
 *     length      bit 11; 0-5 bits of its code and the extra bits behind it; 16-24 before its extra bits; 26-29 bits of
 *                 its code.  Those that are above LOOP_COPY or have extra bits
 *     end         bit 12; 0-5 bits of its code
 *     subtable    bit 13; 0-5 bits of this table's index; 26-29 those of the other one's; 32-63 where it begins
 *     invalid     none of these
 * Entries of dist, 32 bits:
 *     0-5 bits of the code and the extra bits; 8-11 of the code alone; 16-31 a distance before its extra bits
 *     subtable    bit 15; 0-5 and 8-11 as above; 16-31 where it begins
 *     invalid     bit 15; 16-31 are 0, and the others whatever they are
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_INFLATE_PRIVATE_H
#define CHEX_LIB_INFLATE_PRIVATE_H

#include "kernels/inflate.h"

#include <string.h>

#define MAX_BITS     15
#define LITLEN_BITS  10 /* the index of symbol */
#define LOOP_BITS    9  /* that of what an iteration begins with: more do not fit into the cache as well */
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
/* A length of at most 16 at a distance of at least 16 is copied by one load and one store. */
#define LOOP_COPY 16

#define HAS_LENGTH        0x400u
#define IS_LENGTH         0x800u
#define IS_END            0x1000u
#define IS_SUBTABLE       0x2000u
#define IS_OTHER          0x8000u
#define IS_OTHER_DIST     0x8000u
#define BITS(e)           ((unsigned)(e)&63)
#define LENGTH(e)         ((unsigned)((e) >> 16) & 511) /* where there is no literal */
#define COUNT(e)          ((unsigned)((e) >> 24) & 3)
#define CODE_BITS(e)      ((unsigned)((e) >> CODE_SHIFT) & 15)
#define CODE_SHIFT        26
#define DIST_CODE_BITS(e) ((unsigned)((e) >> DIST_CODE_SHIFT) & 15)
#define DIST_CODE_SHIFT   8

struct stream {
    const uint8_t *in, *in_end; /* in may run over the end by the slack */
    uint64_t bits;
    unsigned count; /* of bits that are there */
    uint8_t *out, *out_begin, *out_end;
    uint8_t *checked; /* the Adler-32 of what stands before is in adler */
    uint32_t adler;
    size_t tables;       /* that may be made yet */
    bool in_block, last; /* inside a block of codes; it, or the one just ended, is the last */
};

enum block_end { BLOCK_DAMAGED, BLOCK_ENDED, BLOCK_GOES_ON };

struct inflater {
    /*
     * What comes second in an iteration, as bytes; here, so that its address is that of all.
     *     [0] where there is no length so far: literals.  Bits of their codes, and in bits 6-7 how many; the literals
     *     [1] where there is one: the distance, as in dist.  0 where dist has no such entry and for one below 16, whose
     *         copy may overlap itself
     */
    uint8_t second[1 << DIST_BITS][2][4];
    /* What comes first: the lower 16 bits of an entry as in symbol, and what it stands for; three arrays, so that each
       look-up is one instruction. */
    uint16_t first[1 << LOOP_BITS];
    uint8_t count[1 << LOOP_BITS];                                   /* of literals */
    uint8_t literals[1 << LOOP_BITS][4];                             /* three, and the length */
    uint64_t symbol[LITLEN_ENTRIES];                                 /* with the second level */
    uint32_t dist[DIST_ENTRIES];                                     /* the same */
    uint64_t litlen_payload[LITLEN_CODES], dist_payload[DIST_CODES]; /* entries without the bits of their codes */
    uint8_t lengths[LITLEN_CODES + DIST_CODES];
    const struct inflater_kind *kind;
    struct stream stream;
};

#define THEN_SIZE 4

/* ---- tables --------------------------------------------------------------------------------------------------- */

/* Once, before all others. */
void inflater_prepare_tables(struct inflater *t);

/*
 * From the lengths of `litlen` and, behind them, `dist` symbols in t->lengths.  False where zlib would
 * refuse the code.
 */
bool inflater_make_tables(struct inflater *t, unsigned litlen, unsigned dist);

/* A code of few symbols, the one that code lengths come in: symbol and bits for each value of the next 7 bits. */
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

/* At least 56 bits; behind the input they are of any bytes, and the position is compared at the end. */
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

/* Until the block ends or `stop` is passed, by less than INFLATER_OUT_SLACK. */
typedef enum block_end inflater_block_fn(const struct inflater *t, struct stream *stream, const uint8_t *stop);

/* The implementations, in order of preference; the last one is plain C and always there. */
struct inflater_kind {
    const char *name; /* "bmi2", "c" */
    bool (*supported)(void);
    inflater_block_fn *block;
};

extern const struct inflater_kind inflater_kinds[]; /* ends with a NULL name */

inflater_block_fn inflater_block_c;
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define INFLATER_HAVE_X86 1
bool inflater_bmi2_supported(void);
inflater_block_fn inflater_block_bmi2;
#endif

#endif
