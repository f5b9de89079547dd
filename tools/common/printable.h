/*
 * printable.h - messages without control characters and invisible ones
 *
 * Names of files and folders come with a download, and a terminal obeys what is in them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_PRINTABLE_H
#define CHEX_TOOLS_PRINTABLE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* One character of a text. */
struct printable_character {
    unsigned bytes; /* 1 where it is no UTF-8 */
    bool is_utf8;
    uint32_t code; /* or that byte */
    bool hidden;   /* no terminal should be given it */
};

/*
 * Look at the character that begins at p, which is not the end.  Hidden are C0 and C1 control characters, the latter
 * also as bytes that are no UTF-8, and invisible characters that change the rest: marks of the writing direction
 * (Trojan Source, CVE-2021-42574), of zero width or joining, variation selectors, tags, separators of lines.
 */
struct printable_character printable_look(const char *p);

/* Room for any path. */
#define PRINTABLE_TEXT (4 * PATH_MAX + 1)

/*
 * A text such as a path, each hidden character as \xNN, above U+007F as \uNNNN or \UNNNNNNNN; cut where it does not
 * fit.  Returns out.
 */
char *printable_text(const char *text, char out[PRINTABLE_TEXT]);

#define PRINTABLE_MESSAGE 12288 /* bytes, more than any message has; the rest of a longer one is left out */

/* A text and a newline, hidden characters escaped, between the escape sequences color and off; both may be empty. */
void printable_put(FILE *out, const char *color, const char *off, const char *text);
/* The same without colour, as fprintf() makes the text. */
void printable_line(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
