/*
 * color.h - selects the colours of the output of all tools
 *
 * Errors, rejects and faults are red, warnings are yellow.  --color decides for stdout and stderr separately.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_COLOR_H
#define CHEX_TOOLS_COLOR_H

#include <stdbool.h>
#include <stdio.h>

struct cli_common;

/* Escape sequences, or empty strings if colours are off. */
struct color {
    const char *bold, *dim, *red, *yellow, *green, *off;
};

/* Returns the colours for a stream.  With --color auto they depend on isatty(), NO_COLOR and TERM. */
struct color color_for(const struct cli_common *common, FILE *stream);

/* Returns whether TERM is unset, empty or "dumb", so the terminal may not support escape sequences. */
bool color_terminal_is_dumb(void);

#endif
