/*
 * inspect_extract.c - --extract: one image as PNG or PGM; see inspect.h
 *
 * Both checksums of the record are checked first: a damaged image is not written.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect.h"

#include "ascii.h"
#include "png_memory.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- which record ---------------------------------------------------------------------------------------------- */

struct place {
    struct inspect *in; /* first: inspect_walk_fault() */
    const char *name;   /* looked for */
    bool found;
    unsigned shard;
    uint32_t index;
};

/* A number that is all of text[0 .. length - 1], at most 99999. */
static bool
small_number(const char *text, size_t length, uint32_t *out)
{
    size_t i;

    *out = 0;
    if (length == 0 || length > 5)
        return false;
    for (i = 0; i < length; i++) {
        if (!ascii_is_digit(text[i]))
            return false;
        *out = *out * 10 + (uint32_t)(text[i] - '0');
    }
    return true;
}

/* SHARD:INDEX, where SHARD is a file's name or its number over all splits.  False where the text has no such form. */
static bool
parse_place(const struct chex_dataset *ds, const char *text, struct place *p)
{
    const char *colon = strrchr(text, ':');
    uint32_t number;
    unsigned i;

    if (!colon || !small_number(colon + 1, strlen(colon + 1), &p->index))
        return false;
    if (small_number(text, (size_t)(colon - text), &number)) {
        p->shard = number;
        return true;
    }
    for (i = 0; i < ds->info.shard_count; i++) {
        if (strlen(ds->shard[i].name) == (size_t)(colon - text) &&
            strncmp(ds->shard[i].name, text, (size_t)(colon - text)) == 0) {
            p->shard = i;
            return true;
        }
    }
    return false;
}

static enum chex_status
on_record(void *context, const struct walk_record *r, struct chex_error *err)
{
    struct place *p = context;

    if (r->values->weight != 1 || r->values->name.size != strlen(p->name) ||
        memcmp(r->values->name.data, p->name, r->values->name.size) != 0)
        return CHEX_OK;
    p->found = true;
    p->shard = r->shard;
    p->index = r->index;
    return chex_fail(err, CHEX_ERR_STOPPED, "found");
}

static enum chex_status
find_place(struct place *p, const struct target *t, struct chex_error *err)
{
    struct walk w = {.target = t, .record = on_record, .fault = inspect_walk_fault, .context = p, .threads = 1};
    const struct chex_shard_info *info;
    enum chex_status status;

    if (parse_place(t->dataset, p->name, p)) {
        info = chex_dataset_shard(t->dataset, p->shard);
        if (!info || p->index >= info->record_count)
            return chex_fail(err, CHEX_ERR_MISSING, "'%s' has no record '%s'", t->path, p->name);
        return CHEX_OK;
    }
    status = walk_run(&w, err);
    if (p->found || (status != CHEX_OK && status != CHEX_ERR_STOPPED))
        return p->found ? CHEX_OK : status;
    return chex_fail(err, CHEX_ERR_MISSING, "'%s' has no image '%s'", t->path, p->name);
}

/* ---- formats --------------------------------------------------------------------------------------------------- */

/* In a function of its own, with nothing that longjmp() could spoil. */
static void
encode_png(png_structp png, png_infop info, const struct chex_record *r)
{
    uint32_t y;

    if (setjmp(png_jmpbuf(png)))
        return;
    png_set_IHDR(png, info, r->width, r->height, 8, PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    for (y = 0; y < r->height; y++)
        png_write_row(png, r->pixels + (size_t)y * r->width);
    png_write_end(png, NULL);
}

static enum chex_status
write_png(const struct chex_record *r, struct buffer *out, struct chex_error *err)
{
    struct png_memory m;

    if (png_memory_begin(&m, out, err) == CHEX_OK)
        encode_png(m.png, m.info, r);
    return png_memory_end(&m);
}

static enum chex_status
write_pgm(const struct chex_record *r, struct buffer *out, struct chex_error *err)
{
    char head[64];
    int length = snprintf(head, sizeof(head), "P5\n%u %u\n255\n", r->width, r->height);
    enum chex_status status = buffer_append(out, head, (size_t)length, err);

    return status == CHEX_OK ? buffer_append(out, r->pixels, (size_t)r->height * r->width, err) : status;
}

static bool
ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);

    return length > end_length && ascii_same(text + length - end_length, end_length, end, end_length);
}

/* ---- output ---------------------------------------------------------------------------------------------------- */

static enum chex_status
write_image(const char *output, const struct chex_record *r, struct chex_error *err)
{
    struct buffer out = {0};
    enum chex_status status = ends_with(output, ".pgm") ? write_pgm(r, &out, err) : write_png(r, &out, err);

    if (status == CHEX_OK && strcmp(output, "-") == 0)
        fwrite(out.data, 1, out.size, stdout); /* cli_finish() notices a failure */
    else if (status == CHEX_OK)
        status = inspect_put_file(output, &out, err);
    buffer_release(&out);
    return status;
}

static enum chex_status
read_record(const struct chex_dataset *ds, const struct place *p, struct buffer *b, struct chex_record *out,
            struct chex_error *err)
{
    struct chex_shard *shard;
    enum chex_status status = buffer_reserve(b, ds->info.stride, err);

    if (status == CHEX_OK)
        status = chex_shard_open(ds, p->shard, &shard, err);
    if (status != CHEX_OK)
        return status;
    status = chex_shard_read(shard, p->index, 1, b->data, err);
    if (status == CHEX_OK) {
        status = chex_record_view(ds, p->shard, p->index, b->data, true, out, err);
        if (status != CHEX_OK) {
            /* A record of another place is a fault of the data here, as it is for --full. */
            status = CHEX_ERR_DAMAGED;
            chex_context(err, status, "'%s' record %u", ds->shard[p->shard].name, p->index);
        }
    }
    chex_shard_close(shard);
    return status;
}

static void
report(struct inspect *in, const struct target *t, const struct chex_record *r)
{
    char name[INSPECT_TEXT], patient[INSPECT_TEXT], labels[INSPECT_LABELS_TEXT];
    const struct chex_shard_info *shard = chex_dataset_shard(t->dataset, r->shard);
    const char *output = in->options->output;
    uint16_t findings = 0;
    unsigned i;

    for (i = 0; i < CHEX_FINDINGS; i++)
        findings |= (uint16_t)(r->label[i] << i);
    if (in->common->json)
        inspect_json_add(in, json_pack("{s:o, s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:i}", "path",
                                       inspect_json_text((struct chex_bytes){t->path, strlen(t->path)}), "output",
                                       inspect_json_text((struct chex_bytes){output, strlen(output)}), "split",
                                       t->dataset->split[shard->split].name, "shard", shard->name, "index",
                                       inspect_number(r->index), "name", inspect_json_text(r->name), "patient",
                                       inspect_json_text(r->patient), "labels", inspect_json_labels(findings), "weight",
                                       (int)r->weight));
    else if (!in->common->quiet)
        fprintf(stderr, "%s: %s, patient %s, %s, %ux%u, from %s:%u%s\n",
                strcmp(output, "-") == 0 ? "standard output" : output, inspect_text(r->name, name),
                inspect_text(r->patient, patient), inspect_labels_text(findings, labels), r->width, r->height,
                shard->name, r->index, r->weight ? "" : " (filling: a copy)");
}

int
inspect_extract(struct inspect *in, struct target *t)
{
    struct place place = {.in = in, .name = in->options->extract};
    struct buffer b = {0};
    struct chex_record r;
    struct chex_error err;
    int code = EXIT_GOOD;
    enum chex_status status = find_place(&place, t, &err);

    if (status == CHEX_OK)
        status = read_record(t->dataset, &place, &b, &r, &err);
    if (status == CHEX_OK)
        status = write_image(in->options->output, &r, &err);
    if (status == CHEX_OK)
        report(in, t, &r);
    else
        code = inspect_fail(in, t->path, &err);
    buffer_release(&b);
    return code;
}
