/*
 * extract.c - the command `extract`: writes one image as PNG or PGM; see inspect/command.h
 *
 * The command first checks both checksums of the record and never writes a damaged image.  The text chunks of a PNG
 * hold the fields of the record.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/command.h"

#include "draw/canvas.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- formats ----------------------------------------------------------------------------------------------------- */

/* Returns the text unchanged if a text chunk can hold it, otherwise with escapes. */
static char *
note_text(struct chex_bytes text, char out[INSPECT_TEXT])
{
    json_t *utf8 = json_stringn(text.data, text.size);
    bool plain = utf8 != NULL;
    size_t i;

    json_decref(utf8);
    for (i = 0; i < text.size; i++)
        plain = plain && (unsigned char)text.data[i] >= 0x20 && text.data[i] != 0x7f;
    if (!plain)
        return inspect_text(text, out);
    memcpy(out, text.data, text.size);
    out[text.size] = '\0';
    return out;
}

/* The keys are the fields of `list`. */
static enum chex_status
write_png(const struct chex_dataset *ds, const struct chex_record *r, struct buffer *out, struct chex_error *err)
{
    char name[INSPECT_TEXT], patient[INSPECT_TEXT], view[INSPECT_TEXT], labels[INSPECT_LABELS_TEXT];
    char slot[RECORD_SLOT + 8], age[32] = "unknown", sex[2] = {r->sex, '\0'};
    const struct picture_note notes[] = {{"name", note_text(r->name, name)},
                                         {"patient", note_text(r->patient, patient)},
                                         {"labels", inspect_labels_text(&ds->manifest.findings, r->label, labels)},
                                         {"split", ds->split[ds->shard[r->shard].split].name},
                                         {"dataset", r->dataset_id},
                                         {"slot", slot},
                                         {"view", note_text(r->view, view)},
                                         {"age", age},
                                         {"sex", sex},
                                         {"weight", r->weight ? "1" : "0"},
                                         {"Software", "chex-tools " PACKAGE_VERSION},
                                         {"Comment", PICTURE_RESEARCH}};
    struct picture_spec spec = {.width = r->width,
                                .height = r->height,
                                .channels = 1,
                                .notes = notes,
                                .note_count = sizeof(notes) / sizeof(notes[0]),
                                .pixels = r->pixels};

    snprintf(slot, sizeof(slot), "%s/%05u/%05u", r->dataset_id, r->shard, r->index);
    if (!isnan(r->age))
        snprintf(age, sizeof(age), "%.9g", (double)r->age);
    return picture_png(&spec, out, err);
}

static enum chex_status
write_pgm(const struct chex_record *r, struct buffer *out, struct chex_error *err)
{
    char head[64];
    int length = snprintf(head, sizeof(head), "P5\n%u %u\n255\n", r->width, r->height);
    enum chex_status status = buffer_append(out, head, (size_t)length, err);

    return status == CHEX_OK ? buffer_append(out, r->pixels, (size_t)r->height * r->width, err) : status;
}

/* ---- output ------------------------------------------------------------------------------------------------------ */

static enum chex_status
write_image(const struct chex_dataset *ds, const char *output, const struct chex_record *r, struct chex_error *err)
{
    struct buffer out = {0};
    enum chex_status status = picture_name_ends(output, ".pgm") ? write_pgm(r, &out, err) : write_png(ds, r, &out, err);

    if (status == CHEX_OK && strcmp(output, "-") == 0)
        fwrite(out.data, 1, out.size, stdout); /* cli_finish() reports a write error */
    else if (status == CHEX_OK)
        status = inspect_put_file(output, &out, err);
    buffer_release(&out);
    return status;
}

static void
report(struct inspect *in, const struct target *t, const struct chex_record *r)
{
    char name[INSPECT_TEXT], patient[INSPECT_TEXT], labels[INSPECT_LABELS_TEXT];
    const struct chex_shard_info *shard = chex_dataset_shard(t->dataset, r->shard);
    const char *output = in->options->output;
    const struct findings *findings = &t->dataset->manifest.findings;

    if (in->common->json)
        inspect_json_add(in, json_pack("{s:o, s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:i}", "path", text_json(t->path),
                                       "output", text_json(output), "split", t->dataset->split[shard->split].name,
                                       "shard", shard->name, "index", count_json(r->index), "name",
                                       text_json_n(r->name.data, r->name.size), "patient",
                                       text_json_n(r->patient.data, r->patient.size), "labels",
                                       inspect_json_labels(findings, r->label), "weight", (int)r->weight));
    else if (!in->common->quiet)
        printable_line(stderr, "%s: %s, patient %s, %s, %ux%u, from %s:%u%s",
                       strcmp(output, "-") == 0 ? "standard output" : output, inspect_text(r->name, name),
                       inspect_text(r->patient, patient), inspect_labels_text(findings, r->label, labels), r->width,
                       r->height, shard->name, r->index, r->weight ? "" : " (padding: a copy)");
}

static int
extract_image(struct inspect *in, struct target *t)
{
    unsigned shard;
    uint32_t index;
    struct buffer b = {0};
    struct chex_record r;
    struct chex_error err;
    int code = EXIT_GOOD;
    enum chex_status status = inspect_find_record(in, t, in->options->which, &shard, &index, &err);

    if (status == CHEX_OK)
        status = inspect_read_record(t->dataset, shard, index, &b, true, &r, &err);
    if (status == CHEX_OK)
        status = write_image(t->dataset, in->options->output, &r, &err);
    if (status == CHEX_OK)
        report(in, t, &r);
    else
        code = inspect_fail(in, t->path, &err);
    buffer_release(&b);
    return code;
}

/* ---- command line ------------------------------------------------------------------------------------------------ */

static enum chex_status
check_options(const struct inspect_options *o, const struct cli_common *common, struct chex_error *err)
{
    bool to_stdout = o->output && strcmp(o->output, "-") == 0;

    if (!o->output)
        return error_set(err, CHEX_ERR_USAGE, "'extract' needs -o FILE.png, FILE.pgm or -");
    if (!to_stdout && !picture_name_ends(o->output, ".png") && !picture_name_ends(o->output, ".pgm"))
        return error_set(err, CHEX_ERR_USAGE, "'%s': the name must end in .png or .pgm", o->output);
    if (to_stdout && common->json)
        return error_set(err, CHEX_ERR_USAGE, "--json and an image cannot both go to standard output");
    if (to_stdout && isatty(STDOUT_FILENO))
        return error_set(err, CHEX_ERR_USAGE, "standard output is a terminal: give -o FILE.png, or a pipe");
    return CHEX_OK;
}

static const struct cli_option options[] = {
    {AT_TEXT(output), 'o', "output", "FILE", NULL, NULL, "file to write: FILE.png, FILE.pgm, or - for PNG on stdout"},
    ROW_END,
};

const struct inspect_command inspect_extract_command = {
    .cli = {.name = "extract",
            .summary = "write one image, with its labels, to a file",
            .usage = "-o FILE.png|FILE.pgm|- PATH NAME|SHARD:INDEX",
            .examples = "chex-inspect extract -o x.png shards 00000013_004.png\n"
                        "chex-inspect extract -o - shards 0:2 | display -",
            .options = options},
    .action = INSPECT_EXTRACT,
    .min = 2,
    .max = 2,
    .operands = "a PATH and an image, NAME or SHARD:INDEX",
    .check = check_options,
    .each = extract_image,
};
