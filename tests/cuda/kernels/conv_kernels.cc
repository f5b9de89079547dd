/*
 * conv_kernels.cc - compares convolutions of train/cuda/, with each tile shape, with sums in double
 *
 *     conv_kernels [small]
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernel_fixture.h"

#include <algorithm>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct shape {
    const char *name;
    unsigned images, height, width, in, out, kernel, stride, pad;
    unsigned x_more, y_more; /* channels of the slabs outside the slice */
    bool small;
} shapes[] = {
    {"1x1 64 to 128, two tiles of pixels", 3, 9, 7, 64, 128, 1, 1, 0, 0, 0, false},
    {"1x1 96 to 128, slices of slabs", 2, 7, 7, 96, 128, 1, 1, 0, 64, 32, false},
    {"1x1 40 to 24, no multiples of a tile", 1, 5, 5, 40, 24, 1, 1, 0, 16, 16, true},
    {"1x1 8 to 8, one pixel", 1, 1, 1, 8, 8, 1, 1, 0, 0, 0, true},
    {"1x1 64 to 136, stride 2", 2, 6, 7, 64, 136, 1, 2, 0, 0, 0, false},
    {"3x3 128 to 32, pad 1", 1, 7, 7, 128, 32, 3, 1, 1, 0, 224, false},
    {"3x3 64 to 16, pad 1, slices", 2, 8, 5, 64, 16, 3, 1, 1, 16, 32, false},
    {"3x3 16 to 40, stride 2, pad 1", 2, 9, 8, 16, 40, 3, 2, 1, 0, 16, true},
    {"3x3 24 to 40, pad 1", 2, 4, 5, 24, 40, 3, 1, 1, 16, 16, true},
    {"3x3 40 to 8, the widest halo", 2, 3, 57, 40, 8, 3, 1, 1, 0, 0, false},
    {"3x3 8 to 8, a wider one", 1, 3, 58, 8, 8, 3, 1, 1, 0, 0, false},
    {"3x3 24 to 16, pad 1, one row", 2, 1, 5, 24, 16, 3, 1, 1, 16, 16, true},
    {"3x3 72 to 24, pad 1, several tiles", 5, 11, 13, 72, 24, 3, 1, 1, 16, 32, false},
    {"3x3 24 to 72, no pad", 3, 5, 6, 24, 72, 3, 1, 0, 0, 0, false},
    {"7x7 8 to 64, stride 2, pad 3", 1, 13, 15, 8, 64, 7, 2, 3, 0, 0, false},
};

struct problem {
    const shape *s;
    conv_shape a;
    floats x, y, w, master;      /* slabs; y is a gradient if it is read */
    doubles fprop, dgrad, wgrad; /* slices; weights as [out][in][kernel][kernel] */
};

static void
sum_up(const value_set &set, problem &p)
{
    const conv_shape &a = p.a;
    unsigned taps = a.kernel_h * a.kernel_w;

    each_tap(a, [&](size_t to, size_t from, unsigned tap) {
        for (unsigned o = 0; o < a.out; o++)
            for (unsigned i = 0; i < a.in; i++) {
                double w = (double)operand(set, p.w[((size_t)o * taps + tap) * a.in + i]);
                double x = (double)operand(set, p.x[from * a.x_ld + p.s->x_more / 2 + i]);
                double y = (double)operand(set, p.y[to * a.y_ld + p.s->y_more / 2 + o]);

                p.fprop[to * a.out + o] += w * x;
                p.dgrad[from * a.in + i] += w * y;
                p.wgrad[((size_t)o * a.in + i) * taps + tap] += x * y;
            }
    });
}

static problem
make_problem(const value_set &set, const shape &s)
{
    problem p = {};
    conv_shape &a = p.a;
    unsigned taps = s.kernel * s.kernel, o, i, t;

    p.s = &s;
    a = conv_shape_of(s.images, s.height, s.width, s.in, s.out, s.kernel, s.stride, s.pad);
    a.x_ld += s.x_more;
    a.y_ld += s.y_more;
    p.x = random_values(set, (size_t)a.images * a.height * a.width * a.x_ld);
    p.y = random_values(set, (size_t)a.images * a.out_height * a.out_width * a.y_ld);
    p.master = random_values(set, (size_t)a.out * a.in * taps);
    p.w.resize(p.master.size());
    for (o = 0; o < a.out; o++)
        for (i = 0; i < a.in; i++)
            for (t = 0; t < taps; t++)
                p.w[((size_t)o * taps + t) * a.in + i] = p.master[((size_t)o * a.in + i) * taps + t];
    p.fprop.resize((size_t)a.images * a.out_height * a.out_width * a.out);
    p.dgrad.resize((size_t)a.images * a.height * a.width * a.in);
    p.wgrad.resize(p.master.size());
    sum_up(set, p);
    return p;
}

/* Packs the weights on the device. */
static const void *
pack(const value_set &set, const problem &p)
{
    std::vector<pack_entry> entry = {
        {0, upload(set, floats(p.w.size())), p.a.out, p.a.in, p.s->kernel * p.s->kernel, 0, 0}};
    pack_weights_args pack = {upload(p.master), upload(entry), 1, 0, {}};

    launch(set, CUDA_PACK_WEIGHTS, cuda_pack_blocks(&entry[0]), 1, pack);
    return entry[0].packed;
}

static void
check_fprop(const value_set &set, const problem &p, const cuda_conv &c, const floats &y, const floats &bias,
            const char *what)
{
    doubles want = p.fprop;

    for (size_t i = 0; c.fprop.bias && i < want.size(); i++) {
        want[i] += (double)bias[i % p.a.out];
        if (c.fprop.relu && want[i] < 0)
            want[i] = 0;
    }
    compare(what, want, slice_of(y, p.y, p.a.y_ld, p.a.out, what), set.tolerance);
}

static void
check_dgrad(const value_set &set, const problem &p, const cuda_conv &c, const floats &dx, const char *what)
{
    doubles want = p.dgrad;

    for (size_t i = 0; c.dgrad.add && i < want.size(); i++)
        want[i] += (double)p.x[i / p.a.in * p.a.x_ld + p.s->x_more / 2 + i % p.a.in];
    compare(what, want, slice_of(dx, p.x, p.a.x_ld, p.a.in, what), set.tolerance);
}

/* Adds half of the gradient to 1. */
static void
check_wgrad(const value_set &set, const problem &p, const cuda_conv &c, const char *what)
{
    float *gradient = upload(floats(p.wgrad.size(), 1.0f));
    doubles want = p.wgrad;

    reduce_splits(set, {c.wgrad.partial, 0, p.a.out, p.a.in, p.s->kernel * p.s->kernel, c.splits, 0, 0}, gradient,
                  {1, p.a.images, 1}, 0.5f);
    for (double &w : want)
        w = w * 0.5 + 1;
    compare(what, want, download(gradient, want.size()), partial_error(set, c.splits, set.sums));
}

/* Runs one tile shape of one kind. */
static void
try_tile(const value_set &set, const problem &p, conv_kind kind, unsigned tile, unsigned processors, bool split = false)
{
    cuda_conv c = conv_of(kind, p.a);
    size_t bytes = value_bytes(set);
    floats bias;
    char what[200];

    snprintf(what, sizeof(what), "%s, %s: kind %d, tile %u, %u processors", set.name, p.s->name, kind, tile,
             processors);
    cuda_conv_take(&c, tile, processors);
    if (split)
        split_in_two(c);
    void *x = upload(set, p.x), *y = upload(set, p.y);
    if (kind == CONV_WGRAD)
        set_partial(set, c);
    set_operands(c, (char *)x + p.s->x_more / 2 * bytes, kind == CONV_WGRAD ? NULL : pack(set, p),
                 (char *)y + p.s->y_more / 2 * bytes);
    bias = random_floats(p.a.out);
    if (kind == CONV_FPROP && tile % 2 == 1) {
        c.fprop.bias = upload(bias);
        c.fprop.relu = processors == 1;
    }
    if (kind == CONV_DGRAD)
        c.dgrad.add = tile % 2 == 1;
    expect(cuda_conv_fits(&c), "a shape that kernels do not take");
    cuda_op op = cuda_conv_op(&c);
    MUST(cuda_launch(set.kernels, &op, stream));
    if (kind == CONV_FPROP)
        check_fprop(set, p, c, download(set, y, p.y.size()), bias, what);
    else if (kind == CONV_DGRAD)
        check_dgrad(set, p, c, download(set, x, p.x.size()), what);
    else
        check_wgrad(set, p, c, what);
    release();
}

/* ---- partial sums ------------------------------------------------------------------------------------------------ */

/*
 * All values of x and y are LARGE, but one value of y is infinite and one is NaN.  A partial sum that would overflow a
 * half is correct, and values that are not finite reach all weights of their output.
 */
static void
partial_sums_of(const value_set &set, unsigned kernel)
{
    enum { IMAGES = 4, SIDE = 12, IN = 16, OUT = 24, INFINITE = 5, NONE = 20 };
    const float LARGE = 1024;
    cuda_conv c = conv_of(CONV_WGRAD, conv_shape_of(IMAGES, SIDE, SIDE, IN, OUT, kernel, 1, kernel / 2));
    size_t pixels = IMAGES * SIDE * SIDE, middle = SIDE / 2 * SIDE + SIDE / 2, taps = (size_t)kernel * kernel;
    floats y(pixels * OUT, LARGE);

    y[(pixels / 2 + middle) * OUT + INFINITE] = INFINITY;
    y[(pixels / 4 + middle) * OUT + NONE] = NAN;
    set_operands(c, upload(set, floats(pixels * IN, LARGE)), NULL, upload(set, y));
    cuda_conv_take(&c, 0, 1);
    split_in_two(c);
    set_partial(set, c);
    cuda_op op = cuda_conv_op(&c);
    MUST(cuda_launch(set.kernels, &op, stream));
    float *gradient = room(OUT * IN * taps);
    reduce_splits(set, {c.wgrad.partial, 0, OUT, IN, (unsigned)taps, c.splits, 0, 0}, gradient, {1, IMAGES, 0}, 1);
    floats got = download(gradient, OUT * IN * taps);
    for (size_t i = 0; i < got.size(); i++) {
        size_t out = i / taps / IN, down = i / kernel % kernel, across = i % kernel;
        double lines = SIDE - (down == kernel / 2 ? 0 : 1), columns = SIDE - (across == kernel / 2 ? 0 : 1);
        double want = IMAGES * lines * columns * (double)LARGE * (double)LARGE;

        if (out == INFINITE)
            expect(isinf(got[i]), "what is infinite stays so");
        else if (out == NONE)
            expect(isnan(got[i]), "what is no number stays none");
        else
            expect(fabs((double)got[i] - want) <= want / 256, "what is beyond the range of a half");
    }
    release();
}

static void
partial_sums(const value_set &set)
{
    partial_sums_of(set, 1);
    partial_sums_of(set, 3);
    finish_case(set, "partial sums that are large, infinite, or no numbers");
}

/* ---- tile shapes ------------------------------------------------------------------------------------------------- */

static void
tile_shapes_agree(const value_set &set)
{
    for (const shape &s : shapes) {
        if (small_shapes && !s.small)
            continue;
        problem p = make_problem(set, s);

        for (int kind = CONV_FPROP; kind <= CONV_WGRAD; kind++)
            /* the larger shapes use the same template, so one is enough if everything is slow */
            for (unsigned tile = small_shapes && s.height > 1 ? 2 : 0; tile < tile_shapes_of(p.a, (conv_kind)kind);
                 tile++) {
                try_tile(set, p, (conv_kind)kind, tile, 1);
                if (kind == CONV_WGRAD && !small_shapes) /* many splits */
                    try_tile(set, p, (conv_kind)kind, tile, 132);
            }
        finish_case(set, s.name);
    }
}

/* Longer sums and more CTAs: a layer of DenseNet-121, with two and more splits. */
static void
splits_add_up(const value_set &set)
{
    static const shape s = {"3x3 128 to 32 of 28 x 28", 1, 28, 28, 128, 32, 3, 1, 1, 0, 0, false};
    char name[100];

    if (small_shapes || set.kind == VALUE_BF16)
        return;
    problem p = make_problem(set, s);
    cuda_conv c = conv_of(CONV_WGRAD, p.a);
    cuda_conv_choose(&c, 132);
    expect(c.splits > 1, "no splits were chosen");
    try_tile(set, p, CONV_WGRAD, c.tile, 132);
    c = conv_of(CONV_FPROP, p.a);
    cuda_conv_choose(&c, 132);
    expect(c.splits == 1, "a forward pass was split");
    try_tile(set, p, CONV_FPROP, c.tile, 132);
    snprintf(name, sizeof(name), "%s: %s, tile shape and splits as they are chosen", set.name, s.name);
    finish_case(name);
}

/* A 1x1 convolution stores two partial sums at once, which a single split never does. */
static void
pointwise_splits(const value_set &set)
{
    static const shape s = {"1x1 24 to 40, two splits", 2, 6, 6, 24, 40, 1, 1, 0, 16, 0, true};
    problem p = make_problem(set, s);

    for (unsigned tile = small_shapes ? 2 : 0; tile < tile_shapes_of(p.a, CONV_WGRAD); tile++)
        try_tile(set, p, CONV_WGRAD, tile, 1, true);
    finish_case(set, s.name);
}

static void
run_all(const value_set &set)
{
    tile_shapes_agree(set);
    splits_add_up(set);
    pointwise_splits(set);
    partial_sums(set);
}

int
main(int argc, char **argv)
{
    return run_program(argc, argv, run_all);
}
