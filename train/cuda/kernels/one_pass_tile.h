/*
 * one_pass_tile.h - loads, transforms, multiplies and stores a tile of one_pass.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_KERNELS_ONE_PASS_TILE_H
#define CHEX_CUDA_KERNELS_ONE_PASS_TILE_H

#include "cuda/kernels/one_pass_end.h"
#include "cuda/kernels/partial.h"
#include "cuda/kernels/tile.h"

namespace
{
template <int COLUMNS_, int BLOCKS_, int END_> struct one_pass_shape {
    enum {
        COLUMNS = COLUMNS_,
        BLOCKS = BLOCKS_,
        END = END_,
        Y_PIECES = ONE_PASS_OUT / 8,
        X_PIECES = COLUMNS / 8,
        Y_EACH = ONE_PASS_THREADS / Y_PIECES, /* a thread has one group of eight in every Y_EACH-th pixel */
        X_EACH = ONE_PASS_THREADS / X_PIECES,
        Y_SEEN = ONE_PASS_PIXELS / Y_EACH,
        X_SEEN = ONE_PASS_PIXELS / X_EACH,
        Y_STEP = Y_EACH * ONE_PASS_OUT, /* values between two of them */
        X_STEP = X_EACH * COLUMNS,
        /* per warp: tiles of 16 of the products of dgrad and wgrad */
        DGRAD_ACROSS = 2,
        DGRAD_WARPS = COLUMNS / (16 * DGRAD_ACROSS), /* next to each other */
        DGRAD_DOWN = ONE_PASS_PIXELS / 16 * DGRAD_WARPS / (ONE_PASS_THREADS / 32),
        WGRAD_WARPS = 2,
        WGRAD_ACROSS = COLUMNS / 16 / WGRAD_WARPS,
        WGRAD_DOWN = ONE_PASS_OUT / 16 * WGRAD_WARPS / (ONE_PASS_THREADS / 32),
        /* one_pass_constants stay in registers */
        HOLDS = BLOCKS == 1 && !(END && COLUMNS > 64) && !CUDA_VALUE_IS(tf32),
        STAGE = ONE_PASS_STAGE_BYTES(COLUMNS, END, sizeof(value_t))
    };
};

/*
 * Group q of line l is stored at q ^ (l & 7).  So eight lines of a group, and eight groups of a line, are in different
 * banks.
 */
template <int PIECES>
DEVICE unsigned
one_pass_offset(unsigned line, unsigned piece)
{
    static_assert(PIECES % 8 == 0, "a line meets all banks");
    return (line * PIECES + (piece ^ (line & 7))) * 8;
}

/*
 * Moves an offset down by lines and across by pieces, without computing it again.  The last three bits of the line must
 * be 0 where those of `lines` are 1, and the same holds for the piece.  With constants this is one XOR for several
 * offsets, and the rest is part of the instruction that accesses memory.
 */
template <int PIECES>
DEVICE unsigned
one_pass_move(unsigned offset, unsigned lines, unsigned pieces)
{
    return (offset ^ (lines ^ pieces) % 8 * 8) + (lines * PIECES + pieces / 8 * 8) * 8;
}

/*
 * Hides a number from the compiler if registers are scarce.  The compiler then computes what depends on it again in
 * each tile, instead of keeping it in registers that the sums need.  On sm_70, nvcc 11.8 has too few for 64 x 128.
 */
template <typename SHAPE>
DEVICE unsigned
one_pass_recompute(unsigned n)
{
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
    if (SHAPE::BLOCKS > 1 || (!HAS_LDMATRIX && __CUDACC_VER_MAJOR__ < 12))
        asm volatile("" : "+r"(n));
#endif
    return n;
}

/* Hides an address from the compiler, which would otherwise split the store into four. */
DEVICE value_t *
one_pass_address(value_t *p)
{
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
    asm volatile("" : "+l"(p));
#endif
    return p;
}

/* The tile of a stage in shared memory. */
template <typename SHAPE> struct one_pass_stage {
    value_t *y, *values, *x; /* [ONE_PASS_PIXELS][ONE_PASS_OUT], the same, [ONE_PASS_PIXELS][COLUMNS] */
    unsigned char *counts;   /* [ONE_PASS_PIXELS] is this a pixel of an image with weight? */
    unsigned *mean;          /* END: [ONE_PASS_PIXELS] the pixel of dy whose gradient flows here, or ONE_PASS_NO_MEAN */
};

template <typename SHAPE>
DEVICE one_pass_stage<SHAPE>
one_pass_stage_at(unsigned char *at)
{
    value_t *y = (value_t *)(void *)at, *values = y + ONE_PASS_PIXELS * ONE_PASS_OUT,
            *x = values + ONE_PASS_PIXELS * ONE_PASS_OUT;

    unsigned char *counts = (unsigned char *)(void *)(x + ONE_PASS_PIXELS * SHAPE::COLUMNS);

    return {y, values, x, counts, (unsigned *)(void *)(counts + ONE_PASS_PIXELS)};
}

/* The work of a CTA. */
struct one_pass_work {
    unsigned column0, first, end; /* of the slice; its tiles */
    unsigned pixels;              /* of all images */
};

/* ---- finalizing y ------------------------------------------------------------------------------------------------ */

/*
 * Reduces the partial sums of the last consumer of y, for all channels, to sum[2][ONE_PASS_OUT].  Four threads share
 * the rows of four channels.  Four rows at a time are added as floats, like the rows themselves; the rest is added in
 * double.  scratch: one double for each sum of a channel and each of the four threads.
 */
enum { FINALIZE_QUADS = 2 * ONE_PASS_OUT / 4, FINALIZE_PARTS = ONE_PASS_THREADS / FINALIZE_QUADS };
#define FINALIZE_SCRATCH (FINALIZE_PARTS * 2 * ONE_PASS_OUT * 8)

DEVICE void
finalize_add_rows(const channel_sums &s, double *scratch)
{
    unsigned quad = threadIdx.x % FINALIZE_QUADS, part = threadIdx.x / FINALIZE_QUADS, i;
    unsigned which = quad / (ONE_PASS_OUT / 4), channel = quad % (ONE_PASS_OUT / 4) * 4;
    const float *from = s.partial + (size_t)which * s.channels + channel;
    double sum[4] = {0, 0, 0, 0};

    if (channel < s.channels) {
#pragma unroll 2
        for (unsigned b = part; b < s.blocks; b += 4 * FINALIZE_PARTS) {
            float4 v[4];

#pragma unroll
            for (i = 0; i < 4; i++) {
                v[i] = {0, 0, 0, 0};
                if (b + i * FINALIZE_PARTS < s.blocks)
                    v[i] = *(const float4 *)(const void *)(from + (size_t)(b + i * FINALIZE_PARTS) * 2 * s.channels);
            }
            sum[0] += (double)((v[0].x + v[1].x) + (v[2].x + v[3].x));
            sum[1] += (double)((v[0].y + v[1].y) + (v[2].y + v[3].y));
            sum[2] += (double)((v[0].z + v[1].z) + (v[2].z + v[3].z));
            sum[3] += (double)((v[0].w + v[1].w) + (v[2].w + v[3].w));
        }
    }
#pragma unroll
    for (i = 0; i < 4; i++)
        scratch[(part * 4 + i) * FINALIZE_QUADS + quad] = sum[i];
    __syncthreads();
    for (i = threadIdx.x; i < 2 * ONE_PASS_OUT; i += ONE_PASS_THREADS) { /* each thread reads only its own */
        double all = 0;

#pragma unroll
        for (unsigned p = 0; p < FINALIZE_PARTS; p++)
            all += scratch[p * 2 * ONE_PASS_OUT + i];
        scratch[i] = all;
    }
    __syncthreads();
}

/* Returns a sum of finalize_add_rows(). */
DEVICE double
finalize_sum(const double *scratch, unsigned which, unsigned channel)
{
    return scratch[channel % 4 * FINALIZE_QUADS + which * (ONE_PASS_OUT / 4) + channel / 4];
}

/* Writes the parameter gradients of the last consumer. */
DEVICE void
finalize_store_parameters(const finalize_view &f, unsigned c, double one, double by_x)
{
    double unscale = (double)f.state->unscale;
    bool keep = f.block->number > 0;

    f.dbeta[c] = (keep ? f.dbeta[c] : 0) + (float)(one * unscale);
    f.dgamma[c] = (keep ? f.dgamma[c] : 0) + (float)(by_x * unscale);
}

/* Makes the table that finalizes y, with zeros after its channels.  All threads must call it. */
DEVICE void
finalize_make(const one_pass_args &a, const norm_table &t, double *scratch, bool stores)
{
    const finalize_view &f = a.finalize;
    double count = (double)f.block->images * (double)(a.dgrad.shape.height * a.dgrad.shape.width);

    if (f.sums.partial)
        finalize_add_rows(f.sums, scratch);
    for (unsigned c = threadIdx.x; c < ONE_PASS_OUT; c += ONE_PASS_THREADS) {
        float by_beta = 0, by_gamma = 0, inverse = 0, by_x = 0, mean = 0;

        if (c < a.dgrad.shape.out) {
            by_beta = f.by_beta ? f.by_beta[c] : 0;
            by_gamma = f.by_gamma ? f.by_gamma[c] : 0;
            if (f.sums.partial) {
                double one = finalize_sum(scratch, 0, c), second = finalize_sum(scratch, 1, c);
                double share = (double)f.gamma[c] / count;

                by_beta += (float)(one * share);
                by_gamma += (float)(second * share);
                if (stores)
                    finalize_store_parameters(f, c, one, second);
            }
            /*
             * For a single value the gradient is exactly 0; otherwise the rounding error of A, divided by
             * sqrt(epsilon), would remain.
             */
            inverse = count > 1 ? norm_inverse(f.variance[c], f.epsilon) : 0.0f;
            by_x = inverse * by_gamma;
            mean = f.mean[c];
        }
        finalize_put(t, c, {inverse, by_beta, mean, by_x});
    }
    __syncthreads(); /* scratch has been read */
}

/* ---- loading a tile ---------------------------------------------------------------------------------------------- */

/*
 * Starts to load a tile into a stage.  A thread loads one group of eight in every EACH-th line, so its addresses differ
 * by a constant step.
 */
template <typename SHAPE>
DEVICE void
one_pass_load(const one_pass_args &a, const one_pass_work &w, unsigned tile, const unsigned *images,
              const one_pass_stage<SHAPE> &to)
{
    unsigned thread = one_pass_recompute<SHAPE>(threadIdx.x);
    const dgrad_args &d = a.dgrad;
    const conv_shape &c = d.shape;
    unsigned first = tile * ONE_PASS_PIXELS, line = thread / SHAPE::Y_PIECES, piece = thread % SHAPE::Y_PIECES;
    unsigned at = one_pass_offset<SHAPE::Y_PIECES>(line, piece), end = piece * 8 < c.out ? w.pixels : 0;
    const value_t *from = (const value_t *)d.dy + (size_t)(first + line) * c.y_ld + piece * 8;
    size_t step = (size_t)SHAPE::Y_EACH * c.y_ld;

#pragma unroll
    for (unsigned i = 0; i < SHAPE::Y_SEEN; i++)
        copy8(to.y + at + i * SHAPE::Y_STEP, from + i * step, first + line + i * SHAPE::Y_EACH < end);
    if (a.finalize.values) {
        from = (const value_t *)a.finalize.values + (size_t)(first + line) * a.finalize.values_ld + piece * 8;
        step = (size_t)SHAPE::Y_EACH * a.finalize.values_ld;
#pragma unroll
        for (unsigned i = 0; i < SHAPE::Y_SEEN; i++)
            copy8(to.values + at + i * SHAPE::Y_STEP, from + i * step, first + line + i * SHAPE::Y_EACH < end);
    }
    line = thread / SHAPE::X_PIECES;
    piece = thread % SHAPE::X_PIECES;
    at = one_pass_offset<SHAPE::X_PIECES>(line, piece);
    end = w.column0 + piece * 8 < c.in ? w.pixels : 0;
    from = (const value_t *)d.x + (size_t)(first + line) * c.x_ld + w.column0 + piece * 8;
    step = (size_t)SHAPE::X_EACH * c.x_ld;
#pragma unroll
    for (unsigned i = 0; i < SHAPE::X_SEEN; i++)
        copy8(to.x + at + i * SHAPE::X_STEP, from + i * step, first + line + i * SHAPE::X_EACH < end);
    if (thread < ONE_PASS_PIXELS) {
        unsigned pixel = first + thread, image = pixel / (c.height * c.width);
        bool counts = pixel < w.pixels && (images[image / 32] >> image % 32 & 1);

        to.counts[thread] = counts;
        if (SHAPE::END)
            to.mean[thread] = counts ? one_pass_mean_of(a, pixel, image) : ONE_PASS_NO_MEAN;
    }
}

/* ---- before the products ----------------------------------------------------------------------------------------- */

/*
 * The constants of a thread's eight channels of y and of x.  With SHAPE::HOLDS those of the prologue are loaded once,
 * before the first tile; otherwise in each tile.  Those of the gradient of x are loaded in each tile.
 */
struct one_pass_constants {
    float inverse[8], slope[8], offset[8]; /* of y: finalize_figure; not set if y is not finalized */
    float scale[8], shift[8];              /* of x */
    float mean[8], gamma[8];               /* of the gradient of x */
};

template <typename SHAPE>
DEVICE void
one_pass_load_y(one_pass_constants &c, const norm_table &t)
{
    unsigned channel = one_pass_recompute<SHAPE>(threadIdx.x) % SHAPE::Y_PIECES * 8;

    norm_load8(c.inverse, t, FINALIZE_INVERSE, channel);
    norm_load8(c.slope, t, FINALIZE_SLOPE, channel);
    norm_load8(c.offset, t, FINALIZE_OFFSET, channel);
}

template <typename SHAPE>
DEVICE void
one_pass_load_x(one_pass_constants &c, const norm_table &t)
{
    unsigned channel = one_pass_recompute<SHAPE>(threadIdx.x) % SHAPE::X_PIECES * 8;

    norm_load8(c.scale, t, NORM_SCALE, channel);
    norm_load8(c.shift, t, NORM_SHIFT, channel);
}

template <typename SHAPE>
DEVICE void
one_pass_load_gradient(one_pass_constants &c, const norm_table &t)
{
    unsigned channel = one_pass_recompute<SHAPE>(threadIdx.x) % SHAPE::X_PIECES * 8;

    norm_load8(c.mean, t, NORM_MEAN, channel);
    norm_load8(c.gamma, t, ONE_PASS_GAMMA, channel);
}

/* Finalizes the groups of y that this thread copied; sets those without weight to zero. */
template <typename SHAPE>
DEVICE void
one_pass_finalize(const one_pass_stage<SHAPE> &s, const one_pass_constants &c, bool finalize)
{
    unsigned thread = one_pass_recompute<SHAPE>(threadIdx.x);
    unsigned line = thread / SHAPE::Y_PIECES, at = one_pass_offset<SHAPE::Y_PIECES>(line, thread % SHAPE::Y_PIECES);
    const float zero[8] = {0, 0, 0, 0, 0, 0, 0, 0};

#pragma unroll
    for (unsigned i = 0; i < SHAPE::Y_SEEN; i++) {
        float d[8], z[8];
        value8 v, w;

        load8(v, s.y + at + i * SHAPE::Y_STEP);
        if (finalize) {
            unpack8(d, v);
            load8(w, s.values + at + i * SHAPE::Y_STEP);
            unpack8(z, w);
            finalize8(d, z, c.inverse, c.slope, c.offset);
            pack8(v, d);
        }
        if (!s.counts[line + i * SHAPE::Y_EACH])
            pack8(v, zero);
        store8(s.y + at + i * SHAPE::Y_STEP, v);
    }
}

/*
 * Applies BN to the groups of x that this thread copied, and keeps their values in raw.  Pixels without weight meet
 * gradients of 0, so they must only not be NaN.  ReLU stores -0 instead of values <= 0: it is the same in a product,
 * and its sign bit is the mask for one_pass_mask8(), also where a positive value is rounded to 0.
 */
template <typename SHAPE>
DEVICE void
one_pass_normalise(const one_pass_stage<SHAPE> &s, const one_pass_constants &c, bool relu, value8 *raw)
{
    unsigned thread = one_pass_recompute<SHAPE>(threadIdx.x);
    unsigned line = thread / SHAPE::X_PIECES, piece = thread % SHAPE::X_PIECES;
    value_t *at = s.x + one_pass_offset<SHAPE::X_PIECES>(line, piece);
    const float zero[8] = {0, 0, 0, 0, 0, 0, 0, 0}, most = relu ? 0.0f : -3.4e38f;

#pragma unroll
    for (unsigned i = 0; i < SHAPE::X_SEEN; i++) {
        float x[8];
        value8 v;

        load8(raw[i], at + i * SHAPE::X_STEP);
        if (!s.counts[line + i * SHAPE::X_EACH])
            pack8(raw[i], zero);
        unpack8(x, raw[i]);
#pragma unroll
        for (unsigned e = 0; e < 8; e++) {
            x[e] = fmaf(x[e], c.scale[e], c.shift[e]);
            x[e] = x[e] <= most ? -0.0f : x[e]; /* NaN stays NaN */
        }
        pack8(v, x);
        store8(at + i * SHAPE::X_STEP, v);
    }
}

#if (defined(__CUDACC__) || defined(__CUDACC_RTC__)) && !VALUE_IS_FLOAT
/* Returns all bits of each of two values with a sign bit: bit 3 of a digit replicates the sign of that byte. */
DEVICE unsigned
one_pass_signs(unsigned two)
{
    unsigned signs;

    asm("prmt.b32 %0, %1, %1, 0xbb99;" : "=r"(signs) : "r"(two));
    return signs;
}
#endif

/* With ReLU: sets the values of g to 0 where one_pass_normalise() has left -0. */
DEVICE void
one_pass_mask8(value8 &g, const value8 &x, bool relu)
{
#if (defined(__CUDACC__) || defined(__CUDACC_RTC__)) && !VALUE_IS_FLOAT
    unsigned all = relu ? 0 : ~0u;

    g.all.x &= ~one_pass_signs(x.all.x) | all;
    g.all.y &= ~one_pass_signs(x.all.y) | all;
    g.all.z &= ~one_pass_signs(x.all.z) | all;
    g.all.w &= ~one_pass_signs(x.all.w) | all;
#else
#pragma unroll
    for (unsigned i = 0; i < 8; i++)
        if (relu && __float_as_uint(to_float(x.at[i])) >> 31)
            g.at[i] = to_value(0);
#endif
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

/* dgrad: writes the gradient of x of a tile over the values of y. */
template <typename SHAPE>
DEVICE void
one_pass_dgrad(const value_t *w, const one_pass_stage<SHAPE> &s, unsigned out)
{
    unsigned warp = one_pass_recompute<SHAPE>(threadIdx.x) / 32,
             m0 = warp / SHAPE::DGRAD_WARPS * SHAPE::DGRAD_DOWN * 16;
    unsigned n0 = warp % SHAPE::DGRAD_WARPS * SHAPE::DGRAD_ACROSS * 16, first = n0 + tile_column(0);
    unsigned corner = one_pass_offset<SHAPE::X_PIECES>(m0 + tile_row(0), first / 8) + first % 8;
    tile_sum sum[SHAPE::DGRAD_DOWN][SHAPE::DGRAD_ACROSS];
    unsigned i, j;

#pragma unroll
    for (i = 0; i < SHAPE::DGRAD_DOWN; i++)
#pragma unroll
        for (j = 0; j < SHAPE::DGRAD_ACROSS; j++)
#pragma unroll
            for (unsigned e = 0; e < 8; e++)
                sum[i][j].at[e] = 0;
#pragma unroll
    for (unsigned k = 0; k < ONE_PASS_OUT / 16; k++) {
        tile ta[SHAPE::DGRAD_DOWN], tb[SHAPE::DGRAD_ACROSS];

        if (k % 4 == 0 && k * 16 >= out) /* y and w are 0 after their channels */
            break;
#pragma unroll
        for (i = 0; i < SHAPE::DGRAD_DOWN; i++)
            tile_load_a<false>(ta[i], [&](unsigned line, unsigned piece) {
                return s.y + one_pass_move<SHAPE::Y_PIECES>(one_pass_offset<SHAPE::Y_PIECES>(m0 + line, piece), i * 16,
                                                            k * 2);
            });
#pragma unroll
        for (j = 0; j < SHAPE::DGRAD_ACROSS; j++)
            tile_load_b<true>(tb[j], [&](unsigned line, unsigned piece) {
                return w + one_pass_move<SHAPE::X_PIECES>(one_pass_offset<SHAPE::X_PIECES>(line, n0 / 8 + piece),
                                                          k * 16, j * 2);
            });
#pragma unroll
        for (i = 0; i < SHAPE::DGRAD_DOWN; i++)
#pragma unroll
            for (j = 0; j < SHAPE::DGRAD_ACROSS; j++)
                tile_multiply_as<false, true>(sum[i][j], ta[i], tb[j]);
    }
#pragma unroll
    for (i = 0; i < SHAPE::DGRAD_DOWN; i++)
#pragma unroll
        for (j = 0; j < SHAPE::DGRAD_ACROSS; j++)
#pragma unroll
            for (unsigned e = 0; e < 8; e += 2) {
                unsigned down = i * 16 + tile_row(e) - tile_row(0), right = j * 16 + tile_column(e) - tile_column(0);

                store2(s.values + one_pass_move<SHAPE::X_PIECES>(corner, down, right / 8) + right % 8, sum[i][j].at[e],
                       sum[i][j].at[e + 1]);
            }
}

/* The position of a warp's part of the wgrad product. */
struct one_pass_corner {
    unsigned row, column;
};

template <typename SHAPE>
DEVICE one_pass_corner
one_pass_wgrad_at()
{
    unsigned warp = threadIdx.x / 32;

    return {warp / SHAPE::WGRAD_WARPS * SHAPE::WGRAD_DOWN * 16, warp % SHAPE::WGRAD_WARPS * SHAPE::WGRAD_ACROSS * 16};
}

template <typename SHAPE>
DEVICE void
one_pass_wgrad(tile_sum (&sum)[SHAPE::WGRAD_DOWN][SHAPE::WGRAD_ACROSS], const one_pass_stage<SHAPE> &s)
{
    const one_pass_corner at = one_pass_wgrad_at<SHAPE>();
    unsigned none = one_pass_recompute<SHAPE>(0), i, j;

#pragma unroll
    for (unsigned k = 0; k < ONE_PASS_PIXELS / 16; k++) {
        tile ta[SHAPE::WGRAD_DOWN], tb[SHAPE::WGRAD_ACROSS];

#pragma unroll
        for (i = 0; i < SHAPE::WGRAD_DOWN; i++)
            tile_load_a<true>(ta[i], [&](unsigned line, unsigned piece) {
                return s.y + one_pass_move<SHAPE::Y_PIECES>(
                                 one_pass_offset<SHAPE::Y_PIECES>(none + line, at.row / 8 + piece), k * 16, i * 2);
            });
#pragma unroll
        for (j = 0; j < SHAPE::WGRAD_ACROSS; j++)
            tile_load_b<true>(tb[j], [&](unsigned line, unsigned piece) {
                return s.x + one_pass_move<SHAPE::X_PIECES>(
                                 one_pass_offset<SHAPE::X_PIECES>(none + line, at.column / 8 + piece), k * 16, j * 2);
            });
#pragma unroll
        for (i = 0; i < SHAPE::WGRAD_DOWN; i++)
#pragma unroll
            for (j = 0; j < SHAPE::WGRAD_ACROSS; j++)
                tile_multiply_as<true, true>(sum[i][j], ta[i], tb[j]);
    }
}

/* ---- the gradient of x ------------------------------------------------------------------------------------------- */

/* Loads the gradient of x so far, if this launch accumulates; otherwise 0. */
template <typename SHAPE>
DEVICE void
one_pass_load_old(const dgrad_args &a, const one_pass_work &w, unsigned tile, value8 *old)
{
    unsigned thread = one_pass_recompute<SHAPE>(threadIdx.x);
    unsigned line = thread / SHAPE::X_PIECES, column = w.column0 + thread % SHAPE::X_PIECES * 8;
    unsigned pixel = tile * ONE_PASS_PIXELS + line, end = a.add && column < a.shape.in ? w.pixels : 0;
    const value_t *from = (const value_t *)a.dx + (size_t)pixel * a.shape.x_ld + column;
    const float zero[8] = {0, 0, 0, 0, 0, 0, 0, 0};

#pragma unroll
    for (unsigned i = 0; i < SHAPE::X_SEEN; i++) {
        pack8(old[i], zero);
        if (pixel + i * SHAPE::X_EACH < end)
            load8(old[i], from + i * (size_t)SHAPE::X_EACH * a.shape.x_ld);
    }
}

/* With `end`: loads the gradient dy of the pool that flows to the pixels of a tile. */
template <typename SHAPE>
DEVICE void
one_pass_load_means(const one_pass_args &a, const one_pass_work &w, const one_pass_stage<SHAPE> &s, value8 *means)
{
    unsigned line = threadIdx.x / SHAPE::X_PIECES, column = w.column0 + threadIdx.x % SHAPE::X_PIECES * 8;
    const float zero[8] = {0, 0, 0, 0, 0, 0, 0, 0};

#pragma unroll
    for (unsigned i = 0; i < SHAPE::X_SEEN; i++) {
        unsigned mean = s.mean[line + i * SHAPE::X_EACH];

        pack8(means[i], zero);
        if (mean != ONE_PASS_NO_MEAN && column < a.dgrad.shape.in)
            load8(means[i], (const value_t *)a.end.dy + (size_t)mean * a.end.dy_ld + column);
    }
}

/*
 * x (+)= gamma * g, and the sums of g and of g * (x - mean) for this thread's channels.  `old`: the gradient of x so
 * far, or, with `end`, the gradient of the pool.
 */
template <typename SHAPE>
DEVICE void
one_pass_store(const one_pass_args &args, const one_pass_work &w, unsigned tile, const one_pass_stage<SHAPE> &s,
               const norm_table &t, const one_pass_constants &c, bool relu, const value8 *raw, value8 *old,
               one_pass_channels &of_norm, one_pass_channels &of_end)
{
    const dgrad_args &a = args.dgrad;
    unsigned thread = one_pass_recompute<SHAPE>(threadIdx.x);
    unsigned line = thread / SHAPE::X_PIECES, piece = thread % SHAPE::X_PIECES, column = w.column0 + piece * 8;
    unsigned pixel = tile * ONE_PASS_PIXELS + line, end = column < a.shape.in ? w.pixels : 0;
    unsigned at = one_pass_offset<SHAPE::X_PIECES>(line, piece);
    value_t *to = (value_t *)a.dx + (size_t)pixel * a.shape.x_ld + column;

#pragma unroll
    for (unsigned i = 0; i < SHAPE::X_SEEN; i++) {
        float g[8], x[8], y[8];
        value8 v, seen;

        load8(v, s.values + at + i * SHAPE::X_STEP);
        load8(seen, s.x + at + i * SHAPE::X_STEP);
        one_pass_mask8(v, seen, relu);
        unpack8(g, v);
        unpack8(x, raw[i]);
        unpack8(y, old[i]);
        if (SHAPE::END)
            one_pass_end8(y, t, piece * 8, x, 1.0f / (float)(args.end.down * args.end.across),
                          args.end.relu ? 0.0f : -3.4e38f, of_end);
#pragma unroll
        for (unsigned e = 0; e < 8; e++) {
            of_norm.by_one[e] += g[e];
            of_norm.by_x[e] = fmaf(g[e], x[e] - c.mean[e], of_norm.by_x[e]);
            y[e] = fmaf(c.gamma[e], g[e], y[e]);
        }
        pack8(old[i], y);
    }
#pragma unroll
    for (unsigned i = 0; i < SHAPE::X_SEEN; i++) {
        if (pixel + i * SHAPE::X_EACH < end)
            store8(one_pass_address(to + (size_t)i * SHAPE::X_EACH * a.shape.x_ld), old[i]);
    }
}
} // namespace

#endif
