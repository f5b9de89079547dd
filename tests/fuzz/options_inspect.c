/* options_inspect.c - chex-inspect's option table for options.c: the tool's main file as it is, but for its main() */
/* SPDX-License-Identifier: Apache-2.0 */
#define main inspect_main
int inspect_main(int argc, char **argv);
#include "../../tools/chex-inspect.c"

#include "options.h"

int
options_inspect(int argc, char **argv, struct cli_common *common)
{
    struct inspect_options options = {.depth = VERIFY_QUICK};
    struct chex_error err = {0};
    int code = cli_parse(&program, argc, argv, &options, common);

    if (code == CLI_GO_ON) {
        FUZZ_REQUIRE(options.depth != VERIFY_SAMPLE || (options.sample_percent > 0 && options.sample_percent <= 100));
        FUZZ_REQUIRE(options.action_given || options.action == INSPECT_DESCRIBE);
        options_require_error(check_options(&options, common, &err), &err);
    }
    free(options.path);
    return code;
}
