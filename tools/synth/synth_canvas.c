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
    for (j = 0; j < LATTICE; j++)
        for (i = 0; i < LATTICE; i++)
            c->lattice[j][i] = draw(&d);
}

float
canvas_noise(const struct film_canvas *c, float x, float y, unsigned layer)
{
    /* The offset makes both positive, so the cast rounds down. */
    float px = x + 256.0f + 13.37f * (float)layer, py = y + 256.0f + 7.71f * (float)layer;
    int i = (int)px, j = (int)py, left = i & (LATTICE - 1), right = (i + 1) & (LATTICE - 1);
    float u = edge(px - (float)i - 0.5f, 0.5f), v = edge(py - (float)j - 0.5f, 0.5f);
    const float *above = c->lattice[j & (LATTICE - 1)], *below = c->lattice[(j + 1) & (LATTICE - 1)];

    return mix(mix(above[left], above[right], u), mix(below[left], below[right], u), v);
}

/* Returns the first pixel at or after a coordinate, 0 to CANVAS. */
static int
pixel_at(float place)
{
    return (int)(clamp01((place + CANVAS_REACH) / (2.0f * CANVAS_REACH)) * (float)CANVAS);
}

void
canvas_ellipse(struct film_canvas *c, const struct ellipse *e)
{
    float reach = 1.0f + e->soft + e->ring;
    int right = pixel_at(e->centre.x + reach * e->rx + CANVAS_PITCH), i;
    int bottom = pixel_at(e->centre.y + reach * e->ry + CANVAS_PITCH), j;

    for (j = pixel_at(e->centre.y - reach * e->ry); j < bottom; j++)
        for (i = pixel_at(e->centre.x - reach * e->rx); i < right; i++) {
            float dx = (canvas_at(i) - e->centre.x) / e->rx, dy = (canvas_at(j) - e->centre.y) / e->ry;
            float inside = 1.0f - sqrtf(dx * dx + dy * dy);
            float alpha = edge(e->ring > 0.0f ? e->ring - fabsf(inside) : inside, e->soft) * e->strength;

            c->density[j][i] += alpha * (e->lungs ? c->lung[j][i] : 1.0f) * (e->target - c->density[j][i]);
        }
}

void
canvas_line(struct film_canvas *c, struct point a, struct point b, float r, float amount, bool lungs)
{
    float vx = b.x - a.x, vy = b.y - a.y, length = vx * vx + vy * vy + 1e-9f;
    int right = pixel_at((a.x > b.x ? a.x : b.x) + r + CANVAS_PITCH), i;
    int bottom = pixel_at((a.y > b.y ? a.y : b.y) + r + CANVAS_PITCH), j;

    for (j = pixel_at((a.y < b.y ? a.y : b.y) - r); j < bottom; j++)
        for (i = pixel_at((a.x < b.x ? a.x : b.x) - r); i < right; i++) {
            float px = canvas_at(i) - a.x, py = canvas_at(j) - a.y, t = clamp01((px * vx + py * vy) / length);
            float dx = px - t * vx, dy = py - t * vy, part = 1.0f - (dx * dx + dy * dy) / (r * r);

            if (part > 0.0f)
                c->density[j][i] += amount * part * part * (lungs ? c->lung[j][i] : 1.0f);
        }
}
