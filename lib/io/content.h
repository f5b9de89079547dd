/*
 * content.h - guesses the real format of a file that has the wrong content
 *
 * The text usually tells the user how to solve the problem: a download failed, an archive must be unpacked, a sheet
 * must be saved as CSV.  data has the first bytes of the file, at least one.  More than CONTENT_LOOK bytes do not help.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_CONTENT_H
#define CHEX_LIB_CONTENT_H

#include <stddef.h>
#include <stdint.h>

#define CONTENT_LOOK 1024

/* Returns a text such as "looks like HTML: the download failed" or "looks like text or CSV"; NULL: unknown.  Static. */
const char *content_look(const uint8_t *data, size_t size);

/* Like content_look(), for a file that should be plain text: returns NULL also for plain text. */
const char *content_look_for_text(const uint8_t *data, size_t size);

#endif
