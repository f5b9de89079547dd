/*
 * cost_norm.c - what the BN kernels read and write; see cost.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/plan/cost.h"

void
cuda_work_norm_sums(const struct cuda_place *l, const struct cuda_op *op, struct cuda_work *w)
{
    const struct norm_sums_args *a = &op->args.norm_sums;

    w->rows = (size_t)a->images * a->pixels;
    w->columns = a->channels;
    cuda_add_slab(l, &w->read, a->x, w->rows, a->channels, a->ld);
    cuda_add_floats(&w->read, a->running_mean, a->channels);
    cuda_add_floats(&w->read, a->weight, a->weight ? a->images : 0);
    cuda_add_floats(&w->written, a->partial, (size_t)op->x * 2 * a->channels);
}

void
cuda_work_norm_apply(const struct cuda_place *l, const struct cuda_op *op, struct cuda_work *w)
{
    const struct norm_apply_args *a = &op->args.norm_apply;

    w->rows = (size_t)a->images * a->pixels;
    w->columns = a->channels;
    cuda_add_slab(l, &w->read, a->x, w->rows, a->channels, a->x_ld);
    cuda_add_slab(l, &w->written, a->y, w->rows, a->channels, a->y_ld);
    cuda_add_floats(&w->read, a->weight, a->weight ? a->images : 0);
    cuda_add_view(w, &a->norm, a->channels);
}

void
cuda_work_reduce_sums(const struct cuda_place *l, const struct cuda_op *op, struct cuda_work *w)
{
    const struct reduce_sums_args *a = &op->args.reduce_sums;

    (void)l;
    w->rows = a->from.blocks;
    w->columns = a->from.channels;
    cuda_add_sums(&w->read, &a->from);
    cuda_add_sums(&w->written, &a->to);
}

/*
 * Adds the work for all channels that the BN read, and for those that are finalized, except their values and gradients.
 * Counts the first micro-batch: it only writes gradients of parameters and does not read them.
 */
static void
add_finalize(const struct norm_finalize_args *a, struct cuda_work *w)
{
    size_t all = a->sums.channels, behind = a->first + a->channels;

    cuda_add_sums(&w->read, &a->sums);
    cuda_add_floats(&w->read, a->gamma, all);
    CUDA_ADD_MEMBER(&w->read, a->block, images);
    CUDA_ADD_MEMBER(&w->read, a->block, number);
    CUDA_ADD_MEMBER(&w->read, a->state, unscale);
    if (a->add) {
        cuda_add_floats(&w->read, a->by_beta, all);
        cuda_add_floats(&w->read, a->by_gamma, all);
    }
    cuda_add_floats(&w->written, a->dbeta, all);
    cuda_add_floats(&w->written, a->dgamma, all);
    if (a->channels == 0)
        behind = 0;
    cuda_add_floats(&w->written, a->by_beta, a->channels > 0 ? a->first : 0);
    cuda_add_floats(&w->written, a->by_gamma, a->channels > 0 ? a->first : 0);
    cuda_add_floats(&w->written, a->by_beta + behind, all - behind);
    cuda_add_floats(&w->written, a->by_gamma + behind, all - behind);
    if (a->channels == 0)
        return;
    cuda_add_floats(&w->read, a->mean + a->first, a->channels);
    cuda_add_floats(&w->read, a->variance + a->first, a->channels);
    cuda_add_floats(&w->read, a->weight, a->weight ? a->images : 0);
}

void
cuda_work_norm_finalize(const struct cuda_place *l, const struct cuda_op *op, struct cuda_work *w)
{
    const struct norm_finalize_args *a = &op->args.norm_finalize;

    w->rows = (size_t)a->images * a->pixels;
    w->columns = a->channels;
    add_finalize(a, w);
    if (a->channels == 0)
        return;
    cuda_add_slab(l, &w->read, a->x, w->rows, a->channels, a->x_ld);
    cuda_add_slab(l, &w->read, a->gradient, w->rows, a->channels, a->gradient_ld);
    cuda_add_slab(l, &w->written, a->gradient, w->rows, a->channels, a->gradient_ld);
}

void
cuda_work_norm_mask(const struct cuda_place *l, const struct cuda_op *op, struct cuda_work *w)
{
    const struct norm_mask_args *a = &op->args.norm_mask;

    w->rows = (size_t)a->images * a->pixels;
    w->columns = a->channels;
    cuda_add_slab(l, &w->read, a->x, w->rows, a->channels, a->x_ld);
    cuda_add_slab(l, &w->read, a->dy, w->rows, a->channels, a->dy_ld);
    if (a->add)
        cuda_add_slab(l, &w->read, a->gradient, w->rows, a->channels, a->gradient_ld);
    cuda_add_slab(l, &w->written, a->gradient, w->rows, a->channels, a->gradient_ld);
    cuda_add_floats(&w->read, a->weight, a->weight ? a->images : 0);
    cuda_add_view(w, &a->norm, a->channels);
    cuda_add_sums(&w->written, &a->sums);
}

/* BNs that read one slab share its statistics.  Returns true if other entries cover all of this one. */
static bool
others_have_it(const struct running_entry *all, unsigned count, unsigned which)
{
    const struct running_entry *e = &all[which];
    unsigned i;

    for (i = 0; i < count; i++) {
        const struct running_entry *o = &all[i];
        bool covers = o->mean <= e->mean && o->mean + o->channels >= e->mean + e->channels;
        bool equal = o->mean == e->mean && o->channels == e->channels;

        if (i != which && covers && (!equal || i < which))
            return true;
    }
    return false;
}

/* Running statistics are adjacent: adds one area from the first to the end of the last. */
static void
add_moved(struct cuda_work *w, const struct norm_running_args *a, const struct running_entry *e)
{
    size_t first = SIZE_MAX, end = 0;
    unsigned i;

    for (i = 0; i < a->entries; i++) {
        size_t low = e[i].running_mean < e[i].running_variance ? e[i].running_mean : e[i].running_variance;
        size_t high = e[i].running_mean > e[i].running_variance ? e[i].running_mean : e[i].running_variance;

        first = low < first ? low : first;
        end = high + e[i].channels > end ? high + e[i].channels : end;
    }
    if (end <= first)
        return;
    cuda_add_floats(&w->read, a->running + first, end - first);
    cuda_add_floats(&w->written, a->running + first, end - first);
}

void
cuda_add_running(const struct cuda_place *l, const struct norm_running_args *a, struct cuda_work *w)
{
    const struct running_entry *e = cuda_known(l, a->entry);
    unsigned i;

    cuda_add_bytes(&w->read, a->entry, a->entries * sizeof(*a->entry));
    CUDA_ADD_MEMBER(&w->read, a->block, images);
    if (!e)
        return;
    add_moved(w, a, e);
    for (i = 0; i < a->entries; i++) {
        size_t bytes = e[i].channels * sizeof(float);

        if (others_have_it(e, a->entries, i))
            continue;
        cuda_add_alone(&w->read, e[i].mean, bytes);
        cuda_add_alone(&w->read, e[i].variance, bytes);
    }
}

/* An average pool ignores the last row and column if their number is odd. */
static size_t
pixels_seen(const struct cuda_op *op, const struct pool_args *p)
{
    if (op->kernel == CUDA_NORM_AVERAGE_POOL)
        return (size_t)p->images * (p->out_height * 2) * (p->out_width * 2);
    return (size_t)p->images * p->height * p->width;
}

size_t
cuda_winner_bytes(const struct norm_pool_args *a)
{
    const struct pool_args *p = &a->pool;

    if (!a->winners)
        return 0;
    return (size_t)p->images * p->out_height * p->out_width * (p->channels / 8) * sizeof(*a->winners);
}

void
cuda_work_norm_pool(const struct cuda_place *l, const struct cuda_op *op, struct cuda_work *w)
{
    const struct norm_pool_args *a = &op->args.norm_pool;
    const struct pool_args *p = &a->pool;
    bool mean = op->kernel == CUDA_NORM_MEAN_POOL || op->kernel == CUDA_NORM_MEAN_POOL_GRADIENT;
    bool forward = op->kernel == CUDA_NORM_MAX_POOL || op->kernel == CUDA_NORM_AVERAGE_POOL ||
                   op->kernel == CUDA_NORM_MEAN_POOL;
    size_t inputs = (size_t)p->images * p->height * p->width;
    size_t outputs = mean ? p->images : (size_t)p->images * p->out_height * p->out_width;

    w->rows = outputs;
    w->columns = p->channels;
    cuda_add_slab(l, &w->read, p->x, pixels_seen(op, p), p->channels, p->x_ld);
    cuda_add_floats(&w->read, a->weight, a->weight ? p->images : 0);
    cuda_add_view(w, &a->norm, p->channels);
    cuda_add_bytes(forward ? &w->written : &w->read, a->winners, cuda_winner_bytes(a));
    if (forward) {
        cuda_add_slab(l, &w->written, p->y, outputs, p->channels, p->y_ld);
        cuda_add_sums(&w->written, &a->sums);
        cuda_add_floats(&w->read, a->sums.running_mean, a->sums.channels);
        return;
    }
    cuda_add_slab(l, &w->read, p->dy, outputs, p->channels, p->dy_ld);
    if (p->add)
        cuda_add_slab(l, &w->read, p->dx, inputs, p->channels, p->dx_ld);
    cuda_add_slab(l, &w->written, p->dx, inputs, p->channels, p->dx_ld);
    cuda_add_sums(&w->written, &a->sums);
    cuda_add_finalize(l, &a->finalize, outputs, p->channels, w);
}
