/*
 * kernels.c - implements kernels.h; compiled once per instruction set
 *
 * The build defines KERNELS_TABLE (name of the table), KERNELS_NAME (its text), LANES (floats per vector) and the
 * register tiles.  conv() accumulates TILE pixels x OUTS blocks of outputs, weights() WEIGHT_INPUTS or WEIGHT_MORE
 * inputs x WEIGHT_OUTS blocks.  Accumulators plus a few operands fill the vector registers.  The vectors use the vector
 * extension of GCC and clang, which contract products and sums to fused multiply-adds.  With FUSED, each a b + c is one
 * fused multiply-add, by fmaf() where the instruction set has none.  Only bf16 uses that table; its products are in
 * kernels_bf16.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cpu/kernels_vector.h"

/* ---- convolution ----------------------------------------------------------------------------------------------- */

/*
 * Compute `pixels` outputs of `outs` blocks with register accumulators; pixels, outs and step are constants after
 * inlining.
 */
INLINE void
conv_tile(const struct conv_row *row, const float *x0, float *y, const size_t pixels, const size_t outs,
          const size_t step)
{
    vec sum[TILE][OUTS * VECTORS];
    const float *w = row->w;
    size_t b, ky, kx, i, p, v;

    UNROLL for (p = 0; p < pixels; p++) UNROLL for (v = 0; v < outs * VECTORS; v++) sum[p][v] = (vec){0};
    for (b = 0; b < row->blocks; b++) {
        size_t inputs = b + 1 < row->blocks ? BLOCK : row->last;

        for (ky = 0; ky < row->kernel_rows; ky++) {
            const float *x = x0 + b * row->x_block + ky * row->x_row;

            for (kx = 0; kx < row->kernel_columns; kx++, x += BLOCK, w += BLOCK * BLOCK) {
                fetch_ahead(row->ahead);
                for (i = 0; i < inputs; i++) {
                    vec factor[OUTS * VECTORS];

                    UNROLL for (v = 0; v < outs * VECTORS; v++)
                        factor[v] = load(w + i * BLOCK + v / VECTORS * row->w_out + v % VECTORS * LANES);
                    UNROLL for (p = 0; p < pixels; p++)
                    {
                        float value = x[p * step + i];

                        UNROLL for (v = 0; v < outs * VECTORS; v++) sum[p][v] += value * factor[v];
                    }
                }
            }
        }
    }
    UNROLL for (p = 0; p < pixels; p++) UNROLL for (v = 0; v < outs * VECTORS; v++)
        store(y + v / VECTORS * row->y_out + p * row->y_step + v % VECTORS * LANES, sum[p][v]);
}

#define OPERAND float
#include "cpu/kernels_tiles.h"

/* ---- gradient of weights --------------------------------------------------------------------------------------- */

/* Accumulate `inputs` lanes from `first` on x `outs` blocks of outputs in registers, over all pixels. */
INLINE void
weight_part(const struct weight_tile *t, const size_t first, const size_t inputs, const size_t outs, const size_t step)
{
    vec sum[WEIGHT_INPUTS][WEIGHT_OUTS * VECTORS];
    size_t row, column, i, v;

    UNROLL for (i = 0; i < inputs; i++) UNROLL for (v = 0; v < outs * VECTORS; v++) sum[i][v] = (vec){0};
    for (row = 0; row < t->rows; row++) {
        const float *x = (const float *)t->x + row * t->x_row + first, *dy = (const float *)t->dy + row * t->dy_row;

        for (column = 0; column < t->columns; column++, x += step, dy += BLOCK) {
            vec d[WEIGHT_OUTS * VECTORS];

            UNROLL for (v = 0; v < outs * VECTORS; v++) d[v] = load(dy + v / VECTORS * t->dy_out + v % VECTORS * LANES);
            UNROLL for (i = 0; i < inputs; i++)
            {
                float value = x[i];

                UNROLL for (v = 0; v < outs * VECTORS; v++) sum[i][v] += value * d[v];
            }
        }
    }
    UNROLL for (i = 0; i < inputs; i++)
    {
        size_t lane = first + i;

        UNROLL for (v = 0; v < outs * VECTORS; v++)
        {
            float *to = t->dw + lane / BLOCK * t->dw_tap + v / VECTORS * t->dw_out + lane % BLOCK * BLOCK +
                        v % VECTORS * LANES;

            store(to, load(to) + sum[i][v]);
        }
    }
}

/*
 * Three blocks of outputs leave registers only for WEIGHT_MORE inputs.  The same tile serves counts that are not a
 * multiple of WEIGHT_INPUTS.
 */
INLINE void
weight_parts(const struct weight_tile *t, const size_t outs, const size_t step)
{
    size_t first = 0;

    if (outs < 3 && t->inputs % WEIGHT_INPUTS == 0)
        for (; first < t->inputs; first += WEIGHT_INPUTS)
            weight_part(t, first, WEIGHT_INPUTS, outs, step);
    for (; first < t->inputs; first += WEIGHT_MORE)
        weight_part(t, first, WEIGHT_MORE, outs, step);
}

INLINE void
weight_outs(const struct weight_tile *t, const size_t outs)
{
    if (t->x_step == BLOCK)
        weight_parts(t, outs, BLOCK);
    else
        weight_parts(t, outs, t->x_step);
}

static void
weights(const struct weight_tile *t)
{
#if WEIGHT_OUTS == 1
    struct weight_tile one = *t;
    unsigned o;

    for (o = 0; o < t->outs; o++) {
        weight_outs(&one, 1);
        one.dy = (const float *)one.dy + t->dy_out;
        one.dw += t->dw_out;
    }
#else
    if (t->outs == 3)
        weight_outs(t, 3);
    else if (t->outs == 2)
        weight_outs(t, 2);
    else
        weight_outs(t, 1);
#endif
}

/* ---- inputs ----------------------------------------------------------------------------------------------------- */

static void
gather(const struct gather *part, size_t count, size_t step, size_t pixels, void *to)
{
    float *y = to;
    size_t v, p, i;

    for (v = 0; v < BLOCK; v += LANES) {
        for (i = 0; i < count; i++) {
            const float *from = part[i].from;
            ivec mask;

            memcpy(&mask, part[i].mask + v, sizeof(mask));
            for (p = 0; p < pixels; p++) {
                ivec got = (ivec)load_unaligned(from + p * step + v) & mask;

                store(y + p * BLOCK + v, (vec)(i == 0 ? got : got | (ivec)load(y + p * BLOCK + v)));
            }
        }
    }
}

/* ---- normalisation --------------------------------------------------------------------------------------------- */

static void
copy(const float *x, size_t pixels, void *y)
{
    memcpy(y, x, pixels * BLOCK * sizeof(*x));
}

static void
normalise(const struct norm_block *norm, const float *x, size_t pixels, void *to)
{
    float *y = to;
    size_t v, p;

    for (v = 0; v < BLOCK; v += LANES) {
        vec mean = load(norm->mean + v), scale = load(norm->scale + v), beta = load(norm->beta + v);

        if (norm->relu) {
            for (p = 0; p < pixels; p++) {
                vec value = normal(load(x + p * BLOCK + v), mean, scale, beta);

                store(y + p * BLOCK + v, positive(value, value));
            }
        } else {
            for (p = 0; p < pixels; p++)
                store(y + p * BLOCK + v, normal(load(x + p * BLOCK + v), mean, scale, beta));
        }
    }
}

INLINE void
add_lanes(double *to, vec v)
{
    size_t i;

    for (i = 0; i < LANES; i++)
        to[i] += (double)v[i];
}

/* Pixels per float partial sum; each partial sum is then added to a double. */
#define RUN 64

static void
norm_gradient(const struct norm_block *norm, const float *gamma, const float *g, const float *x, size_t pixels,
              bool first, float *to, double *sum, double *product)
{
    size_t v, p, at;

    for (at = 0; at < pixels; at += RUN) {
        size_t end = pixels - at < RUN ? pixels : at + RUN;

        for (v = 0; v < BLOCK; v += LANES) {
            vec mean = load(norm->mean + v), scale = load(norm->scale + v), beta = load(norm->beta + v);
            vec factor = load(gamma + v), s = {0}, q = {0};

            for (p = at; p < end; p++) {
                vec centred = load(x + p * BLOCK + v) - mean, d = load(g + p * BLOCK + v);
                float *out = to + p * BLOCK + v;

                if (norm->relu)
                    d = positive(d, fused(scale, centred, beta));
                s += d;
                q = fused(d, centred, q);
                d = rounded(factor * d);
                store(out, first ? d : load(out) + d);
            }
            add_lanes(sum + v, s);
            add_lanes(product + v, q);
        }
    }
}

static void
finish(const float *k, const float *mean, const float *a, const float *x, size_t pixels, void *to)
{
    float *y = to;
    size_t v, p;

    for (v = 0; v < BLOCK; v += LANES) {
        vec k0 = load(k + v), k1 = load(k + BLOCK + v), k2 = load(k + 2 * BLOCK + v), m = load(mean + v);

        for (p = 0; p < pixels; p++) {
            size_t i = p * BLOCK + v;

            store(y + i, finished(k0, k1, k2, m, load(a + i), load(x + i)));
        }
    }
}

static void
measure(const float *x, const float *pivot, size_t pixels, double *sum, double *squares)
{
    size_t v, p, at;

    for (at = 0; at < pixels; at += RUN) {
        size_t end = pixels - at < RUN ? pixels : at + RUN;

        for (v = 0; v < BLOCK; v += LANES) {
            vec from = load(pivot + v), s = {0}, q = {0};

            for (p = at; p < end; p++) {
                vec d = load(x + p * BLOCK + v) - from;

                s += d;
                q = fused(d, d, q);
            }
            add_lanes(sum + v, s);
            add_lanes(squares + v, q);
        }
    }
}

/* ---- sums ------------------------------------------------------------------------------------------------------ */

static void
accumulate(const float *x, size_t count, bool first, float *y)
{
    size_t i;

    if (first)
        memmove(y, x, count * sizeof(*y));
    else
        for (i = 0; i < count; i += LANES)
            store(y + i, load(y + i) + load(x + i));
}

static void
add(const float *x, const float *x2, size_t count, bool relu, float *y)
{
    size_t i;

    for (i = 0; i < count; i += LANES) {
        vec v = load(x + i) + load(x2 + i);

        store(y + i, relu ? positive(v, v) : v);
    }
}

static void
mask(const float *y, const float *dy, size_t count, float *g)
{
    size_t i;

    for (i = 0; i < count; i += LANES)
        store(g + i, positive(load(dy + i), load(y + i)));
}

/* ---- max pool ---------------------------------------------------------------------------------------------------- */

/* Returns the maximum under a window and the first tap that has it; NaN wins. */
INLINE vec
window_max(const float *x, unsigned height, unsigned width, unsigned kernel, unsigned top, unsigned left, ivec *tap)
{
    ivec at = {0};
    vec best = {0};
    bool any = false;
    unsigned ky, kx;

    for (ky = 0; ky < kernel; ky++) {
        for (kx = 0; kx < kernel; kx++) {
            unsigned row = top + ky, column = left + kx;
            ivec here = (ivec){0} + (int32_t)(ky * kernel + kx);
            vec v;
            ivec better;

            /* Above or left of the image these wrap around to large numbers. */
            if (row >= height || column >= width)
                continue;
            v = load(x + ((size_t)row * width + column) * BLOCK);
            better = any ? (v > best) | (v != v) : (ivec){0} - 1;
            best = (vec)(((ivec)v & better) | ((ivec)best & ~better));
            at = (here & better) | (at & ~better);
            any = true;
        }
    }
    *tap = at;
    return best;
}

static void
max_pool(const float *x, unsigned height, unsigned width, unsigned kernel, unsigned stride, unsigned pad, float *y,
         unsigned out_height, unsigned out_width)
{
    unsigned row, column;
    size_t v;
    ivec tap;

    for (row = 0; row < out_height; row++)
        for (column = 0; column < out_width; column++, y += BLOCK)
            for (v = 0; v < BLOCK; v += LANES)
                store(y + v, window_max(x + v, height, width, kernel, row * stride - pad, column * stride - pad, &tap));
}

static void
max_pool_gradient(const float *x, unsigned height, unsigned width, unsigned kernel, unsigned stride, unsigned pad,
                  const float *dy, unsigned out_height, unsigned out_width, float *dx)
{
    unsigned row, column, k;
    size_t v;
    ivec tap;

    for (row = 0; row < out_height; row++) {
        for (column = 0; column < out_width; column++, dy += BLOCK) {
            for (v = 0; v < BLOCK; v += LANES) {
                vec d = load(dy + v);

                window_max(x + v, height, width, kernel, row * stride - pad, column * stride - pad, &tap);
                for (k = 0; k < kernel * kernel; k++) {
                    unsigned at_row = row * stride - pad + k / kernel, at_column = column * stride - pad + k % kernel;
                    float *to;

                    if (at_row >= height || at_column >= width)
                        continue;
                    to = dx + ((size_t)at_row * width + at_column) * BLOCK + v;
                    store(to, load(to) + (vec)((ivec)d & (tap == (int32_t)k)));
                }
            }
        }
    }
}

const struct kernels KERNELS_TABLE = {
    .name = KERNELS_NAME,
    .tile = TILE,
    .products = {.size = sizeof(float),
                 .conv = conv,
                 .weights = weights,
                 .gather = gather,
                 .copy = copy,
                 .normalise = normalise,
                 .finish = finish},
    .norm_gradient = norm_gradient,
    .measure = measure,
    .accumulate = accumulate,
    .add = add,
    .mask = mask,
    .max_pool = max_pool,
    .max_pool_gradient = max_pool_gradient,
};
