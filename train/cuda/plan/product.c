/*
 * product.c - see product.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/plan/product.h"

#include <math.h>

/* Tile shapes and their kernels; pointwise: kernels for 1x1 with stride 1. */
static const struct tile_row {
    struct cuda_tile_shape shape;
    enum cuda_kernel_id fprop, fprop_pointwise, dgrad, dgrad_pointwise, wgrad_pointwise;
} tiles[] = {
#define TILE_ROW(name, ...)                                                                      \
    {{__VA_ARGS__, false},   CUDA_CONV_FPROP_##name,           CUDA_CONV_FPROP_POINTWISE_##name, \
     CUDA_CONV_DGRAD_##name, CUDA_CONV_DGRAD_POINTWISE_##name, CUDA_CONV_WGRAD_POINTWISE_##name},
    GEMM_TILES(TILE_ROW)};
static const struct tap_row {
    struct cuda_tile_shape shape;
    enum cuda_kernel_id wgrad;
} tap_tiles[] = {
#define TAP_ROW(name, ...) {{__VA_ARGS__, false}, CUDA_CONV_WGRAD_##name},
    GEMM_TAP_TILES(TAP_ROW)};
struct pair_row {
    struct cuda_pair_shapes shapes;
    enum cuda_kernel_id kernel;
};
static const struct pair_row pairs[] = {
#define PAIR_ROW(name, r, c, wr, wc, ...) \
    {{{r, c, wr, wc, false}, {__VA_ARGS__, false}}, CUDA_CONV_DGRAD_WGRAD_POINTWISE_##name},
    GEMM_PAIRS(PAIR_ROW)};
static const struct pair_row tap_pairs[] = {
#define TAP_PAIR_ROW(name, r, c, wr, wc, ...) \
    {{{r, c, wr, wc, false}, {__VA_ARGS__, false}}, CUDA_CONV_DGRAD_WGRAD_##name},
    GEMM_TAP_PAIRS(TAP_PAIR_ROW)};
static const struct cuda_tile_shape halo = {HALO_ROWS, HALO_COLUMNS, 32, 32, true};

/* The products of each kernel and their tiles, without the number of tiles.  Other kernels have a row of zeros. */
#define ONE(id, of_kind, ...) [id] = {.single = true, .kind = of_kind, .shape = {__VA_ARGS__, false}},
#define PAIR(id, r, c, wr, wc, ...) \
    [id] = {.pair = true, .shape = {r, c, wr, wc, false}, .of_wgrad = {__VA_ARGS__, false}},
#define ONES_OF_TILE(name, ...)                                    \
    ONE(CUDA_CONV_FPROP_##name, CONV_FPROP, __VA_ARGS__)           \
    ONE(CUDA_CONV_FPROP_POINTWISE_##name, CONV_FPROP, __VA_ARGS__) \
    ONE(CUDA_CONV_DGRAD_##name, CONV_DGRAD, __VA_ARGS__)           \
    ONE(CUDA_CONV_DGRAD_POINTWISE_##name, CONV_DGRAD, __VA_ARGS__) \
    ONE(CUDA_CONV_WGRAD_POINTWISE_##name, CONV_WGRAD, __VA_ARGS__)
#define ONE_OF_TAPS(name, ...)  ONE(CUDA_CONV_WGRAD_##name, CONV_WGRAD, __VA_ARGS__)
#define PAIR_OF(name, ...)      PAIR(CUDA_CONV_DGRAD_WGRAD_POINTWISE_##name, __VA_ARGS__)
#define PAIR_OF_TAPS(name, ...) PAIR(CUDA_CONV_DGRAD_WGRAD_##name, __VA_ARGS__)
#define ONE_PASS(id, columns) \
    [id] = {.one_pass = true, .shape = {ONE_PASS_PIXELS, columns, ONE_PASS_PIXELS, columns, false}},
#define ONE_PASS_OF(name, columns, ...) ONE_PASS(CUDA_CONV_ONE_PASS_##name, columns)
static const struct cuda_products products[CUDA_KERNEL_COUNT] = {
    [CUDA_CONV_FPROP_HALO] = {.single = true, .kind = CONV_FPROP, .shape = {HALO_ROWS, HALO_COLUMNS, 32, 32, true}},
    GEMM_TILES(ONES_OF_TILE) GEMM_TAP_TILES(ONE_OF_TAPS) GEMM_PAIRS(PAIR_OF) GEMM_TAP_PAIRS(PAIR_OF_TAPS)
        ONE_PASS_SHAPES(ONE_PASS_OF)};
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
    return c->kind == CONV_WGRAD && !cuda_is_pointwise(&c->args);
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
const struct cuda_tile_shape *
cuda_tile_shape_of(const struct cuda_conv *c, unsigned tile)
{
    return cuda_has_taps(c) ? &tap_tiles[tile].shape : tile < COUNT(tiles) ? &tiles[tile].shape : &halo;
}

unsigned
cuda_conv_tile_shapes(const struct cuda_conv *c)
{
    if (cuda_has_taps(c))
        return COUNT(tap_tiles);
    return COUNT(tiles) + (c->kind == CONV_FPROP && has_halo(&c->args));
}

const struct cuda_pair_shapes *
cuda_pair_shapes_of(const struct cuda_conv_pair *p, unsigned tile_pair)
{
    return cuda_is_pointwise(&p->data.args) ? &pairs[tile_pair].shapes : &tap_pairs[tile_pair].shapes;
}

unsigned
cuda_conv_pair_shapes(const struct cuda_conv_pair *p)
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
        return CUDA_CONV_FPROP_HALO;
    row = &tiles[c->tile];
    switch (c->kind) {
    case CONV_FPROP:
        return pointwise ? row->fprop_pointwise : row->fprop;
    case CONV_DGRAD:
        return pointwise ? row->dgrad_pointwise : row->dgrad;
    default:
        return row->wgrad_pointwise;
    }
}

enum cuda_kernel_id
cuda_pair_kernel(const struct cuda_conv_pair *p)
{
    return (cuda_is_pointwise(&p->data.args) ? pairs : tap_pairs)[p->tile_pair].kernel;
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
    return cuda_blocks(cuda_conv_steps(a), a->k_steps);
}

static unsigned
used(size_t all, unsigned tile, unsigned warp)
{
    size_t warps = (all + warp - 1) / warp * warp;

    return warps < tile ? (unsigned)warps : tile;
}

struct cuda_product
cuda_product_of(enum conv_kind kind, const struct conv_args *a, struct cuda_tile_shape t)
{
    size_t outputs = (size_t)a->images * a->out_height * a->out_width;
    size_t inputs = (size_t)a->images * a->height * a->width, taps = (size_t)a->kernel_h * a->kernel_w;
    size_t rows = kind == CONV_FPROP ? outputs : inputs, columns = kind == CONV_FPROP ? a->out : a->in;
    struct cuda_product p = {.splits = 1, .each = a->tiles_each};
    unsigned tiles_of_taps = 1;

    if (kind == CONV_WGRAD) {
        rows = cuda_is_pointwise(a) ? a->out : a->in;
        columns = cuda_is_pointwise(a) ? a->in : a->stride == 1 ? taps * a->out : a->out;
        tiles_of_taps = a->stride == 1 ? 1 : (unsigned)taps;
        p.splits = cuda_conv_splits(a);
        p.each = 1;
        p.depth = (double)a->k_steps * GEMM_DEEP;
    } else {
        p.depth = (double)taps * (kind == CONV_FPROP ? a->in : a->out);
    }
    p.rows = used(rows, t.rows, t.warp_rows);
    p.columns = used(columns, t.columns, t.warp_columns);
    p.lines = t.halo ? (double)(t.rows + halo_of(a)) / (double)taps : p.rows;
    p.down = cuda_blocks(rows, t.rows);
    p.across = cuda_blocks(columns, t.columns) * tiles_of_taps;
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
    double of_data = tile_of(gpu, data), of_wgrad = tile_of(gpu, weights), block = of_data * data->each;
    double sum = (double)data->down * data->across * of_data + (double)cuda_product_blocks(weights) * of_wgrad;
    double all = ceil(sum / gpu->processors / block) * block;

    return all > of_wgrad ? all : of_wgrad;
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

    if (k.single) {
        p = cuda_product_of(k.kind, &op->args.conv, k.shape);
        k.tiles = tiles_of(&p);
    } else if (k.pair) {
        p = cuda_product_of(CONV_DGRAD, &op->args.pair.data, k.shape);
        k.tiles = tiles_of(&p);
        p = cuda_product_of(CONV_WGRAD, &op->args.pair.weights, k.of_wgrad);
        k.tiles += tiles_of(&p);
    } else if (k.one_pass) {
        k.tiles = (size_t)op->x * op->y * op->z;
    }
    return k;
}

double
cuda_product_seconds(const struct cuda_gpu *gpu, const struct cuda_op *op)
{
    struct cuda_products k = products[op->kernel];
    struct cuda_product data, weights;

    if (k.single) {
        data = cuda_product_of(k.kind, &op->args.conv, k.shape);
        return cuda_one_seconds(gpu, &data);
    }
    data = cuda_product_of(CONV_DGRAD, &op->args.pair.data, k.shape);
    weights = cuda_product_of(CONV_WGRAD, &op->args.pair.weights, k.of_wgrad);
    return cuda_pair_seconds(gpu, &data, &weights);
}
