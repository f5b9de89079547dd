/*
 * png_decode.c - see png.h
 *
 * decode_png() has one struct decoded_png on its stack.  libpng's callbacks reach it through their pointers and store
 * the first error in it.  The only setjmp() is in guarded(), which has no locals that longjmp() could clobber.  All
 * memory to be freed is in the struct, so nothing leaks.
 *
 * libpng converts to 8-bit samples (scale_16, expand) and does nothing else.  This file looks up palettes itself,
 * because libpng does not check the indices when it expands a palette.  Each Adam7 pass is read as a small image and
 * spread into the result, so no form needs more than one row in addition to the gray image.
 *
 * Formats and names: PNG specification, third edition (W3C 2025), chapters 5, 8 and 11.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "image/png_decode.h"

#include "base/number_format.h"
#include "image/png_chunk.h"

#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

/* libpng reads at most 8 KiB of image data at a time, so more than this at the last row is data after the pixels. */
#define LATE_MOST (16u << 10)

/* Allowed surplus: a multiple of the image's size plus bytes.  LATE_MOST plus one read inflates to at most 24 MiB. */
#define SURPLUS_TIMES 4
#define SURPLUS_BYTES (32u << 20)

enum phase { HEADER, ROWS, END };

struct decoded_png {
    const uint8_t *data;
    size_t size, position;
    const struct decode_limits *limits;
    struct image_traits *traits;
    struct chex_error *err;
    enum phase phase;
    enum chex_status status; /* the first error; CHEX_OK until then */
    bool no_memory;
    struct chunk_checks chunks;
    uint64_t rows_left; /* rows not yet read, of all passes */
    size_t late;        /* bytes read for the last row; SIZE_MAX after the check */
    bool damaged;       /* libpng warned about the pixels; the text is in message */
    char message[96];   /* text of libpng */

    png_structp png;
    png_infop info;
    unsigned samples;      /* samples per pixel that libpng delivers: 1 to 4 */
    unsigned palette_size; /* 0: no palette */
    uint8_t *row;          /* [width][samples], followed by a gray line [width] */
    uint8_t palette_gray[256];
    uint8_t palette_trait[256]; /* COLOUR and TRANSPARENT of each entry */
};

enum { COLOUR = 1, TRANSPARENT = 2 };

bool
is_png(const uint8_t *data, size_t size)
{
    /* Not the whole signature: a PNG that a text-mode transfer changed is a damaged PNG. */
    return size > 0 && memcmp(data, "\x89PNG", size < 4 ? size : 4) == 0;
}

/* ---- callbacks of libpng -------------------------------------------------------------------------------------- */

static void
remember(struct decoded_png *job, const char *message)
{
    size_t length = strnlen(message, sizeof(job->message) - 1);

    memcpy(job->message, message, length);
    job->message[length] = '\0';
}

static void PNGCBAPI
on_error(png_structp png, png_const_charp message)
{
    struct decoded_png *job = png_get_error_ptr(png);

    if (job->status == CHEX_OK) {
        job->status = job->no_memory ? CHEX_ERR_MEMORY : CHEX_ERR_DAMAGED;
        remember(job, message);
    }
    png_longjmp(png, 1);
}

/*
 * When libpng has all rows, it only warns about a wrong end of the IDAT stream.  But the Adler checksum of the pixels
 * may be there.  So such a warning is damage, except if it reports surplus data.
 */
static void PNGCBAPI
on_warning(png_structp png, png_const_charp message)
{
    static const char *const surplus[] = {"Extra compressed data", "Too much image data", "Too many IDATs",
                                          "chunk data is too large"};
    struct decoded_png *job = png_get_error_ptr(png);
    bool harmless = strncmp(message, "IDAT: ", 6) != 0;

    if (strstr(message, "CRC error")) /* chunk_check() counts these */
        return;
    for (size_t i = 0; !harmless && i < sizeof(surplus) / sizeof(surplus[0]); i++)
        harmless = strstr(message, surplus[i]) != NULL;
    if (harmless) {
        job->traits->warnings++;
    } else if (!job->damaged) {
        job->damaged = true;
        remember(job, message);
    }
}

static bool
stops(const struct decoded_png *job)
{
    return job->limits->stop && atomic_load_explicit(job->limits->stop, memory_order_relaxed);
}

/*
 * With the last row libpng inflates the rest of the image data, which may be a thousand times larger than the
 * compressed data.  If the compressed data is too large for one row, measure first how much it inflates to.
 */
static enum chex_status
check_surplus(struct decoded_png *job, size_t size)
{
    uint64_t row, most;
    enum chex_status status;
    bool small;

    if (job->phase != ROWS || job->rows_left > 0 || job->late == SIZE_MAX)
        return CHEX_OK;
    job->late += size;
    if (job->late <= LATE_MOST)
        return CHEX_OK;
    job->late = SIZE_MAX;
    row = 1 +
          ((uint64_t)png_get_image_width(job->png, job->info) * job->traits->bit_depth * job->traits->channels + 7) / 8;
    most = row * png_get_image_height(job->png, job->info) * (1 + SURPLUS_TIMES) + SURPLUS_BYTES;
    status = chunk_measure(job->data, job->size, most, &small, job->err);
    return status == CHEX_OK && !small ? CHEX_ERR_LIMIT : status;
}

static void PNGCBAPI
on_read(png_structp png, png_bytep to, size_t size)
{
    struct decoded_png *job = png_get_io_ptr(png);

    job->status = stops(job) ? CHEX_ERR_STOPPED : check_surplus(job, size);
    if (job->status != CHEX_OK)
        png_error(png, "no further");
    if (size > job->size - job->position) {
        job->status = CHEX_ERR_TRUNCATED;
        png_error(png, "end of file");
    }
    memcpy(to, job->data + job->position, size);
    job->position += size;
}

static png_voidp PNGCBAPI
on_allocate(png_structp png, png_alloc_size_t size)
{
    struct decoded_png *job = png_get_mem_ptr(png);
    void *memory = malloc(size);

    if (!memory)
        job->no_memory = true;
    return memory;
}

static void PNGCBAPI
on_free(png_structp png, png_voidp memory)
{
    (void)png;
    free(memory);
}

/* ---- header -------------------------------------------------------------------------------------------------- */

static void
set_limits(struct decoded_png *job)
{
    /* Allow any size of the format; read_header() checks the limit and writes our own text. */
    png_set_user_limits(job->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_chunk_cache_max(job->png, 16);
    png_set_chunk_malloc_max(job->png, 1u << 20);
    /* Discard texts, profiles and other chunks that may inflate without bound; only their CRC is checked.  -1 does not
     * include tRNS. */
    png_set_keep_unknown_chunks(job->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    /* The CRCs of critical chunks were checked before. */
    png_set_crc_action(job->png, PNG_CRC_QUIET_USE, PNG_CRC_WARN_DISCARD);
#ifdef PNG_READ_CHECK_FOR_INVALID_INDEX_SUPPORTED
    png_set_check_for_invalid_index(job->png, 0); /* look_up() checks the indices */
#endif
}

/* Luma of BT.601 as Pillow computes it. */
static uint8_t
luma(unsigned r, unsigned g, unsigned b)
{
    return (uint8_t)((19595 * r + 38470 * g + 7471 * b + 32768) >> 16);
}

/* Composite on black. */
static uint8_t
composite(unsigned value, unsigned alpha)
{
    return (uint8_t)((value * alpha + 127) / 255);
}

static void
prepare_palette(struct decoded_png *job)
{
    png_colorp palette = NULL;
    png_bytep alpha = NULL;
    int size = 0, alpha_size = 0;

    png_get_PLTE(job->png, job->info, &palette, &size);
    png_get_tRNS(job->png, job->info, &alpha, &alpha_size, NULL);
    job->palette_size = (unsigned)size;
    for (int i = 0; i < size; i++) {
        png_color c = palette[i];
        unsigned a = i < alpha_size ? alpha[i] : 255;

        job->palette_gray[i] = composite(luma(c.red, c.green, c.blue), a);
        job->palette_trait[i] = c.red != c.green || c.red != c.blue ? COLOUR : 0;
        if (a < 255)
            job->palette_trait[i] |= TRANSPARENT;
    }
}

/* Read all chunks before the first IDAT.  Check the size before any allocation that depends on it. */
static enum chex_status
read_header(struct decoded_png *job, struct image *out)
{
    struct image_traits *traits = job->traits;
    uint32_t width, height;
    enum chex_status status;
    size_t row_size;

    png_read_info(job->png, job->info);
    width = png_get_image_width(job->png, job->info);
    height = png_get_image_height(job->png, job->info);
    traits->bit_depth = png_get_bit_depth(job->png, job->info);
    traits->channels = png_get_channels(job->png, job->info);
    traits->palette = png_get_color_type(job->png, job->info) == PNG_COLOR_TYPE_PALETTE;
    traits->interlaced = png_get_interlace_type(job->png, job->info) != PNG_INTERLACE_NONE;
    traits->animated = chunk_is_animated(job->data, job->size);
    status = decode_limits_check(job->limits, width, height, job->err);
    if (status != CHEX_OK)
        return status;

    if (traits->palette) {
        prepare_palette(job);
        png_set_packing(job->png);
    } else {
        png_set_expand(job->png);
        png_set_scale_16(job->png);
    }
    png_read_update_info(job->png, job->info);
    job->samples = png_get_channels(job->png, job->info);
    status = image_resize_buffer(out, width, height, job->err);
    if (status != CHEX_OK)
        return status;
    if (!size_mul(width, job->samples + 1, &row_size))
        return error_memory(job->err);
    job->row = malloc(row_size);
    return job->row ? CHEX_OK : error_memory(job->err);
}

/* ---- rows to gray -------------------------------------------------------------------------------------------- */

static enum chex_status
look_up(struct decoded_png *job, uint32_t count, uint8_t *to)
{
    const uint8_t *from = job->row;
    uint8_t traits = 0, largest = 0;

    for (uint32_t x = 0; x < count; x++)
        largest = from[x] > largest ? from[x] : largest;
    if (largest >= job->palette_size)
        return error_set(job->err, CHEX_ERR_DAMAGED, "palette index %u in an image of %u colours", largest,
                         job->palette_size);
    for (uint32_t x = 0; x < count; x++) {
        to[x] = job->palette_gray[from[x]];
        traits |= job->palette_trait[from[x]];
    }
    job->traits->colour |= (traits & COLOUR) != 0;
    job->traits->transparent |= (traits & TRANSPARENT) != 0;
    return CHEX_OK;
}

static void
gray_alpha_to_gray(struct decoded_png *job, uint32_t count, uint8_t *to)
{
    const uint8_t *from = job->row;
    uint8_t opaque = 255;

    for (uint32_t x = 0; x < count; x++, from += 2) {
        to[x] = composite(from[0], from[1]);
        opaque &= from[1];
    }
    job->traits->transparent |= opaque != 255;
}

static void
rgb_to_gray(struct decoded_png *job, uint32_t count, uint8_t *to)
{
    const uint8_t *from = job->row;
    unsigned differ = 0;

    for (uint32_t x = 0; x < count; x++, from += 3) {
        to[x] = luma(from[0], from[1], from[2]);
        differ |= (unsigned)(from[0] ^ from[1]) | (unsigned)(from[0] ^ from[2]);
    }
    job->traits->colour |= differ != 0;
}

static void
rgba_to_gray(struct decoded_png *job, uint32_t count, uint8_t *to)
{
    const uint8_t *from = job->row;
    unsigned differ = 0;
    uint8_t opaque = 255;

    for (uint32_t x = 0; x < count; x++, from += 4) {
        to[x] = composite(luma(from[0], from[1], from[2]), from[3]);
        differ |= (unsigned)(from[0] ^ from[1]) | (unsigned)(from[0] ^ from[2]);
        opaque &= from[3];
    }
    job->traits->colour |= differ != 0;
    job->traits->transparent |= opaque != 255;
}

/*
 * Read the next row, count pixels, as gray into `to`.  libpng writes gray rows there directly; it then writes as many
 * bytes as the image is wide, even for a shorter row of an Adam7 pass.
 */
static enum chex_status
read_row(struct decoded_png *job, uint32_t count, uint8_t *to)
{
    if (stops(job))
        return error_stopped(job->err);
    job->rows_left--;
    if (job->samples == 1 && !job->traits->palette) {
        png_read_row(job->png, to, NULL);
        return CHEX_OK;
    }
    png_read_row(job->png, job->row, NULL);
    switch (job->samples) {
    case 1:
        return look_up(job, count, to);
    case 2:
        gray_alpha_to_gray(job, count, to);
        return CHEX_OK;
    case 3:
        rgb_to_gray(job, count, to);
        return CHEX_OK;
    default:
        rgba_to_gray(job, count, to);
        return CHEX_OK;
    }
}

static enum chex_status
read_plain(struct decoded_png *job, struct image *out)
{
    enum chex_status status = CHEX_OK;

    job->rows_left = out->height;
    for (uint32_t y = 0; y < out->height && status == CHEX_OK; y++)
        status = read_row(job, out->width, out->data + y * out->stride);
    return status;
}

static enum chex_status
read_interlaced(struct decoded_png *job, struct image *out)
{
    uint8_t *line = job->row + (size_t)out->width * job->samples;

    for (int pass = 0; pass < PNG_INTERLACE_ADAM7_PASSES; pass++)
        if (PNG_PASS_COLS(out->width, pass) > 0)
            job->rows_left += PNG_PASS_ROWS(out->height, pass);
    for (int pass = 0; pass < PNG_INTERLACE_ADAM7_PASSES; pass++) {
        uint32_t columns = PNG_PASS_COLS(out->width, pass);
        uint32_t rows = columns > 0 ? PNG_PASS_ROWS(out->height, pass) : 0;
        size_t step = (size_t)1 << PNG_PASS_COL_SHIFT(pass);

        for (uint32_t row = 0; row < rows; row++) {
            size_t y = PNG_ROW_FROM_PASS_ROW(row, pass);
            uint8_t *to = out->data + y * out->stride + PNG_PASS_START_COL(pass);
            enum chex_status status = read_row(job, columns, line);

            if (status != CHEX_OK)
                return status;
            for (uint32_t x = 0; x < columns; x++)
                to[x * step] = line[x];
        }
    }
    return CHEX_OK;
}

/* ---- the whole file ------------------------------------------------------------------------------------------ */

static enum chex_status
read_all(struct decoded_png *job, struct image *out)
{
    enum chex_status status = read_header(job, out);

    if (status != CHEX_OK)
        return status;
    job->phase = ROWS;
    status = job->traits->interlaced ? read_interlaced(job, out) : read_plain(job, out);
    if (status != CHEX_OK)
        return status;
    job->phase = END;
    if (chunk_is_image_data(job->data, job->size, job->position)) /* libpng silently skips it */
        job->traits->warnings++;
    png_read_end(job->png, NULL);
    if (job->position < job->size)
        job->traits->warnings++;
    if (!job->chunks.ended) /* and libpng did not report it */
        job->status = CHEX_ERR_TRUNCATED;
    return job->status;
}

/* Set the error text for job->status, which a callback set, and decide the final status. */
static enum chex_status
explain(struct decoded_png *job)
{
    if (job->status == CHEX_ERR_MEMORY)
        return error_memory(job->err);
    if (job->status == CHEX_ERR_STOPPED)
        return error_stopped(job->err);
    if (job->status == CHEX_ERR_LIMIT)
        return error_set(job->err, CHEX_ERR_LIMIT, "more than %d times its size after its pixels", SURPLUS_TIMES);
    if (job->status == CHEX_ERR_TRUNCATED && job->phase != END)
        return error_set(job->err, CHEX_ERR_TRUNCATED, "truncated at byte %s", COUNT_TEXT(job->size));
    if (job->status == CHEX_ERR_TRUNCATED && !job->damaged) {
        if (!job->limits->lenient)
            return error_set(job->err, CHEX_ERR_TRUNCATED, "no IEND (file cut short?)");
        job->traits->warnings++;
        return CHEX_OK;
    }
    return error_set(job->err, CHEX_ERR_DAMAGED, "%s (%s)", job->phase == HEADER ? "damaged PNG" : "image data damaged",
                     job->message);
}

static enum chex_status
guarded(struct decoded_png *job, struct image *out)
{
    if (setjmp(png_jmpbuf(job->png)))
        return explain(job);
    set_limits(job);
    job->info = png_create_info_struct(job->png);
    if (!job->info)
        return error_memory(job->err);
    png_set_read_fn(job->png, job, on_read);
    job->status = read_all(job, out);
    if (job->status == CHEX_ERR_TRUNCATED || (job->status == CHEX_OK && job->damaged))
        return explain(job);
    return job->status;
}

enum chex_status
decode_png(const uint8_t *data, size_t size, const struct decode_limits *limits, struct image *out,
           struct image_traits *traits, struct chex_error *err)
{
    struct decoded_png job = {.data = data, .size = size, .limits = limits, .traits = traits, .err = err};
    enum chex_status status;

    *traits = (struct image_traits){.container = IMAGE_PNG};
    chunk_check(data, size, &job.chunks);
    if (job.chunks.bad[0])
        return error_set(err, CHEX_ERR_CHECKSUM, "checksum error in %s", job.chunks.bad);
    traits->warnings = job.chunks.bad_other;
    job.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &job, on_error, on_warning, &job, on_allocate, on_free);
    if (!job.png)
        return error_memory(err);
    status = guarded(&job, out);
    png_destroy_read_struct(&job.png, &job.info, NULL);
    free(job.row);
    return status;
}
