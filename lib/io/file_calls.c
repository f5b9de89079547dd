/*
 * file_calls.c - calls that are worth making once more, in one place; see file.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TRIES 3 /* after the first */

bool
file_try_again(unsigned *failures)
{
    /* 20, 80, 320 ms */
    struct timespec pause = {.tv_nsec = 20000000L << (2 * *failures)};
    int error = errno;

    if (error == EINTR)
        return true;
    /* EAGAIN: a lease that its holder has to give up first (fcntl(2)). */
    if ((error != EIO && error != ESTALE && error != ETIMEDOUT && error != EAGAIN) || *failures == TRIES)
        return false;
    (*failures)++;
    nanosleep(&pause, NULL);
    errno = error;
    return true;
}

bool
file_stat(int folder_fd, const char *path, int flags, struct stat *st)
{
    unsigned failures = 0;
    int result;

    do
        result = fstatat(folder_fd, path, st, flags);
    while (result != 0 && file_try_again(&failures));
    return result == 0;
}

int
file_openat(int folder_fd, const char *name, int flags, mode_t mode)
{
    int fd;

    do
        fd = openat(folder_fd, name, flags, mode);
    while (fd < 0 && errno == EINTR);
    return fd;
}

int
file_fsync(int fd)
{
    int result;

    do
        result = fsync(fd);
    while (result != 0 && errno == EINTR);
    return result;
}
