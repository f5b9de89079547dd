/*
 * plain.h - messages without control characters
 *
 * Names of files and folders come with a download, and a terminal obeys what is in them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_PLAIN_H
#define CHEX_TOOLS_PLAIN_H

#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

/*
 * Is this byte of a text a C0 or C1 control character, or begins one?  The latter are two bytes of UTF-8, or one that is
 * no UTF-8 at all.  *inside, at first 0: so many bytes of a character are still to come.
 */
bool plain_is_control(const char *p, unsigned *inside);

/* Room for any path. */
#define PLAIN_TEXT (4 * PATH_MAX + 1)

/* A text, as a path, in which each control character stands as \xNN; cut where it does not fit.  Returns out. */
char *plain_text(const char *text, char out[PLAIN_TEXT]);

/* A line as vfprintf() makes it, and a newline, without control characters too. */
void plain_vline(FILE *out, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
/* In a colour, and out of it again, both as the terminal wants it; empty: in none. */
void plain_vline_in(FILE *out, const char *color, const char *off, const char *format, va_list args)
    __attribute__((format(printf, 4, 0)));
void plain_line(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
