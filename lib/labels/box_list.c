/*
 * box_list.c - see box_list.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "labels/box_list.h"

#include "base/ascii.h"
#include "io/csv.h"
#include "labels/label_row.h"

#include <stdlib.h>
#include <string.h>

#define NUMBERS    4  /* x, y, w, h */
#define DIGITS_MAX 18 /* of a number that are used; 10^18 fits into 64 bits */

static const char *const image_names[] = {"Image Index", NULL};
static const char *const finding_names[] = {"Finding Label", NULL};

struct box_reading {
    struct box_list *out;
    const struct findings *findings;
    const char *path;
    unsigned parts;
    size_t capacity;
    int image, finding, box; /* columns; box: of x, which the other three numbers follow */
    bool have_header;
};

/* ---- header ------------------------------------------------------------------------------------------------------ */

/* Returns the column of "Bbox [x,y,w,h]", whose commas may be unquoted, or -1. */
static int
find_box_column(const struct table_row *header)
{
    static const char *const cut[NUMBERS] = {"Bbox [x", "y", "w", "h]"};

    for (size_t i = 0; i < header->count; i++) {
        size_t k = 0;

        if (ascii_is(header->field[i], header->length[i], "Bbox [x,y,w,h]"))
            return (int)i;
        while (k < NUMBERS && i + k < header->count && ascii_is(header->field[i + k], header->length[i + k], cut[k]))
            k++;
        if (k == NUMBERS)
            return (int)i;
    }
    return -1;
}

static enum chex_status
read_header(struct box_reading *r, const struct table_row *header, struct chex_error *err)
{
    r->have_header = true;
    r->image = table_column(header, image_names);
    r->finding = table_column(header, finding_names);
    r->box = find_box_column(header);
    if (r->image < 0 || r->finding < 0 || r->box < 0) {
        if (table_check_separator(header, err) != CHEX_OK)
            return CHEX_ERR_USAGE;
        return table_fail(header, err, "no column \"%s\": this is no list of boxes (BBox_List_2017.csv)",
                          r->image < 0     ? image_names[0]
                          : r->finding < 0 ? finding_names[0]
                                           : "Bbox [x,y,w,h]");
    }
    if (r->image > r->box || r->finding > r->box)
        return table_fail(header, err, "the column \"Bbox [x,y,w,h]\" must be the last one");
    if (table_column_once(header, image_names, err) != CHEX_OK)
        return CHEX_ERR_USAGE;
    return table_column_once(header, finding_names, err);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/*
 * Parses a plain decimal number, such as "225.084745762712"; the value is exact up to 15 digits.  Other forms, such as
 * exponents, signs and "nan", are refused.
 */
static bool
parse_coordinate(const char *p, double *out)
{
    uint64_t value = 0;
    double unit = 1;
    unsigned digits = 0;
    bool point = false;

    if (!ascii_is_digit(*p))
        return false;
    for (; ascii_is_digit(*p) || (*p == '.' && !point); p++) {
        if (*p == '.') {
            point = true;
        } else if (digits < DIGITS_MAX) {
            value = value * 10 + (uint64_t)(*p - '0');
            digits += value > 0;
            unit *= point ? 10 : 1;
        } else if (!point) {
            return false; /* more than 10^18 */
        }
    }
    *out = (double)value / unit;
    return *p == '\0' && *out <= BOX_LIST_FAR;
}

static enum chex_status
read_numbers(const struct box_reading *r, const struct table_row *row, struct listed_box *box, struct chex_error *err)
{
    double *const into[NUMBERS] = {&box->x, &box->y, &box->width, &box->height};
    static const char *const names[NUMBERS] = {"x", "y", "w", "h"};
    char shown[64];

    for (size_t k = 0; k < NUMBERS; k++) {
        const char *text = row->field[(size_t)r->box + k];
        size_t length = row->length[(size_t)r->box + k];

        if (!parse_coordinate(text, into[k]) || (k >= 2 && *into[k] <= 0))
            return table_fail(row, err, "\"%s\" is no %s of a box: expected pixels, %s %d",
                              ascii_escape(text, length, shown, sizeof(shown)), names[k],
                              k < 2 ? "0 to" : "above 0, up to", BOX_LIST_FAR);
    }
    return CHEX_OK;
}

/* Sets box->finding.  *known becomes false for a finding of ChestX-ray14 that the list of findings lacks. */
static enum chex_status
read_finding(const struct box_reading *r, const struct table_row *row, struct listed_box *box, bool *known,
             struct chex_error *err)
{
    const char *text = row->field[r->finding];
    size_t length = row->length[r->finding];
    int index = finding_index(r->findings, text, length);
    const char *similar;
    char shown[64];

    *known = index >= 0;
    box->finding = index >= 0 ? (unsigned)index : 0;
    if (index >= 0 || finding_index(&findings_nih14, text, length) >= 0)
        return CHEX_OK;
    similar = finding_suggest(r->findings, text, length);
    return table_fail(row, err, "unknown finding \"%s\"%s%s%s", ascii_escape(text, length, shown, sizeof(shown)),
                      similar ? "; did you mean \"" : "", similar ? similar : "", similar ? "\"?" : "");
}

static enum chex_status
read_name(const struct box_reading *r, const struct table_row *row, struct listed_box *box, struct chex_error *err)
{
    const char *path = row->field[r->image], *name = path_tail(path, row->length[r->image], r->parts);
    size_t length = row->length[r->image] - (size_t)(name - path);
    const char *fault = label_name_fault(name, length, r->parts > 1);
    char shown[64];

    if (fault)
        return table_fail(row, err, "%s: \"%s\"", fault, ascii_escape(name, length, shown, sizeof(shown)));
    box->image = arena_copy(&r->out->strings, name, length);
    return box->image ? CHEX_OK : error_memory(err);
}

static enum chex_status
check_fields(const struct box_reading *r, const struct table_row *row, struct chex_error *err)
{
    size_t wanted = (size_t)r->box + NUMBERS, i = wanted;

    while (i < row->count && row->length[i] == 0)
        i++;
    if (row->count < wanted || i < row->count)
        return table_fail(row, err, "expected %zu fields, got %zu", wanted, row->count);
    return CHEX_OK;
}

static enum chex_status
on_row(const struct table_row *row, void *context, struct chex_error *err)
{
    struct box_reading *r = context;
    struct listed_box box = {.line = row->line}, *grown;
    bool known = false;
    enum chex_status status;

    if (!r->have_header)
        return read_header(r, row, err);
    status = check_fields(r, row, err);
    if (status == CHEX_OK)
        status = read_finding(r, row, &box, &known, err);
    if (status == CHEX_OK)
        status = read_numbers(r, row, &box, err);
    if (status == CHEX_OK)
        status = read_name(r, row, &box, err);
    if (status != CHEX_OK)
        return status;
    if (!known) {
        r->out->ignored++;
        return CHEX_OK;
    }
    grown = array_grow(r->out->box, &r->capacity, r->out->count, sizeof(*grown));
    if (!grown)
        return error_memory(err);
    r->out->box = grown;
    grown[r->out->count++] = box;
    return CHEX_OK;
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

/* Orders by image, finding and line. */
static int
compare_boxes(const void *a, const void *b)
{
    const struct listed_box *x = a, *y = b;
    int order = strcmp(x->image, y->image);

    if (order != 0)
        return order;
    if (x->finding != y->finding)
        return x->finding < y->finding ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

static enum chex_status
sort_boxes(const struct box_reading *r, struct chex_error *err)
{
    struct box_list *list = r->out;
    char shown[64];

    if (list->count == 0 && list->ignored == 0)
        return error_set(err, CHEX_ERR_USAGE, "%s: no box", r->path);
    if (list->count > 0)
        qsort(list->box, list->count, sizeof(*list->box), compare_boxes);
    for (size_t i = 1; i < list->count; i++) {
        const struct listed_box *first = &list->box[i - 1], *second = &list->box[i];

        if (first->finding == second->finding && strcmp(first->image, second->image) == 0)
            return error_set(err, CHEX_ERR_USAGE, "%s:%lu: a second box of %s in %s; the first is in line %lu", r->path,
                             second->line, r->findings->name[second->finding],
                             ascii_escape(second->image, strlen(second->image), shown, sizeof(shown)), first->line);
    }
    return CHEX_OK;
}

enum chex_status
box_list_read(const char *path, const struct findings *findings, unsigned parts, struct box_list *out,
              struct chex_error *err)
{
    struct box_reading r = {.out = out, .findings = findings, .path = path, .parts = parts};
    enum chex_status status = table_read(path, on_row, &r, out->sha256, err);

    return status == CHEX_OK ? sort_boxes(&r, err) : status;
}

void
box_list_release(struct box_list *list)
{
    free(list->box);
    arena_release(&list->strings);
    *list = (struct box_list){.count = 0};
}

const struct listed_box *
box_list_find(const struct box_list *list, const char *image, size_t *count)
{
    size_t low = 0, high = list->count, first;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(list->box[middle].image, image) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (first = low; low < list->count && strcmp(list->box[low].image, image) == 0; low++)
        ;
    *count = low - first;
    return list->box + first;
}
