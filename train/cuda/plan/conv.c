/*
 * conv.c - convolutions as launches: chooses the tile shape, the splits and the tiles per CTA; see conv.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/plan/conv.h"

#include "cuda/plan/product_load.h"

struct cuda_conv
cuda_conv_start(enum conv_kind kind, const struct conv_shape *shape, unsigned major)
{
    struct cuda_conv c = {.kind = kind, .splits = 1, .major = major};

    /* an empty initialiser may leave a part of a union uninitialised */
    switch (kind) {
    case CONV_FPROP:
        c.fprop = (struct fprop_args){.shape = *shape};
        break;
    case CONV_DGRAD:
        c.dgrad = (struct dgrad_args){.shape = *shape};
        break;
    case CONV_WGRAD:
        c.wgrad = (struct wgrad_args){.shape = *shape};
        break;
    }
    return c;
}

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
overlaps_within_rows(const struct conv_shape *s)
{
    return s->x_ld > 0 && s->in % s->x_ld == 0 && s->kernel_w == 1 && s->pad_w == 0 && s->stride == 1 &&
           s->out_width - 1 + s->in / s->x_ld <= s->width;
}

static bool
can_be_counted(const struct conv_shape *s)
{
    return (size_t)s->images * s->height * s->width < MOST_PIXELS &&
           (size_t)s->images * s->out_height * s->out_width < MOST_PIXELS && s->height + s->pad_h < MOST_SIDE &&
           s->width + s->pad_w < MOST_SIDE && s->out_height + s->pad_h < MOST_SIDE &&
           s->out_width + s->pad_w < MOST_SIDE;
}

const struct norm_view *
cuda_conv_norm(const struct cuda_conv *c)
{
    return c->kind == CONV_FPROP ? &c->fprop.norm : c->kind == CONV_DGRAD ? &c->dgrad.norm : &c->wgrad.norm;
}

const struct channel_sums *
cuda_conv_sums(const struct cuda_conv *c)
{
    return c->kind == CONV_FPROP ? &c->fprop.sums : c->kind == CONV_DGRAD ? &c->dgrad.sums : NULL;
}

static bool
all_aligned(const struct cuda_conv *c)
{
    const struct fprop_args *f = &c->fprop;
    const struct dgrad_args *d = &c->dgrad;
    const struct wgrad_args *w = &c->wgrad;

    switch (c->kind) {
    case CONV_FPROP:
        return is_aligned(f->x) && is_aligned(f->w) && is_aligned(f->y);
    case CONV_DGRAD:
        return is_aligned(d->dy) && is_aligned(d->w) && is_aligned(d->dx) && is_aligned(d->x);
    default:
        return is_aligned(w->x) && is_aligned(w->dy) && is_aligned(w->partial);
    }
}

bool
cuda_conv_fits(const struct cuda_conv *c)
{
    const struct conv_shape *s = &c->shape;
    bool add = c->kind == CONV_DGRAD && c->dgrad.add;

    return s->in % 8 == 0 && s->out % 8 == 0 && s->x_ld % 8 == 0 && s->y_ld % 8 == 0 &&
           (s->in <= s->x_ld || (overlaps_within_rows(s) && !add)) && s->out <= s->y_ld && can_be_counted(s) &&
           all_aligned(c) && !(cuda_conv_norm(c)->gamma && (s->in > GEMM_NORM_CHANNELS || s->in > s->x_ld));
}

/* ---- cost of a launch -------------------------------------------------------------------------------------------- */

static unsigned
value_bytes(const struct cuda_conv *c)
{
    return c->value == CUDA_TF32 ? sizeof(float) : 2;
}

static double
partial_bytes(const struct cuda_conv *c)
{
    const struct conv_shape *s = &c->shape;
    unsigned splits = cuda_wgrad_splits(&c->wgrad);

    return (double)PARTIAL_SIZE(splits, value_bytes(c)) * splits * s->out * s->kernel_h * s->kernel_w * s->in;
}

/*
 * Returns the bytes moved.  A pair reads the same data for both products, so only dgrad's and the partial sums count.
 */
static double
bytes_of(const struct cuda_conv *c)
{
    const struct conv_shape *s = &c->shape;
    unsigned in = s->in < s->x_ld ? s->in : s->x_ld; /* pixels that overlap are read once */
    double inputs = (double)s->images * s->height * s->width * in;
    double outputs = (double)s->images * s->out_height * s->out_width * s->out;
    double weights = (double)s->out * s->kernel_h * s->kernel_w * s->in;

    if (c->kind == CONV_WGRAD)
        return value_bytes(c) * (inputs + outputs) + partial_bytes(c);
    /* dgrad: mask, and A so far */
    return value_bytes(c) * (inputs + outputs + weights + (c->kind == CONV_DGRAD ? 2 * inputs : 0));
}

/*
 * Returns the time of later launches: sum_all reads the splits; more rows of partial sums than FEW_ROWS per
 * multiprocessor need a reduce_sums launch.
 */
#define FEW_ROWS 2
static double
later_of(const struct cuda_gpu *gpu, const struct cuda_product *p, const struct cuda_conv *c)
{
    if (c->kind == CONV_WGRAD)
        return cuda_memory_seconds(gpu, partial_bytes(c));
    return cuda_blocks(p->down, p->each) > FEW_ROWS * gpu->processors ? gpu->gap : 0;
}

/* Returns the shared memory of the BN table. */
static unsigned
table_bytes(const struct cuda_conv *c)
{
    struct cuda_tile_shape t = *cuda_tile_shape_of(c, c->tile);

    if (!cuda_conv_norm(c)->gamma)
        return 0;
    return c->kind == CONV_FPROP   ? GEMM_TABLE_FPROP(c->shape.in)
           : c->kind == CONV_DGRAD ? GEMM_TABLE_DGRAD(t.columns)
                                   : GEMM_TABLE_WGRAD(cuda_has_taps(c) ? t.rows : t.columns);
}

static unsigned
pair_table_bytes(const struct cuda_conv_pair *p)
{
    unsigned of_dgrad = table_bytes(&p->dgrad), of_wgrad = table_bytes(&p->wgrad);

    return of_dgrad > of_wgrad ? of_dgrad : of_wgrad;
}

/* Weight of the number of CTAs: decides between choices with the same cost. */
#define NEXT 1e-12
static double
cost_of(const struct cuda_gpu *gpu, const struct cuda_load *load, double later)
{
    enum cuda_limit limit;

    return cuda_load_seconds(gpu, load, &limit) + later + NEXT * (load->ctas + load->long_ctas);
}

static double
cost_of_one(const struct cuda_gpu *gpu, const struct cuda_conv *c, struct cuda_tile_shape t)
{
    struct cuda_product p = cuda_product_of(c, t);
    struct cuda_load load = cuda_product_load(gpu, cuda_conv_kernel(c), &t, &p, cuda_conv_norm(c)->gamma,
                                              table_bytes(c));

    load.bytes = bytes_of(c);
    return cost_of(gpu, &load, later_of(gpu, &p, c));
}

static double
cost_of_pair(const struct cuda_gpu *gpu, const struct cuda_conv_pair *c, const struct cuda_pair_shapes *t)
{
    struct cuda_product dgrad = cuda_product_of(&c->dgrad, t->dgrad);
    struct cuda_product wgrad = cuda_product_of(&c->wgrad, t->wgrad);
    struct cuda_load load = cuda_pair_load(gpu, cuda_pair_kernel(c), t, &dgrad, &wgrad,
                                           cuda_conv_norm(&c->wgrad)->gamma, pair_table_bytes(c));

    load.bytes = bytes_of(&c->dgrad) + partial_bytes(&c->wgrad);
    return cost_of(gpu, &load, later_of(gpu, &dgrad, &c->dgrad) + later_of(gpu, &wgrad, &c->wgrad));
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

/* Sets the tiles of a CTA of fprop or dgrad. */
static void
set_tiles_each(struct cuda_conv *c, unsigned tiles)
{
    *(c->kind == CONV_FPROP ? &c->fprop.tiles_each : &c->dgrad.tiles_each) = tiles;
}

static void
split(struct cuda_conv *c, unsigned splits)
{
    c->wgrad.k_steps = cuda_blocks(cuda_wgrad_steps(&c->shape), splits);
    c->splits = cuda_wgrad_splits(&c->wgrad);
}

static void
begin(struct cuda_conv *c)
{
    struct conv_shape *s = &c->shape;
    bool outputs = c->kind == CONV_FPROP || (c->kind == CONV_WGRAD && cuda_wgrad_sums_outputs(s));

    s->by_width = divisor_of(outputs ? s->out_width : s->width);
    s->by_height = divisor_of(outputs ? s->out_height : s->height);
    c->splits = 1;
    if (c->kind == CONV_WGRAD)
        split(c, 1);
    else
        set_tiles_each(c, 1);
}

/* Returns the largest number of splits that does not exceed this number of CTAs. */
static unsigned
most_splits(const struct cuda_conv *c, struct cuda_tile_shape t, unsigned blocks)
{
    struct cuda_product p = cuda_product_of(c, t);
    unsigned most = blocks / (p.down * p.across), steps = cuda_wgrad_steps(&c->shape) / LEAST_STEPS;

    most = most < steps ? most : steps;
    return most < 1 ? 1 : most;
}

static unsigned
most_each(const struct cuda_conv *c, struct cuda_tile_shape t)
{
    unsigned down = cuda_product_of(c, t).down;

    return down < MOST_EACH ? down : MOST_EACH;
}

/* Chooses the best parameters for a tile shape, with up to two CTAs per multiprocessor.  Returns the cost. */
static double
take_best(struct cuda_conv *c, unsigned tile, unsigned processors)
{
    const struct cuda_gpu gpu = cuda_gpu_of(c->major, processors, c->value);
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
            set_tiles_each(c, n);
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

static void
take_pair(struct cuda_conv_pair *p, unsigned tile_pair)
{
    const struct cuda_pair_shapes *t = cuda_pair_shapes_of(p, tile_pair);

    p->tile_pair = tile_pair;
    p->dgrad.tile = tile_like(&p->dgrad, t->dgrad);
    p->wgrad.tile = tile_like(&p->wgrad, t->wgrad);
}

/* Uses up to one wgrad CTA per multiprocessor, because dgrad CTAs fill the rest. */
static double
take_best_pair(struct cuda_conv_pair *p, unsigned tile_pair, unsigned processors)
{
    const struct cuda_gpu gpu = cuda_gpu_of(p->dgrad.major, processors, p->dgrad.value);
    const struct cuda_pair_shapes *t = cuda_pair_shapes_of(p, tile_pair);
    unsigned n, most, each, tiles_each = 1, splits = 1;
    double least;

    take_pair(p, tile_pair);
    begin(&p->dgrad);
    begin(&p->wgrad);
    least = cost_of_pair(&gpu, p, t);
    most = most_splits(&p->wgrad, t->wgrad, processors);
    each = most_each(&p->dgrad, t->dgrad);
    for (p->dgrad.dgrad.tiles_each = 1; p->dgrad.dgrad.tiles_each <= each; p->dgrad.dgrad.tiles_each++)
        for (n = 1; n <= most; n++) {
            double cost;

            split(&p->wgrad, n);
            cost = cost_of_pair(&gpu, p, t);
            if (cost < least) {
                least = cost;
                tiles_each = p->dgrad.dgrad.tiles_each;
                splits = n;
            }
        }
    p->dgrad.dgrad.tiles_each = tiles_each;
    split(&p->wgrad, splits);
    return least;
}

void
cuda_conv_take(struct cuda_conv *c, unsigned tile, unsigned processors)
{
    take_best(c, tile, processors);
}

/* Does a CTA of this tile shape have too little shared memory?  `more`: of the BN table. */
static bool
lacks_room(const struct cuda_conv *c, enum cuda_kernel_id kernel, const struct cuda_tile_shape *t, unsigned more)
{
    const struct cuda_gpu gpu = cuda_gpu_of(c->major, 1, c->value);

    return (t->halo && c->major > 0 && c->major < HALO_MAJOR) ||
           gpu.counts[kernel].shared + more > cuda_shared_of(c->major);
}

void
cuda_conv_choose(struct cuda_conv *c, unsigned processors)
{
    double best = -1;
    unsigned tile, chosen = 0;

    for (tile = 0; tile < cuda_conv_tile_shapes(c); tile++) {
        double cost;

        c->tile = tile;
        if (lacks_room(c, cuda_conv_kernel(c), cuda_tile_shape_of(c, tile), table_bytes(c)))
            continue;
        cost = take_best(c, tile, processors);
        if (best < 0 || cost < best) {
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
    double best = -1;
    unsigned tile_pair, chosen = 0;

    for (tile_pair = 0; tile_pair < cuda_conv_pair_shapes(p); tile_pair++) {
        double cost;

        take_pair(p, tile_pair);
        if (lacks_room(&p->dgrad, cuda_pair_kernel(p), &cuda_pair_shapes_of(p, tile_pair)->dgrad, pair_table_bytes(p)))
            continue;
        cost = take_best_pair(p, tile_pair, processors);
        if (best < 0 || cost < best) {
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
    const struct conv_shape *s = &c->shape;

    return c->kind == CONV_WGRAD ? (size_t)c->splits * s->out * s->kernel_h * s->kernel_w * s->in : 0;
}

struct cuda_op
cuda_conv_op(const struct cuda_conv *c)
{
    struct cuda_product p = cuda_product_of(c, *cuda_tile_shape_of(c, c->tile));
    struct cuda_op op = {.kernel = cuda_conv_kernel(c),
                         .x = cuda_blocks(p.down, p.each),
                         .y = p.across,
                         .z = p.splits,
                         .shared = table_bytes(c),
                         .node = CUDA_NO_NODE,
                         .final = SIZE_MAX};

    switch (c->kind) {
    case CONV_FPROP:
        op.args.fprop = c->fprop;
        break;
    case CONV_DGRAD:
        op.args.dgrad = c->dgrad;
        break;
    case CONV_WGRAD:
        op.args.wgrad = c->wgrad;
        break;
    }
    return op;
}

struct cuda_op
cuda_conv_pair_op(const struct cuda_conv_pair *p)
{
    struct cuda_op dgrad = cuda_conv_op(&p->dgrad), wgrad = cuda_conv_op(&p->wgrad);

    return (struct cuda_op){.kernel = cuda_pair_kernel(p),
                            .x = dgrad.x * dgrad.y + wgrad.x * wgrad.y * p->wgrad.splits,
                            .y = 1,
                            .z = 1,
                            .shared = dgrad.shared > wgrad.shared ? dgrad.shared : wgrad.shared,
                            .args.pair = {p->dgrad.dgrad, p->wgrad.wgrad},
                            .node = CUDA_NO_NODE,
                            .final = SIZE_MAX};
}
