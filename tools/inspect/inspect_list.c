/*
 * inspect_list.c - --list: a line for each record, fields separated by tabs; see inspect.h
 *
 * The first line names the fields.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/inspect.h"

#include "base/sha256.h"

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
    struct inspect *in; /* first: inspect_walk_fault() */
    const struct chex_dataset *dataset;
    enum field field[FIELD_COUNT];
    unsigned count;
    bool hashed; /* sha256 is among them */
    bool first;  /* no record was written yet */
    struct rows rows;
    const char *columns[FIELD_COUNT + 1]; /* of rows */
};

/* ---- --fields -------------------------------------------------------------------------------------------------- */

static enum chex_status
add_field(struct list *l, const char *name, size_t length, struct chex_error *err)
{
    unsigned i, j;

    for (i = 0; i < FIELD_COUNT; i++) {
        if (strlen(field_names[i]) != length || strncmp(field_names[i], name, length) != 0)
            continue;
        for (j = 0; j < l->count; j++)
            if (l->field[j] == i)
                return chex_fail(err, CHEX_ERR_USAGE, "'%s' is there twice", field_names[i]);
        l->field[l->count++] = (enum field)i;
        l->hashed |= i == FIELD_SHA256;
        return CHEX_OK;
    }
    return chex_fail(err, CHEX_ERR_USAGE,
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

/* ---- a record -------------------------------------------------------------------------------------------------- */

/* The field as text, in out or somewhere that lives as long as the record. */
static const char *
field_text(const struct list *l, enum field field, const struct walk_record *r, const char *sha256,
           char out[INSPECT_TEXT])
{
    const struct record_values *v = r->values;

    switch (field) {
    case FIELD_SLOT:
        snprintf(out, INSPECT_TEXT, "%s/%05u/%05u", v->dataset_id, v->shard, v->index);
        break;
    case FIELD_SPLIT:
        return r->split;
    case FIELD_SHARD:
        return l->dataset->shard[r->shard].name;
    case FIELD_INDEX:
        snprintf(out, INSPECT_TEXT, "%u", r->index);
        break;
    case FIELD_NAME:
        return inspect_text(v->name, out);
    case FIELD_PATIENT:
        return inspect_text(v->patient, out);
    case FIELD_LABELS:
        return inspect_labels_text(v->findings, out);
    case FIELD_WEIGHT:
        return v->weight ? "1" : "0";
    case FIELD_AGE:
        /* Unknown: empty, as in the label file. */
        if (isnan(v->age))
            return "";
        snprintf(out, INSPECT_TEXT, "%.9g", (double)v->age);
        break;
    case FIELD_SEX:
        snprintf(out, INSPECT_TEXT, "%c", v->sex);
        break;
    case FIELD_VIEW:
        return inspect_text(v->view, out);
    case FIELD_SHA256:
        return sha256;
    case FIELD_COUNT:
        break;
    }
    return out;
}

static json_t *
field_json(const struct list *l, enum field field, const struct walk_record *r, const char *sha256)
{
    char out[INSPECT_TEXT];

    switch (field) {
    case FIELD_INDEX:
        return inspect_number(r->index);
    case FIELD_WEIGHT:
        return inspect_number(r->values->weight);
    case FIELD_AGE:
        return isnan(r->values->age) ? json_null() : json_real((double)r->values->age);
    case FIELD_LABELS:
        return inspect_json_labels(r->values->findings);
    case FIELD_NAME:
        return inspect_json_text(r->values->name);
    case FIELD_PATIENT:
        return inspect_json_text(r->values->patient);
    case FIELD_VIEW:
        return inspect_json_text(r->values->view);
    default:
        return json_string(field_text(l, field, r, sha256, out));
    }
}

static enum chex_status
write_json(struct list *l, const struct walk_record *r, const char *sha256, struct chex_error *err)
{
    json_t *object = json_object();
    bool good = object != NULL;
    unsigned i;

    for (i = 0; i < l->count && good; i++)
        good = json_object_set_new(object, field_names[l->field[i]], field_json(l, l->field[i], r, sha256)) == 0;
    printf("%s\n", l->first ? "" : ",");
    good = good && json_dumpf(object, stdout, JSON_COMPACT) == 0;
    json_decref(object);
    return good || ferror(stdout) ? CHEX_OK : chex_fail_memory(err);
}

static void
write_line(const struct list *l, const struct walk_record *r, const char *sha256)
{
    char out[INSPECT_TEXT];
    unsigned i;

    for (i = 0; i < l->count; i++)
        printf("%s%s", i ? "\t" : "", field_text(l, l->field[i], r, sha256, out));
    putchar('\n');
}

static void
write_row(struct list *l, const struct walk_record *r, const char *sha256)
{
    char out[INSPECT_TEXT];
    unsigned i;

    for (i = 0; i < l->count; i++) {
        json_t *value = l->rows.format == ROWS_JSONL ? field_json(l, l->field[i], r, sha256) : NULL;

        rows_value(&l->rows, value, field_text(l, l->field[i], r, sha256, out));
    }
    rows_next(&l->rows);
}

static enum chex_status
on_record(void *context, const struct walk_record *r, struct chex_error *err)
{
    struct list *l = context;
    char sha256[DIGEST_HEX] = "";
    enum chex_status status = CHEX_OK;

    if ((r->values->weight == 0 && !l->in->options->filling) || !where_holds(&l->in->options->where, r->values))
        return CHEX_OK;
    if (r->hash)
        digest_hex(r->hash, DIGEST_SIZE, sha256);
    if (l->in->common->json)
        status = write_json(l, r, sha256, err);
    else if (l->in->options->format == ROWS_CSV || l->in->options->format == ROWS_JSONL)
        write_row(l, r, sha256);
    else
        write_line(l, r, sha256);
    l->first = false;
    /* Nobody reads on, or the disk is full: cli_finish() says so. */
    return status == CHEX_OK && ferror(stdout) ? chex_fail(err, CHEX_ERR_WRITE, "standard output") : status;
}

/* ---- the whole ------------------------------------------------------------------------------------------------- */

static void
begin(struct list *l, const struct target *t)
{
    unsigned i;

    if (l->in->common->json) {
        json_t *path = inspect_json_text((struct chex_bytes){t->path, strlen(t->path)});

        inspect_json_next(l->in);
        printf("{\"path\": ");
        json_dumpf(path, stdout, JSON_ENCODE_ANY);
        printf(", \"records\": [");
        json_decref(path);
        return;
    }
    for (i = 0; i < l->count; i++)
        l->columns[i] = field_names[l->field[i]];
    if (l->in->options->format != ROWS_TABLE) {
        rows_begin(&l->rows, l->in->options->format, l->columns);
        return;
    }
    for (i = 0; i < l->count; i++)
        printf("%s%s", i ? "\t" : "", l->columns[i]);
    putchar('\n');
}

int
inspect_list(struct inspect *in, struct target *t)
{
    struct list l = {.in = in, .dataset = t->dataset, .first = true};
    struct walk w = {.target = t, .record = on_record, .fault = inspect_walk_fault, .context = &l, .threads = 1};
    struct chex_error err;
    enum chex_status status;

    if (t->kind == TARGET_CHECKPOINT)
        return inspect_tensors(in, t);
    status = parse_fields(&l, in->options->fields ? in->options->fields : DEFAULT_FIELDS, &err);
    if (status != CHEX_OK)
        return inspect_fail(in, t->path, &err);
    begin(&l, t);
    w.depth = l.hashed ? WALK_SHA256 : WALK_TEXTS;
    status = walk_run(&w, &err);
    if (in->common->json)
        printf("\n], \"faults\": %llu}", (unsigned long long)w.faults);
    in->json_failed |= l.rows.failed;
    if (status == CHEX_ERR_WRITE)
        return EXIT_OUTPUT;
    if (status != CHEX_OK)
        return cli_error(in->program, in->common, &err);
    return inspect_walk_code(in, &w);
}
