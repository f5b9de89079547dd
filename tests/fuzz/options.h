/*
 * options.h - command lines for options.c; each function parses one and requires what must hold for the result
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

/*
 * Requires a usage error, for options that do not fit together.  Its text may show an argument unescaped, since the
 * user wrote it.
 */
void options_require_error(enum chex_status status, const struct chex_error *err);

#endif
