/*
 * printable.h - escapes control characters and invisible characters in messages
 *
 * A download may contain any file name, and a terminal executes the control characters in a name.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_PRINTABLE_H
#define CHEX_TOOLS_PRINTABLE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* A decoded character of a text. */
struct printable_character {
    unsigned bytes; /* 1 if it is not UTF-8 */
    bool is_utf8;
    uint32_t code; /* code point, or the byte that is not UTF-8 */
    bool hidden;   /* the caller must escape it for a terminal */
};

/*
 * Decode the character at p; p must not point to the terminator.  Control characters are hidden: C0 and C1, the latter
 * also as single bytes that are not UTF-8.  So are invisible characters that change the text around them: direction
 * marks (Trojan Source, CVE-2021-42574), zero-width characters and joiners, variation selectors, tags, line separators.
 */
struct printable_character printable_look(const char *p);

/* Bytes that hold any path in escaped form. */
#define PRINTABLE_TEXT (4 * PATH_MAX + 1)

/*
 * Copy a text such as a path and write each hidden character as \xNN, above U+007F as \uNNNN or \UNNNNNNNN.  Truncates
 * a text that does not fit.  Returns out.
 */
char *printable_text(const char *text, char out[PRINTABLE_TEXT]);

#define PRINTABLE_MESSAGE 12288 /* bytes; longer than any message of ours, truncates the rest */

/* Print a text with hidden characters escaped, then a newline.  color and off enclose it; both may be empty. */
void printable_put(FILE *out, const char *color, const char *off, const char *text);
/* Format a text like fprintf() and print it in the same way without colour. */
void printable_line(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
