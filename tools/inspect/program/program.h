/*
 * program.h - the command line of chex-inspect: all commands with their tables
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_PROGRAM_H
#define CHEX_TOOLS_INSPECT_PROGRAM_H

#include "inspect/command.h"

extern const struct cli_program inspect_program;

/* Free with inspect_options_release(). */
struct inspect_options inspect_options_default(void);
void inspect_options_release(struct inspect_options *o);

/*
 * After parsing: find the command, or the overview without one; check its operands and which options go together.
 * Sets o->action and o->which.  CHEX_ERR_USAGE.
 */
enum chex_status inspect_command_choose(struct inspect_options *o, const struct cli_common *common,
                                        const struct inspect_command **out, struct chex_error *err);

#endif
