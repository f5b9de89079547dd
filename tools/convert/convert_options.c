/*
 * convert_options.c - the option table of chex-convert and what each option does
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/convert_options.h"

#include "base/ascii.h"
#include "labels/columns_file.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    OPT_INPUT = 1,
    OPT_LABEL_KIND,
    OPT_SIZE,
    OPT_RESIZE,
    OPT_SPLIT,
    OPT_SHARD_SIZE,
    OPT_SEED,
    OPT_ALIGN,
    OPT_INDEX,
    OPT_VIEW,
    OPT_ALLOW_REJECTS,
    OPT_CROSS_CHECK,
    OPT_MAX_PIXELS,
    OPT_MAX_MEMORY,
    OPT_MIN_SIZE,
    OPT_PART,
    OPT_FINDINGS,
    OPT_COLUMNS,
    OPT_WHERE,
    OPT_ID_PREFIX,
    OPT_LIMIT
};

#define FLAG(member)   CLI_FLAG(struct convert_cli, member)
#define TEXT(member)   CLI_TEXT(struct convert_cli, member)
#define CHOICE(member) CLI_CHOICE(struct convert_cli, member)

static const struct cli_option option_table[] = {
    {OPT_INPUT, 'i', "input", "PATH", NULL, "Input and output",
     "folder, image or archive with the images; a folder is searched recursively, an archive is .tar, .tar.gz or "
     ".zip; may be repeated.  Or data sets of chex-convert, which are merged: then -l, --size and --split default to "
     "theirs"},
    {OPT_ID_PREFIX, 0, "id-prefix", "P1,P2...", NULL, NULL,
     "put these before the image names and patient ids of each data set, in the order of the inputs"},
    {FLAG(convert.same_patients), 0, "same-patients", NULL, NULL, NULL,
     "patients with the same id in several data sets are the same people"},
    {TEXT(convert.labels), 'l', "labels", "FILE", NULL, NULL,
     "label file; Data_Entry_2017_v2020.csv or one like it, .csv or .csv.gz"},
    {OPT_LABEL_KIND, 0, "label-kind", "KIND", label_kind_names, NULL,
     "read the label file as this kind; default: the kind whose columns it has"},
    {OPT_COLUMNS, 0, "columns", "FILE", NULL, NULL, "read the label file by the columns that this file describes"},
    {TEXT(convert.out), 'o', "output", "DIR", NULL, NULL, "folder for the shards and their manifest; made if missing"},
    {FLAG(dry_run), 'n', "dry-run", NULL, NULL, NULL,
     "show the plan, the space it needs and what is missing; write nothing"},
    {FLAG(convert.force), 'f', "force", NULL, NULL, NULL, "replace the data set in the folder"},
    {FLAG(convert.repair), 0, "repair", NULL, NULL, NULL, "check a complete data set, and rewrite its damaged records"},
    {TEXT(withdraw), 0, "withdraw", "PATIENT|FILE", NULL, NULL,
     "replace the images of a patient in a data set by padding records; or of all patients in a list, one id per "
     "line"},
    {FLAG(profile), 0, "profile", NULL, NULL, NULL,
     "measure the stages of the conversion for several numbers of threads (-j 1..N), and write nothing"},
    {OPT_LIMIT, 0, "limit", "N", NULL, NULL,
     "with --profile: number of images for each number of threads; default 1000"},
    {FLAG(convert.break_lock), 0, "break-lock", NULL, NULL, NULL,
     "take over a folder whose owner on another host is dead"},
    {OPT_PART, 0, "part", "I/N", NULL, NULL,
     "convert only part I of N (every N-th shard), for job arrays; the same command without --part then publishes "
     "the data set"},
    {FLAG(convert.verify), 0, "verify", NULL, NULL, NULL, "read each shard back from the disk and compare"},
    {OPT_CROSS_CHECK, 0, "cross-check", "P%", NULL, NULL,
     "decode this share of the images again with libpng, and compare the pixels; such as 1% or 0.1%; default: none"},

    {OPT_SIZE, 0, "size", "N", NULL, "Images",
     "side of the output images in pixels; default 256 (1024 with --resize none)"},
    {OPT_RESIZE, 0, "resize", "METHOD", resample_names, NULL,
     "how to shrink images: bilinear (default; equal to Pillow and torchvision), area, lanczos or none"},
    {OPT_MAX_PIXELS, 0, "max-pixels", "N", NULL, NULL, "reject images with more pixels; default 64M"},
    {OPT_MAX_MEMORY, 0, "max-memory", "SIZE", NULL, NULL,
     "memory limit for unpacking an archive (.tar.xz); K, M or G; default 128M"},
    {OPT_MIN_SIZE, 0, "min-size", "N", NULL, NULL, "reject images with a smaller side; default 64"},
    {FLAG(convert.spec.limits.lenient), 0, "lenient", NULL, NULL, NULL,
     "keep an image whose pixels are complete although its file is truncated after them"},

    {OPT_VIEW, 0, "view", "LIST", NULL, "Selection", "convert only these views: PA, AP or PA,AP; default all"},
    {OPT_WHERE, 0, "where", "TERMS", NULL, NULL,
     "convert only images that match one of these terms, separated by commas: Mass, Mass=0, No_Finding, view=PA, "
     "sex=F, "
     "age=40-59, patient=ID, name=NAME, split=test; if repeated, each of them"},
    {TEXT(convert.exclude), 0, "exclude", "FILE", NULL, NULL, "leave out the images named in this list or CSV"},
    {FLAG(convert.allow_missing), 0, "allow-missing", NULL, NULL, NULL, "leave out rows whose image is missing"},
    {OPT_FINDINGS, 0, "findings", "LIST", NULL, NULL,
     "the labels of a record: nih14 (default), nih15, cxr-lt, cxr-lt-2024, chexpert, padchest-top, a file with one "
     "name in each line, or NAME,NAME..."},
    {CHOICE(convert.unknown), 0, "unknown", "HOW", unknown_names, NULL,
     "unknown labels: mask (default; store 255, which loss and metrics leave out), zero, one, or reject the row"},
    {FLAG(convert.empty_is_no_finding), 0, "empty-is-no-finding", NULL, NULL, NULL,
     "treat an empty label as No Finding"},
    {OPT_ALLOW_REJECTS, 0, "allow-rejects", "N|P%", NULL, NULL,
     "exit with 0 if at most this many images are damaged: a number or per cent; default 0.  More than 1 % (and 20) "
     "end the run early"},
    {FLAG(convert.strict), 0, "strict", NULL, NULL, NULL, "stop at the first damaged image"},

    {OPT_SPLIT, 0, "split", "RULE", NULL, "Split and shards",
     "how to divide the patients among splits: official, patient:70,10,20[:SEED], file:PATH or none; default "
     "official if both lists are found, otherwise patient:70,10,20"},
    {TEXT(convert.lists), 0, "lists", "DIR", NULL, NULL,
     "folder of train_val_list.txt and test_list.txt; default: the folder of the label file"},
    {FLAG(convert.allow_leak), 0, "allow-leak", NULL, NULL, NULL,
     "convert a split that has a patient in two splits; all results of chex-train with it are marked leaky"},
    {OPT_SHARD_SIZE, 0, "shard-size", "N", NULL, NULL, "records in a shard; default 256"},
    {CHOICE(convert.spec.tail), 0, "tail", "HOW", tail_names, NULL,
     "how to end the last shard of a split: pad (default; with records of weight 0), short or drop"},
    {OPT_SEED, 0, "seed", "N", NULL, NULL, "seed of the order within a split; default 0"},
    {OPT_ALIGN, 0, "align", "N", CLI_NAMES("64", "512", "4096"), NULL,
     "round the size of a record up to a multiple of this; default 64"},
    {OPT_INDEX, 0, "index", "KIND", CLI_NAMES("dali", "none"), NULL,
     "write an index file next to each shard: dali or none (default)"},
    {0, 0, NULL, NULL, NULL, NULL, NULL},
};

static enum chex_status
add_input(struct convert_cli *cli, const char *path, struct chex_error *err)
{
    const char **grown = array_grow(cli->inputs, &cli->input_capacity, cli->convert.input_count, sizeof(*grown));

    if (!grown)
        return error_memory(err);
    cli->inputs = grown;
    cli->inputs[cli->convert.input_count++] = path;
    cli->convert.inputs = cli->inputs;
    return CHEX_OK;
}

/* Parses "P1,P2": texts of letters, digits and "._-", which may be empty. */
static enum chex_status
set_id_prefix(struct convert_cli *cli, const char *value, struct chex_error *err)
{
    size_t count = 0, most = strlen(value) + 1;
    char *text = strdup(value), *next = text;
    const char **list = calloc(most, sizeof(*list));
    bool good = true;

    free(cli->id_prefix);
    free(cli->prefixes);
    cli->id_prefix = text;
    cli->prefixes = list;
    cli->convert.id_prefix = list;
    cli->convert.id_prefix_count = 0;
    if (!text || !list)
        return error_memory(err);
    for (; next; count++) {
        list[count] = strsep(&next, ",");
        good = good && strlen(list[count]) <= ID_PREFIX_MAX &&
               list[count][strspn(list[count], ID_PREFIX_LETTERS)] == '\0';
    }
    cli->convert.id_prefix_count = count;
    if (!good)
        return error_set(err, CHEX_ERR_USAGE,
                         "takes prefixes separated by commas, each of at most %d letters, digits and '.', '_', '-', "
                         "not '%s'",
                         ID_PREFIX_MAX, value);
    return CHEX_OK;
}

/* Parses "PA", "AP" or "PA,AP": words of capital letters and digits. */
static enum chex_status
set_views(struct convert_options *o, const char *value, struct chex_error *err)
{
    size_t i, word = 0;

    for (i = 0;; i++) {
        char c = value[i];

        if (c == ',' || c == '\0') {
            if (word == 0 || word > 7)
                break;
            word = 0;
            if (c == '\0') {
                o->views = value;
                return CHEX_OK;
            }
        } else if ((c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) {
            word++;
        } else {
            break;
        }
    }
    return error_set(err, CHEX_ERR_USAGE, "takes views such as PA or PA,AP, not '%s'", value);
}

static enum chex_status
set_allowed_rejects(struct convert_options *o, const char *value, struct chex_error *err)
{
    size_t length = strlen(value);
    uint64_t number;
    char digits[8];
    enum chex_status status;

    /* The last option on the command line wins. */
    o->allow_rejects = o->allow_reject_percent = 0;
    if (length > 1 && length < sizeof(digits) && value[length - 1] == '%') {
        memcpy(digits, value, length - 1);
        digits[length - 1] = '\0';
        status = cli_number(digits, 0, 100, &number, NULL);
        if (status == CHEX_OK)
            o->allow_reject_percent = (unsigned)number;
    } else {
        status = cli_number(value, 0, 1000000000, &o->allow_rejects, NULL);
    }
    return status == CHEX_OK
               ? status
               : error_set(err, CHEX_ERR_USAGE, "takes a number or whole per cent such as 2%%, not '%s'", value);
}

static enum chex_status
set_number(uint32_t *out, const char *value, uint64_t min, uint64_t max, struct chex_error *err)
{
    uint64_t number;
    enum chex_status status = cli_number(value, min, max, &number, err);

    if (status == CHEX_OK)
        *out = (uint32_t)number;
    return status;
}

/* Parses "3/16". */
static enum chex_status
set_part(struct part *out, const char *value, struct chex_error *err)
{
    const char *slash = strchr(value, '/');
    size_t length = slash ? (size_t)(slash - value) : 0;
    uint64_t index, count;
    char digits[8];

    if (length > 0 && length < sizeof(digits)) {
        memcpy(digits, value, length);
        digits[length] = '\0';
        if (cli_number(slash + 1, 1, PART_MAX, &count, NULL) == CHEX_OK &&
            cli_number(digits, 1, count, &index, NULL) == CHEX_OK) {
            *out = (struct part){(unsigned)index - 1, (unsigned)count};
            return CHEX_OK;
        }
    }
    return error_set(err, CHEX_ERR_USAGE, "takes a part such as 3/16, of at most %d, not '%s'", PART_MAX, value);
}

/* Applies the options of images, split and shards, which all belong to the specification. */
static enum chex_status
apply_spec(struct convert_cli *cli, int id, const char *value, struct chex_error *err)
{
    struct spec *spec = &cli->convert.spec;

    switch (id) {
    case OPT_SIZE:
        cli->convert.size_given = true;
        return set_number(&spec->size, value, 1, RECORD_MAX_SIDE, err);
    case OPT_RESIZE:
        cli->convert.resize_given = true;
        spec->resize = (enum resample_method)name_index(resample_names, value);
        return CHEX_OK;
    case OPT_MAX_PIXELS:
        return cli_count(value, 1, (uint64_t)1 << 32, &spec->limits.max_pixels, err);
    case OPT_MIN_SIZE:
        return set_number(&spec->limits.min_side, value, 1, RECORD_MAX_SIDE, err);
    case OPT_SPLIT:
        cli->convert.split_given = true;
        return split_rule_parse(value, &spec->split, err);
    case OPT_SHARD_SIZE:
        return set_number(&spec->shard_size, value, 1, 65536, err);
    case OPT_SEED:
        return cli_number(value, 0, INT64_MAX, &spec->seed, err);
    case OPT_ALIGN:
        return set_number(&spec->align, value, 64, 4096, err);
    default:
        return error_set(err, CHEX_ERR_BUG, "option %d is in no table", id);
    }
}

static enum chex_status
apply(void *options, const struct cli_option *option, const char *value, struct chex_error *err)
{
    struct convert_cli *cli = options;
    struct convert_options *o = &cli->convert;

    /* The shell expands -i images_*.tar.gz to one value and operands. */
    if (!option)
        return add_input(cli, value, err);
    switch (option->id) {
    case OPT_INPUT:
        return add_input(cli, value, err);
    case OPT_LABEL_KIND:
        o->label_kind = label_kind_named(value);
        break;
    case OPT_COLUMNS:
        columns_file_free(cli->columns);
        return columns_file_read(value, &cli->columns, err);
    case OPT_FINDINGS:
        findings_release(&o->findings);
        return findings_choose(value, &o->findings, err);
    case OPT_ID_PREFIX:
        return set_id_prefix(cli, value, err);
    case OPT_VIEW:
        return set_views(o, value, err);
    case OPT_WHERE:
        return where_add(&o->where, value, err);
    case OPT_ALLOW_REJECTS:
        return set_allowed_rejects(o, value, err);
    case OPT_CROSS_CHECK:
        return cli_percent(value, &o->cross_check, err);
    case OPT_MAX_MEMORY:
        return cli_count(value, 1 << 20, UINT64_C(1) << 40, &o->max_memory, err);
    case OPT_INDEX:
        o->index_dali = strcmp(value, "dali") == 0;
        break;
    case OPT_LIMIT:
        return cli_number(value, 1, 1000000000, &cli->limit, err);
    case OPT_PART:
        return set_part(&o->part, value, err);
    default:
        return apply_spec(cli, option->id, value, err);
    }
    return CHEX_OK;
}

static const struct cli_words words[] = {
    {"view", true, CLI_NAMES("PA", "AP")},
    {"split", false, CLI_NAMES("official", "none")},
    {"where", true,
     CLI_NAMES("Atelectasis", "Cardiomegaly", "Effusion", "Infiltration", "Mass", "Nodule", "Pneumonia", "Pneumothorax",
               "Consolidation", "Edema", "Emphysema", "Fibrosis", "Pleural_Thickening", "Hernia", "No_Finding",
               "view=PA", "view=AP", "sex=F", "sex=M", "age=", "patient=", "name=", "split=")},
    {NULL, false, NULL},
};

/* Option names of img2dataset and torchvision. */
static const struct cli_alias aliases[] = {
    {"csv", "labels"},      {"csv-file", "labels"}, {"image-dir", "input"}, {"image-folder", "input"},
    {"image-size", "size"}, {"images", "input"},    {"img-size", "size"},   {"label-file", "labels"},
    {"overwrite", "force"}, {"resolution", "size"}, {NULL, NULL},
};

const struct cli_program convert_program = {
    .name = "chex-convert",
    .summary = "decode chest X-rays and their labels once, into TFRecord shards",
    .usage = "-i PATH... [-l LABELS] -o DIR [OPTION...]\n-i PATH... [-l LABELS] --profile [-j 1..N] "
             "[OPTION...]\n--withdraw PATIENT|FILE SHARDS [-n]",
    .examples = "chex-convert -i images -l Data_Entry_2017_v2020.csv -o shards\n"
                "chex-convert -i images -l Data_Entry_2017_v2020.csv -o shards --dry-run\n"
                "chex-convert -i images_*.tar.gz -l Data_Entry_2017_v2020.csv -o shards\n"
                "chex-convert -i shards --size 128 -o small\n"
                "chex-convert -i site1 -i site2 --id-prefix a-,b- -o merged\n"
                "chex-convert --withdraw 00000013 shards\n"
                "chex-convert -i shards --where sex=F --where Mass,Nodule -o subset\n"
                "chex-convert -i images_001 -l Data_Entry_2017.csv -o part --allow-missing\n"
                "chex-convert -i images -l Data_Entry_2017.csv --profile -j 1..8\n"
                "chex-inspect check --full shards",
    .notes = "The same command again resumes a run that was stopped or killed.",
    .options = option_table,
    .words = words,
    .aliases = aliases,
    .threads = true,
    .ranges = true,
    .progress = true,
    .apply = apply,
};

struct convert_cli
convert_cli_default(void)
{
    return (struct convert_cli){.convert = {.spec = spec_default()}};
}

void
convert_cli_release(struct convert_cli *cli)
{
    free(cli->inputs);
    free(cli->prefixes);
    free(cli->id_prefix);
    cli->inputs = cli->prefixes = NULL;
    cli->id_prefix = NULL;
    findings_release(&cli->convert.findings);
    columns_file_free(cli->columns);
}

/* --withdraw takes the folder of a data set as its operand, and few other options. */
static enum chex_status
check_withdraw(struct convert_cli *cli, struct chex_error *err)
{
    struct convert_options *o = &cli->convert;
    const char *other = cli->profile            ? "--profile"
                        : cli->columns          ? "--columns"
                        : o->label_kind         ? "--label-kind"
                        : o->labels             ? "--labels"
                        : o->out                ? "--output"
                        : o->force              ? "--force"
                        : o->repair             ? "--repair"
                        : o->part.count > 0     ? "--part"
                        : o->verify             ? "--verify"
                        : o->cross_check > 0    ? "--cross-check"
                        : o->size_given         ? "--size"
                        : o->resize_given       ? "--resize"
                        : o->split_given        ? "--split"
                        : o->lists              ? "--lists"
                        : o->id_prefix_count    ? "--id-prefix"
                        : o->same_patients      ? "--same-patients"
                        : o->exclude            ? "--exclude"
                        : o->views              ? "--view"
                        : o->where.count > 0    ? "--where"
                        : o->findings.count > 0 ? "--findings"
                        : o->index_dali         ? "--index"
                                                : NULL;

    if (other)
        return error_set(err, CHEX_ERR_USAGE, "%s is for a conversion: not with --withdraw", other);
    if (o->input_count != 1)
        return error_set(err, CHEX_ERR_USAGE, "--withdraw changes one data set: give its folder, not %zu paths",
                         o->input_count);
    o->out = cli->inputs[0];
    return CHEX_OK;
}

/* Checks the options of --profile, which writes nothing. */
static enum chex_status
check_profile(const struct convert_cli *cli, struct chex_error *err)
{
    const struct convert_options *o = &cli->convert;
    const char *other = cli->dry_run         ? "--dry-run"
                        : o->force           ? "--force"
                        : o->repair          ? "--repair"
                        : o->part.count > 0  ? "--part"
                        : o->verify          ? "--verify"
                        : o->cross_check > 0 ? "--cross-check"
                        : o->index_dali      ? "--index"
                        : o->strict          ? "--strict"
                                             : NULL;

    if (!cli->profile)
        return cli->limit > 0 ? error_set(err, CHEX_ERR_USAGE, "--limit goes with --profile") : CHEX_OK;
    if (other)
        return error_set(err, CHEX_ERR_USAGE, "%s is for a conversion: not with --profile, which writes nothing",
                         other);
    return CHEX_OK;
}

enum chex_status
convert_cli_check(struct convert_cli *cli, struct chex_error *err)
{
    struct convert_options *o = &cli->convert;

    if (cli->withdraw)
        return check_withdraw(cli, err);
    if (o->input_count == 0)
        return error_set(err, CHEX_ERR_USAGE, "no images: give a folder or an archive with -i");
    if (!o->out && !cli->profile)
        return error_set(err, CHEX_ERR_USAGE, "no output folder: give one with -o");
    if (check_profile(cli, err) != CHEX_OK)
        return err->status;
    if (cli->columns && o->label_kind)
        return error_set(err, CHEX_ERR_USAGE,
                         "--columns describes a label file, --label-kind names one: use one of them");
    if (cli->columns)
        o->label_kind = cli->columns;
    if (o->part.count > 0 && o->force)
        return error_set(err, CHEX_ERR_USAGE,
                         "--force with --part: each part would remove the work of the others; empty the folder first");
    if (o->repair && o->force)
        return error_set(err, CHEX_ERR_USAGE, "--repair keeps what is good, --force nothing: use one of them");
    if (o->spec.resize == RESAMPLE_NONE && !o->size_given)
        o->spec.size = 1024;
    return CHEX_OK;
}

void
convert_cli_suggest(const struct convert_cli *cli, struct chex_error *err)
{
    const struct convert_options *o = &cli->convert;
    size_t i;

    for (i = 0; i < o->input_count; i++)
        cli_suggest_path(err, o->inputs[i]);
    cli_suggest_path(err, o->labels);
    cli_suggest_path(err, o->exclude);
    if (o->spec.split.kind == SPLIT_FILE)
        cli_suggest_path(err, o->spec.split.path);
}
