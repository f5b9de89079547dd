/*
 * bank_conflicts.cc - counts the bank conflicts of shared memory in every tile shape of the convolutions
 *
 *     bank_conflicts [all]     all: prints the counts of each kernel
 *
 * For a build that counts (build.mk).  The loops over k load operands by asynchronous copies or accesses of 16 bytes,
 * and read them by ldmatrix: no tile shape may have a conflict there.  Code outside the loops may have some.  In
 * conv_one_pass, the loop is over tiles of pixels, and none of its accesses has a conflict.
 *
 * A V100 (KIND=counted_volta) reads operands by 8 bytes.  There, conv_one_pass and wgrad of the stem have conflicts,
 * and nothing uses the kernels with a halo.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "emulator.h"
#include "kernel_fixture.h"

#include <stdio.h>

static const char *const kinds[SHARED_KINDS] = {"ldmatrix", "copies", "16 bytes", "less"};
static bool print_all;
#if defined(DEVICE_ARCH) && DEVICE_ARCH < 750
enum { LDMATRIX = 0 };
#else
enum { LDMATRIX = 1 };
#endif

#define ONE_MORE(...) +1
enum { GEMM_TILE_COUNT = 0 GEMM_TILES(ONE_MORE), MOST_OF_TABLE = 400 };

static const struct shape {
    const char *name;
    unsigned images, side, in, out, kernel, stride, pad;
    bool stem;
} shapes[] = {
    {"1x1", 1, 12, 64, 64, 1, 1, 0, false},
    {"3x3", 1, 12, 32, 32, 3, 1, 1, false},
    {"3x3, stride 2", 1, 12, 32, 32, 3, 2, 1, false},
    {"the stem", 1, 32, STEM_IN, 64, 4, 1, 2, true},
};

static conv_shape
shape_of(const shape &s)
{
    return s.stem ? stem_shape_of(s.images, s.side, s.out)
                  : conv_shape_of(s.images, s.side, s.side, s.in, s.out, s.kernel, s.stride, s.pad);
}

static void
put_in(const value_set &set, cuda_conv &c)
{
    const conv_shape &s = c.shape;
    void *x = upload(set, random_values(set, (size_t)s.images * s.height * s.width * s.x_ld));
    void *y = upload(set, random_values(set, (size_t)s.images * s.out_height * s.out_width * s.y_ld));

    set_operands(c, x, upload(set, random_values(set, (size_t)s.out * s.in * s.kernel_h * s.kernel_w)), y);
}

/*
 * Twice the depth must have the same conflicts, because the loop over k has none.  ldmatrix and copies never have any.
 * The prologue reduces the sums of more channels by accesses of fewer bytes than 16: `table` more conflicts.
 */
static void
compare_depths(const char *kernel, const char *shape, const emulator_traffic &once, const emulator_traffic &twice,
               unsigned table)
{
    for (int kind = 0; kind < SHARED_KINDS; kind++) {
        const emulator_shared &s = once.shared[kind], &t = twice.shared[kind];

        if (print_all && s.accesses > 0)
            printf("%s, %s: %s: %llu accesses, %llu phases, %llu conflicts; twice as deep %llu, %llu, %llu\n", kernel,
                   shape, kinds[kind], (unsigned long long)s.accesses, (unsigned long long)s.phases,
                   (unsigned long long)s.conflicts, (unsigned long long)t.accesses, (unsigned long long)t.phases,
                   (unsigned long long)t.conflicts);
        if (kind == SHARED_MATRICES || kind == SHARED_COPIES)
            expect(t.conflicts == 0 && (t.accesses > s.accesses) == LDMATRIX, kernel);
        else if (kind == SHARED_WIDE)
            expect(t.conflicts == s.conflicts, kernel);
        else if (!LDMATRIX)
            expect(t.conflicts <= s.conflicts + table && t.accesses > s.accesses, kernel);
    }
}

/* Like a plan: x through a BN whose last channels only have partial sums, and partial sums of the output. */
static void
see_through_norm(const value_set &set, cuda_conv *c)
{
    const conv_shape &s = c->shape;
    unsigned fresh = s.in / 4, pixels = s.height * s.width;
    cuda_op op = cuda_conv_op(c);
    norm_view norm = upload_view(random_floats(s.in), floats(s.in, 1.0f), random_floats(s.in), random_floats(s.in));

    norm.pixels = pixels;
    norm.relu = 1;
    norm.epsilon = 1e-5f;
    if (c->kind != CONV_DGRAD) {
        norm.block = upload(std::vector<batch_block>{{1, s.images, 0}});
        norm.fresh = {upload(floats(3 * 2 * fresh, 100.0f)), upload(random_floats(fresh)), 3, fresh};
        norm.fresh_first = s.in - fresh;
    }
    const float *weight = upload(floats(s.images, 1.0f));
    switch (c->kind) {
    case CONV_FPROP:
        c->fprop.norm = norm;
        c->fprop.weight = weight;
        c->fprop.sums = {room((size_t)op.x * 2 * s.out), upload(random_floats(s.out)), op.x, s.out};
        break;
    case CONV_DGRAD:
        c->dgrad.norm = norm;
        c->dgrad.weight = weight;
        c->dgrad.sums = {room((size_t)op.x * 2 * s.in), NULL, op.x, s.in};
        c->dgrad.x = upload(set, random_values(set, (size_t)s.images * pixels * s.x_ld));
        break;
    case CONV_WGRAD:
        c->wgrad.norm = norm;
        break;
    }
}

/* Runs one tile shape of one kind. */
static emulator_traffic
run_tile(const value_set &set, const shape &s, conv_kind kind, unsigned tile, bool norm, const char **kernel)
{
    cuda_conv c = conv_of(kind, shape_of(s));
    emulator_traffic t;

    put_in(set, c);
    cuda_conv_take(&c, tile, 1);
    if (kind == CONV_WGRAD)
        set_partial(set, c);
    if (norm)
        see_through_norm(set, &c);
    expect(cuda_conv_fits(&c), "a shape that kernels do not take");
    cuda_op op = cuda_conv_op(&c);
    emulator_forget_traffic();
    MUST(cuda_launch(set.kernels, &op, stream));
    MUST(cudaStreamSynchronize(stream));
    *kernel = set.kernels[op.kernel].name;
    expect(emulator_traffic_of(*kernel, &t), "a kernel was counted");
    release();
    return t;
}

static shape
twice_as_deep(const shape &s, conv_kind kind)
{
    shape t = s;

    (kind == CONV_FPROP ? t.in : kind == CONV_DGRAD ? t.out : t.images) *= 2;
    return t;
}

static void
try_tiles(const value_set &set, const shape &s, bool norm)
{
    const char *kernel;
    char name[100];

    for (int kind = CONV_FPROP; kind <= CONV_WGRAD; kind++)
        for (unsigned tile = 0; tile < tile_shapes_of(shape_of(s), (conv_kind)kind); tile++) {
            if (s.stem && (kind != CONV_WGRAD || !LDMATRIX)) /* the stem's depth is fixed */
                continue;
            if (!LDMATRIX && kind == CONV_FPROP && tile == GEMM_TILE_COUNT) /* the kernel with a halo */
                continue;
            emulator_traffic once = run_tile(set, s, (conv_kind)kind, tile, norm, &kernel);
            if (tile >= tile_shapes_of(shape_of(twice_as_deep(s, (conv_kind)kind)), (conv_kind)kind)) {
                expect(once.shared[SHARED_MATRICES].conflicts == 0 && once.shared[SHARED_COPIES].conflicts == 0,
                       kernel); /* dgrad with a halo has one step */
                continue;
            }
            emulator_traffic twice = run_tile(set, twice_as_deep(s, (conv_kind)kind), (conv_kind)kind, tile, norm,
                                              &kernel);

            compare_depths(kernel, s.name, once, twice, norm && kind == CONV_FPROP ? MOST_OF_TABLE : 0);
        }
    snprintf(name, sizeof(name), "%s: %s%s", set.name, s.name, norm ? ", normalised" : "");
    finish_case(name);
}

/* Runs conv_one_pass over this number of images, with one CTA per slice. */
static emulator_traffic
run_one_pass(const value_set &set, unsigned tile, unsigned images, bool finalize)
{
    static const bool with_end[] = {
#define WITH_END(shape, columns, blocks, end) end,
        ONE_PASS_SHAPES(WITH_END)};
    enum { IN = 128, SIDE = 8 };
    const cuda_kernel &kernel = set.kernels[CUDA_CONV_ONE_PASS_64x64 + tile];
    cuda_conv dgrad = conv_of(CONV_DGRAD, conv_shape_of(images, SIDE, SIDE, IN, ONE_PASS_OUT, 1, 1, 0));
    cuda_one_pass b = {};
    emulator_traffic t;

    put_in(set, dgrad);
    cuda_conv_take(&dgrad, 0, 1);
    see_through_norm(set, &dgrad);
    b.args.dgrad = dgrad.dgrad;
    b.args.dgrad.add = !with_end[tile];
    b.args.finalize.values_ld = finalize ? ONE_PASS_OUT : 0;
    if (with_end[tile])
        b.args.end = {upload(set, random_values(set, (size_t)images * SIDE / 2 * SIDE / 2 * IN)),
                      upload(random_floats(IN)),
                      upload(random_floats(IN)),
                      {room(2 * IN), NULL, 1, IN},
                      IN,
                      SIDE / 2,
                      SIDE / 2,
                      2,
                      2,
                      1};
    expect(cuda_one_pass_fits(&b) && cuda_one_pass_take(&b, tile, 1), "a shape that kernels do not take");
    b.ctas = 1;
    b.args.dgrad.tiles_each = images * SIDE * SIDE / ONE_PASS_PIXELS;
    b.args.dgrad.sums.blocks = b.ctas;
    b.args.partial = room(partial_set(set, b.ctas), cuda_one_pass_partial(&b));
    if (finalize) {
        finalize_view &f = b.args.finalize;

        f.values = upload(set, random_values(set, (size_t)images * SIDE * SIDE * ONE_PASS_OUT));
        f.mean = f.by_beta = f.by_gamma = upload(random_floats(ONE_PASS_OUT));
        f.variance = upload(floats(ONE_PASS_OUT, 1.0f));
        f.block = upload(std::vector<batch_block>{{1, images, 0}});
    }
    cuda_op op = cuda_one_pass_op(&b);
    emulator_forget_traffic();
    MUST(cuda_launch(set.kernels, &op, stream));
    MUST(cudaStreamSynchronize(stream));
    expect(emulator_traffic_of(kernel.name, &t), "a kernel was counted");
    release();
    return t;
}

static void
try_one_pass(const value_set &set)
{
    for (unsigned tile = 0; tile < ONE_PASS_SHAPE_COUNT; tile++)
        for (int finalize = 0; finalize < 2; finalize++) {
            const char *kernel = set.kernels[CUDA_CONV_ONE_PASS_64x64 + tile].name;
            emulator_traffic once = run_one_pass(set, tile, 2, finalize), twice = run_one_pass(set, tile, 4, finalize);

            compare_depths(kernel, finalize ? "finished" : "plain", once, twice, 0);
            for (int kind = 0; kind < SHARED_KINDS; kind++)
                expect(twice.shared[kind].accesses > once.shared[kind].accesses &&
                           twice.shared[kind].conflicts == once.shared[kind].conflicts,
                       kernel);
        }
    finish_case(set, "both gradients in one pass");
}

int
main(int argc, char **argv)
{
    print_all = argc > 1 && strcmp(argv[1], "all") == 0;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (const value_set &set : value_sets) {
        MUST(cuda_prepare(set.kernels));
        for (const shape &s : shapes)
            for (int norm = 0; norm < (s.stem ? 1 : 2); norm++)
                try_tiles(set, s, norm);
        if (LDMATRIX)
            try_one_pass(set);
    }
    return summary();
}
