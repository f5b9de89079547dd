/*
 * synth_bones.c - ribs, clavicles, shoulders and the marker (see synth_scene.h)
 *
 * Ribs are bands around a curve y(u), so they are painted column by column, with no distance to compute.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include <math.h>

#include "synth/synth_scene.h"

/* Draws one column of a band.  It is denser at its borders, where rays pass through more of the cortex. */
static void
band_column(struct film_canvas *c, int i, float y, float half, float strength)
{
    struct pixel_box b = canvas_box(0.0f, y - half - 0.012f, 0.0f, y + half + 0.012f);
    int j;

    for (j = b.top; j < b.bottom; j++) {
        float inside = half - fabsf(canvas_at(j) - y);
        float rim = 1.0f - fabsf(inside - 0.006f) / 0.008f;

        c->density[j][i] += strength * edge(inside, 0.006f) + (rim > 0.0f ? 0.45f * strength * rim : 0.0f);
    }
}

/*
 * Draws a rib.  Its back half runs from the spine outward and falls ever more steeply.  Its front half, which is
 * fainter, returns from the wall and falls toward the midline.
 */
static void
draw_rib(struct film_canvas *c, const struct scene *s, int side, int number)
{
    const struct lung *l = &s->lung[side];
    float start = s->rib_first + s->rib_pitch * (float)number;
    float curve = s->rib_slope + 0.06f * (float)number * (1.0f - 0.06f * (float)number);
    int i;

    for (i = 0; i < CANVAS; i++) {
        float x = canvas_at(i), u = side ? x : -x, y, end, strength, half = 0.023f;

        if (u < 0.06f || u > l->lateral + 0.05f)
            continue;
        y = start - 0.1f * u + curve * u * u + 0.35f * curve * u * u * u;
        end = lung_lateral(l, y) + 0.035f;
        /* Fainter at the midline and below the diaphragm, where other tissue adds to the density. */
        strength = 0.062f * edge(end - u, 0.02f) * mix(1.0f, 0.7f, u / l->lateral) *
                   mix(0.45f, 1.0f, edge(u - 0.17f, 0.08f));
        strength *= mix(1.0f, 0.5f, edge(y - lung_diaphragm(l, u), 0.05f)) * edge(y - l->apex + 0.01f, 0.04f);
        band_column(c, i, y, half, strength);
        /* In front: the cartilage next to the breastbone is not visible. */
        y = start + 0.26f + 0.75f * (l->lateral - u) * (0.55f + 0.05f * (float)number) * (1.2f - u);
        if (number < 6)
            band_column(c, i, y, 0.028f, 0.03f * edge(u - 0.3f, 0.1f) * edge(lung_lateral(l, y) + 0.03f - u, 0.03f));
    }
}

static void
draw_clavicle(struct film_canvas *c, const struct scene *s, int side)
{
    float rise = draw_between(&(struct draws){.key = s->study_key, .number = 900 + (uint64_t)side}, 0.0f, 0.06f);
    int i;

    for (i = 0; i < CANVAS; i++) {
        float x = canvas_at(i), u = side ? x : -x;
        float y = s->lung[side].apex + 0.17f - 0.13f * u - rise + 0.09f * (u - 0.3f) * (u - 0.75f);

        if (u > 0.05f && u < 0.85f)
            band_column(c, i, y, 0.022f + 0.008f * fabsf(u - 0.4f),
                        0.1f * edge(u - 0.07f, 0.02f) * edge(0.83f - u, 0.02f));
    }
}

/* Draws the shoulder blade and the head of the humerus, outside the lungs. */
static void
draw_shoulder(struct film_canvas *c, const struct scene *s, int side)
{
    float top = s->lung[side].apex, wall = s->lung[side].lateral;

    canvas_ellipse(c, &(struct ellipse){.centre = {side_x(side, wall + 0.28f), top + 0.16f},
                                        .rx = 0.12f,
                                        .ry = 0.13f,
                                        .soft = 0.1f,
                                        .target = 0.75f,
                                        .strength = 0.45f});
    canvas_line(c, (struct point){side_x(side, wall + 0.2f), top + 0.15f},
                (struct point){side_x(side, wall + 0.02f), top + 0.75f}, 0.025f, 0.012f, 1.0f);
    canvas_line(c, (struct point){side_x(side, wall + 0.15f), top + 0.02f},
                (struct point){side_x(side, wall - 0.1f), top + 0.22f}, 0.03f, 0.012f, 0.7f);
    canvas_ink(c, 0.08f, false);
}

/* Draws an "L" of lead. */
static void
draw_marker(struct film_canvas *c)
{
    struct point corner = {0.86f, -0.8f};

    canvas_line(c, (struct point){corner.x, corner.y - 0.09f}, corner, 0.014f, 0.014f, 1.0f);
    canvas_line(c, corner, (struct point){corner.x + 0.055f, corner.y}, 0.014f, 0.014f, 1.0f);
    canvas_ink(c, 0.7f, false);
}

void
bones_draw(struct film_canvas *c, const struct scene *s)
{
    int side, number;

    for (side = 0; side < 2; side++) {
        for (number = 0; number < 10; number++)
            draw_rib(c, s, side, number);
        draw_clavicle(c, s, side);
        draw_shoulder(c, s, side);
    }
    if (s->film.marker)
        draw_marker(c);
}
