/*
 * completion.h - generates shell completion for bash, zsh and fish from the option table of a tool
 *
 * The completion of an option's value offers its choices or its words (struct cli_words).  Without either, it offers
 * files if --help calls the argument FILE or PATH, folders if DIR, and nothing otherwise.  Operands are files.
 *
 * The first operand may also be a command, shown with its summary.  After it the completion offers its options.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_COMPLETION_H
#define CHEX_TOOLS_COMPLETION_H

#include "common/cli.h"

/* Print the script for this shell ("bash", "zsh", "fish") to stdout. */
void completion_print(const struct cli_program *program, const char *shell);

#endif
