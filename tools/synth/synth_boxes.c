/*
 * synth_boxes.c - see synth_boxes.h
 *
 * The canvas is turned, shifted and zoomed onto the film (synth_film.c).  Each pixel of the canvas is mapped to the
 * film before its box is computed, so that the box is not larger than what it surrounds.
 *
 * The list has the header of the real file, with its unquoted commas, and its name for Infiltration.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "synth/synth_boxes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char boxes_header[] = "Image Index,Finding Label,Bbox [x,y,w,h],,,\n";

/* ---- one image --------------------------------------------------------------------------------------------------- */

static const struct film_box nothing = {.left = HUGE_VALF, .right = -HUGE_VALF, .top = HUGE_VALF, .bottom = -HUGE_VALF};

/* Extends the box to a pixel of the canvas.  The mapping is the inverse of sample() in synth_film.c. */
static void
extend(struct film_box *box, const struct scene *s, int i, int j)
{
    float u = canvas_at(i) - s->shift.x, v = canvas_at(j) - s->shift.y, square = 1.0f + s->turn * s->turn;
    float x = (u + s->turn * v) / square, y = (v - s->turn * u) / square, half = 0.5f * CANVAS_PITCH;

    box->left = fminf(box->left, x - half);
    box->right = fmaxf(box->right, x + half);
    box->top = fminf(box->top, y - half);
    box->bottom = fmaxf(box->bottom, y + half);
}

void
boxes_begin(struct finding_boxes *b, const struct film_canvas *c)
{
    memcpy(b->before, c->density, sizeof(b->before));
}

void
boxes_end(struct finding_boxes *b, const struct film_canvas *c, const struct scene *s, enum finding finding,
          unsigned places)
{
    struct film_box box = nothing;
    float most = 0.0f;
    int i, j;

    if (places != 1)
        return;
    for (j = 0; j < CANVAS; j++)
        for (i = 0; i < CANVAS; i++)
            most = fmaxf(most, fabsf(c->density[j][i] - b->before[j][i]));
    for (j = 0; j < CANVAS && most > 0.0f; j++)
        for (i = 0; i < CANVAS; i++)
            if (fabsf(c->density[j][i] - b->before[j][i]) >= 0.25f * most)
                extend(&box, s, i, j);
    b->box[finding] = box;
    b->findings |= 1u << finding;
}

void
boxes_heart(struct finding_boxes *b, const struct scene *s)
{
    struct film_box box = nothing;
    int i, j;

    for (j = 0; j < CANVAS; j++)
        for (i = 0; i < CANVAS; i++)
            if (heart_depth(s, canvas_at(i), canvas_at(j)) >= 0.0f)
                extend(&box, s, i, j);
    b->box[CARDIOMEGALY] = box;
    b->findings |= 1u << CARDIOMEGALY;
}

/* ---- all images -------------------------------------------------------------------------------------------------- */

/* Returns the pixel at a coordinate of the film, cut at the borders of the image. */
static double
pixel_of(const struct scene *s, float film, unsigned size)
{
    double pixel = 0.5 * ((double)film * (double)s->zoom + 1.0) * size;

    return pixel < 0 ? 0 : pixel > size ? size : pixel;
}

enum chex_status
boxes_add(struct synth_boxes *all, const struct finding_boxes *b, const struct scene *s, uint32_t study, unsigned size,
          struct chex_error *err)
{
    for (unsigned k = 0; k <= HERNIA; k++) {
        const struct film_box *box = &b->box[k];
        double x = pixel_of(s, box->left, size), y = pixel_of(s, box->top, size);
        double width = pixel_of(s, box->right, size) - x, height = pixel_of(s, box->bottom, size) - y;
        struct synth_box *grown;

        if (!(b->findings >> k & 1) || width < 1 || height < 1)
            continue;
        grown = array_grow(all->box, &all->capacity, all->count, sizeof(*grown));
        if (!grown)
            return error_memory(err);
        all->box = grown;
        grown[all->count++] = (struct synth_box){study, k, x, y, width, height};
    }
    return CHEX_OK;
}

static int
compare_boxes(const void *a, const void *b)
{
    const struct synth_box *x = a, *y = b;

    if (x->finding != y->finding)
        return x->finding < y->finding ? -1 : 1;
    return x->study < y->study ? -1 : x->study > y->study;
}

/* Appends the boxes of finding k of the label file. */
static enum chex_status
add_finding(const struct synth_boxes *all, const struct population *p, unsigned k, struct buffer *out,
            struct chex_error *err)
{
    const char *name = p->labels.findings.name[k];
    enum chex_status status = CHEX_OK;

    if (strcmp(name, "Infiltration") == 0)
        name = "Infiltrate";
    for (size_t i = 0; i < all->count && status == CHEX_OK; i++) {
        const struct synth_box *box = &all->box[i];
        char image[STUDY_NAME];

        if ((int)box->finding != p->drawing[k])
            continue;
        study_name(p, &p->study[box->study], image);
        status = buffer_printf(out, err, "%s,%s,%.15g,%.15g,%.15g,%.15g\n", image, name, box->x, box->y, box->width,
                               box->height);
    }
    return status;
}

enum chex_status
boxes_csv(struct synth_boxes *all, const struct population *p, struct buffer *out, struct chex_error *err)
{
    enum chex_status status = buffer_append(out, boxes_header, sizeof(boxes_header) - 1, err);

    if (all->count > 0)
        qsort(all->box, all->count, sizeof(*all->box), compare_boxes);
    for (unsigned k = 0; k < p->labels.findings.count && status == CHEX_OK; k++)
        status = add_finding(all, p, k, out, err);
    return status;
}

void
boxes_release(struct synth_boxes *all)
{
    free(all->box);
    *all = (struct synth_boxes){.count = 0};
}
