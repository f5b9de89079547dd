/*
 * options.c - parses the command line of chex-inspect; see program.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/program/program.h"

#include "base/ascii.h"
#include "inspect/check/check.h"
#include "inspect/sheet/sheet.h"
#include "labels/columns_file.h"
#include "log/rank_times.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TITLE_MAX 200

/* ---- values ------------------------------------------------------------------------------------------------------ */

static enum chex_status
set_depth(struct inspect_options *o, enum inspect_action action, enum verify_depth depth, struct chex_error *err)
{
    if (o->depth_given)
        return error_set(err, CHEX_ERR_USAGE, "only one of --quick, --sample, --full and --leaks or --near");
    o->depth_given = true;
    o->action = action;
    o->depth = depth;
    return CHEX_OK;
}

static enum chex_status
take_number(const char *text, unsigned min, unsigned max, unsigned *out, struct chex_error *err)
{
    uint64_t number = 0;
    enum chex_status status = cli_number(text, min, max, &number, err);

    *out = (unsigned)number;
    return status;
}

/* The letters of a sheet are printable ASCII. */
static enum chex_status
take_title(const char *text, const char **out, struct chex_error *err)
{
    size_t length = strlen(text), i;

    for (i = 0; i < length && text[i] >= ' ' && text[i] <= '~'; i++)
        ;
    if (length > TITLE_MAX || i < length)
        return error_set(err, CHEX_ERR_USAGE, "takes up to %d printable ASCII characters", TITLE_MAX);
    *out = text;
    return CHEX_OK;
}

static enum chex_status
add_text(const char ***list, size_t *count, size_t *capacity, const char *text, struct chex_error *err)
{
    const char **grown = array_grow(*list, capacity, *count, sizeof(*grown));

    if (!grown)
        return error_memory(err);
    *list = grown;
    grown[(*count)++] = text;
    return CHEX_OK;
}

static enum chex_status
apply(void *context, const struct cli_option *option, const char *value, struct chex_error *err)
{
    struct inspect_options *o = context;

    if (!option)
        return add_text(&o->path, &o->path_count, &o->path_capacity, value, err);
    switch (option->id) {
    case ID_QUICK:
        return set_depth(o, INSPECT_VERIFY, VERIFY_QUICK, err);
    case ID_FULL:
        return set_depth(o, INSPECT_VERIFY, VERIFY_FULL, err);
    case ID_LEAKS:
    case ID_NEAR: /* both may be given */
        o->near |= option->id == ID_NEAR;
        return o->action == INSPECT_SPLIT ? CHEX_OK : set_depth(o, INSPECT_SPLIT, VERIFY_QUICK, err);
    case ID_SAMPLE:
        if (cli_percent(value, &o->sample_percent, err) != CHEX_OK)
            return CHEX_ERR_USAGE;
        return set_depth(o, INSPECT_VERIFY, VERIFY_SAMPLE, err);
    case ID_INPUT:
        return add_text(&o->input, &o->input_count, &o->input_capacity, value, err);
    case ID_LABEL_FILE:
        o->labels = value;
        return CHEX_OK;
    case ID_LABEL_KIND:
        o->label_kind = label_kind_named(value);
        return CHEX_OK;
    case ID_LABEL_COLUMNS:
        columns_file_free(o->label_columns);
        return columns_file_read(value, &o->label_columns, err);
    case ID_MAX_MEMORY:
        return cli_count(value, 1 << 20, UINT64_C(1) << 40, &o->max_memory, err);
    case ID_FIELDS:
        o->fields = value;
        return inspect_fields_known(value, err) ? CHEX_OK : CHEX_ERR_USAGE;
    case ID_WHERE:
        return where_add(&o->where, value, err);
    case ID_FIRST:
        return take_number(value, 1, SHEET_MAX_IMAGES, &o->first, err);
    case ID_RANDOM:
        return take_number(value, 1, SHEET_MAX_IMAGES, &o->random, err);
    case ID_COLUMNS:
        return take_number(value, 1, SHEET_MAX_COLUMNS, &o->columns, err);
    case ID_TITLE:
        return take_title(value, &o->title, err);
    case ID_PREDICT:
        return take_number(value, 1, RANK_TIMES_MAX, &o->predict, err);
    case ID_NODE:
        return take_number(value, 1, 1024, &o->node, err);
    case ID_NETWORK:
        o->network = name_index(option->choices, value);
        return CHEX_OK;
    case ID_SEED:
        o->seed_given = true;
        return cli_number(value, 0, UINT64_MAX, &o->seed, err);
    default:
        return error_set(err, CHEX_ERR_BUG, "option not handled");
    }
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static const struct cli_command *const commands[] = {
    &inspect_list_command.cli,
    &inspect_labels_command.cli,
    &inspect_check_command.cli,
    &inspect_sheet_command.cli,
    &inspect_show_command.cli,
    &inspect_extract_command.cli,
    &inspect_report_command.cli,
    &inspect_diff_command.cli,
    &inspect_scaling_command.cli,
    &inspect_source_command.cli,
    NULL,
};

/* The options of 0.1.0 that were actions. */
static const struct cli_retired retired[] = {
    {"quick", false, "check", "--quick"},   {"sample", true, "check", "--sample"},
    {"full", false, "check", "--full"},     {"check-split", false, "check", "--leaks"},
    {"list", false, "list", NULL},          {"labels", false, "labels", NULL},
    {"extract", true, "extract", NULL},     {"show", true, "show", NULL},
    {"sheet", true, "sheet", "-o"},         {"report", true, "report", "-o"},
    {"diff", false, "diff", NULL},          {"source", false, "source", NULL},
    {"label-file", true, NULL, "--labels"}, {NULL, false, NULL, NULL},
};

static const struct cli_words words[] = {
    {"fields", true,
     CLI_NAMES("slot", "split", "shard", "index", "name", "patient", "labels", "weight", "age", "sex", "view",
               "sha256")},
    {"reference", false, CLI_NAMES("dell", "rwth")},
    {"split", false, CLI_NAMES("train", "val", "test", "all")},
    {"where", true,
     CLI_NAMES("Atelectasis", "Cardiomegaly", "Effusion", "Infiltration", "Mass", "Nodule", "Pneumonia", "Pneumothorax",
               "Consolidation", "Edema", "Emphysema", "Fibrosis", "Pleural_Thickening", "Hernia", "No_Finding",
               "view=PA", "view=AP", "sex=F", "sex=M", "age=", "patient=", "name=", "split=")},
    {NULL, false, NULL},
};

static const struct cli_alias aliases[] = {
    {"check-split", "leaks"},
    {"label-file", "labels"},
    {NULL, NULL},
};

static const struct cli_option no_options[] = {ROW_END};

const struct cli_program inspect_program = {
    .name = "chex-inspect",
    .summary = "look at data sets, shards, checkpoints and downloads",
    .usage = "[COMMAND] [OPTION]... PATH...",
    .examples = "chex-inspect shards                     # what it is, and a quick check\n"
                "chex-inspect check --full shards        # every byte\n"
                "chex-inspect list --fields name,labels,age shards > list.tsv\n"
                "chex-inspect sheet -o hernia.png --where Hernia --random 24 shards\n"
                "chex-inspect diff runs/a runs/b         # the newest checkpoints of two runs\n"
                "chex-inspect scaling -o scaling.svg runs/1 runs/2  # speed-up and efficiency\n"
                "chex-inspect source -l Data_Entry_2017_v2020.csv -i images_*.tar.gz\n"
                "chex-inspect help list                  # the options of a command",
    .notes = "A PATH is the folder of a data set or one of its shards, a checkpoint, or the\n"
             "folder of a run (for its newest checkpoint).  A TFRecord file without a\n"
             "manifest is checked by itself.  Without a COMMAND, each PATH is described and\n"
             "checked as by check --quick.  If a file has the name of a command: ./list",
    .options = no_options,
    .commands = commands,
    .retired = retired,
    .words = words,
    .aliases = aliases,
    .threads = true,
    .progress = true,
    .apply = apply,
};

/* ---- all together ------------------------------------------------------------------------------------------------ */

struct inspect_options
inspect_options_default(void)
{
    return (struct inspect_options){.depth = VERIFY_QUICK, .network = -1};
}

void
inspect_options_release(struct inspect_options *o)
{
    free(o->path);
    free(o->input);
    columns_file_free(o->label_columns);
}

/* The overview of each PATH. */
static const struct inspect_command no_command = {
    .action = INSPECT_DESCRIBE,
    .min = 1,
    .max = UINT_MAX,
    .each = inspect_verify,
};

static enum chex_status
check_operands(const struct inspect_command *c, const struct inspect_options *o, struct chex_error *err)
{
    if (o->path_count >= c->min && o->path_count <= c->max)
        return CHEX_OK;
    if (c->operands)
        return error_set(err, CHEX_ERR_USAGE, "'%s' takes %s", c->cli.name, c->operands);
    if (c->cli.name && access(c->cli.name, F_OK) == 0)
        return error_set(err, CHEX_ERR_USAGE,
                         "no PATH: give a data set, a shard or a checkpoint; the file '%s' is ./%s", c->cli.name,
                         c->cli.name);
    return error_set(err, CHEX_ERR_USAGE, "no PATH: give a data set, a shard or a checkpoint");
}

enum chex_status
inspect_command_choose(struct inspect_options *o, const struct cli_common *common, const struct inspect_command **out,
                       struct chex_error *err)
{
    const struct inspect_command *c = common->command ? (const struct inspect_command *)(const void *)common->command
                                                      : &no_command;

    *out = c;
    if (!o->depth_given)
        o->action = o->trained_on ? INSPECT_TRAINED : c->action;
    if (check_operands(c, o, err) != CHEX_OK || (c->check && c->check(o, common, err) != CHEX_OK))
        return CHEX_ERR_USAGE;
    if (o->action == INSPECT_SHOW || o->action == INSPECT_EXTRACT)
        o->which = o->path[--o->path_count];
    return CHEX_OK;
}
