/*
 * convert_retry.c - retries rejects of a complete data set that the system caused, not the file
 *
 * If a file was missing, or changed while it was read, the image's slot contains a padding record.  The same command
 * tries to read such files again.  It opens the data set again only if one of them is readable now, because that takes
 * as long as reading the whole data set.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/convert_private.h"

#include "base/json.h"
#include "io/file.h"

#include <fcntl.h>
#include <string.h>

#define REJECTS_MAX (256u << 20)

/* Returns the name in a line of rejects.jsonl if the line reports an image that was not read, otherwise NULL. */
static const char *
name_of(const json_t *line)
{
    const char *kind = json_string_value(json_object_get(line, "kind"));
    const char *reason = json_string_value(json_object_get(line, "reason"));

    if (!kind || !reason || strcmp(kind, "image") != 0)
        return NULL;
    if (strcmp(reason, chex_status_name(CHEX_ERR_READ)) != 0 && strcmp(reason, chex_status_name(CHEX_ERR_MISSING)) != 0)
        return NULL;
    return json_string_value(json_object_get(line, "name"));
}

/* Find out whether the loose file of this name is readable now. */
static enum chex_status
probe_file(const struct convert *c, const char *name, struct buffer *b, bool *good, struct chex_error *err)
{
    const struct source_file *file = source_find(&c->source, name);
    char path[4096];
    enum chex_status status;

    *good = false;
    if (!file || c->source.dataset_count > 0 || source_path(&c->source, file, path, sizeof(path), NULL) != CHEX_OK)
        return CHEX_OK;
    status = file_read(AT_FDCWD, path, CONVERT_MAX_FILE, b, err);
    *good = status == CHEX_OK;
    return status == CHEX_ERR_MEMORY ? status : CHEX_OK;
}

/* Ignore invalid lines: the data set stays complete. */
static enum chex_status
probe_line(const struct convert *c, const char *text, size_t size, struct buffer *b, bool *good, struct chex_error *err)
{
    static const struct parse_bounds bounds = {.size = 65536, .depth = 2, .values = 100};
    json_t *line = NULL;
    enum chex_status status = parse_json(text, size, &bounds, &line, err);
    const char *name = status == CHEX_OK ? name_of(line) : NULL;

    if (name)
        status = probe_file(c, name, b, good, err);
    json_decref(line);
    return status == CHEX_ERR_MEMORY ? status : CHEX_OK;
}

enum chex_status
convert_probe_rejects(struct convert *c, const struct folder *folder, struct chex_error *err)
{
    struct buffer list = {0}, image = {0};
    enum chex_status status = file_read(folder->fd, STORE_REJECTS_NAME, REJECTS_MAX, &list, err);
    size_t at = 0;

    if (status != CHEX_OK)
        list.size = 0;
    while (status == CHEX_OK && at < list.size) {
        const char *text = (const char *)list.data + at;
        const char *end = memchr(text, '\n', list.size - at);
        size_t length = end ? (size_t)(end - text) : list.size - at;
        bool good = false;

        status = c->options->stop && atomic_load(c->options->stop) ? error_stopped(err)
                                                                   : probe_line(c, text, length, &image, &good, err);
        c->retried += good;
        at += length + 1;
    }
    buffer_release(&image);
    buffer_release(&list);
    return status == CHEX_ERR_MEMORY || status == CHEX_ERR_STOPPED ? status : CHEX_OK;
}
