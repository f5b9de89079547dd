/*
 * shell_word.h - commands that a user can copy from a message
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_SHELL_WORD_H
#define CHEX_TOOLS_SHELL_WORD_H

#include <limits.h>

/* Room for any path. */
#define SHELL_WORD (4 * PATH_MAX + 6)

/*
 * A path as one word of a shell: plain, or in quotes, those of bash where it has control characters; a path that begins
 * with a dash gets "./" before it.  More of the path may follow.  Returns out, or text where that needs no quotes or is
 * longer than any path.
 */
const char *shell_word(const char *text, char out[SHELL_WORD]);

/*
 * The path relative to the current folder if it is absolute and inside that folder, else path itself: messages are
 * short then.  A part of path, or ".".
 */
const char *relative_path(const char *path);

#endif
