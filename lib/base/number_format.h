/*
 * number_format.h - formats numbers for people
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_NUMBER_FORMAT_H
#define CHEX_LIB_NUMBER_FORMAT_H

#include <stdint.h>

/* Format "112,120".  Returns out. */
#define FORMAT_TEXT 40
char *format_count(uint64_t n, char out[FORMAT_TEXT]);
/* The same as an expression; the text is valid until the end of the block. */
#define COUNT_TEXT(n) format_count((uint64_t)(n), (char[FORMAT_TEXT]){0})
/* Format "1 image", "2,113 images".  The noun must have a regular plural.  Returns out. */
#define FORMAT_THINGS 64
char *format_things(uint64_t n, const char *noun, char out[FORMAT_THINGS]);
/* Format "7.4 GB" (powers of 1000). */
char *format_bytes(uint64_t n, char out[FORMAT_TEXT]);
/*
 * Format n for a text that also contains `other`.  If both would look the same although they differ, write "4,412,032
 * bytes".
 */
char *format_bytes_compared(uint64_t n, uint64_t other, char out[FORMAT_TEXT]);
/* Format "0:08", "12:34", "1:02:03". */
char *format_seconds(double seconds, char out[FORMAT_TEXT]);

#endif
