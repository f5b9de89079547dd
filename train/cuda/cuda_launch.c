/*
 * cuda_launch.c - see cuda_launch.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/cuda_launch.h"

/* What a tile is worth beside the largest, for each multiply-add: larger ones read less for each. */
static const struct tile_form {
    unsigned rows, columns;
    double speed;
} forms[] = {
#define FORM_128x128          1.0
#define FORM_64x128           0.85
#define FORM_64x64            0.7
#define FORM_128x32           0.6
#define FORM(form, r, c, ...) {r, c, FORM_##form},
    GEMM_TILES(FORM)};

cudaError_t
cuda_prepare(const struct cuda_kernel *set)
{
    struct cudaFuncAttributes attributes;
    cudaError_t e = cudaSuccess;
    unsigned i;

    /* To ask for a kernel loads it: while a graph is recorded is no time for that. */
    for (i = 0; i < CUDA_KERNEL_COUNT && e == cudaSuccess; i++) {
        e = cudaFuncGetAttributes(&attributes, set[i].function);
        if (e == cudaSuccess && set[i].shared > 48u << 10)
            e = cudaFuncSetAttribute(set[i].function, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)set[i].shared);
    }
    return e;
}

cudaError_t
cuda_launch(const struct cuda_kernel *set, const struct cuda_op *op, cudaStream_t stream)
{
    const struct cuda_kernel *kernel = &set[op->kernel];
    struct cuda_op copy = *op; /* the runtime wants what it may write */
    void *arguments[] = {&copy.args};
    dim3 grid = {op->x, op->y, op->z}, block = {kernel->threads, 1, 1};

    return cudaLaunchKernel(kernel->function, grid, block, arguments, kernel->shared, stream);
}

unsigned
cuda_blocks(size_t count, unsigned each)
{
    return (unsigned)((count + each - 1) / each);
}

/* ---- convolutions ----------------------------------------------------------------------------------------------- */

static bool
is_aligned(const void *p)
{
    return (uintptr_t)p % 16 == 0;
}

/* Pixels share channels with those behind them, as the stem's cells: no row may be read beyond its end. */
static bool
overlaps_within_rows(const struct conv_args *a)
{
    return a->x_ld > 0 && a->in % a->x_ld == 0 && a->kernel_w == 1 && a->pad_w == 0 && !a->add &&
           (a->out_width - 1) * a->stride + a->in / a->x_ld <= a->width;
}

bool
cuda_conv_fits(const struct conv_args *a)
{
    return a->in % 8 == 0 && a->out % 8 == 0 && a->x_ld % 8 == 0 && a->y_ld % 8 == 0 &&
           (a->in <= a->x_ld || overlaps_within_rows(a)) && a->out <= a->y_ld && is_aligned(a->x) && is_aligned(a->y) &&
           is_aligned(a->w) && is_aligned(a->partial);
}

/* C of the product, in tiles; how many steps of k one of them takes. */
struct product {
    unsigned tiles_down, tiles_across, steps;
};

static struct product
product_of(const struct cuda_conv *c, unsigned tile)
{
    const struct conv_args *a = &c->args;
    const struct tile_form *f = &forms[tile];
    unsigned taps = a->kernel_h * a->kernel_w, outputs = a->images * a->out_height * a->out_width;

    switch (c->kind) {
    case CONV_FORWARD:
        return (struct product){cuda_blocks(outputs, f->rows), cuda_blocks(a->out, f->columns),
                                taps * cuda_blocks(a->in, GEMM_DEEP)};
    case CONV_DATA:
        return (struct product){cuda_blocks(a->images * a->height * a->width, f->rows), cuda_blocks(a->in, f->columns),
                                taps * cuda_blocks(a->out, GEMM_DEEP)};
    default:
        return (struct product){cuda_blocks(a->out, f->rows), taps * cuda_blocks(a->in, f->columns),
                                cuda_blocks(outputs, GEMM_DEEP)};
    }
}

/* Splits of at least eight steps, as many as give every multiprocessor two blocks. */
static unsigned
splits_of(const struct cuda_conv *c, struct product p, unsigned processors)
{
    unsigned wanted = 2 * processors / (p.tiles_down * p.tiles_across), most = p.steps / 8;

    if (c->kind != CONV_WEIGHTS || wanted < 1 || most < 1)
        return 1;
    return wanted < most ? wanted : most;
}

void
cuda_conv_take(struct cuda_conv *c, unsigned tile, unsigned processors)
{
    struct product p = product_of(c, tile);

    c->tile = tile;
    c->args.steps_each = cuda_blocks(p.steps, splits_of(c, p, processors));
    c->splits = cuda_blocks(p.steps, c->args.steps_each);
}

void
cuda_conv_choose(struct cuda_conv *c, unsigned processors)
{
    double best = 0;
    unsigned tile, chosen = 0;

    for (tile = 0; tile < CONV_TILES; tile++) {
        struct product p = product_of(c, tile);
        const struct tile_form *f = &forms[tile];
        double waves, cost;

        cuda_conv_take(c, tile, processors);
        waves = cuda_blocks((size_t)p.tiles_down * p.tiles_across * c->splits, processors);
        cost = waves * f->rows * f->columns * (c->args.steps_each + 3) /
               f->speed; /* to fill and to drain: three steps */
        if (tile == 0 || cost < best) {
            best = cost;
            chosen = tile;
        }
    }
    cuda_conv_take(c, chosen, processors);
}

size_t
cuda_conv_partial(const struct cuda_conv *c)
{
    const struct conv_args *a = &c->args;

    return c->kind == CONV_WEIGHTS ? (size_t)c->splits * a->out * a->kernel_h * a->kernel_w * a->in : 0;
}

struct cuda_op
cuda_conv_op(const struct cuda_conv *c)
{
    const struct conv_args *a = &c->args;
    struct product p = product_of(c, c->tile);
    bool pointwise = a->kernel_h == 1 && a->kernel_w == 1 && a->stride == 1 && a->pad_h == 0 && a->pad_w == 0;

    return (struct cuda_op){.kernel = (enum cuda_kernel_id)(c->tile * 6 + (unsigned)c->kind * 2 + pointwise),
                            .x = p.tiles_down,
                            .y = p.tiles_across,
                            .z = c->splits,
                            .args.conv = *a,
                            .node = CUDA_NO_NODE,
                            .final = SIZE_MAX};
}
