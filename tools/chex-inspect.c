/*
 * chex-inspect.c - look at data sets and shards, and check them
 *
 * Options and the loop over the PATHs; each action has its own file, see inspect.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "ascii.h"
#include "inspect.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- command line ---------------------------------------------------------------------------------------------- */

enum {
    ID_QUICK = 1,
    ID_FULL,
    ID_SAMPLE,
    ID_LIST,
    ID_EXTRACT,
    ID_LABELS,
    ID_CHECK_SPLIT,
    ID_REPORT,
    ID_DIFF,
    ID_SOURCE,
    ID_INPUT,
    ID_LABEL_FILE,
    ID_FORMAT,
    ID_FIELDS,
    ID_SPLIT,
    ID_FILLING,
    ID_OUTPUT
};

static const struct cli_option options_table[] = {
    {ID_QUICK, 0, "quick", NULL, NULL, "Check against the manifest", "every shard is there and has its size"},
    {ID_SAMPLE, 0, "sample", "P%", NULL, NULL, "besides, P per cent of the records, always the same ones"},
    {ID_FULL, 0, "full", NULL, NULL, NULL,
     "everything: framing, checksums, form and place of every\nrecord, counts, SHA-256 of every shard"},
    {ID_LIST, 0, "list", NULL, NULL, "Look", "a line for each image, fields separated by tabs"},
    {ID_EXTRACT, 0, "extract", "WHICH", NULL, NULL, "one image, by NAME or SHARD:INDEX, to -o"},
    {ID_LABELS, 0, "labels", NULL, NULL, NULL, "prevalence of the findings by split, and which come\ntogether"},
    {ID_CHECK_SPLIT, 0, "check-split", NULL, NULL, NULL, "patients and images in two splits, drift of prevalence"},
    {ID_REPORT, 0, "report", "FILE.html", NULL, NULL,
     "all of it on one page with plots and pictures, - for\nstandard output"},
    {ID_DIFF, 0, "diff", NULL, NULL, NULL,
     "two data sets, A B: images, splits, findings, pixels; exit\nstatus 1 where they differ"},
    {ID_SOURCE, 0, "source", NULL, NULL, NULL,
     "a download before any conversion (-i, -l): what is\nmissing, cut, or no image"},
    {ID_FIELDS, 0, "fields", "LIST", NULL, "For these",
     "of --list: slot, split, shard, index, name, patient,\nlabels, weight, age, sex, view, sha256 (of the pixels);\n"
     "default: slot,name,patient,labels"},
    {ID_SPLIT, 0, "split", "NAME", NULL, NULL, "--list, --labels: this split only"},
    {ID_FILLING, 0, "filling", NULL, NULL, NULL, "--list: filling records (weight 0) too"},
    {ID_INPUT, 'i', "input", "PATH", NULL, NULL, "of --source: a folder of images, repeatable"},
    {ID_LABEL_FILE, 'l', "label-file", "CSV", NULL, NULL, "of --source: Data_Entry_2017_v2020.csv"},
    {ID_FORMAT, 0, "format", "HOW", "table|csv|json|jsonl", NULL,
     "table (default), csv (RFC 4180), json (as --json), jsonl:\nof --list, --labels, --check-split, --diff, --source"},
    {ID_OUTPUT, 'o', "output", "FILE", NULL, NULL, "of --extract: FILE.png, FILE.pgm, or - for PNG on stdout"},
    {0, 0, NULL, NULL, NULL, NULL, NULL},
};

static enum chex_status
set_action(struct inspect_options *o, enum inspect_action action, struct chex_error *err)
{
    /* chex-convert calls its label file --labels. */
    if (o->action_given && (o->action == INSPECT_SOURCE || action == INSPECT_SOURCE) &&
        (o->action == INSPECT_LABELS || action == INSPECT_LABELS))
        return chex_fail(err, CHEX_ERR_USAGE, "only one action at a time; the label file of --source is -l CSV");
    if (o->action_given)
        return chex_fail(err, CHEX_ERR_USAGE, "only one action at a time");
    o->action = action;
    o->action_given = true;
    return CHEX_OK;
}

static enum chex_status
set_depth(struct inspect_options *o, enum verify_depth depth, struct chex_error *err)
{
    o->depth = depth;
    return set_action(o, INSPECT_VERIFY, err);
}

/* "5%", "0.5%", "5": above 0, at most 100.  Without strtod(), which follows the locale. */
static enum chex_status
parse_percent(const char *text, double *out, struct chex_error *err)
{
    const char *p = text;
    double value = 0, unit = 1;

    for (; ascii_is_digit(*p) && value < 1000; p++)
        value = value * 10 + (*p - '0');
    if (*p == '.' && p > text)
        for (p++; ascii_is_digit(*p) && unit > 1e-9; p++)
            value += (*p - '0') * (unit /= 10);
    if (*p == '%')
        p++;
    if (p == text || *p || !(value > 0 && value <= 100))
        return chex_fail(err, CHEX_ERR_USAGE, "takes a percentage above 0 and up to 100, not '%s'", text);
    *out = value;
    return CHEX_OK;
}

static enum chex_status
add_text(const char ***list, size_t *count, size_t *capacity, const char *text, struct chex_error *err)
{
    const char **grown = array_grow(*list, capacity, *count, sizeof(*grown));

    if (!grown)
        return chex_fail_memory(err);
    *list = grown;
    grown[(*count)++] = text;
    return CHEX_OK;
}

/* One of the choices of the table. */
static enum rows_format
parse_format(const char *text)
{
    return text[0] == 't' ? ROWS_TABLE : text[0] == 'c' ? ROWS_CSV : strcmp(text, "json") == 0 ? ROWS_JSON : ROWS_JSONL;
}

static enum chex_status
apply(void *context, const struct cli_option *option, const char *value, struct chex_error *err)
{
    struct inspect_options *o = context;

    if (!option)
        return add_text(&o->path, &o->path_count, &o->path_capacity, value, err);
    switch (option->id) {
    case ID_QUICK:
        return set_depth(o, VERIFY_QUICK, err);
    case ID_FULL:
        return set_depth(o, VERIFY_FULL, err);
    case ID_SAMPLE:
        if (parse_percent(value, &o->sample_percent, err) != CHEX_OK)
            return CHEX_ERR_USAGE;
        return set_depth(o, VERIFY_SAMPLE, err);
    case ID_LIST:
        return set_action(o, INSPECT_LIST, err);
    case ID_EXTRACT:
        o->extract = value;
        return set_action(o, INSPECT_EXTRACT, err);
    case ID_LABELS:
        return set_action(o, INSPECT_LABELS, err);
    case ID_CHECK_SPLIT:
        return set_action(o, INSPECT_SPLIT, err);
    case ID_REPORT:
        o->report = value;
        return set_action(o, INSPECT_REPORT, err);
    case ID_DIFF:
        return set_action(o, INSPECT_DIFF, err);
    case ID_SOURCE:
        return set_action(o, INSPECT_SOURCE, err);
    case ID_INPUT:
        return add_text(&o->input, &o->input_count, &o->input_capacity, value, err);
    case ID_LABEL_FILE:
        o->labels = value;
        break;
    case ID_FORMAT:
        o->format = parse_format(value);
        break;
    case ID_FIELDS:
        o->fields = value;
        return inspect_fields_known(value, err) ? CHEX_OK : CHEX_ERR_USAGE;
    case ID_SPLIT:
        o->split = value;
        break;
    case ID_FILLING:
        o->filling = true;
        break;
    case ID_OUTPUT:
        o->output = value;
        break;
    default:
        return chex_fail(err, CHEX_ERR_BUG, "option not handled");
    }
    return CHEX_OK;
}

static const struct cli_program program = {
    .name = "chex-inspect",
    .summary = "look at data sets and shards, and check them",
    .usage = "[--quick | --sample P% | --full] PATH...\n"
             "--list [--fields LIST] [--split NAME] PATH...\n"
             "--extract NAME|SHARD:INDEX -o FILE.png PATH\n"
             "--labels | --check-split PATH...\n"
             "--report FILE.html PATH\n"
             "--diff A B\n"
             "--source -i PATH... -l CSV",
    .examples = "chex-inspect shards                    # what it is, and a quick check\n"
                "chex-inspect --full shards             # every byte\n"
                "chex-inspect --list --fields name,labels,age shards > list.tsv\n"
                "chex-inspect --extract 00000013_004.png -o x.png shards\n"
                "chex-inspect --check-split shards      # is a patient in train and test?",
    .notes = "A PATH is the folder of a data set or one of its shards.  A TFRecord file without\n"
             "a manifest beside it is checked by itself.",
    .options = options_table,
    .threads = true,
    .progress = true,
    .apply = apply,
};

static bool
ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);

    return length > end_length && ascii_same(text + length - end_length, end_length, end, end_length);
}

static enum chex_status
check_format(const struct inspect_options *o, const struct cli_common *common, struct chex_error *err)
{
    bool rows = o->format == ROWS_CSV || o->format == ROWS_JSONL;

    if (rows && common->json)
        return chex_fail(err, CHEX_ERR_USAGE, "--json goes with --format json");
    if (rows && o->action != INSPECT_LIST && o->action != INSPECT_LABELS && o->action != INSPECT_SPLIT &&
        o->action != INSPECT_DIFF && o->action != INSPECT_SOURCE)
        return chex_fail(err, CHEX_ERR_USAGE,
                         "--format csv and jsonl go with --list, --labels, --check-split, --diff and --source");
    if (rows && o->path_count > 1 && o->action != INSPECT_DIFF)
        return chex_fail(err, CHEX_ERR_USAGE, "--format csv and jsonl take one PATH");
    return CHEX_OK;
}

static enum chex_status
check_source(const struct inspect_options *o, struct chex_error *err)
{
    if (o->action != INSPECT_SOURCE)
        return o->input_count > 0 || o->labels
                   ? chex_fail(err, CHEX_ERR_USAGE, "--input and --label-file go with --source")
                   : CHEX_OK;
    if (o->path_count > 0)
        return chex_fail(err, CHEX_ERR_USAGE, "--source takes no PATH: give the images with -i");
    if (o->input_count == 0 || !o->labels)
        return chex_fail(err, CHEX_ERR_USAGE, "--source needs -i PATH and -l CSV");
    return CHEX_OK;
}

/* What goes together. */
static enum chex_status
check_options(const struct inspect_options *o, const struct cli_common *common, struct chex_error *err)
{
    bool to_stdout = o->output && strcmp(o->output, "-") == 0;

    if (check_format(o, common, err) != CHEX_OK || check_source(o, err) != CHEX_OK)
        return CHEX_ERR_USAGE;
    if (o->action == INSPECT_DIFF && o->path_count != 2)
        return chex_fail(err, CHEX_ERR_USAGE, "--diff takes two PATHs, A and B");
    if (o->action != INSPECT_SOURCE && o->path_count == 0)
        return chex_fail(err, CHEX_ERR_USAGE, "no PATH given; try 'chex-inspect --help'");
    if (o->fields && o->action != INSPECT_LIST)
        return chex_fail(err, CHEX_ERR_USAGE, "--fields goes with --list");
    if (o->filling && o->action != INSPECT_LIST)
        return chex_fail(err, CHEX_ERR_USAGE, "--filling goes with --list");
    if (o->split && o->action != INSPECT_LIST && o->action != INSPECT_LABELS)
        return chex_fail(err, CHEX_ERR_USAGE, "--split goes with --list or --labels");
    if (o->action == INSPECT_REPORT && o->path_count > 1)
        return chex_fail(err, CHEX_ERR_USAGE, "--report takes one PATH");
    if (o->action == INSPECT_REPORT && common->json && strcmp(o->report, "-") == 0)
        return chex_fail(err, CHEX_ERR_USAGE, "--json and a page cannot both go to standard output");
    if (o->action != INSPECT_EXTRACT)
        return o->output ? chex_fail(err, CHEX_ERR_USAGE, "--output goes with --extract") : CHEX_OK;
    if (!o->output)
        return chex_fail(err, CHEX_ERR_USAGE, "--extract needs -o FILE.png, FILE.pgm or -");
    if (o->path_count > 1)
        return chex_fail(err, CHEX_ERR_USAGE, "--extract takes one PATH");
    if (!to_stdout && !ends_with(o->output, ".png") && !ends_with(o->output, ".pgm"))
        return chex_fail(err, CHEX_ERR_USAGE, "'%s': the name must end in .png or .pgm", o->output);
    if (to_stdout && common->json)
        return chex_fail(err, CHEX_ERR_USAGE, "--json and an image cannot both go to standard output");
    if (to_stdout && isatty(STDOUT_FILENO))
        return chex_fail(err, CHEX_ERR_USAGE, "standard output is a terminal: give -o FILE.png, or a pipe");
    return CHEX_OK;
}

/* ---- work ------------------------------------------------------------------------------------------------------ */

/* Whether the action can be done with what the PATH is. */
static enum chex_status
check_target(const struct inspect_options *o, const struct target *t, struct chex_error *err)
{
    if (o->action == INSPECT_DESCRIBE || o->action == INSPECT_VERIFY)
        return CHEX_OK;
    if (t->kind == TARGET_UNFINISHED)
        return chex_fail(err, CHEX_ERR_TRUNCATED, "'%s': %s", t->path, t->unfinished);
    if (t->kind == TARGET_CHECKPOINT || t->kind == TARGET_EVENTS)
        return chex_fail(err, CHEX_ERR_USAGE, "'%s' is %s: it can only be described", t->path,
                         t->kind == TARGET_EVENTS ? "an event file" : "a checkpoint");
    if (t->kind == TARGET_FILE)
        return chex_fail(err, CHEX_ERR_MISSING, "'%s' is in no manifest: only --full can be done", t->path);
    if (t->kind == TARGET_SHARD && (o->action == INSPECT_SPLIT || o->action == INSPECT_REPORT))
        return chex_fail(err, CHEX_ERR_USAGE, "--%s takes the folder of a data set, not one shard",
                         o->action == INSPECT_SPLIT ? "check-split" : "report");
    return CHEX_OK;
}

static int
inspect_path(struct inspect *in, const char *path)
{
    static int (*const actions[])(struct inspect *, struct target *) = {
        [INSPECT_DESCRIBE] = inspect_verify, [INSPECT_VERIFY] = inspect_verify, [INSPECT_LIST] = inspect_list,
        [INSPECT_EXTRACT] = inspect_extract, [INSPECT_LABELS] = inspect_labels, [INSPECT_SPLIT] = inspect_split,
        [INSPECT_REPORT] = inspect_report,
    };
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
    } else {
        /* Between the results of several. */
        if (in->have_result && !in->common->json && !in->common->quiet && o->action != INSPECT_LIST)
            printf("\n");
        code = actions[o->action](in, &t);
        in->have_result |= !in->common->json;
    }
    target_close(&t);
    return code;
}

static int
inspect(const struct inspect_options *o, const struct cli_common *common)
{
    struct inspect in = {.program = &program, .options = o, .common = common};
    struct chex_error err;
    int code = EXIT_GOOD;
    size_t i;

    if (check_options(o, common, &err) != CHEX_OK)
        return cli_error(&program, &err);
    meter_init(&in.meter, common);
    in.color = color_for(common, stdout);
    if (common->json)
        inspect_json_begin(&in);
    if (o->action == INSPECT_DIFF)
        code = inspect_diff(&in, o->path);
    else if (o->action == INSPECT_SOURCE)
        code = inspect_source(&in);
    else
        for (i = 0; i < o->path_count; i++)
            code = inspect_worse(code, inspect_path(&in, o->path[i]));
    if (common->json)
        code = inspect_json_end(&in, code);
    else if (in.json_failed)
        code = EXIT_OUTPUT;
    meter_release(&in.meter);
    return code;
}

int
main(int argc, char **argv)
{
    struct inspect_options options = {.depth = VERIFY_QUICK};
    struct cli_common common;
    int code = cli_parse(&program, argc, argv, &options, &common);

    common.json |= options.format == ROWS_JSON;
    if (code == CLI_GO_ON)
        code = cli_finish(&program, inspect(&options, &common));
    free(options.path);
    free(options.input);
    return code;
}
