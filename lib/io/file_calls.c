/*
 * file_calls.c - system calls with retries; see file.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "io/file.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRIES         3    /* after the first */
#define INTERRUPTIONS 1000 /* of one call; after more, give up, so that the process can react to a signal to stop */

/* *failures counts retries in its four lowest bits, and interruptions above them. */
static bool
is_interrupted(int error, unsigned *failures)
{
    return error == EINTR && (*failures += 16) / 16 <= INTERRUPTIONS;
}

bool
file_try_again(int error, unsigned *failures)
{
    if (is_interrupted(error, failures))
        return true;
    /* EAGAIN: another process must first give up its lease (fcntl(2)). */
    if ((error != EIO && error != ESTALE && error != ETIMEDOUT && error != EAGAIN) || (*failures & 15) == TRIES)
        return false;
    backoff(0.02 * (1 << (2 * (*failures & 15)))); /* 20, 80, 320 ms */
    (*failures)++;
    return true;
}

int
file_fstatat(int folder_fd, const char *path, int flags, struct stat *st)
{
    unsigned failures = 0;
    int error;

    do
        error = fstatat(folder_fd, path, st, flags) == 0 ? 0 : errno;
    while (error != 0 && file_try_again(error, &failures));
    return error;
}

int
file_openat(int folder_fd, const char *name, int flags, mode_t mode)
{
    unsigned failures = 0;
    int fd;

    do
        fd = openat(folder_fd, name, flags, mode);
    while (fd < 0 && is_interrupted(errno, &failures));
    return fd < 0 ? -errno : fd;
}

int
file_fsync(int fd)
{
    unsigned failures = 0;
    int error;

    do
        error = fsync(fd) == 0 ? 0 : errno;
    while (is_interrupted(error, &failures));
    return error;
}

int
file_pwrite(int fd, uint64_t offset, const void *data, size_t size)
{
    unsigned failures = 0;
    const uint8_t *p = data;

    while (size > 0) {
        ssize_t n = pwrite(fd, p, size, (off_t)offset);

        if (n < 0 && is_interrupted(errno, &failures))
            continue;
        if (n <= 0)
            return n < 0 ? errno : EIO;
        p += n;
        offset += (uint64_t)n;
        size -= (size_t)n;
    }
    return 0;
}
