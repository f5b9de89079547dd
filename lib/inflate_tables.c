/*
 * inflate_tables.c - look-up tables for canonical Huffman codes (RFC 1951, 3.2.2)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inflate_private.h"

#include <string.h>

/* The lowest `bits` bits in the opposite order: codes come with their first bit lowest. */
static uint32_t
reverse(uint32_t code, unsigned bits)
{
    code = (code & 0x5555) << 1 | (code >> 1 & 0x5555);
    code = (code & 0x3333) << 2 | (code >> 2 & 0x3333);
    code = (code & 0x0f0f) << 4 | (code >> 4 & 0x0f0f);
    code = (code & 0x00ff) << 8 | (code >> 8 & 0x00ff);
    return code >> (16 - bits);
}

/* Symbols in the order of their codes: by length, then by number.  *complete: the code leaves no bits unused. */
struct order {
    uint16_t symbol[LITLEN_CODES];
    uint16_t count[MAX_BITS + 1]; /* of each length */
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

/* Index bits of the second level that begins with a code of `bits` bits; left[] counts the codes not yet placed. */
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

/* What a code of `bits` bits adds to its payload. */
static inline uint64_t
of_code(unsigned bits)
{
    return bits | bits << 8;
}

/*
 * Make the table of a complete canonical code; payload[symbol] is the entry without the bits of the code, other the
 * mark of a subtable; *used entries are filled.  False where the table has no room, which a complete code does not do.
 */
static bool
make_table(const struct order *o, const uint64_t *payload, unsigned index_bits, uint64_t other, uint64_t *table,
           size_t room, unsigned *used)
{
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
                uint64_t entry = payload[o->symbol[i]] + of_code(bits);

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
                table[prefix] = other | (uint64_t)begin << 32 | index_bits | size << 8;
            }
            for (at = low >> index_bits; at < 1u << size; at += 1u << (bits - index_bits))
                table[begin + at] = payload[o->symbol[i]] + of_code(bits - index_bits);
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

void
inflate_prepare_tables(struct inflate_tables *t)
{
    uint32_t i;

    for (i = 0; i < 256; i++)
        t->litlen_payload[i] = (uint64_t)i << 32 | 1u << 14;
    t->litlen_payload[256] = IS_OTHER | IS_END;
    for (i = 257; i < LITLEN_CODES; i++)
        t->litlen_payload[i] = i - 257 < 29 ? (uint64_t)length_base[i - 257] << 16 | length_extra[i - 257]
                                            : (uint64_t)IS_OTHER;
    for (i = 0; i < DIST_CODES; i++) {
        uint32_t extra = i < 4 ? 0 : (i - 2) / 2;
        uint32_t base = 1 + (i < 4 ? i : (2 + (i & 1)) << extra);

        t->dist_payload[i] = i < 30 ? (uint64_t)base << 16 | extra : IS_OTHER_DIST;
    }
}

/* Entry a and behind it that of the symbol whose code comes next in index, if a is of literals and b's code is whole. */
static inline uint64_t
join(const uint64_t *symbol, uint32_t index, uint64_t a)
{
    uint64_t b = symbol[index >> BITS(a)];
    uint64_t sum = a + (b & UINT32_MAX) + (b >> 32 << (32 + 8 * COUNT(a)));
    /* Nothing here can be predicted: bit 63 of each number that is not 0, or of a difference below 0. */
    uint64_t bad = ((uint64_t)0 - LENGTH(a)) | (b & IS_OTHER) << 32 | ((uint64_t)LITLEN_BITS - CODE_BITS(sum));
    uint64_t keep = (uint64_t)0 - (bad >> 63);

    return (a & keep) | (sum & ~keep);
}

static void
join_symbols(const uint64_t *symbol, uint64_t *entry)
{
    uint32_t i;

    for (i = 0; i < 1u << LITLEN_BITS; i++)
        entry[i] = join(symbol, i, join(symbol, i, symbol[i]));
}

static bool
make_dist_table(struct inflate_tables *t, unsigned litlen, unsigned dist)
{
    uint64_t table[DIST_ENTRIES];
    struct order o;
    unsigned i, used = 1u << DIST_BITS;

    order_symbols(t->lengths + litlen, dist, &o);
    if (!o.complete) {
        /* One code of one bit, or none: all that zlib lets pass.  What is not a code is invalid. */
        if (o.total > 1 || (o.total == 1 && o.count[1] != 1))
            return false;
        for (i = 0; i < used; i++)
            t->dist[i] = o.total == 1 && (i & 1) == 0 ? (uint32_t)(t->dist_payload[o.symbol[0]] + of_code(1))
                                                      : IS_OTHER_DIST;
        return true;
    }
    if (!make_table(&o, t->dist_payload, DIST_BITS, IS_OTHER_DIST, table, DIST_ENTRIES, &used))
        return false;
    for (i = 0; i < used; i++) /* a subtable's begin moves to where a distance stands */
        t->dist[i] = (uint32_t)table[i] | (uint32_t)(table[i] >> 32) << 16;
    return true;
}

bool
inflate_make_tables(struct inflate_tables *t, unsigned litlen, unsigned dist)
{
    struct order o;
    unsigned used;

    order_symbols(t->lengths, litlen, &o);
    if (!o.complete || t->lengths[256] == 0 ||
        !make_table(&o, t->litlen_payload, LITLEN_BITS, IS_OTHER | IS_SUBTABLE, t->symbol, LITLEN_ENTRIES, &used))
        return false;
    join_symbols(t->symbol, t->entry);
    return make_dist_table(t, litlen, dist);
}

bool
inflate_make_small_table(const uint8_t *length, unsigned symbols, uint8_t *symbol, uint8_t *bits)
{
    uint64_t payload[LITLEN_CODES], table[1 << INFLATE_SMALL_BITS];
    struct order o;
    unsigned i, used;

    for (i = 0; i < symbols; i++)
        payload[i] = (uint64_t)i << 32;
    order_symbols(length, symbols, &o);
    if (!o.complete || !make_table(&o, payload, INFLATE_SMALL_BITS, 0, table, 1 << INFLATE_SMALL_BITS, &used))
        return false;
    for (i = 0; i < 1 << INFLATE_SMALL_BITS; i++) {
        symbol[i] = (uint8_t)(table[i] >> 32);
        bits[i] = (uint8_t)BITS(table[i]);
    }
    return true;
}
