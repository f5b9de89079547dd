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
 *   Mass                one large dense disc
 *   Nodule              one to three small dense discs
 *   Pneumonia           an upper lobe filled down to a straight fissure
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

/* A pixel of a lung. */
struct spot {
    float x, u, y; /* position in the picture; u is the distance from the midline */
    float part;    /* 0 at the apex, 1 at the dome */
    float inside;  /* film_canvas.lung */
};

/* A finding in one lung; the numbers mean something else for each. */
struct shape {
    const struct film_canvas *canvas;
    const struct lung *lung;
    float a, b, c;
};

/* Returns how much of this pixel the finding covers, 0 to 1. */
typedef float cover_fn(const struct shape *f, const struct spot *p);

/* Move the density of a lung toward the target, by what the finding covers. */
static void
shade(struct film_canvas *c, const struct scene *s, int side, struct shape f, cover_fn *cover, float target)
{
    const struct lung *l = &s->lung[side];
    float left = side ? 0.05f : -l->lateral - 0.08f, right = side ? l->lateral + 0.08f : -0.05f;
    struct pixel_box b = canvas_box(left, l->apex - 0.05f, right, l->dome + 0.35f);
    int i, j;

    f.canvas = c;
    f.lung = l;
    for (j = b.top; j < b.bottom; j++)
        for (i = b.left; i < b.right; i++) {
            struct spot p = {.x = canvas_at(i), .u = fabsf(canvas_at(i)), .y = canvas_at(j), .inside = c->lung[j][i]};

            p.part = (p.y - l->apex) / (l->dome - l->apex);
            c->density[j][i] += clamp01(cover(&f, &p)) * (target - c->density[j][i]);
        }
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
disc(struct film_canvas *c, int side, struct point at, float radius, float soft, float target, float strength)
{
    canvas_ellipse(c, &(struct ellipse){.centre = {side_x(side, at.x), at.y},
                                        .rx = radius,
                                        .ry = 0.95f * radius,
                                        .soft = soft,
                                        .target = target,
                                        .strength = strength,
                                        .lungs = true});
}

static void
draw_atelectasis(struct film_canvas *c, const struct scene *s, struct draws *d)
{
    int side = draw_whole(d, 0, 1), plates = draw_whole(d, 2, 4), k;
    const struct lung *l = &s->lung[side];
    float y = l->dome - draw_between(d, 0.08f, 0.12f);

    for (k = 0; k < plates; k++) {
        float from = l->medial + (side ? 0.16f : 0.06f) + draw_between(d, 0.0f, 0.08f);
        float to = from + draw_between(d, 0.32f, 0.42f), tilt = draw_between(d, -0.09f, 0.05f);

        canvas_line(c, (struct point){side_x(side, from), y}, (struct point){side_x(side, to), y + tilt}, 0.025f,
                    0.018f, 1.0f);
        y -= draw_between(d, 0.09f, 0.13f);
    }
    canvas_ink(c, 0.42f, true);
}

/* a: the level at the spine; b: how far the meniscus rises. */
static float
cover_effusion(const struct shape *f, const struct spot *p)
{
    float way = (p->u - f->lung->medial) / (f->lung->lateral - f->lung->medial);
    float surface = f->a - f->b * way * way * way;

    return 0.95f * edge(p->y - surface, 0.02f) * edge(lung_depth(f->lung, p->u, p->y) + 0.01f, 0.02f);
}

static void
draw_effusion(struct film_canvas *c, const struct scene *s, struct draws *d)
{
    int sides = draw_whole(d, 0, 2), side;

    for (side = 0; side < 2; side++) {
        float fill = draw_between(d, -0.05f, 0.25f), rise = draw_between(d, 0.19f, 0.27f);

        if (sides != 1 - side)
            shade(c, s, side, (struct shape){.a = s->lung[side].dome - fill, .b = rise}, cover_effusion, 0.67f);
    }
}

/* a: the strength; b: shifts the noise. */
static float
cover_infiltration(const struct shape *f, const struct spot *p)
{
    float patch = canvas_noise(f->canvas, 10.0f * p->x + f->b, 10.0f * p->y, 8);
    float fine = canvas_noise(f->canvas, 40.0f * p->x, 40.0f * p->y, 9);

    return f->a * smooth((patch - 0.42f) / 0.25f) * (0.3f + 0.9f * fine) * smooth((p->part - 0.2f) / 0.25f) * p->inside;
}

static void
draw_infiltration(struct film_canvas *c, const struct scene *s, struct draws *d)
{
    int sides = draw_whole(d, 0, 2), side;
    float strength = draw_between(d, 0.5f, 0.65f);

    for (side = 0; side < 2; side++)
        if (sides != side)
            shade(c, s, side, (struct shape){.a = strength, .b = 3.0f * (float)side}, cover_infiltration, 0.6f);
}

static void
draw_mass(struct film_canvas *c, const struct scene *s, struct draws *d)
{
    int side = draw_whole(d, 0, 1);
    float radius = draw_between(d, 0.13f, 0.18f);

    disc(c, side, place_in_lung(d, &s->lung[side], 0.25f, 0.7f, 0.8f * radius), radius, 0.1f, 0.68f, 0.9f);
}

static void
draw_nodules(struct film_canvas *c, const struct scene *s, struct draws *d)
{
    int nodules = draw_whole(d, 1, 3);

    while (nodules-- > 0) {
        int side = draw_whole(d, 0, 1);
        float radius = draw_between(d, 0.042f, 0.058f);

        disc(c, side, place_in_lung(d, &s->lung[side], 0.2f, 0.85f, 1.2f * radius), radius, 0.25f, 0.68f, 0.9f);
    }
}

/* a: y of the fissure at the midline; b: its tilt; c: the height of the filled lobe. */
static float
cover_pneumonia(const struct shape *f, const struct spot *p)
{
    float above = f->a + f->b * (p->u - 0.4f) - p->y, fill = 1.0f - smooth((above - 0.7f * f->c) / (0.5f * f->c));

    return edge(above, 0.008f) * fill * p->inside *
           (0.75f + 0.25f * canvas_noise(f->canvas, 20.0f * p->x, 20.0f * p->y, 22));
}

static void
draw_pneumonia(struct film_canvas *c, const struct scene *s, struct draws *d)
{
    int side = draw_chance(d, 0.7f) ? 0 : 1;
    const struct lung *l = &s->lung[side];
    float fissure = mix(l->apex, l->dome, draw_between(d, 0.5f, 0.58f)), tilt = draw_between(d, -0.1f, 0.1f);
    float height = draw_between(d, 0.38f, 0.5f);

    shade(c, s, side, (struct shape){.a = fissure, .b = tilt, .c = height}, cover_pneumonia, 0.68f);
}

/*
 * a: size of the lung, which has shrunk toward its hilum; b: y of the hilum.  Returns the distance to its border, which
 * is negative in the air outside.
 */
static float
collapsed_depth(const struct shape *f, const struct spot *p)
{
    return f->a * lung_wall_depth(f->lung, 0.2f + (p->u - 0.2f) / f->a, f->b + (p->y - f->b) / f->a);
}

static float
cover_air(const struct shape *f, const struct spot *p)
{
    float low = 1.0f - smooth((p->y - f->lung->dome + 0.12f) / 0.25f);

    return 0.92f * p->inside * low * edge(-collapsed_depth(f, p), 0.008f) * smooth((p->u - 0.17f) / 0.06f);
}

static float
cover_border(const struct shape *f, const struct spot *p)
{
    float away = fabsf(collapsed_depth(f, p)) / 0.012f, low = 1.0f - smooth((p->y - f->lung->dome + 0.12f) / 0.25f);

    return p->u > 0.2f && away < 1.0f ? 0.8f * p->inside * low * (1.0f - away) : 0.0f;
}

static void
draw_pneumothorax(struct film_canvas *c, const struct scene *s, struct draws *d)
{
    int side = draw_whole(d, 0, 1);
    struct shape f = {.a = draw_between(d, 0.6f, 0.76f)};

    f.b = mix(s->lung[side].apex, s->lung[side].dome, 0.7f);
    shade(c, s, side, f, cover_air, 0.07f);
    shade(c, s, side, f, cover_border, 1.0f);
}

/* a, b: the centre (u, y); c: the radius. */
static float
cover_consolidation(const struct shape *f, const struct spot *p)
{
    float dx = (p->u - f->a) / f->c, dy = (p->y - f->b) / f->c;
    float ragged = canvas_noise(f->canvas, 8.0f * p->x, 8.0f * p->y, 24) - 0.5f;

    return 0.9f * p->inside * edge(1.0f + 0.9f * ragged - sqrtf(dx * dx + dy * dy), 0.22f);
}

static void
draw_consolidation(struct film_canvas *c, const struct scene *s, struct draws *d)
{
    int side = draw_whole(d, 0, 1);
    struct point at = place_in_lung(d, &s->lung[side], 0.72f, 0.84f, 0.15f);

    shade(c, s, side, (struct shape){.a = at.x, .b = at.y, .c = draw_between(d, 0.22f, 0.29f)}, cover_consolidation,
          0.64f);
}

static void
draw_edema(struct film_canvas *c, const struct scene *s, struct draws *d)
{
    float strength = draw_between(d, 0.75f, 0.9f);
    int side, k;

    for (side = 0; side < 2; side++) {
        const struct lung *l = &s->lung[side];

        disc(c, side, (struct point){0.16f, mix(l->apex, l->dome, 0.58f)}, 0.32f, 0.8f, 0.64f, strength);
        for (k = 0; k < 7; k++) {
            float y = l->dome - 0.055f * ((float)k + draw_between(d, 0.1f, 0.6f)), wall = lung_lateral(l, y);
            float length = draw_between(d, 0.08f, 0.15f);

            canvas_line(c, (struct point){side_x(side, wall - length), y}, (struct point){side_x(side, wall), y},
                        0.011f, 0.011f, 1.0f);
        }
    }
    canvas_ink(c, 0.2f, true);
}

static void
draw_emphysema(struct film_canvas *c, const struct scene *s, struct draws *d)
{
    int k;

    for (k = 0; k < 4; k++) {
        struct point at = place_in_lung(d, &s->lung[k % 2], k < 2 ? 0.36f : 0.14f, k < 2 ? 0.44f : 0.22f, 0.1f);
        float radius = draw_between(d, 0.075f, 0.1f);

        disc(c, k % 2, at, radius + 0.014f, 0.08f, 0.4f, 0.75f);
        disc(c, k % 2, at, radius - 0.002f, 0.08f, 0.06f, 0.95f);
    }
}

/* Smooth noise crosses its mean in thin lines; two fields together make a net. */
static float
cover_fibrosis(const struct shape *f, const struct spot *p)
{
    float net = fabsf(canvas_noise(f->canvas, 24.0f * p->x, 24.0f * p->y, 28) - 0.5f);
    float other = fabsf(canvas_noise(f->canvas, 24.0f * p->x + 8.0f * p->y, 24.0f * p->y - 8.0f * p->x, 29) - 0.5f);

    return f->a * clamp01(1.2f - 8.0f * (net < other ? net : other)) * smooth((p->part - 0.4f) / 0.2f) * p->inside;
}

static void
draw_fibrosis(struct film_canvas *c, const struct scene *s, struct draws *d)
{
    struct shape f = {.a = draw_between(d, 0.55f, 0.65f)};

    shade(c, s, 0, f, cover_fibrosis, 0.8f);
    shade(c, s, 1, f, cover_fibrosis, 0.8f);
}

/* a: the thickness; b: the lower end, a fraction of the lung's height. */
static float
cover_thickening(const struct shape *f, const struct spot *p)
{
    float wall = lung_lateral(f->lung, p->y) - p->u, top = 0.8f * (p->y - f->lung->apex);
    float lump = f->a * (0.6f + 0.8f * canvas_noise(f->canvas, 7.0f * p->x, 12.0f * p->y, 30));

    return 0.9f * edge(lump - (wall < top ? wall : top), 0.008f) * edge(f->b - p->part, 0.03f) *
           edge(lung_depth(f->lung, p->u, p->y), 0.01f);
}

static void
draw_thickening(struct film_canvas *c, const struct scene *s, struct draws *d)
{
    int side = draw_whole(d, 0, 1);
    float thick = draw_between(d, 0.07f, 0.1f), end = draw_between(d, 0.75f, 0.9f);

    shade(c, s, side, (struct shape){.a = thick, .b = end}, cover_thickening, 0.76f);
}

static void
draw_hernia(struct film_canvas *c, const struct scene *s, struct draws *d)
{
    float x = draw_between(d, 0.04f, 0.12f), y = s->lung[1].dome - draw_between(d, 0.1f, 0.16f);
    float radius = draw_between(d, 0.15f, 0.19f);
    struct ellipse e = {.centre = {x, y}, .rx = radius, .ry = radius, .soft = 0.05f, .target = 0.88f, .strength = 0.9f};

    canvas_ellipse(c, &e);
    e = (struct ellipse){{x, y - 0.02f}, 0.85f * radius, 0.8f * radius, 0.05f, 0.22f, 0.95f, false};
    canvas_ellipse(c, &e);
    e = (struct ellipse){{x, y + 0.5f * radius}, 0.75f * radius, 0.35f * radius, 0.1f, 0.84f, 0.95f, false};
    canvas_ellipse(c, &e);
}

void
findings_draw(struct film_canvas *c, const struct scene *s)
{
    /* First air, then haze, then dense findings, so that none hides those drawn before. */
    static const struct {
        enum finding finding;
        void (*draw)(struct film_canvas *c, const struct scene *s, struct draws *d);
    } order[] = {{EMPHYSEMA, draw_emphysema},
                 {INFILTRATION, draw_infiltration},
                 {EDEMA, draw_edema},
                 {CONSOLIDATION, draw_consolidation},
                 {PNEUMONIA, draw_pneumonia},
                 {FIBROSIS, draw_fibrosis},
                 {PNEUMOTHORAX, draw_pneumothorax},
                 {MASS, draw_mass},
                 {ATELECTASIS, draw_atelectasis},
                 {EFFUSION, draw_effusion},
                 {PLEURAL_THICKENING, draw_thickening},
                 {NODULE, draw_nodules},
                 {HERNIA, draw_hernia}};
    size_t k;

    for (k = 0; k < sizeof(order) / sizeof(order[0]); k++) {
        struct draws d = scene_draws(s, FOR_FINDING + order[k].finding);

        if (scene_has(s, order[k].finding))
            order[k].draw(c, s, &d);
    }
}
