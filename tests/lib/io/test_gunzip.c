/*
 * test_gunzip.c - gzip files (gunzip.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "io/gunzip.h"
#include "lib/input/archive_fixture.h"
#include "unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>

static struct chex_error err;

enum { TEXT_SIZE = 3000000 };

/* Bytes with some repetitions, from a linear congruential generator. */
static uint8_t *
make_text(void)
{
    uint8_t *text = malloc(TEXT_SIZE);
    uint32_t x = 1;

    ck_assert_ptr_nonnull(text);
    for (size_t i = 0; i < TEXT_SIZE; i++) {
        x = x * 1664525 + 1013904223;
        text[i] = i % 5000 < 3000 ? (uint8_t)(x >> 24) : (uint8_t)(i >> 8);
    }
    return text;
}

/* Decompresses; *got bytes agree with the text. */
static enum chex_status
unpack(const void *data, size_t size, const uint8_t *text, size_t *got)
{
    int fd = open(unit_file("a.gz", data, size), O_RDONLY);
    struct gunzip *g = gunzip_new(fd, NULL);
    const uint8_t *piece;
    size_t length;
    enum chex_status status;

    ck_assert(fd >= 0 && g);
    *got = 0;
    while ((status = gunzip_read(g, &piece, &length, &err)) == CHEX_OK && length > 0) {
        ck_assert_uint_le(*got + length, TEXT_SIZE);
        ck_assert(memcmp(piece, text + *got, length) == 0);
        *got += length;
    }
    ck_assert_uint_le(gunzip_offset(g), size);
    if (status != CHEX_OK)
        ck_assert_int_eq(gunzip_read(g, &piece, &length, NULL), status); /* permanent */
    gunzip_free(g);
    close(fd);
    return status;
}

TEST_CASE("plan", "gunzip", NULL, NULL);

TEST(gzip_files_of_one_or_more_members_are_decompressed)
{
    uint8_t *text = make_text();
    struct buffer b = {0};
    size_t got;

    archive_gzip(text, TEXT_SIZE, &b);
    ck_assert(gunzip_magic(b.data, b.size));
    ck_assert_int_eq(unpack(b.data, b.size, text, &got), CHEX_OK);
    ck_assert_uint_eq(got, TEXT_SIZE);
    b.size = 0;
    archive_gzip(text, 7, &b);
    archive_gzip(text, 0, &b);
    archive_gzip(text + 7, TEXT_SIZE - 7, &b);
    ck_assert_int_eq(unpack(b.data, b.size, text, &got), CHEX_OK);
    ck_assert_uint_eq(got, TEXT_SIZE);
    buffer_release(&b);
    free(text);
}

TEST(after_a_gzip_stream_only_zeros_are_accepted)
{
    enum { MORE = 3 << 20 }; /* than one read returns */
    static const uint8_t zeros[MORE];
    uint8_t *text = make_text();
    struct buffer b = {0};
    size_t got, one;

    archive_gzip(text, 100, &b);
    one = b.size;
    ck_assert_int_eq(buffer_append(&b, zeros, MORE, &err), CHEX_OK);
    for (size_t more = 1; more <= MORE; more = more * 3 + 1) {
        ck_assert_int_eq(unpack(b.data, one + more, text, &got), CHEX_OK);
        b.data[one + more - 1] = 1;
        ck_assert_int_eq(unpack(b.data, one + more, text, &got), CHEX_ERR_DAMAGED);
        ck_assert_str_eq(err.text, "what follows the gzip stream is neither gzip nor zeros");
        ck_assert_uint_eq(got, 100); /* the data before the fault are returned */
        b.data[one + more - 1] = 0;
    }
    /* A second member, with one wrong bit in its magic. */
    b.size = one;
    archive_gzip(text + 100, 100, &b);
    ck_assert_int_eq(unpack(b.data, b.size, text, &got), CHEX_OK);
    for (size_t bit = 0; bit < 24; bit++) {
        b.data[one + bit / 8] ^= (uint8_t)(1 << bit % 8);
        ck_assert_int_eq(unpack(b.data, b.size, text, &got), CHEX_ERR_DAMAGED);
        ck_assert_uint_eq(got, 100);
        b.data[one + bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    buffer_release(&b);
    free(text);
}

/* RFC 1952, 2.3: eight bytes follow the data, CRC-32 and length. */
TEST(a_gzip_file_that_is_cut_or_changed_is_noticed)
{
    uint8_t *text = make_text();
    struct buffer b = {0};
    size_t got, i;

    archive_gzip(text, TEXT_SIZE, &b);
    for (i = 1; i < 9; i++)
        ck_assert_int_eq(unpack(b.data, b.size - i, text, &got), CHEX_ERR_TRUNCATED);
    ck_assert_int_eq(unpack(b.data, 10, text, &got), CHEX_ERR_TRUNCATED);
    ck_assert_int_eq(unpack(b.data, b.size / 2, text, &got), CHEX_ERR_TRUNCATED);
    ck_assert_uint_gt(got, TEXT_SIZE / 4);
    for (i = 1; i < 9; i++) {
        b.data[b.size - i] ^= 4;
        ck_assert_int_eq(unpack(b.data, b.size, text, &got), CHEX_ERR_CHECKSUM);
        ck_assert_uint_eq(got, TEXT_SIZE); /* the data before the fault are returned */
        b.data[b.size - i] ^= 4;
    }
    b.data[2] = 7; /* an unknown method */
    ck_assert_int_eq(unpack(b.data, b.size, text, &got), CHEX_ERR_DAMAGED);
    buffer_release(&b);
    free(text);
}

/* Appends bits at *bit in the order of deflate: numbers start with the lowest bit, Huffman codes with the highest. */
static void
put_bits(uint8_t *data, size_t *bit, unsigned value, unsigned count, bool code)
{
    for (unsigned i = 0; i < count; i++, (*bit)++)
        data[*bit / 8] |= (uint8_t)((value >> (code ? count - 1 - i : i) & 1) << (*bit % 8));
}

/* Makes `before` bytes of text, then a block with literals and a match of 258 bytes whose distance has this code. */
static void
gzip_with_match(const uint8_t *text, size_t before, unsigned literals, unsigned distance, struct buffer *out)
{
    uint8_t block[600] = {0};
    size_t bit = 0;
    z_stream z = {0};

    ck_assert_int_eq(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    ck_assert_int_eq(buffer_reserve(out, deflateBound(&z, before) + 64, &err), CHEX_OK);
    z.next_in = (Bytef *)(uintptr_t)text;
    z.avail_in = (uInt)before;
    z.next_out = out->data;
    z.avail_out = (uInt)out->capacity;
    ck_assert_int_eq(deflate(&z, Z_SYNC_FLUSH), Z_OK); /* ends on a byte */
    ck_assert_uint_gt(z.avail_out, 0);
    out->size = z.total_out;
    deflateEnd(&z);

    put_bits(block, &bit, 3, 3, false); /* the last block, fixed codes */
    for (unsigned i = 0; i < literals; i++)
        put_bits(block, &bit, 0x30u + text[before + i], 8, true);
    put_bits(block, &bit, 0xc5, 8, true); /* a match of 258 */
    put_bits(block, &bit, distance, 5, true);
    ck_assert_int_eq(buffer_append(out, block, sizeof(block), &err), CHEX_OK);
}

TEST(nothing_that_was_never_in_the_data_is_handed_out)
{
    static const struct {
        size_t before;
        unsigned literals, distance;
    } cases[] = {{0, 40, 29},    {0, 400, 29},   {1000, 40, 29}, {20000, 3, 29},   {0, 40, 30},       {0, 400, 31},
                 {1000, 40, 30}, {20000, 3, 31}, {65536, 9, 30}, {300000, 40, 30}, {1000000, 400, 31}};
    uint8_t *text = make_text();

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        size_t wanted = cases[i].before + cases[i].literals, got;
        struct buffer b = {0};
        uint8_t *true_text = malloc(TEXT_SIZE);

        ck_assert_ptr_nonnull(true_text);
        memcpy(true_text, text, cases[i].before);
        memset(true_text + cases[i].before, 'm', cases[i].literals);
        memset(true_text + wanted, 0xa5, TEXT_SIZE - wanted); /* before the start of the text */
        gzip_with_match(true_text, cases[i].before, cases[i].literals, cases[i].distance, &b);
        ck_assert_int_eq(unpack(b.data, b.size, true_text, &got), CHEX_ERR_DAMAGED);
        ck_assert_uint_le(got, wanted);
        ck_assert_uint_ge(got + 2 * 258, wanted);
        buffer_release(&b);
        free(true_text);
    }
    free(text);
}
