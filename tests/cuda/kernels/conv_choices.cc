/*
 * conv_choices.cc - tests what plan/conv.c and plan/one_pass.c choose and refuse; nothing is launched
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernel_fixture.h"

#include <stdio.h>

/* ---- single launches and pairs ----------------------------------------------------------------------------------- */

/* fprop and dgrad have more tile shapes if the halo of their rows fits into shared memory. */
static void
halos_have_room()
{
    for (unsigned width : {7u, 57u, 58u})
        for (unsigned stride : {1u, 2u}) {
            conv_shape s = conv_shape_of(1, 3, width, 8, 8, 3, stride, 1);

            expect(tile_shapes_of(s, CONV_FPROP) == (stride == 1 && width <= 57 ? 6 : 5), "tile shapes");
            expect(tile_shapes_of(s, CONV_DGRAD) == (stride == 1 && width <= 57 ? 7 : 5), "tile shapes of dgrad");
        }
    expect(tile_shapes_of(conv_shape_of(1, 3, 7, 8, 40, 3, 1, 1), CONV_DGRAD) == 5, "more channels than a step has");
    expect(tile_shapes_of(conv_shape_of(1, 3, 7, 8, 8, 3, 1, 0), CONV_DGRAD) == 5, "a smaller output");
    for (unsigned out : {24u, 32u, 40u}) {
        conv_shape s = conv_shape_of(1, 3, 7, 8, out, 3, 1, 1);
        cuda_conv_pair pair = {conv_of(CONV_DGRAD, s), conv_of(CONV_WGRAD, s), 0};

        expect(cuda_conv_pair_shapes(&pair) == (out == 32 ? 7 : 5), "pairs whose taps are a third of a tile");
    }
    finish_case("a tile shape with a halo where there is room");
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
            const conv_shape shape = conv_shape_of(64, l.side, l.side, l.in, l.out, l.kernel, 1, l.kernel / 2);
            cuda_conv fprop = cuda_conv_start(CONV_FPROP, &shape, major);
            cuda_conv one = cuda_conv_start(CONV_WGRAD, &shape, major);
            cuda_conv_pair pair = {cuda_conv_start(CONV_DGRAD, &shape, major), one, 0};

            cuda_conv_choose(&fprop, processors);
            cuda_conv_choose(&one, processors);
            cuda_conv_pair_choose(&pair, processors);
            cuda_op dgrad = cuda_conv_op(&pair.dgrad), wgrad = cuda_conv_op(&pair.wgrad);

            cuda_op both = cuda_conv_pair_op(&pair);
            cuda_products products = cuda_products_of(&both);

            expect(products.pair && products.tiles >= both.x, "both products");
            expect(fprop.splits == 1 && pair.dgrad.splits == 1, "what stores values was split");
            expect(one.splits > 1 && pair.wgrad.splits > 1, "no splits of long sums");
            expect(wgrad.x * wgrad.y * wgrad.z <= processors, "more partial sums than multiprocessors");
            expect(both.x == dgrad.x * dgrad.y + wgrad.x * wgrad.y * wgrad.z, "all blocks");
            expect(l.side > 7 || cuda_conv_op(&fprop).x > 25, "large tiles where they are few");
            expect(l.side < 56 || columns_of(fprop) == (l.out == 32 ? 32 : 128),
                   "a narrow tile where there are few columns");
        }
    finish_case("tile shapes and splits suit their layers");
}

#ifndef ONLY_FP16
/* Stages of tf32 have twice the bytes: the largest tiles do not fit on every GPU of a generation. */
static void
tiles_of_tf32_fit()
{
    norm_view norm = {};

    norm.gamma = (const float *)16;
    for (unsigned major : {8, 9, 12})
        for (unsigned in : {64, 992, 2048})
            for (unsigned kernel : {1, 3}) {
                const conv_shape shape = conv_shape_of(256, 28, 28, in, 32, kernel, 1, kernel / 2);
                cuda_conv c = cuda_conv_start(CONV_FPROP, &shape, major);
                cuda_conv_pair pair = {cuda_conv_start(CONV_DGRAD, &shape, major),
                                       cuda_conv_start(CONV_WGRAD, &shape, major), 0};

                c.fprop.norm = pair.dgrad.dgrad.norm = pair.wgrad.wgrad.norm = norm;
                c.value = pair.dgrad.value = pair.wgrad.value = CUDA_TF32;
                cuda_conv_choose(&c, 108);
                cuda_conv_pair_choose(&pair, 108);
                for (const cuda_op &op : {cuda_conv_op(&c), cuda_conv_pair_op(&pair)})
                    expect(cuda_kernels_tf32[op.kernel].shared + op.shared <= cuda_shared_of(major), "shared memory");
            }
    finish_case("tile shapes of tf32 fit into shared memory");
}
#endif

/* wgrad of the stem: a tile has all outputs and taps, so that dy is read once. */
static void
stem_reads_its_gradient_once()
{
    for (unsigned major : {0, 7, 8, 9, 12}) {
        const conv_shape shape = stem_shape_of(64, 224, 64);
        cuda_conv wgrad = cuda_conv_start(CONV_WGRAD, &shape, major);

        cuda_conv_choose(&wgrad, major == 7 ? 80 : 132);
        cuda_op op = cuda_conv_op(&wgrad);
        expect(op.kernel == CUDA_CONV_WGRAD_STEM_64x128 && op.x == 1 && op.y == 1, "one tile");
        expect(wgrad.splits > 40 && op.z == wgrad.splits, "splits of the stem");
    }
    finish_case("wgrad of the stem reads the gradient once");
}

/* A slice that begins between 16 bytes, for each operand of each kind. */
static void
misaligned_operands_are_refused(const conv_shape &shape)
{
    static void *const odd = (void *)8;
    static const struct {
        conv_kind kind;
        void (*spoil)(cuda_conv &);
    } cases[] = {
        {CONV_FPROP, [](cuda_conv &c) { c.fprop.x = odd; }},  {CONV_FPROP, [](cuda_conv &c) { c.fprop.w = odd; }},
        {CONV_FPROP, [](cuda_conv &c) { c.fprop.y = odd; }},  {CONV_DGRAD, [](cuda_conv &c) { c.dgrad.dy = odd; }},
        {CONV_DGRAD, [](cuda_conv &c) { c.dgrad.w = odd; }},  {CONV_DGRAD, [](cuda_conv &c) { c.dgrad.dx = odd; }},
        {CONV_DGRAD, [](cuda_conv &c) { c.dgrad.x = odd; }},  {CONV_WGRAD, [](cuda_conv &c) { c.wgrad.x = odd; }},
        {CONV_WGRAD, [](cuda_conv &c) { c.wgrad.dy = odd; }}, {CONV_WGRAD, [](cuda_conv &c) { c.wgrad.partial = odd; }},
    };

    for (const auto &each : cases) {
        cuda_conv c = conv_of(each.kind, shape);

        expect(cuda_conv_fits(&c), "operands that are aligned");
        each.spoil(c);
        expect(!cuda_conv_fits(&c), "an operand that is not aligned to 16 bytes");
    }
}

static void
what_kernels_do_not_take_is_refused()
{
    cuda_conv c = conv_of(CONV_FPROP, conv_shape_of(1, 4, 4, 16, 16, 1, 1, 0));
    cuda_conv stem = conv_of(CONV_FPROP, stem_shape_of(1, 32, 64));

    misaligned_operands_are_refused(c.shape);
    expect(cuda_conv_fits(&c), "16 channels");
    c.shape.in = 12;
    expect(!cuda_conv_fits(&c), "12 channels");
    c.shape.in = 24;
    expect(!cuda_conv_fits(&c), "more channels than the slab has");
    expect(cuda_conv_fits(&stem), "the stem");
    stem = conv_of(CONV_DGRAD, stem_shape_of(1, 32, 64));
    expect(cuda_conv_fits(&stem), "dgrad of pixels that overlap");
    stem.dgrad.add = 1;
    expect(!cuda_conv_fits(&stem), "pixels that overlap and are accumulated");
    stem = conv_of(CONV_FPROP, stem_shape_of(1, 32, 64));
    stem.shape.width--;
    expect(!cuda_conv_fits(&stem), "a row that is read beyond its end");
    finish_case("shapes that kernels do not take");
}

/* ---- one pass ---------------------------------------------------------------------------------------------------- */

static const bool with_end[] = {
#define WITH_END(shape, columns, blocks, end) end,
    ONE_PASS_SHAPES(WITH_END)};

static cuda_one_pass
dense_layer(unsigned side, unsigned in, unsigned major, unsigned shared)
{
    cuda_one_pass b = {};

    b.args.dgrad.shape = conv_shape_of(64, side, side, in, 128, 1, 1, 0);
    b.args.dgrad.add = 1;
    b.args.finalize.values_ld = 128;
    b.major = major;
    b.shared = shared;
    return b;
}

/* The last layer of a block, followed by a pool over every second row and column. */
static cuda_one_pass
last_layer(unsigned side, unsigned in, unsigned major, unsigned shared)
{
    cuda_one_pass b = dense_layer(side, in, major, shared);

    b.args.dgrad.add = 0;
    b.args.end.dy_ld = in;
    b.args.end.height = b.args.end.width = side / 2;
    b.args.end.down = b.args.end.across = 2;
    return b;
}

/* The choice fits, and uses all multiprocessors if there is enough work. */
static void
choices()
{
    static const struct {
        unsigned major, shared, least, processors;
    } chips[] = {{7, 0, 64u << 10, 80},   {8, 0, 99u << 10, 84},   {8, 163u << 10, 163u << 10, 108},
                 {9, 0, 227u << 10, 132}, {0, 0, 227u << 10, 132}, {12, 0, 99u << 10, 170}};

    for (const auto &chip : chips)
        for (unsigned side : {56, 28, 14, 7})
            for (unsigned in = 64; in <= 1024 + 32; in += 32) {
                bool last = in > 1024; /* a layer with 992 channels */
                cuda_one_pass b = last ? last_layer(side, 992, chip.major, chip.shared)
                                       : dense_layer(side, in, chip.major, chip.shared);

                expect(cuda_one_pass_fits(&b), "a dense layer");
                cuda_one_pass_choose(&b, chip.processors);
                cuda_op op = cuda_one_pass_op(&b);
                expect(with_end[b.tile] == last, "a tile shape with an end where there is one");
                expect(cuda_kernels_fp16[op.kernel].shared + op.shared <= chip.least, "shared memory");
                expect(op.y == b.ctas && b.ctas * b.args.dgrad.tiles_each * ONE_PASS_PIXELS >= 64 * side * side &&
                           (b.ctas - 1) * b.args.dgrad.tiles_each * ONE_PASS_PIXELS < 64 * side * side,
                       "CTAs that have all pixels, and none that is empty");
                expect(side < 28 || op.x * op.y >= chip.processors * 2 / 3, "blocks for most multiprocessors");
            }
    finish_case("what is chosen for dense layers");
}

/* Each is a dense layer with one property that the kernels do not support. */
static void
refusals()
{
    static float *const odd = (float *)4;
    static void (*const spoil[])(cuda_one_pass &) = {
        [](cuda_one_pass &b) { b.args.dgrad.shape.kernel_h = 3; },
        [](cuda_one_pass &b) { b.args.dgrad.shape.stride = 2; },
        [](cuda_one_pass &b) { b.args.dgrad.shape.pad_w = 1; },
        [](cuda_one_pass &b) { b.args.dgrad.shape.in = 60; },
        [](cuda_one_pass &b) {
            b.args.dgrad.shape.out = b.args.dgrad.shape.y_ld = b.args.finalize.values_ld = ONE_PASS_OUT + 8;
        },
        [](cuda_one_pass &b) { b.args.dgrad.shape.images = ONE_PASS_IMAGES + 1; },
        [](cuda_one_pass &b) { b.args.dgrad.shape.x_ld = 56; },
        [](cuda_one_pass &b) { b.args.dgrad.shape.y_ld = 132; },
        [](cuda_one_pass &b) { b.args.finalize.values_ld = 64; },
        [](cuda_one_pass &b) { b.args.dgrad.dx = (void *)8; },
        [](cuda_one_pass &b) { b.args.finalize.values = (void *)8; },
        [](cuda_one_pass &b) { b.args.dgrad.sums.partial = (float *)16; },
        [](cuda_one_pass &b) {
            b.args.finalize.sums = {(float *)16, NULL, 3, 120};
        },
        [](cuda_one_pass &b) {
            b.args.finalize.sums = {odd, NULL, 3, 128};
        },
        [](cuda_one_pass &b) { b.shared = 48u << 10; },
        [](cuda_one_pass &b) { b.args.end = last_layer(14, 64, 9, 0).args.end; }, /* it accumulates */
    };
    static void (*const spoil_last[])(cuda_one_pass &) = {
        [](cuda_one_pass &b) { b.args.end.dy_ld = 56; },      [](cuda_one_pass &b) { b.args.end.dy_ld = 68; },
        [](cuda_one_pass &b) { b.args.end.across = 0; },      [](cuda_one_pass &b) { b.args.end.dy = (void *)8; },
        [](cuda_one_pass &b) { b.args.end.dy = (void *)16; }, /* but has no BN */
        [](cuda_one_pass &b) { b.shared = 59u << 10; },
    };

    for (auto f : spoil) {
        cuda_one_pass b = dense_layer(14, 64, 9, 0);

        expect(cuda_one_pass_fits(&b), "a dense layer");
        f(b);
        expect(!cuda_one_pass_fits(&b), "what kernels do not take");
    }
    for (auto f : spoil_last) {
        cuda_one_pass b = last_layer(14, 64, 9, 0);

        expect(cuda_one_pass_fits(&b), "the last layer of a block");
        f(b);
        expect(!cuda_one_pass_fits(&b), "what kernels do not take at the end of a block");
    }
    finish_case("what kernels do not take");
}

int
main()
{
    what_kernels_do_not_take_is_refused();
    choices_suit_their_layers();
#ifndef ONLY_FP16
    tiles_of_tf32_fit();
#endif
    stem_reads_its_gradient_once();
    halos_have_room();
    choices();
    refusals();
    return summary();
}
