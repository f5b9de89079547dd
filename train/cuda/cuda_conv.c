/*
 * cuda_conv.c - convolutions as launches: which form of tile, how many splits; see cuda_launch.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/cuda_launch.h"

static const struct tile_form {
    unsigned rows, columns, warp_rows, warp_columns, shared;
    unsigned resident; /* blocks that the registers of a multiprocessor are enough for */
} forms[] = {
#define RESIDENT_128x128         2
#define RESIDENT_64x128          3
#define RESIDENT_64x64           4
#define RESIDENT_128x32          4
#define FORM(form, r, c, wr, wc) {r, c, wr, wc, GEMM_SHARED(r, c, 2), RESIDENT_##form},
    GEMM_TILES(FORM)};

/*
 * What one multiprocessor has of a V100, an A100 and an H200: products and bytes that published measurements of large
 * products and copies reach, with mma.sync's share of the first.  Nothing of it was measured by this project.  A
 * generation stands for all of its devices, the last one for what comes.
 */
static const struct figures {
    unsigned major, shared; /* shared: memory of its blocks */
    double product;         /* floating-point operations in a microsecond */
    double far, near;       /* bytes in a microsecond, from memory and from the cache */
    double step, fill;      /* microseconds: to wait for a step's operands; to fill and to drain a tile */
} figures[] = {
    {7, 96u << 10, 1.0e6, 9.9e3, 27e3, 0.50, 1.5},
    {8, 164u << 10, 2.1e6, 12.5e3, 37e3, 0.20, 1.5},
    {9, 228u << 10, 3.7e6, 32.6e3, 42e3, 0.20, 1.5},
};
#define OVERLAP 0.75 /* of what is not the longest goes on beside it */

static const struct figures *
figures_of(const struct cuda_conv *c)
{
    const struct figures *f = &figures[sizeof(figures) / sizeof(*figures) - 1];

    while (f > figures && c->major != 0 && f->major > c->major)
        f--;
    return f;
}

/* ---- what kernels take ------------------------------------------------------------------------------------------- */

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
           is_aligned(a->w) && is_aligned(a->partial) && is_aligned(a->values) &&
           !(a->norm.gamma && (a->in > GEMM_NORM_CHANNELS || a->in > a->x_ld));
}

/* ---- what a launch costs ----------------------------------------------------------------------------------------- */

/* C of the product, in tiles; how many steps of k one of them takes. */
struct product {
    unsigned rows, columns; /* of a tile, without warps that are beyond the product */
    unsigned tiles_down, tiles_across, steps;
};

static unsigned
smaller(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static struct product
make_product(const struct tile_form *f, unsigned rows, unsigned columns, unsigned taps, unsigned steps)
{
    return (struct product){smaller(f->rows, cuda_blocks(rows, f->warp_rows) * f->warp_rows),
                            smaller(f->columns, cuda_blocks(columns, f->warp_columns) * f->warp_columns),
                            cuda_blocks(rows, f->rows), taps * cuda_blocks(columns, f->columns), steps};
}

static struct product
product_of(const struct cuda_conv *c, unsigned tile)
{
    const struct conv_args *a = &c->args;
    unsigned taps = a->kernel_h * a->kernel_w, outputs = a->images * a->out_height * a->out_width;

    switch (c->kind) {
    case CONV_FORWARD:
        return make_product(&forms[tile], outputs, a->out, 1, taps * cuda_blocks(a->in, GEMM_DEEP));
    case CONV_DATA:
        return make_product(&forms[tile], a->images * a->height * a->width, a->in, 1,
                            taps * cuda_blocks(a->out, GEMM_DEEP));
    default:
        return make_product(&forms[tile], a->out, a->in, taps, cuda_blocks(outputs, GEMM_DEEP));
    }
}

/* Of one tile: operations, bytes from the cache, microseconds of waiting; of all: bytes of memory, in the launch and,
 * of partial sums, behind it. */
struct demand {
    double tiles, product, near, wait, far, later;
};

static struct demand
demand_of(const struct figures *f, const struct cuda_conv *c, unsigned tile, unsigned splits)
{
    const struct conv_args *a = &c->args;
    struct product p = product_of(c, tile);
    double inputs = (double)a->images * a->height * a->width * a->in;
    double outputs = (double)a->images * a->out_height * a->out_width * a->out;
    double weights = (double)a->out * a->kernel_h * a->kernel_w * a->in, steps = cuda_blocks(p.steps, splits);
    double partial = c->kind == CONV_WEIGHTS ? 4 * splits * weights : 0, more = 0;

    if (c->kind == CONV_DATA)
        more = 2 * inputs * ((a->add ? 1 : 0) + (a->values ? 1 : 0));
    return (struct demand){.tiles = (double)p.tiles_down * p.tiles_across * splits,
                           .product = 2.0 * p.rows * p.columns * GEMM_DEEP * steps,
                           .near = 2.0 * (p.rows + p.columns) * GEMM_DEEP * steps,
                           .wait = steps * f->step + f->fill,
                           .far = 2 * (inputs + outputs + weights) + more + partial,
                           .later = partial};
}

/* Of long tiles, and of others that fill the gaps: a mean share, or one of the long tiles. */
static double
filled(double tiles, double each, double others, double other, unsigned places)
{
    double mean = (tiles * each + others * other) / places;

    return mean > each ? mean : each;
}

/*
 * Microseconds of a launch of `count` products, 1 or 2.  The tiles of one come in whole rounds; those of a second,
 * which are short, fill what the first leaves.
 */
static double
time_of(const struct figures *f, const struct tile_form *form, const struct demand *d, unsigned count,
        unsigned processors)
{
    unsigned resident = smaller(form->resident, f->shared / form->shared);
    double product, near, wait, far, most, later = d->later / (f->far * processors);

    if (count == 1) {
        double each = cuda_blocks((size_t)d->tiles, processors);

        product = each * d->product;
        near = each * d->near;
        wait = cuda_blocks((size_t)each, resident) * d->wait;
        far = d->far;
    } else {
        product = filled(d[0].tiles, d[0].product, d[1].tiles, d[1].product, processors);
        near = filled(d[0].tiles, d[0].near, d[1].tiles, d[1].near, processors);
        wait = filled(d[0].tiles, d[0].wait, d[1].tiles, d[1].wait, processors * resident) + d[1].wait / 2;
        far = d[0].far + d[1].far;
    }
    product /= f->product;
    near /= f->near;
    far /= f->far * processors;
    most = product > near ? product : near;
    most = most > far ? most : far;
    most = most > wait ? most : wait;
    return most + (1 - OVERLAP) * (product + near + far + wait - most) + later;
}

static double
conv_time(const struct cuda_conv *c, unsigned tile, unsigned splits, unsigned processors)
{
    const struct figures *f = figures_of(c);
    struct demand d = demand_of(f, c, tile, splits);

    return time_of(f, &forms[tile], &d, 1, processors);
}

static double
pair_time(const struct cuda_conv_pair *p, unsigned tile, unsigned splits, unsigned processors)
{
    const struct figures *f = figures_of(&p->data);
    struct demand d[] = {demand_of(f, &p->weights, tile, splits), demand_of(f, &p->data, tile, 1)};

    return time_of(f, &forms[tile], d, 2, processors);
}

/* ---- what is chosen ---------------------------------------------------------------------------------------------- */

#define LEAST_STEPS 8 /* of a split */

/* At most, to have so many blocks. */
static unsigned
most_splits(const struct cuda_conv *c, unsigned tile, unsigned blocks)
{
    struct product p = product_of(c, tile);
    unsigned most = smaller(blocks / (p.tiles_down * p.tiles_across), p.steps / LEAST_STEPS);

    return c->kind != CONV_WEIGHTS || most < 1 ? 1 : most;
}

static void
take(struct cuda_conv *c, unsigned tile, unsigned splits)
{
    struct product p = product_of(c, tile);

    c->tile = tile;
    c->args.steps_each = cuda_blocks(p.steps, splits);
    c->splits = cuda_blocks(p.steps, c->args.steps_each);
}

/* Two blocks for each multiprocessor; one, where blocks of the other gradient fill the rest. */
static unsigned
best_splits(const struct cuda_conv *c, unsigned tile, unsigned processors)
{
    unsigned splits, best = 1, most = most_splits(c, tile, 2 * processors);

    for (splits = 2; splits <= most; splits++)
        if (conv_time(c, tile, splits, processors) < conv_time(c, tile, best, processors))
            best = splits;
    return best;
}

static unsigned
best_splits_of_pair(const struct cuda_conv_pair *p, unsigned tile, unsigned processors)
{
    unsigned splits, best = 1, most = most_splits(&p->weights, tile, processors);

    for (splits = 2; splits <= most; splits++)
        if (pair_time(p, tile, splits, processors) < pair_time(p, tile, best, processors))
            best = splits;
    return best;
}

void
cuda_conv_take(struct cuda_conv *c, unsigned tile, unsigned processors)
{
    take(c, tile, best_splits(c, tile, processors));
}

void
cuda_conv_choose(struct cuda_conv *c, unsigned processors)
{
    double best = 0;
    unsigned tile, chosen = 0;

    for (tile = 0; tile < CONV_TILES; tile++) {
        double time = conv_time(c, tile, best_splits(c, tile, processors), processors);

        if (tile == 0 || time < best) {
            best = time;
            chosen = tile;
        }
    }
    cuda_conv_take(c, chosen, processors);
}

void
cuda_conv_pair_take(struct cuda_conv_pair *p, unsigned tile, unsigned processors)
{
    take(&p->data, tile, 1);
    take(&p->weights, tile, best_splits_of_pair(p, tile, processors));
}

void
cuda_conv_pair_choose(struct cuda_conv_pair *p, unsigned processors)
{
    double best = 0;
    unsigned tile, chosen = 0;

    for (tile = 0; tile < CONV_TILES; tile++) {
        double time = pair_time(p, tile, best_splits_of_pair(p, tile, processors), processors);

        if (tile == 0 || time < best) {
            best = time;
            chosen = tile;
        }
    }
    cuda_conv_pair_take(p, chosen, processors);
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

size_t
cuda_conv_partial(const struct cuda_conv *c)
{
    const struct conv_args *a = &c->args;

    return c->kind == CONV_WEIGHTS ? (size_t)c->splits * a->out * a->kernel_h * a->kernel_w * a->in : 0;
}

/* Shared memory for the table of `norm`. */
static unsigned
table_of(const struct cuda_conv *c)
{
    unsigned columns = forms[c->tile].columns;

    if (!c->args.norm.gamma)
        return 0;
    return c->kind == CONV_FORWARD ? GEMM_TABLE_FORWARD(c->args.in)
           : c->kind == CONV_DATA  ? GEMM_TABLE_DATA(columns)
                                   : GEMM_TABLE_WEIGHTS(columns);
}

static bool
is_pointwise(const struct conv_args *a)
{
    return a->kernel_h == 1 && a->kernel_w == 1 && a->stride == 1 && a->pad_h == 0 && a->pad_w == 0;
}

struct cuda_op
cuda_conv_op(const struct cuda_conv *c)
{
    struct product p = product_of(c, c->tile);

    return (struct cuda_op){
        .kernel = (enum cuda_kernel_id)(c->tile * 6 + (unsigned)c->kind * 2 + is_pointwise(&c->args)),
        .x = p.tiles_down,
        .y = p.tiles_across,
        .z = c->splits,
        .shared = table_of(c),
        .args.conv = c->args,
        .node = CUDA_NO_NODE,
        .final = SIZE_MAX};
}

struct cuda_op
cuda_conv_pair_op(const struct cuda_conv_pair *p)
{
    struct cuda_op data = cuda_conv_op(&p->data), weights = cuda_conv_op(&p->weights);

    return (struct cuda_op){
        .kernel = (enum cuda_kernel_id)(CONV_TILES * 6 + p->data.tile * 2 + is_pointwise(&p->data.args)),
        .x = data.x * data.y + weights.x * weights.y * weights.z,
        .y = 1,
        .z = 1,
        .shared = data.shared > weights.shared ? data.shared : weights.shared,
        .args.pair = {p->data.args, p->weights.args},
        .node = CUDA_NO_NODE,
        .final = SIZE_MAX};
}
