/*
 * kernels_bf16.c - struct products of kernels.h in bf16; compiled once per instruction set
 *
 * The build defines PRODUCTS_TABLE and the register tiles, as for kernels.c.  dot() is the instruction vdpbf16ps or its
 * definition in vectors, with the same bits (math/bf16.h).  Sums of one output are in one order for all tiles.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cpu/kernels_vector.h"
#include "math/bf16.h"

/* ---- pairs ------------------------------------------------------------------------------------------------------- */

typedef uint32_t uvec __attribute__((vector_size(LANES * sizeof(uint32_t))));

INLINE uvec
load_words(const void *p)
{
    return *(const uvec *)p;
}

INLINE uint32_t
load_pair(const uint16_t *x)
{
    uint32_t word;

    memcpy(&word, x, sizeof(word));
    return word;
}

#ifdef __AVX512BF16__

/* Returns sum + x1 w1 + x0 w0 in each lane. */
INLINE vec
dot(vec sum, uint32_t x, uvec w)
{
    return (vec)_mm512_dpbf16_ps((__m512)sum, (__m512bh)_mm512_set1_epi32((int)x), (__m512bh)w);
}

INLINE void
store_half(uint16_t *y, vec v)
{
    __m256i half = (__m256i)_mm512_cvtneps_pbh((__m512)v);

    memcpy(y, &half, sizeof(half));
}

#else

INLINE bool
any(ivec v)
{
    int32_t all = 0;
    size_t i;

    for (i = 0; i < LANES; i++)
        all |= v[i];
    return all != 0;
}

/* Returns a b + c as vdpbf16ps adds one product: bf16_flush() in each lane. */
INLINE vec
add_product(vec a, vec b, vec c)
{
    vec v = fused(a, b, c);
    ivec size = (ivec)v & INT32_MAX;
    size_t i;

    if (any(size == (int32_t)BF16_LEAST))
        for (i = 0; i < LANES; i++)
            v[i] = bf16_flush(v[i], a[i], b[i], c[i]);
    return (vec)((ivec)v & ((size >= (int32_t)BF16_LEAST) | INT32_MIN));
}

INLINE vec
dot(vec sum, uint32_t x, uvec w)
{
    uvec pair = (uvec){0} + x;

    sum = add_product((vec)(pair & 0xffff0000u), (vec)(w & 0xffff0000u), sum);
    return add_product((vec)(pair << 16), (vec)(w << 16), sum);
}

INLINE void
store_half(uint16_t *y, vec v)
{
    size_t i;

    for (i = 0; i < LANES; i++)
        y[i] = bf16_round(v[i]);
}

#endif

/* ---- convolution ----------------------------------------------------------------------------------------------- */

/* As conv_tile() of kernels.c, with pairs of channels. */
INLINE void
conv_tile(const struct conv_row *row, const uint16_t *x0, float *y, const size_t pixels, const size_t outs,
          const size_t step)
{
    vec sum[TILE][OUTS * VECTORS];
    const uint16_t *w = row->w;
    size_t b, ky, kx, i, p, v;

    UNROLL for (p = 0; p < pixels; p++) UNROLL for (v = 0; v < outs * VECTORS; v++) sum[p][v] = (vec){0};
    for (b = 0; b < row->blocks; b++) {
        size_t inputs = b + 1 < row->blocks ? BLOCK : row->last;

        for (ky = 0; ky < row->kernel_rows; ky++) {
            const uint16_t *x = x0 + b * row->x_block + ky * row->x_row;

            for (kx = 0; kx < row->kernel_columns; kx++, x += BLOCK, w += BLOCK * BLOCK) {
                fetch_ahead(row->ahead);
                for (i = 0; i < inputs; i += 2) {
                    uvec factor[OUTS * VECTORS];

                    UNROLL for (v = 0; v < outs * VECTORS; v++)
                        factor[v] = load_words(w + i * BLOCK + v / VECTORS * row->w_out + v % VECTORS * 2 * LANES);
                    UNROLL for (p = 0; p < pixels; p++)
                    {
                        uint32_t pair = load_pair(x + p * step + i);

                        UNROLL for (v = 0; v < outs * VECTORS; v++) sum[p][v] = dot(sum[p][v], pair, factor[v]);
                    }
                }
            }
        }
    }
    UNROLL for (p = 0; p < pixels; p++) UNROLL for (v = 0; v < outs * VECTORS; v++)
        store(y + v / VECTORS * row->y_out + p * row->y_step + v % VECTORS * LANES, sum[p][v]);
}

#define OPERAND uint16_t
#include "cpu/kernels_tiles.h"

/* ---- gradient of weights --------------------------------------------------------------------------------------- */

/* Accumulate WEIGHT_INPUTS inputs from `first` on x `outs` blocks of outputs in registers, over all pairs of pixels. */
INLINE void
weight_part(const struct weight_tile *t, const size_t first, const size_t outs)
{
    vec sum[WEIGHT_INPUTS][WEIGHT_OUTS * VECTORS];
    size_t row, column, i, v;

    UNROLL for (i = 0; i < WEIGHT_INPUTS; i++) UNROLL for (v = 0; v < outs * VECTORS; v++) sum[i][v] = (vec){0};
    for (row = 0; row < t->rows; row++) {
        const uint32_t *x = (const uint32_t *)t->x + row * t->x_row + first,
                       *dy = (const uint32_t *)t->dy + row * t->dy_row;

        for (column = 0; column < t->columns; column++, x += BLOCK, dy += BLOCK) {
            uvec d[WEIGHT_OUTS * VECTORS];

            UNROLL for (v = 0; v < outs * VECTORS; v++)
                d[v] = load_words(dy + v / VECTORS * t->dy_out + v % VECTORS * LANES);
            UNROLL for (i = 0; i < WEIGHT_INPUTS; i++) UNROLL for (v = 0; v < outs * VECTORS; v++)
                sum[i][v] = dot(sum[i][v], x[i], d[v]);
        }
    }
    UNROLL for (i = 0; i < WEIGHT_INPUTS; i++) UNROLL for (v = 0; v < outs * VECTORS; v++)
    {
        float *to = t->dw + v / VECTORS * t->dw_out + (first + i) * BLOCK + v % VECTORS * LANES;

        store(to, load(to) + sum[i][v]);
    }
}

INLINE void
weight_parts(const struct weight_tile *t, const size_t outs)
{
    size_t first;

    for (first = 0; first < t->inputs; first += WEIGHT_INPUTS)
        weight_part(t, first, outs);
}

static void
weights(const struct weight_tile *t)
{
#if WEIGHT_OUTS == 1
    struct weight_tile one = *t;
    unsigned o;

    for (o = 0; o < t->outs; o++) {
        weight_parts(&one, 1);
        one.dy = (const uint32_t *)one.dy + t->dy_out;
        one.dw += t->dw_out;
    }
#else
    if (t->outs == 3)
        weight_parts(t, 3);
    else if (t->outs == 2)
        weight_parts(t, 2);
    else
        weight_parts(t, 1);
#endif
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

/* One pixel of a block. */
typedef uint16_t pixel __attribute__((vector_size(BLOCK * sizeof(uint16_t))));

static void
gather(const struct gather *part, size_t count, size_t step, size_t pixels, void *to)
{
    pixel *y = to;
    size_t p, i, c;

    for (i = 0; i < count; i++) {
        const uint16_t *from = part[i].from;
        pixel mask;

        for (c = 0; c < BLOCK; c++)
            mask[c] = (uint16_t)part[i].mask[c];
        for (p = 0; p < pixels; p++) {
            pixel got;

            memcpy(&got, from + p * step, sizeof(got));
            y[p] = i == 0 ? got & mask : y[p] | (got & mask);
        }
    }
}

static void
copy(const float *x, size_t pixels, void *to)
{
    uint16_t *y = to;
    size_t i;

    for (i = 0; i < pixels * BLOCK; i += LANES)
        store_half(y + i, load(x + i));
}

static void
normalise(const struct norm_block *norm, const float *x, size_t pixels, void *to)
{
    uint16_t *y = to;
    size_t v, p;

    for (v = 0; v < BLOCK; v += LANES) {
        vec mean = load(norm->mean + v), scale = load(norm->scale + v), beta = load(norm->beta + v);

        if (norm->relu) {
            for (p = 0; p < pixels; p++) {
                vec value = normal(load(x + p * BLOCK + v), mean, scale, beta);

                store_half(y + p * BLOCK + v, positive(value, value));
            }
        } else {
            for (p = 0; p < pixels; p++)
                store_half(y + p * BLOCK + v, normal(load(x + p * BLOCK + v), mean, scale, beta));
        }
    }
}

static void
finish(const float *k, const float *mean, const float *a, const float *x, size_t pixels, void *to)
{
    uint16_t *y = to;
    size_t v, p;

    for (v = 0; v < BLOCK; v += LANES) {
        vec k0 = load(k + v), k1 = load(k + BLOCK + v), k2 = load(k + 2 * BLOCK + v), m = load(mean + v);

        for (p = 0; p < pixels; p++) {
            size_t i = p * BLOCK + v;

            store_half(y + i, finished(k0, k1, k2, m, load(a + i), load(x + i)));
        }
    }
}

static void
pair(const uint16_t *x, size_t step, size_t pixels, size_t pairs, uint32_t *y)
{
    size_t j, c;

    for (j = 0; j < pairs; j++, y += BLOCK, x += 2 * step) {
        if (2 * j + 1 < pixels)
            for (c = 0; c < BLOCK; c++)
                y[c] = x[c] | (uint32_t)x[step + c] << 16;
        else
            for (c = 0; c < BLOCK; c++)
                y[c] = 2 * j < pixels ? x[c] : 0;
    }
}

const struct products PRODUCTS_TABLE = {.size = sizeof(uint16_t),
                                        .conv = conv,
                                        .weights = weights,
                                        .gather = gather,
                                        .copy = copy,
                                        .normalise = normalise,
                                        .finish = finish,
                                        .pair = pair};
