/*
 * content.c - see content.h
 *
 * The signatures are from file(1) and from the specifications of the formats.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "io/content.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

struct signature {
    size_t offset;
    const char *bytes;
    size_t length;
    const char *text;
    bool in_text; /* no other text begins with these bytes */
};

#define SIGNATURE(offset, ...) FORMAT(offset, __VA_ARGS__, false)
#define FORMAT(offset, bytes, text, plain)            \
    {                                                 \
        offset, bytes, sizeof(bytes) - 1, text, plain \
    }

#define EXCEL "looks like Excel (save it as CSV)"

/* An office document is a zip archive; the name of its first member is at byte 30. */
static const struct signature signatures[] = {
    FORMAT(0, "version https://git-lfs", "a Git LFS pointer, not the file (git lfs pull)", true),
    FORMAT(0, "%PDF-", "looks like PDF", true),
    SIGNATURE(0, "\x89PNG\r\n\x1a\n", "looks like PNG"),
    SIGNATURE(0, "\xff\xd8\xff", "looks like JPEG"),
    SIGNATURE(128, "DICM", "looks like DICOM (convert it to PNG first)"),
    SIGNATURE(0, "\x1f\x8b", "looks like gzip (unpack it first)"),
    SIGNATURE(30, "[Content_Types].xml", EXCEL),
    SIGNATURE(30, "docProps/", EXCEL),
    SIGNATURE(30, "_rels/.rels", EXCEL),
    SIGNATURE(30, "xl/w", EXCEL),
    SIGNATURE(30, "mimetypeapplication/vnd.oasis.opendocument", "looks like OpenDocument (save it as CSV)"),
    SIGNATURE(0, "PK\x03\x04", "looks like a zip archive (unpack it first)"),
    SIGNATURE(0, "7z\xbc\xaf\x27\x1c", "looks like 7z (unpack it first)"),
    SIGNATURE(0, "Rar!\x1a\x07", "looks like RAR (unpack it first)"),
    SIGNATURE(0, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", EXCEL),
    SIGNATURE(0, "PAR1", "looks like Parquet (save it as CSV)"),
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
};

/* A text may begin with "BM".  So also check the four zero bytes after the size. */
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

/* Returns whether the data has no control characters except white space, and is mostly ASCII. */
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

/* Returns the offset of word in data, ignoring case; `size` if not found. */
static size_t
find_word(const uint8_t *data, size_t size, const char *word)
{
    size_t length = strlen(word);

    for (size_t i = 0; i + length <= size; i++)
        if (strncasecmp((const char *)data + i, word, length) == 0)
            return i;
    return size;
}

/* Returns "looks like HTML: the download failed" or a similar text, or NULL. */
static const char *
look_for_markup(const uint8_t *data, size_t size)
{
    size_t begin = 0;

    if (size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0)
        begin = 3;
    while (begin < size && memchr(" \t\r\n", data[begin], 4))
        begin++;
    if (begin == size || data[begin] != '<')
        return NULL;
    if (find_word(data, size, "<html") < size || find_word(data, size, "<!doctype html") < size ||
        find_word(data, size, "<head") < size)
        return "looks like HTML: the download failed";
    return find_word(data, size, "<?xml") == begin ? "looks like XML: the download failed" : NULL;
}

/* Find a known signature.  text: the data is text, which may begin like a binary format by chance. */
static const char *
look_for_signature(const uint8_t *data, size_t size, bool text)
{
    for (size_t i = 0; i < sizeof(signatures) / sizeof(signatures[0]); i++) {
        const struct signature *s = &signatures[i];

        if ((s->in_text || !text) && s->offset + s->length <= size &&
            memcmp(data + s->offset, s->bytes, s->length) == 0)
            return s->text;
    }
    return is_bmp(data, size) ? "looks like BMP" : NULL;
}

const char *
content_look(const uint8_t *data, size_t size)
{
    size_t look = size < CONTENT_LOOK ? size : CONTENT_LOOK;
    const char *found = look_for_signature(data, size, false);

    if (!found && all_zero(data, size))
        found = "all bytes are zero (disk full or download interrupted?)";
    if (found || !is_text(data, look))
        return found;
    found = look_for_markup(data, look);
    if (!found && memchr(data, ',', look) && memchr(data, '\n', look))
        found = "looks like text or CSV";
    return found ? found : "looks like text";
}

const char *
content_look_for_text(const uint8_t *data, size_t size)
{
    size_t look = size < CONTENT_LOOK ? size : CONTENT_LOOK;
    const char *found;

    if (!is_text(data, look))
        return content_look(data, size);
    found = look_for_signature(data, size, true);
    return found ? found : look_for_markup(data, look);
}
