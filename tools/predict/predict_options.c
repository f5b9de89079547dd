/*
 * predict_options.c - see predict_options.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "predict/predict_options.h"

#include "base/ascii.h"
#include "common/shell_word.h"
#include "draw/canvas.h"
#include "io/file.h"
#include "labels/box_list.h"
#include "log/run_file.h"
#include "plan/plan.h"
#include "run/trainer.h"
#include "train/backends.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX ".safetensors"

enum {
    OPT_OPERAND,
    OPT_SPLIT,
    OPT_NAME_PARTS,
    OPT_PART,
    OPT_MAX_PIXELS,
    OPT_SIZE,
    OPT_RESIZE,
    OPT_MICRO_BATCH,
    OPT_MAP_SCALE,
    OPT_BOX_SIZE
};

#define FLAG(member)   CLI_FLAG(struct predict_options, member)
#define TEXT(member)   CLI_TEXT(struct predict_options, member)
#define CHOICE(member) CLI_CHOICE(struct predict_options, member)

static const struct cli_option option_table[] = {
    {TEXT(out), 'o', "output", "DIR", NULL, "Input and output",
     "folder for predictions.csv, predictions.json and refused.csv; made if missing; default: only the CSV, on "
     "standard "
     "output"},
    {FLAG(force), 'f', "force", NULL, NULL, NULL, "replace an earlier result in this folder"},
    {FLAG(break_lock), 0, "break-lock", NULL, NULL, NULL, "take over a folder whose owner on another host is dead"},
    {TEXT(split), 0, "split", "NAME", NULL, NULL, "score only this split of the data sets; default: all images"},
    {OPT_PART, 0, "part", "I/N", NULL, NULL, "score only part I of N (every N-th image, by name), for job arrays"},
    {OPT_NAME_PARTS, 0, "name-parts", "N", NULL, NULL,
     "components of a path that make the name of an image; default 1, without folders"},
    {FLAG(strict), 0, "strict", NULL, NULL, NULL,
     "refuse doubtful images: blank, coloured, longer than 1:2, smaller than the network's input"},
    {OPT_MAX_PIXELS, 0, "max-pixels", "N", NULL, NULL, "refuse images with more pixels; default 64M"},

    {TEXT(threshold), 0, "threshold", "WHICH", NULL, "Model and images",
     "thresholds of the flags: youden (default) or sens90, which were chosen on val, or a FILE with lines "
     "NAME,THRESHOLD"},
    {OPT_SIZE, 0, "size", "N", NULL, NULL,
     "side of the images that the model was trained with; default: as run.json of the model says"},
    {OPT_RESIZE, 0, "resize", "METHOD", resample_names, NULL,
     "how these images were shrunk: bilinear, area, lanczos or none; default: as run.json says, or bilinear"},
    {CHOICE(tta), 0, "tta", "NAME", tta_names, NULL, "views of each image to average: none (default), flip or tencrop"},
    {FLAG(maps), 0, "maps", NULL, NULL, NULL,
     "write class activation maps to DIR/maps: the numbers of all findings, and pictures of the flagged ones"},
    {TEXT(map_findings), 0, "finding", "LIST", NULL, NULL,
     "with --maps: pictures of these findings for each image, such as Mass,Effusion"},
    {FLAG(map_sheet), 0, "sheet", NULL, NULL, NULL,
     "with --maps, for data sets: a contact sheet of hits, false alarms and misses for each finding"},
    {OPT_MAP_SCALE, 0, "map-scale", "N", NULL, NULL, "with --maps: logits at the strongest colour; default 10"},
    {TEXT(boxes), 0, "boxes", "FILE", NULL, NULL,
     "compare maps with a list of boxes, BBox_List_2017.csv: writes boxes.csv and boxes.json"},
    {OPT_BOX_SIZE, 0, "box-size", "N", NULL, NULL,
     "with --boxes: the list is in pixels of N x N; default: those of each file, and 1024 for a data set"},
    {TEXT(export), 0, "export", "FILE", NULL, NULL,
     "score nothing: write the model of RUN to this file in ONNX format, with the normalisation inside"},

    {TEXT(device), 0, "device", "NAME", CLI_NAMES("auto", BACKEND_NAMES), "Machine",
     "device to compute on: " BACKEND_HELP},
    {CHOICE(precision), 0, "precision", "NAME", precision_names, NULL,
     "number format of the computation: auto (default; fp32 on a CPU, fp16 on a GPU), fp32, tf32, fp16 or bf16"},
    {OPT_MICRO_BATCH, 0, "micro-batch", "N", NULL, NULL,
     "images computed at once; changes no result; default: 16 on a CPU, 64 on a GPU"},
    {0, 0, NULL, NULL, NULL, NULL, NULL},
};

static enum chex_status
set_number(const char *value, uint64_t most, unsigned *out, struct chex_error *err)
{
    uint64_t number = 0;
    enum chex_status status = cli_number(value, 1, most, &number, err);

    *out = (unsigned)number;
    return status;
}

/* Parses "3/16". */
static enum chex_status
set_part(const char *value, struct part *out, struct chex_error *err)
{
    const char *slash = strchr(value, '/');
    char index[8] = "";
    uint64_t i = 0, n = 0;

    if (slash && (size_t)(slash - value) < sizeof(index))
        memcpy(index, value, (size_t)(slash - value));
    if (!slash || cli_number(slash + 1, 1, PART_MAX, &n, NULL) != CHEX_OK ||
        cli_number(index, 1, n, &i, NULL) != CHEX_OK)
        return error_set(err, CHEX_ERR_USAGE, "takes I/N with I from 1 to N, such as 3/16, not '%s'", value);
    *out = (struct part){(unsigned)i - 1, (unsigned)n};
    return CHEX_OK;
}

static enum chex_status
add_operand(struct predict_options *o, const char *value, struct chex_error *err)
{
    const char **grown = array_grow(o->operand, &o->operand_capacity, o->operands, sizeof(*o->operand));

    if (!grown)
        return error_memory(err);
    o->operand = grown;
    o->operand[o->operands++] = value;
    return CHEX_OK;
}

static enum chex_status
apply(void *into, const struct cli_option *option, const char *value, struct chex_error *err)
{
    struct predict_options *o = into;

    switch (option ? option->id : OPT_OPERAND) {
    case OPT_OPERAND:
        return add_operand(o, value, err);
    case OPT_NAME_PARTS:
        return set_number(value, 16, &o->name_parts, err);
    case OPT_PART:
        return set_part(value, &o->part, err);
    case OPT_MAX_PIXELS:
        return cli_count(value, 1, (uint64_t)1 << 32, &o->max_pixels, err);
    case OPT_SIZE:
        return set_number(value, RECORD_MAX_SIDE, &o->size, err);
    case OPT_MAP_SCALE:
        return set_number(value, 1000, &o->map_scale, err);
    case OPT_BOX_SIZE:
        return set_number(value, BOX_LIST_FAR, &o->box_size, err);
    case OPT_MICRO_BATCH:
        return set_number(value, 4096, &o->micro_batch, err);
    default:
        o->resize = name_index(resample_names, value);
        return CHEX_OK;
    }
}

static const struct cli_alias aliases[] = {
    {"batch", "micro-batch"},
    {"batch-size", "micro-batch"},
    {NULL, NULL},
};

static const struct cli_words words[] = {
    {"threshold", false, CLI_NAMES("youden", "sens90")},
    {"split", false, CLI_NAMES("train", "val", "test")},
    {NULL, false, NULL},
};

const struct cli_program predict_program = {
    .name = "chex-predict",
    .summary = "score chest X-rays with a trained network",
    .usage = "RUN... PATH... [OPTION...]",
    .examples = "chex-predict runs/a scans more.tar.gz -o out\n"
                "chex-predict runs/a image.png\n"
                "chex-predict runs/a shards --split test -o out\n"
                "chex-predict runs/a scans --maps -o out\n"
                "# the mean of three networks\n"
                "chex-predict runs/a runs/b runs/c scans -o out\n"
                "# for another runtime\n"
                "chex-predict runs/a --export model.onnx",
    .notes = "A RUN is a folder of chex-train, or one of its .safetensors files.  A PATH is a\n"
             "folder, a PNG or JPEG file, an archive, or a data set of chex-convert.\n"
             "Research use only, not for diagnosis.",
    .exits = "  0   all images were scored\n"
             "  1   some images were refused, or an archive is damaged; the others were scored\n"
             "      (or a box of --boxes reaches beyond its image)\n"
             "  2   usage\n"
             "  3   an input is missing, unreadable or damaged\n"
             "  4   writing failed, or out of memory\n"
             "  5   another process writes to this folder\n"
             "  6   an input does not fit, such as a model of another program\n"
             "  70  a bug\n"
             "  75  stopped by a signal; no result was written\n",
    .options = option_table,
    .words = words,
    .aliases = aliases,
    .threads = true,
    .progress = true,
    .apply = apply,
};

struct predict_options
predict_options_default(void)
{
    return (struct predict_options){
        .max_pixels = spec_default().limits.max_pixels, .name_parts = 1, .resize = -1, .device = "auto"};
}

void
predict_options_release(struct predict_options *o)
{
    free(o->operand);
    free(o->run);
    free(o->path);
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

/* Returns whether the folder contains this file. */
static bool
has_file(const char *folder, const char *name)
{
    char path[PATH_MAX];
    int used = snprintf(path, sizeof(path), "%s/%s", folder, name);

    return used > 0 && (size_t)used < sizeof(path) && access(path, F_OK) == 0;
}

static bool
is_run(const char *path)
{
    size_t length = strlen(path);
    struct stat st;

    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return length > strlen(SUFFIX) && strcmp(path + length - strlen(SUFFIX), SUFFIX) == 0;
    return has_file(path, TRAINER_BEST) || has_file(path, RUN_FILE_NAME);
}

/* Refuse a DICOM file.  DCMTK's dcmj2pnm(1) applies its window, so the PNG has 16 bits from black to white. */
static enum chex_status
refuse_dicom(const char *path, struct chex_error *err)
{
    char magic[4] = "", word[SHELL_WORD];
    uint64_t size;
    size_t got = 0;
    int fd;

    if (file_open(AT_FDCWD, path, &fd, &size, NULL) != CHEX_OK)
        return CHEX_OK; /* the scan of the inputs says why */
    (void)file_pread(fd, 128, magic, sizeof(magic), &got, NULL);
    close(fd);
    if (got < sizeof(magic) || memcmp(magic, "DICM", sizeof(magic)) != 0)
        return CHEX_OK;
    return error_set(err, CHEX_ERR_INCOMPATIBLE, "'%s' is DICOM; " DICOM_HINT, path, shell_word(path, word));
}

/* Returns the first given option that is only about scores, or NULL. */
static const char *
option_of_scores(const struct predict_options *o)
{
    const struct predict_options defaults = predict_options_default();
    const struct {
        bool given;
        const char *name;
    } options[] = {
        {o->force, "--force"},
        {o->break_lock, "--break-lock"},
        {o->split != NULL, "--split"},
        {o->part.count > 0, "--part"},
        {o->name_parts != defaults.name_parts, "--name-parts"},
        {o->strict, "--strict"},
        {o->max_pixels != defaults.max_pixels, "--max-pixels"},
        {o->tta != defaults.tta, "--tta"},
        {o->maps, "--maps"},
        {o->map_findings != NULL, "--finding"},
        {o->map_sheet, "--sheet"},
        {o->map_scale > 0, "--map-scale"},
        {o->boxes != NULL, "--boxes"},
        {o->box_size > 0, "--box-size"},
    };
    size_t i;

    for (i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        if (options[i].given)
            return options[i].name;
    return NULL;
}

/* An export is of one model, and scores nothing. */
static enum chex_status
check_export(const struct predict_options *o, struct chex_error *err)
{
    const char *option = option_of_scores(o);

    if (o->paths > 0)
        return error_set(err, CHEX_ERR_USAGE, "--export scores no images, and '%s' is not a run", o->path[0]);
    if (o->runs > 1)
        return error_set(err, CHEX_ERR_USAGE, "--export writes one model, not %zu", o->runs);
    if (!picture_name_ends(o->export, ".onnx"))
        return error_set(err, CHEX_ERR_USAGE, "--export '%s': the name must end in .onnx", o->export);
    if (o->out)
        return error_set(err, CHEX_ERR_USAGE, "--export writes only its file: give no --output");
    if (option)
        return error_set(err, CHEX_ERR_USAGE, "--export scores no images: give no %s", option);
    return CHEX_OK;
}

enum chex_status
predict_sort_operands(struct predict_options *o, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    size_t i;

    o->run = calloc(o->operands + 1, sizeof(*o->run));
    o->path = calloc(o->operands + 1, sizeof(*o->path));
    if (!o->run || !o->path)
        return error_memory(err);
    for (i = 0; i < o->operands; i++) {
        if (is_run(o->operand[i]))
            o->run[o->runs++] = o->operand[i];
        else
            o->path[o->paths++] = o->operand[i];
    }
    if (o->runs == 0)
        return error_set(err, CHEX_ERR_USAGE,
                         "no model: name the folder of a run of chex-train, or a .safetensors file");
    if (o->export)
        return check_export(o, err);
    if (o->paths == 0)
        return error_set(err, CHEX_ERR_USAGE, "no images: name a folder, image, archive or data set after the run");
    for (i = 0; status == CHEX_OK && i < o->paths; i++)
        status = refuse_dicom(o->path[i], err);
    return status;
}
