/*
 * subset.c - some images of a run, with its model, as a report of their own; see run.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/run/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static enum chex_status
make_room(struct run_report *o, size_t images, unsigned outputs, struct chex_error *err)
{
    struct predictions *p = &o->p;

    p->image = malloc(images * sizeof(*p->image));
    p->patient = malloc(images * sizeof(*p->patient));
    p->view = malloc(images * sizeof(*p->view));
    p->sex = malloc(images);
    p->age = malloc(images * sizeof(*p->age));
    p->probability = malloc(images * outputs * sizeof(*p->probability));
    p->label = malloc(images * outputs);
    o->patient = malloc(images * sizeof(*o->patient));
    return p->image && p->patient && p->view && p->sex && p->age && p->probability && p->label && o->patient
               ? CHEX_OK
               : error_memory(err);
}

static void
copy_image(const struct run_report *r, size_t from, struct run_report *o)
{
    struct predictions *p = &o->p;
    const size_t outputs = r->p.outputs, to = p->count++;

    p->image[to] = r->p.image[from];
    p->patient[to] = r->p.patient[from];
    p->view[to] = r->p.view[from];
    p->sex[to] = r->p.sex[from];
    p->age[to] = r->p.age[from];
    memcpy(p->probability + to * outputs, r->p.probability + from * outputs, outputs * sizeof(*p->probability));
    memcpy(p->label + to * outputs, r->p.label + from * outputs, outputs);
}

/* Copy the images, and number their patients in the order of their first images. */
static enum chex_status
copy_images(const struct run_report *r, const size_t *row, size_t count, struct run_report *o, struct chex_error *err)
{
    uint32_t *number = malloc(r->patients * sizeof(*number)); /* UINT32_MAX: not seen yet */
    size_t i;

    if (!number)
        return error_memory(err);
    memset(number, 0xff, r->patients * sizeof(*number));
    for (i = 0; i < count; i++) {
        uint32_t *patient = &number[r->patient[row[i]]];

        if (*patient == UINT32_MAX)
            *patient = o->patients++;
        o->patient[i] = *patient;
        copy_image(r, row[i], o);
    }
    free(number);
    return CHEX_OK;
}

static void
copy_model(const struct run_report *r, struct run_report *o)
{
    unsigned k, i;

    o->in = r->in;
    o->path = r->path;
    o->split = r->split;
    o->mean = (double)NAN;
    o->optimistic = r->optimistic;
    memcpy(o->chosen_on, r->chosen_on, sizeof(o->chosen_on));
    o->p.outputs = r->p.outputs;
    o->p.people = r->p.people;
    for (k = 0; k < r->p.outputs; k++) {
        struct run_finding *f = &o->finding[k];

        o->p.finding[k] = f->name = r->finding[k].name;
        memcpy(f->refused, r->finding[k].refused, sizeof(f->refused));
        f->a = r->finding[k].a;
        f->b = r->finding[k].b;
        for (i = 0; i < OPERATING_RULES; i++)
            f->point[i].threshold = r->finding[k].point[i].threshold;
    }
}

enum chex_status
run_report_subset(const struct run_report *r, const size_t *row, size_t count, struct run_report **out,
                  struct chex_error *err)
{
    struct run_report *o = *out = calloc(1, sizeof(*o));
    enum chex_status status;

    if (!o)
        return error_memory(err);
    status = make_room(o, count, r->p.outputs, err);
    if (status != CHEX_OK)
        return status;
    copy_model(r, o);
    return copy_images(r, row, count, o, err);
}
