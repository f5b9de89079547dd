/*
 * error.h - how every function of libchex reports an error
 *
 * The status decides, the text explains.  A function that fails returns error_set(...), its callers return the status,
 * or add where it happened with error_context(...).  The function that knows most writes the text, once.  The
 * errno of a failed call is err->cause, and stays there: no function hands a result back in errno.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_ERROR_H
#define CHEX_LIB_ERROR_H

#include "chex.h"

/* Set err (may be NULL) and return status, so that `return error_set(...)` is one line.  The cause is 0: no call. */
enum chex_status error_set(struct chex_error *err, enum chex_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * A system call failed with errno `error`: the text is "FORMATTED: errno_text(error)", the cause is `error`.
 * error_read() and error_write() choose the status: READ, MISSING or MEMORY; WRITE or MEMORY.
 */
enum chex_status error_system(struct chex_error *err, enum chex_status status, int error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
enum chex_status error_read(struct chex_error *err, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
enum chex_status error_write(struct chex_error *err, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Put "FORMATTED: " before the text; the cause stays.  Returns status, which may be another than before. */
enum chex_status error_context(struct chex_error *err, enum chex_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* "out of memory", the only text for a failed allocation; its cause is ENOMEM. */
enum chex_status error_memory(struct chex_error *err);

/* "stopped on request". */
enum chex_status error_stopped(struct chex_error *err);

/* The text of strerror(); in plainer words where a user can do something about the error. */
const char *errno_text(int error);

/* The input exists, but may not be read: no permission.  Its status is CHEX_ERR_MISSING. */
bool error_is_denied(const struct chex_error *err);

/* The status of error_read() for this errno. */
enum chex_status status_of_read_errno(int error);

#endif
