/*
 * png_fast.c - see png_fast.h
 *
 * The accepted form: signature; IHDR with 8 bits, colour type 0 or 6, no interlacing; chunks that do not affect pixels,
 * of the kinds that the data set has and with a valid length; consecutive IDATs; IEND; nothing after it.  All chunk
 * checksums are correct.  The zlib stream has a 32 KiB window, ends with the last byte of the last IDAT and contains
 * exactly the image; its Adler-32 is correct.  Filter types are 0 to 4.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "image/png_fast.h"

#include "base/clock.h"
#include "base/cpu.h"
#include "image/png_chunk.h"
#include "kernels/inflate.h"
#include "kernels/unfilter.h"

#include <isa-l/crc.h>
#include <stdlib.h>
#include <string.h>

#define CHANNELS_RGBA 4

_Static_assert(UNFILTER_SLACK <= INFLATER_OUT_SLACK, "one slack serves both");

struct header {
    uint32_t width, height;
    unsigned channels;
};

struct fastpng {
    struct inflater *tables;
    struct buffer packed; /* the concatenated data of the IDATs */
    struct buffer raw;    /* filtered rows, each after its filter type */
    struct buffer plane;  /* RGBA: the rows of one channel, filtered */
    const struct unfilter_kind *kind;
    /* Of the current image: */
    struct header header;
    size_t row;        /* bytes of a filtered row with its filter type */
    uint32_t rows;     /* number of rows done */
    struct image *out; /* not owned */
    double *unfilter;  /* CPU seconds of undoing filters are added to it; NULL: not measured */
};

struct fastpng *
fastpng_new(void)
{
    struct fastpng *fast = calloc(1, sizeof(*fast));

    if (!fast)
        return NULL;
    fast->kind = unfilter_best();
    fast->tables = inflater_new(inflater_best());
    if (!fast->tables) {
        fastpng_free(fast);
        return NULL;
    }
    return fast;
}

void
fastpng_free(struct fastpng *fast)
{
    if (!fast)
        return;
    inflater_free(fast->tables);
    buffer_release(&fast->packed);
    buffer_release(&fast->raw);
    buffer_release(&fast->plane);
    free(fast);
}

void
fastpng_measure(struct fastpng *fast, double *unfilter)
{
    fast->unfilter = unfilter;
}

static bool
read_header(const struct chunk *chunk, const struct decode_limits *limits, struct header *h)
{
    const uint8_t *p = chunk->body + 4;

    if (strcmp(chunk->type, "IHDR") != 0 || chunk->length != 13)
        return false;
    h->width = get_u32be(p);
    h->height = get_u32be(p + 4);
    h->channels = p[9] == 6 ? CHANNELS_RGBA : 1;
    /* depth, colour type, compression, filter method, interlacing */
    return p[8] == 8 && (p[9] == 0 || p[9] == 6) && p[10] == 0 && p[11] == 0 && p[12] == 0 &&
           h->width >= limits->min_side && h->height >= limits->min_side && h->width <= INT32_MAX / 8 &&
           h->height <= INT32_MAX && h->width > 0 && h->height > 0 &&
           (uint64_t)h->width * h->height <= limits->max_pixels;
}

/* Chunks of the data set's files that do not affect pixel values, with their only valid length. */
static bool
is_known_ancillary(const struct chunk *chunk)
{
    static const struct {
        const char *type;
        uint32_t length;
    } known[] = {{"tIME", 7}, {"sRGB", 1}, {"gAMA", 4}, {"pHYs", 9}};
    size_t i;

    for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(chunk->type, known[i].type) == 0)
            return chunk->length == known[i].length;
    return false;
}

static bool
checksum_is_right(const struct chunk *chunk)
{
    uint32_t crc = crc32_gzip_refl(0, chunk->body, 4 + (uint64_t)chunk->length);

    cpu_vzeroupper();
    return crc == get_u32be(chunk->body + 4 + chunk->length);
}

/* Read all chunks: the header into *h, the image data into fast->packed. */
static bool
read_chunks(struct fastpng *fast, const uint8_t *data, size_t size, const struct decode_limits *limits,
            struct header *h)
{
    size_t position = CHUNK_FIRST;
    struct chunk chunk;
    enum { BEFORE, INSIDE, BEHIND } place = BEFORE;

    if (size < CHUNK_FIRST || memcmp(data, "\x89PNG\r\n\x1a\n", CHUNK_FIRST) != 0)
        return false;
    if (!chunk_next(data, size, &position, &chunk) || !checksum_is_right(&chunk) || !read_header(&chunk, limits, h))
        return false;
    fast->packed.size = 0;
    while (chunk_next(data, size, &position, &chunk)) {
        if (!checksum_is_right(&chunk))
            return false;
        if (strcmp(chunk.type, "IEND") == 0)
            return chunk.length == 0 && position == size && place != BEFORE;
        if (strcmp(chunk.type, "IDAT") == 0) {
            if (place == BEHIND || buffer_append(&fast->packed, chunk.body + 4, chunk.length, NULL) != CHEX_OK)
                return false;
            place = INSIDE;
        } else if (place != BEFORE || !is_known_ancillary(&chunk)) {
            return false;
        }
    }
    return false;
}

/* Allocate `wanted` bytes for filtered rows and begin to inflate. */
static bool
begin_rows(struct fastpng *fast, size_t wanted)
{
    size_t room, size = fast->packed.size;

    if (!size_add(wanted, INFLATER_OUT_SLACK, &room) || buffer_reserve(&fast->raw, room, NULL) != CHEX_OK ||
        buffer_reserve(&fast->packed, size + INFLATER_IN_SLACK, NULL) != CHEX_OK)
        return false;
    memset(fast->packed.data + size, 0, INFLATER_IN_SLACK);
    return inflater_begin(fast->tables, fast->packed.data, size, fast->raw.data, wanted);
}

static bool
filter_types_are_right(const uint8_t *raw, uint32_t from, uint32_t to, size_t row)
{
    uint32_t y;

    for (y = from; y < to; y++)
        if (raw[y * row] > 4)
            return false;
    return true;
}

/* Returns the filtered byte of an alpha of 255 whose neighbours are 255 or outside the image. */
static uint8_t
opaque(unsigned type, bool at_left, bool at_top)
{
    int left = at_left ? 0 : 255, up = at_top ? 0 : 255;

    return (uint8_t)(255 - unfilter_predict(type, left, up, left & up));
}

/*
 * RGBA that is gray and opaque, like all RGBA images of the data set.  Filters process each channel separately, so
 * channels with equal filtered bytes are equal.  The filter of the first channel, copied to fast->plane, is undone as
 * for a gray image; for the other channels it is enough to compare the filtered bytes.  Returns false if they differ or
 * if some alpha is not 255.
 */
static bool
take_plane(struct fastpng *fast, const struct header *h, uint32_t from, uint32_t to)
{
    size_t row = 1 + (size_t)h->width * CHANNELS_RGBA, plane_row = 1 + (size_t)h->width;
    uint32_t x, y;

    for (y = from; y < to; y++) {
        const uint8_t *raw = fast->raw.data + y * row, *p = raw + 1;
        uint8_t *plane = fast->plane.data + y * plane_row;
        uint8_t inner = opaque(raw[0], false, y == 0);
        unsigned differ = p[3] ^ opaque(raw[0], true, y == 0);

        plane[0] = raw[0];
        for (x = 0; x < h->width; x++, p += CHANNELS_RGBA) {
            differ |= (unsigned)(p[0] ^ p[1]) | (unsigned)(p[0] ^ p[2]) | (x > 0 ? (unsigned)(p[3] ^ inner) : 0);
            plane[1 + x] = p[0];
        }
        if (differ)
            return false;
    }
    return true;
}

static bool
reserve_plane(struct fastpng *fast, const struct header *h)
{
    size_t size;

    if (!size_mul(1 + (size_t)h->width, h->height, &size) || !size_add(size, UNFILTER_SLACK, &size) ||
        buffer_reserve(&fast->plane, size, NULL) != CHEX_OK)
        return false;
    memset(fast->plane.data + size - UNFILTER_SLACK, 0, UNFILTER_SLACK);
    return true;
}

/* Read the chunks, make room and begin to inflate. */
static bool
begin_image(struct fastpng *fast, struct image_file file, const struct decode_limits *limits, struct image *out)
{
    struct header *h = &fast->header;
    size_t wanted;

    fast->out = out;
    fast->rows = 0;
    return read_chunks(fast, file.data, file.size, limits, h) && size_mul(h->width, h->channels, &fast->row) &&
           size_add(fast->row, 1, &fast->row) && size_mul(fast->row, h->height, &wanted) && begin_rows(fast, wanted) &&
           (h->channels == 1 || reserve_plane(fast, h)) &&
           image_resize_buffer(out, h->width, h->height, NULL) == CHEX_OK;
}

/* Returns the first row after the next band: rows are still in the cache when their filters are undone. */
static uint32_t
band_end(const struct fastpng *fast)
{
    uint32_t left = fast->header.height - fast->rows;

    return fast->rows + (left < UNFILTER_BAND ? left : UNFILTER_BAND);
}

static bool
decode_band(struct fastpng *fast, const struct decode_limits *limits)
{
    const struct header *h = &fast->header;
    const uint8_t *raw = h->channels == 1 ? fast->raw.data : fast->plane.data;
    uint32_t from = fast->rows, to = band_end(fast);
    double since;

    /* decode_png() then ends at once and reports the stop. */
    if (limits->stop && atomic_load_explicit(limits->stop, memory_order_relaxed))
        return false;
    if (!inflater_until(fast->tables, to * fast->row) || !filter_types_are_right(fast->raw.data, from, to, fast->row) ||
        (h->channels != 1 && !take_plane(fast, h, from, to)))
        return false;
    since = fast->unfilter ? clock_thread() : 0;
    fast->kind->gray(raw, h->width, from, to, fast->out->data, fast->out->stride);
    if (fast->unfilter)
        *fast->unfilter += clock_thread() - since;
    fast->rows = to;
    return true;
}

static bool
has_rows_left(const struct fastpng *fast)
{
    return fast->rows < fast->header.height;
}

/* Decode the bands that are left, if the image is good so far. */
static bool
finish_image(struct fastpng *fast, bool good, const struct decode_limits *limits, struct image_traits *traits)
{
    while (good && has_rows_left(fast))
        good = decode_band(fast, limits);
    *traits = (struct image_traits){.container = IMAGE_PNG, .bit_depth = 8, .channels = fast->header.channels};
    return good && inflater_end(fast->tables);
}

bool
fastpng_decode(struct fastpng *fast, const uint8_t *data, size_t size, const struct decode_limits *limits,
               struct image *out, struct image_traits *traits)
{
    bool good = begin_image(fast, (struct image_file){data, size}, limits, out);

    return finish_image(fast, good, limits, traits);
}

void
fastpng_decode_two(struct fastpng *const fast[2], const struct image_file file[2], const struct decode_limits *limits,
                   struct image *const out[2], struct image_traits *const traits[2], bool taken[2])
{
    struct inflater *const tables[2] = {fast[0]->tables, fast[1]->tables};
    bool good[2] = {begin_image(fast[0], file[0], limits, out[0]), begin_image(fast[1], file[1], limits, out[1])};
    unsigned i;

    while (good[0] && good[1] && has_rows_left(fast[0]) && has_rows_left(fast[1])) {
        const size_t wanted[2] = {band_end(fast[0]) * fast[0]->row, band_end(fast[1]) * fast[1]->row};

        i = inflater_together(tables, wanted);
        good[i] = decode_band(fast[i], limits);
    }
    for (i = 0; i < 2; i++)
        taken[i] = finish_image(fast[i], good[i], limits, traits[i]);
}
