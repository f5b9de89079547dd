/*
 * norm_pool.cu - a BN, ReLU and the pool after it in one kernel; fprop and gradients
 *
 *   y = pool(max(x * scale + shift, 0))
 *
 * A CTA has NORM_CHANNELS channels.  Four adjacent lanes share an output, or a square of 2 x 2 inputs, with eight
 * channels each.  fprop stores no argmax: backward finds the maximum of each window again, with the same bits.  A 2 x 2
 * square of inputs is part of four windows of a max pool, and backward evaluates each of these windows once for its
 * four inputs.
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

/*
 * ReLU is monotonic, so it is applied to the maximum only.  A pixel outside the image is replaced by another pixel of
 * the same window.
 */
DEVICE void
largest_of(float *largest, const seen_lane &l, const pool_args &a, const pixel_at &s)
{
#pragma unroll
    for (unsigned k = 0; k < 9; k++) {
        unsigned iy = 2 * s.y + k / 3, ix = 2 * s.x + k % 3;
        float x[8];

        load_input(x, a, s.image, min(iy > 0 ? iy - 1 : 0, a.height - 1), min(ix > 0 ? ix - 1 : 0, a.width - 1),
                   l.channel);
#pragma unroll
        for (unsigned i = 0; i < 8; i++) {
            float v = fmaf(x[i], l.scale[i], l.shift[i]);

            largest[i] = k == 0 || v > largest[i] || v != v ? v : largest[i]; /* NaN stays NaN */
        }
    }
#pragma unroll
    for (unsigned i = 0; i < 8; i++)
        largest[i] = l.relu && largest[i] < 0 ? 0.0f : largest[i];
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

        if (MAXIMUM)
            largest_of(y, l, a.pool, s);
        else
            mean_of(y, l, a.pool, s);
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
 * A window: its gradient, and four bits per channel for the input of the square that has the maximum, or NOBODY if
 * another input has it.
 */
enum { NOBODY = 4, NONE_YET };
struct winners {
    value8 dy;
    unsigned at;
};

/* The constants that finalize dy for the CTA's channels, as [4][2][NORM_CHANNELS / 8][4] of norm_table. */
enum { DY_INVERSE, DY_BETA, DY_MEAN, DY_X };

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

        norm_entry(t, DY_INVERSE, i) = one.inverse;
        norm_entry(t, DY_BETA, i) = one.by_beta;
        norm_entry(t, DY_MEAN, i) = one.mean;
        norm_entry(t, DY_X, i) = one.by_x;
        if (blockIdx.x == 0) {
            f.dbeta[c] = (f.block->number > 0 ? f.dbeta[c] : 0) + (float)(scratch[i] * unscale);
            f.dgamma[c] = (f.block->number > 0 ? f.dgamma[c] : 0) + (float)(scratch[count + i] * unscale);
        }
    }
    __syncthreads();
}

/* Finalizes dy: converts A of eight output channels to the gradient. */
DEVICE void
finalize_dy(value8 &dy, const finalize_view &f, const norm_table &t, size_t output, unsigned first, unsigned at)
{
    float d[8], x[8], less[8], by[8];
    value8 v;

    load8(v, (const value_t *)f.values + output * f.values_ld + first + at);
    unpack8(x, v);
    unpack8(d, dy);
    norm_load8(less, t, DY_MEAN, at);
    norm_load8(by, t, DY_X, at);
#pragma unroll
    for (unsigned i = 0; i < 8; i++)
        x[i] = (x[i] - less[i]) * by[i];
    norm_load8(less, t, DY_BETA, at);
    norm_load8(by, t, DY_INVERSE, at);
#pragma unroll
    for (unsigned i = 0; i < 8; i++)
        d[i] = by[i] * (d[i] - less[i] - x[i]);
    pack8(dy, d);
}

/*
 * Evaluates the window at offset (DOWN, RIGHT) of the square, whose inputs are numbered 2 * row + column.  The window
 * covers rows 2 * DOWN - 1 to 2 * DOWN + 1 of the square, and the same range of columns for RIGHT.
 */
template <unsigned DOWN, unsigned RIGHT>
DEVICE void
ask_window(winners &w, const norm_lane &l, const norm_pool_args &args, const norm_table &t, const pixel_at &s,
           unsigned first)
{
    const pool_args &a = args.pool;
    unsigned channel = first + l.at;
    bool exists = s.y + DOWN < a.out_height && s.x + RIGHT < a.out_width;
    unsigned y = exists ? s.y + DOWN : 0, x = exists ? s.x + RIGHT : 0, at[8];
    float largest[8];

#pragma unroll
    for (unsigned i = 0; i < 8; i++) {
        largest[i] = 0;
        at[i] = NONE_YET;
    }
#pragma unroll 1 /* a whole window of values would not fit into registers */
    for (unsigned row = 2 * DOWN - 1; exists && row != 2 * DOWN + 2;
         row++) /* row of the square; -1 wraps around to a huge value */
#pragma unroll
        for (unsigned k = 0; k < 3; k++) {
            unsigned column = 2 * RIGHT + k - 1, iy = 2 * s.y + row, ix = 2 * s.x + column;
            unsigned own = row < 2 && column < 2 ? 2 * row + column : (unsigned)NOBODY;
            bool inside = iy < a.height && ix < a.width;
            float values[8];

            load_input(values, a, s.image, min(iy, a.height - 1), min(ix, a.width - 1), channel);
#pragma unroll
            for (unsigned i = 0; i < 8; i++) {
                float v = fmaf(values[i], l.scale[i], l.shift[i]);
                bool taken = inside && (at[i] == NONE_YET || v > largest[i] || v != v);

                largest[i] = taken ? v : largest[i];
                at[i] = taken ? own : at[i];
            }
        }
    w.at = 0;
#pragma unroll
    for (unsigned i = 0; i < 8; i++)
        w.at |= at[i] << 4 * i;
    size_t output = ((size_t)s.image * a.out_height + y) * a.out_width + x;

    load8(w.dy, (const value_t *)a.dy + output * a.dy_ld + channel);
    if (args.finalize.values)
        finalize_dy(w.dy, args.finalize, t, output, first, l.at);
}

/* Adds the gradient of a window if input `own` of the square has its maximum. */
DEVICE void
add_won(float *g, const winners &w, unsigned own)
{
#pragma unroll
    for (unsigned i = 0; i < 8; i++)
        g[i] += (w.at >> 4 * i & 15) == own ? to_float(w.dy.at[i]) : 0.0f;
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
finish_maxima(norm_lane &l, const norm_pool_args &args, const norm_table &t, const pixel_at &s, unsigned first,
              bool counts)
{
    const pool_args &a = args.pool;
    unsigned channel = first + l.at;
    winners here, right, below, beyond;

    here.at = right.at = below.at = beyond.at = 0xffffffffu; /* the maximum is at none of the four inputs */
    if (counts) {
        ask_window<0, 0>(here, l, args, t, s, first);
        ask_window<0, 1>(right, l, args, t, s, first);
        ask_window<1, 0>(below, l, args, t, s, first);
        ask_window<1, 1>(beyond, l, args, t, s, first);
    }
#pragma unroll
    for (unsigned own = 0; own < 4; own++) {
        float g[8] = {0, 0, 0, 0, 0, 0, 0, 0};
        value8 x;

        load_own(x, a, s, own, channel); /* in the cache: it was loaded as part of a window */
        if (counts) {
            add_won(g, here, own);
            if (own % 2)
                add_won(g, right, own);
            if (own / 2)
                add_won(g, below, own);
            if (own == 3)
                add_won(g, beyond, own);
        }
        finish_own(l, a, s, own, channel, x, g, counts);
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

KERNEL(norm_max_pool_gradient, norm_pool_args, NORM_THREADS, 2)
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

KERNEL(norm_mean_pool_gradient, norm_pool_args, NORM_THREADS, 2)
{
    SHARED_BYTES(shared);
    unsigned first = blockIdx.y * NORM_CHANNELS, pixels = a.pool.height * a.pool.width;
    norm_table table = {(float *)(void *)(shared + NORM_SCRATCH), NORM_CHANNELS / 8};
    norm_lane l;
    bool has = begin_lane(l, a.norm, first, a.pool.channels, table, shared);

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
            g[i] = counts ? g[i] / (float)pixels : 0.0f;
        finish_input(l, a.pool, s, first + l.at, x, g, counts);
    }
    store_sums(l, table, shared, a.sums.partial, a.sums.channels);
}
