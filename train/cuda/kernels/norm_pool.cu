/*
 * norm_pool.cu - a BN, ReLU and the pool after it in one kernel; fprop and gradients
 *
 *   y = pool(max(x * scale + shift, 0))
 *
 * A CTA has NORM_CHANNELS channels.  Four adjacent lanes share an output, or a square of 2 x 2 inputs, with eight
 * channels each.  A max pool for training also stores the position of each window's maximum, its winner.  A 2 x 2
 * square of inputs is part of four windows.  Backward loads the gradients and winners of these four windows once for
 * its four inputs, and compares each winner with the positions of these inputs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/kernels/sums.h"

namespace
{
/* Position of a pixel in images of `size` pixels and rows of `width` pixels. */
struct pixel_at {
    unsigned image, y, x;
};

DEVICE pixel_at
pixel_of(unsigned n, unsigned size, unsigned width)
{
    pixel_at s;

    s.image = n / size;
    s.y = n % size / width;
    s.x = n % size % width;
    return s;
}

DEVICE bool
image_counts(const norm_pool_args &a, unsigned image)
{
    return !a.weight || a.weight[image] != 0.0f;
}

/* Loads eight channels of an input pixel. */
DEVICE void
load_input(float *x, const pool_args &a, unsigned image, unsigned iy, unsigned ix, unsigned channel)
{
    value8 v;

    load8(v, (const value_t *)a.x + (((size_t)image * a.height + iy) * a.width + ix) * a.x_ld + channel);
    unpack8(x, v);
}

DEVICE void
load_dy(float *dy, const pool_args &a, unsigned image, unsigned y, unsigned x, unsigned channel)
{
    value8 v;

    load8(v, (const value_t *)a.dy + (((size_t)image * a.out_height + y) * a.out_width + x) * a.dy_ld + channel);
    unpack8(dy, v);
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

/* The constants of a thread's eight channels for y = x * scale + shift. */
struct seen_lane {
    float scale[8], shift[8];
    unsigned channel;
    bool has, relu;
};

DEVICE void
begin_seen(seen_lane &l, const norm_pool_args &a, unsigned char *shared)
{
    unsigned first = blockIdx.y * NORM_CHANNELS, lane = threadIdx.x % 4 * 8;
    norm_table table = {(float *)(void *)(shared + NORM_SCRATCH), NORM_CHANNELS / 8};

    norm_make<2>(a.norm, first, min(a.pool.channels - first, (unsigned)NORM_CHANNELS), table, (double *)(void *)shared,
                 blockIdx.x == 0);
    norm_load8(l.scale, table, NORM_SCALE, lane);
    norm_load8(l.shift, table, NORM_SHIFT, lane);
    l.channel = first + lane;
    l.has = l.channel < a.pool.channels;
    l.relu = a.norm.relu;
}

/* Returns the stored values. */
DEVICE value8
store_output(const pool_args &a, unsigned n, unsigned channel, const float *y, bool counts)
{
    float kept[8];
    value8 v;

#pragma unroll
    for (unsigned i = 0; i < 8; i++)
        kept[i] = counts ? y[i] : 0.0f;
    pack8(v, kept);
    store8((value_t *)a.y + (size_t)n * a.y_ld + channel, v);
    return v;
}

/* Sums of y - pivot and of its square, for a thread's eight channels. */
struct output_sums {
    float pivot[8], sum[8], squares[8];
};

DEVICE void
begin_sums(output_sums &o, const channel_sums &sums, unsigned channel)
{
#pragma unroll
    for (unsigned i = 0; i < 8; i++) {
        o.sum[i] = o.squares[i] = 0;
        o.pivot[i] = channel < sums.channels ? norm_pivot(sums.running_mean[channel + i]) : 0;
    }
}

DEVICE void
add_output(output_sums &o, const value8 &v)
{
#pragma unroll
    for (unsigned i = 0; i < 8; i++) {
        float d = to_float(v.at[i]) - o.pivot[i];

        o.sum[i] += d;
        o.squares[i] = fmaf(d, d, o.squares[i]);
    }
}

/* The number of the row or column of a window, 0 to 2, that is inside the image and nearest to `k`. */
DEVICE unsigned
inside_of(unsigned window, unsigned k, unsigned size)
{
    unsigned first = 2 * window; /* counts the padding */

    return min(max(first + k, 1u), size) - first;
}

/* Packs winners: four bits for each of eight channels. */
DEVICE unsigned
pack_winners(const unsigned *at)
{
    unsigned all = 0;

#pragma unroll
    for (unsigned i = 0; i < 8; i++)
        all |= at[i] << 4 * i;
    return all;
}

/*
 * Finds the maxima of a window; returns their winners.  ReLU is monotonic, so it is applied to the maximum only.  A
 * pixel outside the image is replaced by the nearest pixel of the window, which keeps the order of the pixels: so the
 * winner is the first of equal values.
 */
DEVICE unsigned
largest_of(float *largest, const seen_lane &l, const pool_args &a, const pixel_at &s)
{
    unsigned at[8];

#pragma unroll
    for (unsigned k = 0; k < 9; k++) {
        unsigned row = inside_of(s.y, k / 3, a.height), column = inside_of(s.x, k % 3, a.width);
        float x[8];

        load_input(x, a, s.image, 2 * s.y + row - 1, 2 * s.x + column - 1, l.channel);
#pragma unroll
        for (unsigned i = 0; i < 8; i++) {
            float v = fmaf(x[i], l.scale[i], l.shift[i]);
            bool wins = k == 0 || v > largest[i] || v != v; /* NaN stays NaN */

            largest[i] = wins ? v : largest[i];
            at[i] = wins ? 3 * row + column : at[i];
        }
    }
#pragma unroll
    for (unsigned i = 0; i < 8; i++)
        largest[i] = l.relu && largest[i] < 0 ? 0.0f : largest[i];
    return pack_winners(at);
}

DEVICE void
mean_of(float *mean, const seen_lane &l, const pool_args &a, const pixel_at &s)
{
#pragma unroll
    for (unsigned k = 0; k < 4; k++) {
        float x[8];

        load_input(x, a, s.image, 2 * s.y + k / 2, 2 * s.x + k % 2, l.channel);
#pragma unroll
        for (unsigned i = 0; i < 8; i++) {
            float y = norm_seen(x[i], l.scale[i], l.shift[i], l.relu) * 0.25f;

            mean[i] = k == 0 ? y : mean[i] + y;
        }
    }
}

template <bool MAXIMUM>
DEVICE void
pool_forward(const norm_pool_args &a, unsigned char *shared)
{
    unsigned size = a.pool.out_height * a.pool.out_width;
    bool sums = MAXIMUM && a.sums.partial;
    output_sums o;
    seen_lane l;

    begin_seen(l, a, shared);
    if (sums)
        begin_sums(o, a.sums, l.channel);
    for (unsigned n = blockIdx.x * NORM_ROWS + threadIdx.x / 4; l.has && n < a.pool.images * size;
         n += gridDim.x * NORM_ROWS) {
        pixel_at s = pixel_of(n, size, a.pool.out_width);
        bool counts = image_counts(a, s.image);
        float y[8];
        value8 v;

        if (MAXIMUM) {
            unsigned winners = largest_of(y, l, a.pool, s);

            if (a.winners)
                a.winners[n * (a.pool.channels / 8) + l.channel / 8] = winners;
        } else {
            mean_of(y, l, a.pool, s);
        }
        v = store_output(a.pool, n, l.channel, y, counts);
        if (sums && counts)
            add_output(o, v);
    }
    if (sums)
        reduce_block(o.sum, o.squares, (float *)(void *)shared, a.sums.partial, a.sums.channels);
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

/* The number of 2 x 2 squares in an image; the last row and column may be partial. */
struct squares {
    unsigned rows, columns;
};

DEVICE squares
squares_of(const pool_args &a)
{
    return {(a.height + 1) / 2, (a.width + 1) / 2};
}

/*
 * The four windows with inputs of a square: gradients and winners.  Window 2 * down + right is `down` rows and `right`
 * columns of windows after the one that has all four inputs.
 */
struct windows {
    value8 dy[4];
    unsigned winners[4];
};
#define NO_WINNERS 0xffffffffu /* no position of a window is 15 */

/* Reduces the partial sums of the last consumer.  One CTA of each group writes the gradients of gamma and beta. */
DEVICE void
prepare_dy(const norm_pool_args &a, const norm_table &t, unsigned first, double *scratch)
{
    const finalize_view &f = a.finalize;
    const pool_args &p = a.pool;
    unsigned count = min(p.channels - first, (unsigned)NORM_CHANNELS), i = threadIdx.x, c = first + i;
    double values = (double)f.block->images * (double)(p.out_height * p.out_width);

    norm_add_blocks(f.sums, first, count, scratch);
    if (i < count) {
        finalize_constants one = finalize_constants_of(scratch[i], scratch[count + i], (double)f.gamma[c], values,
                                                       f.by_beta ? f.by_beta[c] : 0, f.by_gamma ? f.by_gamma[c] : 0,
                                                       f.mean[c], f.variance[c], f.epsilon);
        double unscale = (double)f.state->unscale;

        finalize_put(t, i, one);
        if (blockIdx.x == 0) {
            f.dbeta[c] = (f.block->number > 0 ? f.dbeta[c] : 0) + (float)(scratch[i] * unscale);
            f.dgamma[c] = (f.block->number > 0 ? f.dgamma[c] : 0) + (float)(scratch[count + i] * unscale);
        }
    }
    __syncthreads();
}

/* Loads winners and gradients of the windows that exist; the others have no winners. */
DEVICE void
load_windows(windows &w, const norm_pool_args &args, const pixel_at &s, unsigned channel, unsigned *output)
{
    const pool_args &a = args.pool;

#pragma unroll
    for (unsigned k = 0; k < 4; k++) {
        unsigned y = s.y + k / 2, x = s.x + k % 2;
        bool exists = y < a.out_height && x < a.out_width;

        output[k] = (s.image * a.out_height + min(y, a.out_height - 1)) * a.out_width + min(x, a.out_width - 1);
        w.winners[k] = args.winners[output[k] * (a.channels / 8) + channel / 8];
        w.winners[k] = exists ? w.winners[k] : NO_WINNERS;
        load8(w.dy[k], (const value_t *)a.dy + (size_t)output[k] * a.dy_ld + channel);
    }
}

/* Finalizes dy of the four windows, for the thread's channels, which are `at` in the CTA. */
DEVICE void
finalize_windows(windows &w, const finalize_view &f, const norm_table &t, unsigned channel, unsigned at,
                 const unsigned *output)
{
    float inverse[8], slope[8], offset[8];

    norm_load8(inverse, t, FINALIZE_INVERSE, at);
    norm_load8(slope, t, FINALIZE_SLOPE, at);
    norm_load8(offset, t, FINALIZE_OFFSET, at);
#pragma unroll
    for (unsigned k = 0; k < 4; k++) {
        float values[8], dy[8];
        value8 v;

        load8(v, (const value_t *)f.values + (size_t)output[k] * f.values_ld + channel);
        unpack8(values, v);
        unpack8(dy, w.dy[k]);
        finalize8(dy, values, inverse, slope, offset);
        pack8(w.dy[k], dy);
    }
}

/*
 * Computes the sum of the gradients of all windows whose winner is input 2 * row + column of the square.  Window (down,
 * right) has this input at row + 1 - 2 * down and column + 1 - 2 * right.
 */
DEVICE void
sum_won(float *g, const windows &w, unsigned own)
{
#pragma unroll
    for (unsigned k = 0; k < 4; k++) {
        unsigned row = own / 2 + 1 - 2 * (k / 2), column = own % 2 + 1 - 2 * (k % 2);

        if (row > 2 || column > 2) /* also below 0: it wraps around */
            continue;
        unsigned differs = w.winners[k] ^ (3 * row + column) * 0x11111111u;
        float dy[8];

        unpack8(dy, w.dy[k]);
#pragma unroll
        for (unsigned i = 0; i < 8; i++) {
            float won = differs & 15u << 4 * i ? 0.0f : dy[i];

            g[i] = k == 0 ? won : g[i] + won;
        }
    }
}

/* Completes the gradient of an input x: applies the mask, adds to the sums, stores A. */
DEVICE void
finish_input(norm_lane &l, const pool_args &a, const pixel_at &s, unsigned channel, const value8 &x8, float *g,
             bool counts)
{
    float x[8];

    if (counts) {
        unpack8(x, x8);
        mask_and_sum(l, x, g);
    }
    store_gradient((value_t *)a.dx + (((size_t)s.image * a.height + s.y) * a.width + s.x) * a.dx_ld + channel, g,
                   a.add);
}

/* Loads input `own` of a square; outside the image, a neighbour instead. */
DEVICE void
load_own(value8 &x, const pool_args &a, const pixel_at &s, unsigned own, unsigned channel)
{
    unsigned y = min(2 * s.y + own / 2, a.height - 1), column = min(2 * s.x + own % 2, a.width - 1);

    load8(x, (const value_t *)a.x + (((size_t)s.image * a.height + y) * a.width + column) * a.x_ld + channel);
}

/* Completes input `own` of a square if it is inside the image. */
DEVICE void
finish_own(norm_lane &l, const pool_args &a, const pixel_at &s, unsigned own, unsigned channel, const value8 &x8,
           float *g, bool counts)
{
    pixel_at input = {s.image, 2 * s.y + own / 2, 2 * s.x + own % 2};

    if (input.y < a.height && input.x < a.width)
        finish_input(l, a, input, channel, x8, g, counts);
}

/* An input on an odd row is in two windows vertically; one on an odd column, in two horizontally. */
DEVICE void
finish_maxima(norm_lane &l, const norm_pool_args &a, const norm_table &t, const pixel_at &s, unsigned first,
              bool counts)
{
    unsigned channel = first + l.at;
    windows w;

    if (counts) {
        unsigned output[4];

        load_windows(w, a, s, channel, output);
        if (a.finalize.values)
            finalize_windows(w, a.finalize, t, channel, l.at, output);
    }
#pragma unroll
    for (unsigned own = 0; own < 4; own++) {
        float g[8] = {0, 0, 0, 0, 0, 0, 0, 0};
        value8 x;

        load_own(x, a.pool, s, own, channel);
        if (counts)
            sum_won(g, w, own);
        finish_own(l, a.pool, s, own, channel, x, g, counts);
    }
}

DEVICE void
finish_averages(norm_lane &l, const pool_args &a, const pixel_at &s, unsigned channel, bool counts)
{
    float dy[8] = {0, 0, 0, 0, 0, 0, 0, 0}, g[8];
    value8 x[4];

#pragma unroll
    for (unsigned own = 0; own < 4; own++) /* start all loads before the first gradient is stored */
        load_own(x[own], a, s, own, channel);
    if (counts && s.y < a.out_height && s.x < a.out_width)
        load_dy(dy, a, s.image, s.y, s.x, channel);
#pragma unroll
    for (unsigned own = 0; own < 4; own++) {
#pragma unroll
        for (unsigned i = 0; i < 8; i++)
            g[i] = dy[i] * 0.25f;
        finish_own(l, a, s, own, channel, x[own], g, counts);
    }
}

template <bool MAXIMUM>
DEVICE void
pool_backward(const norm_pool_args &a, unsigned char *shared)
{
    const pool_args &pool = a.pool;
    unsigned first = blockIdx.y * NORM_CHANNELS;
    norm_table table = {(float *)(void *)(shared + NORM_SCRATCH), NORM_CHANNELS / 8};
    norm_table of_dy = {(float *)(void *)(shared + NORM_VIEW_SHARED), NORM_CHANNELS / 8};
    squares all = squares_of(pool);
    norm_lane l;
    bool has = begin_lane(l, a.norm, first, pool.channels, table, shared);

    if (MAXIMUM && a.finalize.values)
        prepare_dy(a, of_dy, first, (double *)(void *)shared);

    for (unsigned n = blockIdx.x * NORM_ROWS + threadIdx.x / 4; has && n < pool.images * all.rows * all.columns;
         n += gridDim.x * NORM_ROWS) {
        pixel_at s = pixel_of(n, all.rows * all.columns, all.columns);
        bool counts = image_counts(a, s.image);

        if (MAXIMUM)
            finish_maxima(l, a, of_dy, s, first, counts);
        else
            finish_averages(l, pool, s, first + l.at, counts);
    }
    store_sums(l, table, shared, a.sums.partial, a.sums.channels);
}
} // namespace

KERNEL(norm_max_pool, norm_pool_args, NORM_THREADS, 2)
{
    SHARED_BYTES(shared);
    pool_forward<true>(a, shared);
}

KERNEL(norm_average_pool, norm_pool_args, NORM_THREADS, 2)
{
    SHARED_BYTES(shared);
    pool_forward<false>(a, shared);
}

/* With two blocks it would spill registers in tf32. */
KERNEL(norm_max_pool_gradient, norm_pool_args, NORM_THREADS, CUDA_VALUE_IS(tf32) ? 1 : 2)
{
    SHARED_BYTES(shared);
    pool_backward<true>(a, shared);
}

KERNEL(norm_average_pool_gradient, norm_pool_args, NORM_THREADS, 2)
{
    SHARED_BYTES(shared);
    pool_backward<false>(a, shared);
}

/* One CTA per image: NORM_ROWS groups of lanes share its pixels; then the sums of the warps are added. */
KERNEL(norm_mean_pool, norm_pool_args, NORM_THREADS, 2)
{
    SHARED_BYTES(shared);
    float *of_warp = (float *)(void *)shared; /* [warps][NORM_CHANNELS] */
    unsigned pixels = a.pool.height * a.pool.width;
    seen_lane l;

    begin_seen(l, a, shared);
    for (unsigned image = blockIdx.x; image < a.pool.images; image += gridDim.x) {
        float sum[8] = {0, 0, 0, 0, 0, 0, 0, 0};

#pragma unroll 2
        for (unsigned p = threadIdx.x / 4; l.has && p < pixels; p += NORM_ROWS) {
            float x[8];

            load_input(x, a.pool, image, 0, p, l.channel);
#pragma unroll
            for (unsigned i = 0; i < 8; i++)
                sum[i] += norm_seen(x[i], l.scale[i], l.shift[i], l.relu);
        }
#pragma unroll
        for (unsigned i = 0; i < 8; i++) {
            for (unsigned by = 4; by < 32; by *= 2)
                sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], by);
            if (lane_id() < 4)
                of_warp[threadIdx.x / 32 * NORM_CHANNELS + lane_id() * 8 + i] = sum[i];
        }
        __syncthreads();
        if (threadIdx.x < 4 && l.has) {
            for (unsigned i = 0; i < 8; i++) {
                sum[i] = 0;
                for (unsigned w = 0; w < NORM_THREADS / 32; w++)
                    sum[i] += of_warp[w * NORM_CHANNELS + threadIdx.x * 8 + i];
                sum[i] /= (float)pixels;
            }
            store_output(a.pool, image, l.channel, sum, image_counts(a, image));
        }
        __syncthreads(); /* of_warp has been read */
    }
}

namespace
{
/*
 * Returns a value near g whose product with gamma is stored without rounding; g if there is none.  All pixels of an
 * image have the same gradient of the mean, so A would have the same rounding error in all of them.  The mean terms of
 * BN backward then would not contain this error, and it would not cancel.
 */
DEVICE float
nearest_stored(float g, float gamma, float inverse)
{
    float near = to_float(to_value(gamma * g)) * inverse;

    return fabsf(near - g) <= fabsf(g) * 0.01f ? near : g; /* also g if gamma is 0, or the product overflows */
}
} // namespace

KERNEL(norm_mean_pool_gradient, norm_pool_args, NORM_THREADS, 2)
{
    SHARED_BYTES(shared);
    unsigned first = blockIdx.y * NORM_CHANNELS, pixels = a.pool.height * a.pool.width;
    norm_table table = {(float *)(void *)(shared + NORM_SCRATCH), NORM_CHANNELS / 8};
    norm_lane l;
    bool has = begin_lane(l, a.norm, first, a.pool.channels, table, shared);
    float inverse[8];

#pragma unroll
    for (unsigned i = 0; i < 8; i++)
        inverse[i] = 1 / l.gamma[i];
    for (unsigned n = blockIdx.x * NORM_ROWS + threadIdx.x / 4; has && n < a.pool.images * pixels;
         n += gridDim.x * NORM_ROWS) {
        pixel_at s = pixel_of(n, pixels, a.pool.width);
        bool counts = image_counts(a, s.image);
        value8 x;
        float g[8];

        load8(x, (const value_t *)a.pool.x + (size_t)n * a.pool.x_ld + first + l.at);
        load_dy(g, a.pool, s.image, 0, 0, first + l.at);
#pragma unroll
        for (unsigned i = 0; i < 8; i++)
            g[i] = counts ? nearest_stored(g[i] / (float)pixels, l.gamma[i], inverse[i]) : 0.0f;
        finish_input(l, a.pool, s, first + l.at, x, g, counts);
    }
    store_sums(l, table, shared, a.sums.partial, a.sums.channels);
}
