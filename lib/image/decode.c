/*
 * decode.c - see decode.h
 *
 * What is no image is looked at once more, since the answer to "what is it then?" is mostly the way to repair it.
 * Signatures are those of file(1) and of the formats' own documents.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "image/decode.h"

#include "image/jpeg_decode.h"
#include "image/png_decode.h"
#include "image/png_fast.h"

#include <string.h>
#include <strings.h>

#define LOOK 1024 /* bytes looked at to tell what a file is */

struct signature {
    size_t offset;
    const char *bytes;
    size_t length;
    const char *text;
};

#define SIGNATURE(offset, bytes, text)         \
    {                                          \
        offset, bytes, sizeof(bytes) - 1, text \
    }

static const struct signature signatures[] = {
    SIGNATURE(0, "version https://git-lfs", "a Git LFS pointer, not the file (git lfs pull)"),
    SIGNATURE(128, "DICM", "looks like DICOM (convert it to PNG first)"),
    SIGNATURE(0, "\x1f\x8b", "looks like gzip (unpack it first)"),
    SIGNATURE(0, "PK\x03\x04", "looks like a zip archive (unpack it first)"),
    SIGNATURE(0, "BZh", "looks like bzip2 (unpack it first)"),
    SIGNATURE(0, "\3757zXZ", "looks like xz (unpack it first)"),
    SIGNATURE(257, "ustar", "looks like a tar archive (unpack it first)"),
    SIGNATURE(0, "GIF87a", "looks like GIF"),
    SIGNATURE(0, "GIF89a", "looks like GIF"),
    SIGNATURE(0, "II*\0", "looks like TIFF"),
    SIGNATURE(0, "MM\0*", "looks like TIFF"),
    SIGNATURE(8, "WEBP", "looks like WebP"),
    SIGNATURE(4, "jP  \r\n\x87\n", "looks like JPEG 2000"),
    SIGNATURE(0, "\xff\x4f\xff\x51", "looks like JPEG 2000"),
    SIGNATURE(0, "%PDF-", "looks like PDF"),
};

/* "BM" alone may begin a text; behind it stand the size and four bytes that are zero. */
static bool
is_bmp(const uint8_t *data, size_t size)
{
    return size >= 26 && memcmp(data, "BM", 2) == 0 && memcmp(data + 6, "\0\0\0\0", 4) == 0;
}

static bool
all_zero(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (data[i] != 0)
            return false;
    return true;
}

/* No control characters but white space, and mostly ASCII. */
static bool
is_text(const uint8_t *data, size_t size)
{
    size_t high = 0;

    for (size_t i = 0; i < size; i++) {
        if (data[i] == 0x7f || (data[i] < 0x20 && !memchr("\t\n\v\f\r", data[i], 5)))
            return false;
        high += data[i] >= 0x80;
    }
    return high <= size / 2;
}

/* Where word stands in data, in letters of any case; size where it does not. */
static size_t
find_word(const uint8_t *data, size_t size, const char *word)
{
    size_t length = strlen(word);

    for (size_t i = 0; i + length <= size; i++)
        if (strncasecmp((const char *)data + i, word, length) == 0)
            return i;
    return size;
}

static const char *
kind_of_text(const uint8_t *data, size_t size)
{
    size_t begin = 0;

    if (size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0)
        begin = 3;
    while (begin < size && memchr(" \t\r\n", data[begin], 4))
        begin++;
    if (begin < size && data[begin] == '<') {
        if (find_word(data, size, "<html") < size || find_word(data, size, "<!doctype html") < size ||
            find_word(data, size, "<head") < size)
            return "looks like HTML (login page saved?)";
        if (find_word(data, size, "<?xml") == begin)
            return "looks like XML (a server's error message?)";
    }
    if (memchr(data, ',', size) && memchr(data, '\n', size))
        return "looks like text or CSV";
    return "looks like text";
}

/* What the file is instead; data holds at least one byte. */
static const char *
kind_of(const uint8_t *data, size_t size)
{
    size_t look = size < LOOK ? size : LOOK;

    for (size_t i = 0; i < sizeof(signatures) / sizeof(signatures[0]); i++) {
        const struct signature *s = &signatures[i];

        if (s->offset + s->length <= size && memcmp(data + s->offset, s->bytes, s->length) == 0)
            return s->text;
    }
    if (is_bmp(data, size))
        return "looks like BMP";
    if (all_zero(data, size))
        return "all bytes are zero (disk full or download interrupted?)";
    if (is_text(data, look))
        return kind_of_text(data, look);
    return "not a PNG or JPEG";
}

enum chex_status
decoder_init(struct decoder *d, struct chex_error *err)
{
    d->png = fastpng_new();
    return d->png ? CHEX_OK : error_memory(err);
}

void
decoder_release(struct decoder *d)
{
    fastpng_free(d->png);
    d->png = NULL;
}

enum chex_status
decode_image(struct decoder *d, const uint8_t *data, size_t size, const struct decode_limits *limits, struct image *out,
             struct image_traits *traits, struct chex_error *err)
{
    if (d->png && fastpng_decode(d->png, data, size, limits, out, traits))
        return CHEX_OK;
    if (is_png(data, size))
        return decode_png(data, size, limits, out, traits, err);
    if (is_jpeg(data, size))
        return decode_jpeg(data, size, limits, out, traits, err);
    *traits = (struct image_traits){0};
    if (size == 0)
        return error_set(err, CHEX_ERR_EMPTY, "empty file (download interrupted?)");
    return error_set(err, CHEX_ERR_NOT_IMAGE, "%s", kind_of(data, size));
}
