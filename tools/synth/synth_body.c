/*
 * synth_body.c - soft tissue, lungs, heart and vessels of a synthetic radiograph (see synth_scene.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include <math.h>

#include "synth/synth_scene.h"

enum { FOR_VESSELS = 31, FOR_STOMACH, FOR_LEADS };

/* Returns half the width of the outline: neck, shoulders, then the torso. */
static float
outline(const struct scene *s, float y)
{
    float shoulder = smooth((y - s->shoulder + 0.38f) / 0.55f);
    float waist = smooth((y + 0.35f) / 0.5f);

    return mix(mix(0.23f, 1.15f, shoulder), s->torso, waist);
}

/*
 * Returns the density of the tissue without lungs: thick in the middle, thin toward the skin, denser below the
 * diaphragm, with the arms at the sides.
 */
static float
tissue(const struct scene *s, float x, float y, float half)
{
    float away = (x < 0.0f ? -x : x), part = away / half;
    float thick = part >= 1.0f ? 0.0f : sqrtf(1.0f - part * part);
    float d = edge(half - away, 0.015f) * (0.2f + 0.4f * thick);
    float arm = edge(0.16f - fabsf(away - s->torso - 0.26f), 0.03f) * smooth((y + 0.3f) / 0.3f);

    d += 0.09f * smooth((y - s->lung[0].dome + 0.05f) / 0.25f) * thick;
    return d + 0.3f * arm;
}

/* Returns how much of the lung the heart and the great vessels hide. */
static float
heart_shadow(const struct scene *s, float x, float y)
{
    float tilt = 0.3f * (y - s->heart.y);
    float dx = (x - s->heart.x - tilt) / s->heart_width, dy = (y - s->heart.y) / s->heart_height;
    float ventricle = edge(1.0f - sqrtf(dx * dx + dy * dy), 0.09f);
    float ax = (x + 0.06f) / (0.13f + 0.3f * (s->heart_width - 0.27f)),
          ay = (y - s->heart.y) / (0.9f * s->heart_height);
    float atrium = edge(1.0f - sqrtf(ax * ax + ay * ay), 0.08f);
    float kx = (x - 0.12f) / 0.09f, ky = (y - s->lung[1].apex - 0.4f) / 0.1f;
    float knob = 0.8f * edge(1.0f - sqrtf(kx * kx + ky * ky), 0.12f);
    float most = ventricle > atrium ? ventricle : atrium;

    return knob > most ? knob : most;
}

static void
draw_tissue(struct film_canvas *c, const struct scene *s)
{
    int i, j;

    for (j = 0; j < CANVAS; j++) {
        float y = canvas_at(j), half = outline(s, y);

        for (i = 0; i < CANVAS; i++) {
            float x = canvas_at(i), u = x < 0.0f ? -x : x;
            const struct lung *l = &s->lung[x >= 0.0f];
            float d = tissue(s, x, y, half), depth = -1.0f, inside, shadow, mottle;

            /* A rectangle that contains the lung. */
            if (u > 0.08f && u < 0.95f && y > l->apex - 0.05f && y < l->dome + 0.32f)
                depth = lung_depth(l, u, y);
            if (depth > -0.05f) {
                inside = edge(depth, 0.014f);
                shadow = heart_shadow(s, x, y);
                mottle = canvas_noise(c, 9.0f * x, 9.0f * y, 0) - 0.5f;
                c->lung[j][i] = inside * (1.0f - 0.92f * shadow);
                d -= c->lung[j][i] * (s->lung_density + 0.06f * mottle);
                /* The heart is slightly denser than the tissue in front of and behind the lung. */
                d += 0.06f * shadow * inside;
            }
            c->density[j][i] = d;
        }
    }
}

/* Draws the trachea and its fork, filled with air, and the spine. */
static void
draw_midline(struct film_canvas *c, const struct scene *s)
{
    float fork = s->lung[0].apex + 0.5f;
    struct pixel_box b = canvas_box(-0.08f, -CANVAS_REACH, 0.08f, CANVAS_REACH);
    int i, j;

    for (j = b.top; j < b.bottom; j++) {
        float y = canvas_at(j), place = (y + 2.0f) / 0.105f, in_disc = place - (float)(int)place;
        /* The discs between the vertebrae attenuate less. */
        float disc = 0.5f + 0.5f * edge(0.3f - fabsf(in_disc - 0.5f), 0.12f);
        float fade = mix(1.0f, 0.55f, smooth((y + 0.2f) / 0.5f));

        for (i = b.left; i < b.right; i++) {
            float away = fabsf(canvas_at(i));

            c->density[j][i] += fade * edge(0.055f - away, 0.012f) * (0.05f + 0.05f * disc) +
                                0.04f * bump(away * away / (0.012f * 0.012f)) * disc * fade;
        }
    }
    canvas_line(c, (struct point){0.005f, -CANVAS_REACH}, (struct point){0.01f, fork}, 0.055f, 0.05f, 1.0f);
    canvas_line(c, (struct point){0.01f, fork}, (struct point){-0.14f, fork + 0.14f}, 0.05f, 0.03f, 0.8f);
    canvas_line(c, (struct point){0.01f, fork}, (struct point){0.15f, fork + 0.15f}, 0.05f, 0.03f, 0.8f);
    canvas_ink(c, -0.11f, false);
}

/* Draws a vessel from the hilum outward, with branches; `way` is a unit vector in (u, y). */
static void
draw_vessel(struct film_canvas *c, struct draws *d, int side, struct point from, struct point way, float radius,
            int depth)
{
    float step = draw_between(d, 0.05f, 0.075f);
    int k;

    for (k = 0; k < 6 && radius > 0.003f; k++) {
        float bend = draw_between(d, -0.25f, 0.25f), length;
        struct point to;

        way = (struct point){way.x - bend * way.y, way.y + bend * way.x};
        length = sqrtf(way.x * way.x + way.y * way.y);
        way = (struct point){way.x / length, way.y / length};
        to = (struct point){from.x + step * way.x, from.y + step * way.y};
        canvas_line(c, (struct point){side_x(side, from.x), from.y}, (struct point){side_x(side, to.x), to.y}, radius,
                    0.86f * radius, 0.45f + 28.0f * radius);
        radius *= 0.86f;
        from = to;
        if (depth > 0 && k % 2 == 1) {
            float turn = k % 4 == 1 ? 0.8f : -0.8f;

            draw_vessel(c, d, side, from, (struct point){way.x - turn * way.y, way.y + turn * way.x}, 0.75f * radius,
                        depth - 1);
        }
    }
}

static void
draw_vessels(struct film_canvas *c, const struct scene *s)
{
    struct draws d = draws_of(s->body_key, FOR_VESSELS);
    float thin = scene_has(s, EMPHYSEMA) ? 0.55f : 1.0f;
    int side, k;

    for (side = 0; side < 2; side++) {
        float y = s->lung[side].apex + (side ? 0.58f : 0.62f);

        for (k = 0; k < 9; k++) {
            /* From straight up, through outward, to straight down. */
            float turn = -1.0f + 0.25f * (float)k + draw_between(&d, -0.08f, 0.08f);
            float out = 1.0f - (turn < 0.0f ? -turn : turn) * 0.8f;
            float length = sqrtf(turn * turn + out * out);

            draw_vessel(c, &d, side, (struct point){0.15f, y + 0.18f * turn},
                        (struct point){out / length, turn / length}, thin * draw_between(&d, 0.011f, 0.017f), 2);
        }
        canvas_ellipse(c, &(struct ellipse){.centre = {side_x(side, 0.17f), y},
                                            .rx = 0.07f,
                                            .ry = 0.12f,
                                            .soft = 0.9f,
                                            .target = 0.52f,
                                            .strength = 0.4f,
                                            .lungs = true});
    }
    canvas_ink(c, 0.085f, true);
}

/* Draws breasts over the lower lungs of women, an air bubble in the stomach, leads and tubes of bedside images. */
static void
draw_overlays(struct film_canvas *c, const struct scene *s)
{
    struct draws body = draws_of(s->body_key, FOR_STOMACH), study = scene_draws(s, FOR_LEADS);
    float size = draw_between(&body, 0.26f, 0.34f), low = s->lung[1].dome + 0.2f;
    int side;

    for (side = 0; s->female && side < 2; side++)
        canvas_ellipse(c, &(struct ellipse){.centre = {side_x(side, 0.46f), s->lung[side].dome - 0.1f},
                                            .rx = size,
                                            .ry = size,
                                            .soft = 0.12f,
                                            .target = 0.7f,
                                            .strength = 0.14f});
    if (draw_chance(&study, 0.5f)) {
        float x = draw_between(&study, 0.32f, 0.44f), rx = draw_between(&study, 0.07f, 0.13f);
        float ry = draw_between(&study, 0.04f, 0.07f);

        canvas_ellipse(c,
                       &(struct ellipse){
                           .centre = {x, low}, .rx = rx, .ry = ry, .soft = 0.25f, .target = 0.42f, .strength = 0.7f});
    }
    if (s->ap && draw_chance(&study, 0.35f)) {
        struct point from, turn;

        from.x = draw_between(&study, -0.9f, -0.6f);
        from.y = draw_between(&study, -0.6f, 0.2f);
        turn.x = draw_between(&study, -0.3f, 0.1f);
        turn.y = draw_between(&study, -0.7f, -0.4f);
        canvas_line(c, from, turn, 0.008f, 0.008f, 1.0f);
        canvas_line(c, turn, (struct point){draw_between(&study, 0.5f, 0.9f), -1.0f}, 0.008f, 0.008f, 1.0f);
        canvas_ink(c, 0.16f, false);
    }
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
