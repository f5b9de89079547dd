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
 * A path as one word of a shell: as it is, or in quotes, those of bash where it has control characters; one that begins
 * with a dash gets "./" before it.  It may go on behind it.  Returns out, or text where it is longer than any path.
 */
const char *shell_word(const char *text, char out[SHELL_WORD]);

#endif
