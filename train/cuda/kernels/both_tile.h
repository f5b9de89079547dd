/*
 * both_tile.h - loads, transforms, multiplies and stores a tile of both.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_KERNELS_BOTH_TILE_H
#define CHEX_CUDA_KERNELS_BOTH_TILE_H

#include "cuda/kernels/both_end.h"
#include "cuda/kernels/partial.h"
#include "cuda/kernels/tile.h"

namespace
{
template <int COLUMNS_, int BLOCKS_, int END_> struct both_form {
    enum {
        COLUMNS = COLUMNS_,
        BLOCKS = BLOCKS_,
        END = END_,
        Y_PIECES = BOTH_OUT / 8,
        X_PIECES = COLUMNS / 8,
        Y_EACH = BOTH_THREADS / Y_PIECES, /* a thread has one group of eight in every Y_EACH-th pixel */
        X_EACH = BOTH_THREADS / X_PIECES,
        Y_SEEN = BOTH_PIXELS / Y_EACH,
        X_SEEN = BOTH_PIXELS / X_EACH,
        Y_STEP = Y_EACH * BOTH_OUT, /* values between two of them */
        X_STEP = X_EACH * COLUMNS,
        /* per warp: tiles of 16 of the products of dgrad and wgrad */
        DATA_ACROSS = 2,
        DATA_WARPS = COLUMNS / (16 * DATA_ACROSS), /* next to each other */
        DATA_DOWN = BOTH_PIXELS / 16 * DATA_WARPS / (BOTH_THREADS / 32),
        WEIGHTS_WARPS = 2,
        WEIGHTS_ACROSS = COLUMNS / 16 / WEIGHTS_WARPS,
        WEIGHTS_DOWN = BOTH_OUT / 16 * WEIGHTS_WARPS / (BOTH_THREADS / 32),
        STAGE = BOTH_STAGE_BYTES(COLUMNS, END, sizeof(value_t))
    };
};

/*
 * Group q of line l is stored at q ^ (l & 7).  So eight lines of a group, and eight groups of a line, are in different
 * banks.
 */
template <int PIECES>
DEVICE unsigned
both_place(unsigned line, unsigned piece)
{
    static_assert(PIECES % 8 == 0, "a line meets all banks");
    return (line * PIECES + (piece ^ (line & 7))) * 8;
}

/*
 * Hides a number from the compiler if registers are scarce.  The compiler then computes what depends on it again in
 * each tile, instead of keeping it in registers that the sums need.
 */
template <typename FORM>
DEVICE unsigned
both_anew(unsigned n)
{
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
    if (FORM::BLOCKS > 1)
        asm volatile("" : "+r"(n));
#endif
    return n;
}

/* Hides an address from the compiler, which would otherwise split the store into four. */
DEVICE value_t *
both_address(value_t *p)
{
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
    asm volatile("" : "+l"(p));
#endif
    return p;
}

/* The tile of a stage in shared memory. */
template <typename FORM> struct both_stage {
    value_t *y, *values, *x; /* [BOTH_PIXELS][BOTH_OUT], the same, [BOTH_PIXELS][COLUMNS] */
    unsigned char *counts;   /* [BOTH_PIXELS] is this a pixel of an image with weight? */
    unsigned *mean;          /* END: [BOTH_PIXELS] the pixel of dy whose gradient flows here, or BOTH_NO_MEAN */
};

template <typename FORM>
DEVICE both_stage<FORM>
both_stage_at(unsigned char *at)
{
    value_t *y = (value_t *)(void *)at, *values = y + BOTH_PIXELS * BOTH_OUT, *x = values + BOTH_PIXELS * BOTH_OUT;

    unsigned char *counts = (unsigned char *)(void *)(x + BOTH_PIXELS * FORM::COLUMNS);

    return {y, values, x, counts, (unsigned *)(void *)(counts + BOTH_PIXELS)};
}

/* The work of a CTA. */
struct both_work {
    unsigned column0, first, end; /* of the slice; tiles of the stripe */
    unsigned pixels;              /* of all images */
};

/* ---- finalizing y ------------------------------------------------------------------------------------------------ */

/*
 * Reduces the partial sums of the last consumer of y, for all channels, to sum[2][BOTH_OUT].  Four threads share the
 * rows of four channels.  Four rows at a time are added as floats, like the rows themselves; the rest is added in
 * double.  scratch: one double for each sum of a channel and each of the four threads.
 */
enum { FINISH_QUADS = 2 * BOTH_OUT / 4, FINISH_PARTS = BOTH_THREADS / FINISH_QUADS };
#define FINISH_SCRATCH (FINISH_PARTS * 2 * BOTH_OUT * 8)

DEVICE void
finish_add_blocks(const channel_sums &s, double *scratch)
{
    unsigned quad = threadIdx.x % FINISH_QUADS, part = threadIdx.x / FINISH_QUADS, i;
    unsigned which = quad / (BOTH_OUT / 4), channel = quad % (BOTH_OUT / 4) * 4;
    const float *from = s.partial + (size_t)which * s.channels + channel;
    double sum[4] = {0, 0, 0, 0};

    if (channel < s.channels) {
#pragma unroll 2
        for (unsigned b = part; b < s.blocks; b += 4 * FINISH_PARTS) {
            float4 v[4];

#pragma unroll
            for (i = 0; i < 4; i++) {
                v[i] = {0, 0, 0, 0};
                if (b + i * FINISH_PARTS < s.blocks)
                    v[i] = *(const float4 *)(const void *)(from + (size_t)(b + i * FINISH_PARTS) * 2 * s.channels);
            }
            sum[0] += (double)((v[0].x + v[1].x) + (v[2].x + v[3].x));
            sum[1] += (double)((v[0].y + v[1].y) + (v[2].y + v[3].y));
            sum[2] += (double)((v[0].z + v[1].z) + (v[2].z + v[3].z));
            sum[3] += (double)((v[0].w + v[1].w) + (v[2].w + v[3].w));
        }
    }
#pragma unroll
    for (i = 0; i < 4; i++)
        scratch[(part * 4 + i) * FINISH_QUADS + quad] = sum[i];
    __syncthreads();
    for (i = threadIdx.x; i < 2 * BOTH_OUT; i += BOTH_THREADS) { /* each thread reads only its own */
        double all = 0;

#pragma unroll
        for (unsigned p = 0; p < FINISH_PARTS; p++)
            all += scratch[p * 2 * BOTH_OUT + i];
        scratch[i] = all;
    }
    __syncthreads();
}

/* Returns a sum of finish_add_blocks(). */
DEVICE double
finish_sum(const double *scratch, unsigned which, unsigned channel)
{
    return scratch[channel % 4 * FINISH_QUADS + which * (BOTH_OUT / 4) + channel / 4];
}

/* Writes the parameter gradients of the last consumer. */
DEVICE void
finish_settle(const norm_finish &f, unsigned c, double one, double by_x)
{
    double unscale = (double)f.state->unscale;
    bool keep = f.block->number > 0;

    f.dbeta[c] = (keep ? f.dbeta[c] : 0) + (float)(one * unscale);
    f.dgamma[c] = (keep ? f.dgamma[c] : 0) + (float)(by_x * unscale);
}

/* Makes the table that finalizes y, with zeros after its channels.  All threads must call it. */
DEVICE void
finish_make(const conv_both_args &a, const norm_table &t, double *scratch, bool settles)
{
    const norm_finish &f = a.finish;
    double count = (double)f.block->images * (double)(a.conv.height * a.conv.width);

    if (f.sums.partial)
        finish_add_blocks(f.sums, scratch);
    for (unsigned c = threadIdx.x; c < BOTH_OUT; c += BOTH_THREADS) {
        float by_beta = 0, by_gamma = 0, inverse = 0, by_x = 0, mean = 0;

        if (c < a.conv.out) {
            by_beta = f.by_beta ? f.by_beta[c] : 0;
            by_gamma = f.by_gamma ? f.by_gamma[c] : 0;
            if (f.sums.partial) {
                double one = finish_sum(scratch, 0, c), second = finish_sum(scratch, 1, c);
                double share = (double)f.gamma[c] / count;

                by_beta += (float)(one * share);
                by_gamma += (float)(second * share);
                if (settles)
                    finish_settle(f, c, one, second);
            }
            /*
             * For a single value the gradient is exactly 0; otherwise the rounding error of A, divided by
             * sqrt(epsilon), would remain.
             */
            inverse = count > 1 ? norm_inverse(f.variance[c], f.epsilon) : 0.0f;
            by_x = inverse * by_gamma;
            mean = f.mean[c];
        }
        finish_put(t, c, {inverse, by_beta, mean, by_x});
    }
    __syncthreads(); /* scratch has been read */
}

/* ---- loading a tile ---------------------------------------------------------------------------------------------- */

/*
 * Starts to load a tile into a stage.  A thread loads one group of eight in every EACH-th line, so its addresses differ
 * by a constant step.
 */
template <typename FORM>
DEVICE void
both_load(const conv_both_args &a, const both_work &w, unsigned tile, const unsigned *images,
          const both_stage<FORM> &to)
{
    unsigned thread = both_anew<FORM>(threadIdx.x);
    const conv_args &c = a.conv;
    unsigned first = tile * BOTH_PIXELS, line = thread / FORM::Y_PIECES, piece = thread % FORM::Y_PIECES;
    unsigned at = both_place<FORM::Y_PIECES>(line, piece), end = piece * 8 < c.out ? w.pixels : 0;
    const value_t *from = (const value_t *)c.y + (size_t)(first + line) * c.y_ld + piece * 8;
    size_t step = (size_t)FORM::Y_EACH * c.y_ld;

#pragma unroll
    for (unsigned i = 0; i < FORM::Y_SEEN; i++)
        copy8(to.y + at + i * FORM::Y_STEP, from + i * step, first + line + i * FORM::Y_EACH < end);
    if (a.finish.values) {
        from = (const value_t *)a.finish.values + (size_t)(first + line) * a.finish.values_ld + piece * 8;
        step = (size_t)FORM::Y_EACH * a.finish.values_ld;
#pragma unroll
        for (unsigned i = 0; i < FORM::Y_SEEN; i++)
            copy8(to.values + at + i * FORM::Y_STEP, from + i * step, first + line + i * FORM::Y_EACH < end);
    }
    line = thread / FORM::X_PIECES;
    piece = thread % FORM::X_PIECES;
    at = both_place<FORM::X_PIECES>(line, piece);
    end = w.column0 + piece * 8 < c.in ? w.pixels : 0;
    from = (const value_t *)c.values + (size_t)(first + line) * c.x_ld + w.column0 + piece * 8;
    step = (size_t)FORM::X_EACH * c.x_ld;
#pragma unroll
    for (unsigned i = 0; i < FORM::X_SEEN; i++)
        copy8(to.x + at + i * FORM::X_STEP, from + i * step, first + line + i * FORM::X_EACH < end);
    if (thread < BOTH_PIXELS) {
        unsigned pixel = first + thread, image = pixel / (c.height * c.width);
        bool counts = pixel < w.pixels && (images[image / 32] >> image % 32 & 1);

        to.counts[thread] = counts;
        if (FORM::END)
            to.mean[thread] = counts ? both_mean_of(a, pixel, image) : BOTH_NO_MEAN;
    }
}

/* ---- before the products ----------------------------------------------------------------------------------------- */

/* Finalizes the groups of y that this thread copied; sets those without weight to zero. */
template <typename FORM>
DEVICE void
both_finish(const both_stage<FORM> &s, const norm_table &t, bool finish)
{
    unsigned thread = both_anew<FORM>(threadIdx.x);
    unsigned line = thread / FORM::Y_PIECES, piece = thread % FORM::Y_PIECES;
    unsigned at = both_place<FORM::Y_PIECES>(line, piece);
    float inverse[8], slope[8], offset[8];

    if (finish) {
        norm_load8(inverse, t, FINISH_INVERSE, piece * 8);
        norm_load8(slope, t, FINISH_SLOPE, piece * 8);
        norm_load8(offset, t, FINISH_OFFSET, piece * 8);
    }
#pragma unroll
    for (unsigned i = 0; i < FORM::Y_SEEN; i++) {
        float d[8] = {0, 0, 0, 0, 0, 0, 0, 0}, z[8];
        value8 v;

        if (s.counts[line + i * FORM::Y_EACH]) {
            if (!finish)
                continue;
            load8(v, s.y + at + i * FORM::Y_STEP);
            unpack8(d, v);
            load8(v, s.values + at + i * FORM::Y_STEP);
            unpack8(z, v);
            finish8(d, z, inverse, slope, offset);
        }
        pack8(v, d);
        store8(s.y + at + i * FORM::Y_STEP, v);
    }
}

/*
 * Applies BN to the groups of x that this thread copied, and keeps their values in raw.  Pixels without weight meet
 * gradients of 0, so they must only not be NaN.  `least`: 0 with ReLU, otherwise below all values.
 */
template <typename FORM>
DEVICE void
both_see(const both_stage<FORM> &s, const norm_table &t, float least, value8 *raw)
{
    unsigned thread = both_anew<FORM>(threadIdx.x);
    unsigned line = thread / FORM::X_PIECES, piece = thread % FORM::X_PIECES;
    value_t *at = s.x + both_place<FORM::X_PIECES>(line, piece);
    const float zero[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    float scale[8], shift[8];

    norm_load8(scale, t, NORM_SCALE, piece * 8);
    norm_load8(shift, t, NORM_SHIFT, piece * 8);
#pragma unroll
    for (unsigned i = 0; i < FORM::X_SEEN; i++) {
        float x[8];
        value8 v;

        load8(raw[i], at + i * FORM::X_STEP);
        if (!s.counts[line + i * FORM::X_EACH])
            pack8(raw[i], zero);
        unpack8(x, raw[i]);
#pragma unroll
        for (unsigned e = 0; e < 8; e++) {
            x[e] = fmaf(x[e], scale[e], shift[e]);
            x[e] = x[e] < least ? 0 : x[e]; /* NaN stays NaN */
        }
        pack8(v, x);
        store8(at + i * FORM::X_STEP, v);
    }
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

/* dgrad: writes the gradient of x of a tile over the values of y. */
template <typename FORM>
DEVICE void
both_data(const value_t *w, const both_stage<FORM> &s, unsigned out)
{
    unsigned warp = both_anew<FORM>(threadIdx.x) / 32, m0 = warp / FORM::DATA_WARPS * FORM::DATA_DOWN * 16;
    unsigned n0 = warp % FORM::DATA_WARPS * FORM::DATA_ACROSS * 16;
    tile_sum sum[FORM::DATA_DOWN][FORM::DATA_ACROSS];
    unsigned i, j;

#pragma unroll
    for (i = 0; i < FORM::DATA_DOWN; i++)
#pragma unroll
        for (j = 0; j < FORM::DATA_ACROSS; j++)
#pragma unroll
            for (unsigned e = 0; e < 8; e++)
                sum[i][j].at[e] = 0;
#pragma unroll
    for (unsigned k = 0; k < BOTH_OUT / 16; k++) {
        tile ta[FORM::DATA_DOWN], tb[FORM::DATA_ACROSS];

        if (k * 16 >= out)
            break;
#pragma unroll
        for (i = 0; i < FORM::DATA_DOWN; i++)
            tile_load_a<false>(ta[i], [&](unsigned line, unsigned piece) {
                return s.y + both_place<FORM::Y_PIECES>(m0 + i * 16 + line, k * 2 + piece);
            });
#pragma unroll
        for (j = 0; j < FORM::DATA_ACROSS; j++)
            tile_load_b<true>(tb[j], [&](unsigned line, unsigned piece) {
                return w + both_place<FORM::X_PIECES>(k * 16 + line, (n0 + j * 16) / 8 + piece);
            });
#pragma unroll
        for (i = 0; i < FORM::DATA_DOWN; i++)
#pragma unroll
            for (j = 0; j < FORM::DATA_ACROSS; j++)
                tile_multiply_as<false, true>(sum[i][j], ta[i], tb[j]);
    }
#pragma unroll
    for (i = 0; i < FORM::DATA_DOWN; i++)
#pragma unroll
        for (j = 0; j < FORM::DATA_ACROSS; j++)
#pragma unroll
            for (unsigned e = 0; e < 8; e += 2) {
                unsigned row = m0 + i * 16 + tile_row(e), column = n0 + j * 16 + tile_column(e);

                store2(s.values + both_place<FORM::X_PIECES>(row, column / 8) + column % 8, sum[i][j].at[e],
                       sum[i][j].at[e + 1]);
            }
}

/* The position of a warp's part of the wgrad product. */
struct both_corner {
    unsigned row, column;
};

template <typename FORM>
DEVICE both_corner
both_weights_at()
{
    unsigned warp = threadIdx.x / 32;

    return {warp / FORM::WEIGHTS_WARPS * FORM::WEIGHTS_DOWN * 16,
            warp % FORM::WEIGHTS_WARPS * FORM::WEIGHTS_ACROSS * 16};
}

template <typename FORM>
DEVICE void
both_weights(tile_sum (&sum)[FORM::WEIGHTS_DOWN][FORM::WEIGHTS_ACROSS], const both_stage<FORM> &s)
{
    const both_corner at = both_weights_at<FORM>();
    unsigned none = both_anew<FORM>(0), i, j;

#pragma unroll
    for (unsigned k = 0; k < BOTH_PIXELS / 16; k++) {
        tile ta[FORM::WEIGHTS_DOWN], tb[FORM::WEIGHTS_ACROSS];

#pragma unroll
        for (i = 0; i < FORM::WEIGHTS_DOWN; i++)
            tile_load_a<true>(ta[i], [&](unsigned line, unsigned piece) {
                return s.y + both_place<FORM::Y_PIECES>(k * 16 + none + line, (at.row + i * 16) / 8 + piece);
            });
#pragma unroll
        for (j = 0; j < FORM::WEIGHTS_ACROSS; j++)
            tile_load_b<true>(tb[j], [&](unsigned line, unsigned piece) {
                return s.x + both_place<FORM::X_PIECES>(k * 16 + none + line, (at.column + j * 16) / 8 + piece);
            });
#pragma unroll
        for (i = 0; i < FORM::WEIGHTS_DOWN; i++)
#pragma unroll
            for (j = 0; j < FORM::WEIGHTS_ACROSS; j++)
                tile_multiply_as<true, true>(sum[i][j], ta[i], tb[j]);
    }
}

/* ---- the gradient of x ------------------------------------------------------------------------------------------- */

/* Loads the gradient of x so far, if this launch accumulates; otherwise 0. */
template <typename FORM>
DEVICE void
both_load_old(const conv_args &a, const both_work &w, unsigned tile, value8 *old)
{
    unsigned thread = both_anew<FORM>(threadIdx.x);
    unsigned line = thread / FORM::X_PIECES, column = w.column0 + thread % FORM::X_PIECES * 8;
    unsigned pixel = tile * BOTH_PIXELS + line, end = a.add && column < a.in ? w.pixels : 0;
    const value_t *from = (const value_t *)a.x + (size_t)pixel * a.x_ld + column;
    const float zero[8] = {0, 0, 0, 0, 0, 0, 0, 0};

#pragma unroll
    for (unsigned i = 0; i < FORM::X_SEEN; i++) {
        pack8(old[i], zero);
        if (pixel + i * FORM::X_EACH < end)
            load8(old[i], from + i * (size_t)FORM::X_EACH * a.x_ld);
    }
}

/* With `end`: loads the gradient dy of the pool that flows to the pixels of a tile. */
template <typename FORM>
DEVICE void
both_load_means(const conv_both_args &a, const both_work &w, const both_stage<FORM> &s, value8 *means)
{
    unsigned line = threadIdx.x / FORM::X_PIECES, column = w.column0 + threadIdx.x % FORM::X_PIECES * 8;
    const float zero[8] = {0, 0, 0, 0, 0, 0, 0, 0};

#pragma unroll
    for (unsigned i = 0; i < FORM::X_SEEN; i++) {
        unsigned mean = s.mean[line + i * FORM::X_EACH];

        pack8(means[i], zero);
        if (mean != BOTH_NO_MEAN && column < a.conv.in)
            load8(means[i], (const value_t *)a.end.dy + (size_t)mean * a.end.dy_ld + column);
    }
}

/*
 * x (+)= gamma * g, and the sums of g and of g * (x - mean) for this thread's channels.  `old`: the gradient of x so
 * far, or, with `end`, the gradient of the pool.
 */
template <typename FORM>
DEVICE void
both_store(const conv_both_args &args, const both_work &w, unsigned tile, const both_stage<FORM> &s,
           const norm_table &t, float least, const value8 *raw, value8 *old, both_channels &of_norm,
           both_channels &of_end)
{
    const conv_args &a = args.conv;
    unsigned thread = both_anew<FORM>(threadIdx.x);
    unsigned line = thread / FORM::X_PIECES, piece = thread % FORM::X_PIECES, column = w.column0 + piece * 8;
    unsigned pixel = tile * BOTH_PIXELS + line, end = column < a.in ? w.pixels : 0;
    const value_t *from = s.values + both_place<FORM::X_PIECES>(line, piece);
    value_t *to = (value_t *)a.x + (size_t)pixel * a.x_ld + column;
    float first[8], second[8], g[FORM::X_SEEN][8];

    norm_load8(first, t, NORM_SCALE, piece * 8);
    norm_load8(second, t, NORM_SHIFT, piece * 8);
#pragma unroll
    for (unsigned i = 0; i < FORM::X_SEEN; i++) {
        float x[8];
        value8 v;

        load8(v, from + i * FORM::X_STEP);
        unpack8(g[i], v);
        unpack8(x, raw[i]);
#pragma unroll
        for (unsigned e = 0; e < 8; e++)
            g[i][e] = fmaf(x[e], first[e], second[e]) > least ? g[i][e] : 0;
    }
    norm_load8(first, t, NORM_MEAN, piece * 8);
    norm_load8(second, t, BOTH_GAMMA, piece * 8);
#pragma unroll
    for (unsigned i = 0; i < FORM::X_SEEN; i++) {
        float x[8], y[8];

        unpack8(x, raw[i]);
        unpack8(y, old[i]);
        if (FORM::END)
            both_end8(y, t, piece * 8, x, 1.0f / (float)(args.end.down * args.end.across),
                      args.end.relu ? 0.0f : -3.4e38f, of_end);
#pragma unroll
        for (unsigned e = 0; e < 8; e++) {
            of_norm.by_one[e] += g[i][e];
            of_norm.by_x[e] = fmaf(g[i][e], x[e] - first[e], of_norm.by_x[e]);
            y[e] = fmaf(second[e], g[i][e], y[e]);
        }
        pack8(old[i], y);
    }
#pragma unroll
    for (unsigned i = 0; i < FORM::X_SEEN; i++) {
        if (pixel + i * FORM::X_EACH < end)
            store8(both_address(to + (size_t)i * FORM::X_EACH * a.x_ld), old[i]);
    }
}
} // namespace

#endif
