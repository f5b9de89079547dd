/*
 * synth_canvas.h - what a synthetic radiograph is painted on, and the brushes
 *
 * The canvas is always CANVAS x CANVAS, whatever size the file will have, so the scene does not depend on the size
 * (synth_film.c scales it).  Places are in the patient's frame: x from left to right and y from top to bottom of the
 * picture, the film shows about -1 to 1 and the canvas reaches CANVAS_REACH.  Density is attenuation: 0 is air (black),
 * 1 metal (white), and shadows add up as they do on film.
 *
 * Floats with +, -, *, / and sqrt alone, which IEEE 754 defines to the last bit (and the build forbids contraction to
 * fused operations), so the pixels are the same on every machine.
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
    float lung[CANVAS][CANVAS];      /* 0 outside the lungs and behind heart and diaphragm, 1 inside */
    float lines[CANVAS][CANVAS];     /* strokes that are being collected, see canvas_line() */
    float lattice[LATTICE][LATTICE]; /* 0 <= value < 1 */
};

struct point {
    float x, y;
};

/* Pixels left <= i < right, top <= j < bottom: a rectangle of the canvas. */
struct pixel_box {
    int left, right, top, bottom;
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

/* 0 up to t = 0, 1 from t = 1, smooth in between. */
static inline float
smooth(float t)
{
    t = clamp01(t);
    return t * t * (3.0f - 2.0f * t);
}

/* Inside or outside of a border with a width: 0 where distance <= -soft, 1 where distance >= soft. */
static inline float
edge(float distance, float soft)
{
    return smooth(0.5f + 0.5f * distance / soft);
}

/* A bump of height 1 and radius 1, from the squared distance to its top. */
static inline float
bump(float squared)
{
    return squared >= 1.0f ? 0.0f : (1.0f - squared) * (1.0f - squared);
}

static inline float
mix(float a, float b, float share)
{
    return a + (b - a) * share;
}

/* All zero, and a new lattice for the noise. */
void canvas_clear(struct film_canvas *c, uint64_t key);

/* The pixels of a rectangle of the patient's frame, cut to the canvas. */
struct pixel_box canvas_box(float left, float top, float right, float bottom);

/* Smooth noise, 0 <= value < 1, with details of size 1; layer chooses one of many fields. */
float canvas_noise(const struct film_canvas *c, float x, float y, unsigned layer);

/* An ellipse: density is pulled toward target by `strength` inside, with a border of width `soft`; lungs only if so. */
struct ellipse {
    struct point centre;
    float rx, ry, soft; /* soft is relative to the radius: 1 is a soft blob */
    float target, strength;
    bool lungs;
};
void canvas_ellipse(struct film_canvas *c, const struct ellipse *e);

/*
 * A tapering stroke from a to b of half width ra to rb.  Strokes are collected (the stronger one wins, so joints do not
 * show) until canvas_ink() adds them to the density.
 */
void canvas_line(struct film_canvas *c, struct point a, struct point b, float ra, float rb, float strength);

/* Add the collected strokes times `amount`, only in the lungs where `lungs` is set, and clear them. */
void canvas_ink(struct film_canvas *c, float amount, bool lungs);

#endif
