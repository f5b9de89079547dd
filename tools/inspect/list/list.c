/*
 * list.c - the command `list`: prints one line per record with fields separated by tabs; see inspect/command.h
 *
 * The first line names the fields.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/command.h"

#include "base/sha256.h"
#include "inspect/list/trained.h"

#include <math.h>
#include <string.h>

#define DEFAULT_FIELDS "slot,name,patient,labels"

enum field {
    FIELD_SLOT,
    FIELD_SPLIT,
    FIELD_SHARD,
    FIELD_INDEX,
    FIELD_NAME,
    FIELD_PATIENT,
    FIELD_LABELS,
    FIELD_WEIGHT,
    FIELD_AGE,
    FIELD_SEX,
    FIELD_VIEW,
    FIELD_SHA256,
    FIELD_COUNT
};

static const char *const field_names[FIELD_COUNT] = {"slot",   "split",  "shard", "index", "name", "patient",
                                                     "labels", "weight", "age",   "sex",   "view", "sha256"};

struct list {
    struct inspect *in;
    const struct chex_dataset *dataset;
    enum field field[FIELD_COUNT];
    unsigned count;
    bool hashed; /* sha256 is one of the fields */
    bool found;  /* the selection has an image */
    struct table_writer table;
    struct table_column columns[FIELD_COUNT + 1];
};

/* ---- --fields ---------------------------------------------------------------------------------------------------- */

static enum chex_status
add_field(struct list *l, const char *name, size_t length, struct chex_error *err)
{
    unsigned i, j;

    for (i = 0; i < FIELD_COUNT; i++) {
        if (strlen(field_names[i]) != length || strncmp(field_names[i], name, length) != 0)
            continue;
        for (j = 0; j < l->count; j++)
            if (l->field[j] == i)
                return error_set(err, CHEX_ERR_USAGE, "'%s' occurs twice", field_names[i]);
        l->field[l->count++] = (enum field)i;
        l->hashed |= i == FIELD_SHA256;
        return CHEX_OK;
    }
    return error_set(err, CHEX_ERR_USAGE,
                     "no field '%.*s'; there are slot, split, shard, index, name, patient, labels, weight, age, sex, "
                     "view, sha256",
                     (int)length, name);
}

static enum chex_status
parse_fields(struct list *l, const char *fields, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;

    for (;;) {
        size_t length = strcspn(fields, ",");

        status = add_field(l, fields, length, err);
        if (status != CHEX_OK || !fields[length])
            return status;
        fields += length + 1;
    }
}

bool
inspect_fields_known(const char *fields, struct chex_error *err)
{
    struct list l = {.count = 0};

    return parse_fields(&l, fields, err) == CHEX_OK;
}

/* ---- a record ---------------------------------------------------------------------------------------------------- */

/* Returns a field of a record; its text is in out or labels, or lives as long as the record. */
static struct cell
field_cell(const struct list *l, enum field field, const struct walk_record *r, const char *sha256,
           char out[INSPECT_TEXT], char labels[INSPECT_LABELS_TEXT])
{
    const struct record_values *v = r->values;
    const struct chex_bytes *bytes = field == FIELD_NAME ? &v->name : field == FIELD_PATIENT ? &v->patient : &v->view;
    bool json = l->table.format == TABLE_JSON || l->table.format == TABLE_JSONL;

    switch (field) {
    case FIELD_SLOT:
        snprintf(out, INSPECT_TEXT, "%s/%05u/%05u", v->dataset_id, v->shard, v->index);
        return cell_text(out);
    case FIELD_SPLIT:
        return cell_text(r->split);
    case FIELD_SHARD:
        return cell_text(l->dataset->shard[r->shard].name);
    case FIELD_INDEX:
        snprintf(out, INSPECT_TEXT, "%u", r->index);
        return cell_json(json ? count_json(r->index) : NULL, out);
    case FIELD_NAME:
    case FIELD_PATIENT:
    case FIELD_VIEW:
        return cell_json(json ? text_json_n(bytes->data, bytes->size) : NULL, inspect_text(*bytes, out));
    case FIELD_LABELS:
        return cell_json(json ? inspect_json_labels(&l->dataset->manifest.findings, v->label) : NULL,
                         inspect_labels_text(&l->dataset->manifest.findings, v->label, labels));
    case FIELD_WEIGHT:
        return cell_json(json ? count_json(v->weight) : NULL, v->weight ? "1" : "0");
    case FIELD_AGE: /* unknown: empty, as in the label file */
        return isnan(v->age) ? cell_none() : cell_number((double)v->age);
    case FIELD_SEX:
        snprintf(out, INSPECT_TEXT, "%c", v->sex);
        return cell_text(out);
    default:
        return cell_text(sha256);
    }
}

static enum chex_status
on_record(void *context, const struct walk_record *r, struct chex_error *err)
{
    struct list *l = context;
    char sha256[DIGEST_HEX] = "", text[FIELD_COUNT][INSPECT_TEXT], labels[INSPECT_LABELS_TEXT];
    struct cell cell[FIELD_COUNT];
    unsigned i;

    if (!r->selected || (r->values->weight == 0 && !l->in->options->padding))
        return CHEX_OK;
    if (r->hash)
        digest_hex(r->hash, DIGEST_SIZE, sha256);
    for (i = 0; i < l->count; i++)
        cell[i] = field_cell(l, l->field[i], r, sha256, text[i], labels);
    table_row(&l->table, cell);
    l->found = true;
    /* The reader closed the pipe, or the disk is full: cli_finish() reports it. */
    if (ferror(stdout))
        return error_set(err, CHEX_ERR_WRITE, "standard output");
    return l->table.failed && l->in->common->json ? error_memory(err) : CHEX_OK;
}

/* ---- all together ------------------------------------------------------------------------------------------------ */

static void
begin(struct list *l, const struct target *t)
{
    unsigned i;

    for (i = 0; i < l->count; i++) {
        const char *name = field_names[l->field[i]];

        l->columns[i] = (struct table_column){.name = name, .heading = name, .digits = 9, .gap = "\t"};
    }
    if (l->in->common->json) {
        json_t *path = text_json(t->path);

        inspect_json_next(l->in);
        printf("{\"path\": ");
        json_dumpf(path, stdout, JSON_ENCODE_ANY);
        printf(", \"records\": [");
        json_decref(path);
    }
    table_begin(&l->table);
}

static int
list_records(struct inspect *in, struct target *t)
{
    struct list l = {.in = in, .dataset = t->dataset, .table = {.format = inspect_format(in), .column = l.columns}};
    struct walk w = {.in = in, .target = t, .record = on_record, .context = &l, .threads = 1};
    struct where where = in->options->where;
    struct chex_error err;
    enum chex_status status;

    status = parse_fields(&l, in->options->fields ? in->options->fields : DEFAULT_FIELDS, &err);
    if (status == CHEX_OK)
        status = inspect_resolve_where(t, &where, &err);
    if (status != CHEX_OK)
        return inspect_fail(in, t->path, &err);
    begin(&l, t);
    w.depth = l.hashed ? WALK_SHA256 : WALK_TEXTS;
    status = walk_run(&w, &err);
    if (in->common->json)
        printf("\n], \"faults\": %llu}", (unsigned long long)w.faults);
    in->output_failed |= l.table.failed;
    if (status == CHEX_ERR_WRITE)
        return EXIT_OUTPUT;
    if (status != CHEX_OK)
        return cli_error(in->program, in->common, &err);
    if (in->options->where.text_count > 0 && !l.found && w.faults == 0) {
        inspect_no_image(t, &err);
        return cli_error(in->program, in->common, &err);
    }
    return inspect_walk_code(&w);
}

static int
list_path(struct inspect *in, struct target *t)
{
    return in->options->trained_on ? inspect_trained_on(in, t) : list_records(in, t);
}

/* ---- command line ------------------------------------------------------------------------------------------------ */

static enum chex_status
check_options(const struct inspect_options *o, const struct cli_common *common, struct chex_error *err)
{
    if (o->trained_on && (o->split || o->fields || o->padding))
        return error_set(err, CHEX_ERR_USAGE, "--trained-on goes with --where and --format only");
    return inspect_check_format(o, common, err);
}

static const struct cli_option options[] = {
    {ID_FIELDS, 0, "fields", "LIST", NULL, NULL,
     "fields to print: slot, split, shard, index, name, patient, labels, weight, age, sex, view, sha256 (of the "
     "pixels); default: slot,name,patient,labels"},
    ROW_SPLIT,
    ROW_WHERE,
    {AT_FLAG(padding), 0, "padding", NULL, NULL, NULL, "print padding records (weight 0) too"},
    {AT_TEXT(trained_on), 0, "trained-on", "RUN", NULL, NULL,
     "print the epochs and steps in which this run trained on the images, and which of its checkpoints did"},
    ROW_FORMAT,
    ROW_END,
};

const struct inspect_command inspect_list_command = {
    .cli = {.name = "list",
            .summary = "print a line for each image or tensor",
            .usage = "[--fields LIST] [--where TERMS]... [--split NAME]\n"
                     "  [--padding] [--format HOW] PATH...\n"
                     "--trained-on RUN [--where TERMS]... [--format HOW] PATH",
            .examples = "chex-inspect list --fields name,labels,age shards > list.tsv\n"
                        "chex-inspect list --where Hernia --split test shards\n"
                        "chex-inspect list runs/a/best.safetensors\n"
                        "chex-inspect list --trained-on runs/a --where patient=00000013 shards",
            .options = options},
    .action = INSPECT_LIST,
    .min = 1,
    .max = UINT_MAX,
    .check = check_options,
    .each = list_path,
};
