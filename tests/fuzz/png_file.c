/*
 * png_file.c - see png_file.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "png_file.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define SIGNATURE "\x89PNG\r\n\x1a\n"
#define FRAME     12         /* length, type and CRC of a chunk */
#define MAX_ROWS  (1u << 20) /* bytes of rows that are processed */

static void
append(struct buffer *b, const void *data, size_t size)
{
    if (size > 0)
        FUZZ_REQUIRE(buffer_append(b, data, size, NULL) == CHEX_OK);
}

static void
append_chunk(struct buffer *b, const char *type, const void *data, size_t size)
{
    uint8_t word[4];
    uint32_t crc = (uint32_t)crc32_z(crc32_z(0, (const Bytef *)type, 4), data, size);

    fuzz_put_u32be(word, (uint32_t)size);
    append(b, word, 4);
    append(b, type, 4);
    append(b, data, size);
    fuzz_put_u32be(word, size > 0 ? crc : (uint32_t)crc32_z(0, (const Bytef *)type, 4));
    append(b, word, 4);
}

/* ---- making ---------------------------------------------------------------------------------------------------- */

static void
deflate_rows(const struct buffer *rows, int level, int strategy, struct buffer *packed)
{
    z_stream z = {0};

    FUZZ_REQUIRE(deflateInit2(&z, level, Z_DEFLATED, MAX_WBITS, 8, strategy) == Z_OK);
    packed->size = 0;
    FUZZ_REQUIRE(buffer_reserve(packed, deflateBound(&z, (uLong)rows->size) + 64, NULL) == CHEX_OK);
    z.next_in = rows->data;
    z.avail_in = (uInt)rows->size;
    z.next_out = packed->data;
    z.avail_out = (uInt)packed->capacity;
    FUZZ_REQUIRE(deflate(&z, Z_FINISH) == Z_STREAM_END);
    packed->size = z.total_out;
    deflateEnd(&z);
}

/* Makes rows with all filter types; alpha, if present, is mostly opaque. */
static void
make_rows(const struct png_form *form, uint64_t *random, struct buffer *rows)
{
    static const unsigned channels[] = {1, 0, 3, 1, 2, 0, 4};
    unsigned n = channels[form->colour];
    size_t width = ((size_t)form->width * n * form->depth + 7) / 8;

    for (uint32_t y = 0; y < form->height; y++) {
        bool rgba = form->colour == 6 && form->depth == 8;
        uint8_t type = rgba ? 0 : (uint8_t)fuzz_below(random, 5);
        uint8_t mask = fuzz_below(random, 3) == 0 ? 0xff : 0x07;

        append(rows, &type, 1);
        for (size_t x = 0; x < width; x++) {
            uint8_t value = (uint8_t)(fuzz_random(random) & mask);

            if (rgba && x % 4 != 0)
                value = x % 4 == 3 ? 255 : rows->data[rows->size - 1];
            append(rows, &value, 1);
        }
    }
}

static void
append_ancillary(struct buffer *b)
{
    append_chunk(b, "gAMA", "\0\0\xb1\x8f", 4);
    append_chunk(b, "pHYs", "\0\0\x0b\x13\0\0\x0b\x13\1", 9);
    append_chunk(b, "tIME", "\x07\xe0\1\1\0\0\0", 7);
}

void
png_file_make(const struct png_form *form, uint64_t random, struct buffer *b)
{
    struct buffer rows = {0}, packed = {0};
    uint8_t header[13] = {0};
    size_t piece, at = 0;

    fuzz_put_u32be(header, form->width);
    fuzz_put_u32be(header + 4, form->height);
    header[8] = (uint8_t)form->depth;
    header[9] = (uint8_t)form->colour;
    header[12] = form->interlaced;
    append(b, SIGNATURE, 8);
    append_chunk(b, "IHDR", header, sizeof(header));
    if (form->ancillary)
        append_ancillary(b);
    if (form->colour == 3)
        append_chunk(b, "PLTE", "\0\0\0\x10\x20\x30\xff\xff\xff", 9);
    make_rows(form, &random, &rows);
    deflate_rows(&rows, form->level, form->strategy, &packed);
    piece = packed.size / form->pieces + 1;
    for (; at < packed.size; at += piece)
        append_chunk(b, "IDAT", packed.data + at, packed.size - at < piece ? packed.size - at : piece);
    append_chunk(b, "IEND", NULL, 0);
    buffer_release(&rows);
    buffer_release(&packed);
}

/* ---- taking apart ---------------------------------------------------------------------------------------------- */

struct parts {
    struct buffer packed; /* the data of all IDATs */
    size_t first, end;    /* offsets in the file: of the first IDAT, and of the end of the last one */
    uint32_t piece;       /* length of the first IDAT */
    bool whole;           /* there are IDATs, and they follow each other directly */
};

/* Sets the length of the chunk at this offset; returns false if the chunk is not complete. */
static bool
chunk_at(const struct buffer *file, size_t at, uint32_t *length)
{
    if (at > file->size || file->size - at < FRAME)
        return false;
    *length = fuzz_get_u32be(file->data + at);
    return *length <= file->size - at - FRAME;
}

static struct parts
take_apart(const struct buffer *file)
{
    struct parts p = {0};
    uint32_t length;

    for (size_t at = 8; chunk_at(file, at, &length); at += FRAME + (size_t)length) {
        if (memcmp(file->data + at + 4, "IDAT", 4) != 0)
            continue;
        if (!p.whole) {
            p.first = at;
            p.piece = length;
        } else if (p.end != at) {
            break;
        }
        append(&p.packed, file->data + at + 8, length);
        p.end = at + FRAME + length;
        p.whole = true;
    }
    return p;
}

/* Replaces the IDATs with the packed bytes of the parts. */
static void
put_together(struct buffer *file, const struct parts *p)
{
    struct buffer out = {0};
    size_t piece = p->piece > 0 ? p->piece : 1, at = 0;

    append(&out, file->data, p->first);
    do {
        size_t size = p->packed.size - at < piece ? p->packed.size - at : piece;

        append_chunk(&out, "IDAT", p->packed.data + at, size);
        at += size;
        if (out.size > (1u << 22)) /* chunks of one byte: this is enough */
            piece = p->packed.size;
    } while (at < p->packed.size);
    append(&out, file->data + p->end, file->size - p->end);
    buffer_release(file);
    *file = out;
}

/*
 * Inflates the bytes after the two bytes of the zlib header and sets *used to their number; returns false if the stream
 * has no end.
 */
static bool
inflate_rows(const struct buffer *packed, struct buffer *rows, size_t *used)
{
    z_stream z = {0};
    int code;

    if (packed->size < 2 || inflateInit2(&z, -MAX_WBITS) != Z_OK)
        return false;
    FUZZ_REQUIRE(buffer_reserve(rows, MAX_ROWS, NULL) == CHEX_OK);
    z.next_in = packed->data + 2;
    z.avail_in = (uInt)(packed->size - 2);
    z.next_out = rows->data;
    z.avail_out = MAX_ROWS;
    code = inflate(&z, Z_FINISH);
    rows->size = z.total_out;
    *used = 2 + z.total_in;
    inflateEnd(&z);
    return code == Z_STREAM_END;
}

bool
png_file_change_rows(struct buffer *file, size_t (*change)(uint8_t *, size_t, size_t), uint64_t *random)
{
    struct parts p = take_apart(file);
    struct buffer rows = {0};
    size_t used;
    bool good = p.whole && inflate_rows(&p.packed, &rows, &used) && rows.size > 0;

    if (good) {
        size_t size = rows.size, changed = change(rows.data, size, MAX_ROWS);
        int strategy;

        /* Mostly with the size that the header requires. */
        if (fuzz_below(random, 16) > 0) {
            if (changed < size)
                memset(rows.data + changed, 0, size - changed);
            changed = size;
        }
        rows.size = changed;
        strategy = (int)fuzz_below(random, 5);
        deflate_rows(&rows, (int)fuzz_below(random, 10), strategy, &p.packed);
        put_together(file, &p);
    }
    buffer_release(&p.packed);
    buffer_release(&rows);
    return good;
}

void
png_file_repair(struct buffer *file, bool adler)
{
    struct parts p = take_apart(file);
    struct buffer rows = {0};
    size_t used;
    uint32_t length;

    if (adler && p.whole && inflate_rows(&p.packed, &rows, &used)) {
        uint8_t word[4];

        fuzz_put_u32be(word, (uint32_t)adler32_z(1, rows.data, rows.size));
        p.packed.size = used;
        append(&p.packed, word, 4);
        put_together(file, &p);
    }
    for (size_t at = 8; chunk_at(file, at, &length); at += FRAME + (size_t)length)
        fuzz_put_u32be(file->data + at + 8 + length, (uint32_t)crc32_z(0, file->data + at + 4, (size_t)length + 4));
    buffer_release(&p.packed);
    buffer_release(&rows);
}
