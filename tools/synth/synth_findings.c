/*
 * synth_findings.c - draws the 14 findings, each in a different way (see synth_scene.h)
 *
 * They are caricatures of the descriptions in textbooks.  A small network can learn them from some dozens of examples,
 * and they differ from each other in shape, texture or location.  No image made here says anything about a
 * disease.  Cardiomegaly is entirely in the geometry (synth_body.c), emphysema and fibrosis partly.
 *
 *   Atelectasis         two to four thin white plates across one lower lung
 *   Cardiomegaly        a heart of more than half the chest's width
 *   Effusion            white below a level that rises toward the wall
 *   Infiltration        many faint, soft, mottled patches
 *   Mass                one large dense disc
 *   Nodule              one to three small dense discs
 *   Pneumonia           an upper lobe filled down to a straight fissure
 *   Pneumothorax        a dark rim without vessels outside of a thin white line
 *   Consolidation       one large soft cloud in a lower lung
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

#include "synth/synth_boxes.h"
#include "synth/synth_scene.h"

#define FOR_FINDING 200 /* + number of the finding */

enum texture { PLAIN, MOTTLED, NET };

/*
 * A part of a lung whose density moves toward `target` by `strength`: between two heights, which are fractions from the
 * apex (0) to the dome (1), and between two distances from the wall.
 */
struct region {
    float top, bottom, slope; /* slope: how far the top and the bottom rise toward the wall */
    float near, far;          /* distances from the wall; far is 0: the whole lung */
    float soft, target, strength;
    enum texture texture;
};

/* Returns how much of the pixel (i, j) the region covers, 0 to 1. */
static float
cover(const struct film_canvas *c, const struct lung *l, const struct region *r, int i, int j)
{
    float x = canvas_at(i), y = canvas_at(j), depth = lung_wall_depth(l, fabsf(x), y), soft = r->soft, net;
    float height = (y - l->apex) / (l->dome - l->apex) + r->slope * (fabsf(x) - l->centre) / l->width;
    float covered = c->lung[j][i] * edge(height - r->top, soft) * edge(r->bottom - height, soft);

    if (r->far > 0.0f && fabsf(x) < l->centre && y > l->apex + r->far)
        return 0.0f; /* the side of the spine is no wall */
    if (r->far > 0.0f)
        covered *= edge(depth - r->near, 0.008f) * edge(r->far - depth, 0.008f);
    if (r->texture == MOTTLED)
        return covered * edge(canvas_noise(c, 10.0f * x, 10.0f * y, 0) - 0.55f, 0.13f) *
               (0.3f + 0.9f * canvas_noise(c, 40.0f * x, 40.0f * y, 1));
    if (r->texture == PLAIN)
        return covered;
    /* Smooth noise crosses its mean in thin lines. */
    net = fabsf(canvas_noise(c, 24.0f * x, 24.0f * y, 2) - 0.5f);
    net = fminf(net, fabsf(canvas_noise(c, 22.0f * x + 8.0f * y, 22.0f * y - 8.0f * x, 3) - 0.5f));
    return covered * clamp01(1.2f - 8.0f * net);
}

static void
shade(struct film_canvas *c, const struct scene *s, int side, struct region r)
{
    int first = side * CANVAS / 2, i, j;

    for (j = 0; j < CANVAS; j++)
        for (i = first; i < first + CANVAS / 2; i++)
            c->density[j][i] += r.strength * clamp01(cover(c, &s->lung[side], &r, i, j)) *
                                (r.target - c->density[j][i]);
}

static void
disc(struct film_canvas *c, struct point at, float radius, float soft, float target, float strength, bool lungs)
{
    canvas_ellipse(c, &(struct ellipse){.centre = at,
                                        .rx = radius,
                                        .ry = 0.95f * radius,
                                        .soft = soft,
                                        .target = target,
                                        .strength = strength,
                                        .lungs = lungs});
}

/* Draws discs at random places in the lungs, away from their borders; high and low are fractions of the height. */
static void
scatter(struct film_canvas *c, const struct scene *s, struct draws *d, float high, float low, float smallest,
        float largest, float soft, float target)
{
    int side = draw_whole(d, 0, 1);
    const struct lung *l = &s->lung[side];
    float y = mix(l->apex, l->dome, draw_between(d, high, low)), radius = draw_between(d, smallest, largest);
    float room = lung_half(l, y) - radius, u = l->centre + (room > 0.0f ? draw_between(d, -room, room) : 0.0f);

    disc(c, at_side(side, u, y), radius, soft, target, 0.9f, true);
}

static void
draw_atelectasis(struct film_canvas *c, const struct scene *s, struct draws *d)
{
    int side = draw_whole(d, 0, 1), plates = draw_whole(d, 2, 4);
    const struct lung *l = &s->lung[side];
    float y = l->dome;

    while (plates-- > 0) {
        float from = l->centre - draw_between(d, 0.08f, 0.16f), tilt = draw_between(d, -0.09f, 0.05f);

        y -= draw_between(d, 0.09f, 0.13f);
        canvas_line(c, at_side(side, from, y), at_side(side, from + 0.37f, y + tilt), 0.022f, 0.42f, true);
    }
}

static void
draw_edema(struct film_canvas *c, const struct scene *s, struct draws *d)
{
    int side, k;

    for (side = 0; side < 2; side++) {
        const struct lung *l = &s->lung[side];

        disc(c, at_side(side, 0.16f, mix(l->apex, l->dome, 0.58f)), 0.32f, 0.8f, 0.64f, 0.85f, true);
        for (k = 0; k < 7; k++) {
            float y = l->dome - 0.055f * ((float)k + draw_between(d, 0.1f, 0.6f)), wall = l->centre + lung_half(l, y);

            canvas_line(c, at_side(side, wall - 0.12f, y), at_side(side, wall, y), 0.011f, 0.2f, true);
        }
    }
}

static void
draw_emphysema(struct film_canvas *c, const struct scene *s, struct draws *d)
{
    int k;

    for (k = 0; k < 4; k++) {
        const struct lung *l = &s->lung[k % 2];
        float y = mix(l->apex, l->dome, k < 2 ? 0.4f : 0.18f), radius = draw_between(d, 0.075f, 0.1f);
        struct point at = at_side(k % 2, l->centre + draw_between(d, -0.08f, 0.08f), y);

        disc(c, at, radius + 0.014f, 0.08f, 0.4f, 0.75f, true);
        disc(c, at, radius - 0.002f, 0.08f, 0.06f, 0.95f, true);
    }
}

static void
draw_hernia(struct film_canvas *c, const struct scene *s, struct draws *d)
{
    float x = draw_between(d, 0.04f, 0.12f), y = s->lung[1].dome - draw_between(d, 0.1f, 0.16f);
    float radius = draw_between(d, 0.15f, 0.19f);

    disc(c, (struct point){x, y}, radius, 0.05f, 0.88f, 0.9f, false);
    disc(c, (struct point){x, y - 0.02f}, 0.85f * radius, 0.05f, 0.22f, 0.95f, false);
    disc(c, (struct point){x, y + 0.45f * radius}, 0.5f * radius, 0.1f, 0.84f, 0.95f, false);
}

/* Draws the findings that fill a part of one lung (side 0 or 1) or of both. */
static void
draw_regions(struct film_canvas *c, const struct scene *s, enum finding finding, struct draws *d, int side)
{
    float a = draw(d), b = draw(d);
    struct region r = {.bottom = 2.0f, .soft = 0.02f, .target = 0.68f, .strength = 0.95f};

    switch (finding) {
    case EFFUSION:
        r.top = mix(0.75f, 0.92f, a);
        r.slope = mix(0.1f, 0.18f, b);
        break;
    case INFILTRATION:
        r = (struct region){.top = 0.3f, .bottom = 2.0f, .soft = 0.12f, .target = 0.6f, .texture = MOTTLED};
        r.strength = mix(0.5f, 0.65f, a);
        break;
    case PNEUMONIA:
        r.top = mix(0.1f, 0.2f, a);
        r.bottom = mix(0.5f, 0.58f, a);
        r.slope = mix(-0.08f, 0.08f, b);
        r.strength = 0.85f;
        break;
    case FIBROSIS:
        r = (struct region){
            .top = 0.5f, .bottom = 2.0f, .soft = 0.1f, .target = 0.8f, .strength = 0.6f, .texture = NET};
        break;
    case PNEUMOTHORAX:
        r = (struct region){.top = -1.0f, .bottom = 0.9f, .soft = 0.1f, .target = 0.07f, .strength = 0.92f};
        r.far = mix(0.13f, 0.2f, a);
        shade(c, s, side, r);
        r.near = r.far - 0.004f;
        r.far += 0.01f;
        r.target = 1.0f;
        r.strength = 0.8f;
        break;
    default: /* Pleural_Thickening */
        r.top = -1.0f;
        r.bottom = mix(0.75f, 0.9f, b);
        r.near = -0.01f;
        r.far = mix(0.06f, 0.09f, a);
        r.target = 0.76f;
        r.strength = 0.9f;
    }
    shade(c, s, side, r);
}

/* Draws a finding; returns into how many places of the picture. */
static unsigned
draw_finding(struct film_canvas *c, const struct scene *s, enum finding finding)
{
    struct draws d = draws_of(s->study_key, FOR_FINDING + finding), again;
    int sides, side, number, places = 1;

    switch (finding) {
    case ATELECTASIS:
        draw_atelectasis(c, s, &d);
        break;
    case CARDIOMEGALY: /* scene_make() */
        break;
    case CONSOLIDATION:
        scatter(c, s, &d, 0.72f, 0.84f, 0.24f, 0.3f, 0.6f, 0.64f);
        break;
    case MASS:
        scatter(c, s, &d, 0.25f, 0.7f, 0.13f, 0.18f, 0.1f, 0.68f);
        break;
    case NODULE:
        places = draw_whole(&d, 1, 3);
        for (number = places; number > 0; number--)
            scatter(c, s, &d, 0.2f, 0.85f, 0.042f, 0.058f, 0.25f, 0.68f);
        break;
    case EDEMA:
        draw_edema(c, s, &d);
        places = 2;
        break;
    case EMPHYSEMA:
        draw_emphysema(c, s, &d);
        places = 4;
        break;
    case HERNIA:
        draw_hernia(c, s, &d);
        break;
    default:
        sides = finding == FIBROSIS ? 2 : draw_whole(&d, 0, finding == EFFUSION || finding == INFILTRATION ? 2 : 1);
        again = d;
        for (side = 0; side < 2; side++, d = again)
            if (sides != 1 - side)
                draw_regions(c, s, finding, &d, side);
        places = sides == 2 ? 2 : 1;
    }
    return (unsigned)places;
}

void
findings_draw(struct film_canvas *c, const struct scene *s, struct finding_boxes *boxes)
{
    /* First air, then haze, then dense findings, so that none hides those drawn before. */
    static const enum finding order[] = {EMPHYSEMA,          INFILTRATION, EDEMA, CONSOLIDATION, PNEUMONIA,
                                         FIBROSIS,           PNEUMOTHORAX, MASS,  ATELECTASIS,   EFFUSION,
                                         PLEURAL_THICKENING, NODULE,       HERNIA};
    unsigned places;
    size_t k;

    if (boxes && scene_has(s, CARDIOMEGALY))
        boxes_heart(boxes, s);
    for (k = 0; k < sizeof(order) / sizeof(order[0]); k++) {
        if (!scene_has(s, order[k]))
            continue;
        if (boxes)
            boxes_begin(boxes, c);
        places = draw_finding(c, s, order[k]);
        if (boxes)
            boxes_end(boxes, c, s, order[k], places);
    }
}
