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

typedef std::vector<double> doubles;

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
    {"3x3 24 to 72, no pad", 3, 5, 6, 24, 72, 3, 1, 0, 0, 0, false},
    {"7x7 8 to 64, stride 2, pad 3", 1, 13, 15, 8, 64, 7, 2, 3, 0, 0, false},
};

struct problem {
    const shape *s;
    conv_args a;
    floats x, y, w, master;         /* slabs; y is a gradient if it is read */
    doubles forward, data, weights; /* slices; weights as [out][in][kernel][kernel] */
};

static void
sum_up(problem &p)
{
    const conv_args &a = p.a;
    unsigned n, oy, ox, ky, kx, i, o;

    for (n = 0; n < a.images; n++)
        for (oy = 0; oy < a.out_height; oy++)
            for (ox = 0; ox < a.out_width; ox++)
                for (ky = 0; ky < a.kernel_h; ky++)
                    for (kx = 0; kx < a.kernel_w; kx++) {
                        int iy = (int)(oy * a.stride + ky) - (int)a.pad_h,
                            ix = (int)(ox * a.stride + kx) - (int)a.pad_w;
                        size_t to = ((size_t)n * a.out_height + oy) * a.out_width + ox;
                        size_t from = ((size_t)n * a.height + (size_t)iy) * a.width + (size_t)ix;

                        if (iy < 0 || iy >= (int)a.height || ix < 0 || ix >= (int)a.width)
                            continue;
                        for (o = 0; o < a.out; o++)
                            for (i = 0; i < a.in; i++) {
                                double w = (double)p.w[((o * a.kernel_h + ky) * a.kernel_w + kx) * a.in + i];
                                double x = (double)p.x[from * a.x_ld + p.s->x_more / 2 + i];
                                double y = (double)p.y[to * a.y_ld + p.s->y_more / 2 + o];

                                p.forward[to * a.out + o] += w * x;
                                p.data[from * a.in + i] += w * y;
                                p.weights[((size_t)o * a.in + i) * a.kernel_h * a.kernel_w + ky * a.kernel_w + kx] +=
                                    x * y;
                            }
                    }
}

static problem
make_problem(const value_set &set, const shape &s)
{
    problem p = {};
    conv_args &a = p.a;
    unsigned taps = s.kernel * s.kernel, o, i, t;

    p.s = &s;
    a.images = s.images;
    a.height = s.height;
    a.width = s.width;
    a.out_height = (s.height + 2 * s.pad - s.kernel) / s.stride + 1;
    a.out_width = (s.width + 2 * s.pad - s.kernel) / s.stride + 1;
    a.in = s.in;
    a.out = s.out;
    a.x_ld = s.in + s.x_more;
    a.y_ld = s.out + s.y_more;
    a.kernel_h = a.kernel_w = s.kernel;
    a.stride = s.stride;
    a.pad_h = a.pad_w = s.pad;
    p.x = random_values(set, (size_t)a.images * a.height * a.width * a.x_ld);
    p.y = random_values(set, (size_t)a.images * a.out_height * a.out_width * a.y_ld);
    p.master = random_values(set, (size_t)a.out * a.in * taps);
    p.w.resize(p.master.size());
    for (o = 0; o < a.out; o++)
        for (i = 0; i < a.in; i++)
            for (t = 0; t < taps; t++)
                p.w[((size_t)o * taps + t) * a.in + i] = p.master[((size_t)o * a.in + i) * taps + t];
    p.forward.resize((size_t)a.images * a.out_height * a.out_width * a.out);
    p.data.resize((size_t)a.images * a.height * a.width * a.in);
    p.weights.resize(p.master.size());
    sum_up(p);
    return p;
}

/* Runs one tile shape of one kind. */
static void
try_tile(const value_set &set, const problem &p, conv_kind kind, unsigned tile, unsigned processors)
{
    cuda_conv c = {kind, p.a, 0, 0, 0};
    size_t bytes = set.kind == VALUE_FLOAT ? 4 : 2;
    floats nothing;
    char what[200];
    void *x, *y;

    snprintf(what, sizeof(what), "%s, %s: kind %d, tile %u, %u processors", set.name, p.s->name, kind, tile,
             processors);
    cuda_conv_take(&c, tile, processors);
    c.args.add = kind == CONV_DGRAD && tile % 2 == 1;
    x = upload(set, p.x);
    y = upload(set, p.y);
    c.args.x = (char *)x + p.s->x_more / 2 * bytes;
    c.args.y = (char *)y + p.s->y_more / 2 * bytes;
    c.args.partial = kind == CONV_WGRAD ? room(partial_set(set, c.splits), cuda_conv_partial(&c)) : NULL;
    if (kind != CONV_WGRAD) { /* packed on the device */
        std::vector<pack_entry> entry = {
            {0, upload(set, floats(p.w.size())), p.a.out, p.a.in, p.s->kernel * p.s->kernel, 0, 0}};
        pack_weights_args pack = {upload(p.master), upload(entry), 1, 0, {}};

        launch(set, CUDA_PACK_WEIGHTS, cuda_blocks(p.w.size(), PACK_THREADS), 1, pack);
        c.args.w = entry[0].packed;
    }
    floats bias = random_floats(p.a.out);
    bool biased = kind == CONV_FPROP && tile % 2 == 1;
    c.args.bias = biased ? upload(bias) : NULL;
    c.args.relu = biased && processors == 1;
    expect(cuda_conv_fits(&c.args), "a shape that kernels do not take");
    cuda_op op = cuda_conv_op(&c);
    MUST(cuda_launch(set.kernels, &op, stream));
    if (kind == CONV_FPROP) {
        floats out = download(set, y, p.y.size());
        doubles want = p.forward;

        for (size_t i = 0; biased && i < want.size(); i++) {
            want[i] += (double)bias[i % p.a.out];
            if (c.args.relu && want[i] < 0)
                want[i] = 0;
        }
        compare(what, want, slice_of(out, p.y, p.a.y_ld, p.a.out, what), set.tolerance);
    } else if (kind == CONV_DGRAD) {
        floats out = download(set, x, p.x.size());

        doubles want = p.data;

        for (size_t i = 0; c.args.add && i < want.size(); i++)
            want[i] += (double)p.x[i / p.a.in * p.a.x_ld + p.s->x_more / 2 + i % p.a.in];
        compare(what, want, slice_of(out, p.x, p.a.x_ld, p.a.in, what), set.tolerance);
    } else {
        float *gradient = upload(floats(p.weights.size(), 1.0f));
        std::vector<double> want = p.weights;

        step_state state = {};

        state.unscale = 0.5f;
        splits_entry entry = {c.args.partial, 0, p.a.out, p.a.in, p.s->kernel * p.s->kernel, c.splits, 0, 0};
        sum_all_args sum = {upload(std::vector<splits_entry>{entry}), gradient,
                            upload(std::vector<batch_block>{{1, p.a.images, 1}}),
                            upload(std::vector<step_state>{state}), 1};

        launch(set, CUDA_SUM_ALL, cuda_sum_blocks(&entry), 1, sum);
        for (double &w : want)
            w = w * 0.5 + 1;
        compare(what, want, download(gradient, want.size()), partial_error(set, c.splits, set.sums));
    }
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
    cuda_conv c = {CONV_WGRAD, {}, 0, 0, 0};
    size_t pixels = IMAGES * SIDE * SIDE, middle = SIDE / 2 * SIDE + SIDE / 2, taps = (size_t)kernel * kernel;
    floats y(pixels * OUT, LARGE);
    step_state state = {};

    y[(pixels / 2 + middle) * OUT + INFINITE] = INFINITY;
    y[(pixels / 4 + middle) * OUT + NONE] = NAN;
    c.args.images = IMAGES;
    c.args.height = c.args.width = c.args.out_height = c.args.out_width = SIDE;
    c.args.in = c.args.x_ld = IN;
    c.args.out = c.args.y_ld = OUT;
    c.args.kernel_h = c.args.kernel_w = kernel;
    c.args.stride = 1;
    c.args.pad_h = c.args.pad_w = kernel / 2;
    c.args.x = upload(set, floats(pixels * IN, LARGE));
    c.args.y = upload(set, y);
    cuda_conv_take(&c, 0, 1);
    c.args.k_steps = cuda_blocks(pixels, 2 * GEMM_DEEP);
    c.splits = cuda_conv_splits(&c.args);
    expect(c.splits == 2, "two splits");
    c.args.partial = room(partial_set(set, c.splits), cuda_conv_partial(&c));
    cuda_op op = cuda_conv_op(&c);
    MUST(cuda_launch(set.kernels, &op, stream));
    state.unscale = 1;
    splits_entry entry = {c.args.partial, 0, OUT, IN, (unsigned)taps, c.splits, 0, 0};
    sum_all_args sum = {upload(std::vector<splits_entry>{entry}), room(OUT * IN * taps),
                        upload(std::vector<batch_block>{{1, IMAGES, 0}}), upload(std::vector<step_state>{state}), 1};
    launch(set, CUDA_SUM_ALL, cuda_sum_blocks(&entry), 1, sum);
    floats got = download(sum.gradient, OUT * IN * taps);
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
    char name[100];

    partial_sums_of(set, 1);
    partial_sums_of(set, 3);
    snprintf(name, sizeof(name), "%s: partial sums that are large, infinite, or no numbers", set.name);
    finish_case(name);
}

/* ---- tile shapes ------------------------------------------------------------------------------------------------- */

static unsigned
tile_shapes_of(const problem &p, conv_kind kind)
{
    cuda_conv c = {kind, p.a, 0, 0, 0};

    return cuda_conv_tile_shapes(&c);
}

static void
tile_shapes_agree(const value_set &set)
{
    char name[100];

    for (const shape &s : shapes) {
        if (small_shapes && !s.small)
            continue;
        problem p = make_problem(set, s);

        for (int kind = CONV_FPROP; kind <= CONV_WGRAD; kind++)
            /* the larger shapes use the same template, so one is enough if everything is slow */
            for (unsigned tile = small_shapes && s.height > 1 ? 2 : 0; tile < tile_shapes_of(p, (conv_kind)kind);
                 tile++) {
                try_tile(set, p, (conv_kind)kind, tile, 1);
                if (kind == CONV_WGRAD && !small_shapes) /* many splits */
                    try_tile(set, p, (conv_kind)kind, tile, 132);
            }
        snprintf(name, sizeof(name), "%s: %s", set.name, s.name);
        finish_case(name);
    }
}

/* fprop has one more tile shape if the halo of its rows fits into shared memory. */
static void
halos_have_room(const value_set &set)
{
    for (unsigned width : {7u, 57u, 58u})
        for (unsigned stride : {1u, 2u}) {
            const shape s = {"", 1, 3, width, 8, 8, 3, stride, 1, 0, 0, true};

            expect(tile_shapes_of(make_problem(set, s), CONV_FPROP) == (stride == 1 && width <= 57 ? 6 : 5),
                   "tile shapes");
        }
    finish_case("a tile shape with a halo where there is room");
}

/* Longer sums and more CTAs: a layer of DenseNet-121, with two and more splits. */
static void
splits_add_up(const value_set &set)
{
    static const shape s = {"3x3 128 to 32 of 28 x 28", 1, 28, 28, 128, 32, 3, 1, 1, 0, 0, false};
    char name[100];
    cuda_conv c = {};

    if (small_shapes || set.kind == VALUE_BF16)
        return;
    problem p = make_problem(set, s);
    c.kind = CONV_WGRAD;
    c.args = p.a;
    cuda_conv_choose(&c, 132);
    expect(c.splits > 1, "no splits were chosen");
    try_tile(set, p, CONV_WGRAD, c.tile, 132);
    c.kind = CONV_FPROP;
    cuda_conv_choose(&c, 132);
    expect(c.splits == 1, "a forward pass was split");
    try_tile(set, p, CONV_FPROP, c.tile, 132);
    snprintf(name, sizeof(name), "%s: %s, tile shape and splits as they are chosen", set.name, s.name);
    finish_case(name);
}

static unsigned
columns_of(const cuda_conv &c)
{
    cuda_op op = cuda_conv_op(&c);

    return cuda_products_of(&op).shape.columns;
}

/* The tile shapes that are chosen for dgrad and wgrad in layers of DenseNet-121 on 132 multiprocessors. */
static void
choices_suit_their_layers()
{
    static const struct layer {
        unsigned side, in, out, kernel;
    } layers[] = {{56, 64, 128, 1},  {56, 128, 32, 3}, {28, 480, 128, 1},
                  {14, 992, 128, 1}, {14, 128, 32, 3}, {7, 992, 128, 1}};

    for (const layer &l : layers)
        for (unsigned major : {0, 7, 8, 9, 12}) {
            unsigned processors = major == 7 ? 80 : 132;
            cuda_conv forward = {}, one = {};
            cuda_conv_pair pair = {};
            conv_args &a = forward.args;

            a.images = 64;
            a.height = a.width = a.out_height = a.out_width = l.side;
            a.in = a.x_ld = l.in;
            a.out = a.y_ld = l.out;
            a.kernel_h = a.kernel_w = l.kernel;
            a.stride = 1;
            a.pad_h = a.pad_w = l.kernel / 2;
            forward.major = major;
            one = pair.data = pair.weights = forward;
            pair.data.kind = CONV_DGRAD;
            one.kind = pair.weights.kind = CONV_WGRAD;
            cuda_conv_choose(&forward, processors);
            cuda_conv_choose(&one, processors);
            cuda_conv_pair_choose(&pair, processors);
            cuda_op data = cuda_conv_op(&pair.data), weights = cuda_conv_op(&pair.weights);

            cuda_op both = cuda_conv_pair_op(&pair);
            cuda_products products = cuda_products_of(&both);

            expect(products.pair && products.tiles >= both.x, "both products");
            expect(forward.splits == 1 && pair.data.splits == 1, "what stores values was split");
            expect(one.splits > 1 && pair.weights.splits > 1, "no splits of long sums");
            expect(weights.x * weights.y * weights.z <= processors, "more partial sums than multiprocessors");
            expect(both.x == data.x * data.y + weights.x * weights.y * weights.z, "all blocks");
            expect(l.side > 7 || cuda_conv_op(&forward).x > 25, "large tiles where they are few");
            expect(l.side < 56 || columns_of(forward) == (l.out == 32 ? 32 : 128),
                   "a narrow tile where there are few columns");
        }
    finish_case("tile shapes and splits suit their layers");
}

static void
what_kernels_do_not_take_is_refused()
{
    conv_args a = {};
    alignas(16) char somewhere[32];

    a.in = a.x_ld = a.out = a.y_ld = 16;
    expect(cuda_conv_fits(&a), "16 channels");
    a.in = 12;
    expect(!cuda_conv_fits(&a), "12 channels");
    a.in = 24;
    expect(!cuda_conv_fits(&a), "more channels than the slab has");
    a = {};
    a.in = STEM_IN;
    a.x_ld = STEM_LD;
    a.out = a.y_ld = 64;
    a.kernel_h = 4;
    a.kernel_w = a.stride = 1;
    a.out_width = STEM_OUT(32);
    a.width = STEM_COLUMNS(32);
    expect(cuda_conv_fits(&a), "the stem");
    a.width--;
    expect(!cuda_conv_fits(&a), "a row that is read beyond its end");
    a.in = a.x_ld = 16;
    a.x = somewhere + 8;
    expect(!cuda_conv_fits(&a), "a slice that begins between 16 bytes");
    finish_case("shapes that kernels do not take");
}

int
main(int argc, char **argv)
{
    small_shapes = argc > 1 && strcmp(argv[1], "small") == 0;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    what_kernels_do_not_take_is_refused();
    choices_suit_their_layers();
    halos_have_room(value_sets[0]);
    for (const value_set &set : value_sets) {
        MUST(cuda_prepare(set.kernels));
        tile_shapes_agree(set);
        splits_add_up(set);
        partial_sums(set);
    }
    return summary();
}
