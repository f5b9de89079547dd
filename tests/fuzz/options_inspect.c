/*
 * options_inspect.c - chex-inspect's option table for options.c
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "options.h"

#include "inspect/program/program.h"

int
options_inspect(int argc, char **argv, struct cli_common *common)
{
    struct inspect_options options = inspect_options_default();
    const struct inspect_command *command;
    struct chex_error err = {0};
    int code = cli_parse(&inspect_program, argc, argv, &options, common);

    if (code == CLI_GO_ON) {
        FUZZ_REQUIRE(options.depth != VERIFY_SAMPLE || (options.sample_percent > 0 && options.sample_percent <= 100));
        options_require_error(inspect_command_choose(&options, common, &command, &err), &err);
        FUZZ_REQUIRE(!common->command == (options.action == INSPECT_DESCRIBE));
    }
    inspect_options_release(&options);
    return code;
}
