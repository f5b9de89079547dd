/*
 * synth_canvas.h - the canvas of a synthetic radiograph, and two brushes
 *
 * The canvas is always CANVAS x CANVAS pixels, so the scene does not depend on the size of the file (synth_film.c
 * scales it).  Coordinates are in the patient's frame: x runs from left to right and y from top to bottom of the
 * picture.  The film shows about -1 to 1, and the canvas extends to CANVAS_REACH.  Density is attenuation: 0 is air
 * (black), 1 is metal (white).
 *
 * The code uses only floats with +, -, *, / and sqrt, whose results IEEE 754 defines exactly, and the build forbids
 * contraction to FMA.  So the pixels are the same on every machine.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_SYNTH_CANVAS_H
#define CHEX_TOOLS_SYNTH_CANVAS_H

#include <stdbool.h>
#include <stdint.h>

#define CANVAS       512
#define CANVAS_REACH 1.12f
#define CANVAS_PITCH (2.0f * CANVAS_REACH / (float)CANVAS)
#define LATTICE      64 /* a power of two */

struct film_canvas {
    float density[CANVAS][CANVAS];
    float lung[CANVAS][CANVAS];      /* 1 inside the lungs; 0 outside, and where heart or diaphragm hide them */
    float lattice[LATTICE][LATTICE]; /* 0 <= value < 1 */
};

struct point {
    float x, y;
};

static inline float
canvas_at(int pixel)
{
    return ((float)pixel + 0.5f) * CANVAS_PITCH - CANVAS_REACH;
}

static inline float
clamp01(float t)
{
    return t < 0.0f ? 0.0f : t > 1.0f ? 1.0f : t;
}

/* A soft border: returns 0 if distance <= -soft, 1 if distance >= soft, and a smooth curve between them. */
static inline float
edge(float distance, float soft)
{
    float t = clamp01(0.5f + 0.5f * distance / soft);

    return t * t * (3.0f - 2.0f * t);
}

static inline float
mix(float a, float b, float share)
{
    return a + (b - a) * share;
}

/* Sets everything to zero, and draws a new lattice for the noise. */
void canvas_clear(struct film_canvas *c, uint64_t key);

/* Returns smooth noise, 0 <= value < 1, with details of size 1; layer selects one of 8 fields. */
float canvas_noise(const struct film_canvas *c, float x, float y, unsigned layer);

/*
 * An ellipse moves the density toward `target` by `strength`.  soft: width of its border relative to the radius (with
 * 1, it is a soft blob).  ring: if not 0, draw only the outline, with this half width.  lungs: draw only
 * in the lungs.
 */
struct ellipse {
    struct point centre;
    float rx, ry, soft, target, strength, ring;
    bool lungs;
};
void canvas_ellipse(struct film_canvas *c, const struct ellipse *e);

/* Adds a stroke from a to b with half width r to the density; if `lungs`, only in the lungs. */
void canvas_line(struct film_canvas *c, struct point a, struct point b, float r, float amount, bool lungs);

#endif
