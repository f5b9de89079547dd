/*
 * both.c - chooses tile shape and stripes of conv_both; see both.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/plan/both.h"

#include "cuda/plan/gpu.h"
#include "cuda/plan/product.h"

static const struct both_width {
    unsigned columns;
    bool end;
    enum cuda_kernel_id kernel;
} forms[] = {
#define FORM(form, columns, blocks, end) {columns, end, CUDA_CONV_BOTH_##form},
    BOTH_FORMS(FORM)};

static unsigned
smaller(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static unsigned
value_bytes(const struct cuda_both *b)
{
    return b->value_bytes > 0 ? b->value_bytes : 2;
}

static unsigned
shared_of(const struct cuda_both *b, unsigned form, unsigned stages)
{
    return BOTH_SHARED(forms[form].columns, forms[form].end, value_bytes(b), stages);
}

/* Does this form match the arguments?  The first matching form is the smallest. */
static bool
is_for(const struct cuda_both *b, unsigned form)
{
    return forms[form].end == (b->args.end.dy_ld > 0);
}

static unsigned
first_form(const struct cuda_both *b)
{
    unsigned form = 0;

    while (!is_for(b, form))
        form++;
    return form;
}

static unsigned
shared_most(const struct cuda_both *b)
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
finish_fits(const struct norm_finish *f, unsigned out)
{
    return f->values_ld % 8 == 0 && (f->values_ld == 0 || out <= f->values_ld) && is_aligned(f->values) &&
           is_aligned(f->sums.partial) && (!f->sums.partial || f->sums.channels == out);
}

static bool
end_fits(const struct both_end *e, const struct conv_args *a)
{
    return e->dy_ld == 0 || (e->dy_ld % 8 == 0 && a->in <= e->dy_ld && is_aligned(e->dy) && !a->add && e->down > 0 &&
                             e->across > 0 && !(e->dy && !a->norm.gamma));
}

bool
cuda_conv_both_fits(const struct cuda_both *b)
{
    const struct conv_args *a = &b->args.conv;

    return a->kernel_h == 1 && a->kernel_w == 1 && a->stride == 1 && a->pad_h == 0 && a->pad_w == 0 && a->in % 8 == 0 &&
           a->out % 8 == 0 && a->x_ld % 8 == 0 && a->y_ld % 8 == 0 && a->in <= a->x_ld && a->out <= a->y_ld &&
           a->out <= BOTH_OUT && a->images <= BOTH_IMAGES && is_aligned(a->x) && is_aligned(a->y) && is_aligned(a->w) &&
           is_aligned(a->partial) && is_aligned(a->values) && !(a->sums.partial && !a->norm.gamma) &&
           finish_fits(&b->args.finish, a->out) && end_fits(&b->args.end, a) &&
           shared_of(b, first_form(b), 1) <= shared_most(b);
}

/* ---- the choice -------------------------------------------------------------------------------------------------- */

static unsigned
tiles_of(const struct cuda_both *b)
{
    return cuda_blocks((size_t)b->args.conv.images * b->args.conv.height * b->args.conv.width, BOTH_PIXELS);
}

static unsigned
slices_of(const struct cuda_both *b, unsigned form)
{
    return cuda_blocks(b->args.conv.in, forms[form].columns);
}

static void
take(struct cuda_both *b, unsigned form, unsigned stages, unsigned stripes)
{
    b->form = form;
    b->args.stages = stages;
    b->args.conv.steps_each = cuda_blocks(tiles_of(b), stripes);
    b->stripes = cuda_blocks(tiles_of(b), b->args.conv.steps_each);
}

/* Returns the bytes read and written, each once, without partial sums. */
static double
bytes_of(const struct cuda_both *b)
{
    const struct conv_args *a = &b->args.conv;
    const struct both_end *e = &b->args.end;
    double values = (double)a->out * (b->args.finish.values_ld > 0 ? 2 : 1) + (double)a->in * (a->add ? 3 : 2);
    double more = e->dy_ld > 0 ? (double)a->images * e->height * e->width * a->in : 0;

    return ((double)tiles_of(b) * BOTH_PIXELS * values + more) * value_bytes(b);
}

/* Fraction of the multiprocessors that is needed to use all of the bandwidth. */
#define FOR_BANDWIDTH 0.75

/* Partial sums are written, and read again after they have left the caches. */
static double
seconds_of(const struct cuda_both *b, const struct cuda_gpu *gpu)
{
    const double many = 1e12, byte = cuda_memory_seconds(gpu, many) / many;
    struct cuda_op op = cuda_conv_both_op(b);
    double partial = (double)cuda_conv_both_partial(b) * PARTIAL_SIZE(b->stripes, value_bytes(b));
    double memory = cuda_memory_seconds(gpu, bytes_of(b) + partial), product = cuda_both_seconds(gpu, &op);
    double needed = FOR_BANDWIDTH * gpu->processors / ((double)op.x * op.y);

    memory *= needed > 1 ? needed : 1;
    return (memory > product ? memory : product) + byte * partial;
}

/* Chooses the best number of stripes for a form, at most one CTA per multiprocessor; returns its seconds. */
static double
take_best(struct cuda_both *b, unsigned form, unsigned stages, unsigned processors)
{
    const struct cuda_gpu gpu = cuda_gpu_of(b->major, processors);
    unsigned stripes, best = 1, most = processors / slices_of(b, form);
    double least = 0;

    most = smaller(most > 0 ? most : 1, tiles_of(b));
    for (stripes = 1; stripes <= most; stripes++) {
        double seconds;

        take(b, form, stages, stripes);
        seconds = seconds_of(b, &gpu);
        if (stripes == 1 || seconds < least) {
            best = stripes;
            least = seconds;
        }
    }
    take(b, form, stages, best);
    return least;
}

bool
cuda_conv_both_take(struct cuda_both *b, unsigned form, unsigned processors)
{
    unsigned stages = shared_of(b, form, 2) <= shared_most(b) ? 2 : 1;

    if (!is_for(b, form) || shared_of(b, form, stages) > shared_most(b))
        return false;
    take_best(b, form, stages, processors);
    return true;
}

/* With one stage no load overlaps with computation, so it is used only if no form has shared memory for two. */
void
cuda_conv_both_choose(struct cuda_both *b, unsigned processors)
{
    unsigned form, chosen = first_form(b), stages = shared_of(b, chosen, 2) <= shared_most(b) ? 2 : 1;
    double least = take_best(b, chosen, stages, processors); /* the first form always fits */

    for (form = chosen + 1; form < BOTH_FORM_COUNT && is_for(b, form); form++) {
        double seconds = take_best(b, form, stages, processors);

        if (shared_of(b, form, stages) <= shared_most(b) && seconds < least) {
            chosen = form;
            least = seconds;
        }
    }
    take_best(b, chosen, stages, processors);
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

size_t
cuda_conv_both_partial(const struct cuda_both *b)
{
    return (size_t)b->stripes * b->args.conv.out * b->args.conv.in;
}

struct cuda_op
cuda_conv_both_op(const struct cuda_both *b)
{
    return (struct cuda_op){.kernel = forms[b->form].kernel,
                            .x = slices_of(b, b->form),
                            .y = b->stripes,
                            .z = 1,
                            .shared = shared_of(b, b->form, b->args.stages) - shared_of(b, b->form, 1),
                            .args.both = b->args,
                            .node = CUDA_NO_NODE,
                            .final = SIZE_MAX};
}

double
cuda_both_seconds(const struct cuda_gpu *gpu, const struct cuda_op *op)
{
    const struct conv_args *a = &op->args.both.conv;
    const struct channel_sums *sums = &op->args.both.finish.sums;
    unsigned columns = smaller(cuda_products_of(op).form.columns, a->in);
    size_t blocks = (size_t)op->x * op->y, rounds = (blocks + gpu->processors - 1) / gpu->processors;
    double added = (double)blocks * sums->blocks * sums->channels * 2 * sizeof(float);

    return (double)rounds * cuda_tile_seconds(gpu, BOTH_PIXELS, columns, BOTH_PIXELS, 2.0 * a->steps_each * a->out) +
           cuda_memory_seconds(gpu, 1) * added;
}
