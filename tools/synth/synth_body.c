/*
 * synth_body.c - the numbers of one picture, and its anatomy: soft tissue, lungs, heart, vessels, bones (see
 * synth_scene.h)
 *
 * The patient's key determines the body, so follow-ups look like the same person.  The study's key determines
 * inspiration, position and exposure.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "synth/synth_scene.h"

#include <math.h>

enum { FOR_BODY = 11, FOR_IMAGE, FOR_GEOMETRY, FOR_VESSELS };

static void
make_lungs(struct scene *s, struct draws *body, struct draws *study)
{
    bool emphysema = scene_has(s, EMPHYSEMA);
    float wide = draw_between(body, 0.26f, 0.33f) + (emphysema ? 0.02f : 0.0f);
    float apex = draw_between(body, -0.75f, -0.62f), dome = draw_between(body, 0.32f, 0.45f);
    float drop = draw_between(body, 0.14f, 0.26f), breath = draw_between(study, -0.05f, 0.05f);
    int side;

    dome += breath + (emphysema ? 0.15f : 0.0f) - (scene_has(s, FIBROSIS) ? 0.05f : 0.0f) - (s->ap ? 0.05f : 0.0f);
    for (side = 0; side < 2; side++)
        s->lung[side] = (struct lung){.apex = apex,
                                      .dome = dome + (side ? 0.02f : -0.02f),
                                      .centre = 0.12f + wide,
                                      .width = wide,
                                      .drop = emphysema ? 0.03f : drop};
    s->lung_density = draw_between(body, 0.31f, 0.38f) + (emphysema ? 0.08f : 0.0f) - (s->ap ? 0.03f : 0.0f);
}

static void
make_heart(struct scene *s, struct draws *body, struct draws *study)
{
    float size = draw_between(body, 0.9f, 1.06f) * (s->ap ? 1.1f : 1.0f), large = draw_between(study, 1.55f, 1.75f);
    bool enlarged = scene_has(s, CARDIOMEGALY);

    s->heart_width = 0.27f * size * (enlarged ? large : scene_has(s, EMPHYSEMA) ? 0.75f : 1.0f);
    s->heart_height = 0.29f * size * (enlarged ? 1.12f : 1.0f);
    s->heart = (struct point){0.36f * s->heart_width, s->lung[1].dome - 0.68f * s->heart_height};
}

void
scene_make(const struct population *p, const struct study *study, struct scene *out)
{
    uint64_t person = random_hash(random_hash(p->seed, FOR_BODY), study->person);
    struct draws body = draws_of(person, 0), image;

    *out = (struct scene){
        .body_key = person,
        .study_key = random_hash(random_hash(person, FOR_IMAGE), study->number),
        .findings = study->findings,
        .female = p->person[study->person].sex == 'F',
        .ap = study->ap,
    };
    image = draws_of(out->study_key, FOR_GEOMETRY);
    make_lungs(out, &body, &image);
    make_heart(out, &body, &image);
    out->torso = out->lung[0].centre + out->lung[0].width + draw_between(&body, 0.08f, 0.3f);
    out->shoulder = out->lung[0].apex - draw_between(&body, 0.02f, 0.18f);
    out->rib_pitch = draw_between(&body, 0.125f, 0.14f);
    out->turn = draw_between(&image, -0.05f, 0.05f);
    out->zoom = draw_between(&image, 0.94f, 1.1f);
    out->shift.x = draw_between(&image, -0.06f, 0.06f);
    out->shift.y = draw_between(&image, -0.06f, 0.06f);
    out->gain = draw_between(&image, 0.92f, 1.08f);
    out->bias = draw_between(&image, -0.03f, 0.03f);
    out->grain = draw_between(&image, 0.68f, 1.15f) * (out->ap ? 1.1f : 1.0f);
    out->marker = draw_chance(&image, 0.6f);
}

/* ---- lungs ------------------------------------------------------------------------------------------------------- */

float
lung_half(const struct lung *l, float y)
{
    float k = 1.0f - (y - l->apex) / (0.6f * (l->dome - l->apex));

    return k >= 1.0f ? 0.0f : k <= 0.0f ? l->width : l->width * sqrtf(1.0f - k * k);
}

float
lung_wall_depth(const struct lung *l, float u, float y)
{
    float depth = lung_half(l, y) - fabsf(u - l->centre);

    return depth < y - l->apex ? depth : y - l->apex;
}

/* Returns y of the diaphragm: a parabola with its top in the middle of the lung. */
static float
diaphragm(const struct lung *l, float u)
{
    float v = (u - l->centre) / l->width;

    return l->dome + (v > 0.0f ? l->drop : 0.3f * l->drop) * v * v;
}

/* ---- soft tissue ------------------------------------------------------------------------------------------------- */

/* Returns the density of the body without lungs: thick in the middle, thin toward the skin. */
static float
tissue(const struct scene *s, float x, float y)
{
    float shoulders = mix(0.23f, 1.15f, edge(y - s->shoulder, 0.28f));
    float half = mix(shoulders, s->torso, edge(y + 0.1f, 0.25f)), part = fabsf(x) / half;

    return edge(half - fabsf(x), 0.015f) * (0.2f + 0.45f * sqrtf(part < 1.0f ? 1.0f - part * part : 0.0f));
}

float
heart_depth(const struct scene *s, float x, float y)
{
    float dx = (x - s->heart.x - 0.3f * (y - s->heart.y)) / s->heart_width;
    float dy = (y - s->heart.y) / s->heart_height;

    return 1.0f - sqrtf(dx * dx + dy * dy);
}

static void
draw_tissue(struct film_canvas *c, const struct scene *s)
{
    int i, j;

    for (j = 0; j < CANVAS; j++)
        for (i = 0; i < CANVAS; i++) {
            float x = canvas_at(i), y = canvas_at(j), depth = lung_wall_depth(&s->lung[x >= 0.0f], fabsf(x), y);
            float below = diaphragm(&s->lung[x >= 0.0f], fabsf(x)) - y;
            float inside = edge(depth < below ? depth : below, 0.014f);
            float heart = inside * edge(heart_depth(s, x, y), 0.09f);

            c->lung[j][i] = inside - 0.92f * heart;
            c->density[j][i] = tissue(s, x, y) * mix(0.94f, 1.06f, canvas_noise(c, 2.5f * x, 2.5f * y, 4)) +
                               0.06f * heart - c->lung[j][i] * s->lung_density;
        }
}

/* Draws straight vessels from each hilum, from straight up through outward to straight down. */
static void
draw_vessels(struct film_canvas *c, const struct scene *s)
{
    struct draws d = draws_of(s->body_key, FOR_VESSELS);
    float thin = scene_has(s, EMPHYSEMA) ? 0.55f : 1.0f;
    int side, k;

    for (side = 0; side < 2; side++) {
        float y = mix(s->lung[side].apex, s->lung[side].dome, 0.58f);

        for (k = 0; k < 17; k++) {
            float turn = -1.0f + 0.12f * (float)k + draw_between(&d, -0.05f, 0.05f), out = 1.0f - 0.8f * fabsf(turn);
            float length = draw_between(&d, 0.25f, 0.55f);

            canvas_line(c, at_side(side, 0.15f, y + 0.18f * turn),
                        at_side(side, 0.15f + length * out, y + 0.18f * turn + length * turn),
                        thin * draw_between(&d, 0.008f, 0.014f), 0.06f, true);
        }
        canvas_ellipse(c, &(struct ellipse){.centre = at_side(side, 0.17f, y),
                                            .rx = 0.07f,
                                            .ry = 0.12f,
                                            .soft = 0.9f,
                                            .target = 0.52f,
                                            .strength = 0.4f,
                                            .lungs = true});
    }
}

void
body_draw(struct film_canvas *c, const struct scene *s)
{
    float fork = s->lung[0].apex + 0.5f, size = 0.26f + 0.1f * s->rib_pitch;
    int side;

    canvas_clear(c, s->study_key);
    draw_tissue(c, s);
    draw_vessels(c, s);
    canvas_line(c, (struct point){0, -CANVAS_REACH}, (struct point){0, CANVAS_REACH}, 0.09f, 0.12f, false); /* spine */
    canvas_line(c, (struct point){0, -CANVAS_REACH}, (struct point){0, fork}, 0.055f, -0.13f, false); /* trachea */
    for (side = 0; side < 2; side++) {
        canvas_line(c, (struct point){0, fork}, at_side(side, 0.14f, fork + 0.14f), 0.04f, -0.1f, false);
        if (s->female)
            canvas_ellipse(c, &(struct ellipse){.centre = at_side(side, 0.46f, s->lung[side].dome - 0.1f),
                                                .rx = size,
                                                .ry = size,
                                                .soft = 0.12f,
                                                .target = 0.7f,
                                                .strength = 0.14f});
    }
}

/* ---- bones ------------------------------------------------------------------------------------------------------- */

void
bones_draw(struct film_canvas *c, const struct scene *s)
{
    struct point corner = {0.86f, -0.8f};
    float apex = s->lung[0].apex, wall = s->lung[0].centre + s->lung[0].width;
    int side, number;

    /* Ribs: ellipses around the chest; their upper halves are the ribs of the back, the lower halves those in front. */
    for (number = 0; number < 9; number++)
        canvas_ellipse(c, &(struct ellipse){.centre = {0.0f, apex + 0.2f + s->rib_pitch * (float)number},
                                            .rx = wall + 0.03f,
                                            .ry = 0.22f,
                                            .ring = 0.06f,
                                            .soft = 0.06f,
                                            .target = 0.62f,
                                            .strength = 0.17f,
                                            .lungs = true});
    for (side = 0; side < 2; side++) {
        canvas_line(c, at_side(side, 0.07f, apex + 0.16f), at_side(side, 0.8f, apex + 0.02f), 0.034f, 0.12f, false);
        canvas_ellipse(c, &(struct ellipse){.centre = at_side(side, wall + 0.28f, apex + 0.16f),
                                            .rx = 0.12f,
                                            .ry = 0.13f,
                                            .soft = 0.1f,
                                            .target = 0.75f,
                                            .strength = 0.45f});
    }
    if (!s->marker)
        return;
    canvas_line(c, (struct point){corner.x, corner.y - 0.09f}, corner, 0.016f, 0.7f, false);
    canvas_line(c, corner, (struct point){corner.x + 0.055f, corner.y}, 0.016f, 0.7f, false);
}
