/*
 * calls.c - see calls.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calls.h"
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static struct {
    bool on, ever;
    enum call kind;
    unsigned nth;
    int error;
    atomic_uint count, failed;
} plan;

static void (*_Atomic before_rename)(void); /* threads rename too */

void
calls_before_rename(void (*rival)(void))
{
    before_rename = rival;
}

void
calls_fail(enum call kind, unsigned nth, bool ever, int error)
{
    plan.kind = kind;
    plan.nth = nth;
    plan.ever = ever;
    plan.error = error;
    plan.count = plan.failed = 0;
    plan.on = true;
}

unsigned
calls_end(void)
{
    plan.on = false;
    return plan.failed;
}

static bool
fails(enum call kind)
{
    unsigned n;

    if (!plan.on || plan.kind != kind)
        return false;
    n = atomic_fetch_add(&plan.count, 1) + 1;
    if (plan.ever ? n < plan.nth : n != plan.nth)
        return false;
    atomic_fetch_add(&plan.failed, 1);
    errno = plan.error;
    return true;
}

#define WRAP(type, name, kind, failed, parameters, arguments)    \
    type __real_##name parameters;                               \
    type __wrap_##name parameters;                               \
    type __wrap_##name parameters                                \
    {                                                            \
        return fails(kind) ? (failed) : __real_##name arguments; \
    }

WRAP(void *, malloc, CALL_MEMORY, NULL, (size_t size), (size))
WRAP(void *, calloc, CALL_MEMORY, NULL, (size_t count, size_t size), (count, size))
WRAP(void *, realloc, CALL_MEMORY, NULL, (void *p, size_t size), (p, size))
static _Atomic int64_t bad_block = -1;

void
calls_bad_block(int64_t offset)
{
    bad_block = offset;
}

ssize_t __real_pread(int fd, void *data, size_t size, off_t at);
ssize_t __wrap_pread(int fd, void *data, size_t size, off_t at);

ssize_t
__wrap_pread(int fd, void *data, size_t size, off_t at)
{
    int64_t bad = bad_block;

    if (fails(CALL_READ))
        return -1;
    if (bad >= 0 && at >= bad) {
        errno = ENXIO;
        return -1;
    }
    if (bad >= 0 && size > (uint64_t)(bad - at))
        size = (size_t)(bad - at);
    return __real_pread(fd, data, size, at);
}

WRAP(ssize_t, pwrite, CALL_WRITE, -1, (int fd, const void *data, size_t size, off_t at), (fd, data, size, at))
WRAP(ssize_t, write, CALL_WRITE, -1, (int fd, const void *data, size_t size), (fd, data, size))
WRAP(int, fstat, CALL_STAT, -1, (int fd, struct stat *st), (fd, st))

static atomic_long age;

void
calls_age(long seconds)
{
    age = seconds;
}

int __real_fstatat(int fd, const char *name, struct stat *st, int flags);
int __wrap_fstatat(int fd, const char *name, struct stat *st, int flags);

int
__wrap_fstatat(int fd, const char *name, struct stat *st, int flags)
{
    int result = fails(CALL_STAT) ? -1 : __real_fstatat(fd, name, st, flags);

    if (result == 0) {
        st->st_mtim.tv_sec -= age;
        st->st_ctim.tv_sec -= age;
    }
    return result;
}

WRAP(DIR *, opendir, CALL_OPEN, NULL, (const char *path), (path))
WRAP(struct dirent *, readdir, CALL_LIST, NULL, (DIR * dir), (dir))
WRAP(int, unlinkat, CALL_UNLINK, -1, (int folder, const char *name, int flags), (folder, name, flags))

/* The C library's functions with a mode argument. */
#define WRAP_OPEN(name, parameters, arguments)                  \
    int __real_##name parameters;                               \
    int __wrap_##name parameters;                               \
    int __wrap_##name parameters                                \
    {                                                           \
        mode_t mode = 0;                                        \
        va_list args;                                           \
                                                                \
        va_start(args, flags);                                  \
        if (flags & O_CREAT)                                    \
            mode = va_arg(args, mode_t);                        \
        va_end(args);                                           \
        return fails(CALL_OPEN) ? -1 : __real_##name arguments; \
    }

WRAP_OPEN(openat, (int folder, const char *name, int flags, ...), (folder, name, flags, mode))
WRAP_OPEN(open, (const char *path, int flags, ...), (path, flags, mode))

int __real_nanosleep(const struct timespec *wanted, struct timespec *left);
int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left);

int
__wrap_nanosleep(const struct timespec *wanted, struct timespec *left)
{
    return plan.on ? 0 : __real_nanosleep(wanted, left);
}

int __real_renameat(int from, const char *old, int to, const char *new);
int __wrap_renameat(int from, const char *old, int to, const char *new);

int
__wrap_renameat(int from, const char *old, int to, const char *new)
{
    void (*rival)(void);

    if (fails(CALL_RENAME))
        return -1;
    rival = atomic_exchange(&before_rename, NULL);
    if (rival)
        rival();
    return __real_renameat(from, old, to, new);
}

int __real_linkat(int from, const char *old, int to, const char *new, int flags);
int __wrap_linkat(int from, const char *old, int to, const char *new, int flags);

int
__wrap_linkat(int from, const char *old, int to, const char *new, int flags)
{
    if (!fails(CALL_RENAME))
        return __real_linkat(from, old, to, new, flags);
    if (plan.error == EEXIST)
        (void)!__real_linkat(from, old, to, new, flags);
    errno = plan.error;
    return -1;
}

int __real_fsync(int fd);
int __wrap_fsync(int fd);

int
__wrap_fsync(int fd)
{
    if (fails(CALL_SYNC))
        return -1;
    return plan.on ? 0 : __real_fsync(fd);
}

int __real_close(int fd);
int __wrap_close(int fd);

/* As on Linux: the descriptor is closed even if close() fails. */
int
__wrap_close(int fd)
{
    int error = errno, result = __real_close(fd);

    if (!fails(CALL_CLOSE)) {
        if (result == 0)
            errno = error;
        return result;
    }
    return -1;
}

void
calls_each(enum call kind, int error, calls_act *act, calls_after *then, enum chex_status wanted, unsigned spare)
{
    for (unsigned ever = 0; ever < 2; ever++) {
        unsigned n, failed = 1, spared = 0;

        for (n = 1; failed > 0; n++) {
            struct chex_error err = {0};
            enum chex_status status;

            calls_fail(kind, n, ever, error);
            status = act(&err);
            failed = calls_end();
            if (status == CHEX_OK && failed > 0)
                ck_assert_msg(++spared <= spare, "call %u failed, and nobody said so", n);
            if (status != CHEX_OK) {
                ck_assert_msg(failed > 0, "nothing failed, but: %s", err.text);
                ck_assert_msg(status == wanted && err.status == wanted, "call %u: status %d: %s", n, status, err.text);
                ck_assert_msg(err.text[0], "call %u: not a word", n);
            }
            if (then)
                then();
        }
        /* Calls that only read are tried again, so a single failure may go unnoticed. */
        ck_assert_msg(n - 2 > spared ||
                          (!ever && spared <= spare && (kind == CALL_STAT || kind == CALL_OPEN || kind == CALL_LIST)),
                      "%u calls, and not one was missed", n - 2);
    }
}
