/*
 * test_inflate_streams.c - compares our inflate with zlib on streams that no compressor makes
 *
 * Each stream is built by hand.  zlib's message is the expected fault.  Our inflate must accept exactly what zlib
 * accepts, with the same bytes, in plain C and in the variant of this CPU.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "deflate_fixture.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

/* ---- lengths of codes ------------------------------------------------------------------------------------------ */

/* Two literals and the end; one distance. */
static const uint8_t small_litlen[288] = {['a'] = 1, ['b'] = 2, [256] = 3, [257] = 3};
static const uint8_t one_dist[32] = {1};

TEST_CASE("inflate", "streams made by hand", NULL, NULL);

TEST(a_block_with_codes_of_its_own_is_taken)
{
    struct bits *b = new_bits();

    put_dynamic(b, 258, small_litlen, 1, one_dist);
    put_symbol(b, small_litlen, 258, 'a');
    put_symbol(b, small_litlen, 258, 'b');
    put_symbol(b, small_litlen, 258, 257);
    put(b, 0, 1); /* the only distance, 1 */
    put_symbol(b, small_litlen, 258, 256);
    judge(b, NULL);
}

TEST(too_many_symbols_are_refused)
{
    struct bits *b = new_bits();

    put_dynamic(b, 287, small_litlen, 1, one_dist);
    judge(b, "too many length or distance symbols");
    b = new_bits();
    put_dynamic(b, 258, small_litlen, 31, one_dist);
    judge(b, "too many length or distance symbols");
}

TEST(code_lengths_in_an_incomplete_or_oversubscribed_code_are_refused)
{
    for (unsigned bits = 1; bits <= 3; bits += 2) { /* too many or too few bits for four of them */
        struct bits *b = new_bits();

        put_block(b, true, 2);
        put(b, 0, 10);
        put(b, 0, 4);
        for (int i = 0; i < 4; i++)
            put(b, bits, 3);
        put(b, 0, 32);
        judge(b, "invalid code lengths set");
    }
}

TEST(a_repetition_of_nothing_or_beyond_the_end_is_refused)
{
    struct bits *b = new_bits();

    put_counts(b, 257, 1);
    put_length(b, 16);
    put(b, 0, 2);
    put(b, 0, 32);
    judge(b, "invalid bit length repeat");
    for (unsigned which = 16; which <= 18; which++) {
        b = new_bits();
        put_counts(b, 257, 1);
        for (int i = 0; i < 256; i++)
            put_length(b, 8);
        put_length(b, which);
        put(b, 127, which == 16 ? 2 : which == 17 ? 3 : 7);
        put(b, 0, 32);
        judge(b, "invalid bit length repeat");
    }
}

TEST(every_kind_of_repetition_is_taken)
{
    struct bits *b = new_bits();
    uint8_t length[257] = {[0] = 2, [1] = 2, [2] = 2, [256] = 2};

    put_counts(b, 257, 1);
    put_length(b, 2);
    put_length(b, 2);
    put_length(b, 2);
    put_length(b, 18);
    put(b, 127, 7); /* 138 times 0 */
    put_length(b, 18);
    put(b, 94, 7); /* 105 */
    put_length(b, 17);
    put(b, 7, 3); /* 10: up to 255 */
    put_length(b, 2);
    put_length(b, 0); /* no distances */
    put_symbol(b, length, 257, 2);
    put_symbol(b, length, 257, 256);
    judge(b, NULL);

    b = new_bits();
    put_counts(b, 257, 4);
    for (int i = 0; i < 250; i++)
        put_length(b, i == 200 ? 1 : 0);
    for (int i = 250; i < 256; i++)
        put_length(b, 0);
    put_length(b, 2); /* the end */
    put_length(b, 16);
    put(b, 0, 2); /* three more: the repetition continues into the distances */
    put_length(b, 2);
    put(b, 0, 32);
    judge(b, "invalid literal/lengths set");
}

TEST(a_code_without_an_end_is_refused)
{
    struct bits *b = new_bits();
    static const uint8_t length[288] = {['a'] = 1, ['b'] = 1};

    put_dynamic(b, 257, length, 1, one_dist);
    put(b, 0, 32);
    judge(b, "invalid code -- missing end-of-block");
}

TEST(literals_in_an_incomplete_or_oversubscribed_code_are_refused)
{
    static const uint8_t few[288] = {['a'] = 1, [256] = 2}, many[288] = {['a'] = 1, ['b'] = 1, [256] = 1};
    struct bits *b = new_bits();

    put_dynamic(b, 257, few, 1, one_dist);
    put(b, 0, 32);
    judge(b, "invalid literal/lengths set");
    b = new_bits();
    put_dynamic(b, 257, many, 1, one_dist);
    put(b, 0, 32);
    judge(b, "invalid literal/lengths set");
}

TEST(distances_in_an_incomplete_or_oversubscribed_code_are_refused)
{
    static const uint8_t bad[][32] = {{1, 1, 1}, {2, 2}, {1, 2}, {2}, {15}};

    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct bits *b = new_bits();

        put_dynamic(b, 258, small_litlen, 4, bad[i]);
        put_symbol(b, small_litlen, 258, 256);
        judge(b, "invalid distances set");
    }
}

TEST(a_distance_that_has_no_code_is_refused)
{
    static const uint8_t none[32] = {0};
    struct bits *b = new_bits();

    put_dynamic(b, 258, small_litlen, 1, one_dist);
    put_symbol(b, small_litlen, 258, 'a');
    put_symbol(b, small_litlen, 258, 257);
    put(b, 1, 1); /* the unused half of the only code */
    put(b, 0, 32);
    judge(b, "invalid distance code");
    b = new_bits();
    put_dynamic(b, 258, small_litlen, 1, none);
    put_symbol(b, small_litlen, 258, 'a');
    put_symbol(b, small_litlen, 258, 257);
    put(b, 0, 32);
    judge(b, "invalid distance code");
}

/* ---- long codes: the second level ------------------------------------------------------------------------------ */

/* A complete code with one symbol for each length from 1, and two of length 15. */
static void
staircase(uint8_t *length, const uint16_t *symbols)
{
    for (unsigned i = 0; i < 16; i++)
        length[symbols[i]] = (uint8_t)(i < 15 ? i + 1 : 15);
}

TEST(codes_of_all_lengths_are_looked_up)
{
    static const uint16_t orders[][16] = {
        {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 257, 264, 256, 285},
        {256, 285, 284, 257, 258, 265, 280, 13, 14, 15, 16, 17, 18, 19, 20, 21},
    };

    for (unsigned which = 0; which < 2; which++) {
        uint8_t litlen[288] = {0}, dist[32] = {0};
        struct bits *b = new_bits();

        staircase(litlen, orders[which]);
        for (unsigned i = 0; i < 16; i++)
            dist[i] = (uint8_t)(i < 15 ? i + 1 : 15);
        put_dynamic(b, 286, litlen, 16, dist);
        for (unsigned i = 0; i < 300; i++) /* so that a match has a source */
            put_symbol(b, litlen, 286, orders[which][which == 0 ? i % 12 : 7 + i % 9]);
        for (unsigned d = 0; d < 16; d++) {
            for (unsigned i = 0; i < 16; i++) {
                unsigned symbol = orders[which][i], length_extra, dist_extra = d < 4 ? 0 : (d - 2) / 2;

                if (symbol == 256)
                    continue;
                put_symbol(b, litlen, 286, symbol);
                if (symbol < 256)
                    continue;
                length_extra = symbol < 265 || symbol == 285 ? 0 : (symbol - 261) / 4;
                put(b, 1, length_extra);
                put_symbol(b, dist, 16, d);
                put(b, (1u << dist_extra) - 1, dist_extra);
            }
        }
        put_symbol(b, litlen, 286, 256);
        judge(b, NULL);
    }
}

/* ---- the fixed code, the window -------------------------------------------------------------------------------- */

TEST(symbols_without_a_meaning_are_refused)
{
    for (unsigned symbol = 286; symbol < 288; symbol++) {
        struct bits *b = new_bits();

        put_block(b, true, 1);
        put_fixed(b, 'a');
        put_fixed(b, symbol);
        put(b, 0, 32);
        judge(b, "invalid literal/length code");
    }
    for (unsigned dist = 30; dist < 32; dist++) {
        struct bits *b = new_bits();

        put_block(b, true, 1);
        put_fixed(b, 'a');
        put_fixed(b, 257);
        put_code(b, dist, 5);
        put(b, 0, 32);
        judge(b, "invalid distance code");
    }
}

/*
 * If such a symbol were ignored, or were the start of another one: a distance of 1 follows, the end, and the checksum
 * of that output.
 */
TEST(an_invalid_distance_code_is_refused)
{
    static const uint8_t sum[4] = {0x03, 0xce, 0x01, 0x85}; /* Adler-32 of "aaaa" */
    const struct inflater_kind *kind;

    for (unsigned dist = 30; dist < 32; dist++) {
        struct bits *b = new_bits();
        uint8_t out[4 + INFLATER_OUT_SLACK];
        size_t size;

        put_block(b, true, 1);
        put_fixed(b, 'a');
        put_fixed(b, 257);
        put_code(b, dist, 5);
        put_code(b, 0, 5);
        put_fixed(b, 256);
        size = (b->used + 7) / 8;
        memcpy(b->data + size, sum, sizeof(sum));
        for (kind = inflater_kinds; kind->name; kind++) {
            struct inflater *t = kind->supported() ? inflater_new(kind) : NULL;

            ck_assert(!t || !inflater_exactly(t, b->data, size + sizeof(sum), out, 4));
            inflater_free(t);
        }
        judge(b, "invalid distance code");
    }
}

/* `before` literals, then a match of three bytes at a distance of 24577 to 32768, the size of the window. */
static void
reach(unsigned before, unsigned code, unsigned extra, unsigned extra_bits, const char *text)
{
    struct bits *b = new_bits();

    put_block(b, true, 1);
    for (unsigned i = 0; i < before; i++)
        put_fixed(b, i * 7 % 251);
    put_fixed(b, 257);
    put_code(b, code, 5);
    put(b, extra, extra_bits);
    put_fixed(b, 256);
    if (text)
        put(b, 0, 32);
    judge(b, text);
}

TEST(a_distance_may_reach_the_first_byte_and_not_beyond)
{
    reach(1, 0, 0, 0, NULL);
    reach(0, 0, 0, 0, "invalid distance too far back");
    reach(2, 2, 0, 0, "invalid distance too far back");
    reach(3, 2, 0, 0, NULL);
    reach(32768, 29, 8191, 13, NULL);
    reach(32767, 29, 8191, 13, "invalid distance too far back");
    reach(32767, 29, 8190, 13, NULL);
    reach(40000, 29, 8191, 13, NULL);
}

TEST(matches_of_every_length_and_many_distances_equal_zlib)
{
    static const uint16_t base[29] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                      31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};

    for (unsigned distance = 1; distance <= 40; distance++) {
        struct bits *b = new_bits();
        unsigned code = 0, extra = 0;

        while (code < 29 && (code + 1 < 4 ? code + 2 : 1 + ((2 + ((code + 1) & 1)) << (code - 1) / 2)) <= distance)
            code++;
        extra = code < 4 ? 0 : (code - 2) / 2;
        put_block(b, true, 1);
        for (unsigned i = 0; i < 48; i++)
            put_fixed(b, (i * i + distance) % 256);
        for (unsigned length = 3; length <= 258; length++) {
            unsigned k = 28, bits;

            while (base[k] > length)
                k--;
            bits = k < 8 || k == 28 ? 0 : (k - 4) / 4;
            put_fixed(b, 257 + k);
            put(b, length - base[k], bits);
            put_code(b, code, 5);
            put(b, distance - (code < 4 ? 1 + code : 1 + ((2 + (code & 1)) << extra)), extra);
            put_fixed(b, length % 256);
        }
        put_fixed(b, 256);
        judge(b, NULL);
    }
}

/* ---- stored blocks, the order of blocks ------------------------------------------------------------------------ */

static void
put_stored(struct bits *b, bool last, unsigned size, unsigned complement)
{
    put_block(b, last, 0);
    b->used = (b->used + 7) / 8 * 8;
    put(b, size, 16);
    put(b, complement, 16);
}

TEST(stored_blocks_begin_at_the_next_byte)
{
    for (unsigned literals = 0; literals < 9;
         literals++) { /* nine bits each, so the next one starts at every bit of a byte */
        struct bits *b = new_bits();

        put_block(b, false, 1);
        for (unsigned i = 0; i < literals; i++)
            put_fixed(b, 200);
        put_fixed(b, 256);
        put_stored(b, false, 5, 0xffff - 5);
        for (unsigned i = 0; i < 5; i++)
            put(b, 'a' + i, 8);
        put_stored(b, false, 0, 0xffff);
        put_block(b, true, 1);
        put_fixed(b, 'z');
        put_fixed(b, 256);
        judge(b, NULL);
    }
}

TEST(stored_blocks_that_contradict_themselves_are_refused)
{
    struct bits *b = new_bits();

    put_stored(b, true, 5, 0xffff - 4);
    put(b, 0, 32);
    put(b, 0, 8);
    judge(b, "invalid stored block lengths");
    b = new_bits();
    put_stored(b, true, 60000, 0xffff - 60000);
    put(b, 0, 32);
    judge(b, "short");
    b = new_bits();
    put_block(b, true, 0);
    judge(b, "short");
    b = new_bits();
    put_block(b, true, 3);
    put(b, 0, 32);
    judge(b, "invalid block type");
}

TEST(streams_that_end_early_or_late_are_refused)
{
    struct bits *b = new_bits();

    put_block(b, true, 1);
    for (int i = 0; i < 40; i++)
        put_fixed(b, 'a');
    judge(b, "short"); /* the block has no end */
    b = new_bits();
    put_block(b, false, 1);
    put_fixed(b, 'a');
    put_fixed(b, 256);
    judge(b, "short"); /* no block is the last */
    b = new_bits();
    put_block(b, true, 1);
    put_fixed(b, 'a');
    put_fixed(b, 256);
    put(b, 0, 24);
    judge(b, "surplus");
    b = new_bits();
    put_counts(b, 286, 30);
    judge(b, "short"); /* cut inside the lengths */
}

TEST(only_zlib_streams_with_a_full_window_are_accepted)
{
    static const uint8_t heads[][2] = {{0x77, 0x9c}, {0x78, 0x9d}, {0x78, 0xbb}, {0x68, 0x81}, {0x1f, 0x8b}};
    static uint8_t data[8 + INFLATER_IN_SLACK] = {0x78, 0x9c, 3, 0, 0, 0, 0, 1}, out[INFLATER_OUT_SLACK];
    struct inflater *t = inflater_new(inflater_best());

    ck_assert(inflater_exactly(t, data, 8, out, 0)); /* an empty block */
    ck_assert(!inflater_exactly(t, data, 7, out, 0));
    for (unsigned i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        memcpy(data, heads[i], 2);
        ck_assert(!inflater_exactly(t, data, 8, out, 0));
    }
    inflater_free(t);
}

/* An empty block has ten bits and needs tables: a MB of them would take ten seconds. */
TEST(blocks_without_output_are_taken_in_small_numbers_only)
{
    for (unsigned count = 200; count <= 100000; count *= 500) {
        struct bits *b = new_bits();
        struct inflater *t = inflater_new(inflater_best());
        uint8_t out[INFLATER_OUT_SLACK];
        size_t size;

        for (unsigned i = 0; i < count; i++) {
            put_block(b, i + 1 == count, 1);
            put_fixed(b, 256);
        }
        size = (b->used + 7) / 8;
        memcpy(b->data + size, "\0\0\0\1", 4);
        ck_assert_int_eq(inflater_exactly(t, b->data, size + 4, out, 0), count == 200);
        inflater_free(t);
        free(b);
    }
}
