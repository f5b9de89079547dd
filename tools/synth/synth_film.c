/*
 * synth_film.c - from the canvas to 8-bit pixels: exposure, the patient's position, size, grain (see synth_scene.h)
 *
 * A size below the canvas is sampled at a whole multiple of itself and averaged; a larger one is interpolated.  Grain
 * is added to the pixels of the file, as in the real images.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "synth/synth_scene.h"

enum { FOR_GRAIN = 51 };

/* Converts density to film: a gain, then a curve that is linear up to 0.72 and compresses above: 1 becomes 0.92. */
static void
develop(struct film_canvas *c, const struct scene *s)
{
    int i, j;

    for (j = 0; j < CANVAS; j++)
        for (i = 0; i < CANVAS; i++) {
            float v = clamp01(c->density[j][i] * 1.16f * s->gain + s->bias + 0.04f), above = v - 0.72f;

            c->density[j][i] = above > 0.0f ? 0.72f + 0.7f * above / (0.7f + above) : v;
        }
}

static float
clamp_place(float place)
{
    return place < 0.0f ? 0.0f : place > (float)CANVAS - 1.01f ? (float)CANVAS - 1.01f : place;
}

/* Returns the density at a point of the film, -1 to 1: turned, shifted and interpolated; outside, the border's. */
static float
sample(const struct film_canvas *c, const struct scene *s, float x, float y)
{
    float px = clamp_place((x - s->turn * y + s->shift.x + CANVAS_REACH) / CANVAS_PITCH - 0.5f);
    float py = clamp_place((y + s->turn * x + s->shift.y + CANVAS_REACH) / CANVAS_PITCH - 0.5f);
    int i = (int)px, j = (int)py;
    float u = px - (float)i;

    return mix(mix(c->density[j][i], c->density[j][i + 1], u), mix(c->density[j + 1][i], c->density[j + 1][i + 1], u),
               py - (float)j);
}

/* Returns grain with a standard deviation of 1: the sum of four random bytes has nearly a normal distribution. */
static float
grain_of(uint32_t bits)
{
    int32_t sum = (int32_t)((bits & 255) + (bits >> 8 & 255) + (bits >> 16 & 255) + (bits >> 24));

    return (float)(sum - 510) / 147.8f;
}

void
film_expose(struct film_canvas *c, const struct scene *s, unsigned size, uint8_t *out)
{
    unsigned factor = size >= CANVAS ? 1 : (CANVAS + size - 1) / size, a, b, i, j;
    float pitch = 2.0f / (float)(size * factor) / s->zoom, middle = 0.5f * (float)(size * factor) - 0.5f;

    develop(c, s);
    for (j = 0; j < size; j++) {
        uint64_t key = random_hash(random_hash(s->study_key, FOR_GRAIN), j);

        for (i = 0; i < size; i++) {
            float sum = 0.0f, value;

            for (b = 0; b < factor; b++)
                for (a = 0; a < factor; a++)
                    sum += sample(c, s, pitch * ((float)(i * factor + a) - middle),
                                  pitch * ((float)(j * factor + b) - middle));
            value = 255.0f * sum / (float)(factor * factor) +
                    s->grain * grain_of((uint32_t)(random_hash(key, i / 2) >> (i % 2 ? 32 : 0))) + 0.5f;
            out[(size_t)j * size + i] = (uint8_t)(value < 0.0f ? 0.0f : value > 255.0f ? 255.0f : value);
        }
    }
}
