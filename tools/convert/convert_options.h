/*
 * convert_options.h - the command line of chex-convert
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_CONVERT_OPTIONS_H
#define CHEX_TOOLS_CONVERT_OPTIONS_H

#include "common/cli.h"
#include "convert/convert.h"

struct convert_cli {
    struct convert_options convert;
    const char **inputs; /* what convert.inputs points to; owned */
    size_t input_capacity;
    bool size_given;
    bool dry_run;
};

extern const struct cli_program convert_program;

/* The defaults; free with convert_cli_release(). */
struct convert_cli convert_cli_default(void);
void convert_cli_release(struct convert_cli *cli);

/* After parsing: what must be there, and what goes together.  CHEX_ERR_USAGE. */
enum chex_status convert_cli_check(struct convert_cli *cli, struct chex_error *err);

/* If an input is missing, add to the error's text what was probably meant. */
void convert_cli_suggest(const struct convert_cli *cli, struct chex_error *err);

#endif
