/*
 * file_own.c - replaces a file with several hard links by a copy, before it is written to; see file.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define PIECE 65536

static enum chex_status
copy_to(struct safe_file *to, int from, struct chex_error *err)
{
    struct buffer b = {0};
    enum chex_status status = buffer_reserve(&b, PIECE, err);
    uint64_t at = 0;
    size_t got = 1;

    while (status == CHEX_OK && got > 0) {
        status = file_pread(from, at, b.data, PIECE, &got, err);
        if (status == CHEX_OK && got > 0)
            status = safe_file_write(to, b.data, got, err);
        at += got;
    }
    buffer_release(&b);
    return status;
}

static enum chex_status
replace_by_copy(const struct folder *folder, const char *name, struct chex_error *err)
{
    struct safe_file *copy;
    uint64_t size;
    int fd;
    enum chex_status status = file_open(folder->fd, name, &fd, &size, err);

    if (status != CHEX_OK)
        return error_context(err, status == CHEX_ERR_MEMORY ? status : CHEX_ERR_WRITE, "'%s/%s'", folder->path, name);
    status = safe_file_create(folder, name, SAFE_FILE_NEW, 0, &copy, err);
    if (status == CHEX_OK) {
        status = copy_to(copy, fd, err);
        if (status == CHEX_OK)
            status = safe_file_commit(copy, true, err);
        else
            safe_file_free(copy);
    }
    close(fd);
    return status == CHEX_ERR_READ ? error_context(err, CHEX_ERR_WRITE, "'%s/%s'", folder->path, name) : status;
}

enum chex_status
folder_own(const struct folder *folder, const char *name, struct chex_error *err)
{
    struct stat st;
    int error = file_fstatat(folder->fd, name, AT_SYMLINK_NOFOLLOW, &st);

    if (error == ENOENT)
        return CHEX_OK;
    if (error != 0)
        return error_system(err, CHEX_ERR_WRITE, error, "cannot stat '%s/%s'", folder->path, name);
    if (!S_ISREG(st.st_mode))
        return error_set(err, CHEX_ERR_WRITE, "'%s/%s' is not a regular file", folder->path, name);
    return st.st_nlink > 1 ? replace_by_copy(folder, name, err) : CHEX_OK;
}
