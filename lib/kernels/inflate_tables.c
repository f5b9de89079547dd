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

static void
order_symbols(const uint8_t *length, unsigned symbols, struct order *o)
{
    uint16_t next[MAX_BITS + 1];
    uint32_t used = 0;
    unsigned bits, i;

    memset(o->count, 0, sizeof(o->count));
    for (i = 0; i < symbols; i++)
        o->count[length[i]]++;
    o->count[0] = 0;
    o->total = 0;
    for (bits = 1; bits <= MAX_BITS; bits++) {
        next[bits] = (uint16_t)o->total;
        o->total += o->count[bits];
        used += (uint32_t)o->count[bits] << (MAX_BITS - bits);
    }
    o->complete = used == 1u << MAX_BITS;
    for (i = 0; i < symbols; i++)
        if (length[i])
            o->symbol[next[length[i]]++] = (uint16_t)i;
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
    uint32_t code = 0, prefix = UINT32_MAX;
    size_t end = (size_t)1 << index_bits, begin = 0;
    unsigned bits, i = 0, k, size = 0;

    memcpy(left, o->count, sizeof(left));
    for (bits = 1; bits <= MAX_BITS; bits++, code <<= 1) {
        for (k = o->count[bits]; k > 0; k--, i++, code++, left[bits]--) {
            uint32_t low = reverse(code, bits), at;

            if (bits <= index_bits) {
                uint64_t entry = payload[o->symbol[i]] + of_code(f, bits);

                for (at = low; at <= index_mask; at += 1u << bits)
                    table[at] = entry;
                continue;
            }
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
}

/* ---- iterations ----------------------------------------------------------------------------------------------- */

/*
 * The symbols that may follow a literal, for each number of index bits that the literal leaves: the next literal or
 * length whose code is complete in these bits, and after a literal one more.  Entries 2^n to 2^(n+1) - 1 are for n
 * bits; 0 means none.
 */
struct tails {
    uint64_t entry[1 << LOOP_BITS]; /* a literal leaves at most LOOP_BITS - 1 bits */
};

static inline void
put_u32le(uint8_t *p, uint32_t v)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap32(v);
#endif
    memcpy(p, &v, sizeof(v));
}

/* Returns all ones if bit 63 is 0, else 0.  Not a branch: the symbols cannot be predicted. */
static inline uint64_t
unless(uint64_t sign)
{
    return (sign >> 63) - 1;
}

/* Returns the first symbol of index if its code is complete in n bits and its entry has no bit 15; otherwise 0. */
static inline uint64_t
whole_symbol(const uint64_t *symbol, uint32_t index, unsigned n)
{
    uint64_t e = symbol[index];

    /* Clear the code bits of a length: CODE_SHIFT counts only the bits of literals. */
    e &= ~((0 - (e >> 10 & 1)) & (uint64_t)15 << CODE_SHIFT);
    return e & unless((e & IS_OTHER) << 48 | ((uint64_t)n - BITS(e)));
}

/* Join entry a with the entry that follows it, if a is a literal. */
static inline uint64_t
join(uint64_t a, uint64_t following)
{
    following &= 0 - (uint64_t)COUNT(a);
    return a + (following & UINT32_MAX) + (following >> 32 << 40);
}

/* Complete the lengths with one extra bit, if the index has that bit and an iteration can copy the length. */
static void
join_extra_bits(uint64_t *symbol)
{
    uint32_t i;

    for (i = 0; i < 1u << LITLEN_BITS; i++) {
        uint64_t e = symbol[i];

        if ((e & IS_LENGTH) && LENGTH(e) < LOOP_COPY && BITS(e) <= LITLEN_BITS)
            symbol[i] = HAS_LENGTH | BITS(e) | (uint64_t)(LENGTH(e) + (i >> CODE_BITS(e) & 1)) << 16;
    }
}

static void
make_tails(const uint64_t *symbol, unsigned most_bits, struct tails *tails)
{
    unsigned n;
    uint32_t i;

    for (n = 0; n <= most_bits; n++) {
        uint64_t *entry = tails->entry + (1u << n);

        for (i = 0; i < 1u << n; i++) {
            uint64_t a = whole_symbol(symbol, i, n);

            entry[i] = join(a, whole_symbol(symbol, i >> BITS(a), n - BITS(a)));
        }
    }
}

/* Returns up to three symbols from the first n bits of index; 0 if the first has bit 15 or does not fit. */
static inline uint64_t
joined(const uint64_t *symbol, const struct tails *tails, uint32_t index, unsigned n)
{
    uint64_t a = whole_symbol(symbol, index, n);
    size_t tail = ((size_t)1 << (n - BITS(a))) + (index >> BITS(a));

    return join(a, tails->entry[tail & (0 - (size_t)COUNT(a))]);
}

static void
make_loop_tables(struct inflater *t, const struct tails *tails)
{
    uint32_t i;

    for (i = 0; i < 1u << LOOP_BITS; i++) {
        uint64_t e = joined(t->symbol, tails, i, LOOP_BITS);

        t->first[i] = (uint16_t)(e == 0 ? IS_OTHER : e);
        t->count[i] = (uint8_t)COUNT(e);
        put_u32le(t->literals[i], (uint32_t)(e >> 32) | (uint32_t)(e & 0xff0000) << 8);
    }
    for (i = 0; i < 1u << DIST_BITS; i++) {
        uint64_t e = joined(t->symbol, tails, i, DIST_BITS);
        uint32_t d = t->dist[i], far = (d & IS_OTHER_DIST) == 0 && d >> 16 >= LOOP_COPY ? d : 0;

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
    struct tails tails;
    struct order o;
    unsigned used, shortest = 1;

    order_symbols(t->lengths, litlen, &o);
    if (!o.complete || t->lengths[256] == 0 ||
        !make_table(&o, &litlen_form, t->litlen_payload, t->symbol, LITLEN_ENTRIES, &used) ||
        !make_dist_table(t, litlen, dist))
        return false;
    join_extra_bits(t->symbol);
    while (shortest < LOOP_BITS && o.count[shortest] == 0)
        shortest++;
    make_tails(t->symbol, LOOP_BITS - shortest, &tails);
    make_loop_tables(t, &tails);
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
