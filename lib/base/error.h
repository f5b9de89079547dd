/*
 * error.h - how every function of libchex reports an error
 *
 * The status steers, the text explains.  A function that fails returns chex_fail(...), its callers return the status
 * as it is or add where it happened with chex_context(...).  The text is written once, by the one who knows most.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_ERROR_H
#define CHEX_LIB_ERROR_H

#include "chex.h"

/* Set err (may be NULL) and return status, so that `return chex_fail(...)` is one line.  errno is kept. */
enum chex_status chex_fail(struct chex_error *err, enum chex_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Put "FORMATTED: " before the text that is there.  Returns status, which may be another than before. */
enum chex_status chex_context(struct chex_error *err, enum chex_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* "out of memory", the only text for a failed allocation. */
enum chex_status chex_fail_memory(struct chex_error *err);

/* "stopped on request", whatever was at hand. */
enum chex_status chex_fail_stopped(struct chex_error *err);

/* What an errno says, as strerror() has it; in plainer words where a user can do something about it. */
const char *chex_errno_text(int error);

/* The status for an errno met while reading (READ, MISSING, MEMORY) or writing (WRITE, MEMORY). */
enum chex_status chex_status_of_read_errno(int error);
enum chex_status chex_status_of_write_errno(int error);

/* True for the statuses that speak about one input's data (EMPTY .. NOT_IMAGE): skip that input and go on. */
bool chex_status_is_data(enum chex_status status);

#endif
