/*
 * options.c - fuzz target: the command lines of the three tools
 *
 * The first byte chooses the tool; the rest is its arguments, each ended by a NUL.  The values of an accepted command
 * line are in their ranges, and chex-convert's, written as options again, give the same specification.  A refused
 * command line is explained in the tool's name, with exit code 2.  --help and --version end with 0.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "options.h"

#include "convert/convert_options.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ARGUMENTS 64

/* ---- standard streams ------------------------------------------------------------------------------------------ */

/* What the tool prints goes into memory, because cli_parse() closes stdout after --help. */
struct streams {
    FILE *out, *err, *real_out, *real_err;
    char *out_text, *err_text;
    size_t out_size, err_size;
};

static void
streams_take(struct streams *s)
{
    *s = (struct streams){.real_out = stdout, .real_err = stderr};
    s->out = open_memstream(&s->out_text, &s->out_size);
    s->err = open_memstream(&s->err_text, &s->err_size);
    FUZZ_REQUIRE(s->out && s->err);
    stdout = s->out;
    stderr = s->err;
}

static void
streams_give_back(struct streams *s, bool out_is_closed)
{
    stdout = s->real_out;
    stderr = s->real_err;
    if (!out_is_closed)
        fclose(s->out);
    fclose(s->err);
}

static void
streams_release(struct streams *s)
{
    free(s->out_text);
    free(s->err_text);
}

void
options_require_error(enum chex_status status, const struct chex_error *err)
{
    FUZZ_REQUIRE(status == CHEX_OK || (status == CHEX_ERR_USAGE && err->status == status && err->text[0] != '\0'));
}

/* ---- chex-convert ---------------------------------------------------------------------------------------------- */

static void
require_convert(const struct convert_cli *cli)
{
    const struct spec *s = &cli->convert.spec;

    FUZZ_REQUIRE(s->size >= 1 && s->size <= RECORD_MAX_SIDE && s->shard_size >= 1 && s->shard_size <= 65536);
    FUZZ_REQUIRE(s->align == 64 || s->align == 512 || s->align == 4096);
    FUZZ_REQUIRE(s->resize <= RESAMPLE_NONE && s->tail <= TAIL_DROP && s->seed <= INT64_MAX);
    FUZZ_REQUIRE(s->limits.max_pixels >= 1 && s->limits.max_pixels <= (uint64_t)1 << 32 && s->limits.min_side >= 1);
    FUZZ_REQUIRE(cli->convert.allow_reject_percent <= 100 &&
                 (cli->convert.allow_reject_percent == 0 || cli->convert.allow_rejects == 0));
}

/* Writes the specification as options and parses them again. */
static void
require_convert_again(const struct convert_cli *cli)
{
    const struct spec *s = &cli->convert.spec;
    struct convert_cli again = convert_cli_default();
    struct cli_common common;
    char number[6][40], resize[40], tail[40], split[80], lenient[] = "--lenient", line[2][512];
    char *argv[] = {(char[]){"x"}, number[0], number[1], number[2], number[3], number[4],
                    number[5],     resize,    tail,      split,     lenient,   NULL};
    int argc = s->limits.lenient ? 11 : 10; /* with or without the last argument */

    if (cli->convert.spec.split.kind == SPLIT_FILE) /* the text of such a split does not name the file */
        return;
    snprintf(number[0], sizeof(number[0]), "--size=%" PRIu32, s->size);
    snprintf(number[1], sizeof(number[1]), "--shard-size=%" PRIu32, s->shard_size);
    snprintf(number[2], sizeof(number[2]), "--align=%" PRIu32, s->align);
    snprintf(number[3], sizeof(number[3]), "--seed=%" PRIu64, s->seed);
    snprintf(number[4], sizeof(number[4]), "--max-pixels=%" PRIu64, s->limits.max_pixels);
    snprintf(number[5], sizeof(number[5]), "--min-size=%" PRIu32, s->limits.min_side);
    snprintf(resize, sizeof(resize), "--resize=%s", resample_names[s->resize]);
    snprintf(tail, sizeof(tail), "--tail=%s", tail_names[s->tail]);
    strcpy(split, "--split=");
    split_rule_format(&s->split, split + strlen(split), sizeof(split) - strlen(split));
    optind = 0;
    FUZZ_REQUIRE(cli_parse(&convert_program, argc, argv, &again, &common) == CLI_GO_ON);
    spec_format(s, line[0], sizeof(line[0]));
    spec_format(&again.convert.spec, line[1], sizeof(line[1]));
    FUZZ_REQUIRE(strlen(line[0]) < sizeof(line[0]) - 1 && strcmp(line[0], line[1]) == 0);
    convert_cli_release(&again);
}

static int
options_convert(int argc, char **argv, struct cli_common *common)
{
    struct convert_cli cli = convert_cli_default();
    struct chex_error err = {0};
    int code = cli_parse(&convert_program, argc, argv, &cli, common);

    if (code == CLI_GO_ON) {
        require_convert(&cli);
        options_require_error(convert_cli_check(&cli, &err), &err);
        require_convert_again(&cli);
    }
    convert_cli_release(&cli);
    return code;
}

/* ---- the target ------------------------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    int (*parse)(int argc, char **argv, struct cli_common *common);
} tools[] = {{"chex-convert", options_convert}, {"chex-inspect", options_inspect}, {"chex-synth", options_synth}};

static void
require_outcome(const char *tool, int code, const struct cli_common *common, const struct streams *s)
{
    char end[96], next[64];

    snprintf(end, sizeof(end), "\nTry '%s%s%s --help'.\n", tool, common->command ? " " : "",
             common->command ? common->command->name : "");
    snprintf(next, sizeof(next), "\nnext     %s ", tool); /* the command line that replaces an old one */
    if (code == EXIT_USAGE) {
        const char *tail = common->quiet || strstr(s->err_text, next) ? "\n" : end; /* quiet: one line */

        FUZZ_REQUIRE(s->err_size > strlen(tool) + strlen(tail) && strncmp(s->err_text, tool, strlen(tool)) == 0 &&
                     strcmp(s->err_text + s->err_size - strlen(tail), tail) == 0 && s->out_size == 0);
    } else if (code == EXIT_GOOD) {
        FUZZ_REQUIRE(s->out_size > 0 && s->err_size == 0);
    } else {
        FUZZ_REQUIRE(code == CLI_GO_ON && s->out_size == 0 && s->err_size == 0);
        FUZZ_REQUIRE(common->threads >= 1 && common->threads <= 1024 && common->color <= CLI_NEVER &&
                     common->progress <= PROGRESS_NONE);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *argv[MAX_ARGUMENTS + 2], *text;
    struct streams streams;
    struct cli_common common = {0};
    size_t tool = size > 0 ? data[0] % (sizeof(tools) / sizeof(tools[0])) : 0;
    int argc = 1, code;

    if (size < 1)
        return 0;
    text = malloc(size);
    FUZZ_REQUIRE(text != NULL);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    argv[0] = (char[]){"tool"};
    for (size_t at = 0; at < size - 1 && argc <= MAX_ARGUMENTS; at += strlen(text + at) + 1)
        argv[argc++] = text + at;
    argv[argc] = NULL;
    streams_take(&streams);
    optind = 0; /* restart: GNU */
    code = tools[tool].parse(argc, argv, &common);
    streams_give_back(&streams, code == EXIT_GOOD);
    require_outcome(tools[tool].name, code, &common, &streams);
    streams_release(&streams);
    free(text);
    return 0;
}

/* ---- seeds ----------------------------------------------------------------------------------------------------- */

void
fuzz_seeds(fuzz_seed_fn *give, void *context)
{
#define SEED(name, text)             \
    {                                \
        name, text, sizeof(text) - 1 \
    }
    static const struct {
        const char *name, *text;
        size_t size;
    } seeds[] = {
        SEED("convert", "\0-i\0images\0-i\0more\0-l\0labels.csv\0-o\0out\0"),
        SEED("convert-all", "\0--size=224\0--resize=area\0--split\0patient:70,10,20:5\0--shard-size\0"
                            "128\0--tail=short\0"
                            "--seed=7\0--align=4096\0--index=dali\0--view=PA,AP\0--exclude=x\0--allow-missing\0"),
        SEED("convert-more", "\0--empty-is-no-finding\0--allow-rejects=2%\0--strict\0--lenient\0--max-pixels=16M\0"
                             "--min-size=32\0--verify\0-n\0-f\0--break-lock\0--lists=d\0-j4\0-qv\0"),
        SEED("convert-help", "\0--help\0"),
        SEED("convert-version", "\0--version\0-v\0"),
        SEED("convert-unknown", "\0--sise=3\0"),
        SEED("convert-value", "\0--size\0"),
        SEED("convert-ambiguous", "\0--s=1\0"),
        SEED("convert-no-value", "\0--strict=yes\0"),
        SEED("convert-operand", "\0--\0-i\0"),
        SEED("convert-number", "\0--size=99999999999999999999\0"),
        SEED("inspect", "\1check\0--full\0shards\0more\0--json\0--color=never\0--progress=line\0"),
        SEED("inspect-sample", "\1check\0--sample\0"
                               "0.5%\0x\0"),
        SEED("inspect-list", "\1list\0--fields=name,labels,age\0--split=val\0--padding\0x\0"),
        SEED("inspect-extract", "\1extract\0-o\0x.png\0shards\0"
                                "00000013_004.png\0"),
        SEED("inspect-two", "\1--labels\0--check-split\0x\0"),
        SEED("inspect-old", "\1--source\0--labels\0x.csv\0-i\0y\0--\0-z\0"),
        SEED("inspect-help", "\1help\0sheet\0"),
        SEED("inspect-letters", "\1-V\0-h\0-o\0"),
        SEED("synth", "\2-n\0"
                      "600\0-o\0demo\0--size=64\0--seed=3\0--odd=5%\0"),
        SEED("synth-count", "\2-n1M\0-o\0\0"),
        SEED("synth-odd", "\2--odd=%\0--odd=1000000000\0"),
    };

    for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++)
        give(seeds[i].name, seeds[i].text, seeds[i].size, context);
}
