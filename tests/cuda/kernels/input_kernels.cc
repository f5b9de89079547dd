/*
 * input_kernels.cc - tests the input of a micro-batch, the stem in its space-to-depth layout, and the table of packed
 * weights
 *
 *     input_kernels [small]
 *
 * The stem is compared with a direct 7 x 7 convolution of three normalised channels, in double.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernel_fixture.h"

extern "C" {
#include "backend/crop.h"
}

#include <math.h>
#include <stdio.h>

static const struct shape {
    const char *name;
    unsigned images, source, side, out, outputs;
    bool small;
} shapes[] = {
    {"12 of 16 pixels", 4, 16, 12, 16, 14, true},
    {"13 of 13 pixels", 3, 13, 13, 24, 1, true},
    {"7 of 9 pixels", 5, 9, 7, 72, 60, true},
    {"3 of 4 pixels", 2, 4, 3, 40, 14, false},
    {"33 of 40 pixels, 64 channels", 3, 40, 33, 64, 14, false},
};
enum { STORED = 3 };

/* The data of the host and of the device. */
struct problem {
    const shape *s;
    std::vector<uint8_t> pixels, store, label;
    std::vector<unsigned> index;
    std::vector<crop_place> crop;
    floats weight, mix; /* mix: empty if no image is mixed */
    batch_block block;
    input_args args;
    unsigned rows, columns, out_side;
};

static std::vector<uint8_t>
random_bytes(size_t count)
{
    std::vector<uint8_t> v(count);

    for (uint8_t &b : v)
        b = (uint8_t)random_below(256);
    return v;
}

/* Returns the image of weight 0. */
static unsigned
padding_of(const shape &s)
{
    return s.images > 2 ? 2 : s.images - 1;
}

static void
to_device(const value_set &set, problem &p)
{
    const shape &s = *p.s;
    size_t cells = (size_t)s.images * p.rows * p.columns;
    input_args &a = p.args;

    a.from = upload(std::vector<batch_block>{p.block});
    a.index = upload(p.index);
    a.crop = upload(p.crop);
    a.weight_from = upload(p.weight);
    a.mix_from = p.mix.empty() ? NULL : upload(p.mix);
    a.label_from = upload(p.label);
    a.pixels = upload(p.pixels);
    a.store = upload(p.store);
    a.block = upload(std::vector<batch_block>(1));
    a.weight = room(s.images);
    a.mix = p.mix.empty() ? NULL : room(s.images);
    a.label = upload(std::vector<uint8_t>(p.label.size(), 77));
    a.cells = upload(set, floats(cells * 8, 7));
    a.images = s.images;
    a.source = s.source;
    a.side = s.side;
    a.outputs = s.outputs;
    launch(set, CUDA_INPUT, cuda_blocks(cells, INPUT_THREADS), 1, a);
}

/* Index, crop and pixels have one more image, the partner of the last one. */
static problem
make_problem(const shape &s)
{
    problem p = {};
    size_t image = (size_t)s.source * s.source;

    p.s = &s;
    p.rows = STEM_ROWS(s.side);
    p.columns = STEM_COLUMNS(s.side);
    p.out_side = (s.side + 6 - STEM_KERNEL) / 2 + 1;
    p.pixels = random_bytes((s.images + 1) * image);
    p.store = random_bytes(STORED * image);
    p.label = random_bytes((size_t)s.images * s.outputs);
    p.weight = floats(s.images, 1);
    p.block = {0.125, s.images - 1, 5};
    for (unsigned i = 0; i <= s.images; i++) {
        unsigned room = s.source - s.side + 1;

        p.index.push_back(i % 2 ? random_below(STORED) : 0xffffffffu);
        struct crop crop = {};

        crop_rotate(&crop, 37.0 * i);
        p.crop.push_back({(unsigned short)random_below(room), (unsigned short)random_below(room), i / 2 % 2,
                          i % 3 ? crop.sine : 0, i % 3 ? crop.cosine : 0, i % 2 ? 0 : (int)(s.side * i * 1500) - 9000});
    }
    /* No data of an image of weight 0 may be read. */
    p.weight[padding_of(s)] = 0;
    p.index[padding_of(s)] = 0x7fffffffu;
    p.crop[padding_of(s)] = {60000, 60000, 0, CROP_ONE, CROP_ONE, CROP_GAIN};
    return p;
}

/* Returns the gray level of an image by itself. */
static unsigned
own_level(const problem &p, unsigned image, unsigned y, unsigned x)
{
    const shape &s = *p.s;
    const crop_place &crop = p.crop[image];
    const std::vector<uint8_t> &from = p.index[image] == 0xffffffffu ? p.pixels : p.store;
    size_t at = p.index[image] == 0xffffffffu ? image : p.index[image];
    struct crop host = {crop.x, crop.y, crop.flip != 0, crop.sine, crop.cosine, crop.gain};
    struct crop_row row;

    crop_row_start(&row, &host, &from[at * s.source * s.source], s.source, s.side, y);
    return crop_level(&row, x);
}

/* Returns the gray level that the network gets; -1 outside and for an image of weight 0. */
static int
level(const problem &p, unsigned image, int y, int x)
{
    if (p.weight[image] == 0 || y < 0 || x < 0 || y >= (int)p.s->side || x >= (int)p.s->side)
        return -1;
    unsigned own = own_level(p, image, (unsigned)y, (unsigned)x);
    unsigned mix = p.mix.empty() ? 0 : (unsigned)(p.mix[image] * MIX_ONE);

    return (int)(mix > 0 ? crop_mix(own, own_level(p, image + 1, (unsigned)y, (unsigned)x), mix) : own);
}

static void
check_cells(const value_set &set, const problem &p)
{
    size_t cells = (size_t)p.s->images * p.rows * p.columns;
    floats got = download(set, p.args.cells, cells * 8);
    std::vector<uint8_t> label(p.label.size());
    batch_block block = download_one(p.args.block);
    bool same = true;

    for (size_t i = 0; i < got.size(); i++) {
        unsigned cell = (unsigned)(i / 8), image = cell / p.columns / p.rows;
        int y = (int)(cell / p.columns % p.rows * 2 + i / 4 % 2), x = (int)(cell % p.columns * 2 + i / 2 % 2) - 4;
        int l = level(p, image, y, x);
        float want = l < 0 ? 0 : i % 2 ? 1 : (float)(l - 128) / 256;

        same = same && got[i] == want;
    }
    expect(same, "cells");
    download_bytes(label.data(), p.args.label, label.size());
    expect(label == p.label && download(p.args.weight, p.weight.size()) == p.weight, "labels and weights");
    expect(p.mix.empty() || download(p.args.mix, p.mix.size()) == p.mix, "shares of partners");
    expect(block.scale == p.block.scale && block.images == p.block.images && block.number == p.block.number,
           "the block");
}

/* ---- the stem ---------------------------------------------------------------------------------------------------- */

static double
normalised(int l, unsigned c)
{
    static const float mean[] = INPUT_MEAN, deviation[] = INPUT_DEVIATION;

    return l < 0 ? 0 : ((double)l / 255 - (double)mean[c]) / (double)deviation[c];
}

/* Visits each product of the convolution: visit(output, weight, input). */
template <typename F>
static void
each_product(const problem &p, F visit)
{
    for (unsigned n = 0; n < p.s->images; n++)
        for (unsigned pixel = 0; pixel < p.out_side * p.out_side; pixel++)
            for (unsigned tap = 0; tap < STEM_KERNEL * STEM_KERNEL; tap++) {
                int y = (int)(pixel / p.out_side * 2 + tap / STEM_KERNEL) - 3;
                int x = (int)(pixel % p.out_side * 2 + tap % STEM_KERNEL) - 3, l = level(p, n, y, x);

                for (unsigned c = 0; l >= 0 && c < INPUT_CHANNELS; c++)
                    for (unsigned o = 0; o < p.s->out; o++)
                        visit((size_t)(n * p.out_side * p.out_side + pixel) * p.s->out + o,
                              (size_t)(o * INPUT_CHANNELS + c) * STEM_KERNEL * STEM_KERNEL + tap, normalised(l, c));
            }
}

static cuda_conv
stem_of(const problem &p, conv_kind kind)
{
    return conv_of(kind, stem_shape_of(p.s->images, p.s->side, p.s->out));
}

static void *
pack_stem(const value_set &set, const floats &master, unsigned out)
{
    std::vector<pack_entry> entry = {
        {0, upload(set, floats((size_t)out * 4 * STEM_IN, 7)), out, INPUT_CHANNELS, STEM_KERNEL * STEM_KERNEL, 1, 0}};
    pack_weights_args pack = {upload(master), upload(entry), 1, 0, {}};

    launch(set, CUDA_PACK_WEIGHTS, cuda_pack_blocks(&entry[0]), 1, pack);
    return entry[0].packed;
}

static void *
run_stem(const value_set &set, const problem &p, const floats &master)
{
    cuda_conv c = stem_of(p, CONV_FPROP);

    const void *w = pack_stem(set, master, p.s->out);
    set_operands(c, p.args.cells, w, upload(set, floats((size_t)p.s->images * p.out_side * p.out_side * p.s->out, 7)));
    expect(cuda_conv_fits(&c), "the stem is refused");
    cuda_conv_choose(&c, 4);
    cuda_op op = cuda_conv_op(&c);
    MUST(cuda_launch(set.kernels, &op, stream));
    return c.fprop.y;
}

/* Returns the norm of the difference divided by the norm of `want`. */
static double
error_of(const doubles &want, const floats &got)
{
    double difference = 0, norm = 1e-30;

    for (size_t i = 0; i < want.size(); i++) {
        difference += pow((double)got[i] - want[i], 2);
        norm += want[i] * want[i];
    }
    return sqrt(difference / norm);
}

/*
 * Compares with the exact result, and requires at least the accuracy of a convolution of rounded channels and weights.
 */
static void
check_forward(const value_set &set, const problem &p)
{
    size_t outputs = (size_t)p.s->images * p.out_side * p.out_side * p.s->out;
    floats master = random_floats((size_t)p.s->out * INPUT_CHANNELS * STEM_KERNEL * STEM_KERNEL), plain(outputs);
    doubles want(outputs), rough(outputs);
    double error;

    each_product(p, [&](size_t to, size_t w, double x) {
        want[to] += (double)master[w] * x;
        rough[to] += (double)operand(set, rounded(set, master[w])) * (double)operand(set, rounded(set, (float)x));
    });
    for (size_t i = 0; i < outputs; i++)
        plain[i] = rounded(set, (float)rough[i]);
    floats got = download(set, run_stem(set, p, master), outputs);
    error = error_of(want, plain) * 1.1;
    compare("forward", want, got, error > 1e-6 ? error : 1e-6);
    for (size_t i = 0, image = outputs / p.s->images; i < image; i++)
        if (got[padding_of(*p.s) * image + i] != 0) {
            expect(false, "an image of weight 0 is not 0");
            break;
        }
}

static void
check_gradient(const value_set &set, const problem &p, unsigned processors)
{
    size_t outputs = (size_t)p.s->images * p.out_side * p.out_side * p.s->out;
    floats dy = random_values(set, outputs);
    doubles want((size_t)p.s->out * INPUT_CHANNELS * STEM_KERNEL * STEM_KERNEL, 1); /* the gradient so far */
    cuda_conv c = stem_of(p, CONV_WGRAD);
    step_state state = {};

    state.unscale = 0.25f;
    each_product(p, [&](size_t from, size_t w, double x) { want[w] += 0.25 * (double)operand(set, dy[from]) * x; });
    set_operands(c, p.args.cells, NULL, upload(set, dy));
    cuda_conv_choose(&c, processors);
    set_partial(set, c);
    cuda_op op = cuda_conv_op(&c);
    MUST(cuda_launch(set.kernels, &op, stream));
    splits_entry stem = {c.wgrad.partial, 0, p.s->out, 1, STEM_KERNEL * STEM_KERNEL, c.splits, 1, 0};
    sum_all_args sum = {upload(std::vector<splits_entry>{stem}), upload(floats(want.size(), 1)),
                        p.args.block, /* number 5: accumulates */
                        upload(std::vector<step_state>{state}), 1};
    launch(set, CUDA_SUM_ALL, cuda_sum_blocks(&stem), 1, sum);
    compare("gradient", want, download(sum.gradient, want.size()), partial_error(set, c.splits, 2 * set.sums));
    overwrite(p.args.block, {1, 1, 0}); /* number 0: overwrites */
    launch(set, CUDA_SUM_ALL, cuda_sum_blocks(&stem), 1, sum);
    for (double &w : want)
        w -= 1;
    compare("gradient from zero", want, download(sum.gradient, want.size()),
            partial_error(set, c.splits, 2 * set.sums));
}

static void
run_shape(const value_set &set, const shape &s)
{
    problem p = make_problem(s);

    to_device(set, p);
    check_cells(set, p);
    check_forward(set, p);
    check_gradient(set, p, 1);
    overwrite(p.args.block, p.block);
    check_gradient(set, p, 132);
    release();
    finish_case(set, s.name);
}

/* Images in the store and in the micro-batch are partners of each other; the image of weight 0 is none. */
static void
run_mixed(const value_set &set, const shape &s)
{
    static const float shares[] = {0.25f, 40000.0f / MIX_ONE, 1, 1.0f / MIX_ONE, 0};
    problem p = make_problem(s);
    char title[80];

    for (unsigned i = 0; i < s.images; i++)
        p.mix.push_back(i + 1 == padding_of(s) ? 0 : shares[i % 5]);
    to_device(set, p);
    check_cells(set, p);
    release();
    snprintf(title, sizeof(title), "%s, mixed", s.name);
    finish_case(set, title);
}

/* ---- images of weight 0 ------------------------------------------------------------------------------------------ */

static bool
all_finite(const floats &v)
{
    for (float f : v)
        if (!isfinite(f))
            return false;
    return true;
}

/* With these weights a white image overflows in fp16; the others are gray. */
static void
run_overflow(const value_set &set)
{
    static const shape s = {"", 3, 12, 12, 8, 1, true};
    problem p = make_problem(s);
    floats master((size_t)s.out * INPUT_CHANNELS * STEM_KERNEL * STEM_KERNEL, 1000);
    size_t pixels = (size_t)p.out_side * p.out_side, outputs = s.images * pixels * s.out;

    p.index = {0xffffffffu, 0xffffffffu, 0xffffffffu};
    p.crop = std::vector<crop_place>(3);
    for (size_t i = 0; i < p.pixels.size(); i++)
        p.pixels[i] = i / 144 == padding_of(s) ? 255 : (uint8_t)(127 + i % 3);
    p.weight = floats(3, 1);
    to_device(set, p);
    if (set.kind == VALUE_FP16)
        expect(!all_finite(download(set, run_stem(set, p, master), outputs)), "the white image does not overflow");
    p.weight[padding_of(s)] = 0;
    to_device(set, p);
    void *y = run_stem(set, p, master);
    norm_sums_args sums = {y,     upload(floats(s.out)), p.args.weight, room(2 * s.out), 3, (unsigned)pixels, s.out,
                           s.out, (unsigned)pixels * 3};
    norm_apply_args apply = {};
    norm_running_args running = {};
    float *mean = room(s.out), *variance = room(s.out);
    std::vector<running_entry> entry = {{mean, variance, 0, s.out, (unsigned)pixels, s.out, 0}};

    apply.x = y;
    apply.y = upload(set, floats(outputs, 7));
    apply.norm.mean = mean;
    apply.norm.variance = variance;
    apply.norm.gamma = apply.norm.beta = upload(floats(s.out, 1));
    apply.norm.block = running.block = upload(std::vector<batch_block>{{1, 2, 0}});
    apply.norm.fresh = {sums.partial, sums.running_mean, 1, s.out};
    apply.norm.pixels = apply.pixels = (unsigned)pixels;
    apply.norm.relu = 1;
    apply.norm.epsilon = 1e-5f;
    apply.weight = p.args.weight;
    apply.images = 3;
    apply.channels = apply.x_ld = apply.y_ld = s.out;
    running.entry = upload(entry);
    running.running = upload(floats(2 * s.out));
    running.entries = 1;
    running.momentum = 0.1f;
    launch(set, CUDA_NORM_SUMS, 1, 1, sums);
    launch(set, CUDA_NORM_APPLY, 1, 1, apply);
    move_running(set, 1, running);
    floats got = download(set, apply.y, outputs),
           spared(got.begin() + (long)(padding_of(s) * pixels * s.out), got.end());
    expect(all_finite(got) && all_finite(download(running.running, 2 * s.out)), "something is not finite");
    expect(spared == floats(pixels * s.out), "the image of weight 0 is not 0");
    release();
    finish_case(set, "an image of weight 0 that would overflow");
}

/* ---- packed weights ---------------------------------------------------------------------------------------------- */

/* Packs many convolutions in one launch, the first being the stem; the memory after each must be unchanged. */
static void
run_table(const value_set &set)
{
    struct weights {
        unsigned out, in, taps;
    };
    std::vector<weights> convs = {
        {8, INPUT_CHANNELS, 49}, {24, 16, 1}, {8, 8, 1}, {40, 24, 9}, {8, 88, 1}, {8, 16, 25}, {64, 128, 1}};
    std::vector<pack_entry> entry;
    pack_weights_args pack = {};
    unsigned blocks = 0;
    size_t floats_of_all = 3;

    convs.resize(PACK_THREADS + 9, {8, 8, 1}); /* more entries than a CTA has threads */
    for (const weights &c : convs) {
        bool stem = entry.empty();
        unsigned packed = c.out * (stem ? 4 * STEM_IN : c.in * c.taps);

        entry.push_back({floats_of_all, upload(set, floats(packed + 8, 7)), c.out, c.in, c.taps, stem, blocks});
        floats_of_all += (size_t)c.out * c.in * c.taps + 5;
        blocks += cuda_pack_blocks(&entry.back());
    }
    floats master = random_floats(floats_of_all);
    pack.master = upload(master);
    pack.entry = upload(entry);
    pack.entries = (unsigned)entry.size();
    launch(set, CUDA_PACK_WEIGHTS, blocks, 1, pack);
    for (const pack_entry &e : entry) {
        unsigned packed = e.out * (e.stem ? 4 * STEM_IN : e.in * e.taps);
        floats got = download(set, e.packed, packed + 8);
        bool same = true;

        for (unsigned n = 0; n < packed + 8; n++) {
            unsigned in = n % e.in, tap = n / e.in % e.taps, out = n / e.in / e.taps;
            float want = n < packed ? rounded(set, master[e.master + (out * e.in + in) * e.taps + tap]) : 7;

            same = same && (got[n] == want || (e.stem && n < packed));
        }
        expect(same, "packed weights");
    }
    release();
    finish_case(set, "a table of weights");
}

/*
 * Weights for scoring: of a convolution with a BN folded into it, of one without, and scale and shift of another BN.
 * The memory after each must be unchanged.
 */
static void
run_fold(const value_set &set)
{
    enum { OUT = 24, IN = 16, TAPS = 9, ALL = OUT * IN * TAPS, NORMS = 3 * OUT };
    const float epsilon = 1e-5f;
    floats master = random_floats(ALL + 2 * NORMS), statistics = random_floats(2 * NORMS);
    float *scale = upload(floats(OUT + 1, 7)), *shift[2] = {upload(floats(OUT + 1, 7)), upload(floats(OUT + 1, 7))};
    void *packed[2] = {upload(set, floats(ALL + 8, 7)), upload(set, floats(ALL + 8, 7))};
    const unsigned each = ALL / PACK_THREADS + (ALL % PACK_THREADS > 0);
    std::vector<fold_entry> entry(3);
    doubles want[2], scales(OUT), shifts(OUT);

    for (size_t i = NORMS; i < 2 * NORMS; i++)
        statistics[i] = statistics[i] * statistics[i] + 0.01f;
    entry[0].pack = {0, packed[0], OUT, IN, TAPS, 0, 0};
    entry[0].shift = shift[0];
    entry[1].pack = {0, packed[1], OUT, IN, TAPS, 0, 0};
    entry[1].first_block = each;
    entry[2].pack = {0, NULL, OUT, 1, 1, 0, 0};
    entry[2].scale = scale;
    entry[2].shift = shift[1];
    entry[2].first_block = 2 * each;
    for (fold_entry &e : entry) {
        e.gamma = ALL + OUT;
        e.beta = ALL + NORMS + OUT;
        e.mean = OUT;
        e.variance = NORMS + OUT;
    }
    for (unsigned o = 0; o < OUT; o++) {
        scales[o] = (double)master[ALL + OUT + o] / sqrt((double)statistics[NORMS + OUT + o] + (double)epsilon);
        shifts[o] = (double)master[ALL + NORMS + OUT + o] - scales[o] * (double)statistics[OUT + o];
    }
    for (unsigned n = 0; n < ALL; n++) {
        unsigned in = n % IN, tap = n / IN % TAPS, out = n / IN / TAPS;
        double w = (double)master[(out * IN + in) * TAPS + tap];

        want[0].push_back(w * scales[out]);
        want[1].push_back(w);
    }
    fold_weights_args fold = {upload(master), upload(statistics), upload(entry), 3, epsilon};
    launch(set, CUDA_FOLD_WEIGHTS, 2 * each + 1, 1, fold);
    for (unsigned i = 0; i < 2; i++) {
        floats got = download(set, packed[i], ALL + 8), biases = download(shift[i], OUT + 1);

        expect(got[ALL] == 7 && biases[OUT] == 7, "what lies behind is as it was");
        got.resize(ALL);
        biases.resize(OUT);
        compare("folded weights", want[i], got, set.tolerance);
        compare("bias", shifts, biases, 1e-6);
    }
    floats got = download(scale, OUT + 1);
    expect(got[OUT] == 7, "what lies behind is as it was");
    got.resize(OUT);
    compare("scale", scales, got, 1e-6);
    release();
    finish_case(set, "weights to score with");
}

static void
run_all(const value_set &set)
{
    for (const shape &s : shapes)
        if (s.small || !small_shapes) {
            run_shape(set, s);
            run_mixed(set, s);
        }
    run_overflow(set);
    run_table(set);
    run_fold(set);
}

int
main(int argc, char **argv)
{
    return run_program(argc, argv, run_all);
}
