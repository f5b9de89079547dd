/*
 * label_file.c - see label_file.h
 *
 * A first pass over the file makes entries and rejects.  A sort by name makes duplicates adjacent.  A second pass, over
 * the entries, merges duplicates and counts.  An unknown finding does not end the first pass, because the message
 * reports the number of rows with it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "labels/label_file.h"

#include "base/ascii.h"
#include "base/number_format.h"
#include "dataset/findings.h"
#include "labels/label_row.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first unknown finding of the file. */
struct unknown_label {
    char label[128]; /* possibly truncated: only for comparison and message */
    size_t length;
    unsigned long line;
    size_t rows;    /* number of rows with it */
    size_t others;  /* number of rows with only other unknown findings */
    bool here, any; /* about the current row: has this one, has any unknown finding */
};

const char *const unknown_names[] = {"mask", "zero", "one", "reject", NULL};

struct label_reading {
    const struct labels_options *options;
    struct labels *out;
    size_t capacity;
    size_t reject_capacity;
    bool have_header;
    struct label_columns columns;
    char image[LABELS_MAX_NAME + 2]; /* name of the current row's image; its length may be larger */
    size_t image_length;
    size_t fields; /* number of fields in the first data row and so in all */
    struct patients patients;
    struct unknown_label unknown;
    unsigned long row_line;
    bool named[FINDINGS_MAX]; /* whether a row names the finding */
};

/* ---- rows ----------------------------------------------------------------------------------------------------- */

static void
note_unknown(const char *name, size_t length, void *context)
{
    struct label_reading *r = context;
    struct unknown_label *u = &r->unknown;

    if (length > sizeof(u->label))
        length = sizeof(u->label);
    if (u->line == 0) {
        memcpy(u->label, name, length);
        u->length = length;
        u->line = r->row_line;
    }
    u->any = true;
    if (u->length == length && memcmp(u->label, name, length) == 0)
        u->here = true;
}

static enum chex_status
fail_unknown(const struct label_reading *r, const char *path, struct chex_error *err)
{
    const struct unknown_label *u = &r->unknown;
    const char *suggestion = finding_suggest(&r->out->findings, u->label, u->length);
    char shown[4 * sizeof(u->label) + 1], others[80] = "";

    if (u->others > 0)
        snprintf(others, sizeof(others), " (%s more with other unknown labels)", COUNT_TEXT(u->others));
    return error_set(err, CHEX_ERR_USAGE, "%s:%lu: unknown label \"%s\" (%s row%s, first line %lu)%s%s%s%s", path,
                     u->line, ascii_escape(u->label, u->length, shown, sizeof(shown)), COUNT_TEXT(u->rows),
                     u->rows == 1 ? "" : "s", u->line, suggestion ? "; did you mean " : "",
                     suggestion ? suggestion : "", suggestion ? "?" : "", others);
}

/* Returns whether a row without this finding says that the image does not have it. */
static bool
is_known(const struct label_reading *r, unsigned finding)
{
    const struct label_kind *kind = r->columns.kind;
    const char *name = r->out->findings.name[finding];

    return r->named[finding] || kind->style == LABEL_COLUMNS ||
           finding_index(kind->findings, name, strlen(name)) >= 0 ||
           (kind->style == LABEL_LIST && finding_is_none(name, strlen(name)));
}

/*
 * Refuse findings that the file may not know: no row names them, and they are none of the kind's.  Storing 0 for them
 * would make the missing information a known label.
 */
static enum chex_status
check_named(const struct label_reading *r, const char *path, struct chex_error *err)
{
    const struct findings *list = &r->out->findings;
    const char *first = NULL, *suggestion;
    unsigned count = 0;
    char others[96] = "";

    for (unsigned i = 0; r->out->count > 0 && i < list->count; i++) {
        if (is_known(r, i))
            continue;
        first = first ? first : list->name[i];
        count++;
    }
    if (!first)
        return CHEX_OK;
    suggestion = finding_suggest(r->columns.kind->findings, first, strlen(first));
    if (count > 1)
        snprintf(others, sizeof(others), " (%u more such finding%s)", count - 1, count == 2 ? "" : "s");
    else if (list->count == 1 && !suggestion)
        snprintf(others, sizeof(others), ", and it is not a list: %s", FINDINGS_BUILT_IN);
    return error_set(err, CHEX_ERR_USAGE, "%s: no row names the finding \"%s\"%s%s%s%s", path, first,
                     suggestion ? "; did you mean " : "", suggestion ? suggestion : "", suggestion ? "?" : "", others);
}

static enum chex_status
reject(struct label_reading *r, const struct table_row *row, enum chex_status status, const char *reason,
       struct chex_error *err)
{
    struct labels *out = r->out;
    char shown[4 * LABELS_MAX_NAME + 4];
    struct label_reject *grown;
    const char *name;

    grown = array_grow(out->reject, &r->reject_capacity, out->reject_count, sizeof(*grown));
    if (!grown)
        return error_memory(err);
    out->reject = grown;
    ascii_escape(r->image, strlen(r->image), shown, sizeof(shown));
    name = arena_copy(&out->strings, shown, strlen(shown));
    if (!name)
        return error_memory(err);
    out->reject[out->reject_count++] = (struct label_reject){(uint32_t)row->line, status, name, reason};
    return CHEX_OK;
}

/* Note the values of this row, the last entry, that were read differently than written. */
static enum chex_status
note_corrections(struct label_reading *r, const struct table_row *row, const struct entry *e, struct chex_error *err)
{
    const struct label_columns *c = &r->columns;
    const struct findings_form form = {&r->out->findings, c->kind->findings, c->kind->separator};
    const int view = label_view_column(row, c);
    const struct {
        bool wrong;
        int column;
        enum note_kind kind;
    } looks[] = {
        {c->kind->style == LABEL_LIST && !labels_are_none(e->label, r->out->findings.count) &&
             !findings_are_exact(&form, row->field[c->list], row->length[c->list]),
         c->list, NOTE_SPELLING},
        {c->age >= 0 && isnan(e->age) && !e->impossible_age, c->age, NOTE_AGE},
        {c->sex >= 0 && e->sex == 'U' && ascii_upper(row->field[c->sex][0]) != 'U', c->sex, NOTE_SEX},
        {view >= 0 && strcmp(e->view, "U") == 0 && ascii_upper(row->field[view][0]) != 'U', view, NOTE_VIEW},
    };
    enum chex_status status = CHEX_OK;

    for (size_t i = 0; status == CHEX_OK && i < sizeof(looks) / sizeof(looks[0]); i++) {
        int column = looks[i].column;

        /* An empty field simply means unknown. */
        if (looks[i].wrong && row->length[column] > 0)
            status = notes_add(&r->out->notes, looks[i].kind, row->path, row->line, row->field[column],
                               row->length[column], err);
    }
    return status;
}

static enum chex_status
add_entry(struct label_reading *r, const struct table_row *row, const char *patient, const uint8_t *label,
          struct chex_error *err)
{
    const struct label_columns *c = &r->columns;
    struct labels *out = r->out;
    struct entry *grown = array_grow(out->entry, &r->capacity, out->count, sizeof(*grown));
    struct entry *e;
    int view = label_view_column(row, c);
    enum chex_status status;

    if (!grown)
        return error_memory(err);
    out->entry = grown;
    e = &out->entry[out->count];
    *e = (struct entry){.line = (uint32_t)row->line, .age = NAN, .sex = 'U', .view = "U"};
    status = patients_add(&r->patients, patient, &out->strings, &e->patient_no, err);
    if (status != CHEX_OK)
        return status;
    e->patient = r->patients.id[e->patient_no];
    e->name = arena_copy(&out->strings, r->image, r->image_length);
    e->label = (const uint8_t *)arena_copy(&out->strings, (const char *)label, out->findings.count);
    if (!e->name || !e->label)
        return error_memory(err);
    for (unsigned i = 0; i < out->findings.count; i++)
        r->named[i] |= label[i] == 1;
    e->age = label_row_age(row, c, &e->impossible_age);
    if (c->sex >= 0)
        e->sex = label_sex(row->field[c->sex]);
    if (view >= 0)
        label_view(row->field[view], row->length[view], e->view);
    out->count++;
    return note_corrections(r, row, e, err);
}

static enum chex_status
check_field_count(struct label_reading *r, const struct table_row *row, struct chex_error *err)
{
    size_t expected = r->fields;

    if (expected == 0) { /* the first data row */
        if (row->count >= r->columns.fields_min && row->count <= r->columns.fields_max) {
            r->fields = row->count;
            return CHEX_OK;
        }
        expected = r->columns.fields_min;
    }
    if (row->count == expected)
        return CHEX_OK;
    return table_fail(row, err, "expected %zu fields, got %zu", expected, row->count);
}

/* Add the row, whose list of findings is empty, or reject it. */
static enum chex_status
add_empty(struct label_reading *r, const struct table_row *row, const char *patient, const uint8_t *label,
          struct chex_error *err)
{
    if (!r->options->empty_is_no_finding)
        return reject(r, row, CHEX_ERR_EMPTY, "empty label", err);
    r->out->empty_labels++;
    return add_entry(r, row, patient, label, err);
}

/* Parse a list of findings and add the row, or reject it, or fail. */
static enum chex_status
read_list(struct label_reading *r, const struct table_row *row, const char *patient, struct chex_error *err)
{
    const char *text = row->field[r->columns.list];
    size_t length = row->length[r->columns.list];
    const struct findings_form form = {&r->out->findings, r->columns.kind->findings, r->columns.kind->separator};
    char shown[200];
    uint8_t label[FINDINGS_MAX];

    r->row_line = row->line;
    r->unknown.any = r->unknown.here = false;
    switch (findings_scan(&form, text, length, note_unknown, r, label, &r->out->ignored_labels)) {
    case FINDINGS_GOOD:
        return add_entry(r, row, patient, label, err);
    case FINDINGS_EMPTY:
        return add_empty(r, row, patient, label, err);
    case FINDINGS_EMPTY_PART:
        return table_fail(row, err, "a part of the label \"%s\" is empty",
                          ascii_escape(text, length, shown, sizeof(shown)));
    case FINDINGS_CONTRADICTION:
        return table_fail(row, err, "\"%s\" is No Finding and a finding",
                          ascii_escape(text, length, shown, sizeof(shown)));
    case FINDINGS_UNKNOWN:
        r->unknown.rows += r->unknown.here;
        r->unknown.others += !r->unknown.here;
        break;
    }
    return CHEX_OK;
}

/* Add a row with labels that may be unknown, as options->unknown says. */
static enum chex_status
add_unknown(struct label_reading *r, const struct table_row *row, const char *patient, uint8_t *label,
            struct chex_error *err)
{
    for (unsigned i = 0; i < r->out->findings.count; i++) {
        if (label[i] != CHEX_LABEL_UNKNOWN || r->options->unknown == UNKNOWN_MASK)
            continue;
        if (r->options->unknown == UNKNOWN_REJECT)
            return reject(r, row, CHEX_ERR_UNSUPPORTED, "unknown label (--unknown reject)", err);
        label[i] = r->options->unknown == UNKNOWN_ONE;
    }
    return add_entry(r, row, patient, label, err);
}

static enum chex_status
read_python_list(struct label_reading *r, const struct table_row *row, const char *patient, struct chex_error *err)
{
    uint8_t label[FINDINGS_MAX];
    bool empty;
    enum chex_status status = label_python_list(row, &r->columns, &r->out->findings, label, &empty, err);

    if (status != CHEX_OK)
        return status;
    return empty ? add_empty(r, row, patient, label, err) : add_unknown(r, row, patient, label, err);
}

/* Parse a column per finding, and add the row. */
static enum chex_status
read_cells(struct label_reading *r, const struct table_row *row, const char *patient, struct chex_error *err)
{
    uint8_t label[FINDINGS_MAX];
    enum chex_status status = label_cells(row, &r->columns, &r->out->findings, label, err);

    return status == CHEX_OK ? add_unknown(r, row, patient, label, err) : status;
}

static enum chex_status
read_header(struct label_reading *r, const struct table_row *row, struct chex_error *err)
{
    const struct label_kind *kind = r->options->kind;
    enum chex_status status = kind ? CHEX_OK : label_kind_find(row, &kind, err);

    if (status != CHEX_OK)
        return status;
    r->have_header = true;
    r->out->kind = kind;
    r->out->findings = r->options->findings ? *r->options->findings : *kind->findings;
    status = label_columns_find(row, kind, &r->out->findings, &r->columns, err);
    r->out->no_age = r->columns.age < 0 && (r->columns.born < 0 || r->columns.studied < 0);
    r->out->no_sex = r->columns.sex < 0;
    r->out->no_view = r->columns.view < 0;
    return status;
}

static enum chex_status
on_row(const struct table_row *row, void *context, struct chex_error *err)
{
    struct label_reading *r = context;
    char patient[PATIENT_MAX + 1];
    enum chex_status status;
    const char *fault;

    if (r->options->stop && atomic_load(r->options->stop))
        return error_stopped(err);
    if (!r->have_header)
        return read_header(r, row, err);
    status = check_field_count(r, row, err);
    if (status != CHEX_OK)
        return status;
    r->out->row_count++;
    r->image_length = label_image(row, &r->columns, r->image);
    fault = label_name_fault(r->image, r->image_length, r->columns.kind->name_parts > 1);
    if (fault)
        return reject(r, row, CHEX_ERR_DAMAGED, fault, err);
    status = label_patient(row, &r->columns, r->image, patient, err);
    if (status != CHEX_OK)
        return status;
    switch (r->columns.kind->style) {
    case LABEL_COLUMNS:
        return read_cells(r, row, patient, err);
    case LABEL_PYTHON_LIST:
        return read_python_list(r, row, patient, err);
    case LABEL_LIST:
        break;
    }
    return read_list(r, row, patient, err);
}

/* ---- entries -------------------------------------------------------------------------------------------------- */

static int
compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    return order ? order : (x->line > y->line) - (x->line < y->line);
}

/* The files are sorted or nearly sorted, so checking the order usually saves the sort. */
static void
sort_entries(struct labels *labels)
{
    for (size_t i = 1; i < labels->count; i++) {
        if (compare_entries(&labels->entry[i - 1], &labels->entry[i]) > 0) {
            qsort(labels->entry, labels->count, sizeof(*labels->entry), compare_entries);
            return;
        }
    }
}

static bool
same_values(const struct entry *a, const struct entry *b, unsigned findings)
{
    bool same_age = a->age == b->age || (isnan(a->age) && isnan(b->age));

    return a->patient_no == b->patient_no && same_age && memcmp(a->label, b->label, findings) == 0 &&
           a->sex == b->sex && memcmp(a->view, b->view, sizeof(a->view)) == 0;
}

/* Merge duplicates; the first row is kept.  If rows differ, report the first such row in the file. */
static enum chex_status
merge_duplicates(struct labels *labels, const char *path, struct chex_error *err)
{
    struct entry first = {0}, other = {0}; /* copies, because the entries are moved */
    size_t kept = 0, conflicts = 0;
    char shown[300];

    for (size_t i = 0; i < labels->count; i++) {
        const struct entry *e = &labels->entry[i];
        const struct entry *last = kept > 0 ? &labels->entry[kept - 1] : NULL;

        if (!last || strcmp(last->name, e->name) != 0) {
            labels->entry[kept++] = *e;
            continue;
        }
        if (same_values(last, e, labels->findings.count)) {
            labels->duplicate_rows++;
            continue;
        }
        conflicts++;
        if (other.line == 0 || e->line < other.line) {
            other = *e;
            first = *last;
        }
    }
    labels->count = kept;
    if (conflicts == 0)
        return CHEX_OK;
    return error_set(err, CHEX_ERR_USAGE, "%s:%lu: %s has other values than in line %lu (%s such row%s)", path,
                     (unsigned long)other.line, ascii_escape(first.name, strlen(first.name), shown, sizeof(shown)),
                     (unsigned long)first.line, COUNT_TEXT(conflicts), conflicts == 1 ? "" : "s");
}

void
labels_count_ages(struct labels *labels)
{
    labels->age_min = labels->age_max = NAN;
    for (size_t i = 0; i < labels->count; i++) {
        float age = labels->entry[i].age;

        labels->impossible_ages += labels->entry[i].impossible_age;
        if (isnan(age)) {
            labels->unknown_ages++;
            continue;
        }
        if (!(age >= labels->age_min)) /* also true for NaN: the first age */
            labels->age_min = age;
        if (!(age <= labels->age_max))
            labels->age_max = age;
    }
}

enum chex_status
labels_read(const char *path, const struct labels_options *options, struct labels *out, struct chex_error *err)
{
    struct label_reading r = {.options = options, .out = out};
    enum chex_status status;

    status = table_read(path, on_row, &r, out->sha256, err);
    /* out->strings owns the ids. */
    out->patient = r.patients.id;
    out->patient_count = r.patients.count;
    r.patients.id = NULL;
    patients_release(&r.patients);
    if (status != CHEX_OK)
        return status;
    if (r.unknown.line > 0)
        return fail_unknown(&r, path, err);
    status = check_named(&r, path, err);
    if (status != CHEX_OK)
        return status;
    if (out->row_count == 0)
        return error_set(err, CHEX_ERR_USAGE, "%s:1: no rows%s", path, r.have_header ? " below the header" : "");
    sort_entries(out);
    status = merge_duplicates(out, path, err);
    if (status == CHEX_OK)
        labels_count_ages(out);
    return status;
}

unsigned
labels_name_parts(const struct labels *labels)
{
    unsigned parts = 1;

    if (labels->kind)
        return labels->kind->name_parts;
    /* The names of a data set come from one kind of label file. */
    for (const char *p = labels->count > 0 ? labels->entry[0].name : ""; *p; p++)
        parts += *p == '/';
    return parts;
}

void
labels_release(struct labels *labels)
{
    free(labels->entry);
    free(labels->patient);
    free(labels->reject);
    notes_release(&labels->notes);
    arena_release(&labels->strings);
    *labels = (struct labels){0};
}

void
entry_values(const struct entry *entry, struct record_values *out)
{
    *out = (struct record_values){
        .label = entry->label,
        .age = entry->age,
        .sex = entry->sex,
        .view = {entry->view, strlen(entry->view)},
        .patient = {entry->patient, strlen(entry->patient)},
        .name = {entry->name, strlen(entry->name)},
    };
}

const struct entry *
labels_find(const struct labels *labels, const char *name)
{
    size_t low = 0, high = labels->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(labels->entry[middle].name, name);

        if (order == 0)
            return &labels->entry[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}
