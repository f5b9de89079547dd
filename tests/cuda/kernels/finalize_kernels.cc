/*
 * finalize_kernels.cc - compares fused BNs of train/cuda/ with separate batch normalisations in double
 *
 *     finalize_kernels [small]
 *
 * Several BNs read a slab.  The first one reads all of it; each further one reads the channels in front of the slice
 * that the previous one finalized.  In fprop each is applied from fresh partial sums.  In backward, the gradient of the
 * slab must be the sum of the gradients of all BNs, each computed separately.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernel_fixture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { READERS = 4 };
static const struct shape {
    const char *name;
    unsigned images, pixels, ld;
    unsigned channels[READERS]; /* channels that each one reads, in the order of backward; 0: no more BNs */
    bool relu, weighted;
    unsigned number;        /* of the micro-batch */
    float mean;             /* of x */
    unsigned blocks, parts; /* CTAs of the sums, and CTAs per group of the slice */
    unsigned reduced;       /* rows after reduce_sums; 0: no reduce_sums */
    bool small;
} shapes[] = {
    {"four readers of 160 channels", 3, 49, 176, {160, 128, 96, 64}, true, false, 0, 0, 2, 1, 2, false},
    {"three readers, an image of weight 0", 3, 30, 88, {72, 40, 8}, true, true, 2, 0.5f, 3, 2, 0, true},
    {"one reader, no ReLU, one block", 3, 65, 40, {40}, false, true, 0, -2, 1, 1, 0, true},
    {"two readers, more blocks than pixels", 2, 7, 64, {64, 32}, true, false, 1, 0, 9, 4, 4, true},
    {"two readers of one pixel", 5, 1, 24, {24, 16}, true, true, 0, 0, 2, 2, 0, true},
    {"two readers of one value", 2, 1, 24, {24, 16}, true, true, 1, 0.25f, 2, 1, 0, true},
    {"two readers far from zero", 4, 25, 128, {128, 96}, true, false, 0, 30, 4, 2, 3, false},
};
static const float EPSILON = 1e-5f;
static const double UNSCALE = 0.5;

/* One of the BNs. */
struct reader {
    unsigned channels,
        first; /* of the slice for which it is the last consumer in backward and the first one in fprop */
    floats gamma, beta, dy, y;
    void *on_y, *on_dy;
    float *on_gamma, *on_beta, *dgamma, *dbeta;
};

struct problem {
    const value_set *set;
    const shape *s;
    floats x, weight, running_mean;
    size_t count; /* pixels of all images */
    unsigned images;
    std::vector<reader> readers;
    void *on_x, *on_gradient;
    float *on_weight, *on_running_mean, *mean, *variance, *by_beta, *by_gamma;
    const batch_block *block;
    const step_state *state;
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
    step_state state = {};

    p.set = &set;
    p.s = &s;
    p.count = (size_t)s.images * s.pixels;
    p.images = s.images - s.weighted;
    p.weight = floats(s.images, 1);
    if (s.weighted)
        p.weight[1] = 0;
    p.x = random_values(set, p.count * s.ld);
    for (size_t i = 0; i < p.x.size(); i++)
        p.x[i] = !counts(p, i / s.ld)                     ? INFINITY /* any value */
                 : set.kind == VALUE_FLOAT || s.mean == 0 ? p.x[i] + s.mean
                                                          : s.mean + roundf(p.x[i] * 8) / 8; /* exact in the type */
    p.running_mean = random_floats(s.channels[0]);
    for (float &f : p.running_mean)
        f = s.mean + f / 8;
    for (unsigned i = 0; i < READERS && s.channels[i] > 0; i++) {
        reader r = {};

        r.channels = s.channels[i];
        r.first = i + 1 < READERS ? s.channels[i + 1] : 0;
        r.gamma = random_floats(r.channels);
        r.beta = random_floats(r.channels);
        r.dy = random_values(set, p.count * r.channels);
        for (size_t k = 0; k < r.dy.size(); k++)
            r.dy[k] = counts(p, k / r.channels) ? r.dy[k] : NAN;
        p.readers.push_back(r);
    }
    state.unscale = (float)UNSCALE;
    p.block = upload(std::vector<batch_block>{{1, p.images, s.number}});
    p.state = upload(std::vector<step_state>{state});
    return p;
}

static void
to_device(problem &p)
{
    const shape &s = *p.s;

    p.on_x = upload(*p.set, p.x);
    p.on_gradient = upload(*p.set, floats(p.x.size(), 7));
    p.on_weight = s.weighted ? upload(p.weight) : NULL;
    p.on_running_mean = upload(p.running_mean);
    for (float **f : {&p.mean, &p.variance, &p.by_beta, &p.by_gamma})
        *f = upload(floats(s.channels[0], NAN));
    for (reader &r : p.readers) {
        r.on_gamma = upload(r.gamma);
        r.on_beta = upload(r.beta);
        r.on_y = upload(*p.set, floats(r.dy.size()));
        r.on_dy = upload(*p.set, r.dy);
        r.dgamma = upload(floats(r.channels, s.number > 0 ? 1 : NAN));
        r.dbeta = upload(floats(r.channels, s.number > 0 ? 1 : NAN));
    }
}

static norm_view
view_of(const problem &p, const reader &r)
{
    norm_view v = {};

    v.mean = p.mean;
    v.variance = p.variance;
    v.gamma = r.on_gamma;
    v.beta = r.on_beta;
    v.block = p.block;
    v.pixels = p.s->pixels;
    v.relu = p.s->relu;
    v.epsilon = EPSILON;
    return v;
}

/* The slice is written with its partial sums.  Its first consumer reduces them to mean and variance. */
static void
forward(const problem &p, reader &r)
{
    const shape &s = *p.s;
    unsigned channels = r.channels - r.first, each = cuda_blocks(p.count, s.blocks), bytes = value_bytes(*p.set);
    unsigned blocks = cuda_blocks(p.count, each), groups = cuda_blocks(r.channels, NORM_CHANNELS);
    norm_sums_args sums = {};
    norm_apply_args apply = {};

    sums = {(char *)p.on_x + r.first * bytes,
            p.on_running_mean + r.first,
            p.on_weight,
            room((size_t)blocks * 2 * channels),
            s.images,
            s.pixels,
            channels,
            s.ld,
            each};
    launch(*p.set, CUDA_NORM_SUMS, blocks, cuda_blocks(channels, NORM_CHANNELS), sums);
    apply.x = p.on_x;
    apply.y = r.on_y;
    apply.norm = view_of(p, r);
    apply.norm.fresh = {sums.partial, sums.running_mean, blocks, channels};
    apply.norm.fresh_first = r.first;
    apply.weight = p.on_weight;
    apply.images = s.images;
    apply.pixels = s.pixels;
    apply.channels = r.channels;
    apply.x_ld = s.ld;
    apply.y_ld = r.channels;
    launch(*p.set, CUDA_NORM_APPLY, s.parts, groups, apply);
    r.y = download(*p.set, r.on_y, r.dy.size());
}

static void
backward(const problem &p, const reader &r, bool add)
{
    const shape &s = *p.s;
    unsigned bytes = value_bytes(*p.set), groups = cuda_blocks(r.channels, NORM_CHANNELS);
    norm_mask_args mask = {};
    norm_finalize_args finalize = {};

    mask.x = p.on_x;
    mask.dy = r.on_dy;
    mask.gradient = p.on_gradient;
    mask.norm = view_of(p, r);
    mask.sums = {room((size_t)s.blocks * 2 * r.channels), NULL, s.blocks, r.channels};
    mask.weight = p.on_weight;
    mask.images = s.images;
    mask.pixels = s.pixels;
    mask.channels = r.channels;
    mask.x_ld = mask.gradient_ld = s.ld;
    mask.dy_ld = r.channels;
    mask.add = add;
    launch(*p.set, CUDA_NORM_MASK, s.blocks, groups, mask);
    finalize.sums = mask.sums;
    if (s.reduced) {
        finalize.sums = {room((size_t)s.reduced * 2 * r.channels), NULL, s.reduced, r.channels};
        launch(*p.set, CUDA_REDUCE_SUMS, s.reduced, groups, reduce_sums_args{mask.sums, finalize.sums});
    }
    finalize.gamma = r.on_gamma;
    finalize.dgamma = r.dgamma;
    finalize.dbeta = r.dbeta;
    finalize.by_beta = p.by_beta;
    finalize.by_gamma = p.by_gamma;
    finalize.add = add;
    finalize.first = r.first;
    finalize.channels = r.channels - r.first;
    finalize.gradient = (char *)p.on_gradient + r.first * bytes;
    finalize.x = (char *)p.on_x + r.first * bytes;
    finalize.mean = p.mean;
    finalize.variance = p.variance;
    finalize.weight = p.on_weight;
    finalize.block = p.block;
    finalize.state = p.state;
    finalize.images = s.images;
    finalize.pixels = s.pixels;
    finalize.x_ld = finalize.gradient_ld = s.ld;
    finalize.epsilon = EPSILON;
    /* with more than one group, one CTA too many, which must do nothing */
    launch(*p.set, CUDA_NORM_FINALIZE, groups + cuda_blocks(finalize.channels, NORM_CHANNELS) * s.parts + (s.parts > 1),
           1, finalize);
}

/* A separate batch normalisation of one channel.  What the device stored decides whether y is above zero. */
static norm_results
formulas(const problem &p, const reader &r, unsigned c)
{
    norm_channel channel = {{}, {}, {}, (double)r.gamma[c], (double)r.beta[c], (double)EPSILON, p.s->relu};

    for (size_t q = 0; q < p.count; q++) {
        size_t at = q * r.channels + c;

        channel.x.push_back((double)p.x[q * p.s->ld + c]);
        channel.g.push_back(p.s->relu && !(r.y[at] > 0) ? 0 : (double)r.dy[at]);
        channel.counts.push_back(counts(p, q));
    }
    return normalise(channel);
}

static void
check(const problem &p)
{
    const shape &s = *p.s;
    const value_set &set = *p.set;
    /* x * scale + shift cancels if the mean is far from zero or the variance is zero. */
    double more = s.mean > 10 || p.images * s.pixels == 1 ? 20 : 3, value = fmax(set.tolerance, 2e-6) * more;
    floats gradient = download(set, p.on_gradient, p.x.size()), got, beside;
    doubles dx(p.count * s.channels[0]), mean(s.channels[0]), variance(s.channels[0]);

    for (const reader &r : p.readers) {
        doubles y(r.y.size()), dgamma, dbeta;

        for (unsigned c = 0; c < r.channels; c++) {
            norm_results w = formulas(p, r, c);

            for (size_t q = 0; q < p.count; q++) {
                y[q * r.channels + c] = w.y[q];
                dx[q * s.channels[0] + c] += w.dx[q];
            }
            dgamma.push_back(w.sum_g_xhat * UNSCALE + (s.number > 0));
            dbeta.push_back(w.sum_g * UNSCALE + (s.number > 0));
            mean[c] = w.mean;
            variance[c] = w.variance;
        }
        compare("y", y, r.y, value);
        compare("gradient of gamma", dgamma, download(r.dgamma, r.channels), 3e-6 * more);
        compare("gradient of beta", dbeta, download(r.dbeta, r.channels), 3e-6);
    }
    compare("mean", mean, download(p.mean, s.channels[0]), 3e-6);
    compare("variance", variance, download(p.variance, s.channels[0]), 2e-5);
    for (size_t i = 0; i < gradient.size(); i++)
        if (i % s.ld < s.channels[0])
            got.push_back(gradient[i]);
        else
            beside.push_back(gradient[i]);
    expect(beside == floats(beside.size(), 7), "something beside the slab's channels was written");
    if (p.images * s.pixels == 1) /* a single value has no gradient */
        expect(got == floats(got.size(), 0), "one value has a gradient");
    else
        compare("gradient of the slab", dx, got, value);
}

static void
run_readers(problem &p)
{
    to_device(p);
    for (size_t i = p.readers.size(); i-- > 0;)
        forward(p, p.readers[i]);
    for (size_t i = 0; i < p.readers.size(); i++)
        backward(p, p.readers[i], i > 0);
}

static void
run_shape(const value_set &set, const shape &s)
{
    problem p = make_problem(set, s);

    run_readers(p);
    check(p);
    release();
    finish_case(set, s.name);
}

/* A NaN affects all of its channel and no other channel. */
static void
run_nan(const value_set &set)
{
    enum { CHANNEL = 11 };
    problem p = make_problem(set, shapes[1]);
    unsigned ld = p.s->ld;

    p.x[3 * (size_t)ld + CHANNEL] = NAN;
    run_readers(p);
    floats gradient = download(set, p.on_gradient, p.x.size()), dgamma = download(p.readers[0].dgamma, ld - 16);
    for (unsigned c = 0; c < p.s->channels[0]; c++) {
        expect(isnan(dgamma[c]) == (c == CHANNEL), "gradient of gamma");
        for (size_t q = 0; q < p.count; q++) {
            bool nan = c == CHANNEL && counts(p, q);

            expect(isnan(gradient[q * ld + c]) == nan, "gradient of the slab");
            for (const reader &r : p.readers)
                expect(c >= r.channels || isnan(r.y[q * r.channels + c]) == nan, "y");
        }
    }
    release();
    finish_case(set, "a value that is no number");
}

/* Scoring: a view of running statistics, and an image of weight 0; in place. */
static void
run_scoring(const value_set &set)
{
    problem p = make_problem(set, shapes[1]);
    const reader &r = p.readers[0];
    norm_apply_args a = {};
    floats mean = random_floats(r.channels), variance = random_floats(r.channels), got;
    doubles want;

    for (float &v : variance)
        v = v * v;
    to_device(p);
    a.x = a.y = p.on_x;
    a.norm = view_of(p, p.readers[0]);
    a.norm.mean = upload(mean);
    a.norm.variance = upload(variance);
    a.weight = p.on_weight;
    a.images = p.s->images;
    a.pixels = p.s->pixels;
    a.channels = r.channels;
    a.x_ld = a.y_ld = p.s->ld;
    launch(set, CUDA_NORM_APPLY, 1, cuda_blocks(r.channels, NORM_CHANNELS), a);
    floats y = download(set, p.on_x, p.x.size());
    for (size_t i = 0; i < y.size(); i++) {
        unsigned c = (unsigned)(i % p.s->ld);

        if (c >= r.channels) {
            expect(y[i] == p.x[i], "something beside the slice was written");
            continue;
        }
        double v = ((double)p.x[i] - (double)mean[c]) / sqrt((double)variance[c] + (double)EPSILON) *
                       (double)r.gamma[c] +
                   (double)r.beta[c];

        want.push_back(!counts(p, i / p.s->ld) || v < 0 ? 0 : v);
        got.push_back(y[i]);
    }
    compare("y", want, got, fmax(set.tolerance, 2e-6));
    release();
    finish_case(set, "to score");
}

/* Two BNs of one slab, and one over a single value, which changes nothing. */
static void
run_running(const value_set &set)
{
    static const unsigned channels[] = {300, 40, 8}, pixels[] = {7, 7, 1};
    std::vector<running_entry> table;
    floats mean = random_floats(300), variance = random_floats(300), running = random_floats(1000);
    const float *on_mean = upload(mean), *on_variance = upload(variance);
    norm_running_args a = {};
    unsigned blocks = 0;
    size_t at = 20;

    for (unsigned images = 1; images <= 2; images++) {
        doubles want(running.begin(), running.end());

        at = 20;
        blocks = 0;
        table.clear();
        for (unsigned e = 0; e < 3; e++) {
            double n = images * pixels[e];

            table.push_back({on_mean, on_variance, at, at + channels[e] + 3, pixels[e], channels[e], blocks});
            blocks += cuda_blocks(channels[e], HEAD_THREADS);
            for (unsigned c = 0; c < channels[e] && n >= NORM_LEAST; c++) {
                double &m = want[at + c], &v = want[at + channels[e] + 3 + c];

                m = 0.9 * m + 0.1 * (double)mean[c];
                v = 0.9 * v + 0.1 * (double)variance[c] * n / (n - 1);
            }
            at += 2 * channels[e] + 5;
        }
        a.entry = upload(table);
        a.entries = 3;
        a.running = upload(running);
        a.block = upload(std::vector<batch_block>{{1, images, 0}});
        a.momentum = 0.1f;
        move_running(set, blocks, a);
        compare("running statistics", want, download(a.running, running.size()), 1e-6);
    }
    release();
    finish_case(set, "running statistics");
}

static void
run_all(const value_set &set)
{
    for (const shape &s : shapes)
        if (s.small || !small_shapes)
            run_shape(set, s);
    run_nan(set);
    run_scoring(set);
    run_running(set);
}

int
main(int argc, char **argv)
{
    return run_program(argc, argv, run_all);
}
