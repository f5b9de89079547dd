/*
 * chex-inspect.c - shows data sets and shards, and checks them
 *
 * It loops over the PATHs.  The command line is in inspect/program; each command has its own folder, see
 * inspect/command.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "common/library_exit.h"
#include "common/wrap.h"
#include "inspect/program/program.h"

/* Checks that the command supports this kind of PATH. */
static enum chex_status
check_target(const struct inspect_options *o, const struct target *t, struct chex_error *err)
{
    if (o->sha256 && t->kind == TARGET_FILE)
        return error_set(err, CHEX_ERR_MISSING, "'%s' is in no manifest: there is no SHA-256 to compare with", t->path);
    if (o->action == INSPECT_DESCRIBE || o->action == INSPECT_VERIFY)
        return CHEX_OK;
    if (t->kind == TARGET_UNFINISHED)
        return error_set(err, CHEX_ERR_TRUNCATED, "'%s': %s", t->path, t->unfinished);
    if (t->kind == TARGET_CHECKPOINT)
        return error_set(err, CHEX_ERR_USAGE, "'%s' is a checkpoint: it can be described and compared", t->path);
    if (t->kind == TARGET_FILE)
        return error_set(err, CHEX_ERR_MISSING, "'%s' is in no manifest: it can only be checked", t->path);
    if (t->kind == TARGET_SHARD && (o->action == INSPECT_SPLIT || o->action == INSPECT_REPORT))
        return error_set(err, CHEX_ERR_USAGE, "'%s' takes the folder of a data set, not one shard",
                         o->action == INSPECT_SPLIT ? "check --leaks" : "report");
    return CHEX_OK;
}

static int
inspect_path(struct inspect *in, const struct inspect_command *command, const char *path)
{
    const struct inspect_options *o = in->options;
    struct target t;
    struct chex_error err;
    int code;
    enum chex_status status = target_open(path, &t, &err);

    if (status == CHEX_OK)
        status = check_target(o, &t, &err);
    if (status == CHEX_OK)
        status = target_select(&t, o->split, &err);
    if (status != CHEX_OK) {
        code = inspect_fail(in, path, &err);
        if (t.next && !in->common->json && !in->common->quiet)
            wrap_line(stderr, "next", "%s", t.next);
    } else {
        /* a blank line between the results of several PATHs */
        if (in->have_result && !in->common->json && !in->common->quiet && o->action != INSPECT_LIST)
            printf("\n");
        code = command->each(in, &t);
        in->have_result |= !in->common->json;
    }
    target_close(&t);
    return code;
}

static int
inspect(struct inspect_options *o, const struct cli_common *common)
{
    struct inspect in = {.program = &inspect_program, .options = o, .common = common};
    const struct inspect_command *command;
    struct chex_error err;
    int code = EXIT_GOOD;
    size_t i;

    if (inspect_command_choose(o, common, &command, &err) != CHEX_OK)
        return cli_error(&inspect_program, common, &err);
    progress_line_init(&in.line, common);
    in.color = color_for(common, stdout);
    if (common->json)
        inspect_json_begin(&in);
    if (command->all && (!command->each || command->once(o)))
        code = command->all(&in);
    else
        for (i = 0; i < o->path_count; i++)
            code = inspect_worse(code, inspect_path(&in, command, o->path[i]));
    if (common->json)
        code = inspect_json_end(&in, code);
    else if (in.output_failed)
        code = EXIT_OUTPUT;
    progress_line_release(&in.line);
    return code;
}

int
main(int argc, char **argv)
{
    struct inspect_options options = inspect_options_default();
    struct cli_common common;
    int code;

    library_exit_catch();
    code = cli_parse(&inspect_program, argc, argv, &options, &common);
    if (code == CLI_GO_ON) {
        common.json |= options.format == TABLE_JSON;
        code = cli_finish(&inspect_program, &common, inspect(&options, &common));
    }
    inspect_options_release(&options);
    library_exit_release();
    return code;
}
