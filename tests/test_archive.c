/*
 * test_archive.c - gzip files (gunzip.h), images in archives (image_archive.h), names without a row (strays.h)
 *
 * What a whole run makes of archives is in check_archive.py.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "archive_fixture.h"
#include "calls.h"
#include "cases.h"
#include "gunzip.h"
#include "image_archive.h"
#include "strays.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>

static struct chex_error err;

/* ---- gzip ----------------------------------------------------------------------------------------------------- */

enum { TEXT_SIZE = 3000000 };

/* Bytes of which some repeat: a linear congruential generator. */
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

/* Decompress; *got bytes agreed with the text. */
static enum chex_status
unpack(const void *data, size_t size, const uint8_t *text, size_t *got)
{
    int fd = open(unit_file("a.gz", data, size), O_RDONLY);
    struct gunzip *g = gunzip_new(fd);
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
        ck_assert_int_eq(gunzip_read(g, &piece, &length, NULL), status); /* for good */
    gunzip_free(g);
    close(fd);
    return status;
}

START_TEST(gzip_files_of_one_or_more_members_are_decompressed)
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
END_TEST

START_TEST(behind_a_gzip_stream_there_may_be_zeros_and_nothing_else)
{
    enum { MORE = 3 << 20 }; /* than is read at a time */
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
        ck_assert_uint_eq(got, 100); /* what came before is handed out */
        b.data[one + more - 1] = 0;
    }
    /* A second member, one bit of whose magic is wrong. */
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
END_TEST

/* RFC 1952, 2.3: eight bytes behind the data, CRC-32 and length. */
START_TEST(a_gzip_file_that_is_cut_or_changed_is_noticed)
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
        ck_assert_uint_eq(got, TEXT_SIZE); /* what came before is handed out */
        b.data[b.size - i] ^= 4;
    }
    b.data[2] = 7; /* a method that there is not */
    ck_assert_int_eq(unpack(b.data, b.size, text, &got), CHEX_ERR_DAMAGED);
    buffer_release(&b);
    free(text);
}
END_TEST

/* Append bits to those at *bit, as deflate has them: a number's lowest first, a Huffman code's highest. */
static void
put_bits(uint8_t *data, size_t *bit, unsigned value, unsigned count, bool code)
{
    for (unsigned i = 0; i < count; i++, (*bit)++)
        data[*bit / 8] |= (uint8_t)((value >> (code ? count - 1 - i : i) & 1) << (*bit % 8));
}

/* `before` bytes of text, then a block with literals and a match of 258 bytes whose distance has this code. */
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

START_TEST(nothing_that_was_never_in_the_data_is_handed_out)
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
        memset(true_text + wanted, 0xa5, TEXT_SIZE - wanted); /* where there is nothing */
        gzip_with_match(true_text, cases[i].before, cases[i].literals, cases[i].distance, &b);
        ck_assert_int_eq(unpack(b.data, b.size, true_text, &got), CHEX_ERR_DAMAGED);
        ck_assert_uint_le(got, wanted);
        ck_assert_uint_ge(got + 2 * 258, wanted);
        buffer_release(&b);
        free(true_text);
    }
    free(text);
}
END_TEST

/* ---- archives ------------------------------------------------------------------------------------------------- */

static struct image_archive *
open_archive(const struct buffer *b)
{
    struct image_archive *a;

    ck_assert_int_eq(image_archive_open(unit_file("a.tar", b->data, b->size), (locale_t)0, &a, &err), CHEX_OK);
    return a;
}

START_TEST(images_come_in_the_order_of_the_archive_and_may_be_passed_over)
{
    struct buffer b = {0}, data = {0};
    struct image_archive *a;
    struct image_member m;

    archive_add(&b, "x/", '5', "");
    archive_add(&b, "x/1.png", '0', "one");
    archive_add(&b, "x/notes.txt", '0', "text");
    archive_add(&b, "../2.JPG", '0', "two and more");
    archive_add(&b, "3.png", '2', ""); /* a symbolic link */
    archive_add(&b, "x/.4.png", '0', "hidden");
    archive_add(&b, "5.jpeg", '0', "");
    buffer_append(&b, (char[1024]){0}, 1024, &err);
    a = open_archive(&b);
    ck_assert(image_archive_next(a, &m));
    ck_assert_str_eq(m.name, "1.png");
    ck_assert(m.size_known && m.size == 3);
    ck_assert(image_archive_next(a, &m));
    ck_assert_str_eq(m.name, "2.JPG");
    ck_assert_int_eq(image_archive_read(a, 12, &data, &err), CHEX_OK);
    ck_assert(data.size == 12 && memcmp(data.data, "two and more", 12) == 0);
    ck_assert(image_archive_next(a, &m));
    ck_assert_str_eq(m.name, "5.jpeg");
    ck_assert_int_eq(image_archive_read(a, 12, &data, &err), CHEX_OK);
    ck_assert_uint_eq(data.size, 0);
    ck_assert(!image_archive_next(a, &m));
    ck_assert(!image_archive_next(a, &m));
    ck_assert_uint_eq(image_archive_others(a), 3);
    ck_assert_ptr_null(image_archive_fault(a));
    image_archive_close(a);
    buffer_release(&data);
    buffer_release(&b);
}
END_TEST

START_TEST(one_too_large_is_no_fault_of_the_archive)
{
    struct buffer b = {0}, data = {0};
    struct image_archive *a;
    struct image_member m;

    archive_add(&b, "1.png", '0', "0123456789");
    archive_add(&b, "2.png", '0', "012345678");
    buffer_append(&b, (char[1024]){0}, 1024, &err);
    a = open_archive(&b);
    ck_assert(image_archive_next(a, &m));
    ck_assert_int_eq(image_archive_read(a, 9, &data, &err), CHEX_ERR_LIMIT);
    ck_assert_str_eq(err.text, "10 bytes are more than the 9 allowed");
    ck_assert(image_archive_next(a, &m));
    ck_assert_int_eq(image_archive_read(a, 9, &data, &err), CHEX_OK);
    ck_assert(!image_archive_next(a, &m));
    ck_assert_ptr_null(image_archive_fault(a));
    image_archive_close(a);
    buffer_release(&data);
    buffer_release(&b);
}
END_TEST

/* Go through an archive; how many of its images are whole. */
static unsigned
read_all(struct image_archive *a)
{
    struct buffer data = {0};
    struct image_member m;
    unsigned good = 0;

    while (image_archive_next(a, &m))
        good += image_archive_read(a, 100, &data, &err) == CHEX_OK;
    buffer_release(&data);
    return good;
}

START_TEST(wherever_a_tar_is_cut_that_is_a_fault)
{
    struct buffer b = {0};
    size_t whole, cut;

    archive_add(&b, "1.png", '0', "first");
    archive_add(&b, "2.png", '0', "second");
    whole = b.size; /* of two members, a kilobyte each */
    buffer_append(&b, (char[1024]){0}, 1024, &err);
    for (cut = 512; cut < whole + 512; cut += 32) { /* at all boundaries too */
        struct image_archive *a;

        b.size = cut;
        a = open_archive(&b);
        ck_assert_uint_eq(read_all(a), (cut >= 512 + 5 ? 1U : 0U) + (cut >= 1536 + 6 ? 1U : 0U));
        ck_assert_msg(image_archive_fault(a) != NULL, "%zu bytes", cut);
        if (cut == 1024 || cut == whole)
            ck_assert_str_eq(image_archive_fault(a)->error.text, "the archive has no end (the file ends there)");
        image_archive_close(a);
    }
    buffer_release(&b);
}
END_TEST

/* A tar of some members and so many zeros, plain and in gzip: the text of its fault, or "". */
static void
require_end(const struct buffer *tar, unsigned images, size_t zeros, const char *plain_text, const char *packed_text)
{
    struct buffer b[2] = {{0}, {0}};

    if (tar->size > 0)
        buffer_append(&b[0], tar->data, tar->size, &err);
    ck_assert_int_eq(buffer_reserve(&b[0], b[0].size + zeros, &err), CHEX_OK);
    memset(b[0].data + b[0].size, 0, zeros);
    b[0].size += zeros;
    archive_gzip(b[0].data, b[0].size, &b[1]);
    for (int i = 0; i < 2; i++) {
        struct image_archive *a = open_archive(&b[i]);
        const char *text = i ? packed_text : plain_text;

        ck_assert_uint_eq(read_all(a), images);
        if (*text) {
            ck_assert_msg(image_archive_fault(a) != NULL, "%zu zeros", zeros);
            ck_assert_str_eq(image_archive_fault(a)->error.text, text);
            ck_assert_uint_eq(image_archive_fault(a)->offset, !i && zeros > 0 ? tar->size : b[i].size);
        } else {
            ck_assert_ptr_null(image_archive_fault(a));
        }
        image_archive_close(a);
        buffer_release(&b[i]);
    }
}

START_TEST(a_tar_ends_with_a_block_of_zeros_and_not_with_a_whole_disk_of_them)
{
    static const char no_end[] = "the archive has no end (the file ends there)";
    static const char text[] = "1050112 bytes of zeros behind its last member: download interrupted?";
    struct buffer b = {0}, none = {0};
    char zeros[3000] = {0};

    /* What ends with zeros itself has no end by that; one that has is not too long by it. */
    archive_add_bytes(&b, "disk.img", '0', zeros, sizeof(zeros));
    require_end(&b, 0, 0, no_end, no_end);
    require_end(&b, 0, (1 << 20) + 1024, "", "");
    archive_add(&b, "1.png", '0', "first");
    archive_add(&b, "2.png", '0', ""); /* without a block of its own */
    require_end(&b, 2, 0, no_end, no_end);
    require_end(&b, 2, 512, "", "");
    require_end(&b, 2, 1024, "", "");
    require_end(&b, 2, (1 << 20) + 512, "", "");
    require_end(&b, 2, (1 << 20) + 1024, "", "");
    require_end(&b, 2, (1 << 20) + 1536, text, text);
    require_end(&none, 0, 1024, "", "");
    require_end(&none, 0, 1 << 20, "", "");
    require_end(&none, 0, (1 << 20) + 1536, text, text);
    /* Two archives, one behind the other. */
    buffer_append(&b, zeros, 1024, &err);
    archive_add(&b, "3.png", '0', "third");
    require_end(&b, 3, 0, no_end, no_end);
    require_end(&b, 3, 512, "", "");
    buffer_release(&b);
}
END_TEST

/* libarchive ends this text with a LF; one of ours is one line. */
START_TEST(what_is_wrong_with_a_member_is_said_in_one_line)
{
    /* A zip with a member of 2 bytes, deflated with fixed codes, that is said to have 3. */
    static const uint8_t zip[] = "PK\3\4\x14\0\0\0\x08\0\0\0\0\0\0\0\0\0\x04\0\0\0\x03\0\0\0\x05\0\0\0"
                                 "a.png\x4b\x4c\x02\0";
    struct image_archive *a;
    struct image_member m;
    struct buffer b = {0};

    ck_assert_int_eq(image_archive_open(unit_file("one.zip", zip, sizeof(zip) - 1), (locale_t)0, &a, &err), CHEX_OK);
    ck_assert(image_archive_next(a, &m));
    ck_assert_int_eq(image_archive_read(a, 100, &b, &err), CHEX_ERR_DAMAGED);
    ck_assert_msg(err.text[0] && !strpbrk(err.text, "\n\r"), "%s", err.text);
    while (image_archive_next(a, &m))
        continue;
    ck_assert_ptr_nonnull(image_archive_fault(a));
    ck_assert_ptr_null(strpbrk(image_archive_fault(a)->error.text, "\n\r"));
    buffer_release(&b);
    image_archive_close(a);
}
END_TEST

static const char *archive_path;

static enum chex_status
read_archive(struct chex_error *why)
{
    struct image_archive *a;
    struct image_member member;
    struct buffer b = {0};
    struct strays strays = {0};
    enum chex_status status = image_archive_open(archive_path, (locale_t)0, &a, why);

    if (status != CHEX_OK)
        return status;
    while (status == CHEX_OK && image_archive_next(a, &member)) {
        status = image_archive_read(a, 1000, &b, why);
        if (status == CHEX_OK)
            status = strays_add(&strays, member.name, why);
    }
    /* A file that cannot be read any further is as good as one that is cut. */
    if ((status == CHEX_OK || status == CHEX_ERR_DAMAGED) && image_archive_fault(a))
        status = chex_fail(why, CHEX_ERR_READ, "%s", image_archive_fault(a)->error.text);
    strays_release(&strays);
    buffer_release(&b);
    image_archive_close(a);
    return status;
}

START_TEST(archives_are_read_without_memory)
{
    struct buffer b = {0}, packed = {0};

    archive_add(&b, "1.png", '0', "first");
    archive_add(&b, "2.png", '0', "second");
    buffer_append(&b, (char[1024]){0}, 1024, &err);
    archive_path = unit_file("calls.tar", b.data, b.size);
    calls_each(CALL_MEMORY, ENOMEM, read_archive, NULL, CHEX_ERR_MEMORY, 0);
    calls_each(CALL_READ, ENXIO, read_archive, NULL, CHEX_ERR_READ, 0);
    archive_gzip(b.data, b.size, &packed);
    archive_path = unit_file("calls.tar.gz", packed.data, packed.size);
    calls_each(CALL_MEMORY, ENOMEM, read_archive, NULL, CHEX_ERR_MEMORY, 0);
    calls_each(CALL_READ, ENXIO, read_archive, NULL, CHEX_ERR_READ, 0);
    buffer_release(&packed);
    buffer_release(&b);
}
END_TEST

START_TEST(what_is_no_archive_is_not_opened)
{
    struct image_archive *a;
    char text[2000];

    memset(text, 'x', sizeof(text));
    ck_assert_int_eq(image_archive_open(unit_file("a", text, sizeof(text)), (locale_t)0, &a, &err), CHEX_ERR_NOT_IMAGE);
    ck_assert_ptr_null(a);
    ck_assert_int_eq(image_archive_open(unit_file("a", text, 0), (locale_t)0, &a, &err), CHEX_ERR_EMPTY);
    ck_assert_int_eq(image_archive_open("/dev/null", (locale_t)0, &a, &err), CHEX_ERR_NOT_IMAGE);
    ck_assert_int_eq(image_archive_open("/absent", (locale_t)0, &a, &err), CHEX_ERR_MISSING);
    image_archive_close(NULL);
}
END_TEST

/* A zip of a folder and a member that is encrypted, or (by its flags) not. */
static const uint8_t zip_with_folder[] = "PK\3\4\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\2\0\0\0x/"
                                         "PK\3\4\x14\0\1\0\0\0\0\0\0\0\0\0\0\0\x0d\0\0\0\1\0\0\0\7\0\0\0"
                                         "x/a.png0123456789abc";

START_TEST(an_encrypted_zip_is_not_opened)
{
    enum { FLAGS = 32 + 6 };
    struct image_archive *a;
    struct image_member m;
    uint8_t zip[sizeof(zip_with_folder) - 1];

    memcpy(zip, zip_with_folder, sizeof(zip));
    ck_assert_int_eq(zip[FLAGS], 1);
    ck_assert_int_eq(image_archive_open(unit_file("a.zip", zip, sizeof(zip)), (locale_t)0, &a, &err), CHEX_ERR_USAGE);
    ck_assert_str_eq(err.text, "it is encrypted: unpack it by hand, and give the folder");
    ck_assert_ptr_null(a);
    zip[FLAGS] = 0;
    ck_assert_int_eq(image_archive_open(unit_file("a.zip", zip, sizeof(zip)), (locale_t)0, &a, &err), CHEX_OK);
    ck_assert(image_archive_next(a, &m));
    ck_assert_str_eq(m.name, "a.png");
    image_archive_close(a);
}
END_TEST

START_TEST(without_libarchive_nothing_is_opened)
{
    struct image_archive *a;

    ck_assert_int_eq(image_archive_open("/absent", (locale_t)0, &a, &err), CHEX_ERR_USAGE);
    ck_assert_ptr_null(a);
    ck_assert_ptr_nonnull(strstr(err.text, "built without libarchive"));
}
END_TEST

/* ---- names ---------------------------------------------------------------------------------------------------- */

START_TEST(strays_are_sorted_and_each_is_there_once)
{
    static const char *const names[] = {"b", "a", "c", "a", "B", "c"};
    struct strays s = {0};

    for (size_t i = 0; i < 6; i++)
        ck_assert_int_eq(strays_add(&s, names[i], &err), CHEX_OK);
    strays_sort(&s);
    ck_assert_uint_eq(s.count, 4);
    ck_assert_str_eq(s.name[0], "B");
    ck_assert_str_eq(s.name[3], "c");
    ck_assert(!s.capped);
    strays_release(&s);
}
END_TEST

START_TEST(of_too_many_strays_the_first_by_name_are_kept)
{
    struct strays s = {0};
    char name[16];
    size_t i, all = STRAYS_MAX + 100000;

    /* In an order that is not theirs: 7919 is prime to the count. */
    for (i = 0; i < all; i++) {
        snprintf(name, sizeof(name), "%08zu", i * 7919 % all);
        ck_assert_int_eq(strays_add(&s, name, &err), CHEX_OK);
    }
    strays_sort(&s);
    ck_assert_uint_eq(s.count, STRAYS_MAX);
    ck_assert_str_eq(s.name[STRAYS_MAX - 1], "00999999");
    ck_assert(s.capped);
    strays_release(&s);
}
END_TEST

void
archive_case(Suite *suite)
{
    TCase *tests = tcase_create("archive");

    tcase_add_test(tests, gzip_files_of_one_or_more_members_are_decompressed);
    tcase_add_test(tests, behind_a_gzip_stream_there_may_be_zeros_and_nothing_else);
    tcase_add_test(tests, a_gzip_file_that_is_cut_or_changed_is_noticed);
    tcase_add_test(tests, nothing_that_was_never_in_the_data_is_handed_out);
    if (image_archive_version()) {
        tcase_add_test(tests, images_come_in_the_order_of_the_archive_and_may_be_passed_over);
        tcase_add_test(tests, one_too_large_is_no_fault_of_the_archive);
        tcase_add_test(tests, wherever_a_tar_is_cut_that_is_a_fault);
        tcase_add_test(tests, a_tar_ends_with_a_block_of_zeros_and_not_with_a_whole_disk_of_them);
        tcase_add_test(tests, what_is_wrong_with_a_member_is_said_in_one_line);
        tcase_add_test(tests, archives_are_read_without_memory);
        tcase_add_test(tests, what_is_no_archive_is_not_opened);
        tcase_add_test(tests, an_encrypted_zip_is_not_opened);
    } else {
        tcase_add_test(tests, without_libarchive_nothing_is_opened);
    }
    tcase_add_test(tests, strays_are_sorted_and_each_is_there_once);
    tcase_add_test(tests, of_too_many_strays_the_first_by_name_are_kept);
    suite_add_tcase(suite, tests);
}
