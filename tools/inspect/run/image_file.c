/*
 * image_file.c - see image_file.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/run/image_file.h"

#include "base/ascii.h"
#include "eval/predictions_index.h"

#include <stdlib.h>
#include <string.h>

#define SHOWN 128

struct image_reading {
    struct image_table *f;
    struct named_row *index;
    bool *seen; /* [p->count] */
    int column; /* -1: the header was not read */
};

/* Find the one column of images. */
static enum chex_status
read_header(struct image_reading *r, const struct table_row *row, struct chex_error *err)
{
    static const char *const names[] = {"image", "imageindex", "imageid", "filename", NULL};
    enum chex_status status = table_column_once(row, names, err);
    unsigned i, found = 0;

    if (status != CHEX_OK)
        return status;
    for (i = 0; names[i]; i++)
        found += table_column(row, (const char *const[]){names[i], NULL}) >= 0;
    if (found > 1)
        return table_fail(row, err, "several columns of images, such as 'image' and 'Image Index'");
    if (found == 0) {
        status = table_check_separator(row, err);
        return status == CHEX_OK ? table_fail(row, err, "no column 'image' or 'Image Index'") : status;
    }
    r->column = table_column(row, names);
    return r->f->header(r->f->context, row, (size_t)r->column, err);
}

static enum chex_status
read_row(const struct table_row *row, void *context, struct chex_error *err)
{
    struct image_reading *r = context;
    char shown[SHOWN];
    size_t at;

    if (r->column < 0)
        return read_header(r, row, err);
    if ((size_t)r->column >= row->count || row->length[r->column] == 0)
        return table_fail(row, err, "no name of an image");
    at = predictions_find(r->index, r->f->p->count, row->field[r->column]);
    if (at == PREDICTIONS_NONE) {
        r->f->others++;
        return CHEX_OK;
    }
    if (r->seen[at])
        return table_fail(row, err, "the image '%s' is there twice",
                          ascii_escape(row->field[r->column], row->length[r->column], shown, sizeof(shown)));
    r->seen[at] = true;
    r->f->found++;
    return r->f->image(r->f->context, row, at, err);
}

enum chex_status
image_file_read(const char *path, struct image_table *f, struct chex_error *err)
{
    struct image_reading r = {.f = f, .column = -1};
    enum chex_status status = predictions_index(f->p, &r.index, err);

    f->found = f->others = 0;
    r.seen = calloc(f->p->count, sizeof(*r.seen));
    if (status == CHEX_OK && !r.seen)
        status = error_memory(err);
    if (status == CHEX_ERR_INCOMPATIBLE)
        error_context(err, status, "predictions");
    if (status == CHEX_OK)
        status = table_read(path, read_row, &r, NULL, err);
    if (status == CHEX_OK && r.column < 0)
        status = error_set(err, CHEX_ERR_INCOMPATIBLE, "'%s': the file is empty", path);
    if (status == CHEX_OK && f->found == 0)
        status = error_set(err, CHEX_ERR_INCOMPATIBLE,
                           "'%s' has none of the %zu images of the predictions: names must be equal, such as '%.80s'",
                           path, f->p->count, f->p->image[0]);
    if (status == CHEX_ERR_USAGE)
        err->status = status = CHEX_ERR_INCOMPATIBLE; /* of the file, not of the command */
    free(r.index);
    free(r.seen);
    return status;
}
