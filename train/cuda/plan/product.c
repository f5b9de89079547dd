/*
 * product.c - see product.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/plan/product.h"

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
#define STEM_ROW(name, ...) {{__VA_ARGS__, false}, CUDA_CONV_WGRAD_STEM_##name},
static const struct tap_row stem_tiles[] = {GEMM_STEM_TILES(STEM_ROW)};
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
static const struct halo_row {
    struct cuda_tile_shape shape;
    enum cuda_kernel_id dgrad;
} dgrad_halos[] = {
#define HALO_ROW(name, ...) {{__VA_ARGS__, true}, CUDA_CONV_DGRAD_HALO_##name},
    HALO_DGRAD_TILES(HALO_ROW)};
static const struct pair_row halo_pairs[] = {
#define HALO_PAIR_ROW(name, r, c, wr, wc, ...) \
    {{{r, c, wr, wc, true}, {__VA_ARGS__, false}}, CUDA_CONV_DGRAD_WGRAD_HALO_##name},
    HALO_PAIRS(HALO_PAIR_ROW)};

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
#define ONE_OF_STEM(name, ...)  ONE(CUDA_CONV_WGRAD_STEM_##name, CONV_WGRAD, __VA_ARGS__)
#define PAIR_OF(name, ...)      PAIR(CUDA_CONV_DGRAD_WGRAD_POINTWISE_##name, __VA_ARGS__)
#define PAIR_OF_TAPS(name, ...) PAIR(CUDA_CONV_DGRAD_WGRAD_##name, __VA_ARGS__)
#define DGRAD_HALO(name, ...) \
    [CUDA_CONV_DGRAD_HALO_##name] = {.single = true, .kind = CONV_DGRAD, .shape = {__VA_ARGS__, true}},
#define PAIR_HALO(name, r, c, wr, wc, ...) \
    [CUDA_CONV_DGRAD_WGRAD_HALO_##         \
        name] = {.pair = true, .shape = {r, c, wr, wc, true}, .of_wgrad = {__VA_ARGS__, false}},
#define ONE_PASS(id, columns) \
    [id] = {.one_pass = true, .shape = {ONE_PASS_PIXELS, columns, ONE_PASS_PIXELS, columns, false}},
#define ONE_PASS_OF(name, columns, ...) ONE_PASS(CUDA_CONV_ONE_PASS_##name, columns)
static const struct cuda_products products[CUDA_KERNEL_COUNT] = {
    [CUDA_CONV_FPROP_HALO] = {.single = true, .kind = CONV_FPROP, .shape = {HALO_ROWS, HALO_COLUMNS, 32, 32, true}},
    GEMM_TILES(ONES_OF_TILE) GEMM_TAP_TILES(ONE_OF_TAPS) GEMM_STEM_TILES(ONE_OF_STEM) GEMM_PAIRS(PAIR_OF)
        GEMM_TAP_PAIRS(PAIR_OF_TAPS) HALO_DGRAD_TILES(DGRAD_HALO) HALO_PAIRS(PAIR_HALO) ONE_PASS_SHAPES(ONE_PASS_OF)};
#define COUNT(list) ((unsigned)(sizeof(list) / sizeof(*(list))))

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

bool
cuda_is_pointwise(const struct conv_shape *s)
{
    return s->kernel_h == 1 && s->kernel_w == 1 && s->stride == 1 && s->pad_h == 0 && s->pad_w == 0;
}

/* Pixels overlap the following pixels, as in the stem's input. */
static bool
overlaps(const struct conv_shape *s)
{
    return s->in > s->x_ld;
}

static bool
is_stem_wgrad(const struct cuda_conv *c)
{
    return c->kind == CONV_WGRAD && overlaps(&c->shape);
}

bool
cuda_has_taps(const struct cuda_conv *c)
{
    return c->kind == CONV_WGRAD && !cuda_is_pointwise(&c->shape) && !overlaps(&c->shape);
}

static unsigned
halo_of(const struct conv_shape *s)
{
    return 2 * (s->pad_h * s->width + s->pad_w);
}

/* Returns true if the output is as large as the input, and if the halo fits into shared memory. */
static bool
has_halo(const struct conv_shape *s)
{
    return s->stride == 1 && s->out_height == s->height && s->out_width == s->width && !cuda_is_pointwise(s) &&
           s->kernel_h == 2 * s->pad_h + 1 && s->kernel_w == 2 * s->pad_w + 1 && s->in <= s->x_ld &&
           s->kernel_h * s->kernel_w <= HALO_TAPS && HALO_ROWS + halo_of(s) <= HALO_LINES;
}

/* dgrad_halo.h has nine taps, and all channels of dy in one step. */
static bool
has_dgrad_halo(const struct conv_shape *s)
{
    return has_halo(s) && s->kernel_h == 3 && s->kernel_w == 3 && s->out <= GEMM_DEEP;
}

/* A tile of wgrad_halo.h has three taps of GEMM_DEEP channels. */
static bool
has_pair_halo(const struct conv_shape *s)
{
    return has_dgrad_halo(s) && s->out == GEMM_DEEP;
}

/* fprop and dgrad have their kernels with a halo as the last tile shapes. */
const struct cuda_tile_shape *
cuda_tile_shape_of(const struct cuda_conv *c, unsigned tile)
{
    if (is_stem_wgrad(c))
        return &stem_tiles[tile].shape;
    if (cuda_has_taps(c))
        return &tap_tiles[tile].shape;
    if (tile < COUNT(tiles))
        return &tiles[tile].shape;
    return c->kind == CONV_DGRAD ? &dgrad_halos[tile - COUNT(tiles)].shape : &halo;
}

unsigned
cuda_conv_tile_shapes(const struct cuda_conv *c)
{
    if (is_stem_wgrad(c))
        return COUNT(stem_tiles);
    if (cuda_has_taps(c))
        return COUNT(tap_tiles);
    if (c->kind == CONV_DGRAD)
        return COUNT(tiles) + (has_dgrad_halo(&c->shape) ? COUNT(dgrad_halos) : 0);
    return COUNT(tiles) + (c->kind == CONV_FPROP && has_halo(&c->shape));
}

/* A pair of this number; those with a halo come last. */
static const struct pair_row *
pair_of(const struct cuda_conv_pair *p, unsigned tile_pair)
{
    if (cuda_is_pointwise(&p->dgrad.shape))
        return &pairs[tile_pair];
    return tile_pair < COUNT(tap_pairs) ? &tap_pairs[tile_pair] : &halo_pairs[tile_pair - COUNT(tap_pairs)];
}

const struct cuda_pair_shapes *
cuda_pair_shapes_of(const struct cuda_conv_pair *p, unsigned tile_pair)
{
    return &pair_of(p, tile_pair)->shapes;
}

unsigned
cuda_conv_pair_shapes(const struct cuda_conv_pair *p)
{
    if (cuda_is_pointwise(&p->dgrad.shape))
        return COUNT(pairs);
    return COUNT(tap_pairs) + (has_pair_halo(&p->dgrad.shape) ? COUNT(halo_pairs) : 0);
}

enum cuda_kernel_id
cuda_conv_kernel(const struct cuda_conv *c)
{
    bool pointwise = cuda_is_pointwise(&c->shape);
    const struct tile_row *row;

    if (is_stem_wgrad(c))
        return stem_tiles[c->tile].wgrad;
    if (cuda_has_taps(c))
        return tap_tiles[c->tile].wgrad;
    if (c->tile >= COUNT(tiles))
        return c->kind == CONV_DGRAD ? dgrad_halos[c->tile - COUNT(tiles)].dgrad : CUDA_CONV_FPROP_HALO;
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
    return pair_of(p, p->tile_pair)->kernel;
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

bool
cuda_wgrad_sums_outputs(const struct conv_shape *s)
{
    return s->stride != 1 || overlaps(s);
}

unsigned
cuda_wgrad_steps(const struct conv_shape *s)
{
    return cuda_blocks(cuda_wgrad_sums_outputs(s) ? (size_t)s->images * s->out_height * s->out_width
                                                  : (size_t)s->images * s->height * s->width,
                       GEMM_DEEP);
}

unsigned
cuda_wgrad_splits(const struct wgrad_args *a)
{
    return cuda_blocks(cuda_wgrad_steps(&a->shape), a->k_steps);
}

static unsigned
used(size_t all, unsigned tile, unsigned warp)
{
    size_t warps = (all + warp - 1) / warp * warp;

    return warps < tile ? (unsigned)warps : tile;
}

struct cuda_product
cuda_product_of(const struct cuda_conv *c, struct cuda_tile_shape t)
{
    const struct conv_shape *s = &c->shape;
    size_t outputs = (size_t)s->images * s->out_height * s->out_width;
    size_t inputs = (size_t)s->images * s->height * s->width, taps = (size_t)s->kernel_h * s->kernel_w;
    size_t rows = outputs, columns = s->out;
    struct cuda_product p = {.splits = 1, .each = 1};
    unsigned tiles_of_taps = 1;

    switch (c->kind) {
    case CONV_FPROP:
        p.each = c->fprop.tiles_each;
        p.depth = (double)taps * s->in;
        break;
    case CONV_DGRAD:
        rows = inputs;
        columns = s->in;
        p.each = c->dgrad.tiles_each;
        p.depth = (double)taps * s->out;
        break;
    case CONV_WGRAD:
        if (overlaps(s) || cuda_is_pointwise(s)) {
            rows = s->out;
            columns = taps * s->in;
        } else {
            rows = s->in;
            columns = s->stride == 1 ? taps * s->out : s->out;
            tiles_of_taps = s->stride == 1 ? 1 : (unsigned)taps;
        }
        p.splits = cuda_wgrad_splits(&c->wgrad);
        p.depth = (double)c->wgrad.k_steps * GEMM_DEEP;
        break;
    }
    p.rows = used(rows, t.rows, t.warp_rows);
    p.columns = used(columns, t.columns, t.warp_columns);
    p.taps_a_step = t.halo ? (unsigned)taps : 0;
    p.lines = t.halo ? (double)(t.rows + halo_of(s)) / (double)taps : p.rows;
    p.down = cuda_blocks(rows, t.rows);
    p.across = cuda_blocks(columns, t.columns) * tiles_of_taps;
    return p;
}

size_t
cuda_product_blocks(const struct cuda_product *p)
{
    return (size_t)cuda_blocks(p->down, p->each) * p->across * p->splits;
}

static size_t
tiles_of(const struct cuda_product *p)
{
    return (size_t)p->down * p->across * p->splits;
}

struct cuda_conv
cuda_conv_of(const struct cuda_op *op)
{
    struct cuda_conv c = {.kind = products[op->kernel].kind, .splits = 1};

    switch (c.kind) {
    case CONV_FPROP:
        c.fprop = op->args.fprop;
        break;
    case CONV_DGRAD:
        c.dgrad = op->args.dgrad;
        break;
    case CONV_WGRAD:
        c.wgrad = op->args.wgrad;
        break;
    }
    return c;
}

void
cuda_products_of_pair(const struct cuda_op *op, struct cuda_product *dgrad, struct cuda_product *wgrad)
{
    const struct cuda_products *k = &products[op->kernel];
    struct cuda_conv d = {.kind = CONV_DGRAD, .dgrad = op->args.pair.dgrad};
    struct cuda_conv w = {.kind = CONV_WGRAD, .wgrad = op->args.pair.wgrad};

    *dgrad = cuda_product_of(&d, k->shape);
    *wgrad = cuda_product_of(&w, k->of_wgrad);
}

struct cuda_products
cuda_products_of(const struct cuda_op *op)
{
    struct cuda_products k = products[op->kernel];
    struct cuda_product p, wgrad;
    struct cuda_conv c;

    if (k.single) {
        c = cuda_conv_of(op);
        p = cuda_product_of(&c, k.shape);
        k.tiles = tiles_of(&p);
    } else if (k.pair) {
        cuda_products_of_pair(op, &p, &wgrad);
        k.tiles = tiles_of(&p) + tiles_of(&wgrad);
    } else if (k.one_pass) {
        k.tiles = (size_t)op->x * op->y * op->z;
    }
    return k;
}
