/*
 * wrap_files.c - wrappers of the C library's calls for files and folders; see inject.c
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "inject.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---- content ---------------------------------------------------------------------------------------------------- */

ssize_t
write(int fd, const void *data, size_t size)
{
    REAL(ssize_t, "write", int, const void *, size_t);
    char path[PATH_SIZE];
    int why = fate_of_fd(WRITE, fd, true, path);
    ssize_t n;

    if (why > 0) {
        errno = why;
        return -1;
    }
    if (!logs(path))
        return real(fd, data, why == FAIL_SHORT ? (size + 1) / 2 : size);
    pthread_mutex_lock(&order);
    off_t at = lseek(fd, 0, SEEK_CUR);
    n = real(fd, data, why == FAIL_SHORT ? (size + 1) / 2 : size);
    if (n > 0)
        log_op("write", path, (uint64_t)at, data, (size_t)n);
    pthread_mutex_unlock(&order);
    return n;
}

ssize_t
pwrite(int fd, const void *data, size_t size, off_t at)
{
    REAL(ssize_t, "pwrite", int, const void *, size_t, off_t);
    char path[PATH_SIZE];
    int why = fate_of_fd(WRITE, fd, true, path);
    ssize_t n;

    if (why > 0) {
        errno = why;
        return -1;
    }
    pthread_mutex_lock(&order);
    n = real(fd, data, why == FAIL_SHORT ? (size + 1) / 2 : size, at);
    if (n > 0 && logs(path))
        log_op("write", path, (uint64_t)at, data, (size_t)n);
    pthread_mutex_unlock(&order);
    return n;
}

ssize_t
pwrite64(int fd, const void *data, size_t size, off_t at)
{
    return pwrite(fd, data, size, at);
}

ssize_t
pread(int fd, void *data, size_t size, off_t at)
{
    REAL(ssize_t, "pread", int, void *, size_t, off_t);
    char path[PATH_SIZE];
    int why = fate_of_fd(READ, fd, false, path);

    if (why > 0) {
        errno = why;
        return -1;
    }
    return real(fd, data, why == FAIL_SHORT ? (size + 1) / 2 : size, at);
}

ssize_t
pread64(int fd, void *data, size_t size, off_t at)
{
    return pread(fd, data, size, at);
}

ssize_t
read(int fd, void *data, size_t size)
{
    REAL(ssize_t, "read", int, void *, size_t);
    char path[PATH_SIZE];
    int why = fate_of_fd(READ, fd, false, path);

    if (why > 0) {
        errno = why;
        return -1;
    }
    return real(fd, data, why == FAIL_SHORT ? (size + 1) / 2 : size);
}

/* After a failed fsync the content of the file is undefined; the replay tests that. */
#define SYNC_WRAPPER(name)                                  \
    int name(int fd)                                        \
    {                                                       \
        REAL(int, #name, int);                              \
        char path[PATH_SIZE];                               \
        int why = fate_of_fd(SYNC, fd, true, path), result; \
                                                            \
        if (why > 0) {                                      \
            errno = why;                                    \
            return -1;                                      \
        }                                                   \
        pthread_mutex_lock(&order);                         \
        result = real(fd);                                  \
        if (result == 0 && logs(path))                      \
            log_op("sync", path, 0, NULL, 0);               \
        pthread_mutex_unlock(&order);                       \
        return result;                                      \
    }
SYNC_WRAPPER(fsync)
SYNC_WRAPPER(fdatasync)

/* As on Linux, the descriptor is closed even if close() fails. */
int
close(int fd)
{
    REAL(int, "close", int);
    char path[PATH_SIZE];
    int why = fate_of_fd(CLOSE, fd, false, path), result = real(fd);

    if (why <= 0)
        return result;
    errno = why;
    return -1;
}

/* ---- names ------------------------------------------------------------------------------------------------------ */

int
renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    REAL(int, "renameat", int, const char *, int, const char *);
    char path[PATH_SIZE], target[PATH_SIZE];
    int why = fate_of_path(RENAME, to_folder, to, true, target), result;

    if (why > 0) {
        errno = why;
        return -1;
    }
    pthread_mutex_lock(&order);
    result = real(from_folder, from, to_folder, to);
    if (result == 0 && logs(target) && path_at(from_folder, from, path))
        log_op("rename", path, 0, target, strlen(target));
    pthread_mutex_unlock(&order);
    return result;
}

int
linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    REAL(int, "linkat", int, const char *, int, const char *, int);
    char path[PATH_SIZE], target[PATH_SIZE];
    int why = fate_of_path(LINK, to_folder, to, true, target), result;

    if (why > 0) {
        errno = why;
        return -1;
    }
    pthread_mutex_lock(&order);
    result = real(from_folder, from, to_folder, to, flags);
    if (result == 0 && logs(target) && path_at(from_folder, from, path))
        log_op("link", path, 0, target, strlen(target));
    pthread_mutex_unlock(&order);
    return result;
}

int
unlinkat(int folder, const char *name, int flags)
{
    REAL(int, "unlinkat", int, const char *, int);
    char path[PATH_SIZE];
    int why = fate_of_path(UNLINK, folder, name, true, path), result;

    if (why > 0) {
        errno = why;
        return -1;
    }
    pthread_mutex_lock(&order);
    result = real(folder, name, flags);
    if (result == 0 && logs(path))
        log_op("unlink", path, 0, NULL, 0);
    pthread_mutex_unlock(&order);
    return result;
}

static int
open_at(int folder, const char *name, int flags, mode_t mode)
{
    REAL(int, "openat", int, const char *, int, ...);
    char path[PATH_SIZE];
    int why = fate_of_path(OPEN, folder, name, flags & O_CREAT, path), fd;

    if (why > 0) {
        errno = why;
        return -1;
    }
    if (!logs(path) || !(flags & O_CREAT))
        return real(folder, name, flags, mode);
    pthread_mutex_lock(&order);
    bool there = syscall(SYS_faccessat, folder, name, F_OK) == 0;
    fd = real(folder, name, flags, mode);
    if (fd >= 0 && !there)
        log_op("create", path, 0, NULL, 0);
    pthread_mutex_unlock(&order);
    return fd;
}

static mode_t
mode_of(int flags, va_list args)
{
    return flags & (O_CREAT | __O_TMPFILE) ? (mode_t)va_arg(args, int) : 0;
}

#define OPEN_AT_WRAPPER(function)                              \
    int function(int folder, const char *name, int flags, ...) \
    {                                                          \
        va_list args;                                          \
        mode_t mode;                                           \
                                                               \
        va_start(args, flags);                                 \
        mode = mode_of(flags, args);                           \
        va_end(args);                                          \
        return open_at(folder, name, flags, mode);             \
    }
OPEN_AT_WRAPPER(openat)
OPEN_AT_WRAPPER(openat64)

#define OPEN_WRAPPER(function)                       \
    int function(const char *name, int flags, ...)   \
    {                                                \
        va_list args;                                \
        mode_t mode;                                 \
                                                     \
        va_start(args, flags);                       \
        mode = mode_of(flags, args);                 \
        va_end(args);                                \
        return open_at(AT_FDCWD, name, flags, mode); \
    }
OPEN_WRAPPER(open)
OPEN_WRAPPER(open64)

/* Fortified code calls these instead. */
int
__open_2(const char *name, int flags)
{
    return open_at(AT_FDCWD, name, flags, 0);
}

int
__openat_2(int folder, const char *name, int flags)
{
    return open_at(folder, name, flags, 0);
}

/* ---- folders, space --------------------------------------------------------------------------------------------- */

DIR *
opendir(const char *name)
{
    REAL(DIR *, "opendir", const char *);
    char path[PATH_SIZE];
    int why = fate_of_path(LIST, AT_FDCWD, name, false, path);

    if (why <= 0)
        return real(name);
    errno = why;
    return NULL;
}

struct dirent *
readdir(DIR *dir)
{
    REAL(struct dirent *, "readdir", DIR *);
    char path[PATH_SIZE];
    int why = fate_of_fd(LIST, dirfd(dir), false, path);

    if (why <= 0)
        return real(dir);
    errno = why;
    return NULL;
}

/* The programs use these names; the C library itself calls others. */
int
fstatat(int folder, const char *name, struct stat *st, int flags)
{
    REAL(int, "fstatat", int, const char *, struct stat *, int);
    char path[PATH_SIZE];
    int why = (flags & AT_EMPTY_PATH) && !name[0] ? fate_of_fd(STAT, folder, false, path)
                                                  : fate_of_path(STAT, folder, name, false, path);

    if (why <= 0)
        return real(folder, name, st, flags);
    errno = why;
    return -1;
}

int
fallocate(int fd, int mode, off_t at, off_t size)
{
    REAL(int, "fallocate", int, int, off_t, off_t);
    char path[PATH_SIZE];
    int why = fate_of_fd(RESERVE, fd, true, path), result;

    if (why > 0) {
        errno = why;
        return -1;
    }
    pthread_mutex_lock(&order);
    result = real(fd, mode, at, size);
    if (result == 0 && logs(path))
        log_op("extend", path, (uint64_t)at + (uint64_t)size, NULL, 0);
    pthread_mutex_unlock(&order);
    return result;
}

int
fallocate64(int fd, int mode, off_t at, off_t size)
{
    return fallocate(fd, mode, at, size);
}

int
ftruncate(int fd, off_t size)
{
    REAL(int, "ftruncate", int, off_t);
    char path[PATH_SIZE];
    int why = fate_of_fd(RESERVE, fd, true, path), result;

    if (why > 0) {
        errno = why;
        return -1;
    }
    pthread_mutex_lock(&order);
    result = real(fd, size);
    if (result == 0 && logs(path))
        log_op("truncate", path, (uint64_t)size, NULL, 0);
    pthread_mutex_unlock(&order);
    return result;
}

int
ftruncate64(int fd, off_t size)
{
    return ftruncate(fd, size);
}

/* ---- time ------------------------------------------------------------------------------------------------------- */

int
nanosleep(const struct timespec *wanted, struct timespec *left)
{
    REAL(int, "nanosleep", const struct timespec *, struct timespec *);

    return __atomic_load_n(&plan.failing, __ATOMIC_SEQ_CST) ? 0 : real(wanted, left);
}
