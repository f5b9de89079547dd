/*
 * color.h - the colours of all tools
 *
 * Errors, rejects and faults are red, warnings yellow, on stderr and stdout, each as --color says for it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_COLOR_H
#define CHEX_TOOLS_COLOR_H

#include <stdbool.h>
#include <stdio.h>

struct cli_common;

/* Escape sequences, or empty strings where there is to be no colour. */
struct color {
    const char *bold, *dim, *red, *yellow, *green, *off;
};

/* For what is written to this stream: --color, and with auto whether it is a terminal, NO_COLOR, TERM=dumb. */
struct color color_for(const struct cli_common *common, FILE *stream);

/* TERM says that the terminal knows no escape sequences, or nothing. */
bool color_terminal_is_dumb(void);

#endif
