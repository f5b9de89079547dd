/*
 * predictions.c - writes the CSV of predictions.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "dataset/findings.h"
#include "eval/predictions.h"
#include "io/csv.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

/* A growing text; keeps the first failure. */
struct text {
    struct buffer b;
    bool failed;
};

static void
put(struct text *t, const char *data, size_t size)
{
    t->failed = t->failed || buffer_append(&t->b, data, size, NULL) != CHEX_OK;
}

static void put_format(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void
put_format(struct text *t, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    t->failed = t->failed || buffer_vprintf(&t->b, NULL, format, args) != CHEX_OK;
    va_end(args);
}

static void
put_field(struct text *t, const char *field)
{
    t->failed = t->failed || table_append_field(&t->b, field, NULL) != CHEX_OK;
}

static void
put_header(struct text *t, const struct evaluation *e, bool marked)
{
    unsigned k;

    put_format(t, "image,patient,split,age,sex,view");
    for (k = 0; k < e->outputs; k++)
        put_format(t, ",prob_%s", e->findings[k]);
    for (k = 0; k < e->outputs; k++)
        put_format(t, ",label_%s", e->findings[k]);
    put_format(t, "%s%s%s\n", e->metrics.leaky ? ",leaky" : "", e->metrics.short_run[0] ? ",short_run" : "",
               marked ? "," RESEARCH_COLUMN : "");
}

/* Append ",AGE,SEX,VIEW". */
static void
put_person(struct text *t, const struct evaluated_image *image)
{
    put(t, ",", 1);
    if (!isnan(image->age))
        put_format(t, "%.9g", (double)image->age);
    put_format(t, ",%c,", image->sex);
    put_field(t, image->view);
}

static void
put_image(struct text *t, const struct evaluation *e, size_t i, const char *split, bool marked)
{
    unsigned k;

    put_field(t, e->image[i].name);
    put(t, ",", 1);
    put_field(t, e->image[i].person);
    put(t, ",", 1);
    put_field(t, split);
    put_person(t, &e->image[i]);
    for (k = 0; k < e->outputs; k++)
        put_format(t, ",%.9g", (double)e->probability[i * e->outputs + k]);
    for (k = 0; k < e->outputs; k++) {
        unsigned label = e->label[i * e->outputs + k];

        if (label == CHEX_LABEL_UNKNOWN)
            put(t, ",", 1);
        else
            put_format(t, ",%u", label);
    }
    put_format(t, "%s%s%s%s\n", e->metrics.leaky ? ",1" : "", e->metrics.short_run[0] ? "," : "", e->metrics.short_run,
               marked ? ",1" : "");
}

enum chex_status
predictions_text(const struct evaluation *e, const struct evaluation_source *from, struct buffer *text,
                 struct chex_error *err)
{
    const char *split = chex_dataset_split(from->ds, e->split)->name;
    struct text t = {.b = *text};
    size_t i;

    put_header(&t, e, !from->unmarked);
    for (i = 0; !t.failed && i < e->count; i++)
        put_image(&t, e, i, split, !from->unmarked);
    *text = t.b;
    return t.failed ? error_memory(err) : CHEX_OK;
}

enum chex_status
predictions_write(const struct evaluation *e, const struct evaluation_source *from, const struct folder *folder,
                  const char *name, struct chex_error *err)
{
    struct buffer text = {0};
    enum chex_status status = predictions_text(e, from, &text, err);

    if (status == CHEX_OK)
        status = safe_file_put(folder, name, text.data, text.size, err);
    buffer_release(&text);
    return status;
}
