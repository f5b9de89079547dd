/*
 * one_pass_kernels.cc - compares conv_one_pass (dgrad and wgrad of a pointwise convolution in one pass) with plain
 * loops in double
 *
 *     one_pass_kernels [small]
 *
 * Tests each tile, with the gradient of y final, or finalized by given statistics, by partial sums, or by both; x with
 * and without a BN, and at the end of a block with another BN and a mean over windows or over all pixels; images of
 * weight 0, which are filled with NaN.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernel_fixture.h"

#include <math.h>
#include <stdio.h>

static const struct shape {
    const char *name;
    unsigned images, height, width, in, out;
    unsigned x_more, y_more; /* channels of the slabs outside the slice */
    unsigned rows;           /* rows of partial sums of the last consumer of y */
    bool relu, small;
} shapes[] = {
    {"96 to 128, several CTAs", 4, 9, 11, 96, 128, 0, 0, 33, true, false},
    {"160 to 128, slices of slabs", 3, 8, 8, 160, 128, 64, 32, 7, true, false},
    {"136 to 24, no multiples of a tile", 2, 5, 7, 136, 24, 16, 16, 132, true, false},
    {"40 to 72, no ReLU", 3, 7, 6, 40, 72, 0, 16, 264, false, false},
    {"64 to 16, one tile", 2, 4, 8, 64, 16, 32, 0, 1, true, true},
    {"8 to 8, two pixels more than a tile", 3, 2, 11, 8, 8, 0, 0, 2, true, true},
};
static const float EPSILON = 1e-3f;
static const double UNSCALE = 0.25;

/* The state of the gradient of y. */
enum finalize_kind { PLAIN, GIVEN, LEFT, GIVEN_AND_LEFT };
/* The further consumer of x. */
enum end_kind { NO_END, OF_WINDOWS, OF_ALL };
/* The other parameters of a launch. */
struct wish {
    finalize_kind finalize;
    bool norm, sums, add, weighted;
    unsigned number; /* of the micro-batch */
    end_kind end;
};

struct problem {
    const shape *s;
    wish ask;
    unsigned pixels, x_ld, y_ld, values_ld, counted;
    floats x, before, a, z, w, weight;
    floats gamma, beta, mean, variance;                          /* of x */
    floats y_gamma, y_mean, y_variance, by_beta, by_gamma, left; /* of y */
    floats dgamma, dbeta;                                        /* before the launch */
    one_pass_end means;                                          /* shapes of the end */
    floats end_gamma, end_beta, end_dy;                          /* of the end */
    doubles dy, seen, g, end_g;                                  /* [pixels][channels] */
    std::vector<bool> through;                                   /* does g pass the ReLU mask? */
};

static bool
counts(const problem &p, size_t pixel)
{
    return !p.ask.weighted || p.weight[pixel / (p.s->height * p.s->width)] != 0.0f;
}

static double
inverse_of(double variance)
{
    return 1 / sqrt(variance + (double)EPSILON);
}

/* Makes a slab whose images of weight 0 must not be used. */
static floats
slab(const value_set &set, const problem &p, unsigned ld)
{
    floats v = random_values(set, (size_t)p.pixels * ld);

    for (size_t i = 0; i < v.size(); i++)
        v[i] = counts(p, i / ld) ? v[i] : NAN;
    return v;
}

/* Returns the sum of a channel over the rows of partial sums. */
static double
left_sum(const problem &p, unsigned which, unsigned channel)
{
    double sum = 0;

    for (unsigned row = 0; row < p.s->rows; row++)
        sum += (double)p.left[(row * 2 + which) * p.s->out + channel];
    return sum;
}

static double
finished(const problem &p, size_t pixel, unsigned o)
{
    double a = (double)p.a[pixel * p.y_ld + p.s->y_more / 2 + o], beta = 0, gamma = 0, inverse, share;

    if (!counts(p, pixel))
        return 0;
    if (p.ask.finalize == PLAIN)
        return a;
    if (p.ask.finalize != LEFT) {
        beta = (double)p.by_beta[o];
        gamma = (double)p.by_gamma[o];
    }
    if (p.ask.finalize != GIVEN) {
        share = (double)p.y_gamma[o] / ((double)p.counted * p.s->height * p.s->width);
        beta += left_sum(p, 0, o) * share;
        gamma += left_sum(p, 1, o) * share;
    }
    inverse = inverse_of((double)p.y_variance[o]);
    return inverse * (a - beta - ((double)p.z[pixel * p.values_ld + o] - (double)p.y_mean[o]) * inverse * gamma);
}

static double
x_at(const problem &p, size_t pixel, unsigned channel)
{
    return (double)p.x[pixel * p.x_ld + p.s->x_more / 2 + channel];
}

static double
norm_of(const problem &p, size_t pixel, unsigned c)
{
    return (x_at(p, pixel, c) - (double)p.mean[c]) * inverse_of((double)p.variance[c]);
}

/* Returns the gradient of the means that flows to x, under the mask of the BN in front of them. */
static double
end_of(const problem &p, size_t pixel, unsigned c)
{
    const one_pass_end &e = p.means;
    unsigned size = p.s->height * p.s->width, at = pixel % size, y, x;
    size_t mean;

    if (p.ask.end == NO_END)
        return 0;
    y = at / p.s->width / e.down;
    x = at % p.s->width / e.across;
    mean = (pixel / size * e.height + y) * e.width + x;
    if (!counts(p, pixel) || y >= e.height || x >= e.width)
        return 0;
    if (e.relu && !(norm_of(p, pixel, c) * (double)p.end_gamma[c] + (double)p.end_beta[c] > 0))
        return 0;
    return (double)p.end_dy[mean * e.dy_ld + c] / (e.down * e.across);
}

/* Computes the expected results in double, rounded where the kernel stores intermediate values. */
static void
sum_up(const value_set &set, problem &p)
{
    const shape &s = *p.s;

    for (size_t pixel = 0; pixel < p.pixels; pixel++) {
        for (unsigned o = 0; o < s.out; o++)
            p.dy.push_back((double)operand(set, rounded(set, (float)finished(p, pixel, o))));
        for (unsigned i = 0; i < s.in; i++) {
            double y = !counts(p, pixel) ? 0
                       : p.ask.norm      ? norm_of(p, pixel, i) * (double)p.gamma[i] + (double)p.beta[i]
                                         : x_at(p, pixel, i);
            bool masked = p.ask.norm && s.relu && !(y > 0);
            double g = 0;

            for (unsigned o = 0; o < s.out; o++)
                g += p.dy[pixel * s.out + o] * (double)operand(set, p.w[o * s.in + i]);
            p.seen.push_back((double)operand(set, rounded(set, (float)(masked ? 0 : y))));
            p.g.push_back(masked || !counts(p, pixel) ? 0 : (double)rounded(set, (float)g));
            p.end_g.push_back(end_of(p, pixel, i));
        }
    }
}

static void
make_end(const value_set &set, problem &p)
{
    one_pass_end &e = p.means;

    e.down = p.ask.end == OF_ALL ? p.s->height : 2;
    e.across = p.ask.end == OF_ALL ? p.s->width : 2;
    e.height = p.s->height / e.down;
    e.width = p.s->width / e.across;
    e.dy_ld = p.s->in + 8;
    e.relu = p.ask.weighted;
    p.end_gamma = random_floats(p.s->in);
    p.end_beta = random_floats(p.s->in);
    p.end_dy = random_values(set, (size_t)p.s->images * e.height * e.width * e.dy_ld);
    for (size_t i = 0; p.ask.weighted && i < p.end_dy.size(); i++)
        if (p.weight[i / ((size_t)e.height * e.width * e.dy_ld)] == 0.0f)
            p.end_dy[i] = NAN;
}

static problem
make_problem(const value_set &set, const shape &s, const wish &ask)
{
    problem p = {};

    p.s = &s;
    p.ask = ask;
    p.pixels = s.images * s.height * s.width;
    p.x_ld = s.in + s.x_more;
    p.y_ld = s.out + s.y_more;
    p.values_ld = s.out + 8;
    p.weight = floats(s.images, 0.5f);
    p.weight[s.images / 2] = 0;
    p.counted = s.images - ask.weighted;
    p.x = slab(set, p, p.x_ld);
    p.a = slab(set, p, p.y_ld);
    p.z = slab(set, p, p.values_ld);
    p.before = random_values(set, (size_t)p.pixels * p.x_ld);
    p.w = random_values(set, (size_t)s.out * s.in);
    p.gamma = random_floats(s.in);
    p.beta = random_floats(s.in);
    p.gamma.back() = 1e-9f; /* the ReLU mask is that of values that fp16 rounds to 0 */
    p.beta.back() = 0;
    p.mean = random_floats(s.in);
    p.variance = random_variances(s.in);
    p.y_gamma = random_floats(s.out);
    p.y_mean = random_floats(s.out);
    p.y_variance = random_variances(s.out);
    p.by_beta = random_floats(s.out);
    p.by_gamma = random_floats(s.out);
    p.left = random_floats((size_t)s.rows * 2 * s.out);
    for (float &f : p.left)
        f *= (float)(p.pixels / s.rows + 1);
    p.dgamma = floats(s.out, ask.number > 0 ? 3 : NAN);
    p.dbeta = floats(s.out, ask.number > 0 ? 3 : NAN);
    if (ask.end != NO_END)
        make_end(set, p);
    sum_up(set, p);
    return p;
}

/* ---- a launch ---------------------------------------------------------------------------------------------------- */

static cuda_one_pass
shape_of(const value_set &set, const problem &p)
{
    const shape &s = *p.s;
    cuda_one_pass b = {};

    b.args.dgrad.shape = conv_shape_of(s.images, s.height, s.width, s.in, s.out, 1, 1, 0);
    b.args.dgrad.shape.x_ld = p.x_ld;
    b.args.dgrad.shape.y_ld = p.y_ld;
    b.args.dgrad.add = p.ask.add;
    if (p.ask.finalize != PLAIN)
        b.args.finalize.values_ld = p.values_ld;
    b.args.end = p.means;
    b.value_bytes = value_bytes(set);
    return b;
}

static void
put_in_finalize(const value_set &set, const problem &p, finalize_view &f)
{
    step_state state = {};

    state.unscale = (float)UNSCALE;
    f.values = upload(set, p.z);
    f.mean = upload(p.y_mean);
    f.variance = upload(p.y_variance);
    f.block = upload(std::vector<batch_block>{{1, p.counted, p.ask.number}});
    f.epsilon = EPSILON;
    if (p.ask.finalize != LEFT) {
        f.by_beta = upload(p.by_beta);
        f.by_gamma = upload(p.by_gamma);
    }
    if (p.ask.finalize == GIVEN)
        return;
    f.sums = {upload(p.left), NULL, p.s->rows, p.s->out};
    f.gamma = upload(p.y_gamma);
    f.dgamma = upload(p.dgamma);
    f.dbeta = upload(p.dbeta);
    f.state = upload(std::vector<step_state>{state});
}

static void
put_in_end(const value_set &set, const problem &p, const cuda_one_pass &b, one_pass_end &e)
{
    e.dy = upload(set, p.end_dy);
    e.gamma = upload(p.end_gamma);
    e.beta = upload(p.end_beta);
    e.sums = {room((size_t)b.ctas * 2 * p.s->in), NULL, b.ctas, p.s->in};
}

/* Uploads the inputs of a launch. */
static void
put_in(const value_set &set, const problem &p, cuda_one_pass &b)
{
    dgrad_args &a = b.args.dgrad;
    size_t x_first = p.s->x_more / 2 * b.value_bytes;

    a.dx = (char *)upload(set, p.before) + x_first;
    a.x = (char *)upload(set, p.x) + x_first;
    a.dy = (char *)upload(set, p.a) + p.s->y_more / 2 * b.value_bytes;
    a.w = upload(set, p.w);
    b.args.partial = room(partial_set(set, b.ctas), cuda_one_pass_partial(&b));
    if (p.ask.weighted)
        a.weight = upload(p.weight);
    if (p.ask.finalize != PLAIN)
        put_in_finalize(set, p, b.args.finalize);
    if (p.ask.end != NO_END)
        put_in_end(set, p, b, b.args.end);
    if (!p.ask.norm)
        return;
    a.norm = upload_view(p.mean, p.variance, p.gamma, p.beta);
    a.norm.pixels = p.s->height * p.s->width;
    a.norm.relu = p.s->relu;
    a.norm.epsilon = EPSILON;
    if (p.ask.sums)
        a.sums = {room((size_t)b.ctas * 2 * p.s->in), NULL, b.ctas, p.s->in};
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

/* Returns the slice of the gradient of x; the rest of the slab must be unchanged. */
static floats
check_data(const value_set &set, const problem &p, const cuda_one_pass &b, const char *what)
{
    unsigned first = p.s->x_more / 2;
    floats all = download(set, (char *)b.args.dgrad.dx - first * b.value_bytes, p.before.size()), slice;
    doubles want;

    for (size_t i = 0; i < all.size(); i++) {
        size_t pixel = i / p.x_ld, channel = i % p.x_ld - first;

        if (i % p.x_ld < first || channel >= p.s->in) {
            expect(all[i] == p.before[i], what);
            continue;
        }
        slice.push_back(all[i]);
        want.push_back((p.ask.norm ? (double)p.gamma[channel] : 1) * p.g[pixel * p.s->in + channel] +
                       (p.ask.end ? (double)p.end_gamma[channel] * p.end_g[pixel * p.s->in + channel] : 0) +
                       (p.ask.add ? (double)p.before[i] : 0));
    }
    compare(what, want, slice, set.tolerance);
    return slice;
}

static floats
check_sums(const value_set &set, const problem &p, const cuda_one_pass &b, const channel_sums &sums, const doubles &g,
           const char *what)
{
    unsigned in = p.s->in, each = b.args.dgrad.tiles_each * ONE_PASS_PIXELS;
    doubles want((size_t)b.ctas * 2 * in);

    for (size_t pixel = 0; pixel < p.pixels; pixel++)
        for (unsigned i = 0; i < in && counts(p, pixel); i++) {
            want[pixel / each * 2 * in + i] += g[pixel * in + i];
            want[(pixel / each * 2 + 1) * in + i] += g[pixel * in + i] * norm_of(p, pixel, i);
        }
    floats got = download(sums.partial, want.size());
    compare(what, want, got, set.tolerance);
    return got;
}

static floats
check_weights(const value_set &set, const problem &p, const cuda_one_pass &b, const char *what)
{
    unsigned in = p.s->in, out = p.s->out, each = b.args.dgrad.tiles_each * ONE_PASS_PIXELS;
    doubles want(cuda_one_pass_partial(&b));

    for (size_t pixel = 0; pixel < p.pixels; pixel++)
        for (unsigned o = 0; o < out; o++)
            for (unsigned i = 0; i < in; i++)
                want[(pixel / each * out + o) * in + i] += p.dy[pixel * out + o] * p.seen[pixel * in + i];
    floats got = download(partial_set(set, b.ctas), b.args.partial, want.size());
    /* a value halfway between two halves may be rounded differently than from double or from float */
    compare(what, want, got, set.kind == VALUE_FLOAT ? set.sums : partial_error(set, b.ctas, set.tolerance));
    return got;
}

static void
check_parameters(const problem &p, const cuda_one_pass &b, const char *what)
{
    doubles dbeta, dgamma;

    for (unsigned o = 0; o < p.s->out; o++) {
        dbeta.push_back(left_sum(p, 0, o) * UNSCALE + (p.ask.number > 0 ? 3 : 0));
        dgamma.push_back(left_sum(p, 1, o) * UNSCALE + (p.ask.number > 0 ? 3 : 0));
    }
    compare(what, dbeta, download(b.args.finalize.dbeta, p.s->out), 1e-6);
    compare(what, dgamma, download(b.args.finalize.dgamma, p.s->out), 1e-6);
}

/* ---- cases ------------------------------------------------------------------------------------------------------- */

static const bool with_end[] = {
#define WITH_END(shape, columns, blocks, end) end,
    ONE_PASS_SHAPES(WITH_END)};

/* Launches a tile, with one or two stages. */
static void
try_tile(const value_set &set, const problem &p, unsigned tile, unsigned processors, unsigned stages)
{
    cuda_one_pass b = shape_of(set, p);
    floats got[2][4];
    char what[200];

    if (with_end[tile] != (p.ask.end != NO_END))
        return;
    /* too little memory for a second stage */
    b.shared = stages == 1 ? (unsigned)set.kernels[CUDA_CONV_ONE_PASS_64x64 + tile].shared : 0;
    expect(cuda_one_pass_fits(&b) && cuda_one_pass_take(&b, tile, processors), "a tile shape that has no room");
    if (b.args.stages != stages && value_bytes(set) == 4 &&
        tile > 0) /* no device has enough memory for a second stage */
        return;
    b.args.stages = stages;
    snprintf(what, sizeof(what), "%s, %s: tile %u, %u stages, %u CTAs, finalize %d, end %d%s%s%s%s", set.name,
             p.s->name, tile, b.args.stages, b.ctas, p.ask.finalize, p.ask.end, p.ask.norm ? ", norm" : "",
             p.ask.sums ? ", sums" : "", p.ask.add ? ", add" : "", p.ask.weighted ? ", weighted" : "");
    for (unsigned run = 0; run < 2; run++) {
        put_in(set, p, b);
        expect(cuda_one_pass_fits(&b), "a shape that kernels do not take");
        cuda_op op = cuda_one_pass_op(&b);
        MUST(cuda_launch(set.kernels, &op, stream));
        got[run][0] = check_data(set, p, b, what);
        got[run][1] = check_weights(set, p, b, what);
        if (b.args.dgrad.sums.partial)
            got[run][2] = check_sums(set, p, b, b.args.dgrad.sums, p.g, what);
        if (p.ask.end != NO_END)
            got[run][3] = check_sums(set, p, b, b.args.end.sums, p.end_g, what);
        if (p.ask.finalize >= LEFT)
            check_parameters(p, b, what);
        release();
        if (small_shapes)
            return;
    }
    for (unsigned i = 0; i < 4; i++)
        expect(got[0][i] == got[1][i], "the same bits");
}

static void
tile_shapes_agree(const value_set &set)
{
    static const wish wishes[] = {
        {LEFT, true, true, true, true, 0, NO_END},
        {LEFT, true, true, false, false, 1, NO_END},
        {GIVEN, true, true, true, true, 0, NO_END},
        {GIVEN_AND_LEFT, false, false, false, true, 2, NO_END},
        {GIVEN_AND_LEFT, true, false, true, true, 0, NO_END},
        {PLAIN, true, true, true, true, 0, NO_END},
        {PLAIN, false, false, true, false, 0, NO_END},
        {LEFT, true, true, false, true, 0, OF_WINDOWS},
        {GIVEN_AND_LEFT, true, true, false, false, 1, OF_WINDOWS},
        {LEFT, true, true, false, true, 0, OF_ALL},
        {PLAIN, true, true, false, false, 0, OF_ALL},
    };

    for (const shape &s : shapes) {
        if (small_shapes && !s.small)
            continue;
        for (const wish &ask : wishes) {
            problem p = make_problem(set, s, ask);

            for (unsigned tile = 0; tile < ONE_PASS_SHAPE_COUNT; tile++) {
                try_tile(set, p, tile, 1, 1);
                try_tile(set, p, tile, 132, 2);
            }
        }
        finish_case(set, s.name);
    }
}

/* A single value has no gradient, whatever A contains. */
static void
one_value(const value_set &set)
{
    static const shape s = {"one value", 2, 1, 1, 16, 8, 0, 0, 3, true, true};
    problem p = make_problem(set, s, {LEFT, true, true, true, true, 0, NO_END});
    cuda_one_pass b = shape_of(set, p);

    expect(p.counted == 1 && cuda_one_pass_take(&b, 0, 1), "one image of one pixel");
    put_in(set, p, b);
    cuda_op op = cuda_one_pass_op(&b);
    MUST(cuda_launch(set.kernels, &op, stream));
    expect(download(set, b.args.dgrad.dx, p.before.size()) == p.before, "x has the gradient that it had");
    floats partial = download(partial_set(set, b.ctas), b.args.partial, cuda_one_pass_partial(&b));
    expect(partial == floats(cuda_one_pass_partial(&b), 0.0f), "no gradient of weights");
    check_parameters(p, b, "one value");
    release();
    finish_case(set, "one value");
}

static void
run_all(const value_set &set)
{
    tile_shapes_agree(set);
    one_value(set);
}

int
main(int argc, char **argv)
{
    return run_program(argc, argv, run_all);
}
