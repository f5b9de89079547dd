/*
 * plain.h - messages without control characters
 *
 * Names of files and folders come with a download, and a terminal obeys what is in them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_PLAIN_H
#define CHEX_TOOLS_PLAIN_H

#include <stdarg.h>
#include <stdio.h>

/* A line as vfprintf() makes it, and a newline; each control character in it stands there as \xNN. */
void plain_vline(FILE *out, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
void plain_line(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
