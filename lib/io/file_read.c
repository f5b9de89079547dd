/*
 * file_read.c - opens and reads input files; see file.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "io/file.h"

#include "base/number_format.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Seconds since the last change of a file after which it is unlikely to change.  Clocks of servers differ by less. */
#define SETTLED 60

/* Open a file that may be irregular. */
static enum chex_status
open_any(int folder_fd, const char *path, int flags, int *fd, struct chex_error *err)
{
    unsigned failures = 0;

    /* O_NONBLOCK: opening a FIFO or device returns at once; stat_regular() then detects it. */
    do
        *fd = openat(folder_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags, 0);
    while (*fd < 0 && file_try_again(errno, &failures));
    if (*fd < 0 && (errno == ENXIO || errno == ENODEV)) /* a socket, or a device without a driver */
        return error_set(err, CHEX_ERR_NOT_IMAGE, "not a regular file");
    return *fd < 0 ? error_read(err, errno, "cannot open") : CHEX_OK;
}

static enum chex_status
stat_regular(int fd, struct stat *st, struct chex_error *err)
{
    int error = file_fstatat(fd, "", AT_EMPTY_PATH, st);

    if (error != 0)
        return error_system(err, CHEX_ERR_READ, error, "cannot stat");
    return S_ISREG(st->st_mode) ? CHEX_OK : error_set(err, CHEX_ERR_NOT_IMAGE, "not a regular file");
}

static enum chex_status
open_regular(int folder_fd, const char *path, int flags, int *fd, struct stat *st, struct chex_error *err)
{
    enum chex_status status = open_any(folder_fd, path, flags, fd, err);

    if (status != CHEX_OK)
        return status;
    status = stat_regular(*fd, st, err);
    if (status != CHEX_OK)
        close(*fd);
    return status;
}

enum chex_status
file_open(int folder_fd, const char *path, int *fd, uint64_t *size, struct chex_error *err)
{
    struct stat st;
    enum chex_status status = open_regular(folder_fd, path, 0, fd, &st, err);

    if (status == CHEX_OK)
        *size = (uint64_t)st.st_size;
    return status;
}

enum chex_status
file_open_input(int folder_fd, const char *path, int *fd, uint64_t *size, struct chex_error *err)
{
    enum chex_status status = file_open(folder_fd, path, fd, size, err);

    if (status == CHEX_ERR_NOT_IMAGE) {
        status = CHEX_ERR_MISSING;
        if (err)
            err->status = status;
    }
    return status;
}

enum chex_status
file_open_own(const struct folder *folder, const char *name, int *fd, uint64_t *size, struct chex_error *err)
{
    struct chex_error own = {.status = CHEX_OK};
    enum chex_status status;
    struct stat st;

    err = err ? err : &own;
    status = open_regular(folder->fd, name, O_NOFOLLOW, fd, &st, err);
    if (status == CHEX_OK)
        *size = (uint64_t)st.st_size;
    if (status == CHEX_ERR_MISSING && err->cause == ELOOP)
        status = error_set(err, CHEX_ERR_NOT_IMAGE, "not a regular file");
    return status;
}

/* Read at least `least` bytes, unless the file ends before, and at most `size`. */
static enum chex_status
read_least(int fd, uint64_t offset, void *data, size_t least, size_t size, size_t *got, struct chex_error *err)
{
    unsigned failures = 0;
    uint8_t *p = data;

    *got = 0;
    while (*got < least) {
        ssize_t n = pread(fd, p + *got, size - *got, (off_t)(offset + *got));

        if (n == 0)
            break;
        if (n > 0) {
            *got += (size_t)n;
        } else if (!file_try_again(errno, &failures)) {
            /* a limit of this process or machine, not a fault of the input: no reason to reject an image */
            const bool ran_short = status_of_read_errno(errno) == CHEX_ERR_MEMORY;

            return error_system(err, ran_short ? CHEX_ERR_MEMORY : CHEX_ERR_READ, errno, "read error at byte %s",
                                COUNT_TEXT(offset + *got));
        }
    }
    return CHEX_OK;
}

enum chex_status
file_pread(int fd, uint64_t offset, void *data, size_t size, size_t *got, struct chex_error *err)
{
    return read_least(fd, offset, data, size, size, got, err);
}

/* Check after reading that the file's size and time have not changed; otherwise CHEX_ERR_READ. */
static enum chex_status
check_unchanged(int fd, uint64_t got, const struct stat *before, struct chex_error *err)
{
    struct stat now;
    int error = file_fstatat(fd, "", AT_EMPTY_PATH, &now);

    if (error != 0)
        return error_system(err, CHEX_ERR_READ, error, "cannot stat");
    if (got != (uint64_t)now.st_size || now.st_size != before->st_size ||
        now.st_mtim.tv_sec != before->st_mtim.tv_sec || now.st_mtim.tv_nsec != before->st_mtim.tv_nsec)
        return error_set(err, CHEX_ERR_READ, "changed while it was read");
    return CHEX_OK;
}

/* Read a file of the size in *before, which is its state before the call. */
static enum chex_status
read_known(int fd, uint64_t max, const struct stat *before, struct buffer *b, struct chex_error *err)
{
    size_t got = 0, size = (size_t)before->st_size;
    enum chex_status status;

    if ((uint64_t)before->st_size > max)
        return error_set(err, CHEX_ERR_LIMIT, "%s bytes are more than the %s allowed",
                         COUNT_TEXT((uint64_t)before->st_size), COUNT_TEXT(max));
    status = buffer_reserve(b, size + 1, err);
    /* Ask for one byte more, to find a file that grew, or that has no size; check_unchanged() finds one that grows. */
    if (status == CHEX_OK)
        status = read_least(fd, 0, b->data, size > 0 ? size : 1, size + 1, &got, err);
    if (status == CHEX_OK)
        status = check_unchanged(fd, got, before, err);
    if (status == CHEX_OK)
        b->size = got;
    return status;
}

/* Returns whether the file was not changed for a while. */
static bool
is_settled(const struct stat *st)
{
    const time_t before = time(NULL) - SETTLED;

    return st->st_mtim.tv_sec <= before && st->st_ctim.tv_sec <= before;
}

/*
 * Read a file into the memory of b, with a single fstat(), which follows the only read.  If that shows that the file
 * was not changed for a while and has no other size, b has its content.  Otherwise b->size is 0, and *st is a state
 * before which nothing was read that counts.
 */
static enum chex_status
read_at_once(int fd, uint64_t max, struct buffer *b, struct stat *st, struct chex_error *err)
{
    size_t got = 0, room = b->capacity < max ? b->capacity : (size_t)max;
    enum chex_status read = room > 0 ? read_least(fd, 0, b->data, 1, room, &got, err) : CHEX_OK;
    enum chex_status status = stat_regular(fd, st, err);

    if (status == CHEX_OK && read == CHEX_OK && got == (uint64_t)st->st_size && is_settled(st))
        b->size = got;
    return status == CHEX_OK ? read : status;
}

enum chex_status
file_read(int folder_fd, const char *path, uint64_t max, struct buffer *b, struct chex_error *err)
{
    struct stat st;
    int fd;
    enum chex_status status = open_any(folder_fd, path, 0, &fd, err);

    if (status != CHEX_OK)
        return status;
    b->size = 0;
    status = read_at_once(fd, max, b, &st, err);
    if (status == CHEX_OK && b->size == 0)
        status = read_known(fd, max, &st, b, err);
    close(fd);
    return status;
}
