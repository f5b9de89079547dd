/*
 * synth_canvas.c - see synth_canvas.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "synth/synth_canvas.h"

#include <math.h>
#include <string.h>

#include "synth/synth_random.h"

void
canvas_clear(struct film_canvas *c, uint64_t key)
{
    struct draws d = draws_of(key, 0);
    int i, j;

    memset(c->density, 0, sizeof(c->density));
    memset(c->lung, 0, sizeof(c->lung));
    memset(c->lines, 0, sizeof(c->lines));
    for (j = 0; j < LATTICE; j++)
        for (i = 0; i < LATTICE; i++)
            c->lattice[j][i] = draw(&d);
}

static int
pixel_at(float place)
{
    float pixel = (place + CANVAS_REACH) / CANVAS_PITCH;

    if (!(pixel > 0.0f))
        return 0;
    return pixel >= (float)CANVAS ? CANVAS : (int)pixel;
}

struct pixel_box
canvas_box(float left, float top, float right, float bottom)
{
    return (struct pixel_box){.left = pixel_at(left),
                              .right = pixel_at(right + CANVAS_PITCH),
                              .top = pixel_at(top),
                              .bottom = pixel_at(bottom + CANVAS_PITCH)};
}

float
canvas_noise(const struct film_canvas *c, float x, float y, unsigned layer)
{
    /*
     * The rotation keeps the lattice from showing along the rows.  The offsets make both positive, so the cast rounds
     * down.
     */
    float px = 0.8f * x - 0.6f * y + 256.0f + 13.37f * (float)(layer % 8);
    float py = 0.6f * x + 0.8f * y + 256.0f + 7.71f * (float)(layer / 8 % 8);
    int i = (int)px, j = (int)py;
    float u = smooth(px - (float)i), v = smooth(py - (float)j);
    const float *above = c->lattice[j & (LATTICE - 1)], *below = c->lattice[(j + 1) & (LATTICE - 1)];
    int left = i & (LATTICE - 1), right = (i + 1) & (LATTICE - 1);

    return mix(mix(above[left], above[right], u), mix(below[left], below[right], u), v);
}

void
canvas_ellipse(struct film_canvas *c, const struct ellipse *e)
{
    float reach = 1.0f + e->soft;
    struct pixel_box b = canvas_box(e->centre.x - reach * e->rx, e->centre.y - reach * e->ry,
                                    e->centre.x + reach * e->rx, e->centre.y + reach * e->ry);
    int i, j;

    for (j = b.top; j < b.bottom; j++) {
        float dy = (canvas_at(j) - e->centre.y) / e->ry;

        for (i = b.left; i < b.right; i++) {
            float dx = (canvas_at(i) - e->centre.x) / e->rx;
            float squared = dx * dx + dy * dy;
            float alpha;

            if (squared >= reach * reach)
                continue;
            alpha = e->strength * edge(1.0f - sqrtf(squared), e->soft) * (e->lungs ? c->lung[j][i] : 1.0f);
            c->density[j][i] += alpha * (e->target - c->density[j][i]);
        }
    }
}

void
canvas_line(struct film_canvas *c, struct point a, struct point b, float ra, float rb, float strength)
{
    float widest = (ra > rb ? ra : rb) + CANVAS_PITCH;
    float vx = b.x - a.x, vy = b.y - a.y, length = vx * vx + vy * vy + 1e-9f;
    struct pixel_box box = canvas_box((a.x < b.x ? a.x : b.x) - widest, (a.y < b.y ? a.y : b.y) - widest,
                                      (a.x > b.x ? a.x : b.x) + widest, (a.y > b.y ? a.y : b.y) + widest);
    int i, j;

    for (j = box.top; j < box.bottom; j++) {
        float py = canvas_at(j) - a.y;

        for (i = box.left; i < box.right; i++) {
            float px = canvas_at(i) - a.x;
            float t = clamp01((px * vx + py * vy) / length);
            float dx = px - t * vx, dy = py - t * vy;
            float r = mix(ra, rb, t) + 0.5f * CANVAS_PITCH;
            float ink = strength * bump((dx * dx + dy * dy) / (r * r));

            if (ink > c->lines[j][i])
                c->lines[j][i] = ink;
        }
    }
}

void
canvas_ink(struct film_canvas *c, float amount, bool lungs)
{
    int i, j;

    for (j = 0; j < CANVAS; j++)
        for (i = 0; i < CANVAS; i++)
            c->density[j][i] += amount * c->lines[j][i] * (lungs ? c->lung[j][i] : 1.0f);
    memset(c->lines, 0, sizeof(c->lines));
}
