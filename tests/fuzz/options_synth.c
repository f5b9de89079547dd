/* options_synth.c - chex-synth's option table for options.c: the tool's main file without its main() */
/* SPDX-License-Identifier: Apache-2.0 */
#define main synth_main
int synth_main(int argc, char **argv);
#include "../../tools/chex-synth.c"

#include "options.h"

int
options_synth(int argc, char **argv, struct cli_common *common)
{
    struct options options = {.size = 1024, .seed = 1};
    int code = cli_parse(&program, argc, argv, &options, common);

    if (code == CLI_GO_ON)
        FUZZ_REQUIRE(options.images <= PEOPLE_MAX_STUDIES && options.size >= 64 && options.size <= 4096 &&
                     options.odd <= 100 && options.seed <= INT64_MAX && (!options.output || options.output[0]));
    findings_release(&options.labels.findings);
    return code;
}
