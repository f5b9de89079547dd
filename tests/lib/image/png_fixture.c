/*
 * png_fixture.c - see png_fixture.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "png_fixture.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static void
append(struct buffer *b, const void *data, size_t size)
{
    ck_assert_int_eq(buffer_append(b, data, size, NULL), CHEX_OK);
}

static void
put_u32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (24 - 8 * i));
}

static uint32_t
get_u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

int
fixture_channels(int colour)
{
    static const int channels[] = {[GRAY] = 1, [RGB] = 3, [INDEXED] = 1, [GRAY_ALPHA] = 2, [RGBA] = 4};

    return channels[colour];
}

unsigned
fixture_sample(const struct fixture *f, uint32_t x, uint32_t y, int channel)
{
    unsigned value = f->sample(x, y, channel);

    return f->palette ? value % (unsigned)f->palette_size : value & ((1u << f->depth) - 1);
}

void
fixture_signature(struct buffer *b)
{
    append(b, "\x89PNG\r\n\x1a\n", 8);
}

void
fixture_repair(struct buffer *b, size_t at)
{
    size_t size = get_u32(b->data + at);

    put_u32(b->data + at + 8 + size, (uint32_t)crc32_z(0, b->data + at + 4, size + 4));
}

void
fixture_chunk(struct buffer *b, const char *type, const void *data, size_t size)
{
    size_t at = b->size;
    uint8_t word[4];

    put_u32(word, (uint32_t)size);
    append(b, word, 4);
    append(b, type, 4);
    append(b, data, size);
    append(b, word, 4);
    fixture_repair(b, at);
}

void
fixture_header(struct buffer *b, const struct fixture *f)
{
    uint8_t header[13] = {0};

    put_u32(header, f->width);
    put_u32(header + 4, f->height);
    header[8] = (uint8_t)f->depth;
    header[9] = (uint8_t)f->colour;
    header[12] = f->interlaced;
    fixture_signature(b);
    fixture_chunk(b, "IHDR", header, sizeof(header));
    if (f->palette)
        fixture_chunk(b, "PLTE", f->palette, 3 * f->palette_size);
    if (f->trns)
        fixture_chunk(b, "tRNS", f->trns, f->trns_size);
}

/* Appends the rows of a (sub)image: columns x0, x0 + dx, ... of rows y0, y0 + dy, ... */
static void
raw_pass(struct buffer *b, const struct fixture *f, uint32_t x0, uint32_t y0, uint32_t dx, uint32_t dy)
{
    for (uint32_t y = y0; y < f->height && x0 < f->width; y += dy) {
        unsigned bits = 0, held = 0;
        uint8_t byte = 0;

        append(b, &byte, 1);
        for (uint32_t x = x0; x < f->width; x += dx) {
            for (int c = 0; c < fixture_channels(f->colour); c++) {
                held = held << f->depth | fixture_sample(f, x, y, c);
                for (bits += (unsigned)f->depth; bits >= 8; bits -= 8) {
                    byte = (uint8_t)(held >> (bits - 8));
                    append(b, &byte, 1);
                }
            }
        }
        if (bits > 0) {
            byte = (uint8_t)(held << (8 - bits));
            append(b, &byte, 1);
        }
    }
}

/* Passes: PNG specification, 8.2. */
void
fixture_raw(struct buffer *b, const struct fixture *f)
{
    static const uint8_t adam7[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                        {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};

    if (!f->interlaced)
        raw_pass(b, f, 0, 0, 1, 1);
    for (int i = 0; f->interlaced && i < 7; i++)
        raw_pass(b, f, adam7[i][0], adam7[i][1], adam7[i][2], adam7[i][3]);
}

void
fixture_deflate(struct buffer *b, const void *raw, size_t size)
{
    uLongf packed = compressBound((uLong)size);

    ck_assert_int_eq(buffer_reserve(b, b->size + packed, NULL), CHEX_OK);
    ck_assert_int_eq(compress2(b->data + b->size, &packed, raw, (uLong)size, 6), Z_OK);
    b->size += packed;
}

void
fixture_png(struct buffer *b, const struct fixture *f)
{
    struct buffer raw = {0}, packed = {0};

    fixture_raw(&raw, f);
    fixture_deflate(&packed, raw.data, raw.size);
    fixture_header(b, f);
    fixture_chunk(b, "IDAT", packed.data, packed.size);
    fixture_chunk(b, "IEND", NULL, 0);
    buffer_release(&raw);
    buffer_release(&packed);
}

size_t
fixture_find(const struct buffer *b, const char *type)
{
    for (size_t at = 8; at + 12 <= b->size; at += 12 + (size_t)get_u32(b->data + at))
        if (memcmp(b->data + at + 4, type, 4) == 0)
            return at;
    ck_abort_msg("no %s", type);
}
