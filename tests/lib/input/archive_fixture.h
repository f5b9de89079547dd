/*
 * archive_fixture.h - makes tars and gzip files for the tests, without libarchive
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_ARCHIVE_FIXTURE_H
#define CHEX_TESTS_ARCHIVE_FIXTURE_H

#include "base/memory.h"

/* Appends a member in the ustar form of POSIX 1003.1-1990; type '0' is a file. */
void archive_add_bytes(struct buffer *b, const char *name, char type, const void *data, size_t length);
void archive_add(struct buffer *b, const char *name, char type, const char *text);

/* Appends a gzip member. */
void archive_gzip(const void *data, size_t size, struct buffer *out);

#endif
