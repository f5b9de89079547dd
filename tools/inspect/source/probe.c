/*
 * probe.c - checks the first and last bytes of one image; see source.h
 *
 * The probe reads the size, the first 1024 bytes and the last 64 bytes of each image, and decodes nothing.  A PNG ends
 * with its IEND chunk and a JPEG with an EOI marker, so the probe detects a truncated download, but no damage in the
 * middle.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/convert.h"
#include "image/decode.h"
#include "inspect/source/source.h"
#include "io/file.h"

#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static bool
named_png(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot && strcasecmp(dot, ".png") == 0;
}

static bool
begins_with(const uint8_t *head, size_t size, const char *signature)
{
    return size >= strlen(signature) && memcmp(head, signature, strlen(signature)) == 0;
}

/* Find IEND and its checksum (PNG specification, 11.2.5), or the EOI marker, which a few bytes may follow. */
static bool
ends_as_it_should(const uint8_t *tail, size_t size, bool png)
{
    size_t i;

    for (i = 0; png && i + 8 <= size; i++)
        if (memcmp(tail + i, "IEND\xae\x42\x60\x82", 8) == 0)
            return true;
    for (i = 0; !png && i + 2 <= size; i++)
        if (tail[i] == 0xff && tail[i + 1] == 0xd9)
            return true;
    return false;
}

/* Returns a shared copy of a text; there are few different ones.  NULL: too many texts, or out of memory. */
static const char *
keep_text(struct source_check *c, const char *text)
{
    const char *found;
    size_t i;

    pthread_mutex_lock(&c->lock);
    for (i = 0; i < c->details && strcmp(c->detail[i], text) != 0; i++)
        ;
    if (i == c->details && i < SOURCE_DETAILS && (c->detail[i] = arena_copy(&c->strings, text, strlen(text))))
        c->details++;
    found = i < c->details ? c->detail[i] : NULL;
    pthread_mutex_unlock(&c->lock);
    return found;
}

/* Uses the same words as decode.c. */
const char *
source_type(struct source_check *c, const uint8_t *head, size_t size)
{
    const char *found;
    struct decoder none = {NULL};
    struct decode_limits limits = {.max_pixels = 1};
    struct image image = {0};
    struct image_traits traits;
    struct chex_error err = {.text = ""};

    decode_image(&none, head, size, &limits, &image, &traits, &err);
    image_release(&image);
    found = keep_text(c, err.text);
    return found ? found : "not a PNG or JPEG";
}

void
source_probe(struct source_check *c, struct source_item *item, const uint8_t *head, const uint8_t *tail)
{
    size_t of_head = item->size < SOURCE_HEAD ? (size_t)item->size : SOURCE_HEAD;
    size_t of_tail = item->size < SOURCE_TAIL ? (size_t)item->size : SOURCE_TAIL;
    bool png = begins_with(head, of_head, "\x89PNG\r\n\x1a\n");

    if (item->size == 0) {
        item->fault = SOURCE_EMPTY;
    } else if (item->size > CONVERT_MAX_FILE) {
        item->fault = SOURCE_LARGE;
    } else if (!png && !begins_with(head, of_head, "\xff\xd8\xff")) {
        item->fault = SOURCE_TYPE;
        item->detail = source_type(c, head, of_head);
    } else {
        item->misnamed = png != named_png(item->name);
        item->fault = ends_as_it_should(tail, of_tail, png) ? SOURCE_GOOD : SOURCE_SHORT;
    }
}

/* Read the first and last bytes of an open file of item->size bytes. */
static enum chex_status
read_ends(int fd, const struct source_item *item, uint8_t head[SOURCE_HEAD], uint8_t tail[SOURCE_TAIL],
          struct chex_error *err)
{
    size_t of_head = item->size < SOURCE_HEAD ? (size_t)item->size : SOURCE_HEAD, got_head = 0;
    size_t of_tail = item->size < SOURCE_TAIL ? (size_t)item->size : SOURCE_TAIL, got_tail = 0;
    enum chex_status status = file_pread(fd, 0, head, of_head, &got_head, err);

    if (status == CHEX_OK)
        status = file_pread(fd, item->size - of_tail, tail, of_tail, &got_tail, err);
    if (status == CHEX_OK && (got_head < of_head || got_tail < of_tail))
        status = error_set(err, CHEX_ERR_READ, "changed while it was read");
    return status;
}

enum chex_status
source_probe_file(struct source_check *c, struct source_item *item, const char *path, struct chex_error *err)
{
    uint8_t head[SOURCE_HEAD], tail[SOURCE_TAIL];
    int fd;
    enum chex_status status = file_open(AT_FDCWD, path, &fd, &item->size, err);

    if (status != CHEX_OK) {
        item->size = 0;
    } else {
        status = read_ends(fd, item, head, tail, err);
        close(fd);
    }
    if (status == CHEX_ERR_MEMORY)
        return error_context(err, status, "'%s'", path);
    if (status == CHEX_OK) {
        source_probe(c, item, head, tail);
        return CHEX_OK;
    }
    item->fault = SOURCE_UNREADABLE;
    item->detail = keep_text(c, err->cause ? errno_text(err->cause) : err->text);
    item->failed = convert_is_read_error(err);
    return CHEX_OK;
}
