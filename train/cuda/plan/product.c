/*
 * product.c - see product.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/plan/product.h"

#include <math.h>

/* Tile shapes and their kernels; pointwise: kernels for 1x1 with stride 1. */
static const struct tile_row {
    struct cuda_form form;
    enum cuda_kernel_id fprop, fprop_pointwise, dgrad, dgrad_pointwise, wgrad_pointwise;
} tiles[] = {
#define TILE_ROW(shape, ...)                                                                        \
    {{__VA_ARGS__, false},   CUDA_CONV_FORWARD_##shape,        CUDA_CONV_FORWARD_POINTWISE_##shape, \
     CUDA_CONV_DATA_##shape, CUDA_CONV_DATA_POINTWISE_##shape, CUDA_CONV_WEIGHTS_POINTWISE_##shape},
    GEMM_TILES(TILE_ROW)};
static const struct tap_row {
    struct cuda_form form;
    enum cuda_kernel_id wgrad;
} tap_tiles[] = {
#define TAP_ROW(shape, ...) {{__VA_ARGS__, false}, CUDA_CONV_WEIGHTS_##shape},
    GEMM_TAP_TILES(TAP_ROW)};
struct pair_row {
    struct cuda_forms forms;
    enum cuda_kernel_id kernel;
};
static const struct pair_row pairs[] = {
#define PAIR_ROW(shape, r, c, wr, wc, ...) \
    {{{r, c, wr, wc, false}, {__VA_ARGS__, false}}, CUDA_CONV_BACKWARD_POINTWISE_##shape},
    GEMM_PAIRS(PAIR_ROW)};
static const struct pair_row tap_pairs[] = {
#define TAP_PAIR_ROW(shape, r, c, wr, wc, ...) \
    {{{r, c, wr, wc, false}, {__VA_ARGS__, false}}, CUDA_CONV_BACKWARD_##shape},
    GEMM_TAP_PAIRS(TAP_PAIR_ROW)};
static const struct cuda_form halo = {HALO_ROWS, HALO_COLUMNS, 32, 32, true};

/* The products of each kernel and their tiles, without the number of tiles.  Other kernels have a row of zeros. */
#define ONE(id, of_kind, ...) [id] = {.one = true, .kind = of_kind, .form = {__VA_ARGS__, false}},
#define PAIR(id, r, c, wr, wc, ...) \
    [id] = {.pair = true, .form = {r, c, wr, wc, false}, .of_weights = {__VA_ARGS__, false}},
#define ONES_OF_TILE(shape, ...)                                        \
    ONE(CUDA_CONV_FORWARD_##shape, CONV_FORWARD, __VA_ARGS__)           \
    ONE(CUDA_CONV_FORWARD_POINTWISE_##shape, CONV_FORWARD, __VA_ARGS__) \
    ONE(CUDA_CONV_DATA_##shape, CONV_DATA, __VA_ARGS__)                 \
    ONE(CUDA_CONV_DATA_POINTWISE_##shape, CONV_DATA, __VA_ARGS__)       \
    ONE(CUDA_CONV_WEIGHTS_POINTWISE_##shape, CONV_WEIGHTS, __VA_ARGS__)
#define ONE_OF_TAPS(shape, ...)  ONE(CUDA_CONV_WEIGHTS_##shape, CONV_WEIGHTS, __VA_ARGS__)
#define PAIR_OF(shape, ...)      PAIR(CUDA_CONV_BACKWARD_POINTWISE_##shape, __VA_ARGS__)
#define PAIR_OF_TAPS(shape, ...) PAIR(CUDA_CONV_BACKWARD_##shape, __VA_ARGS__)
#define BOTH_OF(shape, columns, ...) \
    [CUDA_CONV_BOTH_##shape] = {.both = true, .form = {BOTH_PIXELS, columns, BOTH_PIXELS, columns, false}},
static const struct cuda_products products[CUDA_KERNEL_COUNT] = {
    [CUDA_CONV_FORWARD_HALO] = {.one = true, .kind = CONV_FORWARD, .form = {HALO_ROWS, HALO_COLUMNS, 32, 32, true}},
    GEMM_TILES(ONES_OF_TILE) GEMM_TAP_TILES(ONE_OF_TAPS) GEMM_PAIRS(PAIR_OF) GEMM_TAP_PAIRS(PAIR_OF_TAPS)
        BOTH_FORMS(BOTH_OF)};
#define COUNT(list) ((unsigned)(sizeof(list) / sizeof(*(list))))

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

bool
cuda_is_pointwise(const struct conv_args *a)
{
    return a->kernel_h == 1 && a->kernel_w == 1 && a->stride == 1 && a->pad_h == 0 && a->pad_w == 0;
}

bool
cuda_has_taps(const struct cuda_conv *c)
{
    return c->kind == CONV_WEIGHTS && !cuda_is_pointwise(&c->args);
}

static unsigned
halo_of(const struct conv_args *a)
{
    return 2 * (a->pad_h * a->width + a->pad_w);
}

/* Returns true if the output is as large as the input, and if the halo fits into shared memory. */
static bool
has_halo(const struct conv_args *a)
{
    return a->stride == 1 && a->out_height == a->height && a->out_width == a->width && !cuda_is_pointwise(a) &&
           a->kernel_h == 2 * a->pad_h + 1 && a->kernel_w == 2 * a->pad_w + 1 && a->in <= a->x_ld &&
           a->kernel_h * a->kernel_w <= HALO_TAPS && HALO_ROWS + halo_of(a) <= HALO_LINES;
}

/* fprop has the kernel with a halo as its last tile shape. */
const struct cuda_form *
cuda_form_of(const struct cuda_conv *c, unsigned tile)
{
    return cuda_has_taps(c) ? &tap_tiles[tile].form : tile < COUNT(tiles) ? &tiles[tile].form : &halo;
}

unsigned
cuda_conv_forms(const struct cuda_conv *c)
{
    if (cuda_has_taps(c))
        return COUNT(tap_tiles);
    return COUNT(tiles) + (c->kind == CONV_FORWARD && has_halo(&c->args));
}

const struct cuda_forms *
cuda_forms_of(const struct cuda_conv_pair *p, unsigned forms)
{
    return cuda_is_pointwise(&p->data.args) ? &pairs[forms].forms : &tap_pairs[forms].forms;
}

unsigned
cuda_conv_pair_forms(const struct cuda_conv_pair *p)
{
    return cuda_is_pointwise(&p->data.args) ? COUNT(pairs) : COUNT(tap_pairs);
}

enum cuda_kernel_id
cuda_conv_kernel(const struct cuda_conv *c)
{
    bool pointwise = cuda_is_pointwise(&c->args);
    const struct tile_row *row;

    if (cuda_has_taps(c))
        return tap_tiles[c->tile].wgrad;
    if (c->tile == COUNT(tiles))
        return CUDA_CONV_FORWARD_HALO;
    row = &tiles[c->tile];
    switch (c->kind) {
    case CONV_FORWARD:
        return pointwise ? row->fprop_pointwise : row->fprop;
    case CONV_DATA:
        return pointwise ? row->dgrad_pointwise : row->dgrad;
    default:
        return row->wgrad_pointwise;
    }
}

enum cuda_kernel_id
cuda_pair_kernel(const struct cuda_conv_pair *p)
{
    return (cuda_is_pointwise(&p->data.args) ? pairs : tap_pairs)[p->forms].kernel;
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

unsigned
cuda_conv_steps(const struct conv_args *a)
{
    return cuda_blocks(a->stride == 1 ? (size_t)a->images * a->height * a->width
                                      : (size_t)a->images * a->out_height * a->out_width,
                       GEMM_DEEP);
}

unsigned
cuda_conv_splits(const struct conv_args *a)
{
    return cuda_blocks(cuda_conv_steps(a), a->steps_each);
}

static unsigned
used(size_t all, unsigned tile, unsigned warp)
{
    size_t warps = (all + warp - 1) / warp * warp;

    return warps < tile ? (unsigned)warps : tile;
}

struct cuda_product
cuda_product_of(enum conv_kind kind, const struct conv_args *a, struct cuda_form f)
{
    size_t outputs = (size_t)a->images * a->out_height * a->out_width;
    size_t inputs = (size_t)a->images * a->height * a->width, taps = (size_t)a->kernel_h * a->kernel_w;
    size_t rows = kind == CONV_FORWARD ? outputs : inputs, columns = kind == CONV_FORWARD ? a->out : a->in;
    struct cuda_product p = {.splits = 1, .each = a->tiles_each};
    unsigned tiles_of_taps = 1;

    if (kind == CONV_WEIGHTS) {
        rows = cuda_is_pointwise(a) ? a->out : a->in;
        columns = cuda_is_pointwise(a) ? a->in : a->stride == 1 ? taps * a->out : a->out;
        tiles_of_taps = a->stride == 1 ? 1 : (unsigned)taps;
        p.splits = cuda_conv_splits(a);
        p.each = 1;
        p.depth = (double)a->steps_each * GEMM_DEEP;
    } else {
        p.depth = (double)taps * (kind == CONV_FORWARD ? a->in : a->out);
    }
    p.rows = used(rows, f.rows, f.warp_rows);
    p.columns = used(columns, f.columns, f.warp_columns);
    p.lines = f.halo ? (double)(f.rows + halo_of(a)) / (double)taps : p.rows;
    p.down = cuda_blocks(rows, f.rows);
    p.across = cuda_blocks(columns, f.columns) * tiles_of_taps;
    return p;
}

size_t
cuda_product_blocks(const struct cuda_product *p)
{
    return (size_t)cuda_blocks(p->down, p->each) * p->across * p->splits;
}

static double
tile_of(const struct cuda_gpu *gpu, const struct cuda_product *p)
{
    return cuda_tile_seconds(gpu, p->rows, p->columns, p->lines, p->depth);
}

double
cuda_one_seconds(const struct cuda_gpu *gpu, const struct cuda_product *p)
{
    return ceil((double)cuda_product_blocks(p) / gpu->processors) * p->each * tile_of(gpu, p);
}

double
cuda_pair_seconds(const struct cuda_gpu *gpu, const struct cuda_product *data, const struct cuda_product *weights)
{
    double of_data = tile_of(gpu, data), of_weights = tile_of(gpu, weights), block = of_data * data->each;
    double sum = (double)data->down * data->across * of_data + (double)cuda_product_blocks(weights) * of_weights;
    double all = ceil(sum / gpu->processors / block) * block;

    return all > of_weights ? all : of_weights;
}

static size_t
tiles_of(const struct cuda_product *p)
{
    return (size_t)p->down * p->across * p->splits;
}

struct cuda_products
cuda_products_of(const struct cuda_op *op)
{
    struct cuda_products k = products[op->kernel];
    struct cuda_product p;

    if (k.one) {
        p = cuda_product_of(k.kind, &op->args.conv, k.form);
        k.tiles = tiles_of(&p);
    } else if (k.pair) {
        p = cuda_product_of(CONV_DATA, &op->args.pair.data, k.form);
        k.tiles = tiles_of(&p);
        p = cuda_product_of(CONV_WEIGHTS, &op->args.pair.weights, k.of_weights);
        k.tiles += tiles_of(&p);
    } else if (k.both) {
        k.tiles = (size_t)op->x * op->y * op->z;
    }
    return k;
}

double
cuda_product_seconds(const struct cuda_gpu *gpu, const struct cuda_op *op)
{
    struct cuda_products k = products[op->kernel];
    struct cuda_product data, weights;

    if (k.one) {
        data = cuda_product_of(k.kind, &op->args.conv, k.form);
        return cuda_one_seconds(gpu, &data);
    }
    data = cuda_product_of(CONV_DATA, &op->args.pair.data, k.form);
    weights = cuda_product_of(CONV_WEIGHTS, &op->args.pair.weights, k.of_weights);
    return cuda_pair_seconds(gpu, &data, &weights);
}
