/*
 * picture_file.c - names and files of pictures; see picture.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "picture.h"

#include "ascii.h"
#include "file.h"

#include <stdlib.h>
#include <string.h>

bool
picture_name_ends(const char *name, const char *end)
{
    size_t length = strlen(name), end_length = strlen(end);

    return length > end_length && ascii_same(name + length - end_length, end_length, end, end_length);
}

enum chex_status
picture_save(const char *path, const struct buffer *data, struct chex_error *err)
{
    const char *slash = strrchr(path, '/');
    char *parent = !slash ? strdup(".") : strndup(path, slash == path ? 1 : (size_t)(slash - path));
    struct folder folder = {.fd = -1};
    enum chex_status status = parent ? folder_open(parent, false, &folder, err) : chex_fail_memory(err);

    if (status == CHEX_ERR_MISSING)
        err->status = status = CHEX_ERR_WRITE;
    if (status == CHEX_OK)
        status = safe_file_put(&folder, slash ? slash + 1 : path, data->data, data->size, err);
    if (folder.fd >= 0)
        folder_close(&folder);
    free(parent);
    return status;
}
