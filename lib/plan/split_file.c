/*
 * split_file.c - reads splits from a CSV: file:PATH
 *
 * The CSV is read into lines of (key, split), sorted by key; the key is an image's name or a patient's id.  Then each
 * entry is looked up.  The file may contain other images and patients: users split the whole data set once and convert
 * parts of it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "plan/split_work.h"

#include "base/ascii.h"
#include "io/csv.h"
#include "labels/patient_ids.h"

#include <stdlib.h>
#include <string.h>

static const char *const image_names[] = {"Image Index", "image", "name", "filename", "Path", NULL};
static const char *const patient_names[] = {"Patient ID", "patient", NULL};
static const char *const split_names[] = {"split", "set", "fold", "subset", NULL};

static const struct {
    const char *name;
    const char *of;
} aliases[] = {
    {"valid", "val"}, {"validation", "val"}, {"dev", "val"}, {"training", "train"}, {"testing", "test"},
};

struct line {
    const char *key;
    uint32_t number;
    int split;
};

struct split_file {
    struct split_work *work;
    bool have_header;
    bool by_patient; /* the key is a patient, not an image */
    int key_column;
    int split_column;
    size_t fields;
    struct line *line;
    size_t count;
    size_t capacity;
    struct arena strings;
};

static enum chex_status
read_header(struct split_file *f, const struct table_row *row, struct chex_error *err)
{
    f->have_header = true;
    f->fields = row->count;
    f->split_column = table_column(row, split_names);
    f->key_column = table_column(row, image_names);
    if (f->key_column < 0) {
        f->key_column = table_column(row, patient_names);
        f->by_patient = true;
    }
    if ((f->split_column < 0 || f->key_column < 0) && table_check_separator(row, err) != CHEX_OK)
        return CHEX_ERR_USAGE;
    if (f->split_column < 0)
        return table_fail(row, err, "no column \"split\" (or set, fold, subset)");
    if (f->key_column < 0)
        return table_fail(row, err,
                          "no column \"Image Index\" (or image, name, filename) or \"Patient ID\" (or "
                          "patient)");
    if (table_column_once(row, split_names, err) != CHEX_OK)
        return CHEX_ERR_USAGE;
    return table_column_once(row, f->by_patient ? patient_names : image_names, err);
}

/* Parse a field to the index of its split. */
static enum chex_status
read_split(struct split_file *f, const struct table_row *row, int *split, struct chex_error *err)
{
    const char *field = row->field[f->split_column];
    size_t length = row->length[f->split_column];
    char name[SPLIT_NAME_MAX] = "", shown[100];
    bool good = length > 0 && length < sizeof(name);

    for (size_t i = 0; good && i < length; i++) {
        name[i] = ascii_lower(field[i]);
        good = ascii_is_digit(name[i]) || (name[i] >= 'a' && name[i] <= 'z') || name[i] == '_';
    }
    if (!good)
        return table_fail(row, err, "\"%s\" is not a valid name of a split: letters, digits and '_', at most %d",
                          ascii_escape(field, length, shown, sizeof(shown)), SPLIT_NAME_MAX - 1);
    for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++) {
        if (strcmp(name, aliases[i].name) == 0) {
            strcpy(name, aliases[i].of); /* the alias is longer */
            break;
        }
    }
    *split = split_work_name(f->work, name);
    if (*split < 0)
        return table_fail(row, err, "more than %d splits", SPLIT_MAX);
    return CHEX_OK;
}

/* Read the key: the name of an image, without folders before it, or a normalised patient id. */
static enum chex_status
read_key(struct split_file *f, const struct table_row *row, const char **key, struct chex_error *err)
{
    const char *field = row->field[f->key_column];
    char patient[PATIENT_MAX + 1];
    const char *fault = NULL;

    if (f->by_patient) {
        fault = patient_fold(field, row->length[f->key_column], patient);
        field = patient;
    } else {
        field = path_tail(field, row->length[f->key_column], labels_name_parts(f->work->labels));
        if (!*field)
            fault = "no file name";
    }
    if (fault)
        return table_fail(row, err, "%s", fault);
    *key = arena_copy(&f->strings, field, strlen(field));
    return *key ? CHEX_OK : error_memory(err);
}

static enum chex_status
on_row(const struct table_row *row, void *context, struct chex_error *err)
{
    struct split_file *f = context;
    struct line line = {.number = (uint32_t)row->line};
    struct line *grown;
    enum chex_status status;

    if (!f->have_header)
        return read_header(f, row, err);
    if (row->count != f->fields)
        return table_fail(row, err, "expected %zu fields, got %zu", f->fields, row->count);
    status = read_split(f, row, &line.split, err);
    if (status == CHEX_OK)
        status = read_key(f, row, &line.key, err);
    if (status != CHEX_OK)
        return status;
    grown = array_grow(f->line, &f->capacity, f->count, sizeof(*grown));
    if (!grown)
        return error_memory(err);
    f->line = grown;
    f->line[f->count++] = line;
    return CHEX_OK;
}

static int
compare_lines(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    int order = strcmp(x->key, y->key);

    return order ? order : (x->number > y->number) - (x->number < y->number);
}

static int
compare_key(const void *key, const void *line)
{
    return strcmp(key, ((const struct line *)line)->key);
}

/* Sort, remove duplicates, and refuse a key with two splits. */
static enum chex_status
sort_lines(struct split_file *f, struct chex_error *err)
{
    size_t kept = 0;

    if (f->count > 0)
        qsort(f->line, f->count, sizeof(*f->line), compare_lines);
    for (size_t i = 0; i < f->count; i++) {
        const struct line *line = &f->line[i];
        const struct line *last = kept > 0 ? &f->line[kept - 1] : NULL;
        char shown[300];

        if (!last || strcmp(last->key, line->key) != 0)
            f->line[kept++] = *line;
        else if (last->split != line->split)
            return error_set(err, CHEX_ERR_USAGE, "%s:%lu: %s%s is in %s, and in %s in line %lu", f->work->rule->path,
                             (unsigned long)line->number, f->by_patient ? "patient " : "",
                             ascii_escape(line->key, strlen(line->key), shown, sizeof(shown)),
                             f->work->out->name[line->split], f->work->out->name[last->split],
                             (unsigned long)last->number);
    }
    f->count = kept;
    return CHEX_OK;
}

enum chex_status
split_file_assign(struct split_work *w, struct chex_error *err)
{
    struct split_file f = {.work = w};
    const struct labels *labels = w->labels;
    enum chex_status status = table_read(w->rule->path, on_row, &f, NULL, err);

    if (status == CHEX_OK && f.count == 0)
        status = error_set(err, CHEX_ERR_USAGE, "%s:1: no rows", w->rule->path);
    if (status == CHEX_OK)
        status = sort_lines(&f, err);
    for (size_t i = 0; status == CHEX_OK && i < labels->count; i++) {
        const struct entry *e = &labels->entry[i];
        const struct line *line = bsearch(f.by_patient ? e->patient : e->name, f.line, f.count, sizeof(*f.line),
                                          compare_key);

        if (line)
            split_work_put(w, i, line->split);
    }
    free(f.line);
    arena_release(&f.strings);
    return status;
}
