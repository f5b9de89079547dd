/*
 * references.c - see references.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/run/references.h"

#include "base/ascii.h"
#include "io/csv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN      64
#define IMAGE_MOST 1000000000u

enum { SOURCE, SPLIT, FINDING, AUROC, NEEDED, IMAGES = NEEDED, COLUMNS };

struct reference_reading {
    const struct predictions *p;
    struct references *out;
    bool header;
    int column[COLUMNS]; /* IMAGES may be -1 */
};

static const char *
field(const struct reference_reading *r, const struct table_row *row, int which)
{
    int at = r->column[which];

    return at >= 0 && (size_t)at < row->count ? row->field[at] : "";
}

static enum chex_status
read_header(struct reference_reading *r, const struct table_row *row, struct chex_error *err)
{
    static const char *const names[COLUMNS] = {"source", "split", "finding", "auroc", "n"};
    enum chex_status status = CHEX_OK;
    int i;

    r->header = true;
    for (i = 0; i < COLUMNS && status == CHEX_OK; i++) {
        const char *const name[] = {names[i], NULL};

        status = table_column_once(row, name, err);
        r->column[i] = table_column(row, name);
        if (status == CHEX_OK && i < NEEDED && r->column[i] < 0) {
            status = table_check_separator(row, err);
            if (status == CHEX_OK)
                status = table_fail(row, err, "no column '%s'", names[i]);
        }
    }
    return status;
}

static enum chex_status
take_text(const struct table_row *row, const char *name, const char *text, char out[REFERENCE_TEXT],
          struct chex_error *err)
{
    char all[4 * REFERENCE_TEXT];

    if (text[0] && strlen(text) < REFERENCE_TEXT) {
        ascii_escape(text, strlen(text), all, sizeof(all));
        if (strlen(all) < REFERENCE_TEXT) {
            memcpy(out, all, strlen(all) + 1);
            return CHEX_OK;
        }
    }
    return table_fail(row, err, "no %s, or one of more than %d characters", name, REFERENCE_TEXT - 1);
}

/* Find the reference of this source and split, or add it. */
static enum chex_status
find_reference(struct reference_reading *r, const struct table_row *row, struct reference **out, struct chex_error *err)
{
    char source[REFERENCE_TEXT], split[REFERENCE_TEXT];
    struct references *all = r->out;
    enum chex_status status = take_text(row, "source", field(r, row, SOURCE), source, err);
    unsigned i, k;

    if (status == CHEX_OK)
        status = take_text(row, "split", field(r, row, SPLIT), split, err);
    if (status != CHEX_OK)
        return status;
    for (i = 0; i < all->count; i++)
        if (strcmp(all->of[i].source, source) == 0 && strcmp(all->of[i].split, split) == 0)
            break;
    if (i == REFERENCES_MOST)
        return table_fail(row, err, "more than %d references", REFERENCES_MOST);
    *out = &all->of[i];
    if (i < all->count)
        return CHEX_OK;
    all->count++;
    memcpy((*out)->source, source, sizeof(source));
    memcpy((*out)->split, split, sizeof(split));
    (*out)->mean = (double)NAN;
    for (k = 0; k < METRICS_OUTPUTS; k++)
        (*out)->auroc[k] = (double)NAN;
    return CHEX_OK;
}

static enum chex_status
take_images(struct reference *of, const struct table_row *row, const char *text, struct chex_error *err)
{
    char shown[SHOWN], *end;
    unsigned long n = strtoul(text, &end, 10);

    if (!text[0])
        return CHEX_OK;
    if (strspn(text, "0123456789") != strlen(text) || strlen(text) > 10 || n == 0 || n > IMAGE_MOST)
        return table_fail(row, err, "n is '%s', not a number of images",
                          ascii_escape(text, strlen(text), shown, SHOWN));
    if (of->images != 0 && of->images != n)
        return table_fail(row, err, "this source and split have n %lu here, and %llu above", n,
                          (unsigned long long)of->images);
    of->images = n;
    return CHEX_OK;
}

/* Returns where the AUROC of a finding belongs, NULL for a finding that the run does not have. */
static double *
place_of(const struct reference_reading *r, struct reference *of, const char *finding)
{
    unsigned k;

    if (strcmp(finding, "mean") == 0)
        return &of->mean;
    for (k = 0; k < r->p->outputs; k++)
        if (strcmp(finding, r->p->finding[k]) == 0)
            return &of->auroc[k];
    return NULL;
}

static enum chex_status
read_reference(struct reference_reading *r, const struct table_row *row, struct chex_error *err)
{
    const char *text = field(r, row, AUROC), *finding = field(r, row, FINDING);
    struct reference *of = NULL;
    enum chex_status status = find_reference(r, row, &of, err);
    char shown[SHOWN], *end;
    double auroc = strtod(text, &end), *place;

    if (status == CHEX_OK)
        status = take_images(of, row, field(r, row, IMAGES), err);
    if (status != CHEX_OK)
        return status;
    if (strspn(text, ".0123456789") != strlen(text) || end == text || *end || !(auroc >= 0 && auroc <= 1))
        return table_fail(row, err, "the AUROC is '%s', not a number from 0 to 1",
                          ascii_escape(text, strlen(text), shown, SHOWN));
    if (!finding[0])
        return table_fail(row, err, "no finding");
    place = place_of(r, of, finding);
    if (!place) {
        r->out->others++;
        return CHEX_OK;
    }
    if (!isnan(*place))
        return table_fail(row, err, "'%s' is there twice for this source and split",
                          ascii_escape(finding, strlen(finding), shown, SHOWN));
    *place = auroc;
    return CHEX_OK;
}

static enum chex_status
read_row(const struct table_row *row, void *context, struct chex_error *err)
{
    struct reference_reading *r = context;

    return r->header ? read_reference(r, row, err) : read_header(r, row, err);
}

enum chex_status
references_read(const char *path, const struct predictions *p, struct references *out, struct chex_error *err)
{
    struct reference_reading r = {.p = p, .out = out};
    enum chex_status status;

    *out = (struct references){.count = 0};
    status = table_read(path, read_row, &r, NULL, err);
    if (status == CHEX_OK && out->count == 0)
        status = error_set(err, CHEX_ERR_INCOMPATIBLE, "'%s' has no result", path);
    if (status == CHEX_ERR_USAGE)
        err->status = status = CHEX_ERR_INCOMPATIBLE; /* of the file, not of the command */
    return status;
}
