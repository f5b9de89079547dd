/*
 * shell_word.h - quotes and shortens paths, so that a user can copy commands from a message
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_SHELL_WORD_H
#define CHEX_TOOLS_SHELL_WORD_H

#include <limits.h>

/* Bytes that hold any path in escaped form. */
#define SHELL_WORD (4 * PATH_MAX + 6)

/*
 * Convert a path to one word of a shell.  Adds quotes if needed, those of bash ($'') if the path has control
 * characters.  Adds "./" if the path begins with a dash.  The caller may append to the path.  Returns out, or text if
 * it needs no quotes or is longer than any path.
 */
const char *shell_word(const char *text, char out[SHELL_WORD]);

/*
 * Shorten a path for messages.  An absolute path inside the current folder becomes relative to it.  Returns a pointer
 * into path, or ".".
 */
const char *relative_path(const char *path);

#endif
