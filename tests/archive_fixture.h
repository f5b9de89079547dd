/*
 * archive_fixture.h - tars and gzip for the tests, made without libarchive
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_ARCHIVE_FIXTURE_H
#define CHEX_TESTS_ARCHIVE_FIXTURE_H

#include "base/memory.h"

/* Append a member in the form of POSIX 1003.1-1990, ustar; type '0': a file. */
void archive_add_bytes(struct buffer *b, const char *name, char type, const void *data, size_t length);
void archive_add(struct buffer *b, const char *name, char type, const char *text);

/* Append a gzip member. */
void archive_gzip(const void *data, size_t size, struct buffer *out);

#endif
