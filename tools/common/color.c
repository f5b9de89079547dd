/*
 * color.c - see color.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "common/color.h"

#include "common/cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool
color_terminal_is_dumb(void)
{
    const char *term = getenv("TERM");

    return !term || !term[0] || strcmp(term, "dumb") == 0;
}

struct color
color_for(const struct cli_common *common, FILE *stream)
{
    const char *no_color = getenv("NO_COLOR");
    bool on = common->color == CLI_ALWAYS;

    /* https://no-color.org: NO_COLOR turns colours off if it is set and not empty. */
    if (common->color == CLI_AUTO)
        on = isatty(fileno(stream)) && !color_terminal_is_dumb() && !(no_color && no_color[0]);
    if (on)
        return (struct color){"\033[1m", "\033[2m", "\033[31m", "\033[33m", "\033[32m", "\033[0m"};
    return (struct color){"", "", "", "", "", ""};
}
