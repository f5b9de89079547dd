/*
 * label_file.c - see label_file.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/run/label_file.h"

#include "base/ascii.h"
#include "chex.h"
#include "dataset/findings.h"
#include "inspect/run/image_file.h"

#include <stdlib.h>
#include <string.h>

#define SHOWN 64

struct labels_reading {
    const struct predictions *p;
    struct label_file *f;
    int list;                    /* column "Finding Labels", or -1 */
    int column[METRICS_OUTPUTS]; /* of each finding, or -1 */
};

/* ---- header ------------------------------------------------------------------------------------------------------ */

static enum chex_status
find_columns(struct labels_reading *r, const struct table_row *row, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    unsigned k, found = 0;

    for (k = 0; k < r->p->outputs && status == CHEX_OK; k++) {
        const char *const names[] = {r->p->finding[k], NULL};

        status = table_column_once(row, names, err);
        r->column[k] = table_column(row, names);
        r->f->known[k] = r->column[k] >= 0;
        found += r->f->known[k];
    }
    return status == CHEX_OK && found == 0
               ? table_fail(row, err, "no column 'Finding Labels', and none of a finding of the run")
               : status;
}

static enum chex_status
on_header(void *context, const struct table_row *row, size_t image, struct chex_error *err)
{
    static const char *const names[] = {"findinglabels", NULL};
    struct labels_reading *r = context;
    enum chex_status status = table_column_once(row, names, err);
    unsigned k;

    (void)image;
    if (status != CHEX_OK)
        return status;
    r->list = table_column(row, names);
    if (r->list < 0)
        return find_columns(r, row, err);
    for (k = 0; k < r->p->outputs; k++)
        r->f->known[k] = true;
    return CHEX_OK;
}

/* ---- images ------------------------------------------------------------------------------------------------------ */

/* Names are compared as those of columns are. */
static bool
is_name(const char *text, size_t length, const char *name)
{
    char copy[2 * FINDING_NAME_MAX];

    if (length >= sizeof(copy))
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return table_same_name(copy, name);
}

/* Set the label of a name from the list; a name that is no finding of the run is counted. */
static void
take_name(struct labels_reading *r, const char *name, size_t length, uint8_t *label)
{
    unsigned k;

    for (k = 0; k < r->p->outputs && !is_name(name, length, r->p->finding[k]); k++)
        ;
    if (k < r->p->outputs)
        label[k] = 1;
    else if (r->f->strange++ == 0)
        ascii_escape(name, length, r->f->stranger, sizeof(r->f->stranger));
}

static enum chex_status
take_list(struct labels_reading *r, const struct table_row *row, uint8_t *label, struct chex_error *err)
{
    static const char none[] = "No Finding";
    const char *text = (size_t)r->list < row->count ? row->field[r->list] : "";
    unsigned names = 0;
    bool healthy = false;

    memset(label, 0, r->p->outputs);
    for (;; text++) {
        size_t length;

        text += strspn(text, " ");
        length = strcspn(text, "|");
        while (length > 0 && text[length - 1] == ' ')
            length--;
        if (length == 0)
            return table_fail(row, err, "an empty label; an image without a finding has '%s'", none);
        names++;
        if (is_name(text, length, none))
            healthy = true;
        else
            take_name(r, text, length, label);
        text += strcspn(text, "|");
        if (!*text)
            break;
    }
    return healthy && names > 1 ? table_fail(row, err, "'%s' together with another label", none) : CHEX_OK;
}

/* Returns whether a cell is 0 or 1; other programs write 1.0, as CheXpert has it. */
static bool
is_label(const char *text)
{
    const char *zeros = text + 2;

    return (text[0] == '0' || text[0] == '1') && (!text[1] || (text[1] == '.' && zeros[strspn(zeros, "0")] == '\0'));
}

static enum chex_status
take_columns(const struct labels_reading *r, const struct table_row *row, uint8_t *label, struct chex_error *err)
{
    char finding[SHOWN], shown[SHOWN];
    unsigned k;

    for (k = 0; k < r->p->outputs; k++) {
        int at = r->column[k];
        const char *text = at >= 0 && (size_t)at < row->count ? row->field[at] : "";

        if (text[0] && !is_label(text))
            return table_fail(row, err, "the label of '%s' is '%s', not 0, 1 or empty",
                              ascii_escape(r->p->finding[k], strlen(r->p->finding[k]), finding, SHOWN),
                              ascii_escape(text, strlen(text), shown, SHOWN));
        label[k] = text[0] ? (uint8_t)(text[0] - '0') : CHEX_LABEL_UNKNOWN;
    }
    return CHEX_OK;
}

static enum chex_status
on_image(void *context, const struct table_row *row, size_t at, struct chex_error *err)
{
    struct labels_reading *r = context;
    uint8_t *label = r->f->label + at * r->p->outputs;

    r->f->has[at] = true;
    return r->list >= 0 ? take_list(r, row, label, err) : take_columns(r, row, label, err);
}

enum chex_status
label_file_read(const char *path, const struct predictions *p, struct label_file *out, struct chex_error *err)
{
    struct labels_reading r = {.p = p, .f = out, .list = -1};
    struct image_table file = {.p = p, .header = on_header, .image = on_image, .context = &r};
    enum chex_status status;

    *out = (struct label_file){.found = 0};
    out->has = calloc(p->count, sizeof(*out->has));
    out->label = malloc(p->count * p->outputs);
    status = out->has && out->label ? image_file_read(path, &file, err) : error_memory(err);
    out->found = file.found;
    out->others = file.others;
    return status;
}

void
label_file_release(struct label_file *f)
{
    free(f->has);
    free(f->label);
    *f = (struct label_file){.found = 0};
}
