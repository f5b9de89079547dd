/*
 * audit_texts.c - compares files of an evaluation: predictions as CSV, numbers as JSON; see audit_private.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/audit_private.h"

#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CELL       192 /* bytes of a cell that are shown */
#define JSON_DEPTH 8

/* ---- CSV --------------------------------------------------------------------------------------------------------- */

/* A cell, with its quotes. */
struct csv_cell {
    const char *text;
    size_t length;
    bool last; /* of its line */
};

/* Takes the next cell of a text; returns false at its end. */
static bool
next_cell(const char **at, const char *end, struct csv_cell *out)
{
    const char *p = *at;
    bool quoted = false;

    if (p >= end)
        return false;
    for (; p < end && (quoted || (*p != ',' && *p != '\n')); p++)
        quoted ^= *p == '"';
    *out = (struct csv_cell){.text = *at, .length = (size_t)(p - *at), .last = p >= end || *p == '\n'};
    *at = p < end ? p + 1 : end;
    return true;
}

static bool
same_cell(const struct csv_cell *a, const struct csv_cell *b)
{
    return a->last == b->last && a->length == b->length && memcmp(a->text, b->text, a->length) == 0;
}

static const char *
cell_text(const struct csv_cell *c, char out[CELL])
{
    size_t length = c->length < CELL - 1 ? c->length : CELL - 1;

    memcpy(out, c->text, length);
    out[length] = '\0';
    return out;
}

struct cell_reading {
    struct audit_part *part;
    struct csv_cell *column; /* names, of the new text; its first line */
    size_t columns;
    bool counted; /* the first difference is one of a probability: the others are counted with it */
};

static bool
is_probability(const struct cell_reading *r, size_t column)
{
    return r->column[column].length > 5 && memcmp(r->column[column].text, "prob_", 5) == 0;
}

/* Note the difference of one cell of an image. */
static void
note_cell(struct cell_reading *r, size_t column, const struct csv_cell *image, const struct csv_cell *was,
          const struct csv_cell *now)
{
    char x[CELL], y[CELL], key[CELL], of[CELL], name[AUDIT_NAME];
    bool first = r->part->outcome != AUDIT_DIFFERS;

    snprintf(name, sizeof(name), "%.150s %.150s", cell_text(image, key), cell_text(&r->column[column], of));
    if (first || !r->counted || !is_probability(r, column))
        audit_differ(r->part, "", name, cell_text(was, x), cell_text(now, y));
    r->counted |= first && is_probability(r, column);
    if (r->counted && is_probability(r, column)) {
        char shown[sizeof(r->part->was)], again[sizeof(r->part->now)];

        memcpy(shown, r->part->was, sizeof(shown));
        memcpy(again, r->part->now, sizeof(again));
        audit_count_value(r->part, strtof(cell_text(was, x), NULL), strtof(cell_text(now, y), NULL));
        memcpy(r->part->was, shown, sizeof(shown));
        memcpy(r->part->now, again, sizeof(again));
    }
}

/* Compare the lines of the images; returns false where the cells no longer correspond. */
static bool
compare_line(struct cell_reading *r, const char **was, const char *was_end, const char **now, const char *now_end)
{
    struct csv_cell x, y, image = {.length = 0};
    char a[CELL], b[CELL];
    size_t i;

    for (i = 0; i < r->columns; i++) {
        bool there = next_cell(was, was_end, &x);

        if (!next_cell(now, now_end, &y))
            return false;
        if (i == 0)
            image = y;
        if (there && same_cell(&x, &y))
            continue;
        if (there && x.last == y.last) {
            note_cell(r, i, &image, &x, &y);
            continue;
        }
        audit_differ(r->part, cell_text(&image, a), "", there ? "another number of cells" : "no such line",
                     cell_text(&r->column[i], b));
        return false;
    }
    return true;
}

enum chex_status
audit_compare_csv(struct audit_part *part, const struct buffer *was, const struct buffer *now, struct chex_error *err)
{
    const char *x = (const char *)was->data, *x_end = x + was->size;
    const char *y = (const char *)now->data, *y_end = y + now->size;
    struct cell_reading r = {.part = part};
    struct csv_cell old, cell;
    char a[CELL], b[CELL];
    bool good = true;

    if (was->size == now->size && memcmp(x, y, now->size) == 0)
        return CHEX_OK;
    r.column = calloc(2 * METRICS_OUTPUTS + 16, sizeof(*r.column));
    if (!r.column)
        return error_memory(err);
    do {
        bool there = next_cell(&x, x_end, &old);

        good = next_cell(&y, y_end, &cell) && r.columns < 2 * METRICS_OUTPUTS + 16;
        if (!good || !there || !same_cell(&old, &cell)) {
            audit_differ(part, "", "columns", there ? cell_text(&old, a) : "none", cell_text(&cell, b));
            good = false;
            break;
        }
        r.column[r.columns++] = cell;
    } while (!cell.last);
    while (good && y < y_end)
        good = compare_line(&r, &x, x_end, &y, y_end);
    if (good && x < x_end && next_cell(&x, x_end, &old))
        audit_differ(part, "", "a line more", cell_text(&old, a), "none");
    free(r.column);
    return CHEX_OK;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void
show(const json_t *value, char out[CELL])
{
    size_t length = value ? json_dumpb(value, out, CELL - 1, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(17))
                          : 0;

    if (!value)
        snprintf(out, CELL, "nothing");
    else
        out[length < CELL - 1 ? length : CELL - 1] = '\0';
}

static void compare_values(struct audit_part *part, const char *path, const json_t *was, const json_t *now);

/* "findings.Edema": an element with a name, or its index */
static void
element_path(const char *path, const json_t *now, size_t index, char out[AUDIT_NAME])
{
    const char *name = json_string_value(json_object_get(now, "name"));

    if (name)
        snprintf(out, AUDIT_NAME, "%.240s.%.64s", path, name);
    else
        snprintf(out, AUDIT_NAME, "%.240s.%zu", path, index);
}

static void
compare_members(struct audit_part *part, const char *path, const json_t *was, const json_t *now)
{
    char name[AUDIT_NAME];
    const char *key;
    json_t *value;

    json_object_foreach ((json_t *)now, key, value) {
        snprintf(name, sizeof(name), "%.240s%s%.64s", path, path[0] ? "." : "", key);
        compare_values(part, name, json_object_get(was, key), value);
    }
    json_object_foreach ((json_t *)was, key, value) {
        snprintf(name, sizeof(name), "%.240s%s%.64s", path, path[0] ? "." : "", key);
        if (!json_object_get(now, key))
            compare_values(part, name, value, NULL);
    }
}

/* Either may be NULL: it is missing there. */
static void
compare_values(struct audit_part *part, const char *path, const json_t *was, const json_t *now)
{
    size_t i, most = json_array_size(was) > json_array_size(now) ? json_array_size(was) : json_array_size(now);
    char x[CELL], y[CELL], name[AUDIT_NAME];

    if (json_is_object(was) && json_is_object(now)) {
        compare_members(part, path, was, now);
    } else if (json_is_array(was) && json_is_array(now)) {
        for (i = 0; i < most; i++) {
            element_path(path, json_array_get(now, i), i, name);
            compare_values(part, name, json_array_get(was, i), json_array_get(now, i));
        }
    } else if (!was || !now || !json_equal(was, now)) {
        show(was, x);
        show(now, y);
        audit_differ(part, "", path, x, y);
    }
}

enum chex_status
audit_compare_json(struct audit_part *part, const char *prefix, bool but_version, const struct buffer *was,
                   const struct buffer *now, struct chex_error *err)
{
    static const struct parse_bounds bounds = {.size = 64u << 20, .depth = JSON_DEPTH, .values = 1000000};
    json_t *x = NULL, *y = NULL;
    struct chex_error why;
    enum chex_status status = parse_json(now->data, now->size, &bounds, &y, err), read = CHEX_OK;

    if (status == CHEX_OK)
        read = parse_json(was->data, was->size, &bounds, &x, &why);
    if (read == CHEX_ERR_MEMORY)
        status = error_memory(err);
    else if (read != CHEX_OK)
        audit_differ(part, "", why.text, "", "");
    if (but_version) {
        json_object_del(x, "version");
        json_object_del(y, "version");
    }
    if (status == CHEX_OK && read == CHEX_OK)
        compare_values(part, prefix, x, y);
    json_decref(x);
    json_decref(y);
    return status;
}
