/*
 * synth_body.c - soft tissue, lungs, heart, vessels and bones of a synthetic radiograph (see synth_scene.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include <math.h>

#include "synth/synth_scene.h"

enum { FOR_VESSELS = 31, FOR_STOMACH, FOR_LEADS };

/*
 * Returns the density of the tissue without lungs: thick in the middle, thin toward the skin, denser below the
 * diaphragm.  The outline is neck, shoulders, then the torso.
 */
static float
tissue(const struct scene *s, float x, float y)
{
    float half = mix(mix(0.23f, 1.15f, smooth((y - s->shoulder + 0.38f) / 0.55f)), s->torso,
                     smooth((y + 0.35f) / 0.5f));
    float away = fabsf(x), part = away / half, thick = part >= 1.0f ? 0.0f : sqrtf(1.0f - part * part);

    return edge(half - away, 0.015f) * (0.2f + 0.4f * thick) +
           0.09f * smooth((y - s->lung[0].dome + 0.05f) / 0.25f) * thick;
}

/* Returns how much of the lung the heart and the great vessels hide. */
static float
heart_shadow(const struct scene *s, float x, float y)
{
    float dy = (y - s->heart.y) / s->heart_height;
    float dx = (x - s->heart.x - 0.3f * (y - s->heart.y)) / s->heart_width;
    float ax = (x + 0.06f) / (0.13f + 0.3f * (s->heart_width - 0.27f)), ay = dy / 0.9f;
    float ventricle = edge(1.0f - sqrtf(dx * dx + dy * dy), 0.09f),
          atrium = edge(1.0f - sqrtf(ax * ax + ay * ay), 0.08f);

    return ventricle > atrium ? ventricle : atrium;
}

static void
draw_tissue(struct film_canvas *c, const struct scene *s)
{
    int i, j;

    for (j = 0; j < CANVAS; j++)
        for (i = 0; i < CANVAS; i++) {
            float x = canvas_at(i), y = canvas_at(j), u = fabsf(x), shadow, inside;
            const struct lung *l = &s->lung[x >= 0.0f];

            c->density[j][i] = tissue(s, x, y);
            /* A rectangle that contains the lung. */
            if (u < 0.08f || u > 0.95f || y < l->apex - 0.05f || y > l->dome + 0.32f)
                continue;
            inside = edge(lung_depth(l, u, y), 0.014f);
            shadow = heart_shadow(s, x, y);
            c->lung[j][i] = inside * (1.0f - 0.92f * shadow);
            c->density[j][i] += 0.06f * shadow * inside; /* the heart is denser than the tissue around the lung */
            c->density[j][i] -= c->lung[j][i] * (s->lung_density + 0.06f * canvas_noise(c, 9.0f * x, 9.0f * y, 0));
        }
}

/* Draws the trachea and its fork, filled with air, over the spine. */
static void
draw_midline(struct film_canvas *c, const struct scene *s)
{
    float fork = s->lung[0].apex + 0.5f, y;

    canvas_line(c, (struct point){0.0f, -CANVAS_REACH}, (struct point){0.0f, CANVAS_REACH}, 0.08f, 0.08f, 1.0f);
    canvas_ink(c, 0.07f, false);
    for (y = -CANVAS_REACH; y < CANVAS_REACH; y += 0.105f) /* the vertebrae, between discs */
        canvas_line(c, (struct point){-0.03f, y}, (struct point){0.03f, y}, 0.045f, 0.045f, 1.0f);
    canvas_ink(c, 0.05f, false);
    canvas_line(c, (struct point){0.005f, -CANVAS_REACH}, (struct point){0.01f, fork}, 0.055f, 0.05f, 1.0f);
    canvas_line(c, (struct point){0.01f, fork}, (struct point){-0.14f, fork + 0.14f}, 0.05f, 0.03f, 0.8f);
    canvas_line(c, (struct point){0.01f, fork}, (struct point){0.15f, fork + 0.15f}, 0.05f, 0.03f, 0.8f);
    canvas_ink(c, -0.11f, false);
}

/* Draws a vessel from the hilum outward, with two branches; `way` is a unit vector in (u, y). */
static void
draw_vessel(struct film_canvas *c, struct draws *d, int side, struct point from, struct point way, float radius,
            int depth)
{
    float length = draw_between(d, 0.16f, 0.24f), turn = draw_between(d, 0.3f, 0.6f);
    struct point to = {from.x + length * way.x, from.y + length * way.y};
    int k;

    canvas_line(c, (struct point){side_x(side, from.x), from.y}, (struct point){side_x(side, to.x), to.y}, radius,
                0.6f * radius, 0.45f + 28.0f * radius);
    for (k = -1; depth > 0 && k <= 1; k += 2) {
        float t = turn * (float)k, norm = sqrtf(1.0f + t * t);

        draw_vessel(c, d, side, to, (struct point){(way.x - t * way.y) / norm, (way.y + t * way.x) / norm},
                    0.6f * radius, depth - 1);
    }
}

static void
draw_vessels(struct film_canvas *c, const struct scene *s)
{
    struct draws d = draws_of(s->body_key, FOR_VESSELS);
    float thin = scene_has(s, EMPHYSEMA) ? 0.55f : 1.0f;
    int side, k;

    for (side = 0; side < 2; side++) {
        float y = s->lung[side].apex + 0.6f;

        for (k = 0; k < 7; k++) {
            /* From straight up, through outward, to straight down. */
            float turn = -1.0f + 0.33f * (float)k + draw_between(&d, -0.08f, 0.08f), out = 1.0f - 0.8f * fabsf(turn);
            float length = sqrtf(turn * turn + out * out);

            draw_vessel(c, &d, side, (struct point){0.15f, y + 0.18f * turn},
                        (struct point){out / length, turn / length}, thin * draw_between(&d, 0.011f, 0.017f), 2);
        }
        canvas_ellipse(c, &(struct ellipse){{side_x(side, 0.17f), y}, 0.07f, 0.12f, 0.9f, 0.52f, 0.4f, true});
    }
    canvas_ink(c, 0.085f, true);
}

/* Draws breasts over the lower lungs of women, an air bubble in the stomach, the lead of a bedside image. */
static void
draw_overlays(struct film_canvas *c, const struct scene *s)
{
    struct draws body = draws_of(s->body_key, FOR_STOMACH), study = scene_draws(s, FOR_LEADS);
    float size = draw_between(&body, 0.26f, 0.34f), bubble = draw_between(&study, 0.32f, 0.44f);
    bool full = draw_chance(&study, 0.5f), lead = s->ap && draw_chance(&study, 0.35f);
    float from = draw_between(&study, -0.9f, -0.3f), to = draw_between(&study, 0.3f, 0.9f);
    int side;

    for (side = 0; s->female && side < 2; side++)
        canvas_ellipse(c, &(struct ellipse){
                              {side_x(side, 0.46f), s->lung[side].dome - 0.1f}, size, size, 0.12f, 0.7f, 0.14f, false});
    if (full)
        canvas_ellipse(c, &(struct ellipse){{bubble, s->lung[1].dome + 0.2f}, 0.1f, 0.055f, 0.25f, 0.42f, 0.7f, false});
    if (lead)
        canvas_line(c, (struct point){from, 0.1f}, (struct point){to, -1.0f}, 0.008f, 0.008f, 1.0f);
    canvas_ink(c, 0.1f, false);
}

void
body_draw(struct film_canvas *c, const struct scene *s)
{
    canvas_clear(c, s->study_key);
    draw_tissue(c, s);
    draw_midline(c, s);
    draw_vessels(c, s);
    draw_overlays(c, s);
}

/* ---- bones ------------------------------------------------------------------------------------------------------- */

/* Draws a rib from the spine to the wall as a chain of strokes: it falls ever more steeply. */
static void
draw_rib(struct film_canvas *c, const struct scene *s, int side, int number)
{
    const struct lung *l = &s->lung[side];
    float start = s->rib_first + s->rib_pitch * (float)number;
    float curve = s->rib_slope + 0.06f * (float)number * (1.0f - 0.06f * (float)number);
    struct point from = {0.1f, start}, to;

    for (to = from; to.x < lung_lateral(l, to.y) + 0.03f && to.x < 0.9f; from = to) {
        to.x += 0.06f;
        to.y = start - 0.1f * to.x + curve * to.x * to.x * (1.0f + 0.35f * to.x);
        canvas_line(c, (struct point){side_x(side, from.x), from.y}, (struct point){side_x(side, to.x), to.y}, 0.032f,
                    0.032f, to.y > lung_diaphragm(l, to.x) ? 0.5f : 1.0f);
    }
}

void
bones_draw(struct film_canvas *c, const struct scene *s)
{
    struct point corner = {0.86f, -0.8f};
    int side, number;

    for (side = 0; side < 2; side++) {
        for (number = 0; number < 10; number++)
            draw_rib(c, s, side, number);
        canvas_ink(c, 0.07f, false);
        canvas_line(c, (struct point){side_x(side, 0.07f), s->lung[side].apex + 0.16f},
                    (struct point){side_x(side, 0.8f), s->lung[side].apex + 0.02f}, 0.032f, 0.03f, 1.0f); /* clavicle */
        canvas_ink(c, 0.11f, false);
        canvas_ellipse(c, &(struct ellipse){{side_x(side, s->lung[side].lateral + 0.28f), s->lung[side].apex + 0.16f},
                                            0.12f,
                                            0.13f,
                                            0.1f,
                                            0.75f,
                                            0.45f,
                                            false}); /* head of the humerus */
    }
    if (!s->film.marker)
        return;
    /* An "L" of lead. */
    canvas_line(c, (struct point){corner.x, corner.y - 0.09f}, corner, 0.014f, 0.014f, 1.0f);
    canvas_line(c, corner, (struct point){corner.x + 0.055f, corner.y}, 0.014f, 0.014f, 1.0f);
    canvas_ink(c, 0.7f, false);
}
