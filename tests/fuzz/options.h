/*
 * options.h - the command lines that options.c asks; each parses, and requires what must hold of the result
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_FUZZ_OPTIONS_H
#define CHEX_TESTS_FUZZ_OPTIONS_H

#include "fuzz.h"

#include "common/cli.h"

/* As cli_parse(). */
int options_inspect(int argc, char **argv, struct cli_common *common);
int options_synth(int argc, char **argv, struct cli_common *common);

/* What does not go together is a usage error; its text may show an argument unescaped, since it is the user's own. */
void options_require_error(enum chex_status status, const struct chex_error *err);

#endif
