/*
 * conv.c - convolutions as launches: chooses the tile shape, the splits and the tiles per CTA; see conv.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/plan/conv.h"

#include "cuda/plan/product.h"

/* ---- limits of the kernels --------------------------------------------------------------------------------------- */

#define MOST_PIXELS ((size_t)1 << 31) /* limit of conv_divisor */
#define MOST_SIDE   (1u << 15)        /* limit of gemm_line */

static bool
is_aligned(const void *p)
{
    return (uintptr_t)p % 16 == 0;
}

/* Pixels overlap the following pixels, as in the stem's input; no row may be read beyond its end. */
static bool
overlaps_within_rows(const struct conv_args *a)
{
    return a->x_ld > 0 && a->in % a->x_ld == 0 && a->kernel_w == 1 && a->pad_w == 0 && a->stride == 1 && !a->add &&
           a->out_width - 1 + a->in / a->x_ld <= a->width;
}

static bool
can_be_counted(const struct conv_args *a)
{
    return (size_t)a->images * a->height * a->width < MOST_PIXELS &&
           (size_t)a->images * a->out_height * a->out_width < MOST_PIXELS && a->height + a->pad_h < MOST_SIDE &&
           a->width + a->pad_w < MOST_SIDE && a->out_height + a->pad_h < MOST_SIDE &&
           a->out_width + a->pad_w < MOST_SIDE;
}

bool
cuda_conv_fits(const struct conv_args *a)
{
    return a->in % 8 == 0 && a->out % 8 == 0 && a->x_ld % 8 == 0 && a->y_ld % 8 == 0 &&
           (a->in <= a->x_ld || overlaps_within_rows(a)) && a->out <= a->y_ld && can_be_counted(a) &&
           is_aligned(a->x) && is_aligned(a->y) && is_aligned(a->w) && is_aligned(a->partial) &&
           is_aligned(a->values) && !(a->norm.gamma && (a->in > GEMM_NORM_CHANNELS || a->in > a->x_ld));
}

/* ---- cost of a launch -------------------------------------------------------------------------------------------- */

static double
partial_bytes(const struct conv_args *a)
{
    unsigned splits = cuda_conv_splits(a);

    return (double)PARTIAL_SIZE(splits, 2) * splits * a->out * a->kernel_h * a->kernel_w * a->in;
}

/*
 * Returns the bytes moved.  A pair reads the same data for both products, so only dgrad's and the partial sums count.
 */
static double
bytes_of(enum conv_kind kind, const struct conv_args *a)
{
    double inputs = (double)a->images * a->height * a->width * a->in;
    double outputs = (double)a->images * a->out_height * a->out_width * a->out;
    double weights = (double)a->out * a->kernel_h * a->kernel_w * a->in;

    if (kind == CONV_WGRAD)
        return 2 * (inputs + outputs) + partial_bytes(a);
    return 2 * (inputs + outputs + weights) + (kind == CONV_DGRAD ? 4 * inputs : 0); /* mask, and A so far */
}

/*
 * Returns the time of later launches: sum_all reads the splits; more rows of partial sums than FEW_ROWS per
 * multiprocessor need a reduce_sums launch.
 */
#define FEW_ROWS 2
static double
later_of(const struct cuda_gpu *gpu, const struct cuda_product *p, enum conv_kind kind, const struct conv_args *a)
{
    if (kind == CONV_WGRAD)
        return cuda_memory_seconds(gpu, partial_bytes(a));
    return cuda_blocks(p->down, p->each) > FEW_ROWS * gpu->processors ? gpu->gap : 0;
}

/* Weight of the product time: decides between choices with the same cost. */
#define NEXT 1e-3
static double
cost_of(double memory, double product, double later)
{
    return (memory > product ? memory : product) + later + NEXT * product;
}

static double
cost_of_one(const struct cuda_gpu *gpu, const struct cuda_conv *c, struct cuda_tile_shape t)
{
    struct cuda_product p = cuda_product_of(c->kind, &c->args, t);

    return cost_of(cuda_memory_seconds(gpu, bytes_of(c->kind, &c->args)), cuda_one_seconds(gpu, &p),
                   later_of(gpu, &p, c->kind, &c->args));
}

static double
cost_of_pair(const struct cuda_gpu *gpu, const struct cuda_conv_pair *c, const struct cuda_pair_shapes *t)
{
    struct cuda_product data = cuda_product_of(CONV_DGRAD, &c->data.args, t->data);
    struct cuda_product weights = cuda_product_of(CONV_WGRAD, &c->weights.args, t->weights);
    double bytes = bytes_of(CONV_DGRAD, &c->data.args) + partial_bytes(&c->weights.args);

    return cost_of(cuda_memory_seconds(gpu, bytes), cuda_pair_seconds(gpu, &data, &weights),
                   later_of(gpu, &data, CONV_DGRAD, &c->data.args) +
                       later_of(gpu, &weights, CONV_WGRAD, &c->weights.args));
}

/* ---- the choice -------------------------------------------------------------------------------------------------- */

#define LEAST_STEPS 8  /* k-steps of a split */
#define MOST_EACH   32 /* tiles of a CTA */
#define HALO_MAJOR  8  /* older GPUs have shared memory for only one CTA with a halo per multiprocessor */

static struct conv_divisor
divisor_of(unsigned by)
{
    unsigned shift = 0;

    while (shift < 31 && 1u << shift < by)
        shift++;
    return (struct conv_divisor){(unsigned)(((uint64_t)1 << (31 + shift)) / by) + 1, shift};
}

static void
begin(struct cuda_conv *c)
{
    struct conv_args *a = &c->args;
    bool outputs = c->kind == CONV_FPROP || (c->kind == CONV_WGRAD && a->stride != 1);

    a->by_width = divisor_of(outputs ? a->out_width : a->width);
    a->by_height = divisor_of(outputs ? a->out_height : a->height);
    a->tiles_each = 1;
    a->k_steps = c->kind == CONV_WGRAD ? cuda_conv_steps(a) : 0;
    c->splits = 1;
}

static void
split(struct cuda_conv *c, unsigned splits)
{
    c->args.k_steps = cuda_blocks(cuda_conv_steps(&c->args), splits);
    c->splits = cuda_conv_splits(&c->args);
}

/* Returns the largest number of splits that does not exceed this number of CTAs. */
static unsigned
most_splits(const struct cuda_conv *c, struct cuda_tile_shape t, unsigned blocks)
{
    struct cuda_product p = cuda_product_of(c->kind, &c->args, t);
    unsigned most = blocks / (p.down * p.across), steps = cuda_conv_steps(&c->args) / LEAST_STEPS;

    most = most < steps ? most : steps;
    return c->kind != CONV_WGRAD || most < 1 ? 1 : most;
}

static unsigned
most_each(const struct cuda_conv *c, struct cuda_tile_shape t)
{
    unsigned down = cuda_product_of(c->kind, &c->args, t).down;

    return c->kind == CONV_WGRAD ? 1 : down < MOST_EACH ? down : MOST_EACH;
}

/* Chooses the best parameters for a tile shape, with up to two CTAs per multiprocessor.  Returns the cost. */
static double
take_best(struct cuda_conv *c, unsigned tile, unsigned processors)
{
    const struct cuda_gpu gpu = cuda_gpu_of(c->major, processors);
    struct cuda_tile_shape t = *cuda_tile_shape_of(c, tile);
    unsigned n, most;
    struct cuda_conv best;
    double least;

    begin(c);
    c->tile = tile;
    best = *c;
    least = cost_of_one(&gpu, c, t);
    most = c->kind == CONV_WGRAD ? most_splits(c, t, 2 * processors) : most_each(c, t);
    for (n = 2; n <= most; n++) {
        double cost;

        if (c->kind == CONV_WGRAD)
            split(c, n);
        else
            c->args.tiles_each = n;
        cost = cost_of_one(&gpu, c, t);
        if (cost < least) {
            least = cost;
            best = *c;
        }
    }
    *c = best;
    return least;
}

/* Returns the index of this tile shape among those of a single product. */
static unsigned
tile_like(const struct cuda_conv *c, struct cuda_tile_shape t)
{
    unsigned tile;

    for (tile = 0; tile < cuda_conv_tile_shapes(c); tile++)
        if (cuda_tile_shape_of(c, tile)->rows == t.rows && cuda_tile_shape_of(c, tile)->columns == t.columns)
            break;
    return tile;
}

/* Uses up to one wgrad CTA per multiprocessor, because dgrad CTAs fill the rest. */
static double
take_best_pair(struct cuda_conv_pair *p, unsigned tile_pair, unsigned processors)
{
    const struct cuda_gpu gpu = cuda_gpu_of(p->data.major, processors);
    const struct cuda_pair_shapes *t = cuda_pair_shapes_of(p, tile_pair);
    unsigned n, most, each, tiles_each = 1, splits = 1;
    double least;

    p->tile_pair = tile_pair;
    begin(&p->data);
    begin(&p->weights);
    p->data.tile = tile_like(&p->data, t->data);
    p->weights.tile = tile_like(&p->weights, t->weights);
    least = cost_of_pair(&gpu, p, t);
    most = most_splits(&p->weights, t->weights, processors);
    each = most_each(&p->data, t->data);
    for (p->data.args.tiles_each = 1; p->data.args.tiles_each <= each; p->data.args.tiles_each++)
        for (n = 1; n <= most; n++) {
            double cost;

            split(&p->weights, n);
            cost = cost_of_pair(&gpu, p, t);
            if (cost < least) {
                least = cost;
                tiles_each = p->data.args.tiles_each;
                splits = n;
            }
        }
    p->data.args.tiles_each = tiles_each;
    split(&p->weights, splits);
    return least;
}

void
cuda_conv_take(struct cuda_conv *c, unsigned tile, unsigned processors)
{
    take_best(c, tile, processors);
}

void
cuda_conv_choose(struct cuda_conv *c, unsigned processors)
{
    double best = 0;
    unsigned tile, chosen = 0;

    for (tile = 0; tile < cuda_conv_tile_shapes(c); tile++) {
        double cost;

        if (cuda_tile_shape_of(c, tile)->halo && c->major > 0 && c->major < HALO_MAJOR)
            continue;
        cost = take_best(c, tile, processors);
        if (tile == 0 || cost < best) {
            best = cost;
            chosen = tile;
        }
    }
    take_best(c, chosen, processors);
}

void
cuda_conv_pair_take(struct cuda_conv_pair *p, unsigned tile_pair, unsigned processors)
{
    take_best_pair(p, tile_pair, processors);
}

void
cuda_conv_pair_choose(struct cuda_conv_pair *p, unsigned processors)
{
    double best = 0;
    unsigned tile_pair, chosen = 0;

    for (tile_pair = 0; tile_pair < cuda_conv_pair_shapes(p); tile_pair++) {
        double cost = take_best_pair(p, tile_pair, processors);

        if (tile_pair == 0 || cost < best) {
            best = cost;
            chosen = tile_pair;
        }
    }
    take_best_pair(p, chosen, processors);
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

size_t
cuda_conv_partial(const struct cuda_conv *c)
{
    const struct conv_args *a = &c->args;

    return c->kind == CONV_WGRAD ? (size_t)c->splits * a->out * a->kernel_h * a->kernel_w * a->in : 0;
}

/* Returns the shared memory of the BN table. */
static unsigned
table_bytes(const struct cuda_conv *c)
{
    struct cuda_tile_shape t = *cuda_tile_shape_of(c, c->tile);

    if (!c->args.norm.gamma)
        return 0;
    return c->kind == CONV_FPROP   ? GEMM_TABLE_FPROP(c->args.in)
           : c->kind == CONV_DGRAD ? GEMM_TABLE_DGRAD(t.columns)
                                   : GEMM_TABLE_WGRAD(cuda_has_taps(c) ? t.rows : t.columns);
}

struct cuda_op
cuda_conv_op(const struct cuda_conv *c)
{
    struct cuda_product p = cuda_product_of(c->kind, &c->args, *cuda_tile_shape_of(c, c->tile));

    return (struct cuda_op){.kernel = cuda_conv_kernel(c),
                            .x = cuda_blocks(p.down, p.each),
                            .y = p.across,
                            .z = p.splits,
                            .shared = table_bytes(c),
                            .args.conv = c->args,
                            .node = CUDA_NO_NODE,
                            .final = SIZE_MAX};
}

struct cuda_op
cuda_conv_pair_op(const struct cuda_conv_pair *p)
{
    struct cuda_op data = cuda_conv_op(&p->data), weights = cuda_conv_op(&p->weights);

    return (struct cuda_op){.kernel = cuda_pair_kernel(p),
                            .x = data.x * data.y + weights.x * weights.y * p->weights.splits,
                            .y = 1,
                            .z = 1,
                            .shared = data.shared > weights.shared ? data.shared : weights.shared,
                            .args.pair = {p->data.args, p->weights.args},
                            .node = CUDA_NO_NODE,
                            .final = SIZE_MAX};
}
