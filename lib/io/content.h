/*
 * content.h - what a file is instead, in words, when it is not what its place demands
 *
 * The answer is mostly the way to repair it: a download that failed, an archive to unpack, a sheet to save as CSV.
 * data holds the first bytes of the file, at least one; more than CONTENT_LOOK of them say no more.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_CONTENT_H
#define CHEX_LIB_CONTENT_H

#include <stddef.h>
#include <stdint.h>

#define CONTENT_LOOK 1024

/* "looks like HTML: the download failed", "looks like text or CSV"; NULL: unknown.  Statically allocated. */
const char *content_look(const uint8_t *data, size_t size);

/* The same for a file that must be plain text: NULL also for plain text. */
const char *content_look_for_text(const uint8_t *data, size_t size);

#endif
