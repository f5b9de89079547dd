/*
 * test_archive.c - images in archives (archive.h); check_archive.py tests whole runs
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "archive_fixture.h"
#include "calls.h"
#include "input/archive.h"
#include "input/unlabeled.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct chex_error err;

static struct image_archive *
open_archive(const struct buffer *b)
{
    struct image_archive *a;

    ck_assert_int_eq(image_archive_open(unit_file("a.tar", b->data, b->size), NULL, &a, &err), CHEX_OK);
    return a;
}

/* Goes to the next image, which must succeed. */
static bool
next(struct image_archive *a, struct image_member *m)
{
    bool found;

    ck_assert_int_eq(image_archive_next(a, m, &found, &err), CHEX_OK);
    return found;
}

TEST_CASE_IF(image_archive_version(), "plan", "archive", NULL, NULL);

TEST(images_come_in_the_order_of_the_archive_and_may_be_skipped)
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
    ck_assert(next(a, &m));
    ck_assert_str_eq(m.name, "1.png");
    ck_assert(m.size_known && m.size == 3);
    ck_assert(next(a, &m));
    ck_assert_str_eq(m.name, "2.JPG");
    ck_assert_int_eq(image_archive_read(a, 12, &data, &err), CHEX_OK);
    ck_assert(data.size == 12 && memcmp(data.data, "two and more", 12) == 0);
    ck_assert(next(a, &m));
    ck_assert_str_eq(m.name, "5.jpeg");
    ck_assert_int_eq(image_archive_read(a, 12, &data, &err), CHEX_OK);
    ck_assert_uint_eq(data.size, 0);
    ck_assert(!next(a, &m));
    ck_assert(!next(a, &m));
    ck_assert_uint_eq(image_archive_others(a), 3);
    ck_assert_ptr_null(image_archive_fault(a));
    image_archive_close(a);
    buffer_release(&data);
    buffer_release(&b);
}

TEST(a_member_that_is_too_large_does_not_damage_the_archive)
{
    struct buffer b = {0}, data = {0};
    struct image_archive *a;
    struct image_member m;

    archive_add(&b, "1.png", '0', "0123456789");
    archive_add(&b, "2.png", '0', "012345678");
    buffer_append(&b, (char[1024]){0}, 1024, &err);
    a = open_archive(&b);
    ck_assert(next(a, &m));
    ck_assert_int_eq(image_archive_read(a, 9, &data, &err), CHEX_ERR_LIMIT);
    ck_assert_str_eq(err.text, "10 bytes are more than the 9 allowed");
    ck_assert(next(a, &m));
    ck_assert_int_eq(image_archive_read(a, 9, &data, &err), CHEX_OK);
    ck_assert(!next(a, &m));
    ck_assert_ptr_null(image_archive_fault(a));
    image_archive_close(a);
    buffer_release(&data);
    buffer_release(&b);
}

/* Reads an archive to its end; returns the number of complete images. */
static unsigned
read_all(struct image_archive *a)
{
    struct buffer data = {0};
    struct image_member m;
    unsigned good = 0;

    while (next(a, &m))
        good += image_archive_read(a, 100, &data, &err) == CHEX_OK;
    buffer_release(&data);
    return good;
}

TEST(wherever_a_tar_is_cut_that_is_a_fault)
{
    struct buffer b = {0};
    size_t whole, cut;

    archive_add(&b, "1.png", '0', "first");
    archive_add(&b, "2.png", '0', "second");
    whole = b.size; /* after two members of a kilobyte each */
    buffer_append(&b, (char[1024]){0}, 1024, &err);
    for (cut = 512; cut < whole + 512; cut += 32) { /* includes all boundaries */
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

/* Requires the text of the fault, or "", for a tar of some members and this number of zeros, plain and in gzip. */
static void
require_end(const struct buffer *tar, unsigned images, size_t zeros, const char *printable_text,
            const char *packed_text)
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
        const char *text = i ? packed_text : printable_text;

        ck_assert_uint_eq(read_all(a), images);
        if (*text) {
            ck_assert_msg(image_archive_fault(a) != NULL, "%zu zeros", zeros);
            ck_assert_str_eq(image_archive_fault(a)->error.text, text);
            if (text == packed_text && strstr(text, "zeros")) /* found before the end */
                ck_assert_uint_le(image_archive_fault(a)->offset, b[i].size);
            else
                ck_assert_uint_eq(image_archive_fault(a)->offset, zeros > 0 ? tar->size : b[i].size);
        } else {
            ck_assert_ptr_null(image_archive_fault(a));
        }
        image_archive_close(a);
        buffer_release(&b[i]);
    }
}

TEST(a_tar_ends_with_a_block_of_zeros_and_not_with_gigabytes_of_them)
{
    static const char no_end[] = "the archive has no end (the file ends there)";
    static const char text[] = "more than 1 MiB of zeros after its last member: download interrupted?";
    struct buffer b = {0}, none = {0};
    char zeros[3000] = {0};

    /* A member that ends with zeros is no end marker, and does not make a correct end too long. */
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
    /* Two archives, one after the other. */
    buffer_append(&b, zeros, 1024, &err);
    archive_add(&b, "3.png", '0', "third");
    require_end(&b, 3, 0, no_end, no_end);
    require_end(&b, 3, 512, "", "");
    buffer_release(&b);
}

/* libarchive ends this text with a LF; our message must be a single line. */
TEST(an_error_of_a_member_is_reported_in_one_line)
{
    /* A zip with a member of 2 bytes, deflated with fixed codes; the header gives 3 bytes. */
    static const uint8_t zip[] = "PK\3\4\x14\0\0\0\x08\0\0\0\0\0\0\0\0\0\x04\0\0\0\x03\0\0\0\x05\0\0\0"
                                 "a.png\x4b\x4c\x02\0";
    struct image_archive *a;
    struct image_member m;
    struct buffer b = {0};

    ck_assert_int_eq(image_archive_open(unit_file("one.zip", zip, sizeof(zip) - 1), NULL, &a, &err), CHEX_OK);
    ck_assert(next(a, &m));
    ck_assert_int_eq(image_archive_read(a, 100, &b, &err), CHEX_ERR_DAMAGED);
    ck_assert_msg(err.text[0] && !strpbrk(err.text, "\n\r"), "%s", err.text);
    while (next(a, &m))
        continue;
    ck_assert_ptr_nonnull(image_archive_fault(a));
    ck_assert_ptr_null(strpbrk(image_archive_fault(a)->error.text, "\n\r"));
    buffer_release(&b);
    image_archive_close(a);
}

static const char *archive_path;

static enum chex_status
read_archive(struct chex_error *why)
{
    struct image_archive *a;
    struct image_member member;
    struct buffer b = {0};
    struct unlabeled unlabeled = {0};
    enum chex_status status = image_archive_open(archive_path, NULL, &a, why);
    bool found = true;

    if (status != CHEX_OK)
        return status;
    while (status == CHEX_OK && (status = image_archive_next(a, &member, &found, why)) == CHEX_OK && found) {
        status = image_archive_read(a, 1000, &b, why);
        if (status == CHEX_OK)
            status = unlabeled_add(&unlabeled, member.name, why);
    }
    if ((status == CHEX_OK || status == CHEX_ERR_DAMAGED) && image_archive_fault(a)) {
        *why = image_archive_fault(a)->error;
        status = why->status;
    }
    unlabeled_release(&unlabeled);
    buffer_release(&b);
    image_archive_close(a);
    return status;
}

TEST(a_lack_of_memory_and_a_read_error_are_not_damage)
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

/* Before the archive is opened, and between two members. */
TEST(a_wish_to_stop_is_heard_and_no_fault)
{
    atomic_bool stop = true;
    const struct image_archive_options options = {.stop = &stop};
    struct buffer b = {0}, packed = {0}, data = {0};
    struct image_archive *a;
    struct image_member m;
    bool found;

    archive_add(&b, "1.png", '0', "first");
    archive_add(&b, "2.png", '0', "second");
    buffer_append(&b, (char[1024]){0}, 1024, &err);
    archive_gzip(b.data, b.size, &packed);
    for (int i = 0; i < 2; i++) {
        const struct buffer *file = i ? &packed : &b;
        const char *path = unit_file("a.tar", file->data, file->size);

        stop = true;
        ck_assert_int_eq(image_archive_open(path, &options, &a, &err), CHEX_ERR_STOPPED);
        ck_assert_str_eq(err.text, "stopped on request");
        ck_assert_ptr_null(a);
        stop = false;
        ck_assert_int_eq(image_archive_open(path, &options, &a, &err), CHEX_OK);
        ck_assert(next(a, &m));
        ck_assert_int_eq(image_archive_read(a, 100, &data, &err), CHEX_OK);
        stop = true;
        ck_assert_int_eq(image_archive_next(a, &m, &found, &err), CHEX_ERR_STOPPED);
        ck_assert(!found);
        stop = false;
        ck_assert_int_eq(image_archive_next(a, &m, &found, &err), CHEX_ERR_STOPPED); /* permanent */
        ck_assert_ptr_null(image_archive_fault(a));
        image_archive_close(a);
    }
    buffer_release(&data);
    buffer_release(&packed);
    buffer_release(&b);
}

TEST(other_files_than_archives_are_not_opened)
{
    struct image_archive *a;
    char text[2000];

    memset(text, 'x', sizeof(text));
    ck_assert_int_eq(image_archive_open(unit_file("a", text, sizeof(text)), NULL, &a, &err), CHEX_ERR_NOT_IMAGE);
    ck_assert_ptr_null(a);
    ck_assert_int_eq(image_archive_open(unit_file("a", text, 0), NULL, &a, &err), CHEX_ERR_EMPTY);
    ck_assert_int_eq(image_archive_open("/dev/null", NULL, &a, &err), CHEX_ERR_NOT_IMAGE);
    ck_assert_int_eq(image_archive_open("/absent", NULL, &a, &err), CHEX_ERR_MISSING);
    image_archive_close(NULL);
}

/* A zip of a folder and a member that is encrypted, or (by its flags) not encrypted. */
static const uint8_t zip_with_folder[] = "PK\3\4\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\2\0\0\0x/"
                                         "PK\3\4\x14\0\1\0\0\0\0\0\0\0\0\0\0\0\x0d\0\0\0\1\0\0\0\7\0\0\0"
                                         "x/a.png0123456789abc";

TEST(an_encrypted_zip_is_not_opened)
{
    enum { FLAGS = 32 + 6 };
    struct image_archive *a;
    struct image_member m;
    uint8_t zip[sizeof(zip_with_folder) - 1];

    memcpy(zip, zip_with_folder, sizeof(zip));
    ck_assert_int_eq(zip[FLAGS], 1);
    ck_assert_int_eq(image_archive_open(unit_file("a.zip", zip, sizeof(zip)), NULL, &a, &err), CHEX_ERR_USAGE);
    ck_assert_str_eq(err.text, "it is encrypted: unpack it by hand, and give the folder");
    ck_assert_ptr_null(a);
    zip[FLAGS] = 0;
    ck_assert_int_eq(image_archive_open(unit_file("a.zip", zip, sizeof(zip)), NULL, &a, &err), CHEX_OK);
    ck_assert(next(a, &m));
    ck_assert_str_eq(m.name, "a.png");
    image_archive_close(a);
}

TEST_CASE_IF(!image_archive_version(), "plan", "archive", NULL, NULL);

TEST(without_libarchive_nothing_is_opened)
{
    struct image_archive *a;

    ck_assert_int_eq(image_archive_open("/absent", NULL, &a, &err), CHEX_ERR_MISSING);
    ck_assert_ptr_null(a);
    ck_assert_ptr_nonnull(strstr(err.text, "built without libarchive"));
}
