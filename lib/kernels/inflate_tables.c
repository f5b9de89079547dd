/*
 * inflate_tables.c - look-up tables for canonical Huffman codes (RFC 1951, 3.2.2)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/inflate_private.h"

#include <string.h>

/* Reverse the lowest `bits` bits: in the stream, the first bit of a code is the lowest. */
static uint32_t
reverse(uint32_t code, unsigned bits)
{
    code = (code & 0x5555) << 1 | (code >> 1 & 0x5555);
    code = (code & 0x3333) << 2 | (code >> 2 & 0x3333);
    code = (code & 0x0f0f) << 4 | (code >> 4 & 0x0f0f);
    code = (code & 0x00ff) << 8 | (code >> 8 & 0x00ff);
    return code >> (16 - bits);
}

/* The symbols in the order of their codes: by length, then by number.  complete: every bit pattern is a code. */
struct order {
    uint16_t symbol[LITLEN_CODES];
    uint16_t count[MAX_BITS + 1]; /* number of codes of each length */
    unsigned total;
    bool complete;
};

/* List the symbols that have a code.  Most have none, so look at 8 at a time.  Returns the number of those listed. */
static unsigned
list_used(const uint8_t *length, unsigned symbols, uint16_t *used)
{
    unsigned i, n = 0;

    for (i = 0; i + 8 <= symbols; i += 8) {
        uint64_t left = inflater_load(length + i);

        for (; left; left &= ~(UINT64_C(255) << (__builtin_ctzll(left) & 56)))
            used[n++] = (uint16_t)(i + ((unsigned)__builtin_ctzll(left) >> 3));
    }
    for (; i < symbols; i++)
        if (length[i])
            used[n++] = (uint16_t)i;
    return n;
}

static void
order_symbols(const uint8_t *length, unsigned symbols, struct order *o)
{
    uint16_t next[MAX_BITS + 1], used[LITLEN_CODES];
    uint32_t space = 0;
    unsigned bits, i, n = list_used(length, symbols, used);

    memset(o->count, 0, sizeof(o->count));
    for (i = 0; i < n; i++)
        o->count[length[used[i]]]++;
    o->total = 0;
    for (bits = 1; bits <= MAX_BITS; bits++) {
        next[bits] = (uint16_t)o->total;
        o->total += o->count[bits];
        space += (uint32_t)o->count[bits] << (MAX_BITS - bits);
    }
    o->complete = space == 1u << MAX_BITS;
    for (i = 0; i < n; i++)
        o->symbol[next[length[used[i]]]++] = used[i];
}

/* Returns the index bits of a second level whose first code has `bits` bits; left[] counts the codes not yet placed. */
static unsigned
subtable_bits(const uint16_t *left, unsigned bits, unsigned index_bits)
{
    unsigned size = bits - index_bits;
    int room = 1 << size;

    while (size + index_bits < MAX_BITS) {
        room -= left[size + index_bits];
        if (room <= 0)
            break;
        size++;
        room <<= 1;
    }
    return size;
}

/* The format of a table's entries. */
struct code_form {
    unsigned index_bits;
    unsigned code_shift; /* second position of the number of code bits; the first is bit 0 */
    uint64_t subtable;   /* the flag of a subtable */
};

static const struct code_form litlen_form = {LITLEN_BITS, CODE_SHIFT, IS_OTHER | IS_SUBTABLE};
static const struct code_form dist_form = {DIST_BITS, DIST_CODE_SHIFT, IS_OTHER_DIST};
static const struct code_form small_form = {INFLATER_SMALL_BITS, DIST_CODE_SHIFT, 0};

/* Returns what a code of `bits` bits adds to its payload. */
static inline uint64_t
of_code(const struct code_form *f, unsigned bits)
{
    return bits | (uint64_t)bits << f->code_shift;
}

/*
 * Build the first level for the codes of at most index_bits bits.  A table for n bits, twice in a row, is the table for
 * n + 1 bits without the codes of n + 1 bits.  *code returns the first code of more bits.  Returns how many codes it
 * placed.
 */
static unsigned
make_first_level(const struct order *o, const struct code_form *f, const uint64_t *payload, uint64_t *table,
                 uint32_t *code)
{
    unsigned bits, i = 0, end = 0;

    *code = 0;
    for (bits = 1; bits <= f->index_bits; bits++, *code <<= 1) {
        if (i > 0)
            memcpy(table + ((size_t)1 << (bits - 1)), table, sizeof(*table) << (bits - 1));
        for (end += o->count[bits]; i < end; i++, ++*code)
            table[reverse(*code, bits)] = payload[o->symbol[i]] + of_code(f, bits);
    }
    return i;
}

/*
 * Build the table of a complete canonical code.  payload[symbol] is the entry without the bits of the code; *used
 * returns the number of entries filled.  Returns false if the table has no room; this cannot happen with a complete
 * code.
 */
static bool
make_table(const struct order *o, const struct code_form *f, const uint64_t *payload, uint64_t *table, size_t room,
           unsigned *used)
{
    const unsigned index_bits = f->index_bits;
    const uint32_t index_mask = (1u << index_bits) - 1;
    uint16_t left[MAX_BITS + 1];
    uint32_t code, at, prefix = UINT32_MAX;
    size_t end = (size_t)1 << index_bits, begin = 0;
    unsigned bits = index_bits + 1, k, size = 0, i = make_first_level(o, f, payload, table, &code);

    memcpy(left, o->count, sizeof(left));
    for (; i < o->total; bits++, code <<= 1) {
        for (k = o->count[bits]; k > 0; k--, i++, code++, left[bits]--) {
            uint32_t low = reverse(code, bits);

            if ((low & index_mask) != prefix) {
                prefix = low & index_mask;
                size = subtable_bits(left, bits, index_bits);
                begin = end;
                end += (size_t)1 << size;
                if (end > room)
                    return false;
                table[prefix] = f->subtable | (uint64_t)begin << 32 | index_bits | (uint64_t)size << f->code_shift;
            }
            for (at = low >> index_bits; at < 1u << size; at += 1u << (bits - index_bits))
                table[begin + at] = payload[o->symbol[i]] + of_code(f, bits - index_bits);
        }
    }
    *used = (unsigned)end;
    return true;
}

/* RFC 1951, 3.2.5. */
static const uint16_t length_base[29] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                         31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
static const uint8_t length_extra[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                         2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};

static uint64_t
length_payload(uint32_t i)
{
    bool whole = length_extra[i] == 0 && length_base[i] <= LOOP_COPY;

    return (whole ? HAS_LENGTH : IS_OTHER | IS_LENGTH) | (uint64_t)length_base[i] << 16 | length_extra[i];
}

void
inflater_prepare_tables(struct inflater *t)
{
    uint32_t i;

    for (i = 0; i < 256; i++)
        t->litlen_payload[i] = (uint64_t)i << 32 | 1u << 24;
    t->litlen_payload[256] = IS_OTHER | IS_END;
    for (i = 257; i < LITLEN_CODES; i++)
        t->litlen_payload[i] = i - 257 < 29 ? length_payload(i - 257) : IS_OTHER;
    for (i = 0; i < DIST_CODES; i++) {
        uint32_t extra = i < 4 ? 0 : (i - 2) / 2;
        uint32_t base = 1 + (i < 4 ? i : (2 + (i & 1)) << extra);

        t->dist_payload[i] = i < 30 ? (uint64_t)base << 16 | extra : IS_OTHER_DIST;
    }
    for (i = 0; i < 1u << DIST_BITS; i++)
        t->turned[i] = (uint8_t)reverse(i, DIST_BITS);
}

/* ---- iterations ----------------------------------------------------------------------------------------------- */

/*
 * The tables of an iteration have up to three symbols for each value of the next bits of the stream.  They are built in
 * the order of the codes: the first bit of the stream is the highest of an index.  Then all values that begin with one
 * code are a run, and the symbols after this code are a whole table for fewer bits.  So the run is the sum of the
 * code's entry and that table.  A block of a radiograph has about 20 codes of at most LOOP_BITS bits.
 */

/* A code of at most LOOP_BITS bits.  A length with one extra bit is two of them, each with the value of this bit. */
struct code {
    uint64_t entry; /* as in symbol; 0: none that an iteration decodes */
    uint16_t begin; /* the code, then 0 bits: LOOP_BITS in all */
    uint8_t bits;
    bool literal;
};

struct codes {
    struct code code[2 * LITLEN_CODES];
    unsigned count;
    uint32_t end; /* the first value of LOOP_BITS bits after these codes */
};

static void
add_code(struct codes *c, uint64_t entry, unsigned bits)
{
    c->code[c->count++] = (struct code){entry, (uint16_t)c->end, (uint8_t)bits, COUNT(entry) > 0};
    c->end += 1u << (LOOP_BITS - bits);
}

static void
list_codes(const struct order *o, const uint64_t *payload, struct codes *c)
{
    unsigned bits, i = 0, end = 0;

    c->count = 0;
    c->end = 0;
    for (bits = 1; bits <= LOOP_BITS; bits++) {
        for (end += o->count[bits]; i < end; i++) {
            uint64_t e = payload[o->symbol[i]], length = HAS_LENGTH | (e & 0xff0000);

            if ((e & IS_LENGTH) && LENGTH(e) < LOOP_COPY && bits < LOOP_BITS) {
                add_code(c, length + bits + 1, bits + 1);
                add_code(c, length + (1u << 16) + bits + 1, bits + 1);
            } else if (e & IS_OTHER) {
                add_code(c, 0, bits);
            } else { /* CODE_SHIFT counts only the bits of literals */
                add_code(c, e + (COUNT(e) > 0 ? of_code(&litlen_form, bits) : bits), bits);
            }
        }
    }
}

/*
 * A table for each number of bits: entries 2^n to 2^(n+1) - 1 are for n bits.  Their literals are moved up by a number
 * of bytes, to the place where they are added.
 */
#define LANES 4
typedef uint64_t lanes __attribute__((vector_size(LANES * sizeof(uint64_t))));

struct tails {
    uint64_t entry[(1 << LOOP_BITS) + LANES];
};

/* out[0 .. n - 1] = entry + tail[0 .. n - 1]; tail may be NULL.  Reads and writes whole vectors. */
static inline void
make_run(uint64_t *out, uint64_t entry, const uint64_t *tail, uint32_t n)
{
    lanes v = {entry, entry, entry, entry};
    uint32_t i;

    for (i = 0; tail && i < n; i += LANES) {
        lanes following;

        memcpy(&following, tail + i, sizeof(following));
        following += v;
        memcpy(out + i, &following, sizeof(following));
    }
    for (; i < n; i += LANES)
        memcpy(out + i, &v, sizeof(v));
}

/*
 * Write the table for n bits: each symbol with its literal moved up by `bytes`, and what follows a literal, from
 * `tails`.  none: the entry of values without a symbol.  What a run writes after its end is overwritten later.  The
 * first code of more than n bits ends the loop: after it come only longer ones, and long lengths, which are none.
 */
static inline __attribute__((always_inline)) void
make_runs(const struct codes *c, unsigned n, unsigned bytes, const struct tails *tails, uint64_t none, uint64_t *out)
{
    const unsigned shift = LOOP_BITS - n;
    uint32_t at;
    unsigned i;

    for (i = 0; i < c->count && c->code[i].bits <= n; i++) {
        const struct code *code = &c->code[i];
        uint64_t e = code->entry;
        uint32_t run = 1u << (n - code->bits);

        at = code->begin >> shift;
        if (e == 0)
            make_run(out + at, none, NULL, run);
        else if (!code->literal)
            make_run(out + at, e, NULL, run);
        else
            make_run(out + at, (e & UINT32_MAX) + (e >> 32 << (32 + 8 * bytes)), tails ? tails->entry + run : NULL,
                     run);
    }
    for (at = (i < c->count ? c->code[i].begin : c->end) >> shift; at < 1u << n; at++)
        out[at] = none;
}

/* The loop tables, in the order of the codes. */
struct joined {
    uint64_t first[(1 << LOOP_BITS) + LANES], second[(1 << DIST_BITS) + LANES];
};

/* shortest: the bits of the shortest code.  Every literal takes at least as many. */
static void
make_joined(const struct codes *c, unsigned shortest, struct joined *joined)
{
    struct tails one = {{0}}, two = {{0}};
    unsigned n;

    for (n = 0; n + 2 * shortest <= LOOP_BITS; n++)
        make_runs(c, n, 2, NULL, 0, one.entry + (1u << n));
    for (n = 0; n + shortest <= LOOP_BITS; n++)
        make_runs(c, n, 1, &one, 0, two.entry + (1u << n));
    make_runs(c, LOOP_BITS, 0, &two, IS_OTHER, joined->first);
    make_runs(c, DIST_BITS, 0, &two, IS_OTHER, joined->second);
}

static inline void
put_u32le(uint8_t *p, uint32_t v)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap32(v);
#endif
    memcpy(p, &v, sizeof(v));
}

static inline void
put_first(struct inflater *t, uint32_t i, uint64_t e)
{
    t->first[i] = (uint16_t)e;
    t->count[i] = (uint8_t)COUNT(e);
    put_u32le(t->literals[i], (uint32_t)(e >> 32) | (uint32_t)(e & 0xff0000) << 8);
}

_Static_assert(LOOP_BITS == DIST_BITS + 1 && DIST_BITS == 8, "an index reversed is that of the other table, reversed");

static void
make_loop_tables(struct inflater *t, const struct joined *joined)
{
    uint32_t i;

    for (i = 0; i < 1u << DIST_BITS; i++) {
        uint32_t turned = t->turned[i], d = t->dist[i];
        uint32_t far = (d & IS_OTHER_DIST) == 0 && d >> 16 >= LOOP_COPY ? d : 0;
        uint64_t e = joined->second[turned];

        put_first(t, i, joined->first[2 * turned]);
        put_first(t, i + (1u << DIST_BITS), joined->first[2 * turned + 1]);
        put_u32le(t->second[i][0], (uint32_t)(e >> 32) << 8 | COUNT(e) << 6 | CODE_BITS(e));
        put_u32le(t->second[i][1], far);
    }
}

static bool
make_dist_table(struct inflater *t, unsigned litlen, unsigned dist)
{
    uint64_t table[DIST_ENTRIES];
    struct order o;
    unsigned i, used = 1u << DIST_BITS;

    order_symbols(t->lengths + litlen, dist, &o);
    if (!o.complete) {
        /* Of the incomplete codes, zlib accepts one code of one bit, or none.  Other bit patterns are invalid. */
        if (o.total > 1 || (o.total == 1 && o.count[1] != 1))
            return false;
        for (i = 0; i < used; i++)
            t->dist[i] = o.total == 1 && (i & 1) == 0
                             ? (uint32_t)(t->dist_payload[o.symbol[0]] + of_code(&dist_form, 1))
                             : IS_OTHER_DIST;
        return true;
    }
    if (!make_table(&o, &dist_form, t->dist_payload, table, DIST_ENTRIES, &used))
        return false;
    for (i = 0; i < used; i++) /* move a subtable's first entry to the bits of a distance */
        t->dist[i] = (uint32_t)table[i] | (uint32_t)(table[i] >> 32) << 16;
    return true;
}

bool
inflater_make_tables(struct inflater *t, unsigned litlen, unsigned dist)
{
    struct joined joined;
    struct codes codes;
    struct order o;
    unsigned used, shortest = 1;

    order_symbols(t->lengths, litlen, &o);
    if (!o.complete || t->lengths[256] == 0 ||
        !make_table(&o, &litlen_form, t->litlen_payload, t->symbol, LITLEN_ENTRIES, &used) ||
        !make_dist_table(t, litlen, dist))
        return false;
    while (shortest < LOOP_BITS && o.count[shortest] == 0)
        shortest++;
    list_codes(&o, t->litlen_payload, &codes);
    make_joined(&codes, shortest, &joined);
    make_loop_tables(t, &joined);
    return true;
}

bool
inflater_make_small_table(const uint8_t *length, unsigned symbols, uint8_t *symbol, uint8_t *bits)
{
    uint64_t payload[LITLEN_CODES], table[1 << INFLATER_SMALL_BITS];
    struct order o;
    unsigned i, used;

    for (i = 0; i < symbols; i++)
        payload[i] = (uint64_t)i << 32;
    order_symbols(length, symbols, &o);
    if (!o.complete || !make_table(&o, &small_form, payload, table, 1 << INFLATER_SMALL_BITS, &used))
        return false;
    for (i = 0; i < 1 << INFLATER_SMALL_BITS; i++) {
        symbol[i] = (uint8_t)(table[i] >> 32);
        bits[i] = (uint8_t)BITS(table[i]);
    }
    return true;
}
