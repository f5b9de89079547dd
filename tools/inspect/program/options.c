/*
 * options.c - parses the command line of chex-inspect; see inspect/options.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/options.h"

#include "base/ascii.h"
#include "inspect/inspect.h"
#include "inspect/sheet/sheet.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- command line ------------------------------------------------------------------------------------------------ */

enum {
    ID_QUICK = 1,
    ID_SAMPLE,
    ID_FULL,
    ID_FIELDS,
    ID_WHERE,
    ID_FIRST,
    ID_RANDOM,
    ID_SEED,
    ID_COLUMNS,
    ID_TITLE,
    ID_INPUT,
    ID_LABEL_FILE,
    ID_LABEL_FILE_LONG,
    ID_MAX_MEMORY,
    ID_ACTION, /* and what follows: this and an enum inspect_action */
    ID_LABELS = ID_ACTION + INSPECT_LABELS
};

#define FLAG(member)   CLI_FLAG(struct inspect_options, member)
#define TEXT(member)   CLI_TEXT(struct inspect_options, member)
#define CHOICE(member) CLI_CHOICE(struct inspect_options, member)
#define ACTION(name)   (ID_ACTION + INSPECT_##name)

#define TITLE_MAX 200

static const struct cli_option options_table[] = {
    {ID_QUICK, 0, "quick", NULL, NULL, "Check against the manifest",
     "check that every shard is there, has its size and is one of this data set"},
    {ID_SAMPLE, 0, "sample", "P%", NULL, NULL, "check as --quick, and P per cent of the records; always the same ones"},
    {ID_FULL, 0, "full", NULL, NULL, NULL,
     "check every record: framing, checksums, form and place; counts; the checksum of every shard"},
    {FLAG(sha256), 0, "sha256", NULL, NULL, NULL,
     "compare the SHA-256 of every shard, against tampering (with --full)"},
    {ACTION(LIST), 0, "list", NULL, NULL, "Look",
     "print one line for each image (fields separated by tabs), or for each tensor of a checkpoint"},
    {ACTION(EXTRACT), 0, "extract", "WHICH", NULL, NULL, "write one image, NAME or SHARD:INDEX, to -o FILE"},
    {ACTION(SHOW), 0, "show", "WHICH", NULL, NULL, "draw one image, NAME or SHARD:INDEX, on this terminal"},
    {ACTION(SHEET), 0, "sheet", "FILE", NULL, NULL,
     "make a contact sheet, FILE.png or FILE.jpg: images with name, patient and findings"},
    {ID_LABELS, 0, "labels", NULL, NULL, NULL,
     "count each finding by split (prevalence), and findings that occur together"},
    {ACTION(SPLIT), 0, "check-split", NULL, NULL, NULL,
     "find patients and images in two splits, and drift of prevalence"},
    {ACTION(REPORT), 0, "report", "FILE", NULL, NULL,
     "write one page with all of this, plots and pictures: FILE.html, or - for standard output"},
    {ACTION(DIFF), 0, "diff", NULL, NULL, NULL,
     "compare two data sets or two checkpoints, A and B; exit status 1 if they differ"},
    {ACTION(SOURCE), 0, "source", NULL, NULL, NULL,
     "check a download before any conversion (-i, -l): what is missing, truncated, damaged or no image; reads "
     "archives too"},
    {ID_FIELDS, 0, "fields", "LIST", NULL, "For these",
     "fields to print (with --list): slot, split, shard, index, name, patient, labels, weight, age, sex, view, "
     "sha256 (of the pixels); default: slot,name,patient,labels"},
    {TEXT(split), 0, "split", "NAME", NULL, NULL, "use only this split (with --list, --labels, --sheet)"},
    {ID_WHERE, 0, "where", "TERMS", NULL, NULL,
     "use only images that match one of these terms (with --list, --labels, --sheet), separated by commas: a "
     "finding, No_Finding, FINDING=0, view=PA, sex=F, age=40-59, patient=ID, name=NAME; repeated: all must match"},
    {FLAG(padding), 0, "padding", NULL, NULL, NULL, "print padding records (weight 0) too (with --list)"},
    {CHOICE(format), 0, "format", "HOW", CLI_NAMES("table", "csv", "json", "jsonl"), NULL,
     "output format: table (default), csv (RFC 4180), json (as --json) or jsonl; for --list, --labels, "
     "--check-split, --diff and --source"},
    {ID_TITLE, 0, "title", "TEXT", NULL, NULL, "print this title at the top (with --sheet, --report)"},
    {TEXT(output), 'o', "output", "FILE", NULL, NULL,
     "file to write (with --extract): FILE.png, FILE.pgm, or - for PNG on stdout"},
    {ID_FIRST, 0, "first", "N", NULL, "For --sheet", "show the first N images of the selection; default 24"},
    {ID_RANDOM, 0, "random", "N", NULL, NULL, "show N random images; they depend only on --seed and the names"},
    {ID_SEED, 0, "seed", "N", NULL, NULL, "seed of --random; default 0"},
    {ID_COLUMNS, 0, "columns", "N", NULL, NULL, "images in a row; default 6"},
    {TEXT(protocol), 0, "protocol", "NAME", CLI_NAMES("auto", "kitty", "iterm", "sixel", "blocks", "ascii"),
     "For --show",
     "how to send pictures to the terminal: auto (default; what the terminal supports), kitty, iterm, sixel, blocks "
     "or ascii"},
    {ID_INPUT, 'i', "input", "PATH", NULL, "For --source",
     "folder, image or archive with the images; a folder is searched recursively, an archive is .tar, .tar.gz or "
     ".zip; may be repeated"},
    {ID_LABEL_FILE_LONG, 0, "label-file", "FILE", NULL, NULL, "label file; the same as -l"},
    {ID_LABEL_FILE, 'l', "labels", "FILE", NULL, NULL,
     "label file; Data_Entry_2017_v2020.csv or one like it, .csv or .csv.gz"},
    {ID_MAX_MEMORY, 0, "max-memory", "SIZE", NULL, NULL,
     "memory limit for unpacking an archive (.tar.xz); K, M or G; default 128M"},
    {0, 0, NULL, NULL, NULL, NULL, NULL},
};

/* Returns true for --source, or for an abbreviation that getopt_long() accepts. */
static bool
is_source(const char *argument)
{
    size_t length = strlen(argument);

    return length >= strlen("--so") && strncmp(argument, "--source", length) == 0;
}

/* With --source, --labels is the label file, as in chex-convert; without it, an action. */
static bool
means(const struct cli_option *option, int argc, char **argv)
{
    bool source = false;
    int i;

    for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        source |= is_source(argv[i]);
    return option->id == ID_LABELS ? !source : option->id == ID_LABEL_FILE ? source : true;
}

static enum chex_status
set_action(struct inspect_options *o, enum inspect_action action, struct chex_error *err)
{
    if (o->action_given)
        return error_set(err, CHEX_ERR_USAGE, "only one action at a time");
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
        return error_set(err, CHEX_ERR_USAGE, "takes a percentage above 0 and up to 100, not '%s'", text);
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
    if (option->id >= ID_ACTION) {
        o->argument = value;
        return set_action(o, (enum inspect_action)(option->id - ID_ACTION), err);
    }
    switch (option->id) {
    case ID_QUICK:
        return set_depth(o, VERIFY_QUICK, err);
    case ID_FULL:
        return set_depth(o, VERIFY_FULL, err);
    case ID_SAMPLE:
        if (parse_percent(value, &o->sample_percent, err) != CHEX_OK)
            return CHEX_ERR_USAGE;
        return set_depth(o, VERIFY_SAMPLE, err);
    case ID_INPUT:
        return add_text(&o->input, &o->input_count, &o->input_capacity, value, err);
    case ID_LABEL_FILE:
    case ID_LABEL_FILE_LONG:
        if (is_source(value))
            return error_set(err, CHEX_ERR_USAGE, "takes the label file of --source, not '%s'", value);
        o->labels = value;
        break;
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
    case ID_SEED:
        o->seed_given = true;
        return cli_number(value, 0, UINT64_MAX, &o->seed, err);
    default:
        return error_set(err, CHEX_ERR_BUG, "option not handled");
    }
    return CHEX_OK;
}

static const struct cli_words words[] = {
    {"fields", true,
     CLI_NAMES("slot", "split", "shard", "index", "name", "patient", "labels", "weight", "age", "sex", "view",
               "sha256")},
    {"split", false, CLI_NAMES("train", "val", "test", "all")},
    {"where", true,
     CLI_NAMES("Atelectasis", "Cardiomegaly", "Effusion", "Infiltration", "Mass", "Nodule", "Pneumonia", "Pneumothorax",
               "Consolidation", "Edema", "Emphysema", "Fibrosis", "Pleural_Thickening", "Hernia", "No_Finding",
               "view=PA", "view=AP", "sex=F", "sex=M", "age=", "patient=", "name=")},
    {NULL, false, NULL},
};

const struct cli_program inspect_program = {
    .name = "chex-inspect",
    .summary = "look at data sets and shards, and check them",
    .usage = "[--quick | --sample P% | --full [--sha256]] PATH...\n"
             "--list [--fields LIST] [--where TERMS]... [--split NAME]\n"
             "  PATH...\n"
             "--extract NAME|SHARD:INDEX -o FILE.png PATH\n"
             "--show NAME|SHARD:INDEX [--protocol NAME] PATH\n"
             "--sheet FILE.png|FILE.jpg [--where TERMS]... [--columns N]\n"
             "  [--first N | --random N [--seed N]] [--split NAME]\n"
             "  [--title TEXT] PATH\n"
             "--labels [--where TERMS]... [--split NAME] PATH...\n"
             "--check-split PATH...\n"
             "--report FILE.html [--title TEXT] PATH\n"
             "--diff A B\n"
             "--source -l CSV -i PATH...",
    .examples = "chex-inspect shards                    # what it is, and a quick check\n"
                "chex-inspect --full shards             # every byte\n"
                "chex-inspect --list --fields name,labels,age shards > list.tsv\n"
                "chex-inspect --extract 00000013_004.png -o x.png shards\n"
                "chex-inspect --sheet hernia.png --where Hernia --random 24 shards\n"
                "chex-inspect --check-split shards      # is a patient in train and test?\n"
                "chex-inspect --report report.html shards\n"
                "chex-inspect --diff runs/a runs/b      # the newest checkpoints of two runs\n"
                "chex-inspect --source -l Data_Entry_2017_v2020.csv -i images_*.tar.gz",
    .notes = "A PATH is the folder of a data set or one of its shards, a checkpoint, or the\n"
             "folder of a run (for its newest checkpoint).  A TFRecord file without a\n"
             "manifest is checked by itself.",
    .options = options_table,
    .words = words,
    .threads = true,
    .progress = true,
    .means = means,
    .apply = apply,
};

struct inspect_options
inspect_options_default(void)
{
    return (struct inspect_options){.depth = VERIFY_QUICK};
}

void
inspect_options_release(struct inspect_options *o)
{
    free(o->path);
    free(o->input);
}

/* ---- what goes together ------------------------------------------------------------------------------------------ */

/* --sheet, --show and what goes with them. */
static enum chex_status
check_pictures(const struct inspect_options *o, const struct cli_common *common, struct chex_error *err)
{
    bool sheet = o->action == INSPECT_SHEET, show = o->action == INSPECT_SHOW;

    if (!sheet && (o->first || o->random || o->seed_given || o->columns))
        return error_set(err, CHEX_ERR_USAGE, "--first, --random, --seed and --columns go with --sheet");
    if (o->protocol && !show)
        return error_set(err, CHEX_ERR_USAGE, "--protocol goes with --show");
    if (o->first && o->random)
        return error_set(err, CHEX_ERR_USAGE, "--first and --random cannot go together");
    if (o->seed_given && !o->random)
        return error_set(err, CHEX_ERR_USAGE, "--seed goes with --random");
    if (show && common->json)
        return error_set(err, CHEX_ERR_USAGE, "--json and a picture cannot both go to standard output");
    if ((sheet || show) && o->path_count > 1)
        return error_set(err, CHEX_ERR_USAGE, "--%s takes one PATH", sheet ? "sheet" : "show");
    if (sheet && !picture_name_ends(o->argument, ".png") && !picture_name_ends(o->argument, ".jpg") &&
        !picture_name_ends(o->argument, ".jpeg"))
        return error_set(err, CHEX_ERR_USAGE, "'%s': the name must end in .png or .jpg", o->argument);
    return CHEX_OK;
}

static enum chex_status
check_format(const struct inspect_options *o, const struct cli_common *common, struct chex_error *err)
{
    bool rows = o->format == TABLE_CSV || o->format == TABLE_JSONL;

    if (rows && common->json)
        return error_set(err, CHEX_ERR_USAGE, "--json goes with --format json");
    if (rows && o->action != INSPECT_LIST && o->action != INSPECT_LABELS && o->action != INSPECT_SPLIT &&
        o->action != INSPECT_DIFF && o->action != INSPECT_SOURCE)
        return error_set(err, CHEX_ERR_USAGE,
                         "--format csv and jsonl go with --list, --labels, --check-split, --diff and --source");
    if (rows && o->path_count > 1 && o->action != INSPECT_DIFF && o->action != INSPECT_SOURCE)
        return error_set(err, CHEX_ERR_USAGE, "--format csv and jsonl take one PATH");
    return CHEX_OK;
}

static enum chex_status
check_extract(const struct inspect_options *o, const struct cli_common *common, struct chex_error *err)
{
    bool to_stdout = o->output && strcmp(o->output, "-") == 0;

    if (o->action != INSPECT_EXTRACT)
        return o->output ? error_set(err, CHEX_ERR_USAGE, "--output goes with --extract") : CHEX_OK;
    if (!o->output)
        return error_set(err, CHEX_ERR_USAGE, "--extract needs -o FILE.png, FILE.pgm or -");
    if (o->path_count > 1)
        return error_set(err, CHEX_ERR_USAGE, "--extract takes one PATH");
    if (!to_stdout && !picture_name_ends(o->output, ".png") && !picture_name_ends(o->output, ".pgm"))
        return error_set(err, CHEX_ERR_USAGE, "'%s': the name must end in .png or .pgm", o->output);
    if (to_stdout && common->json)
        return error_set(err, CHEX_ERR_USAGE, "--json and an image cannot both go to standard output");
    if (to_stdout && isatty(STDOUT_FILENO))
        return error_set(err, CHEX_ERR_USAGE, "standard output is a terminal: give -o FILE.png, or a pipe");
    return CHEX_OK;
}

static enum chex_status
check_source(const struct inspect_options *o, struct chex_error *err)
{
    if (o->action != INSPECT_SOURCE)
        return o->input_count > 0 || o->labels || o->max_memory
                   ? error_set(err, CHEX_ERR_USAGE, "-i, -l and --max-memory go with --source")
                   : CHEX_OK;
    if (o->input_count + o->path_count == 0 || !o->labels)
        return error_set(err, CHEX_ERR_USAGE, "--source needs -i PATH and -l CSV");
    return CHEX_OK;
}

enum chex_status
inspect_options_check(const struct inspect_options *o, const struct cli_common *common, struct chex_error *err)
{
    if (check_format(o, common, err) != CHEX_OK || check_source(o, err) != CHEX_OK)
        return CHEX_ERR_USAGE;
    if (o->action == INSPECT_DIFF && o->path_count != 2)
        return error_set(err, CHEX_ERR_USAGE, "--diff takes two PATHs, A and B");
    if (o->action != INSPECT_SOURCE && o->path_count == 0)
        return error_set(err, CHEX_ERR_USAGE, "no PATH: give a data set, a shard or a checkpoint");
    if (o->sha256 && o->depth != VERIFY_FULL)
        return error_set(err, CHEX_ERR_USAGE, "--sha256 goes with --full");
    if (o->fields && o->action != INSPECT_LIST)
        return error_set(err, CHEX_ERR_USAGE, "--fields goes with --list");
    if (o->padding && o->action != INSPECT_LIST)
        return error_set(err, CHEX_ERR_USAGE, "--padding goes with --list");
    if ((o->split || o->where.text_count > 0) && o->action != INSPECT_LIST && o->action != INSPECT_LABELS &&
        o->action != INSPECT_SHEET)
        return error_set(err, CHEX_ERR_USAGE, "--%s goes with --list, --labels or --sheet",
                         o->split ? "split" : "where");
    if (o->title && o->action != INSPECT_SHEET && o->action != INSPECT_REPORT)
        return error_set(err, CHEX_ERR_USAGE, "--title goes with --sheet or --report");
    if (check_pictures(o, common, err) != CHEX_OK)
        return CHEX_ERR_USAGE;
    if (o->action == INSPECT_REPORT && o->path_count > 1)
        return error_set(err, CHEX_ERR_USAGE, "--report takes one PATH");
    /* Otherwise a slip such as `--report shards/00001 shards` would overwrite the input. */
    if (o->action == INSPECT_REPORT && strcmp(o->argument, "-") != 0 && !picture_name_ends(o->argument, ".html") &&
        !picture_name_ends(o->argument, ".htm"))
        return error_set(err, CHEX_ERR_USAGE, "'%s': the name must end in .html", o->argument);
    if (o->action == INSPECT_REPORT && common->json && strcmp(o->argument, "-") == 0)
        return error_set(err, CHEX_ERR_USAGE, "--json and a page cannot both go to standard output");
    return check_extract(o, common, err);
}
