/*
 * pool_kernels.cc - compares pools, with and without a BN in front, and sums of branches (train/cuda/) with formulas in
 * double, fprop and backward
 *
 *     pool_kernels
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernel_fixture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct shape {
    const char *name;
    unsigned images, height, width, channels, more, kernel, stride, pad;
    bool average, add, ties;
} shapes[] = {
    {"largest of 3x3, stride 2, pad 1", 2, 9, 8, 64, 0, 3, 2, 1, false, false, false},
    {"largest of 3x3, stride 2, pad 1, equal values, added", 2, 7, 7, 16, 16, 3, 2, 1, false, true, true},
    {"mean of 2x2, stride 2", 2, 8, 6, 32, 32, 2, 2, 0, true, false, false},
    {"mean of 2x2, stride 2, a row too many, added", 3, 5, 5, 8, 0, 2, 2, 0, true, true, false},
};

static unsigned
side(unsigned n, const shape &s)
{
    return (n + 2 * s.pad - s.kernel) / s.stride + 1;
}

/* Computes y and dx of the slices; every slab has the same ld, with the slice in the middle. */
static void
formulas(const shape &s, const floats &x, const floats &dy, doubles &y, doubles &dx)
{
    unsigned ld = s.channels + s.more, first = s.more / 2, rows = side(s.height, s), columns = side(s.width, s);

    for (unsigned n = 0; n < s.images; n++)
        for (unsigned r = 0; r < rows; r++)
            for (unsigned q = 0; q < columns; q++)
                for (unsigned c = 0; c < s.channels; c++) {
                    size_t out = ((size_t)n * rows + r) * columns + q, best = 0;
                    double g = (double)dy[out * ld + first + c], sum = 0, most = -1e9;

                    for (unsigned k = 0; k < s.kernel * s.kernel; k++) {
                        int iy = (int)(r * s.stride + k / s.kernel) - (int)s.pad;
                        int ix = (int)(q * s.stride + k % s.kernel) - (int)s.pad;

                        if (iy < 0 || iy >= (int)s.height || ix < 0 || ix >= (int)s.width)
                            continue;
                        size_t in = ((size_t)n * s.height + (size_t)iy) * s.width + (size_t)ix;
                        double v = (double)x[in * ld + first + c];

                        sum += v / (s.kernel * s.kernel);
                        if (s.average)
                            dx[in * s.channels + c] += g / (s.kernel * s.kernel);
                        if (v > most) {
                            most = v;
                            best = in;
                        }
                    }
                    y[out * s.channels + c] = s.average ? sum : most;
                    if (!s.average)
                        dx[best * s.channels + c] += g;
                }
}

static floats
slice(const floats &slab, unsigned ld, unsigned channels)
{
    unsigned first = (ld - channels) / 2;
    floats out;

    for (size_t i = 0; i < slab.size(); i++)
        if (i % ld >= first && i % ld < first + channels)
            out.push_back(slab[i]);
    return out;
}

static void
run_window(const value_set &set, const shape &s)
{
    unsigned ld = s.channels + s.more, rows = side(s.height, s), columns = side(s.width, s);
    size_t inputs = (size_t)s.images * s.height * s.width, outputs = (size_t)s.images * rows * columns;
    size_t offset = s.more / 2 * value_bytes(set);
    floats x = random_values(set, inputs * ld), dy = random_values(set, outputs * ld),
           dx = random_values(set, inputs * ld);
    doubles want_y(outputs * s.channels), want_dx(inputs * s.channels);

    for (float &f : x)
        f = s.ties ? floorf(f * 2) : f;
    formulas(s, x, dy, want_y, want_dx);
    floats before = slice(dx, ld, s.channels);
    for (size_t i = 0; i < want_dx.size(); i++)
        want_dx[i] += s.add ? (double)before[i] : 0;
    void *on_x = upload(set, x), *on_dy = upload(set, dy), *on_dx = upload(set, dx),
         *on_y = upload(set, floats(outputs * ld));
    auto at = [&](void *p) { return (void *)((char *)p + offset); };
    pool_args a = {at(on_x),   at(on_y), at(on_dy), at(on_dx), s.images, s.height, s.width,  rows,  columns,
                   s.channels, ld,       ld,        ld,        ld,       s.kernel, s.stride, s.pad, s.add};

    launch(set, s.average ? CUDA_AVERAGE_POOL : CUDA_MAX_POOL, cuda_blocks(outputs * s.channels / 8, POOL_THREADS), 1,
           a);
    launch(set, s.average ? CUDA_AVERAGE_POOL_GRADIENT : CUDA_MAX_POOL_GRADIENT,
           cuda_blocks(inputs * s.channels / 8, POOL_THREADS), 1, a);
    compare("y", want_y, slice(download(set, on_y, outputs * ld), ld, s.channels), set.tolerance);
    compare("gradient", want_dx, slice(download(set, on_dx, inputs * ld), ld, s.channels), set.tolerance);
    release();
    finish_case(set, s.name);
}

static void
run_mean(const value_set &set)
{
    enum { IMAGES = 3, PIXELS = 49, CHANNELS = 40, LD = 48 };
    floats x = random_values(set, IMAGES * PIXELS * LD), dy = random_values(set, IMAGES * CHANNELS);
    doubles y(IMAGES * CHANNELS), dx(IMAGES * PIXELS * CHANNELS);

    for (size_t i = 0; i < dx.size(); i++) {
        size_t pixel = i / CHANNELS, c = i % CHANNELS, image = pixel / PIXELS;

        y[image * CHANNELS + c] += (double)x[pixel * LD + c] / PIXELS;
        dx[i] = (double)dy[image * CHANNELS + c] / PIXELS;
    }
    mean_pool_args a = {upload(set, x),  upload(set, floats(y.size())),
                        upload(set, dy), upload(set, floats(dx.size())),
                        IMAGES,          PIXELS,
                        CHANNELS,        LD,
                        CHANNELS,        CHANNELS,
                        CHANNELS,        0};

    launch(set, CUDA_MEAN_POOL, cuda_blocks(y.size() / 8, POOL_THREADS), 1, a);
    launch(set, CUDA_MEAN_POOL_GRADIENT, cuda_blocks(dx.size() / 8, POOL_THREADS), 1, a);
    compare("y", y, download(set, a.y, y.size()), set.tolerance);
    compare("gradient", dx, download(set, a.dx, dx.size()), set.tolerance);
    release();
    finish_case(set, "mean of all pixels");
}

static void
run_branches(const value_set &set)
{
    enum { PIXELS = 70, CHANNELS = 24 };
    size_t count = PIXELS * CHANNELS;
    floats x = random_values(set, count), x2 = random_values(set, count), dy = random_values(set, count);
    floats dx2 = random_values(set, count);
    doubles y(count), g(count), g2(count);

    branches_args a = {upload(set, x),
                       upload(set, x2),
                       upload(set, floats(count)),
                       upload(set, dy),
                       upload(set, floats(count)),
                       upload(set, dx2),
                       PIXELS,
                       CHANNELS,
                       CHANNELS,
                       CHANNELS,
                       CHANNELS,
                       CHANNELS,
                       CHANNELS,
                       CHANNELS,
                       1,
                       0,
                       1};
    for (size_t i = 0; i < count; i++) {
        y[i] = fmax(0, (double)x[i] + (double)x2[i]);
        g[i] = y[i] > 0 ? (double)dy[i] : 0;
        g2[i] = g[i] + (double)dx2[i];
    }
    launch(set, CUDA_BRANCHES, cuda_blocks(count / 8, POOL_THREADS), 1, a);
    launch(set, CUDA_BRANCHES_GRADIENT, cuda_blocks(count / 8, POOL_THREADS), 1, a);
    compare("y", y, download(set, a.y, count), set.tolerance);
    compare("gradient", g, download(set, a.dx, count), set.tolerance);
    compare("gradient of the other branch", g2, download(set, a.dx2, count), set.tolerance);
    release();
    finish_case(set, "sum of two branches");
}

/* ---- a normalisation fused with a pool --------------------------------------------------------------------------- */

enum norm_pool { MAXIMUM, AVERAGE, MEAN };
static const struct norm_shape {
    const char *name;
    norm_pool kind;
    unsigned images, height, width, channels, more;
    bool relu, weighted, add, ties;
    unsigned blocks;
} norm_shapes[] = {
    {"maximum, odd sides", MAXIMUM, 2, 9, 7, 40, 8, true, false, false, false, 2},
    {"maximum, even sides, equal values, added", MAXIMUM, 3, 6, 8, 64, 0, true, true, true, true, 3},
    {"maximum, no ReLU, more blocks than squares", MAXIMUM, 2, 3, 2, 8, 16, false, true, false, true, 5},
    {"maximum of one pixel", MAXIMUM, 3, 1, 1, 16, 0, true, false, true, false, 1},
    {"average", AVERAGE, 2, 8, 6, 72, 16, true, true, false, false, 2},
    {"average, a row and a column too many, added", AVERAGE, 3, 5, 7, 8, 0, true, false, true, false, 4},
    {"mean", MEAN, 4, 7, 7, 40, 8, true, true, false, false, 3},
    {"mean of more pixels than a block has lanes, added", MEAN, 2, 9, 15, 32, 0, false, false, true, false, 2},
    {"mean of one pixel", MEAN, 5, 1, 1, 24, 0, true, true, true, false, 2},
};

struct normed_problem {
    const norm_shape *s;
    unsigned ld, out_height, out_width;
    size_t inputs, outputs;
    double count;
    floats x, dy, dx, weight, gamma, beta, pivot;
    doubles mean, inverse; /* of the channels */
    norm_pool_args args;
};

static bool
image_counts(const normed_problem &p, size_t image)
{
    return !p.s->weighted || p.weight[image] != 0;
}

static double
normal_of(const normed_problem &p, size_t pixel, unsigned c)
{
    double xhat = ((double)p.x[pixel * p.ld + c] - p.mean[c]) * p.inverse[c];

    return xhat * (double)p.gamma[c] + (double)p.beta[c];
}

static normed_problem
make_normed(const value_set &set, const norm_shape &s)
{
    normed_problem p = {};

    p.s = &s;
    p.ld = s.channels + s.more;
    p.out_height = s.kind == MAXIMUM ? (s.height + 1) / 2 : s.kind == AVERAGE ? s.height / 2 : 1;
    p.out_width = s.kind == MAXIMUM ? (s.width + 1) / 2 : s.kind == AVERAGE ? s.width / 2 : 1;
    p.inputs = (size_t)s.images * s.height * s.width;
    p.outputs = (size_t)s.images * p.out_height * p.out_width;
    p.count = (double)(s.images - s.weighted) * s.height * s.width;
    p.weight = floats(s.images, 1);
    p.weight[s.images / 2] = s.weighted ? 0.0f : 1.0f;
    p.x = random_values(set, p.inputs * p.ld);
    p.dx = random_values(set, p.inputs * p.ld);
    p.dy = random_values(set, p.outputs * s.channels);
    for (size_t i = 0; i < p.x.size(); i++)
        p.x[i] = !image_counts(p, i / p.ld / s.height / s.width) ? INFINITY : s.ties ? floorf(p.x[i] * 2) : p.x[i];
    for (size_t i = 0; i < p.dy.size(); i++)
        if (!image_counts(p, i / s.channels / p.out_height / p.out_width))
            p.dy[i] = NAN;
    p.gamma = random_floats(s.channels);
    p.beta = random_floats(s.channels);
    p.pivot = random_pivots(s.channels);
    p.mean = doubles(s.channels);
    p.inverse = doubles(s.channels);
    for (unsigned c = 0; c < s.channels; c++) {
        double variance = 0;

        for (unsigned pass = 0; pass < 2; pass++)
            for (size_t q = 0; q < p.inputs; q++)
                if (image_counts(p, q / s.height / s.width)) {
                    double v = (double)p.x[q * p.ld + c];

                    (pass ? variance : p.mean[c]) += (pass ? pow(v - p.mean[c], 2) : v) / p.count;
                }
        p.inverse[c] = 1 / sqrt(variance + 1e-5);
    }
    return p;
}

/*
 * Computes y, the gradient of each input before the mask, and the winner of each maximum: the first of equal values, or
 * the last NaN.
 */
static void
pool_formulas(const normed_problem &p, doubles &y, doubles &g, std::vector<unsigned> &winners)
{
    const norm_shape &s = *p.s;
    int reach = s.kind == MAXIMUM ? 3 : s.kind == AVERAGE ? 2 : (int)(s.height > s.width ? s.height : s.width);

    for (size_t o = 0; o < p.outputs; o++)
        for (unsigned c = 0; c < s.channels; c++) {
            size_t image = o / p.out_height / p.out_width, best = SIZE_MAX;
            int first_y = (int)(o / p.out_width % p.out_height) * 2 - (s.kind == MAXIMUM);
            int first_x = (int)(o % p.out_width) * 2 - (s.kind == MAXIMUM);
            double most = -INFINITY, share = s.kind == AVERAGE ? 0.25 : 1.0 / (s.height * s.width), sum = 0;

            if (!image_counts(p, image))
                continue;
            for (int k = 0; k < reach * reach; k++) {
                int iy = first_y + k / reach, ix = first_x + k % reach;
                size_t at = (image * s.height + (size_t)iy) * s.width + (size_t)ix;

                if (iy < 0 || ix < 0 || iy >= (int)s.height || ix >= (int)s.width)
                    continue;
                double v = normal_of(p, at, c);

                if (best == SIZE_MAX || v > most || isnan(v)) {
                    most = v;
                    best = at;
                    winners[o * s.channels + c] = (unsigned)k;
                }
                sum += (s.relu && v < 0 ? 0 : v) * share;
                if (s.kind != MAXIMUM)
                    g[at * s.channels + c] += (double)p.dy[o * s.channels + c] * share;
            }
            y[o * s.channels + c] = s.kind != MAXIMUM ? sum : s.relu && most < 0 ? 0 : most;
            if (s.kind == MAXIMUM)
                g[best * s.channels + c] += (double)p.dy[o * s.channels + c];
        }
}

static void
normed_to_device(const value_set &set, normed_problem &p)
{
    const norm_shape &s = *p.s;
    norm_pool_args &a = p.args;
    batch_block block = {1, s.images - s.weighted, 0};
    norm_sums_args sums = {};

    a.pool = {upload(set, p.x),
              upload(set, floats(p.outputs * s.channels, 7)),
              upload(set, p.dy),
              upload(set, p.dx),
              s.images,
              s.height,
              s.width,
              p.out_height,
              p.out_width,
              s.channels,
              p.ld,
              s.channels,
              s.channels,
              p.ld,
              s.kind == MAXIMUM   ? 3u
              : s.kind == AVERAGE ? 2u
                                  : 0u,
              s.kind == MEAN ? 0u : 2u,
              s.kind == MAXIMUM,
              s.add};
    a.weight = s.weighted ? upload(p.weight) : NULL;
    a.winners = s.kind == MAXIMUM ? (unsigned *)(void *)room(p.outputs * s.channels / 8) : NULL;
    a.norm.mean = upload(floats(s.channels, NAN));
    a.norm.variance = upload(floats(s.channels, NAN));
    a.norm.gamma = upload(p.gamma);
    a.norm.beta = upload(p.beta);
    a.norm.block = upload(std::vector<batch_block>{block});
    a.norm.pixels = s.height * s.width;
    a.norm.relu = s.relu;
    a.norm.epsilon = 1e-5f;
    a.norm.fresh = {room(2 * (size_t)s.channels), upload_pivots(p.pivot), 1, s.channels};
    a.sums = {room(2 * (size_t)s.channels * s.blocks), NULL, s.blocks, s.channels};
    sums = {a.pool.x,          a.norm.fresh.running_mean, a.weight,   a.norm.fresh.partial,
            s.images,          s.height * s.width,        s.channels, p.ld,
            (unsigned)p.inputs};
    launch(set, CUDA_NORM_SUMS, 1, cuda_blocks(s.channels, NORM_CHANNELS), sums);
}

/* The gradient of a mean: a value near g whose product with gamma is stored without rounding, if there is one. */
static double
nearest_stored(const value_set &set, double g, double gamma)
{
    double near = (double)rounded(set, (float)(gamma * g)) / gamma;

    return fabs(near - g) <= 0.01 * fabs(g) ? near : g;
}

static void
check_gradient(const value_set &set, const normed_problem &p, doubles &g)
{
    const norm_shape &s = *p.s;
    doubles a(g.size()), sums(2 * s.channels), sizes(2 * s.channels);
    floats got = download(set, p.args.pool.dx, p.dx.size()), left, beside, want_beside;
    floats partial = download(p.args.sums.partial, 2 * (size_t)s.channels * s.blocks);

    for (size_t i = 0; i < g.size(); i++) {
        unsigned c = (unsigned)(i % s.channels);
        size_t q = i / s.channels;
        double before = s.add ? (double)p.dx[q * p.ld + c] : 0, v = normal_of(p, q, c);

        if (image_counts(p, q / s.height / s.width)) {
            g[i] = s.relu && !(v > 0) ? 0 : s.kind == MEAN ? nearest_stored(set, g[i], (double)p.gamma[c]) : g[i];
            a[i] = before + g[i] * (double)p.gamma[c];
            sums[c] += g[i];
            sums[s.channels + c] += g[i] * ((double)p.x[q * p.ld + c] - p.mean[c]) * p.inverse[c];
        } else {
            a[i] = before;
        }
        left.push_back(got[q * p.ld + c]);
    }
    for (size_t i = 0; i < got.size(); i++)
        if (i % p.ld >= s.channels) {
            beside.push_back(got[i]);
            want_beside.push_back(p.dx[i]);
        }
    for (size_t i = 2 * s.channels; i < partial.size(); i++)
        partial[i % (2 * s.channels)] += partial[i];
    partial.resize(2 * s.channels);
    compare("gradient", a, left, fmax(set.tolerance, 2e-6));
    /* with one pixel per image all values equal the mean: sums of xhat are 0 except for rounding */
    compare("sums", sums, partial, 5e-6);
    expect(beside == want_beside, "something beside the slice was written");
}

static void
check_winners(const normed_problem &p, const std::vector<unsigned> &want)
{
    std::vector<unsigned> got(want.size() / 8);
    size_t wrong = 0;

    download_bytes(got.data(), p.args.winners, got.size() * sizeof(got[0]));
    for (size_t i = 0; i < want.size(); i++)
        wrong += image_counts(p, i / p.s->channels / p.out_height / p.out_width) &&
                 (got[i / 8] >> 4 * (i % 8) & 15) != want[i];
    expect(wrong == 0, "winners are not those of the windows");
}

/* Checks the partial sums that a max pool writes: of y - pivot and of its square, with y as stored. */
static void
check_left_sums(const normed_problem &p, const floats &y, const channel_sums &left)
{
    unsigned channels = p.s->channels;
    doubles want(2 * channels), got(2 * channels);
    floats partial = download(left.partial, 2 * (size_t)channels * left.blocks), sums;

    for (size_t i = 0; i < y.size(); i++) {
        double d = (double)y[i] - (double)p.pivot[i % channels];

        if (image_counts(p, i / channels / p.out_height / p.out_width)) {
            want[i % channels] += d;
            want[channels + i % channels] += d * d;
        }
    }
    for (size_t i = 0; i < partial.size(); i++)
        got[i % (2 * channels)] += (double)partial[i];
    for (double d : got)
        sums.push_back((float)d);
    compare("sums of y", want, sums, 2e-6);
}

static void
run_normed(const value_set &set, const norm_shape &s)
{
    static const cuda_kernel_id forward[] = {CUDA_NORM_MAX_POOL, CUDA_NORM_AVERAGE_POOL, CUDA_NORM_MEAN_POOL};
    static const cuda_kernel_id backward[] = {CUDA_NORM_MAX_POOL_GRADIENT, CUDA_NORM_AVERAGE_POOL_GRADIENT,
                                              CUDA_NORM_MEAN_POOL_GRADIENT};
    normed_problem p = make_normed(set, s);
    unsigned groups = cuda_blocks(s.channels, NORM_CHANNELS);
    doubles y(p.outputs * s.channels), g(p.inputs * s.channels);
    std::vector<unsigned> winners(y.size());
    norm_pool_args ahead;
    char name[100];

    normed_to_device(set, p);
    pool_formulas(p, y, g, winners);
    ahead = p.args;
    if (s.kind == MAXIMUM)
        ahead.sums = {room(2 * (size_t)s.channels * s.blocks), p.args.norm.fresh.running_mean, s.blocks, s.channels};
    launch(set, forward[s.kind], s.blocks, groups, ahead);
    p.args.norm.fresh = {};
    launch(set, backward[s.kind], s.blocks, groups, p.args);
    floats got = download(set, p.args.pool.y, y.size());
    compare("y", y, got, fmax(set.tolerance, 2e-6));
    if (s.kind == MAXIMUM) {
        check_left_sums(p, got, ahead.sums);
        check_winners(p, winners);
    }
    check_gradient(set, p, g);
    release();
    snprintf(name, sizeof(name), "%s: normalised, %s", set.name, s.name);
    finish_case(name);
}

/* The gradient of a finite input is finite, and that of a window goes to its winner, whatever else it has. */
static void
check_special_gradient(const value_set &set, const normed_problem &p, const doubles &g)
{
    floats got = download(set, p.args.pool.dx, p.dx.size()), left;
    doubles want;

    for (size_t i = 0; i < g.size(); i++) {
        size_t q = i / p.s->channels;
        unsigned c = (unsigned)(i % p.s->channels);

        want.push_back(normal_of(p, q, c) > 0 ? g[i] * (double)p.gamma[c] : 0);
        left.push_back(got[q * p.ld + c]);
    }
    compare("gradient", want, left, fmax(set.tolerance, 2e-6));
}

/*
 * Values that are not finite, with statistics as for scoring.  A NaN reaches all windows that contain it, and no
 * others; the last NaN of a window wins.  Where all values are infinite, the first one wins.
 */
static void
run_normed_special(const value_set &set)
{
    enum { AT = 3 * 7 + 3, CHANNEL = 9, INFINITE = 17, TWICE = 22 }; /* row 3, column 3: in four windows */
    static const float zeros[40] = {};
    normed_problem p = make_normed(set, norm_shapes[0]);
    doubles y_want(p.outputs * 40), g(p.inputs * 40);
    std::vector<unsigned> winners(y_want.size());

    p.x[AT * (size_t)p.ld + CHANNEL] = NAN;
    p.x[AT * (size_t)p.ld + TWICE] = p.x[(AT + 1) * (size_t)p.ld + TWICE] = NAN;
    for (size_t q = p.inputs / 2; q < p.inputs; q++)
        p.x[q * p.ld + INFINITE] = -INFINITY;
    p.mean.assign(40, 0);
    p.inverse.assign(40, 1 / sqrt(1e-5));
    pool_formulas(p, y_want, g, winners);
    normed_to_device(set, p);
    p.args.norm.fresh = {};
    copy_in(p.args.norm.mean, zeros, sizeof(zeros));
    copy_in(p.args.norm.variance, zeros, sizeof(zeros));
    norm_pool_args ahead = p.args;
    ahead.sums = {};
    launch(set, CUDA_NORM_MAX_POOL, 2, 2, ahead);
    floats y = download(set, p.args.pool.y, p.outputs * 40);
    for (size_t i = 0; i < y.size(); i++)
        expect(isnan(y[i]) == isnan(y_want[i]), "a window with a value that is no number");
    for (size_t i = CHANNEL; i < y.size(); i += 40) {
        size_t row = i / 40 / 4 % 5, column = i / 40 % 4;

        expect(isnan(y[i]) == (i / 40 / 20 == 0 && (row == 1 || row == 2) && (column == 1 || column == 2)),
               "a NaN is in four windows");
    }
    check_winners(p, winners);
    launch(set, CUDA_NORM_MAX_POOL_GRADIENT, 2, 2, p.args);
    check_special_gradient(set, p, g);
    ahead.winners = NULL;
    launch(set, CUDA_NORM_MAX_POOL, 2, 2, ahead);
    check_winners(p, winners);
    release();
    finish_case(set, "normalised, values that are not finite");
}

static void
run_all(const value_set &set)
{
    for (const shape &s : shapes)
        run_window(set, s);
    run_mean(set);
    run_branches(set);
    for (const norm_shape &s : norm_shapes)
        run_normed(set, s);
    run_normed_special(set);
}

int
main(int argc, char **argv)
{
    return run_program(argc, argv, run_all);
}
