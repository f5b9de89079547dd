/*
 * group_file.c - see group_file.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/run/group_file.h"

#include "base/ascii.h"
#include "inspect/run/image_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Escape a text; returns false if it is too long. */
static bool
take_text(const struct table_row *row, size_t field, char out[GROUP_FILE_TEXT])
{
    char all[4 * GROUP_FILE_TEXT + 8];

    if (row->length[field] >= GROUP_FILE_TEXT)
        return false;
    ascii_escape(row->field[field], row->length[field], all, sizeof(all));
    snprintf(out, GROUP_FILE_TEXT, "%.*s", GROUP_FILE_TEXT - 1, all);
    return strlen(all) < GROUP_FILE_TEXT;
}

static enum chex_status
add_column(struct group_file *f, const struct table_row *row, size_t field, struct chex_error *err)
{
    struct group_column *c = &f->column[f->columns];
    unsigned i;

    if (f->columns == GROUP_FILE_COLUMNS)
        return table_fail(row, err, "more than %d columns of groups", GROUP_FILE_COLUMNS);
    if (!row->length[field] || !take_text(row, field, c->name))
        return table_fail(row, err, "column %zu has no name, or one of more than %d characters", field + 1,
                          GROUP_FILE_TEXT - 1);
    for (i = 0; i < f->columns; i++)
        if (strcmp(f->column[i].name, c->name) == 0)
            return table_fail(row, err, "two columns '%s'", c->name);
    c->field = field;
    c->of = malloc(f->images);
    if (!c->of)
        return error_memory(err);
    memset(c->of, GROUP_FILE_VALUES, f->images);
    f->columns++;
    return CHEX_OK;
}

static enum chex_status
on_header(void *context, const struct table_row *row, size_t image, struct chex_error *err)
{
    struct group_file *f = context;
    enum chex_status status = CHEX_OK;
    size_t i;

    for (i = 0; i < row->count && status == CHEX_OK; i++)
        if (i != image)
            status = add_column(f, row, i, err);
    return status == CHEX_OK && f->columns == 0 ? table_fail(row, err, "no column of groups, only that of images")
                                                : status;
}

static enum chex_status
take_value(struct group_column *c, const struct table_row *row, size_t at, struct chex_error *err)
{
    char text[GROUP_FILE_TEXT];
    unsigned i;

    if (c->field >= row->count || row->length[c->field] == 0)
        return CHEX_OK;
    if (!take_text(row, c->field, text))
        return table_fail(row, err, "the value of '%s' has more than %d characters", c->name, GROUP_FILE_TEXT - 1);
    for (i = 0; i < c->values && strcmp(c->value[i], text) != 0; i++)
        ;
    if (i == GROUP_FILE_VALUES)
        return table_fail(row, err, "the column '%s' has more than %d different values: divide numbers into classes",
                          c->name, GROUP_FILE_VALUES);
    if (i == c->values)
        memcpy(c->value[c->values++], text, sizeof(text));
    c->of[at] = (uint8_t)i;
    return CHEX_OK;
}

static enum chex_status
on_image(void *context, const struct table_row *row, size_t at, struct chex_error *err)
{
    struct group_file *f = context;
    enum chex_status status = CHEX_OK;
    unsigned i;

    for (i = 0; i < f->columns && status == CHEX_OK; i++)
        status = take_value(&f->column[i], row, at, err);
    return status;
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

static int
by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Sort the values, so that the groups do not depend on the order of the rows. */
static void
sort_values(struct group_file *f, struct group_column *c)
{
    char sorted[GROUP_FILE_VALUES][GROUP_FILE_TEXT];
    uint8_t place[GROUP_FILE_VALUES + 1] = {[GROUP_FILE_VALUES] = GROUP_FILE_VALUES};
    unsigned i, k;
    size_t image;

    memcpy(sorted, c->value, sizeof(sorted));
    qsort(sorted, c->values, sizeof(sorted[0]), by_text);
    for (i = 0; i < c->values; i++)
        for (k = 0; k < c->values; k++)
            if (strcmp(c->value[i], sorted[k]) == 0)
                place[i] = (uint8_t)k;
    memcpy(c->value, sorted, sizeof(sorted));
    for (image = 0; image < f->images; image++)
        c->of[image] = place[c->of[image]];
}

/* Two values make one group; a single value has no rest. */
static unsigned
groups_of(const struct group_column *c)
{
    return c->values < 2 ? 0 : c->values == 2 ? 1 : c->values;
}

/* Returns the column of a group, and the index of its value. */
static const struct group_column *
find_group(const struct group_file *f, unsigned group, unsigned *value)
{
    const struct group_column *c = f->column;

    for (; group >= groups_of(c); c++)
        group -= groups_of(c);
    *value = c->values == 2 ? 1 : group;
    return c;
}

void
group_file_name(const struct group_file *f, unsigned group, char name[GROUP_FILE_NAME], char rest[GROUP_FILE_NAME])
{
    unsigned value;
    const struct group_column *c = find_group(f, group, &value);

    snprintf(name, GROUP_FILE_NAME, "%s: %s", c->name, c->value[value]);
    if (c->values == 2)
        snprintf(rest, GROUP_FILE_NAME, "%s: %s", c->name, c->value[0]);
    else
        snprintf(rest, GROUP_FILE_NAME, "other values");
}

enum subgroup_side
group_file_side(const struct group_file *f, unsigned group, size_t image)
{
    unsigned value;
    const struct group_column *c = find_group(f, group, &value);

    return c->of[image] == GROUP_FILE_VALUES ? SUBGROUP_OUT : c->of[image] == value ? SUBGROUP_IN : SUBGROUP_REST;
}

enum chex_status
group_file_read(const char *path, const struct predictions *p, struct group_file *out, struct chex_error *err)
{
    struct image_table file = {.p = p, .header = on_header, .image = on_image, .context = out};
    enum chex_status status;
    unsigned i;

    *out = (struct group_file){.images = p->count};
    status = image_file_read(path, &file, err);
    for (i = 0; i < out->columns && status == CHEX_OK; i++) {
        sort_values(out, &out->column[i]);
        out->groups += groups_of(&out->column[i]);
    }
    out->others = file.others;
    out->without = p->count - file.found;
    if (status == CHEX_OK && out->groups == 0)
        status = error_set(err, CHEX_ERR_INCOMPATIBLE, "'%s': no column has two different values for these images",
                           path);
    if (status == CHEX_OK && out->groups > GROUP_FILE_MOST)
        status = error_set(err, CHEX_ERR_INCOMPATIBLE, "'%s' has %u groups, more than %d", path, out->groups,
                           GROUP_FILE_MOST);
    return status;
}

void
group_file_release(struct group_file *f)
{
    unsigned i;

    for (i = 0; i < f->columns; i++)
        free(f->column[i].of);
    f->columns = 0;
}
