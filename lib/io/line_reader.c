/*
 * line_reader.c - see line_reader.h
 *
 * It has two layers.  The lower one is a source of bytes: plain, or inflated by zlib, read with file_pread() and its
 * retries.  The upper one finds lines in a window.  Each byte is examined once: the loop that searches the end of the
 * line also finds NUL, and notes whether the line must be checked as UTF-8.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "io/line_reader.h"

#include "io/content.h"
#include "io/file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define WINDOW (4 * TEXT_MAX_LINE) /* above TEXT_MAX_LINE + 2, so that every allowed line fits */
#define INPUT  65536

struct line_reader {
    const char *path;
    int fd;
    uint64_t offset; /* in the file */
    uint64_t total;  /* bytes of text so far */

    bool gzip;
    bool member; /* gzip: inside a member, not between two members */
    z_stream z;
    uint8_t input[INPUT];

    struct digest *digest; /* NULL: no hash */

    unsigned long number; /* of the line that is being searched */
    bool begun;           /* the first bytes were examined */
    bool end_of_file;     /* nothing follows window[end] */
    size_t begin, end;    /* of the text in the window */
    size_t seen;          /* examined bytes from begin */
    bool high;            /* some of them are 0x80 or above */
    char window[WINDOW];
};

static enum chex_status
text_fail(const struct line_reader *t, struct chex_error *err, const char *what)
{
    return error_set(err, CHEX_ERR_USAGE, "%s:%lu: %s", t->path, t->number, what);
}

enum chex_status
text_open(const char *path, bool hash, struct line_reader **out, struct chex_error *err)
{
    struct line_reader *t = calloc(1, sizeof(*t));
    enum chex_status status = CHEX_OK;
    uint64_t size;

    *out = NULL;
    if (!t)
        return error_memory(err);
    t->path = path;
    t->number = 1;
    t->fd = -1;
    if (hash) {
        t->digest = digest_new();
        if (!t->digest)
            status = error_memory(err);
        else
            digest_start(t->digest);
    }
    if (status == CHEX_OK) {
        status = file_open_input(AT_FDCWD, path, &t->fd, &size, err);
        if (status != CHEX_OK) {
            t->fd = -1;
            status = error_context(err, status, "'%s'", path);
        }
    }
    if (status != CHEX_OK) {
        text_close(t);
        return status;
    }
    *out = t;
    return CHEX_OK;
}

void
text_close(struct line_reader *t)
{
    if (!t)
        return;
    if (t->gzip)
        inflateEnd(&t->z);
    if (t->fd >= 0)
        close(t->fd);
    digest_free(t->digest);
    free(t);
}

void
text_sha256(struct line_reader *t, char hex[DIGEST_HEX])
{
    uint8_t sum[DIGEST_SIZE];

    digest_finish(t->digest, sum);
    digest_hex(sum, sizeof(sum), hex);
}

/* ---- bytes ---------------------------------------------------------------------------------------------------- */

static enum chex_status
read_plain(struct line_reader *t, void *data, size_t size, size_t *got, struct chex_error *err)
{
    enum chex_status status = file_pread(t->fd, t->offset, data, size, got, err);

    if (status != CHEX_OK)
        return error_context(err, status, "'%s'", t->path);
    t->offset += *got;
    return CHEX_OK;
}

/* Fill z's input after the file's first piece.  Zeros between and after members are padding (tar, tape): skip them. */
static enum chex_status
refill_input(struct line_reader *t, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    size_t got = 1;

    while (status == CHEX_OK && t->z.avail_in == 0 && got > 0) {
        status = read_plain(t, t->input, INPUT, &got, err);
        t->z.next_in = t->input;
        t->z.avail_in = (uInt)got;
        while (!t->member && t->z.avail_in > 0 && t->z.next_in[0] == 0) {
            t->z.next_in++;
            t->z.avail_in--;
        }
    }
    return status;
}

static enum chex_status
read_gzip(struct line_reader *t, void *data, size_t size, size_t *got, struct chex_error *err)
{
    enum chex_status status;
    int result;

    t->z.next_out = data;
    t->z.avail_out = (uInt)size;
    while (t->z.avail_out > 0) {
        status = refill_input(t, err);
        if (status != CHEX_OK)
            return status;
        if (t->z.avail_in == 0) {
            if (t->member)
                return text_fail(t, err, "the gzip data ends too early (download interrupted?)");
            break;
        }
        if (!t->member && inflateReset(&t->z) != Z_OK)
            return error_set(err, CHEX_ERR_BUG, "inflateReset() failed");
        t->member = true;
        result = inflate(&t->z, Z_NO_FLUSH);
        if (result == Z_MEM_ERROR)
            return error_memory(err);
        if (result == Z_STREAM_END) {
            t->member = false;
            /* Skip padding in the buffer; refill_input() skips padding that it reads later. */
            for (; t->z.avail_in > 0 && t->z.next_in[0] == 0; t->z.avail_in--)
                t->z.next_in++;
        } else if (result != Z_OK) {
            return text_fail(t, err, "damaged gzip data");
        }
    }
    *got = size - t->z.avail_out;
    return CHEX_OK;
}

/* Recognise gzip by the first bytes.  If the file is plain, they are already text. */
static enum chex_status
begin_reading(struct line_reader *t, struct chex_error *err)
{
    size_t got;
    enum chex_status status = read_plain(t, t->input, INPUT, &got, err);

    if (status != CHEX_OK)
        return status;
    if (got < 2 || t->input[0] != 0x1f || t->input[1] != 0x8b) {
        t->offset = 0; /* read them again: simpler than a second way into the window */
        return CHEX_OK;
    }
    if (inflateInit2(&t->z, 16 + MAX_WBITS) != Z_OK)
        return error_memory(err);
    t->gzip = true;
    t->z.next_in = t->input;
    t->z.avail_in = (uInt)got;
    return CHEX_OK;
}

/* Move the remaining text to the front of the window, and fill the window after it. */
static enum chex_status
refill_window(struct line_reader *t, struct chex_error *err)
{
    enum chex_status status;
    size_t room, got = 0;

    memmove(t->window, t->window + t->begin, t->end - t->begin);
    t->end -= t->begin;
    t->begin = 0;
    room = WINDOW - t->end;
    status = t->gzip ? read_gzip(t, t->window + t->end, room, &got, err)
                     : read_plain(t, t->window + t->end, room, &got, err);
    if (status != CHEX_OK)
        return status;
    t->total += got;
    if (t->total > TEXT_MAX_FILE)
        return text_fail(t, err, "the file is larger than 256 MiB");
    if (t->digest)
        digest_add(t->digest, t->window + t->end, got);
    t->end += got;
    t->end_of_file = got < room;
    return CHEX_OK;
}

/* Refuse a file that is not text but another known format.  It is the wrong file, not a right one with a mistake. */
static enum chex_status
check_content(const struct line_reader *t, struct chex_error *err)
{
    const char *look = t->end > t->begin
                           ? content_look_for_text((const uint8_t *)t->window + t->begin, t->end - t->begin)
                           : NULL;

    return look ? error_set(err, CHEX_ERR_MISSING, "%s:%lu: %s", t->path, t->number, look) : CHEX_OK;
}

static enum chex_status
skip_byte_order_mark(struct line_reader *t, struct chex_error *err)
{
    const char *p = t->window + t->begin;
    size_t size = t->end - t->begin;

    if (size >= 2 && (memcmp(p, "\xff\xfe", 2) == 0 || memcmp(p, "\xfe\xff", 2) == 0))
        return text_fail(t, err, "the text is UTF-16; save it as UTF-8");
    if (size >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
        t->begin += 3;
    return CHEX_OK;
}

/* ---- lines ---------------------------------------------------------------------------------------------------- */

/* Check UTF-8, RFC 3629 section 4: no overlong forms, no surrogates, nothing above U+10FFFF. */
static bool
is_utf8(const unsigned char *p, size_t size)
{
    for (size_t i = 0; i < size;) {
        unsigned char c = p[i++];
        unsigned char low = 0x80, high = 0xbf; /* the range of the second byte */
        unsigned follow;

        if (c < 0x80)
            continue;
        if (c < 0xc2 || c > 0xf4)
            return false;
        follow = c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
        if (c == 0xe0)
            low = 0xa0;
        else if (c == 0xed)
            high = 0x9f;
        else if (c == 0xf0)
            low = 0x90;
        else if (c == 0xf4)
            high = 0x8f;
        if (size - i < follow)
            return false;
        for (; follow > 0; follow--, low = 0x80, high = 0xbf) {
            if (p[i] < low || p[i] > high)
                return false;
            i++;
        }
    }
    return true;
}

/*
 * Search the end of the line that starts at begin.  Returns true if it is in the window: *size without, *full with its
 * ending.  It also stops at NUL, which text_next() then finds at data[size].
 */
static bool
find_line(struct line_reader *t, size_t *size, size_t *full)
{
    const unsigned char *p = (const unsigned char *)t->window + t->begin;
    size_t rest = t->end - t->begin;
    size_t i = t->seen;
    bool high = t->high;

    for (; i < rest; i++) {
        if (p[i] >= 0x80)
            high = true;
        else if (p[i] == '\n' || p[i] == '\r' || p[i] == 0)
            break;
    }
    t->seen = i;
    t->high = high;
    *size = *full = i;
    if (i == rest)
        return t->end_of_file;
    if (p[i] == '\r') {
        if (i + 1 == rest && !t->end_of_file)
            return false; /* a LF may follow */
        *full += i + 1 < rest && p[i + 1] == '\n';
    }
    *full += p[i] != 0;
    return true;
}

enum chex_status
text_next(struct line_reader *t, struct text_line *line, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    size_t size, full;

    *line = (struct text_line){.number = t->number};
    if (!t->begun) {
        status = begin_reading(t, err);
        if (status == CHEX_OK)
            status = refill_window(t, err);
        if (status == CHEX_OK)
            status = check_content(t, err);
        if (status == CHEX_OK)
            status = skip_byte_order_mark(t, err);
        t->begun = true;
    }
    while (status == CHEX_OK && !find_line(t, &size, &full)) {
        if (t->seen > TEXT_MAX_LINE)
            break;
        status = refill_window(t, err);
    }
    if (status != CHEX_OK)
        return status;
    if (t->seen > TEXT_MAX_LINE)
        return text_fail(t, err, "the line is longer than 65536 bytes");
    if (t->begin == t->end)
        return CHEX_OK;
    line->data = t->window + t->begin;
    if (t->begin + size < t->end && line->data[size] == '\0')
        return text_fail(t, err, "a NUL byte, so this is not text");
    if (t->high && !is_utf8((const unsigned char *)line->data, size))
        return text_fail(t, err, "the text is not UTF-8");
    line->size = size;
    line->full = full;
    t->begin += full;
    t->seen = 0;
    t->high = false;
    t->number++;
    return CHEX_OK;
}
