/*
 * predictions_read.c - see predictions_read.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "eval/predictions_read.h"

#include "base/ascii.h"
#include "base/memory.h"
#include "chex.h"
#include "io/csv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AGE_MOST 1000 /* years */

struct csv_reading {
    struct predictions *p;
    bool header; /* it was read */
    int image, patient, short_run, age, sex, view;
    int probability[METRICS_OUTPUTS], label[METRICS_OUTPUTS]; /* columns */
    size_t images, patients, probabilities, labels;           /* capacity of each array of p, in images */
    size_t views, sexes, ages;
};

#define SHOWN 64 /* bytes of a text of the file in a message */

static const char *
show(const char *text, char out[SHOWN])
{
    return ascii_escape(text, strlen(text), out, SHOWN);
}

/* ---- header ------------------------------------------------------------------------------------------------------ */

/* Returns the column with exactly this name, or -1. */
static int
column(const struct table_row *row, const char *prefix, const char *name)
{
    size_t length = strlen(prefix), i;

    for (i = 0; i < row->count; i++)
        if (strncmp(row->field[i], prefix, length) == 0 && strcmp(row->field[i] + length, name) == 0)
            return (int)i;
    return -1;
}

static enum chex_status
add_finding(struct csv_reading *r, const struct table_row *row, size_t at, struct chex_error *err)
{
    struct predictions *p = r->p;
    const char *name = row->field[at] + strlen("prob_");
    int label = column(row, "label_", name);
    char shown[SHOWN];

    if (p->outputs == METRICS_OUTPUTS)
        return table_fail(row, err, "more than %d findings", METRICS_OUTPUTS);
    if (label < 0)
        return table_fail(row, err, "no column 'label_%s'", show(name, shown));
    if (column(row, "prob_", name) != (int)at)
        return table_fail(row, err, "two columns 'prob_%s'", show(name, shown));
    r->probability[p->outputs] = (int)at;
    r->label[p->outputs] = label;
    p->finding[p->outputs] = arena_copy(&p->strings, name, strlen(name));
    return p->finding[p->outputs++] ? CHEX_OK : error_memory(err);
}

static enum chex_status
read_header(struct csv_reading *r, const struct table_row *row, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    size_t i;

    r->header = true;
    r->image = column(row, "", "image");
    r->patient = column(row, "", "patient");
    r->short_run = column(row, "", "short_run");
    r->age = column(row, "", "age");
    r->sex = column(row, "", "sex");
    r->view = column(row, "", "view");
    r->p->people = r->age >= 0 && r->sex >= 0 && r->view >= 0;
    r->p->leaky = column(row, "", "leaky") >= 0;
    if (r->image < 0 || r->patient < 0)
        return table_fail(row, err, "no column '%s'", r->image < 0 ? "image" : "patient");
    for (i = 0; i < row->count && status == CHEX_OK; i++)
        if (strncmp(row->field[i], "prob_", 5) == 0)
            status = add_finding(r, row, i, err);
    return status == CHEX_OK && r->p->outputs == 0 ? table_fail(row, err, "no column 'prob_...'") : status;
}

/* ---- images ------------------------------------------------------------------------------------------------------ */

static enum chex_status
make_room(struct csv_reading *r, struct chex_error *err)
{
    struct predictions *p = r->p;
    const char **image = array_grow(p->image, &r->images, p->count, sizeof(*image));
    const char **patient = array_grow(p->patient, &r->patients, p->count, sizeof(*patient));
    float *probability = array_grow(p->probability, &r->probabilities, p->count, p->outputs * sizeof(*probability));
    uint8_t *label = array_grow(p->label, &r->labels, p->count, p->outputs);
    const char **view = array_grow(p->view, &r->views, p->count, sizeof(*view));
    char *sex = array_grow(p->sex, &r->sexes, p->count, sizeof(*sex));
    float *age = array_grow(p->age, &r->ages, p->count, sizeof(*age));

    p->image = image ? image : p->image;
    p->patient = patient ? patient : p->patient;
    p->probability = probability ? probability : p->probability;
    p->label = label ? label : p->label;
    p->view = view ? view : p->view;
    p->sex = sex ? sex : p->sex;
    p->age = age ? age : p->age;
    return image && patient && probability && label && view && sex && age ? CHEX_OK : error_memory(err);
}

static enum chex_status
read_values(const struct csv_reading *r, const struct table_row *row, struct chex_error *err)
{
    const struct predictions *p = r->p;
    char finding[SHOWN], shown[SHOWN];
    unsigned k;

    for (k = 0; k < p->outputs; k++) {
        const char *text = row->field[r->probability[k]], *label = row->field[r->label[k]];
        size_t at = p->count * p->outputs + k;
        char *end;

        p->probability[at] = strtof(text, &end);
        if (end == text || *end || !(p->probability[at] >= 0 && p->probability[at] <= 1))
            return table_fail(row, err, "the probability of '%s' is '%s'", show(p->finding[k], finding),
                              show(text, shown));
        if (label[0] && (strspn(label, "01") != 1 || label[1]))
            return table_fail(row, err, "the label of '%s' is '%s'", show(p->finding[k], finding), show(label, shown));
        p->label[at] = label[0] ? (uint8_t)(label[0] - '0') : CHEX_LABEL_UNKNOWN;
    }
    return CHEX_OK;
}

/* Returns the text of a column that may be missing. */
static const char *
optional(const struct table_row *row, int at)
{
    return at >= 0 && (size_t)at < row->count ? row->field[at] : "";
}

static enum chex_status
read_person(const struct csv_reading *r, const struct table_row *row, struct chex_error *err)
{
    struct predictions *p = r->p;
    char shown[SHOWN];
    const char *age = optional(row, r->age), *sex = optional(row, r->sex), *view = optional(row, r->view);
    char *end;

    p->age[p->count] = age[0] ? strtof(age, &end) : (float)NAN;
    if (age[0] && (*end || !(p->age[p->count] >= 0 && p->age[p->count] <= AGE_MOST)))
        return table_fail(row, err, "the age is '%s'", show(age, shown));
    if (sex[0] && (strspn(sex, "MFU") != 1 || sex[1]))
        return table_fail(row, err, "the sex is '%s'", show(sex, shown));
    p->sex[p->count] = sex[0] ? sex[0] : 'U';
    p->view[p->count] = arena_copy(&p->strings, view, strlen(view));
    return p->view[p->count] ? CHEX_OK : error_memory(err);
}

static enum chex_status
read_image(struct csv_reading *r, const struct table_row *row, struct chex_error *err)
{
    struct predictions *p = r->p;
    const char *short_run = optional(row, r->short_run);
    int last = r->image > r->patient ? r->image : r->patient;
    enum chex_status status;
    unsigned k;

    for (k = 0; k < p->outputs; k++) {
        last = r->probability[k] > last ? r->probability[k] : last;
        last = r->label[k] > last ? r->label[k] : last;
    }
    if ((size_t)last >= row->count)
        return table_fail(row, err, "%zu columns, %d are needed", row->count, last + 1);
    if (!row->length[r->image] || !row->length[r->patient])
        return table_fail(row, err, "no %s", row->length[r->image] ? "patient" : "image");
    status = make_room(r, err);
    if (status == CHEX_OK)
        status = read_values(r, row, err);
    if (status == CHEX_OK)
        status = read_person(r, row, err);
    if (status != CHEX_OK)
        return status;
    if (p->count == 0)
        snprintf(p->short_run, sizeof(p->short_run), "%s", short_run);
    p->image[p->count] = arena_copy(&p->strings, row->field[r->image], row->length[r->image]);
    p->patient[p->count] = arena_copy(&p->strings, row->field[r->patient], row->length[r->patient]);
    if (!p->image[p->count] || !p->patient[p->count])
        return error_memory(err);
    p->count++;
    return CHEX_OK;
}

static enum chex_status
read_row(const struct table_row *row, void *context, struct chex_error *err)
{
    struct csv_reading *r = context;

    return r->header ? read_image(r, row, err) : read_header(r, row, err);
}

enum chex_status
predictions_read(const char *path, struct predictions *out, struct chex_error *err)
{
    struct csv_reading r = {.p = out};
    enum chex_status status;

    *out = (struct predictions){.count = 0};
    status = table_read(path, read_row, &r, NULL, err);
    if (status == CHEX_OK && out->count == 0)
        status = error_set(err, CHEX_ERR_INCOMPATIBLE, "'%s' has no image", path);
    if (status == CHEX_ERR_USAGE && err)
        err->status = CHEX_ERR_INCOMPATIBLE;
    return status == CHEX_ERR_USAGE ? CHEX_ERR_INCOMPATIBLE : status;
}

void
predictions_release(struct predictions *p)
{
    free(p->image);
    free(p->patient);
    free(p->probability);
    free(p->label);
    free(p->view);
    free(p->sex);
    free(p->age);
    arena_release(&p->strings);
    *p = (struct predictions){.count = 0};
}

bool
predictions_same_images(const struct predictions *a, const struct predictions *b)
{
    size_t i;

    if (a->count != b->count || a->outputs != b->outputs)
        return false;
    for (i = 0; i < a->count; i++)
        if (strcmp(a->image[i], b->image[i]) != 0)
            return false;
    return memcmp(a->label, b->label, a->count * a->outputs) == 0;
}
