/*
 * append.c - see append.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "log/append.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct append {
    const struct folder *folder;
    char *name;
    int fd;
    uint64_t end; /* of the last complete piece */
    struct buffer pending;
};

static enum chex_status
fail(const struct append *a, const char *verb, int error, struct chex_error *err)
{
    return error_write(err, error, "cannot %s '%s/%s'", verb, a->folder->path, a->name);
}

static enum chex_status
open_regular(struct append *a, bool fresh, struct chex_error *err)
{
    /* Never follow a link, and never wait for the reader of a FIFO. */
    int flags = O_CREAT | O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (fresh ? O_EXCL : 0);
    struct stat st;

    a->fd = openat(a->folder->fd, a->name, flags, 0666);
    if (a->fd < 0 || fstat(a->fd, &st) != 0)
        return fail(a, "create", errno, err);
    if (!S_ISREG(st.st_mode))
        return error_set(err, CHEX_ERR_WRITE, "cannot write '%s/%s': not a regular file", a->folder->path, a->name);
    a->end = (uint64_t)st.st_size;
    return CHEX_OK;
}

enum chex_status
append_open(const struct folder *folder, const char *name, bool fresh, struct append **out, struct chex_error *err)
{
    struct append *a = calloc(1, sizeof(*a));
    enum chex_status status;

    *out = NULL;
    if (!a)
        return error_memory(err);
    a->folder = folder;
    a->fd = -1;
    a->name = strdup(name);
    status = a->name ? open_regular(a, fresh, err) : error_memory(err);
    if (status == CHEX_OK)
        *out = a;
    else
        append_free(a);
    return status;
}

enum chex_status
append_put(struct append *a, const void *data, size_t size, struct chex_error *err)
{
    struct chex_error ignored;
    size_t all;

    if (!size_add(a->pending.size, size, &all))
        return error_memory(err);
    if (a->pending.size > 0 && all > APPEND_LIMIT && append_flush(a, &ignored) != CHEX_OK)
        return error_set(err, CHEX_ERR_LIMIT, "dropped for '%s/%s': %s", a->folder->path, a->name, ignored.text);
    return buffer_append(&a->pending, data, size, err);
}

enum chex_status
append_flush(struct append *a, struct chex_error *err)
{
    struct stat st;
    int error;

    if (a->pending.size == 0)
        return CHEX_OK;
    error = file_pwrite(a->fd, a->end, a->pending.data, a->pending.size);
    if (error != 0) {
        /* Truncate an incomplete piece; if that fails too, the next flush overwrites it. */
        while (ftruncate(a->fd, (off_t)a->end) != 0 && errno == EINTR)
            ;
        return fail(a, "write", error, err);
    }
    a->end += a->pending.size;
    a->pending.size = 0;
    /* The file was removed: further lines would be lost. */
    if (fstat(a->fd, &st) == 0 && st.st_nlink == 0)
        return error_set(err, CHEX_ERR_WRITE, "'%s/%s' was removed", a->folder->path, a->name);
    return CHEX_OK;
}

enum chex_status
append_sync(struct append *a, struct chex_error *err)
{
    enum chex_status status = append_flush(a, err);

    if (status == CHEX_OK && fsync(a->fd) != 0)
        status = fail(a, "sync", errno, err);
    return status;
}

void
append_free(struct append *a)
{
    if (!a)
        return;
    if (a->fd >= 0)
        close(a->fd);
    buffer_release(&a->pending);
    free(a->name);
    free(a);
}
