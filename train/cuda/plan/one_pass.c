/*
 * one_pass.c - chooses the tile shape and the CTAs of conv_one_pass; see one_pass.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/plan/one_pass.h"

#include "cuda/plan/cost_seconds.h"
#include "cuda/plan/product.h"

static const struct one_pass_row {
    unsigned columns;
    bool end;
    enum cuda_kernel_id kernel;
} shapes[] = {
#define ROW(shape, columns, blocks, end) {columns, end, CUDA_CONV_ONE_PASS_##shape},
    ONE_PASS_SHAPES(ROW)};

static unsigned
smaller(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static unsigned
value_bytes(const struct cuda_one_pass *b)
{
    return b->value_bytes > 0 ? b->value_bytes : 2;
}

static unsigned
shared_of(const struct cuda_one_pass *b, unsigned tile, unsigned stages)
{
    return ONE_PASS_SHARED(shapes[tile].columns, shapes[tile].end, value_bytes(b), stages);
}

/* Does this tile shape match the arguments?  The first matching one is the smallest. */
static bool
is_for(const struct cuda_one_pass *b, unsigned tile)
{
    return shapes[tile].end == (b->args.end.dy_ld > 0);
}

static unsigned
first_tile(const struct cuda_one_pass *b)
{
    unsigned tile = 0;

    while (!is_for(b, tile))
        tile++;
    return tile;
}

static unsigned
shared_most(const struct cuda_one_pass *b)
{
    return b->shared > 0 ? b->shared : cuda_shared_of(b->major);
}

/* ---- limits of the kernels --------------------------------------------------------------------------------------- */

static bool
is_aligned(const void *p)
{
    return (uintptr_t)p % 16 == 0;
}

static bool
finalize_fits(const struct finalize_view *f, unsigned out)
{
    return f->values_ld % 8 == 0 && (f->values_ld == 0 || out <= f->values_ld) && is_aligned(f->values) &&
           is_aligned(f->sums.partial) && (!f->sums.partial || f->sums.channels == out);
}

static bool
end_fits(const struct one_pass_end *e, const struct dgrad_args *a)
{
    return e->dy_ld == 0 || (e->dy_ld % 8 == 0 && a->shape.in <= e->dy_ld && is_aligned(e->dy) && !a->add &&
                             e->down > 0 && e->across > 0 && !(e->dy && !a->norm.gamma));
}

bool
cuda_one_pass_fits(const struct cuda_one_pass *b)
{
    const struct dgrad_args *a = &b->args.dgrad;
    const struct conv_shape *s = &a->shape;

    return cuda_is_pointwise(s) && s->in % 8 == 0 && s->out % 8 == 0 && s->x_ld % 8 == 0 && s->y_ld % 8 == 0 &&
           s->in <= s->x_ld && s->out <= s->y_ld && s->out <= ONE_PASS_OUT && s->images <= ONE_PASS_IMAGES &&
           is_aligned(a->dy) && is_aligned(a->w) && is_aligned(a->dx) && is_aligned(a->x) &&
           is_aligned(b->args.partial) && !(a->sums.partial && !a->norm.gamma) &&
           finalize_fits(&b->args.finalize, s->out) && end_fits(&b->args.end, a) &&
           shared_of(b, first_tile(b), 1) <= shared_most(b);
}

/* ---- the choice -------------------------------------------------------------------------------------------------- */

static unsigned
tiles_of(const struct cuda_one_pass *b)
{
    return cuda_blocks((size_t)b->args.dgrad.shape.images * b->args.dgrad.shape.height * b->args.dgrad.shape.width,
                       ONE_PASS_PIXELS);
}

static unsigned
slices_of(const struct cuda_one_pass *b, unsigned tile)
{
    return cuda_blocks(b->args.dgrad.shape.in, shapes[tile].columns);
}

static void
take(struct cuda_one_pass *b, unsigned tile, unsigned stages, unsigned ctas)
{
    b->tile = tile;
    b->args.stages = stages;
    b->args.dgrad.tiles_each = cuda_blocks(tiles_of(b), ctas);
    b->ctas = cuda_blocks(tiles_of(b), b->args.dgrad.tiles_each);
}

/* Returns the bytes read and written, each once, without partial sums. */
static double
bytes_of(const struct cuda_one_pass *b)
{
    const struct dgrad_args *a = &b->args.dgrad;
    const struct conv_shape *s = &a->shape;
    const struct one_pass_end *e = &b->args.end;
    double values = (double)s->out * (b->args.finalize.values_ld > 0 ? 2 : 1) + (double)s->in * (a->add ? 3 : 2);
    double more = e->dy_ld > 0 ? (double)s->images * e->height * e->width * s->in : 0;

    return ((double)tiles_of(b) * ONE_PASS_PIXELS * values + more) * value_bytes(b);
}

/* Partial sums are written, and read again after they have left the caches. */
static double
seconds_of(const struct cuda_one_pass *b, const struct cuda_gpu *gpu)
{
    const double many = 1e12, byte = cuda_memory_seconds(gpu, many) / many;
    struct cuda_op op = cuda_one_pass_op(b);
    double partial = (double)cuda_one_pass_partial(b) * PARTIAL_SIZE(b->ctas, value_bytes(b));
    struct cuda_load load = cuda_load_of(gpu, &op, NULL);
    enum cuda_limit limit;

    load.bytes = bytes_of(b) + partial;
    return cuda_load_seconds(gpu, &load, &limit) + byte * partial;
}

/* CTAs that the multiprocessors hold at a time. */
static unsigned
most_resident(const struct cuda_one_pass *b, const struct cuda_gpu *gpu, unsigned tile, unsigned stages)
{
    const struct cuda_counts *k = &gpu->counts[shapes[tile].kernel];
    unsigned each = cuda_resident(gpu, k->threads, k->registers, shared_of(b, tile, stages));

    return gpu->processors * (each > 0 ? each : 1);
}

/* Chooses the best number of CTAs for a tile shape, at most all that are resident at a time; returns its seconds. */
static double
take_best(struct cuda_one_pass *b, unsigned tile, unsigned stages, unsigned processors)
{
    const struct cuda_gpu gpu = cuda_gpu_of(b->major, processors, b->value);
    unsigned ctas, best = 1, most = most_resident(b, &gpu, tile, stages) / slices_of(b, tile);
    double least = 0;

    most = smaller(most > 0 ? most : 1, tiles_of(b));
    for (ctas = 1; ctas <= most; ctas++) {
        double seconds;

        take(b, tile, stages, ctas);
        seconds = seconds_of(b, &gpu);
        if (ctas == 1 || seconds < least) {
            best = ctas;
            least = seconds;
        }
    }
    take(b, tile, stages, best);
    return least;
}

bool
cuda_one_pass_take(struct cuda_one_pass *b, unsigned tile, unsigned processors)
{
    unsigned stages = shared_of(b, tile, 2) <= shared_most(b) ? 2 : 1;

    if (!is_for(b, tile) || shared_of(b, tile, stages) > shared_most(b))
        return false;
    take_best(b, tile, stages, processors);
    return true;
}

/* With one stage no load overlaps with computation, so it is used only if no tile shape has shared memory for two. */
void
cuda_one_pass_choose(struct cuda_one_pass *b, unsigned processors)
{
    unsigned tile, chosen = first_tile(b), stages = shared_of(b, chosen, 2) <= shared_most(b) ? 2 : 1;
    double least = take_best(b, chosen, stages, processors); /* the first one always fits */

    for (tile = chosen + 1; tile < ONE_PASS_SHAPE_COUNT && is_for(b, tile); tile++) {
        double seconds = take_best(b, tile, stages, processors);

        if (shared_of(b, tile, stages) <= shared_most(b) && seconds < least) {
            chosen = tile;
            least = seconds;
        }
    }
    take_best(b, chosen, stages, processors);
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

size_t
cuda_one_pass_partial(const struct cuda_one_pass *b)
{
    return (size_t)b->ctas * b->args.dgrad.shape.out * b->args.dgrad.shape.in;
}

struct cuda_op
cuda_one_pass_op(const struct cuda_one_pass *b)
{
    return (struct cuda_op){.kernel = shapes[b->tile].kernel,
                            .x = slices_of(b, b->tile),
                            .y = b->ctas,
                            .z = 1,
                            .shared = shared_of(b, b->tile, b->args.stages) - shared_of(b, b->tile, 1),
                            .args.one_pass = b->args,
                            .node = CUDA_NO_NODE,
                            .final = SIZE_MAX};
}
