/*
 * completion.h - the completion of a tool's command line for bash, zsh and fish, made of its option table
 *
 * The table says which values an option takes: its choices, or its words (struct cli_words), or the kind that the name
 * of its argument in --help tells: a FILE or PATH is a file, a DIR a folder; the user types any other.  Operands are
 * files.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_COMPLETION_H
#define CHEX_TOOLS_COMPLETION_H

#include "common/cli.h"

/* Print the script for this shell ("bash", "zsh", "fish") to stdout. */
void completion_print(const struct cli_program *program, const struct cli_option *const *options, size_t count,
                      const char *shell);

#endif
