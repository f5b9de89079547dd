/*
 * synth_findings.c - draws the 14 findings, each in a different way (see synth_scene.h)
 *
 * They are caricatures of what a textbook describes, strong enough that a small network learns them from some dozens of
 * examples, and different from each other in shape, texture or location.  No image made here says anything about a
 * disease.  Cardiomegaly is entirely in the geometry (synth_scene.c), emphysema and fibrosis partly.
 *
 *   Atelectasis         two to four thin white plates across one lower lung
 *   Cardiomegaly        a heart of more than half the chest's width
 *   Effusion            white below a meniscus that rises toward the wall
 *   Infiltration        many faint, soft, mottled patches
 *   Mass                one large dense disc with a wavy border
 *   Nodule              one to three small dense discs
 *   Pneumonia           an upper lobe filled down to a straight fissure, with dark bronchi in it
 *   Pneumothorax        a dark rim without vessels outside of a thin white line
 *   Consolidation       one large dense cloud in a lower lung
 *   Edema               haze around both hila like a bat's wings, short lines at the walls
 *   Emphysema           dark, long lungs on a flat diaphragm, a narrow heart, rings of bullae
 *   Fibrosis            a white net over the lower halves of both lungs
 *   Pleural_Thickening  a dense, lumpy band along the wall and over the apex
 *   Hernia              a ring in the heart's shadow, air over fluid
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include <math.h>

#include "synth/synth_scene.h"

#define FOR_FINDING 200 /* + number of the finding */

static struct pixel_box
lung_box(const struct lung *l, int side)
{
    float inner = 0.05f, outer = l->lateral + 0.08f;

    return side ? canvas_box(inner, l->apex - 0.05f, outer, l->dome + 0.35f)
                : canvas_box(-outer, l->apex - 0.05f, -inner, l->dome + 0.35f);
}

static void
pull(struct film_canvas *c, int i, int j, float target, float alpha)
{
    c->density[j][i] += alpha * (target - c->density[j][i]);
}

/* Returns a point inside the lung, away from its borders; high and low are fractions of its height. */
static struct point
place_in_lung(struct draws *d, const struct lung *l, float high, float low, float margin)
{
    float y = mix(l->apex, l->dome, draw_between(d, high, low));
    float from = l->medial + 0.06f + margin, to = lung_lateral(l, y) - margin;

    return (struct point){from < to ? draw_between(d, from, to) : 0.5f * (from + to), y};
}

static void
draw_atelectasis(struct film_canvas *c, const struct scene *s)
{
    struct draws d = scene_draws(s, FOR_FINDING + ATELECTASIS);
    int side = draw_whole(&d, 0, 1), plates = draw_whole(&d, 2, 4), k;
    const struct lung *l = &s->lung[side];
    float y = l->dome - draw_between(&d, 0.08f, 0.12f);

    for (k = 0; k < plates; k++) {
        float from = l->medial + (side ? 0.16f : 0.06f) + draw_between(&d, 0.0f, 0.08f);
        float to = from + draw_between(&d, 0.32f, 0.42f), tilt = draw_between(&d, -0.09f, 0.05f);
        float thick = draw_between(&d, 0.018f, 0.026f);

        canvas_line(c, (struct point){side_x(side, from), y}, (struct point){side_x(side, to), y + tilt}, thick,
                    0.7f * thick, 1.0f);
        y -= draw_between(&d, 0.09f, 0.13f);
    }
    canvas_ink(c, draw_between(&d, 0.3f, 0.38f), true);
}

static void
draw_effusion_side(struct film_canvas *c, const struct scene *s, struct draws *d, int side)
{
    const struct lung *l = &s->lung[side];
    struct pixel_box b = lung_box(l, side);
    float level = l->dome - draw_between(d, 0.0f, 0.3f), rise = draw_between(d, 0.14f, 0.22f);
    int i, j;

    for (j = b.top; j < b.bottom; j++)
        for (i = b.left; i < b.right; i++) {
            float u = fabsf(canvas_at(i)), y = canvas_at(j), part = (u - l->medial) / (l->lateral - l->medial);
            float surface = level + 0.05f - (rise + 0.05f) * part * part * part;
            float depth = lung_depth(l, u, y);

            if (depth > -0.03f)
                pull(c, i, j, 0.67f, 0.95f * edge(y - surface, 0.02f) * edge(depth + 0.01f, 0.02f));
        }
}

static void
draw_effusion(struct film_canvas *c, const struct scene *s)
{
    struct draws d = scene_draws(s, FOR_FINDING + EFFUSION);
    int side = draw_whole(&d, 0, 2);

    if (side != 1)
        draw_effusion_side(c, s, &d, 0);
    if (side != 0)
        draw_effusion_side(c, s, &d, 1);
}

static void
draw_infiltration(struct film_canvas *c, const struct scene *s)
{
    struct draws d = scene_draws(s, FOR_FINDING + INFILTRATION);
    int sides = draw_whole(&d, 0, 2), side, i, j;
    float strength = draw_between(&d, 0.5f, 0.65f);

    for (side = 0; side < 2; side++) {
        const struct lung *l = &s->lung[side];
        struct pixel_box b = lung_box(l, side);
        unsigned layer = 8 + (unsigned)draw_whole(&d, 0, 7);

        for (j = sides == side ? b.bottom : b.top; j < b.bottom; j++)
            for (i = b.left; i < b.right; i++) {
                float x = canvas_at(i), y = canvas_at(j), part = (y - l->apex) / (l->dome - l->apex);
                float patch = 0.65f * canvas_noise(c, 9.0f * x, 9.0f * y, layer) +
                              0.35f * canvas_noise(c, 21.0f * x, 21.0f * y, layer + 8);
                float fine = canvas_noise(c, 42.0f * x, 42.0f * y, layer + 1);
                float alpha = smooth((patch - 0.42f) / 0.25f) * (0.55f + 0.9f * (fine - 0.3f)) *
                              smooth((part - 0.2f) / 0.25f) * c->lung[j][i];

                pull(c, i, j, 0.6f, strength * clamp01(alpha));
            }
    }
}

static void
draw_disc(struct film_canvas *c, const struct scene *s, struct point at, float radius, int side, unsigned layer,
          float wave)
{
    struct pixel_box b = canvas_box(side_x(side, at.x) - 1.4f * radius, at.y - 1.4f * radius,
                                    side_x(side, at.x) + 1.4f * radius, at.y + 1.4f * radius);
    const struct lung *l = &s->lung[side];
    int i, j;

    for (j = b.top; j < b.bottom; j++)
        for (i = b.left; i < b.right; i++) {
            float x = canvas_at(i), y = canvas_at(j), dx = x - side_x(side, at.x), dy = y - at.y;
            float r = radius * (1.0f + wave * (canvas_noise(c, 8.0f * x, 8.0f * y, layer) - 0.5f));

            pull(c, i, j, 0.68f,
                 0.9f * edge(r - sqrtf(dx * dx + dy * dy), 0.012f) * edge(lung_depth(l, side_x(side, x), y), 0.01f));
        }
}

static void
draw_mass(struct film_canvas *c, const struct scene *s)
{
    struct draws d = scene_draws(s, FOR_FINDING + MASS);
    int side = draw_whole(&d, 0, 1);
    float radius = draw_between(&d, 0.13f, 0.18f);

    draw_disc(c, s, place_in_lung(&d, &s->lung[side], 0.25f, 0.8f, 0.6f * radius), radius, side, 20, 0.5f);
}

static void
draw_nodules(struct film_canvas *c, const struct scene *s)
{
    struct draws d = scene_draws(s, FOR_FINDING + NODULE);
    int nodules = draw_whole(&d, 1, 3);

    while (nodules-- > 0) {
        int side = draw_whole(&d, 0, 1);
        float radius = draw_between(&d, 0.042f, 0.058f);

        draw_disc(c, s, place_in_lung(&d, &s->lung[side], 0.2f, 0.9f, 1.2f * radius), radius, side, 21, 0.0f);
    }
}

/* Draws dark tubes that fan out from the hilum. */
static void
draw_bronchi(struct film_canvas *c, struct draws *d, int side, float y, float reach)
{
    int k;

    for (k = 0; k < 5; k++) {
        float turn = -0.9f + 0.2f * (float)k, out = draw_between(d, 0.75f, 1.0f) * reach;
        struct point from = {side_x(side, 0.16f), y}, to = {side_x(side, 0.16f + out), y + turn * out};
        struct point fork = {side_x(side, 0.16f + 0.6f * out), y + 0.6f * turn * out};

        canvas_line(c, from, to, 0.02f, 0.011f, 1.0f);
        canvas_line(c, fork, (struct point){to.x, to.y - 0.12f}, 0.014f, 0.009f, 1.0f);
    }
}

static void
draw_pneumonia(struct film_canvas *c, const struct scene *s)
{
    struct draws d = scene_draws(s, FOR_FINDING + PNEUMONIA);
    int side = draw_chance(&d, 0.7f) ? 0 : 1, i, j;
    const struct lung *l = &s->lung[side];
    struct pixel_box b = lung_box(l, side);
    float fissure = mix(l->apex, l->dome, draw_between(&d, 0.5f, 0.58f)), tilt = draw_between(&d, -0.1f, 0.1f);
    float height = draw_between(&d, 0.38f, 0.5f);

    for (j = b.top; j < b.bottom; j++)
        for (i = b.left; i < b.right; i++) {
            float x = canvas_at(i), u = fabsf(x), y = canvas_at(j), line = fissure + tilt * (u - 0.4f);
            float above = line - y;
            float fill = edge(above, 0.008f) * (1.0f - smooth((above - 0.7f * height) / (0.5f * height)));

            pull(c, i, j, 0.68f, fill * c->lung[j][i] * (0.85f + 0.15f * canvas_noise(c, 20.0f * x, 20.0f * y, 22)));
        }
    draw_bronchi(c, &d, side, fissure - 0.03f, 0.42f);
    canvas_ink(c, -0.24f, true);
}

/* The lung has shrunk toward its hilum; outside it there is only air, darker than any lung. */
static void
draw_pneumothorax(struct film_canvas *c, const struct scene *s)
{
    struct draws d = scene_draws(s, FOR_FINDING + PNEUMOTHORAX);
    int side = draw_whole(&d, 0, 1), i, j;
    const struct lung *l = &s->lung[side];
    struct pixel_box b = lung_box(l, side);
    float size = draw_between(&d, 0.6f, 0.76f), hilum = mix(l->apex, l->dome, 0.7f);

    for (j = b.top; j < b.bottom; j++)
        for (i = b.left; i < b.right; i++) {
            float u = fabsf(canvas_at(i)), y = canvas_at(j);
            float depth = lung_wall_depth(l, 0.2f + (u - 0.2f) / size, hilum + (y - hilum) / size) * size;
            float low = 1.0f - smooth((y - l->dome + 0.12f) / 0.25f), mask = c->lung[j][i] * low;
            float away = fabsf(depth) / 0.012f;

            if (u < 0.2f && y > hilum - 0.2f)
                continue;
            pull(c, i, j, 0.07f, 0.92f * mask * edge(-depth, 0.008f));
            c->density[j][i] += mask * (0.07f * edge(depth, 0.008f) + (away < 1.0f ? 0.3f * (1.0f - away) : 0.0f));
        }
}

static void
draw_consolidation(struct film_canvas *c, const struct scene *s)
{
    struct draws d = scene_draws(s, FOR_FINDING + CONSOLIDATION);
    int side = draw_whole(&d, 0, 1), i, j;
    const struct lung *l = &s->lung[side];
    struct point at = place_in_lung(&d, l, 0.72f, 0.84f, 0.15f);
    float radius = draw_between(&d, 0.22f, 0.29f);
    struct pixel_box b = lung_box(l, side);

    for (j = b.top; j < b.bottom; j++)
        for (i = b.left; i < b.right; i++) {
            float x = canvas_at(i), y = canvas_at(j), dx = (side_x(side, x) - at.x) / radius, dy = (y - at.y) / radius;
            float ragged = 0.7f * (canvas_noise(c, 6.0f * x, 6.0f * y, 24) - 0.5f) +
                           0.3f * (canvas_noise(c, 22.0f * x, 22.0f * y, 25) - 0.5f);

            pull(c, i, j, 0.64f, 0.9f * c->lung[j][i] * edge(1.0f + ragged - sqrtf(dx * dx + dy * dy), 0.22f));
        }
}

static void
draw_edema(struct film_canvas *c, const struct scene *s)
{
    struct draws d = scene_draws(s, FOR_FINDING + EDEMA);
    float strength = draw_between(&d, 0.75f, 0.9f);
    int side, i, j, k;

    for (side = 0; side < 2; side++) {
        const struct lung *l = &s->lung[side];
        struct pixel_box b = lung_box(l, side);
        float middle = mix(l->apex, l->dome, 0.58f);

        for (j = b.top; j < b.bottom; j++)
            for (i = b.left; i < b.right; i++) {
                float x = canvas_at(i), y = canvas_at(j), dx = (fabsf(x) - 0.14f) / 0.44f, dy = (y - middle) / 0.4f;
                float haze = bump(0.8f * (dx * dx + dy * dy)) *
                             (0.8f + 0.4f * canvas_noise(c, 15.0f * x, 15.0f * y, 26));

                pull(c, i, j, 0.64f, strength * clamp01(1.5f * haze) * c->lung[j][i]);
            }
        for (k = 0; k < 7; k++) {
            float y = l->dome - 0.055f * ((float)k + draw_between(&d, 0.1f, 0.6f)), wall = lung_lateral(l, y);
            float tilt = draw_between(&d, -0.02f, 0.02f), length = draw_between(&d, 0.08f, 0.15f);

            canvas_line(c, (struct point){side_x(side, wall - length), y}, (struct point){side_x(side, wall), y + tilt},
                        0.011f, 0.011f, 1.0f);
        }
    }
    canvas_ink(c, 0.2f, true);
}

static void
draw_emphysema(struct film_canvas *c, const struct scene *s)
{
    struct draws d = scene_draws(s, FOR_FINDING + EMPHYSEMA);
    int side, k;

    for (side = 0; side < 2; side++)
        for (k = 0; k < 2; k++) {
            struct point at = place_in_lung(&d, &s->lung[side], k ? 0.36f : 0.14f, k ? 0.44f : 0.22f, 0.1f);
            float radius = draw_between(&d, 0.075f, 0.1f);
            struct ellipse e = {.centre = {side_x(side, at.x), at.y},
                                .rx = radius + 0.014f,
                                .ry = 0.9f * radius + 0.014f,
                                .soft = 0.08f,
                                .target = 0.4f,
                                .strength = 0.75f,
                                .lungs = true};

            canvas_ellipse(c, &e);
            e.rx -= 0.016f;
            e.ry -= 0.016f;
            e.target = 0.06f;
            e.strength = 0.95f;
            canvas_ellipse(c, &e);
        }
}

static void
draw_fibrosis(struct film_canvas *c, const struct scene *s)
{
    struct draws d = scene_draws(s, FOR_FINDING + FIBROSIS);
    float strength = draw_between(&d, 0.28f, 0.34f);
    int side, i, j;

    for (side = 0; side < 2; side++) {
        const struct lung *l = &s->lung[side];
        struct pixel_box b = lung_box(l, side);

        for (j = b.top; j < b.bottom; j++)
            for (i = b.left; i < b.right; i++) {
                float x = canvas_at(i), y = canvas_at(j), part = (y - l->apex) / (l->dome - l->apex), net, other;

                if (part < 0.4f || c->lung[j][i] <= 0.0f)
                    continue;
                /* Smooth noise crosses its mean in thin lines; two fields together make a net. */
                net = fabsf(canvas_noise(c, 24.0f * x, 24.0f * y, 28) - 0.5f) * 8.0f;
                other = fabsf(canvas_noise(c, 24.0f * x + 8.0f * y, 24.0f * y - 8.0f * x, 29) - 0.5f) * 8.0f;
                net = net < other ? net : other;
                c->density[j][i] += strength * clamp01(1.2f - net) * smooth((part - 0.4f) / 0.2f) * c->lung[j][i];
            }
    }
}

static void
draw_thickening(struct film_canvas *c, const struct scene *s)
{
    struct draws d = scene_draws(s, FOR_FINDING + PLEURAL_THICKENING);
    int side = draw_whole(&d, 0, 1), i, j;
    const struct lung *l = &s->lung[side];
    struct pixel_box b = lung_box(l, side);
    float thick = draw_between(&d, 0.07f, 0.1f), end = draw_between(&d, 0.75f, 0.9f);

    for (j = b.top; j < b.bottom; j++)
        for (i = b.left; i < b.right; i++) {
            float x = canvas_at(i), u = fabsf(x), y = canvas_at(j), part = (y - l->apex) / (l->dome - l->apex);
            float wall = lung_lateral(l, y) - u, top = 0.8f * (y - l->apex), depth = wall < top ? wall : top;
            float lump = thick * (0.6f + 0.8f * canvas_noise(c, 7.0f * x, 12.0f * y, 30));

            pull(c, i, j, 0.76f,
                 0.9f * edge(lump - depth, 0.008f) * edge(end - part, 0.03f) * edge(lung_depth(l, u, y), 0.01f));
        }
}

static void
draw_hernia(struct film_canvas *c, const struct scene *s)
{
    struct draws d = scene_draws(s, FOR_FINDING + HERNIA);
    float x = draw_between(&d, 0.04f, 0.12f), y = s->lung[1].dome - draw_between(&d, 0.1f, 0.16f);
    float radius = draw_between(&d, 0.15f, 0.19f), level = y + draw_between(&d, -0.02f, 0.04f);
    struct pixel_box b = canvas_box(x - radius - 0.02f, y - radius - 0.02f, x + radius + 0.02f, y + radius + 0.02f);
    int i, j;

    for (j = b.top; j < b.bottom; j++)
        for (i = b.left; i < b.right; i++) {
            float dx = canvas_at(i) - x, dy = canvas_at(j) - y, depth = radius - sqrtf(dx * dx + dy * dy);
            float fluid = edge(canvas_at(j) - level, 0.006f);

            pull(c, i, j, 0.88f, 0.9f * edge(depth, 0.008f));
            pull(c, i, j, mix(0.22f, 0.84f, fluid), 0.95f * edge(depth - 0.022f, 0.008f));
        }
}

void
findings_draw(struct film_canvas *c, const struct scene *s)
{
    static void (*const draw_finding[CHEX_FINDINGS])(struct film_canvas *, const struct scene *) = {
        [ATELECTASIS] = draw_atelectasis,
        [EFFUSION] = draw_effusion,
        [INFILTRATION] = draw_infiltration,
        [MASS] = draw_mass,
        [NODULE] = draw_nodules,
        [PNEUMONIA] = draw_pneumonia,
        [PNEUMOTHORAX] = draw_pneumothorax,
        [CONSOLIDATION] = draw_consolidation,
        [EDEMA] = draw_edema,
        [EMPHYSEMA] = draw_emphysema,
        [FIBROSIS] = draw_fibrosis,
        [PLEURAL_THICKENING] = draw_thickening,
        [HERNIA] = draw_hernia,
    };
    /* First air, then haze, then dense findings, so that none hides those drawn before. */
    static const uint8_t order[CHEX_FINDINGS] = {CARDIOMEGALY, EMPHYSEMA,          INFILTRATION, EDEMA, CONSOLIDATION,
                                                 PNEUMONIA,    FIBROSIS,           PNEUMOTHORAX, MASS,  ATELECTASIS,
                                                 EFFUSION,     PLEURAL_THICKENING, NODULE,       HERNIA};
    unsigned k;

    for (k = 0; k < CHEX_FINDINGS; k++)
        if (scene_has(s, order[k]) && draw_finding[order[k]])
            draw_finding[order[k]](c, s);
}
