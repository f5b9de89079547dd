/*
 * product.c - see product.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/plan/product.h"

#include <math.h>

#define FORM(form, ...)                {__VA_ARGS__, false},
#define FORMS(form, r, c, wr, wc, ...) {{r, c, wr, wc, false}, {__VA_ARGS__, false}},
static const struct cuda_form halo = {HALO_ROWS, HALO_COLUMNS, 32, 32, true};
static const struct cuda_form tiles[] = {GEMM_TILES(FORM)}, tap_tiles[] = {GEMM_TAP_TILES(FORM)};
static const struct cuda_forms pairs[] = {GEMM_PAIRS(FORMS)}, tap_pairs[] = {GEMM_TAP_PAIRS(FORMS)};
#define COUNT(list) ((unsigned)(sizeof(list) / sizeof(*(list))))

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

#define OF_TILE   5 /* kernels per entry of `tiles` */
#define TAP_IDS   (OF_TILE * COUNT(tiles))
#define PAIR_IDS  (TAP_IDS + COUNT(tap_tiles))
#define TAP_PAIRS (PAIR_IDS + COUNT(pairs))

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
    return cuda_has_taps(c) ? &tap_tiles[tile] : tile < COUNT(tiles) ? &tiles[tile] : &halo;
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
    return cuda_is_pointwise(&p->data.args) ? &pairs[forms] : &tap_pairs[forms];
}

unsigned
cuda_conv_pair_forms(const struct cuda_conv_pair *p)
{
    return cuda_is_pointwise(&p->data.args) ? COUNT(pairs) : COUNT(tap_pairs);
}

enum cuda_kernel_id
cuda_conv_kernel(const struct cuda_conv *c)
{
    unsigned of_tile = (unsigned)c->kind * 2 + (c->kind != CONV_WEIGHTS && cuda_is_pointwise(&c->args));

    if (cuda_form_of(c, c->tile)->halo)
        return CUDA_CONV_FORWARD_HALO;
    return (enum cuda_kernel_id)(cuda_has_taps(c) ? TAP_IDS + c->tile : c->tile * OF_TILE + of_tile);
}

enum cuda_kernel_id
cuda_pair_kernel(const struct cuda_conv_pair *p)
{
    return (enum cuda_kernel_id)((cuda_is_pointwise(&p->data.args) ? PAIR_IDS : TAP_PAIRS) + p->forms);
}

/* Sets kinds and tile shapes; tiles stays 0. */
static struct cuda_products
kernels_of(const struct cuda_op *op)
{
    bool with_halo = op->kernel == CUDA_CONV_FORWARD_HALO;
    struct cuda_products p = {.one = op->kernel < PAIR_IDS || with_halo,
                              .pair = op->kernel >= PAIR_IDS && op->kernel < CUDA_CONV_FORWARD_HALO};

    if (with_halo) {
        p.kind = CONV_FORWARD;
        p.form = halo;
    } else if (op->kernel < TAP_IDS) {
        p.kind = (enum conv_kind)(op->kernel % OF_TILE / 2);
        p.form = tiles[op->kernel / OF_TILE];
    } else if (p.one) {
        p.kind = CONV_WEIGHTS;
        p.form = tap_tiles[op->kernel - TAP_IDS];
    } else if (p.pair) {
        const struct cuda_forms *f = op->kernel < TAP_PAIRS ? &pairs[op->kernel - PAIR_IDS]
                                                            : &tap_pairs[op->kernel - TAP_PAIRS];

        p.form = f->data;
        p.of_weights = f->weights;
    }
    return p;
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
    struct cuda_products k = kernels_of(op);
    struct cuda_product p;

    if (k.one) {
        p = cuda_product_of(k.kind, &op->args.conv, k.form);
        k.tiles = tiles_of(&p);
    } else if (k.pair) {
        p = cuda_product_of(CONV_DATA, &op->args.pair.data, k.form);
        k.tiles = tiles_of(&p);
        p = cuda_product_of(CONV_WEIGHTS, &op->args.pair.weights, k.of_weights);
        k.tiles += tiles_of(&p);
    }
    return k;
}

double
cuda_product_seconds(const struct cuda_gpu *gpu, const struct cuda_op *op)
{
    struct cuda_products k = kernels_of(op);
    struct cuda_product data, weights;

    if (k.one) {
        data = cuda_product_of(k.kind, &op->args.conv, k.form);
        return cuda_one_seconds(gpu, &data);
    }
    data = cuda_product_of(CONV_DATA, &op->args.pair.data, k.form);
    weights = cuda_product_of(CONV_WEIGHTS, &op->args.pair.weights, k.of_weights);
    return cuda_pair_seconds(gpu, &data, &weights);
}
