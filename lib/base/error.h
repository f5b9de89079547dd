/*
 * error.h - how all functions of libchex report errors
 *
 * The caller acts on the status; the text is for people.  The function that knows most about the failure writes the
 * text, once, and returns error_set(...).  Its callers return the status, or add context with error_context(...).  The
 * errno of a failed call is in err->cause.  No function returns a result in errno.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_ERROR_H
#define CHEX_LIB_ERROR_H

#include "chex.h"

/* Set *err (err may be NULL) and return status, for `return error_set(...)`.  The cause is 0: no system call failed. */
enum chex_status error_set(struct chex_error *err, enum chex_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * Report a failed system call with errno `error`: the text is "FORMATTED: errno_text(error)", the cause is `error`.
 * error_read() chooses the status READ, MISSING or MEMORY; error_write() chooses WRITE or MEMORY.
 */
enum chex_status error_system(struct chex_error *err, enum chex_status status, int error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
enum chex_status error_read(struct chex_error *err, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
enum chex_status error_write(struct chex_error *err, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * Insert "FORMATTED: " before the text and set the status, which may differ from before; the cause stays.  Returns
 * status.
 */
enum chex_status error_context(struct chex_error *err, enum chex_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Report a failed allocation: the text is always "out of memory", the cause ENOMEM. */
enum chex_status error_memory(struct chex_error *err);

/* Report a stop: "stopped on request". */
enum chex_status error_stopped(struct chex_error *err);

/* Returns the text of strerror(), or a clearer text if the user can solve the problem. */
const char *errno_text(int error);

/* Returns whether permission to read the input is missing.  The status of such an error is CHEX_ERR_MISSING. */
bool error_is_denied(const struct chex_error *err);

/* Returns whether the error is in an input: its data are wrong, or it cannot be read. */
bool status_is_of_input(enum chex_status status);

/* Returns the status that error_read() uses for this errno. */
enum chex_status status_of_read_errno(int error);

#endif
