/*
 * fused_kernels.cc - compares convolutions with a prologue or an epilogue (train/cuda/) with plain loops in double
 *
 *     fused_kernels [small]
 *
 * fprop: BN of x, partial sums of y.  dgrad: ReLU mask, partial sums, accumulation into A.  wgrad: BN of x.  Each tile
 * shape is tested with statistics and with fresh partial sums, and with images of weight 0.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernel_fixture.h"

#include <algorithm>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define STEM_SIDE 11
static const float EPSILON = 1e-3f;

static const struct shape {
    const char *name;
    unsigned images, height, width, in, out, kernel, stride, pad;
    unsigned x_more, y_more; /* channels of the slabs outside the slice */
    unsigned fresh_first, fresh;
    bool relu, small;
} shapes[] = {
    {"1x1 64 to 128, two tiles of pixels", 3, 9, 7, 64, 128, 1, 1, 0, 0, 0, 32, 32, true, false},
    {"1x1 96 to 128, slices of slabs", 3, 7, 7, 96, 128, 1, 1, 0, 64, 32, 64, 32, true, false},
    {"1x1 136 to 24, no multiples of a tile", 2, 5, 5, 136, 24, 1, 1, 0, 16, 16, 88, 48, true, false},
    {"1x1 40 to 24, no ReLU", 3, 3, 5, 40, 24, 1, 1, 0, 0, 0, 8, 32, false, true},
    {"1x1 8 to 8, three pixels", 3, 1, 1, 8, 8, 1, 1, 0, 0, 0, 0, 8, true, true},
    {"1x1 64 to 136, stride 2", 2, 6, 7, 64, 136, 1, 2, 0, 0, 0, 0, 64, true, false},
    {"3x3 128 to 32, pad 1", 2, 7, 7, 128, 32, 3, 1, 1, 0, 224, 0, 128, true, false},
    {"3x3 64 to 16, pad 1, slices", 2, 8, 5, 64, 16, 3, 1, 1, 16, 32, 40, 24, true, false},
    {"3x3 72 to 32, pad 1, several tiles", 5, 11, 13, 72, 32, 3, 1, 1, 16, 32, 8, 40, true, false},
    {"3x3 24 to 32, pad 1, two rows", 3, 2, 5, 24, 32, 3, 1, 1, 16, 16, 8, 16, true, true},
    {"3x3 16 to 40, stride 2, pad 1", 3, 5, 6, 16, 40, 3, 2, 1, 0, 16, 8, 8, true, true},
    {"3x3 24 to 40, pad 1", 3, 4, 5, 24, 40, 3, 1, 1, 16, 16, 8, 16, true, true},
    {"3x3 48 to 72, pad 1, no ReLU", 2, 5, 6, 48, 72, 3, 1, 1, 0, 0, 0, 40, false, false},
    {"5x5 8 to 24, stride 2, pad 2", 2, 9, 7, 8, 24, 5, 2, 2, 0, 0, 0, 8, true, false},
    {"the stem", 3, STEM_ROWS(STEM_SIDE), STEM_COLUMNS(STEM_SIDE), STEM_IN, 64, 0, 1, 2, 0, 0, 0, 0, false, true},
};

/* Returns the rows of C per row of partial sums. */
static unsigned
rows_of(const cuda_conv &c)
{
    cuda_op op = cuda_conv_op(&c);

    return cuda_products_of(&op).shape.rows * (c.kind == CONV_FPROP ? c.fprop.tiles_each : c.dgrad.tiles_each);
}

/* The parameters of a launch other than the product. */
struct wish {
    bool norm, fresh, sums, add, all_count; /* all_count: all images have weight 1 */
    bool split = false;                     /* wgrad in two */
};

struct problem {
    const shape *s;
    conv_shape a;
    floats x, a_before, y, w; /* slabs; a_before: the gradient that dgrad accumulates into; y is read as a gradient */
    floats weight;            /* of images */
    floats gamma, beta, mean, variance, pivot;
    floats partial; /* [blocks][2][fresh] */
    unsigned blocks;
    doubles seen;                /* x, or its BN output, [pixels][in] */
    doubles fprop, dgrad, wgrad; /* slices */
};

static double
x_at(const problem &p, size_t pixel, unsigned channel)
{
    return (double)p.x[pixel * p.a.x_ld + p.s->x_more / 2 + channel];
}

static double
norm_of(const problem &p, size_t pixel, unsigned c)
{
    return (x_at(p, pixel, c) - (double)p.mean[c]) / sqrt((double)p.variance[c] + (double)EPSILON);
}

static double
affine_of(const problem &p, size_t pixel, unsigned c)
{
    return norm_of(p, pixel, c) * (double)p.gamma[c] + (double)p.beta[c];
}

static void
sum_up(const value_set &set, problem &p, bool norm)
{
    const conv_shape &a = p.a;
    unsigned taps = a.kernel_h * a.kernel_w;
    bool stem = a.in > a.x_ld;

    for (size_t from = 0; from < (size_t)a.images * a.height * a.width && !stem; from++)
        for (unsigned i = 0; i < a.in; i++) {
            double y = norm ? affine_of(p, from, i) : x_at(p, from, i);

            y = !norm ? y : (double)rounded(set, (float)(p.s->relu && y < 0 ? 0 : y));
            p.seen.push_back((double)operand(set, (float)y));
        }
    each_tap(a, [&](size_t to, size_t from, unsigned tap) {
        for (unsigned o = 0; o < a.out; o++)
            for (unsigned i = 0; i < a.in; i++) {
                size_t weight = ((size_t)o * taps + tap) * a.in + i;
                double w = (double)operand(set, p.w[weight]);
                double x = stem ? (double)operand(set, (float)x_at(p, from, i)) : p.seen[from * a.in + i];
                double y = (double)operand(set, p.y[to * a.y_ld + p.s->y_more / 2 + o]);

                p.fprop[to * a.out + o] += w * x;
                if (!stem)
                    p.dgrad[from * a.in + i] += w * y;
                p.wgrad[weight] += x * y;
            }
    });
}

/* Makes partial sums of the fresh channels, in some number of rows, and the resulting statistics. */
static void
make_fresh(problem &p)
{
    const shape &s = *p.s;
    double count = 0, each;

    for (float w : p.weight)
        count += w != 0.0f ? s.height * s.width : 0;
    p.blocks = 1 + random_below(21);
    each = count / p.blocks;
    p.partial = random_floats(2 * p.blocks * s.fresh);
    p.pivot = random_pivots(s.fresh);
    for (unsigned c = 0; c < s.fresh; c++) {
        double sum = 0, squares = 0;

        for (unsigned b = 0; b < p.blocks; b++) {
            float *first = &p.partial[2 * b * s.fresh + c], *second = first + s.fresh;

            *first = (float)((double)*first * 0.3 * each);
            *second = (float)((1 + 0.5 * (double)*second) * each);
            sum += (double)*first;
            squares += (double)*second;
        }
        p.mean[s.fresh_first + c] = (float)((double)p.pivot[c] + sum / count);
        p.variance[s.fresh_first + c] = (float)(squares / count - sum / count * (sum / count));
    }
}

static problem
make_problem(const value_set &set, const shape &s, bool norm)
{
    problem p = {};
    conv_shape &a = p.a;
    size_t inputs = (size_t)s.images * s.height * s.width;

    p.s = &s;
    a = s.kernel ? conv_shape_of(s.images, s.height, s.width, s.in, s.out, s.kernel, s.stride, s.pad)
                 : stem_shape_of(s.images, STEM_SIDE, s.out);
    a.x_ld += s.x_more;
    a.y_ld += s.y_more;
    p.x = random_values(set, inputs * a.x_ld);
    p.a_before = random_values(set, inputs * a.x_ld);
    p.y = random_values(set, (size_t)a.images * a.out_height * a.out_width * a.y_ld);
    p.w = random_values(set, (size_t)a.out * a.in * a.kernel_h * a.kernel_w);
    p.weight = random_floats(a.images);
    p.weight[a.images / 2] = 0;
    p.gamma = random_floats(a.in);
    p.beta = random_floats(a.in);
    p.mean = random_floats(a.in);
    p.variance = random_variances(a.in);
    if (s.fresh > 0)
        make_fresh(p);
    p.fprop.resize((size_t)a.images * a.out_height * a.out_width * a.out);
    p.dgrad.resize(inputs * a.in);
    p.wgrad.resize(p.w.size());
    sum_up(set, p, norm);
    return p;
}

/* Fresh channels have no statistics yet: NaN. */
static norm_view
view_of(const problem &p, bool fresh)
{
    floats mean = p.mean, variance = p.variance;
    unsigned counted = 0;

    for (float w : p.weight)
        counted += w != 0.0f;
    for (unsigned c = 0; fresh && c < p.s->fresh; c++)
        mean[p.s->fresh_first + c] = variance[p.s->fresh_first + c] = NAN;
    norm_view v = upload_view(mean, variance, p.gamma, p.beta);
    v.epsilon = EPSILON;
    v.relu = p.s->relu;
    v.pixels = p.s->height * p.s->width;
    v.block = upload(std::vector<batch_block>{{1, counted, 0}});
    if (fresh)
        v.fresh = {upload(p.partial), upload_pivots(p.pivot), p.blocks, p.s->fresh};
    v.fresh_first = p.s->fresh_first;
    return v;
}

/* Returns the sums of two terms of each channel over the rows of each CTA: [CTAs][2][channels]. */
template <typename F>
static doubles
sums_of(const problem &p, unsigned each, size_t rows, unsigned pixels, unsigned channels, bool all_count, F terms)
{
    doubles sums((rows + each - 1) / each * 2 * channels);

    for (size_t row = 0; row < rows; row++)
        for (unsigned c = 0; c < channels && (all_count || p.weight[row / pixels] != 0.0f); c++) {
            double first, second;

            terms(row, c, first, second);
            sums[row / each * 2 * channels + c] += first;
            sums[(row / each * 2 + 1) * channels + c] += second;
        }
    return sums;
}

static void
check_fprop(const value_set &set, const problem &p, const cuda_conv &c, const floats &y, const floats &pivot,
            const wish &wish, const char *what)
{
    const conv_shape &a = p.a;
    size_t rows = (size_t)a.images * a.out_height * a.out_width;
    floats out = slice_of(y, p.y, a.y_ld, a.out, what);

    compare(what, p.fprop, out, set.tolerance);
    if (!wish.sums)
        return;
    doubles want = sums_of(p, rows_of(c), rows, a.out_height * a.out_width, a.out, wish.all_count,
                           [&](size_t row, unsigned o, double &first, double &second) {
                               first = (double)out[row * a.out + o] - (double)pivot[o];
                               second = first * first;
                           });
    compare(what, want, download(c.fprop.sums.partial, want.size()), 1e-6);
}

static void
check_dgrad(const value_set &set, const problem &p, const cuda_conv &c, const floats &x, const wish &wish,
            const char *what)
{
    const conv_shape &a = p.a;
    size_t rows = (size_t)a.images * a.height * a.width;
    doubles g(rows * a.in), want(rows * a.in);

    for (size_t i = 0; i < g.size(); i++) {
        size_t at = i / a.in * a.x_ld + p.s->x_more / 2 + i % a.in;

        g[i] = p.s->relu && !(affine_of(p, i / a.in, i % a.in) > 0) ? 0 : (double)rounded(set, (float)p.dgrad[i]);
        want[i] = (double)p.gamma[i % a.in] * g[i] + (wish.add ? (double)p.a_before[at] : 0);
    }
    compare(what, want, slice_of(x, p.a_before, a.x_ld, a.in, what), set.tolerance);
    if (!wish.sums)
        return;
    want = sums_of(p, rows_of(c), rows, a.height * a.width, a.in, wish.all_count,
                   [&](size_t row, unsigned i, double &first, double &second) {
                       first = g[row * a.in + i];
                       second = first * norm_of(p, row, i);
                   });
    compare(what, want, download(c.dgrad.sums.partial, want.size()), set.tolerance);
}

static void
check_wgrad(const value_set &set, const problem &p, const cuda_conv &c, const char *what)
{
    floats partial = download(partial_set(set, c.splits), c.wgrad.partial, cuda_conv_partial(&c));
    floats sum(p.wgrad.size());

    for (size_t i = 0; i < partial.size(); i++)
        sum[i % sum.size()] += partial[i];
    /* a value halfway between two halves may be rounded differently than from double or from float */
    compare(what, p.wgrad, sum,
            set.kind == VALUE_FLOAT  ? set.sums
            : set.kind == VALUE_TF32 ? set.tolerance
                                     : partial_error(set, c.splits, set.tolerance / 10));
}

static channel_sums
room_for_sums(const cuda_conv &c, unsigned channels, const float *running_mean)
{
    unsigned blocks = cuda_conv_op(&c).x;

    return {room((size_t)blocks * 2 * channels), running_mean, blocks, channels};
}

/* Uploads the inputs of a launch. */
static void
put_in(const value_set &set, const problem &p, cuda_conv &c, const wish &wish, const floats &pivot)
{
    size_t bytes = value_bytes(set), x_first = p.s->x_more / 2 * bytes;
    const norm_view norm = wish.norm ? view_of(p, wish.fresh) : norm_view{};
    const float *weight = wish.all_count ? NULL : upload(p.weight);

    set_operands(c, (char *)upload(set, c.kind == CONV_DGRAD ? p.a_before : p.x) + x_first, upload(set, p.w),
                 (char *)upload(set, p.y) + p.s->y_more / 2 * bytes);
    switch (c.kind) {
    case CONV_FPROP:
        c.fprop.norm = norm;
        c.fprop.weight = weight;
        if (wish.sums)
            c.fprop.sums = room_for_sums(c, p.a.out, upload_pivots(pivot));
        break;
    case CONV_DGRAD:
        c.dgrad.norm = norm;
        c.dgrad.weight = weight;
        c.dgrad.add = wish.add;
        c.dgrad.x = (char *)upload(set, p.x) + x_first;
        if (wish.sums)
            c.dgrad.sums = room_for_sums(c, p.a.in, NULL);
        break;
    case CONV_WGRAD:
        c.wgrad.norm = norm;
        set_partial(set, c);
        break;
    }
    expect(cuda_conv_fits(&c), "a shape that kernels do not take");
}

/* Returns the slab that it wrote. */
static floats
slab_of(const value_set &set, const problem &p, const cuda_conv &c)
{
    size_t bytes = value_bytes(set);

    return c.kind == CONV_FPROP ? download(set, (char *)c.fprop.y - p.s->y_more / 2 * bytes, p.y.size())
                                : download(set, (char *)c.dgrad.dx - p.s->x_more / 2 * bytes, p.x.size());
}

/* Runs one tile shape of one kind. */
static void
try_tile(const value_set &set, const problem &p, conv_kind kind, unsigned tile, unsigned processors, const wish &wish)
{
    cuda_conv c = conv_of(kind, p.a);
    floats pivot = random_pivots(p.a.out);
    char what[200];

    snprintf(what, sizeof(what), "%s, %s: kind %d, tile %u, %u processors%s%s%s%s%s", set.name, p.s->name, kind, tile,
             processors, wish.norm ? ", norm" : "", wish.fresh ? ", fresh" : "", wish.sums ? ", sums" : "",
             wish.add ? ", add" : "", wish.all_count ? ", all" : "");
    cuda_conv_take(&c, tile, processors);
    if (wish.split)
        split_in_two(c);
    put_in(set, p, c, wish, pivot);
    cuda_op op = cuda_conv_op(&c);
    MUST(cuda_launch(set.kernels, &op, stream));
    if (kind == CONV_FPROP)
        check_fprop(set, p, c, slab_of(set, p, c), pivot, wish, what);
    else if (kind == CONV_DGRAD)
        check_dgrad(set, p, c, slab_of(set, p, c), wish, what);
    else
        check_wgrad(set, p, c, what);
    if (wish.norm) {
        compare(what, doubles(p.mean.begin(), p.mean.end()), download(cuda_conv_norm(&c)->mean, p.a.in), 1e-7);
        compare(what, doubles(p.variance.begin(), p.variance.end()), download(cuda_conv_norm(&c)->variance, p.a.in),
                1e-7);
    }
    release();
}

/* dgrad and wgrad in one launch must give the bits of two launches, and wgrad with a BN the sums in double. */
static void
try_pair(const value_set &set, const problem &p, unsigned tile, unsigned processors, bool norm, bool split)
{
    cuda_conv_pair pair = {conv_of(CONV_DGRAD, p.a), conv_of(CONV_WGRAD, p.a), 0};
    floats got[2][3];

    cuda_conv_pair_take(&pair, tile, processors);
    if (split)
        split_in_two(pair.wgrad);
    for (unsigned launches = 1; launches <= 2; launches++) {
        cuda_conv dgrad = pair.dgrad, wgrad = pair.wgrad;
        floats *out = got[launches - 1];

        put_in(set, p, dgrad, {norm, norm, norm, true, false}, {});
        put_in(set, p, wgrad, {norm, norm, false, false, false}, {});
        cuda_conv_pair placed = {dgrad, wgrad, pair.tile_pair};
        cuda_op ops[] = {launches == 1 ? cuda_conv_pair_op(&placed) : cuda_conv_op(&dgrad), cuda_conv_op(&wgrad)};

        for (unsigned i = 0; i < launches; i++)
            MUST(cuda_launch(set.kernels, &ops[i], stream));
        out[0] = slab_of(set, p, dgrad);
        out[1] = download(partial_set(set, wgrad.splits), wgrad.wgrad.partial, cuda_conv_partial(&wgrad));
        if (norm) {
            out[2] = download(dgrad.dgrad.sums.partial, (size_t)dgrad.dgrad.sums.blocks * 2 * p.a.in);
            check_wgrad(set, p, wgrad, "wgrad of a pair");
        }
        release();
    }
    for (unsigned i = 0; i < 3; i++)
        expect(got[0][i] == got[1][i], "one launch, and two");
}

static unsigned
pairs_of(const problem &p)
{
    cuda_conv_pair pair = {conv_of(CONV_DGRAD, p.a), conv_of(CONV_WGRAD, p.a), 0};

    return cuda_conv_pair_shapes(&pair);
}

static void
try_kinds(const value_set &set, const problem &p, const problem &plain, unsigned tile)
{
    static const bool both[] = {false, true};

    if (tile < tile_shapes_of(p.a, CONV_FPROP))
        try_tile(set, plain, CONV_FPROP, tile, 1, {false, false, true, false, tile % 2 == 1});
    if (p.s->fresh == 0) { /* the stem has no BN and no dgrad */
        for (unsigned processors : {1, 132})
            if (tile < tile_shapes_of(p.a, CONV_WGRAD))
                try_tile(set, plain, CONV_WGRAD, tile, processors, {false, false, false, false, false});
        return;
    }
    for (bool fresh : both) {
        if (tile >= tile_shapes_of(p.a, CONV_FPROP))
            break;
        for (bool flag : both)
            try_tile(set, p, CONV_FPROP, tile, 1, {true, fresh, flag, false, false});
        try_tile(set, p, CONV_FPROP, tile, 1, {true, fresh, true, false, true});
    }
    if (!small_shapes && tile < tile_shapes_of(p.a, CONV_FPROP)) /* one tile per CTA */
        try_tile(set, p, CONV_FPROP, tile, 132, {true, true, true, false, false});
    for (bool fresh : both) {
        if (tile >= tile_shapes_of(p.a, CONV_DGRAD))
            break;
        for (bool flag : both)
            try_tile(set, p, CONV_DGRAD, tile, 1, {true, fresh, true, flag, tile % 2 == 0});
        try_tile(set, p, CONV_DGRAD, tile, 1, {true, fresh, true, true, false});
        try_tile(set, p, CONV_DGRAD, tile, 1, {true, fresh, false, false, false});
        if (!small_shapes)
            try_tile(set, p, CONV_DGRAD, tile, 132, {true, fresh, true, true, false});
    }
    for (bool fresh : both) {
        if (tile >= tile_shapes_of(p.a, CONV_WGRAD))
            break;
        try_tile(set, p, CONV_WGRAD, tile, 1, {true, fresh, false, false, false});
        if (!small_shapes) /* many splits */
            try_tile(set, p, CONV_WGRAD, tile, 132, {true, fresh, false, false, false});
    }
    for (bool norm : both)
        if (tile < pairs_of(p))
            try_pair(set, p, tile, norm && !small_shapes ? 132 : 1, norm, false);
}

static void
tile_shapes_agree(const value_set &set)
{
    for (const shape &s : shapes) {
        if (small_shapes && !s.small)
            continue;
        problem p = make_problem(set, s, s.fresh > 0), plain = make_problem(set, s, false);

        /* the larger shapes use the same template, so one is enough if everything is slow */
        unsigned most = std::max(tile_shapes_of(p.a, CONV_FPROP), tile_shapes_of(p.a, CONV_DGRAD));

        for (unsigned tile = small_shapes && s.height > 1 ? 2 : 0; tile < most; tile++)
            try_kinds(set, p, plain, tile);
        finish_case(set, s.name);
    }
}

/* A 1x1 convolution stores two partial sums at once, which a single split never does. */
static void
pointwise_splits(const value_set &set)
{
    static const shape s = {"1x1 24 to 40, two splits", 3, 5, 5, 24, 40, 1, 1, 0, 16, 0, 8, 16, true, true};
    problem p = make_problem(set, s, true);

    for (unsigned tile = small_shapes ? 2 : 0; tile < pairs_of(p); tile++)
        try_pair(set, p, tile, 1, true, true);
    try_tile(set, p, CONV_WGRAD, tile_shapes_of(p.a, CONV_WGRAD) - 1, 1, {true, true, false, false, false, true});
    finish_case(set, s.name);
}

/* The variance is 0 if rounding made it negative, and for a single value; NaN stays NaN, also through ReLU. */
static void
odd_statistics(const value_set &set)
{
    static const shape s = {"odd", 2, 1, 1, 8, 8, 1, 1, 0, 0, 0, 0, 8, true, true};
    problem p = make_problem(set, s, true);

    for (unsigned images = 1; images <= 2; images++) {
        floats partial(16, (float)images); /* mean pivot + 1, variance 0 */
        cuda_conv c = conv_of(CONV_FPROP, p.a);

        partial[8 + 2] = 0;   /* variance -1 */
        partial[8 + 4] = NAN; /* for a single value it is 0 nevertheless */
        partial[8 + 5] = 4 * (float)images;
        p.weight = {images == 1 ? 0.0f : 1.0f, 1};
        p.partial = partial;
        p.blocks = 1;
        cuda_conv_take(&c, 2, 1);
        void *y = upload(set, floats(p.y.size()));
        set_operands(c, upload(set, p.x), upload(set, p.w), y);
        c.fprop.norm = view_of(p, true);
        c.fprop.norm.pixels = 1;
        cuda_op op = cuda_conv_op(&c);
        MUST(cuda_launch(set.kernels, &op, stream));
        floats mean = download(c.fprop.norm.mean, 8), variance = download(c.fprop.norm.variance, 8);
        floats out = download(set, y, p.y.size());
        for (unsigned i = 0; i < 8; i++) {
            float want = images == 1 ? 0 : i == 4 ? NAN : i == 5 ? 3 : 0;

            expect(fabsf(mean[i] - (p.pivot[i] + 1)) < 1e-6f, "a mean");
            expect(isnan(want) ? isnan(variance[i]) : variance[i] == want, "a variance");
            expect(isnan(out[i]) == (images == 2), "a NaN in what is made of it");
        }
        release();
    }
    finish_case(set, "variances that are negative, NaN, of one value");
}

static void
run_all(const value_set &set)
{
    tile_shapes_agree(set);
    pointwise_splits(set);
    odd_statistics(set);
}

int
main(int argc, char **argv)
{
    return run_program(argc, argv, run_all);
}
