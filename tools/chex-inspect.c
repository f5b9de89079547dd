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
#include "inspect_sheet.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- command line ---------------------------------------------------------------------------------------------- */

enum {
    ID_QUICK = 1,
    ID_FULL,
    ID_SHA256,
    ID_SAMPLE,
    ID_LIST,
    ID_EXTRACT,
    ID_LABELS,
    ID_CHECK_SPLIT,
    ID_FIELDS,
    ID_SPLIT,
    ID_FILLING,
    ID_OUTPUT,
    ID_SHEET,
    ID_WHERE,
    ID_FIRST,
    ID_RANDOM,
    ID_SEED,
    ID_COLUMNS,
    ID_SHOW,
    ID_PROTOCOL
};

static const struct cli_option options_table[] = {
    {ID_QUICK, 0, "quick", NULL, NULL, "Check against the manifest", "every shard is there and has its size"},
    {ID_SAMPLE, 0, "sample", "P%", NULL, NULL, "besides, P per cent of the records, always the same ones"},
    {ID_FULL, 0, "full", NULL, NULL, NULL,
     "every record: framing, checksums, form and place; counts;\nthe checksum of every shard"},
    {ID_SHA256, 0, "sha256", NULL, NULL, NULL, "--full: the SHA-256 of every shard too, against tampering"},
    {ID_LIST, 0, "list", NULL, NULL, "Look", "a line for each image, fields separated by tabs"},
    {ID_EXTRACT, 0, "extract", "WHICH", NULL, NULL, "one image, by NAME or SHARD:INDEX, to -o"},
    {ID_SHOW, 0, "show", "WHICH", NULL, NULL, "one image, by NAME or SHARD:INDEX, on this terminal"},
    {ID_SHEET, 0, "sheet", "FILE", NULL, NULL,
     "a contact sheet, FILE.png or FILE.jpg: images with name,\npatient and findings"},
    {ID_LABELS, 0, "labels", NULL, NULL, NULL, "prevalence of the findings by split, and which come\ntogether"},
    {ID_CHECK_SPLIT, 0, "check-split", NULL, NULL, NULL, "patients and images in two splits, drift of prevalence"},
    {ID_FIELDS, 0, "fields", "LIST", NULL, "For these",
     "of --list: slot, split, shard, index, name, patient,\nlabels, weight, age, sex, view, sha256 (of the pixels);\n"
     "default: slot,name,patient,labels"},
    {ID_SPLIT, 0, "split", "NAME", NULL, NULL, "--list, --labels, --sheet: this split only"},
    {ID_FILLING, 0, "filling", NULL, NULL, NULL, "--list: filling records (weight 0) too"},
    {ID_OUTPUT, 'o', "output", "FILE", NULL, NULL, "of --extract: FILE.png, FILE.pgm, or - for PNG on stdout"},
    {ID_WHERE, 0, "where", "TERMS", NULL, "For --sheet",
     "images for which one of these holds, separated by commas:\na finding, No_Finding, FINDING=0, view=PA, sex=F,\n"
     "age=40-59, patient=ID, name=NAME; given again: both"},
    {ID_FIRST, 0, "first", "N", NULL, NULL, "the first N of them; default 24"},
    {ID_RANDOM, 0, "random", "N", NULL, NULL, "N of them by a draw that depends on --seed and names only"},
    {ID_SEED, 0, "seed", "N", NULL, NULL, "of --random; default 0"},
    {ID_COLUMNS, 0, "columns", "N", NULL, NULL, "images side by side; default 6"},
    {ID_PROTOCOL, 0, "protocol", "NAME", "auto|kitty|iterm|sixel|blocks|ascii", "For --show",
     "how the terminal is given pictures; default auto: what\nit says that it can"},
    {0, 0, NULL, NULL, NULL, NULL, NULL},
};

static enum chex_status
set_action(struct inspect_options *o, enum inspect_action action, struct chex_error *err)
{
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
take_number(const char *text, unsigned min, unsigned max, unsigned *out, struct chex_error *err)
{
    uint64_t number = 0;
    enum chex_status status = cli_number(text, min, max, &number, err);

    *out = (unsigned)number;
    return status;
}

static enum chex_status
add_path(struct inspect_options *o, const char *path, struct chex_error *err)
{
    const char **grown = array_grow(o->path, &o->path_capacity, o->path_count, sizeof(*grown));

    if (!grown)
        return chex_fail_memory(err);
    o->path = grown;
    o->path[o->path_count++] = path;
    return CHEX_OK;
}

static enum chex_status
apply(void *context, const struct cli_option *option, const char *value, struct chex_error *err)
{
    struct inspect_options *o = context;

    if (!option)
        return add_path(o, value, err);
    switch (option->id) {
    case ID_QUICK:
        return set_depth(o, VERIFY_QUICK, err);
    case ID_FULL:
        return set_depth(o, VERIFY_FULL, err);
    case ID_SHA256:
        o->sha256 = true;
        break;
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
    case ID_SHOW:
        o->extract = value;
        return set_action(o, INSPECT_SHOW, err);
    case ID_PROTOCOL:
        o->protocol = value;
        break;
    case ID_SHEET:
        o->sheet = value;
        return set_action(o, INSPECT_SHEET, err);
    case ID_WHERE:
        return where_add(&o->where, value, err);
    case ID_FIRST:
        return take_number(value, 1, SHEET_MAX_IMAGES, &o->first, err);
    case ID_RANDOM:
        return take_number(value, 1, SHEET_MAX_IMAGES, &o->random, err);
    case ID_COLUMNS:
        return take_number(value, 1, SHEET_MAX_COLUMNS, &o->columns, err);
    case ID_SEED:
        o->seed_given = true;
        return cli_number(value, 0, UINT64_MAX, &o->seed, err);
    default:
        return chex_fail(err, CHEX_ERR_BUG, "option not handled");
    }
    return CHEX_OK;
}

#define FINDINGS                                                                                             \
    "Atelectasis|Cardiomegaly|Effusion|Infiltration|Mass|Nodule|Pneumonia|Pneumothorax|Consolidation|Edema|" \
    "Emphysema|Fibrosis|Pleural_Thickening|Hernia|No_Finding"

static const struct cli_words words[] = {
    {ID_FIELDS, true, "slot|split|shard|index|name|patient|labels|weight|age|sex|view|sha256"},
    {ID_SPLIT, false, "train|val|test|all"},
    {ID_WHERE, true, FINDINGS "|view=PA|view=AP|sex=F|sex=M|age=|patient=|name="},
    {0, false, NULL},
};

static const struct cli_program program = {
    .name = "chex-inspect",
    .summary = "look at data sets and shards, and check them",
    .usage = "[--quick | --sample P% | --full [--sha256]] PATH...\n"
             "--list [--fields LIST] [--split NAME] PATH...\n"
             "--extract NAME|SHARD:INDEX -o FILE.png PATH\n"
             "--show NAME|SHARD:INDEX [--protocol NAME] PATH\n"
             "--sheet FILE.png|FILE.jpg [--where TERMS]... [--first N | --random N [--seed N]]\n"
             "              [--columns N] [--split NAME] PATH\n"
             "--labels | --check-split PATH...",
    .examples = "chex-inspect shards                    # what it is, and a quick check\n"
                "chex-inspect --full shards             # every byte\n"
                "chex-inspect --list --fields name,labels,age shards > list.tsv\n"
                "chex-inspect --extract 00000013_004.png -o x.png shards\n"
                "chex-inspect --sheet hernia.png --where Hernia --random 24 shards\n"
                "chex-inspect --check-split shards      # is a patient in train and test?",
    .notes = "A PATH is the folder of a data set or one of its shards.  A TFRecord file without\n"
             "a manifest beside it is checked by itself.",
    .options = options_table,
    .words = words,
    .threads = true,
    .progress = true,
    .apply = apply,
};

/* --sheet, --show and what goes with them. */
static enum chex_status
check_pictures(const struct inspect_options *o, const struct cli_common *common, struct chex_error *err)
{
    bool sheet = o->action == INSPECT_SHEET, show = o->action == INSPECT_SHOW;

    if (!sheet && (o->where.text_count || o->first || o->random || o->seed_given || o->columns))
        return chex_fail(err, CHEX_ERR_USAGE, "--where, --first, --random, --seed and --columns go with --sheet");
    if (o->protocol && !show)
        return chex_fail(err, CHEX_ERR_USAGE, "--protocol goes with --show");
    if (o->first && o->random)
        return chex_fail(err, CHEX_ERR_USAGE, "--first and --random cannot go together");
    if (o->seed_given && !o->random)
        return chex_fail(err, CHEX_ERR_USAGE, "--seed goes with --random");
    if (show && common->json)
        return chex_fail(err, CHEX_ERR_USAGE, "--json and a picture cannot both go to standard output");
    if ((sheet || show) && o->path_count > 1)
        return chex_fail(err, CHEX_ERR_USAGE, "--%s takes one PATH", sheet ? "sheet" : "show");
    if (sheet && !picture_name_ends(o->sheet, ".png") && !picture_name_ends(o->sheet, ".jpg") &&
        !picture_name_ends(o->sheet, ".jpeg"))
        return chex_fail(err, CHEX_ERR_USAGE, "'%s': the name must end in .png or .jpg", o->sheet);
    return CHEX_OK;
}

/* What goes together. */
static enum chex_status
check_options(const struct inspect_options *o, const struct cli_common *common, struct chex_error *err)
{
    bool to_stdout = o->output && strcmp(o->output, "-") == 0;

    if (o->path_count == 0)
        return chex_fail(err, CHEX_ERR_USAGE, "no PATH given; try 'chex-inspect --help'");
    if (o->sha256 && o->depth != VERIFY_FULL)
        return chex_fail(err, CHEX_ERR_USAGE, "--sha256 goes with --full");
    if (o->fields && o->action != INSPECT_LIST)
        return chex_fail(err, CHEX_ERR_USAGE, "--fields goes with --list");
    if (o->filling && o->action != INSPECT_LIST)
        return chex_fail(err, CHEX_ERR_USAGE, "--filling goes with --list");
    if (o->split && o->action != INSPECT_LIST && o->action != INSPECT_LABELS && o->action != INSPECT_SHEET)
        return chex_fail(err, CHEX_ERR_USAGE, "--split goes with --list, --labels or --sheet");
    if (check_pictures(o, common, err) != CHEX_OK)
        return CHEX_ERR_USAGE;
    if (o->action != INSPECT_EXTRACT)
        return o->output ? chex_fail(err, CHEX_ERR_USAGE, "--output goes with --extract") : CHEX_OK;
    if (!o->output)
        return chex_fail(err, CHEX_ERR_USAGE, "--extract needs -o FILE.png, FILE.pgm or -");
    if (o->path_count > 1)
        return chex_fail(err, CHEX_ERR_USAGE, "--extract takes one PATH");
    if (!to_stdout && !picture_name_ends(o->output, ".png") && !picture_name_ends(o->output, ".pgm"))
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
    if (o->sha256 && t->kind == TARGET_FILE)
        return chex_fail(err, CHEX_ERR_MISSING, "'%s' is in no manifest: there is no SHA-256 to compare with", t->path);
    if (o->action == INSPECT_DESCRIBE || o->action == INSPECT_VERIFY)
        return CHEX_OK;
    if (t->kind == TARGET_UNFINISHED)
        return chex_fail(err, CHEX_ERR_TRUNCATED, "'%s': %s", t->path, t->unfinished);
    if (t->kind == TARGET_FILE)
        return chex_fail(err, CHEX_ERR_MISSING, "'%s' is in no manifest: only --full can be done", t->path);
    if (t->kind == TARGET_SHARD && o->action == INSPECT_SPLIT)
        return chex_fail(err, CHEX_ERR_USAGE, "--check-split takes the folder of a data set, not one shard");
    return CHEX_OK;
}

static int
inspect_path(struct inspect *in, const char *path)
{
    static int (*const actions[])(struct inspect *, struct target *) = {
        [INSPECT_DESCRIBE] = inspect_verify, [INSPECT_VERIFY] = inspect_verify, [INSPECT_LIST] = inspect_list,
        [INSPECT_EXTRACT] = inspect_extract, [INSPECT_LABELS] = inspect_labels, [INSPECT_SPLIT] = inspect_split,
        [INSPECT_SHEET] = inspect_sheet,     [INSPECT_SHOW] = inspect_show,
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
    for (i = 0; i < o->path_count; i++) {
        code = inspect_worse(code, inspect_path(&in, o->path[i]));
    }
    if (common->json)
        code = inspect_json_end(&in, code);
    meter_release(&in.meter);
    return code;
}

int
main(int argc, char **argv)
{
    struct inspect_options options = {.depth = VERIFY_QUICK};
    struct cli_common common;
    int code = cli_parse(&program, argc, argv, &options, &common);

    if (code == CLI_GO_ON)
        code = cli_finish(&program, inspect(&options, &common));
    free(options.path);
    return code;
}
