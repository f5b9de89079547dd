/*
 * synth_film.c - from the canvas to 8-bit pixels: exposure, the patient's position, size, grain (see synth_scene.h)
 *
 * From here on, all numbers are integers: 16-bit densities (256 per gray level) and positions in 1/65536 of a pixel.  A
 * size below the canvas is sampled at a whole multiple of itself and averaged; a larger one is interpolated.  Grain is
 * added to the pixels of the file, as in the real images.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include <string.h>

#include "synth/synth_scene.h"

enum { FOR_GRAIN = 51 };

/* Converts density to film: a gain, then a curve that lifts the middle and does not clip hard at the top. */
static void
develop(const struct film_canvas *c, const struct scene *s, uint16_t *film)
{
    const float *density = &c->density[0][0];
    size_t k;

    for (k = 0; k < (size_t)CANVAS * CANVAS; k++) {
        float v = clamp01(density[k] * 1.12f * s->film.gain + s->film.bias + 0.02f);

        v += s->film.curve * v * (1.0f - v);
        /* Linear up to 0.72, then compressed: 1 becomes 0.92. */
        if (v > 0.72f)
            v = 0.72f + 0.7f * (v - 0.72f) / (0.7f + (v - 0.72f));
        film[k] = (uint16_t)(clamp01(v) * 65279.0f);
    }
}

/*
 * The position of a sample on the film, in 1/65536 of a film pixel: start + column * across + row * down.  The film is
 * 2^25 wide in these units, and no sample is further outside than that.  So 32 bits are enough for a coordinate.
 */
struct position {
    int64_t start_x, start_y, down_x, down_y;
    int32_t across_x, across_y;
};

static struct position
position_of(const struct scene *s, unsigned side)
{
    /* Doubles, so that 4096 steps do not add up to a visible error. */
    double pitch = 2.0 / (double)side / (double)s->film.zoom, turn = (double)s->film.turn;
    double unit = 65536.0 / (double)CANVAS_PITCH;
    double left = (0.5 - 0.5 * (double)side) * pitch, middle = 65536.0 * (0.5 * CANVAS - 0.5);

    return (struct position){
        .start_x = (int64_t)(middle + unit * (left - turn * left + (double)s->film.x)),
        .start_y = (int64_t)(middle + unit * (left + turn * left + (double)s->film.y)),
        .across_x = (int32_t)(unit * pitch),
        .across_y = (int32_t)(unit * pitch * turn),
        .down_x = (int64_t)(-unit * pitch * turn),
        .down_y = (int64_t)(unit * pitch),
    };
}

#define LAST_PLACE ((CANVAS - 1) * 65536 - 1)

static inline int32_t
clamp_place(int32_t place)
{
    return place < 0 ? 0 : place > LAST_PLACE ? LAST_PLACE : place;
}

/* Interpolates the film between its pixels. */
static inline uint32_t
sample(const uint16_t *film, int32_t x, int32_t y)
{
    const uint16_t *p = film + (y >> 16) * CANVAS + (x >> 16);
    uint32_t fx = (uint32_t)(x & 65535) >> 8, fy = (uint32_t)(y & 65535) >> 8;
    uint32_t above = p[0] * (256 - fx) + p[1] * fx, below = p[CANVAS] * (256 - fx) + p[CANVAS + 1] * fx;

    return ((above >> 8) * (256 - fy) + (below >> 8) * fy) >> 8;
}

/* Adds a line of samples, `factor` samples to each column of the result; outside the film, its border is repeated. */
static void
sample_line(const uint16_t *film, const struct position *at, int64_t line, unsigned size, unsigned factor,
            uint32_t *sum)
{
    int32_t x = (int32_t)(at->start_x + line * at->down_x), y = (int32_t)(at->start_y + line * at->down_y);
    unsigned i, a;

    for (i = 0; i < size; i++)
        for (a = 0; a < factor; a++, x += at->across_x, y += at->across_y)
            sum[i] += sample(film, clamp_place(x), clamp_place(y));
}

/* Grain: the sum of four random bytes has nearly a normal distribution, with a standard deviation of 147.8. */
static inline int32_t
grain_of(uint32_t bits)
{
    return (int32_t)((bits & 255) + (bits >> 8 & 255) + (bits >> 16 & 255) + (bits >> 24)) - 510;
}

static inline uint8_t
grain_pixel(uint32_t value, uint32_t bits, int32_t amount)
{
    int32_t v = (int32_t)value + ((grain_of(bits) * amount) >> 8) + 128;

    return (uint8_t)(v < 0 ? 0 : v > 65535 ? 255 : v >> 8);
}

static void
add_grain(const uint32_t *row, unsigned size, uint64_t key, int32_t amount, uint8_t *out)
{
    unsigned i;

    for (i = 0; i < size; i++)
        out[i] = grain_pixel(row[i], (uint32_t)(random_hash(key, i / 2) >> (i % 2 ? 32 : 0)), amount);
}

/* Computes one row of the result, without grain. */
static void
sample_row(const uint16_t *film, const struct position *at, unsigned row, unsigned size, unsigned factor, uint32_t *out)
{
    unsigned i, line;

    memset(out, 0, size * sizeof(out[0]));
    for (line = 0; line < factor; line++)
        sample_line(film, at, (int64_t)row * factor + line, size, factor, out);
    for (i = 0; factor > 1 && i < size; i++)
        out[i] /= factor * factor;
}

void
film_expose(const struct film_canvas *c, const struct scene *s, uint16_t *film, unsigned size, uint8_t *out)
{
    unsigned factor = size >= CANVAS ? 1 : (CANVAS + size - 1) / size;
    struct position at = position_of(s, size * factor);
    int32_t amount = (int32_t)(s->film.grain * 256.0f * 256.0f / 147.8f);
    unsigned left = (unsigned)(s->film.blind[0] * (float)size), right = (unsigned)(s->film.blind[1] * (float)size);
    unsigned top = (unsigned)(s->film.blind[2] * (float)size), bottom = (unsigned)(s->film.blind[3] * (float)size);
    uint32_t row[FILM_MOST];
    unsigned j;

    develop(c, s, film);
    for (j = 0; j < size; j++, out += size) {
        if (j < top || j >= size - bottom) {
            memset(out, 0, size);
            continue;
        }
        sample_row(film, &at, j, size, factor, row);
        add_grain(row, size, random_hash(random_hash(s->study_key, FOR_GRAIN), j), amount, out);
        memset(out, 0, left);
        memset(out + size - right, 0, right);
    }
}
