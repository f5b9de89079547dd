/*
 * test_table.c - lines of text (line_reader.h), rows of CSV (csv.h), characters (ascii.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/ascii.h"
#include "io/csv.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* ---- helpers -------------------------------------------------------------------------------------------------- */

/* The rows that were read, as "LINE:field|field;". */
struct seen {
    char text[4096];
    size_t used;
    unsigned rows;
    unsigned stop_at; /* the row that returns an error; 0 = none */
};

static enum chex_status
on_row(const struct table_row *row, void *context, struct chex_error *err)
{
    struct seen *s = context;

    if (++s->rows == s->stop_at)
        return table_fail(row, err, "stopped in row %u", s->rows);
    s->used += (size_t)snprintf(s->text + s->used, sizeof(s->text) - s->used, "%lu:", row->line);
    for (size_t i = 0; i < row->count; i++) {
        ck_assert_uint_eq(strlen(row->field[i]), row->length[i]);
        s->used += (size_t)snprintf(s->text + s->used, sizeof(s->text) - s->used, "%s%s", row->field[i],
                                    i + 1 < row->count ? "|" : ";");
    }
    ck_assert_uint_lt(s->used, sizeof(s->text));
    return CHEX_OK;
}

static void
expect_rows_of(const char *path, const char *wanted)
{
    struct seen s = {0};
    struct chex_error err = {0};

    ck_assert_msg(table_read(path, on_row, &s, NULL, &err) == CHEX_OK, "%s", err.text);
    ck_assert_str_eq(s.text, wanted);
}

static void
expect_rows(const char *csv, const char *wanted)
{
    expect_rows_of(unit_file("rows.csv", csv, strlen(csv)), wanted);
}

/* Requires an error whose text is the path and `wanted`. */
static void
expect_error_of(const char *path, enum chex_status status, const char *wanted)
{
    struct seen s = {0};
    struct chex_error err = {0};
    char text[2048];

    ck_assert_int_eq(table_read(path, on_row, &s, NULL, &err), status);
    ck_assert_int_eq(err.status, status);
    snprintf(text, sizeof(text), "%s%s", path, wanted);
    ck_assert_str_eq(err.text, text);
}

static void
expect_error(const char *csv, size_t size, const char *wanted)
{
    expect_error_of(unit_file("wrong.csv", csv, size), CHEX_ERR_USAGE, wanted);
}

#define EXPECT_ERROR(csv, wanted) expect_error(csv, sizeof(csv) - 1, wanted)
/* Requires that the file is recognised as another kind. */
#define EXPECT_OTHER(csv, wanted) \
    expect_error_of(unit_file("wrong.csv", csv, sizeof(csv) - 1), CHEX_ERR_MISSING, wanted)

/* Returns the bytes compressed by gzip; free() them. */
static uint8_t *
gzip(const void *data, size_t size, size_t *out_size)
{
    size_t room = size + size / 2 + 256;
    uint8_t *out = malloc(room);
    z_stream z = {.next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)size, .next_out = out};

    z.avail_out = (uInt)room;
    ck_assert_int_eq(deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    *out_size = z.total_out;
    deflateEnd(&z);
    return out;
}

/* ---- rows ----------------------------------------------------------------------------------------------------- */

TEST_CASE("table", "rows", NULL, NULL);

TEST(rows_end_with_lf_crlf_cr_or_the_file)
{
    expect_rows("a,b\nc,d\n", "1:a|b;2:c|d;");
    expect_rows("a,b\r\nc,d\r\n", "1:a|b;2:c|d;");
    expect_rows("a,b\rc,d\r", "1:a|b;2:c|d;");
    expect_rows("a,b\nc,d", "1:a|b;2:c|d;");
    expect_rows("a,b\r\nc,\"d\"", "1:a|b;2:c|d;");
}

/* RFC 4180, section 2. */
TEST(quotes_hold_commas_quotes_and_newlines)
{
    expect_rows("\"a,b\",\"say \"\"x\"\"\"\n", "1:a,b|say \"x\";");
    expect_rows("1,\"two\nlines\"\nnext,row\n", "1:1|two\nlines;3:next|row;");
    expect_rows("1,\"two\r\nlines\"\r\nnext,row\r\n", "1:1|two\r\nlines;3:next|row;");
    expect_rows("\"a\n\n\n\nb\"\nc\n", "1:a\n\n\n\nb;6:c;");
}

TEST(blank_lines_are_skipped_and_counted)
{
    expect_rows("\n\na\n \t \n\nb\n\n", "3:a;6:b;");
    expect_rows("\r\n\r\na\r\n", "3:a;");
    expect_rows("", "");
    expect_rows("\n", "");
}

TEST(empty_fields_count_also_at_the_end)
{
    expect_rows("a,,\n,,\n,b,\n", "1:a||;2:||;3:|b|;");
}

TEST(blanks_around_fields_are_dropped)
{
    expect_rows(" a ,\tb\t,\" c \"\n", "1:a|b|c;");
}

TEST(a_byte_order_mark_is_skipped)
{
    expect_rows("\xef\xbb\xbf"
                "a,b\n",
                "1:a|b;");
    expect_rows("\xef\xbb\xbf", "");
}

TEST(utf8_passes)
{
    expect_rows("\xc3\xa9,\xe2\x82\xac,\xf0\x9f\xa9\xbb\n", "1:\xc3\xa9|\xe2\x82\xac|\xf0\x9f\xa9\xbb;");
}

/* Sequences that RFC 3629 forbids: a lone or missing continuation byte, overlong, surrogate, above U+10FFFF. */
TEST(other_encodings_than_utf8_are_refused)
{
    static const char *const bad[] = {"\x80",         "\xc3",         "\xc0\xaf",         "\xc1\xbf",
                                      "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80",
                                      "\xf5",         "\xff",         "\xe2\x82",         "\xe2\x28\xa1"};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char csv[32];

        snprintf(csv, sizeof(csv), "a\nb\nx%s,y\n", bad[i]);
        expect_error(csv, strlen(csv), ":3: the text is not UTF-8");
    }
    EXPECT_ERROR("\xff\xfe"
                 "a\0,\0",
                 ":1: the text is UTF-16; save it as UTF-8");
    EXPECT_ERROR("\xfe\xff\0a\0,", ":1: the text is UTF-16; save it as UTF-8");
}

TEST(a_nul_byte_is_refused)
{
    EXPECT_ERROR("a,b\nc\0,d\n", ":2: a NUL byte, so this is not text");
    EXPECT_OTHER("\0", ":1: all bytes are zero (disk full or download interrupted?)");
    EXPECT_ERROR("a\n\0", ":2: a NUL byte, so this is not text");
}

TEST(a_binary_file_is_recognised_by_its_first_bytes)
{
    EXPECT_OTHER("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", ":1: looks like PNG");
    EXPECT_OTHER("<!DOCTYPE html><html><body>Log in</body></html>\n", ":1: looks like HTML: the download failed");
    EXPECT_OTHER("\xef\xbb\xbf<html>\n", ":1: looks like HTML: the download failed");
    EXPECT_OTHER("version https://git-lfs.github.com/spec/v1\n", ":1: a Git LFS pointer, not the file (git lfs pull)");
    /* xlsx: a zip archive (APPNOTE.TXT 4.3.7) whose first member is named by ECMA-376, part 2. */
    EXPECT_OTHER("PK\x03\x04\x14\0\6\0\x08\0\0\0\x21\0\0\0\0\0\0\0\0\0\0\0\0\0\x13\0\0\0[Content_Types].xml",
                 ":1: looks like Excel (save it as CSV)");
    /* Text may start like a binary file. */
    expect_rows("BZh,GIF89a\nBM,PAR1\n", "1:BZh|GIF89a;2:BM|PAR1;");
    expect_rows("x,<html>\n", "1:x|<html>;");
}

TEST(an_unclosed_quote_is_reported_where_its_row_starts)
{
    EXPECT_ERROR("a,b\nc,\"d\ne,f\n", ":2: a quote that is not closed");
    EXPECT_ERROR("a,b\nc,\"d", ":2: a quote that is not closed");
}

TEST(an_unclosed_quote_does_not_swallow_a_large_file)
{
    size_t size = 200000;
    char *csv = malloc(size);

    ck_assert_ptr_nonnull(csv);
    for (size_t i = 0; i < size; i += 10)
        memcpy(csv + i, "abcd,efgh\n", 10);
    csv[20] = '"';
    expect_error(csv, size, ":3: the row is longer than 65536 bytes (a quote that is not closed?)");
    free(csv);
}

TEST(a_misplaced_quote_is_refused)
{
    EXPECT_ERROR("a,b\nc\"x,d\n", ":2: a quote in the wrong place");
    EXPECT_ERROR("a,b\n\"c\"x,d\n", ":2: a quote in the wrong place");
}

TEST(a_line_may_have_65536_bytes_and_no_more)
{
    size_t size = TABLE_MAX_LINE + 5;
    char *csv = malloc(size);
    struct seen s = {0};
    struct chex_error err;

    ck_assert_ptr_nonnull(csv);
    memset(csv, ' ', size);
    memcpy(csv, "a\n", 2);
    csv[2] = 'b';
    csv[2 + TABLE_MAX_LINE] = '\r';
    csv[3 + TABLE_MAX_LINE] = '\n';
    ck_assert_int_eq(table_read(unit_file("long.csv", csv, size - 1), on_row, &s, NULL, &err), CHEX_OK);
    ck_assert_str_eq(s.text, "1:a;2:b;");
    csv[2 + TABLE_MAX_LINE] = ' ';
    expect_error(csv, size - 2, ":2: the line is longer than 65536 bytes");
    expect_error(csv, size - 1, ":2: the line is longer than 65536 bytes");
    free(csv);
}

/* The window of line_reader.c is 256 KiB; lines, CR LF and UTF-8 must be intact at any offset across its edges. */
TEST(rows_across_the_edges_of_the_window_are_complete)
{
    size_t size = 0;
    char *csv = malloc(700000);
    struct line_reader *t;
    struct text_line line;
    struct chex_error err;
    unsigned long rows = 0;

    ck_assert_ptr_nonnull(csv);
    for (unsigned i = 0; size < 600000; i++)
        size += (size_t)sprintf(csv + size, "%u,\xc3\xa9%.*s\r\n", i, (int)(i % 7), "abcdefg");
    ck_assert_int_eq(text_open(unit_file("edges.csv", csv, size), false, &t, &err), CHEX_OK);
    while (text_next(t, &line, &err) == CHEX_OK && line.data) {
        char wanted[64];
        int length = sprintf(wanted, "%lu,\xc3\xa9%.*s", rows, (int)(rows % 7), "abcdefg");

        ck_assert_uint_eq(line.size, (size_t)length);
        ck_assert_uint_eq(line.full, (size_t)length + 2);
        ck_assert_uint_eq(line.number, ++rows);
        ck_assert_mem_eq(line.data, wanted, (size_t)length);
    }
    text_close(t);
    ck_assert_uint_gt(rows, 40000);
    free(csv);
}

TEST(more_than_520_fields_are_refused)
{
    char csv[2 * (TABLE_MAX_FIELDS + 1)];
    struct seen s = {0};
    struct chex_error err;

    for (size_t i = 0; i < sizeof(csv); i += 2)
        memcpy(csv + i, "x,", 2);
    csv[sizeof(csv) - 3] = '\n'; /* the largest number of fields */
    ck_assert_int_eq(table_read(unit_file("fields.csv", csv, sizeof(csv) - 2), on_row, &s, NULL, &err), CHEX_OK);
    csv[sizeof(csv) - 3] = ',';
    csv[sizeof(csv) - 1] = '\n';
    expect_error(csv, sizeof(csv), ":1: more than 520 fields");
}

TEST(an_error_of_the_callback_stops_the_reading)
{
    struct seen s = {.stop_at = 2};
    struct chex_error err;
    const char *path = unit_file("stop.csv", "a\nb\nc\n", 6);
    char wanted[1200];

    ck_assert_int_eq(table_read(path, on_row, &s, NULL, &err), CHEX_ERR_USAGE);
    ck_assert_uint_eq(s.rows, 2);
    snprintf(wanted, sizeof(wanted), "%s:2: stopped in row 2", path);
    ck_assert_str_eq(err.text, wanted);
    ck_assert_int_eq(table_read(path, on_row, &s, NULL, NULL), CHEX_OK); /* no room for a text is fine */
}

TEST(columns_are_found_without_case_blanks_and_underscores)
{
    static const char *const image[] = {"Image Index", NULL};
    static const char *const split[] = {"set", "Split", NULL};
    static const char *const none[] = {"Image", NULL};
    struct table_row row = {.count = 3, .field = {"", "image_INDEX", "split"}};

    ck_assert_int_eq(table_column(&row, image), 1);
    ck_assert_int_eq(table_column(&row, split), 2);
    ck_assert_int_eq(table_column(&row, none), -1);
}

/* ---- files ---------------------------------------------------------------------------------------------------- */

TEST_CASE("table", "files", NULL, NULL);

TEST(gzip_is_recognised_by_its_bytes_and_may_have_members)
{
    size_t first_size, second_size;
    uint8_t *first = gzip("a,b\r\nc", 6, &first_size);
    uint8_t *second = gzip(",d\n", 3, &second_size);
    uint8_t both[512] = {0};

    expect_rows_of(unit_file("named.csv", first, first_size), "1:a|b;2:c;");
    memcpy(both, first, first_size);
    memcpy(both + first_size, second, second_size);
    expect_rows_of(unit_file("two.csv.gz", both, first_size + second_size), "1:a|b;2:c|d;");
    /* padding of zeros, as on a tape */
    expect_rows_of(unit_file("padded.csv.gz", both, sizeof(both)), "1:a|b;2:c|d;");
    expect_rows_of(unit_file("plain.csv.gz", "a,b\n", 4), "1:a|b;");
    free(first);
    free(second);
}

/* The padding starts at the end of a read; a comment in the header adds the missing bytes. */
TEST(padding_may_begin_where_a_piece_of_the_file_does)
{
    static uint8_t file[65536 + 512];
    size_t size, comment;
    uint8_t *data = gzip("a,b\n", 4, &size);

    comment = 65536 - size;
    memcpy(file, data, 10);
    file[3] |= 16; /* FCOMMENT */
    memset(file + 10, 'x', comment - 1);
    memcpy(file + 10 + comment, data + 10, size - 10);
    expect_rows_of(unit_file("piece.csv.gz", file, 65536), "1:a|b;");
    expect_rows_of(unit_file("padded.csv.gz", file, sizeof(file)), "1:a|b;");
    free(data);
}

TEST(damaged_gzip_data_is_refused)
{
    size_t size;
    uint8_t *data = gzip("a,b\nc,d\ne,f\n", 12, &size);

    expect_error_of(unit_file("short.gz", data, size - 9), CHEX_ERR_USAGE,
                    ":1: the gzip data ends too early (download interrupted?)");
    expect_error_of(unit_file("head.gz", data, 2), CHEX_ERR_USAGE,
                    ":1: the gzip data ends too early (download interrupted?)");
    data[size - 6] ^= 1; /* of the stored CRC-32 */
    expect_error_of(unit_file("crc.gz", data, size), CHEX_ERR_USAGE, ":1: damaged gzip data");
    data[size - 6] ^= 1;
    data[12] ^= 0x55;
    expect_error_of(unit_file("bits.gz", data, size), CHEX_ERR_USAGE, ":1: damaged gzip data");
    expect_error_of(unit_file("method.gz", "\x1f\x8b\x07\0\0\0\0\0\0\0", 10), CHEX_ERR_USAGE, ":1: damaged gzip data");
    free(data);
}

TEST(gzip_followed_by_other_data_is_refused)
{
    size_t size;
    uint8_t *data = gzip("a\n", 2, &size);
    uint8_t with[256];

    memcpy(with, data, size);
    memcpy(with + size, "garbage", 7);
    expect_error_of(unit_file("garbage.gz", with, size + 7), CHEX_ERR_USAGE, ":1: damaged gzip data");
    free(data);
}

/* 257 members of 1 MiB each make a file of some 300 kB. */
TEST(a_small_gzip_file_cannot_be_a_huge_text)
{
    static uint8_t lines[1 << 20];
    size_t size, total = 0;
    uint8_t *member, *file;
    struct line_reader *t;
    struct text_line line;
    struct chex_error err;

    memset(lines, ' ', sizeof(lines));
    for (size_t i = 65535; i < sizeof(lines); i += 65536)
        lines[i] = '\n';
    member = gzip(lines, sizeof(lines), &size);
    file = malloc(257 * size);
    ck_assert_ptr_nonnull(file);
    for (int i = 0; i < 257; i++, total += size)
        memcpy(file + total, member, size);
    ck_assert_uint_lt(total, 1000000);
    ck_assert_int_eq(text_open(unit_file("bomb.gz", file, total), false, &t, &err), CHEX_OK);
    while (text_next(t, &line, &err) == CHEX_OK)
        ck_assert_ptr_nonnull(line.data);
    ck_assert_int_eq(err.status, CHEX_ERR_USAGE);
    ck_assert_uint_eq(line.number, 256 * 16 + 1);
    ck_assert_ptr_nonnull(strstr(err.text, ": the file is larger than 256 MiB"));
    text_close(t);
    free(member);
    free(file);
}

TEST(a_missing_file_a_folder_and_a_fifo_are_missing)
{
    struct seen s = {0};
    struct chex_error err;
    char path[1100], wanted[1300];

    snprintf(path, sizeof(path), "%s/none.csv", unit_folder());
    ck_assert_int_eq(table_read(path, on_row, &s, NULL, &err), CHEX_ERR_MISSING);
    snprintf(wanted, sizeof(wanted), "'%s': cannot open: No such file or directory", path);
    ck_assert_str_eq(err.text, wanted);

    ck_assert_int_eq(table_read(unit_folder(), on_row, &s, NULL, &err), CHEX_ERR_MISSING);
    snprintf(wanted, sizeof(wanted), "'%s': not a regular file", unit_folder());
    ck_assert_str_eq(err.text, wanted);

    snprintf(path, sizeof(path), "%s/fifo", unit_folder());
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(table_read(path, on_row, &s, NULL, &err), CHEX_ERR_MISSING);
    snprintf(wanted, sizeof(wanted), "'%s': not a regular file", path);
    ck_assert_str_eq(err.text, wanted);
}

/* Page 0 of a process cannot be read: on Linux, a regular file that gives EIO. */
TEST(a_read_error_is_not_reported_as_damaged_text)
{
    struct seen s = {0};
    struct chex_error err;

    if (access("/proc/self/mem", R_OK) != 0)
        return;
    ck_assert_int_eq(table_read("/proc/self/mem", on_row, &s, NULL, &err), CHEX_ERR_READ);
    ck_assert_ptr_nonnull(strstr(err.text, "'/proc/self/mem': read error at byte 0: "));
}

/* SHA-256 of "abc": FIPS 180-2, appendix B.1. */
TEST(the_hash_is_of_the_decompressed_text)
{
    static const char abc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    size_t size;
    uint8_t *data = gzip("abc", 3, &size);
    struct seen s = {0};
    char hex[DIGEST_HEX];
    struct chex_error err;

    ck_assert_int_eq(table_read(unit_file("abc", "abc", 3), on_row, &s, hex, &err), CHEX_OK);
    ck_assert_str_eq(hex, abc);
    ck_assert_int_eq(table_read(unit_file("abc.gz", data, size), on_row, &s, hex, &err), CHEX_OK);
    ck_assert_str_eq(hex, abc);
    free(data);
}
