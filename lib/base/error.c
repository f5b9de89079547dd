/*
 * error.c - see error.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const status_names[] = {
    [CHEX_OK] = "ok",
    [CHEX_ERR_MEMORY] = "out of memory",
    [CHEX_ERR_USAGE] = "usage",
    [CHEX_ERR_MISSING] = "missing",
    [CHEX_ERR_READ] = "read error",
    [CHEX_ERR_WRITE] = "write error",
    [CHEX_ERR_LOCKED] = "locked",
    [CHEX_ERR_INCOMPATIBLE] = "incompatible",
    [CHEX_ERR_STOPPED] = "stopped",
    [CHEX_ERR_LOST] = "lost",
    [CHEX_ERR_DIVERGED] = "diverged",
    [CHEX_ERR_EMPTY] = "empty",
    [CHEX_ERR_TRUNCATED] = "truncated",
    [CHEX_ERR_CHECKSUM] = "checksum",
    [CHEX_ERR_DAMAGED] = "damaged",
    [CHEX_ERR_UNSUPPORTED] = "unsupported",
    [CHEX_ERR_LIMIT] = "limit",
    [CHEX_ERR_NOT_IMAGE] = "not an image",
    [CHEX_ERR_BUG] = "bug",
};

const char *
chex_status_name(enum chex_status status)
{
    size_t i = (size_t)status;

    return i < sizeof(status_names) / sizeof(status_names[0]) && status_names[i] ? status_names[i] : "unknown";
}

bool
chex_status_is_data(enum chex_status status)
{
    return status >= CHEX_ERR_DATA_FIRST && status <= CHEX_ERR_DATA_LAST;
}

static enum chex_status set(struct chex_error *err, enum chex_status status, int cause, const char *format,
                            va_list args) __attribute__((format(printf, 4, 0)));

static enum chex_status
set(struct chex_error *err, enum chex_status status, int cause, const char *format, va_list args)
{
    size_t used;

    if (!err)
        return status;
    err->status = status;
    err->cause = cause;
    memset(err->reserved, 0, sizeof(err->reserved));
    vsnprintf(err->text, sizeof(err->text), format, args);
    used = strlen(err->text);
    if (cause)
        snprintf(err->text + used, sizeof(err->text) - used, ": %s", errno_text(cause));
    return status;
}

enum chex_status
error_set(struct chex_error *err, enum chex_status status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    set(err, status, 0, format, args);
    va_end(args);
    return status;
}

enum chex_status
error_system(struct chex_error *err, enum chex_status status, int error, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    set(err, status, error, format, args);
    va_end(args);
    return status;
}

enum chex_status
error_read(struct chex_error *err, int error, const char *format, ...)
{
    enum chex_status status;
    va_list args;

    va_start(args, format);
    status = set(err, status_of_read_errno(error), error, format, args);
    va_end(args);
    return status;
}

enum chex_status
error_write(struct chex_error *err, int error, const char *format, ...)
{
    enum chex_status status;
    va_list args;

    va_start(args, format);
    status = set(err, error == ENOMEM ? CHEX_ERR_MEMORY : CHEX_ERR_WRITE, error, format, args);
    va_end(args);
    return status;
}

enum chex_status
error_context(struct chex_error *err, enum chex_status status, const char *format, ...)
{
    if (err) {
        char text[sizeof(err->text)];
        size_t used, rest;
        va_list args;
        int length;

        memcpy(text, err->text, sizeof(text));
        va_start(args, format);
        length = vsnprintf(err->text, sizeof(err->text), format, args);
        va_end(args);
        used = length < 0 ? 0 : (size_t)length;
        if (used + sizeof(": ") < sizeof(err->text)) {
            memcpy(err->text + used, ": ", 2);
            used += 2;
            rest = strnlen(text, sizeof(err->text) - used - 1);
            memcpy(err->text + used, text, rest);
            err->text[used + rest] = '\0';
        }
        err->status = status;
    }
    return status;
}

enum chex_status
error_memory(struct chex_error *err)
{
    error_set(err, CHEX_ERR_MEMORY, "out of memory");
    if (err)
        err->cause = ENOMEM;
    return CHEX_ERR_MEMORY;
}

enum chex_status
error_stopped(struct chex_error *err)
{
    return error_set(err, CHEX_ERR_STOPPED, "stopped on request");
}

const char *
errno_text(int error)
{
    switch (error) {
    case ENOSPC:
        return "disk full";
    case EDQUOT:
        return "quota exceeded";
    case EFBIG:
        return "File too large (for 'ulimit -f' or this file system)";
    case EMFILE:
        return "Too many open files (for 'ulimit -n')";
    default:
        return strerror(error);
    }
}

bool
error_is_denied(const struct chex_error *err)
{
    return err->cause == EACCES || err->cause == EPERM;
}

enum chex_status
status_of_read_errno(int error)
{
    switch (error) {
    case ENOENT:
    case ENOTDIR:
    case EACCES:
    case EPERM:
    case ELOOP:
    case ENAMETOOLONG:
    case EISDIR:
        return CHEX_ERR_MISSING;
    case ENOMEM:
    case EMFILE: /* limits of this process or the system, not faults of an input: no reason to reject an image */
    case ENFILE:
        return CHEX_ERR_MEMORY;
    default:
        return CHEX_ERR_READ;
    }
}

bool
status_is_of_input(enum chex_status status)
{
    return chex_status_is_data(status) || status == CHEX_ERR_READ || status == CHEX_ERR_MISSING;
}
