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

/*
 * Make the table of a complete canonical code; payload[symbol] is the entry without its bits.  False where the table
 * has no room, which a complete code does not do.
 */
static bool
make_table(const struct order *o, const uint32_t *payload, unsigned index_bits, uint32_t *table, size_t room)
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
                for (at = low; at <= index_mask; at += 1u << bits)
                    table[at] = payload[o->symbol[i]] | bits << 24;
                continue;
            }
            if ((low & index_mask) != prefix) {
                prefix = low & index_mask;
                size = subtable_bits(left, bits, index_bits);
                begin = end;
                end += (size_t)1 << size;
                if (end > room)
                    return false;
                table[prefix] = IS_SUBTABLE | (uint32_t)begin | size << 16;
            }
            for (at = low >> index_bits; at < 1u << size; at += 1u << (bits - index_bits))
                table[begin + at] = payload[o->symbol[i]] | (bits - index_bits) << 24;
        }
    }
    return true;
}

/* RFC 1951, 3.2.5. */
static const uint16_t length_base[29] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                         31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
static const uint8_t length_extra[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                         2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};

static void
litlen_payload(uint32_t *payload)
{
    unsigned i;

    for (i = 0; i < 256; i++)
        payload[i] = IS_LITERAL | i;
    payload[256] = IS_END;
    for (i = 257; i < LITLEN_CODES; i++)
        payload[i] = i - 257 < 29 ? length_base[i - 257] | (uint32_t)length_extra[i - 257] << 9 : IS_OTHER;
}

static void
dist_payload(uint32_t *payload)
{
    unsigned i;

    for (i = 0; i < DIST_CODES; i++) {
        unsigned extra = i < 4 ? 0 : (i - 2) / 2;
        uint32_t base = i < 4 ? i : (2 + (i & 1)) << extra;

        payload[i] = i < 30 ? base | extra << 16 : IS_OTHER;
    }
}

/* Join the symbols that one index covers. */
static void
join_symbols(const uint32_t *symbol, uint64_t *entry)
{
    uint32_t i;

    for (i = 0; i < 1u << LITLEN_BITS; i++) {
        uint64_t literals = 0, other = 0;
        unsigned bits = 0, count = 0;

        while (count < 3) {
            uint32_t e = symbol[i >> bits];
            unsigned more = BITS(e);

            if (bits + more > LITLEN_BITS || (count > 0 && e & IS_OTHER))
                break;
            if (!(e & IS_LITERAL)) {
                /* A subtable has no bits of its own here: its index is what remains. */
                bits += more;
                other = e;
                break;
            }
            literals |= (uint64_t)(e & 255) << (8 * count++);
            bits += more;
        }
        entry[i] = literals | (uint64_t)bits << 24 | (uint64_t)count << 28 | other << 32;
    }
}

bool
inflate_make_tables(struct inflate_tables *t, unsigned litlen, unsigned dist)
{
    uint32_t payload[LITLEN_CODES];
    struct order o;

    order_symbols(t->lengths, litlen, &o);
    litlen_payload(payload);
    if (!o.complete || t->lengths[256] == 0 || !make_table(&o, payload, LITLEN_BITS, t->symbol, LITLEN_ENTRIES))
        return false;
    join_symbols(t->symbol, t->entry);
    order_symbols(t->lengths + litlen, dist, &o);
    dist_payload(payload);
    if (!o.complete) {
        /* One code of one bit, or none: all that zlib lets pass.  What is not a code is invalid. */
        unsigned i;

        if (o.total > 1 || (o.total == 1 && o.count[1] != 1))
            return false;
        for (i = 0; i < 1u << DIST_BITS; i++)
            t->dist[i] = o.total == 1 && (i & 1) == 0 ? payload[o.symbol[0]] | 1u << 24 : IS_OTHER;
        return true;
    }
    return make_table(&o, payload, DIST_BITS, t->dist, DIST_ENTRIES);
}

bool
inflate_make_small_table(const uint8_t *length, unsigned symbols, uint8_t *symbol, uint8_t *bits)
{
    uint32_t payload[LITLEN_CODES], table[1 << INFLATE_SMALL_BITS];
    struct order o;
    unsigned i;

    for (i = 0; i < symbols; i++)
        payload[i] = i;
    order_symbols(length, symbols, &o);
    if (!o.complete || !make_table(&o, payload, INFLATE_SMALL_BITS, table, 1 << INFLATE_SMALL_BITS))
        return false;
    for (i = 0; i < 1 << INFLATE_SMALL_BITS; i++) {
        symbol[i] = (uint8_t)(table[i] & 255);
        bits[i] = (uint8_t)BITS(table[i]);
    }
    return true;
}
