/*
 * norm_kernels.cc - compares batch normalisation of train/cuda/, fprop and backward, with formulas in double
 *
 *     norm_kernels [small]
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernel_fixture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct shape {
    const char *name;
    unsigned images, pixels, channels, ld; /* ld of every slab; the slice starts at (ld - channels) / 2 */
    bool relu, weighted, add;
    float mean; /* of x: squares must not cancel */
    unsigned each;
    bool small;
} shapes[] = {
    {"64 channels, one block of pixels", 2, 30, 64, 64, true, false, false, 0, 64, false},
    {"32 of 96 channels, an image of weight 0", 3, 49, 32, 96, true, true, true, 0.5f, 64, true},
    {"40 channels, no ReLU", 2, 17, 40, 56, false, true, false, -2, 32, true},
    {"128 channels far from zero", 4, 25, 128, 128, true, false, false, 30, 64, false},
    {"8 channels, one pixel", 5, 1, 8, 8, true, false, true, 0, 64, true},
    {"16 channels, one value of each", 2, 1, 16, 32, false, true, true, 0.25f, 64, true},
};

/* The results of the formulas (train/ref/ops_norm.c), in double. */
struct wanted {
    doubles mean, variance, y, dbeta, dgamma, dx, running_mean, running_variance;
};

struct problem {
    const shape *s;
    floats x, dy, dx, weight, gamma, beta, running_mean, running_variance;
    step_state state;
    unsigned first, images; /* the images with weight */
    size_t count;           /* pixels of all images */
};

static bool
counts(const problem &p, size_t pixel)
{
    return !p.s->weighted || p.weight[pixel / p.s->pixels] != 0;
}

static problem
make_problem(const value_set &set, const shape &s)
{
    problem p = {};

    p.s = &s;
    p.first = (s.ld - s.channels) / 2;
    p.count = (size_t)s.images * s.pixels;
    p.x = random_values(set, p.count * s.ld);
    for (float &f : p.x)
        f = s.mean + (set.kind == VALUE_FLOAT || s.mean == 0 ? f : roundf(f * 8) / 8); /* still exact in the type */
    p.dy = random_values(set, p.count * s.ld);
    p.dx = random_values(set, p.count * s.ld);
    p.weight = floats(s.images, 1);
    if (s.weighted)
        p.weight[1] = 0;
    p.images = s.images - s.weighted;
    p.state.unscale = 0.5f;
    for (size_t i = 0; i < p.count * s.ld; i++)
        if (!counts(p, i / s.ld))
            p.dy[i] = 0; /* the loss has no gradient there */
    p.gamma = random_floats(s.channels);
    p.beta = random_floats(s.channels);
    p.running_mean = random_floats(s.channels);
    for (float &f : p.running_mean)
        f = s.mean + f / 8;
    p.running_variance = floats(s.channels, 0.5f);
    return p;
}

/* `y` is what the device stored: the device decides whether a value is above zero. */
static wanted
formulas(const problem &p, const floats &y)
{
    const shape &s = *p.s;
    wanted w;
    double n = (double)p.images * s.pixels;

    w.y.resize(p.count * s.channels);
    w.dx.resize(p.count * s.channels);
    for (unsigned c = 0; c < s.channels; c++) {
        norm_channel channel = {{}, {}, {}, (double)p.gamma[c], (double)p.beta[c], 1e-5, s.relu};

        for (size_t q = 0; q < p.count; q++) {
            size_t at = q * s.ld + p.first + c;

            channel.x.push_back((double)p.x[at]);
            channel.g.push_back(s.relu && !(y[at] > 0) ? 0 : (double)p.dy[at]);
            channel.counts.push_back(counts(p, q));
        }
        norm_results r = normalise(channel);
        for (size_t q = 0; q < p.count; q++) {
            /* of another consumer, whose sums are zero; a single value has no gradient */
            double more = s.add && counts(p, q) && n > 1 ? (double)p.dx[q * s.ld + p.first + c] : 0;

            w.y[q * s.channels + c] = r.y[q];
            w.dx[q * s.channels + c] = r.dx[q] + more * r.inverse;
        }
        w.mean.push_back(r.mean);
        w.variance.push_back(r.variance);
        w.dbeta.push_back(1 + r.sum_g * 0.5);
        w.dgamma.push_back(1 + r.sum_g_xhat * 0.5);
        w.running_mean.push_back(n < 2 ? (double)p.running_mean[c] : 0.9 * (double)p.running_mean[c] + 0.1 * r.mean);
        w.running_variance.push_back(n < 2 ? (double)p.running_variance[c]
                                           : 0.9 * (double)p.running_variance[c] + 0.1 * r.variance * n / (n - 1));
    }
    return w;
}

static floats
slice(const problem &p, const floats &slab)
{
    floats out;

    for (size_t i = 0; i < slab.size(); i++)
        if (i % p.s->ld >= p.first && i % p.s->ld < p.first + p.s->channels)
            out.push_back(slab[i]);
    return out;
}

/* Data on the device; the slice starts at at(). */
struct device {
    void *x, *y, *dy, *dx;
    float *weight, *mean, *variance, *gamma, *dgamma, *dbeta, *running;
    const batch_block *block;
    norm_view view;
};

static void *
at(const value_set &set, const problem &p, void *slab)
{
    return (char *)slab + p.first * value_bytes(set);
}

static device
to_device(const value_set &set, const problem &p)
{
    const shape &s = *p.s;
    device d = {};
    floats running = p.running_mean;

    running.insert(running.end(), p.running_variance.begin(), p.running_variance.end());
    d.x = upload(set, p.x);
    d.y = upload(set, floats(p.x.size(), 7));
    d.dy = upload(set, p.dy);
    d.dx = upload(set, p.dx);
    d.weight = s.weighted ? upload(p.weight) : NULL;
    d.mean = room(s.channels);
    d.variance = room(s.channels);
    d.gamma = upload(p.gamma);
    d.dgamma = upload(floats(s.channels, 1));
    d.dbeta = upload(floats(s.channels, 1));
    d.running = upload(running);
    d.block = upload(std::vector<batch_block>{{1, p.images, 1}});
    d.view.mean = d.mean;
    d.view.variance = d.variance;
    d.view.gamma = d.gamma;
    d.view.beta = upload(p.beta);
    d.view.block = d.block;
    d.view.pixels = s.pixels;
    d.view.relu = s.relu;
    d.view.epsilon = 1e-5f;
    return d;
}

/* Runs the partial sums, BN, and the running statistics from its result. */
static void
forward(const value_set &set, const problem &p, const device &d)
{
    const shape &s = *p.s;
    unsigned blocks = cuda_blocks(p.count, s.each), groups = cuda_blocks(s.channels, NORM_CHANNELS);
    norm_sums_args sums = {at(set, p, d.x), upload(p.running_mean),
                           d.weight,        room((size_t)blocks * 2 * s.channels),
                           s.images,        s.pixels,
                           s.channels,      s.ld,
                           s.each};
    norm_apply_args apply = {at(set, p, d.x), at(set, p, d.y), d.view, d.weight, s.images,
                             s.pixels,        s.channels,      s.ld,   s.ld};
    running_entry entry = {d.mean, d.variance, 0, s.channels, s.pixels, s.channels, 0};
    norm_running_args running = {upload(std::vector<running_entry>{entry}), d.running, d.block, 1, 0.1f};

    apply.norm.fresh = {sums.partial, sums.running_mean, blocks, s.channels};
    launch(set, CUDA_NORM_SUMS, blocks, groups, sums);
    launch(set, CUDA_NORM_APPLY, blocks, groups, apply);
    move_running(set, cuda_blocks(s.channels, HEAD_THREADS), running);
}

/* Runs the masked gradient and its partial sums, and finalizes it in place. */
static void
backward(const value_set &set, const problem &p, const device &d)
{
    const shape &s = *p.s;
    unsigned blocks = cuda_blocks(p.count, s.each), groups = cuda_blocks(s.channels, NORM_CHANNELS);
    norm_mask_args mask = {};
    norm_finalize_args finalize = {};

    mask.x = finalize.x = at(set, p, d.x);
    mask.dy = at(set, p, d.dy);
    mask.gradient = finalize.gradient = at(set, p, d.dx);
    mask.norm = d.view;
    mask.sums = finalize.sums = {room((size_t)blocks * 2 * s.channels), NULL, blocks, s.channels};
    mask.weight = finalize.weight = d.weight;
    mask.images = finalize.images = s.images;
    mask.pixels = finalize.pixels = s.pixels;
    mask.channels = finalize.channels = s.channels;
    mask.x_ld = mask.dy_ld = mask.gradient_ld = finalize.x_ld = finalize.gradient_ld = s.ld;
    mask.add = finalize.add = s.add;
    finalize.gamma = d.gamma;
    finalize.dgamma = d.dgamma;
    finalize.dbeta = d.dbeta;
    finalize.by_beta = upload(floats(s.channels));
    finalize.by_gamma = upload(floats(s.channels));
    finalize.mean = d.mean;
    finalize.variance = d.variance;
    finalize.block = d.block;
    finalize.state = upload(std::vector<step_state>{p.state});
    finalize.epsilon = d.view.epsilon;
    launch(set, CUDA_NORM_MASK, blocks, groups, mask);
    launch(set, CUDA_NORM_FINALIZE, 3 * groups, 1, finalize);
}

static void
run_shape(const value_set &set, const shape &s)
{
    problem p = make_problem(set, s);
    device d = to_device(set, p);

    forward(set, p, d);
    backward(set, p, d);

    floats got_y = download(set, d.y, p.x.size()), got_dx = download(set, d.dx, p.x.size());
    floats running = download(d.running, 2 * s.channels);
    wanted w = formulas(p, got_y);
    /* x * scale + shift cancels if the mean is far from zero or the variance is zero. */
    double more = s.mean > 10 || p.images * s.pixels == 1 ? 20 : 2, sum_tolerance = 3e-6,
           value_tolerance = set.tolerance > 2e-6 ? set.tolerance : 2e-6;

    compare("mean", w.mean, download(d.mean, s.channels), sum_tolerance);
    compare("variance", w.variance, download(d.variance, s.channels), 2e-5);
    compare("running mean", w.running_mean, floats(running.begin(), running.begin() + s.channels), sum_tolerance);
    compare("running variance", w.running_variance, floats(running.begin() + s.channels, running.end()), 2e-5);
    compare("y", w.y, slice(p, got_y), value_tolerance * more);
    compare("gradient of beta", w.dbeta, download(d.dbeta, s.channels), sum_tolerance);
    compare("gradient of gamma", w.dgamma, download(d.dgamma, s.channels), sum_tolerance * more);
    compare("gradient of x", w.dx, slice(p, got_dx), value_tolerance * more);
    for (size_t i = 0; i < p.x.size(); i++)
        if (i % s.ld < p.first || i % s.ld >= p.first + s.channels)
            if (got_y[i] != 7 || got_dx[i] != p.dx[i]) {
                expect(false, "something beside the slice was written");
                break;
            }
    release();
    finish_case(set, s.name);
}

/*
 * Partial sums of which two rows are so large that a float sum loses the other rows: those that a thread adds to a
 * large one, and the sums of the other threads.
 */
static void
run_rows(const value_set &set)
{
    enum { ROWS = 1024, CHANNELS = 32, VALUES = 1000 };
    const double large[2] = {1 << 24, 3 << 28}, small[2] = {97.0 / 128, 30.25};
    const double sum = (2 * large[0] + (ROWS - 2) * small[0]) / VALUES / VALUES;
    floats partial((size_t)ROWS * 2 * CHANNELS), zero(CHANNELS), one(CHANNELS, 1);
    norm_view view = {room(CHANNELS), room(CHANNELS), upload(one), upload(zero), NULL, {}, 0, VALUES, 0, 1e-5f};
    norm_apply_args apply = {upload(set, zero), upload(set, zero), view, NULL, 1, 1, CHANNELS, CHANNELS, CHANNELS};

    for (size_t i = 0; i < partial.size(); i++) {
        const double *row = i < 4 * CHANNELS ? large : small;

        partial[i] = (float)row[i / CHANNELS % 2];
    }
    apply.norm.block = upload(std::vector<batch_block>{{1, VALUES, 0}});
    apply.norm.fresh = {upload(partial), upload(zero), ROWS, CHANNELS};
    launch(set, CUDA_NORM_APPLY, 1, 1, apply);
    compare("mean", doubles(CHANNELS, sum), download(view.mean, CHANNELS), 1e-7);
    compare("variance", doubles(CHANNELS, (2 * large[1] + (ROWS - 2) * small[1]) / VALUES / VALUES - sum * sum),
            download(view.variance, CHANNELS), 1e-7);
    release();
    finish_case(set, "rows that a float sum would lose");
}

/* Scoring: running statistics, and an image of weight 0. */
static void
run_scoring(const value_set &set)
{
    enum { IMAGES = 3, PIXELS = 5, CHANNELS = 40, COUNT = IMAGES * PIXELS * CHANNELS };
    floats x = random_values(set, COUNT), weight = {1, 0, 1}, mean = random_floats(CHANNELS);
    floats variance = random_floats(CHANNELS), gamma = random_floats(CHANNELS), beta = random_floats(CHANNELS);
    doubles want(COUNT);

    for (float &v : variance)
        v = v * v;
    x[PIXELS * CHANNELS] = INFINITY; /* of the image without weight */
    for (size_t i = 0; i < COUNT; i++) {
        size_t c = i % CHANNELS;
        double y = ((double)x[i] - (double)mean[c]) / sqrt((double)variance[c] + 1e-5) * (double)gamma[c] +
                   (double)beta[c];

        want[i] = i / CHANNELS / PIXELS == 1 || y < 0 ? 0 : y;
    }
    norm_view view = {upload(mean), upload(variance), upload(gamma), upload(beta), NULL, {}, 0, PIXELS, 1, 1e-5f};
    norm_apply_args apply = {
        upload(set, x), upload(set, floats(COUNT)), view, upload(weight), IMAGES, PIXELS, CHANNELS, CHANNELS, CHANNELS};

    launch(set, CUDA_NORM_APPLY, 1, cuda_blocks(CHANNELS, NORM_CHANNELS), apply);
    compare("y", want, download(set, apply.y, COUNT), set.tolerance > 2e-6 ? set.tolerance : 2e-6);
    release();
    finish_case(set, "running statistics");
}

static void
run_all(const value_set &set)
{
    for (const shape &s : shapes)
        if (s.small || !small_shapes)
            run_shape(set, s);
    run_rows(set);
    run_scoring(set);
}

int
main(int argc, char **argv)
{
    return run_program(argc, argv, run_all);
}
