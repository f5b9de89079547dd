/*
 * cost.c - what each kernel reads and writes, except BN; see cost.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/plan/cost.h"

#include "backend/input.h"
#include "cuda/plan/conv.h"
#include "cuda/plan/product.h"

/* ---- convolutions ------------------------------------------------------------------------------------------------ */

/* Returns how many of `size` positions in a row are read by some of `outputs` windows. */
static size_t
places_met(unsigned size, unsigned outputs, unsigned kernel, unsigned stride, unsigned pad)
{
    size_t met = 0;
    unsigned i, k;

    for (i = 0; i < size; i++)
        for (k = 0; k < kernel; k++)
            if ((i + pad - k) % stride == 0 && i + pad >= k && (i + pad - k) / stride < outputs) {
                met++;
                break;
            }
    return met;
}

/* Adds the pixels of x that some output reads; a stride larger than the kernel skips pixels. */
static void
add_input(const struct cuda_place *l, struct cuda_areas *to, const struct conv_shape *s, const void *x)
{
    size_t down = places_met(s->height, s->out_height, s->kernel_h, s->stride, s->pad_h);
    size_t across = places_met(s->width, s->out_width, s->kernel_w, s->stride, s->pad_w);

    if (s->in > s->x_ld) /* the stem: a row of k extends into the following pixels */
        cuda_add_slab(l, to, x, (size_t)s->images * s->height * s->width, s->x_ld, s->x_ld);
    else if (down == s->height && across == s->width)
        cuda_add_slab(l, to, x, (size_t)s->images * s->height * s->width, s->in, s->x_ld);
    else
        cuda_add_slab(l, to, x, s->images * down * across, s->in, (size_t)s->x_ld * s->stride);
}

/* Slabs like x and like y: their pixels. */
static size_t
inputs_of(const struct conv_shape *s)
{
    return (size_t)s->images * s->height * s->width;
}

static size_t
outputs_of(const struct conv_shape *s)
{
    return (size_t)s->images * s->out_height * s->out_width;
}

static size_t
weights_of(const struct conv_shape *s)
{
    return (size_t)s->out * s->kernel_h * s->kernel_w * s->in;
}

/* Sets the shape of the product, and adds its operations. */
static void
set_product(const struct conv_shape *s, size_t rows, size_t columns, size_t depth, struct cuda_work *w)
{
    w->flop += 2.0 * (double)outputs_of(s) * (double)weights_of(s);
    w->rows = rows;
    w->columns = columns;
    w->depth = depth;
}

static void
work_fprop(const struct cuda_place *l, const struct fprop_args *a, struct cuda_work *w)
{
    const struct conv_shape *s = &a->shape;

    set_product(s, outputs_of(s), s->out, weights_of(s) / s->out, w);
    add_input(l, &w->read, s, a->x);
    cuda_add_bytes(&w->read, a->w, weights_of(s) * l->value_bytes);
    cuda_add_view(w, &a->norm, s->in);
    if (a->bias)
        cuda_add_floats(&w->read, a->bias, s->out);
    cuda_add_slab(l, &w->written, a->y, outputs_of(s), s->out, s->y_ld);
    if (!a->sums.partial)
        return;
    cuda_add_sums(&w->written, &a->sums);
    cuda_add_floats(&w->read, a->weight, a->weight ? s->images : 0);
    cuda_add_floats(&w->read, a->sums.running_mean, a->sums.channels);
}

static void
work_dgrad(const struct cuda_place *l, const struct dgrad_args *a, struct cuda_work *w)
{
    const struct conv_shape *s = &a->shape;

    set_product(s, inputs_of(s), s->in, weights_of(s) / s->in, w);
    cuda_add_slab(l, &w->read, a->dy, outputs_of(s), s->out, s->y_ld);
    cuda_add_bytes(&w->read, a->w, weights_of(s) * l->value_bytes);
    cuda_add_view(w, &a->norm, s->in);
    if (a->norm.gamma)
        cuda_add_slab(l, &w->read, a->x, inputs_of(s), s->in, s->x_ld);
    if (a->add)
        cuda_add_slab(l, &w->read, a->dx, inputs_of(s), s->in, s->x_ld);
    cuda_add_slab(l, &w->written, a->dx, inputs_of(s), s->in, s->x_ld);
    if (!a->sums.partial)
        return;
    cuda_add_sums(&w->written, &a->sums);
    cuda_add_floats(&w->read, a->weight, a->weight ? s->images : 0);
}

/* cuDNN writes the gradient of the weights as values, without splits. */
static void
work_wgrad(const struct cuda_place *l, const struct wgrad_args *a, bool by_cudnn, struct cuda_work *w)
{
    const struct conv_shape *s = &a->shape;

    set_product(s, s->out, weights_of(s) / s->out, outputs_of(s), w);
    add_input(l, &w->read, s, a->x);
    cuda_add_slab(l, &w->read, a->dy, outputs_of(s), s->out, s->y_ld);
    cuda_add_view(w, &a->norm, s->in);
    if (by_cudnn)
        cuda_add_bytes(&w->written, a->partial, weights_of(s) * l->value_bytes);
    else
        cuda_add_partial(l, &w->written, a->partial, cuda_wgrad_splits(a), weights_of(s));
}

static void
work_conv(const struct cuda_place *l, const struct cuda_op *op, struct cuda_work *w)
{
    switch (cuda_products_of(op).kind) {
    case CONV_FPROP:
        work_fprop(l, &op->args.fprop, w);
        break;
    case CONV_DGRAD:
        work_dgrad(l, &op->args.dgrad, w);
        break;
    case CONV_WGRAD:
        work_wgrad(l, &op->args.wgrad, op->by_cudnn, w);
        break;
    }
}

/* dgrad and wgrad in one pass. */
static void
work_one_pass(const struct cuda_place *l, const struct cuda_op *op, struct cuda_work *w)
{
    const struct dgrad_args *a = &op->args.one_pass.dgrad;
    const struct conv_shape *s = &a->shape;
    const struct one_pass_end *e = &op->args.one_pass.end;
    size_t pixels = inputs_of(s), weights = weights_of(s);

    w->flop = 2 * 2.0 * (double)pixels * (double)weights;
    w->rows = pixels;
    w->columns = s->in;
    w->depth = s->out;
    cuda_add_slab(l, &w->read, a->dy, pixels, s->out, s->y_ld);
    cuda_add_slab(l, &w->read, a->x, pixels, s->in, s->x_ld);
    if (a->add)
        cuda_add_slab(l, &w->read, a->dx, pixels, s->in, s->x_ld);
    cuda_add_bytes(&w->read, a->w, weights * l->value_bytes);
    cuda_add_floats(&w->read, a->weight, a->weight ? s->images : 0);
    cuda_add_view(w, &a->norm, s->in);
    cuda_add_finalize(l, &op->args.one_pass.finalize, pixels, s->out, w);
    cuda_add_slab(l, &w->written, a->dx, pixels, s->in, s->x_ld);
    cuda_add_partial(l, &w->written, op->args.one_pass.partial, op->y, weights);
    cuda_add_sums(&w->written, &a->sums);
    if (e->dy_ld == 0)
        return;
    cuda_add_slab(l, &w->read, e->dy, (size_t)s->images * e->height * e->width, s->in, e->dy_ld);
    cuda_add_floats(&w->read, e->gamma, s->in);
    cuda_add_floats(&w->read, e->beta, s->in);
    cuda_add_sums(&w->written, &e->sums);
}

/* ---- input, weights ---------------------------------------------------------------------------------------------- */

/* Assumes that the crop is in the middle; its position matters little. */
static void
work_input(const struct cuda_place *l, const struct cuda_op *op, struct cuda_work *w)
{
    const struct input_args *a = &op->args.input;
    size_t labels = (size_t)a->images * a->outputs, images = a->images + (a->mix_from ? 1 : 0),
           border = (a->source - a->side) / 2;

    w->rows = (size_t)a->images * STEM_ROWS(a->side) * STEM_COLUMNS(a->side);
    w->columns = STEM_LD;
    cuda_add_bytes(&w->read, a->from, sizeof(*a->from));
    cuda_add_bytes(&w->read, a->index, images * sizeof(*a->index));
    cuda_add_bytes(&w->read, a->crop, images * sizeof(*a->crop));
    cuda_add_floats(&w->read, a->weight_from, a->images);
    cuda_add_floats(&w->read, a->mix_from, a->mix_from ? a->images : 0);
    cuda_add_bytes(&w->read, a->label_from, labels);
    cuda_add_rows(&w->read, a->pixels + border * a->source + border, images * a->side, a->side, a->source);
    cuda_add_bytes(&w->written, a->block, sizeof(*a->block));
    cuda_add_floats(&w->written, a->weight, a->images);
    cuda_add_floats(&w->written, a->mix, a->mix ? a->images : 0);
    cuda_add_bytes(&w->written, a->label, labels);
    cuda_add_slab(l, &w->written, a->cells, w->rows, STEM_LD, STEM_LD);
}

static size_t
stem_weights(unsigned out)
{
    return (size_t)out * INPUT_CHANNELS * STEM_KERNEL * STEM_KERNEL;
}

static void
work_pack(const struct cuda_place *l, const struct cuda_op *op, struct cuda_work *w)
{
    const struct pack_weights_args *a = &op->args.pack;
    const struct pack_entry *e = cuda_known(l, a->entry);
    unsigned i;

    w->rows = 1;
    cuda_add_bytes(&w->read, a->entry, a->entries * sizeof(*a->entry));
    for (i = 0; e && i < a->entries; i++, e++) {
        size_t values = e->stem ? (size_t)e->out * 4 * STEM_IN : (size_t)e->out * e->in * e->taps;

        w->columns += values;
        cuda_add_alone(&w->read, a->master + e->master, (e->stem ? stem_weights(e->out) : values) * sizeof(*a->master));
        cuda_add_alone(&w->written, e->packed, values * l->value_bytes);
    }
    if (op->x > a->blocks)
        cuda_add_step_begin(&a->begin, w);
}

static void
work_fold_weights(const struct cuda_place *l, const struct cuda_op *op, struct cuda_work *w)
{
    const struct fold_weights_args *a = &op->args.fold_weights;
    const struct fold_entry *e = cuda_known(l, a->entry);
    unsigned i;

    w->rows = 1;
    cuda_add_bytes(&w->read, a->entry, a->entries * sizeof(*a->entry));
    for (i = 0; e && i < a->entries; i++, e++) {
        const struct pack_entry *p = &e->pack;
        size_t values = p->stem ? (size_t)p->out * 4 * STEM_IN : (size_t)p->out * p->in * p->taps;
        size_t bytes = p->out * sizeof(float);

        w->columns += values;
        if (p->packed) {
            cuda_add_alone(&w->read, a->master + p->master,
                           (p->stem ? stem_weights(p->out) : values) * sizeof(*a->master));
            cuda_add_alone(&w->written, p->packed, values * l->value_bytes);
        } else {
            cuda_add_alone(&w->written, e->scale, bytes);
        }
        if (!e->shift)
            continue;
        cuda_add_alone(&w->written, e->shift, bytes);
        cuda_add_alone(&w->read, a->master + e->gamma, bytes);
        cuda_add_alone(&w->read, a->master + e->beta, bytes);
        cuda_add_alone(&w->read, a->statistics + e->mean, bytes);
        cuda_add_alone(&w->read, a->statistics + e->variance, bytes);
    }
}

/* Counts the first micro-batch: it only writes gradients and does not read them. */
static void
work_sum_all(const struct cuda_place *l, const struct cuda_op *op, struct cuda_work *w)
{
    const struct sum_all_args *a = &op->args.sum_all;
    const struct splits_entry *e = cuda_known(l, a->entry);
    unsigned i;

    w->rows = a->entries;
    cuda_add_bytes(&w->read, a->entry, a->entries * sizeof(*a->entry));
    CUDA_ADD_MEMBER(&w->read, a->block, number);
    CUDA_ADD_MEMBER(&w->read, a->state, unscale);
    for (i = 0; e && i < a->entries; i++, e++) {
        size_t cells = (size_t)e->out * 4 * STEM_IN,
               count = e->stem ? stem_weights(e->out) : (size_t)e->out * e->in * e->taps;

        w->columns += count;
        cuda_add_alone(&w->read, e->partial,
                       e->splits * (e->stem ? cells : count) * PARTIAL_SIZE(e->splits, l->value_bytes));
        cuda_add_alone(&w->written, a->gradient + e->gradient, count * sizeof(float));
    }
}

/* ---- pools, sums of two branches --------------------------------------------------------------------------------- */

static void
work_pool(const struct cuda_place *l, const struct cuda_op *op, struct cuda_work *w)
{
    const struct pool_args *a = &op->args.pool;
    size_t inputs = (size_t)a->images * a->height * a->width,
           outputs = (size_t)a->images * a->out_height * a->out_width;
    size_t seen = a->images * places_met(a->height, a->out_height, a->kernel, a->stride, a->pad) *
                  places_met(a->width, a->out_width, a->kernel, a->stride, a->pad);

    w->rows = outputs;
    w->columns = a->channels;
    if (op->kernel != CUDA_AVERAGE_POOL_GRADIENT)
        cuda_add_slab(l, &w->read, a->x, seen, a->channels, a->x_ld);
    if (op->kernel == CUDA_MAX_POOL || op->kernel == CUDA_AVERAGE_POOL) {
        cuda_add_slab(l, &w->written, a->y, outputs, a->channels, a->y_ld);
        return;
    }
    cuda_add_slab(l, &w->read, a->dy, outputs, a->channels, a->dy_ld);
    if (a->add)
        cuda_add_slab(l, &w->read, a->dx, inputs, a->channels, a->dx_ld);
    cuda_add_slab(l, &w->written, a->dx, inputs, a->channels, a->dx_ld);
}

static void
work_mean_pool(const struct cuda_place *l, const struct cuda_op *op, struct cuda_work *w)
{
    const struct mean_pool_args *a = &op->args.mean_pool;
    size_t pixels = (size_t)a->images * a->pixels;

    w->rows = a->images;
    w->columns = a->channels;
    if (op->kernel == CUDA_MEAN_POOL) {
        cuda_add_slab(l, &w->read, a->x, pixels, a->channels, a->x_ld);
        cuda_add_slab(l, &w->written, a->y, a->images, a->channels, a->y_ld);
        return;
    }
    cuda_add_slab(l, &w->read, a->dy, a->images, a->channels, a->dy_ld);
    if (a->add)
        cuda_add_slab(l, &w->read, a->dx, pixels, a->channels, a->dx_ld);
    cuda_add_slab(l, &w->written, a->dx, pixels, a->channels, a->dx_ld);
}

static void
work_branches(const struct cuda_place *l, const struct cuda_op *op, struct cuda_work *w)
{
    const struct branches_args *a = &op->args.branches;

    w->rows = a->pixels;
    w->columns = a->channels;
    if (op->kernel == CUDA_BRANCHES) {
        cuda_add_slab(l, &w->read, a->x, a->pixels, a->channels, a->x_ld);
        cuda_add_slab(l, &w->read, a->x2, a->pixels, a->channels, a->x2_ld);
        cuda_add_slab(l, &w->written, a->y, a->pixels, a->channels, a->y_ld);
        return;
    }
    cuda_add_slab(l, &w->read, a->dy, a->pixels, a->channels, a->dy_ld);
    if (a->relu)
        cuda_add_slab(l, &w->read, a->y, a->pixels, a->channels, a->y_ld);
    if (a->add)
        cuda_add_slab(l, &w->read, a->dx, a->pixels, a->channels, a->dx_ld);
    if (a->add2)
        cuda_add_slab(l, &w->read, a->dx2, a->pixels, a->channels, a->dx2_ld);
    cuda_add_slab(l, &w->written, a->dx, a->pixels, a->channels, a->dx_ld);
    cuda_add_slab(l, &w->written, a->dx2, a->pixels, a->channels, a->dx2_ld);
}

static void
work_widen(const struct cuda_place *l, const struct cuda_op *op, struct cuda_work *w)
{
    const struct widen_args *a = &op->args.widen;

    cuda_add_alone(&w->read, a->values, (size_t)a->count * l->value_bytes);
    cuda_add_floats(&w->written, a->sum, a->count);
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static void (*const work_of[CUDA_KERNEL_COUNT])(const struct cuda_place *l, const struct cuda_op *op,
                                                struct cuda_work *w) = {
    [CUDA_INPUT] = work_input,
    [CUDA_PACK_WEIGHTS] = work_pack,
    [CUDA_FOLD_WEIGHTS] = work_fold_weights,
    [CUDA_SUM_ALL] = work_sum_all,
    [CUDA_NORM_SUMS] = cuda_work_norm_sums,
    [CUDA_NORM_APPLY] = cuda_work_norm_apply,
    [CUDA_REDUCE_SUMS] = cuda_work_reduce_sums,
    [CUDA_NORM_FINALIZE] = cuda_work_norm_finalize,
    [CUDA_NORM_MASK] = cuda_work_norm_mask,
    [CUDA_NORM_MAX_POOL] = cuda_work_norm_pool,
    [CUDA_NORM_MAX_POOL_GRADIENT] = cuda_work_norm_pool,
    [CUDA_NORM_AVERAGE_POOL] = cuda_work_norm_pool,
    [CUDA_NORM_AVERAGE_POOL_GRADIENT] = cuda_work_norm_pool,
    [CUDA_NORM_MEAN_POOL] = cuda_work_norm_pool,
    [CUDA_NORM_MEAN_POOL_GRADIENT] = cuda_work_norm_pool,
    [CUDA_MAX_POOL] = work_pool,
    [CUDA_MAX_POOL_GRADIENT] = work_pool,
    [CUDA_AVERAGE_POOL] = work_pool,
    [CUDA_AVERAGE_POOL_GRADIENT] = work_pool,
    [CUDA_MEAN_POOL] = work_mean_pool,
    [CUDA_MEAN_POOL_GRADIENT] = work_mean_pool,
    [CUDA_BRANCHES] = work_branches,
    [CUDA_BRANCHES_GRADIENT] = work_branches,
    [CUDA_LINEAR] = cuda_work_linear,
    [CUDA_LINEAR_GRADIENT] = cuda_work_linear_gradient,
    [CUDA_CLASS_MAPS] = cuda_work_class_maps,
    [CUDA_LOSS] = cuda_work_loss,
    [CUDA_STEP_END] = cuda_work_step_end,
    [CUDA_GRADIENT_SQUARES] = cuda_work_squares,
    [CUDA_STEP_DECIDE] = cuda_work_decide,
    [CUDA_OPTIMIZER] = cuda_work_optimizer,
    [CUDA_WIDEN] = work_widen,
#define WORK_ONE_PASS(shape, ...) [CUDA_CONV_ONE_PASS_##shape] = work_one_pass,
    ONE_PASS_SHAPES(WORK_ONE_PASS)};

bool
cuda_is_conv(const struct cuda_op *op)
{
    return cuda_products_of(op).single;
}

bool
cuda_is_pair(const struct cuda_op *op)
{
    return cuda_products_of(op).pair;
}

bool
cuda_is_one_pass(const struct cuda_op *op)
{
    return cuda_products_of(op).one_pass;
}

void
cuda_work_of(const struct cuda_place *l, const struct cuda_op *op, struct cuda_work *out)
{
    *out = (struct cuda_work){.flop = 0};
    if (cuda_is_conv(op)) {
        work_conv(l, op, out);
    } else if (cuda_is_pair(op)) { /* its shape is that of dgrad */
        work_wgrad(l, &op->args.pair.wgrad, false, out);
        work_dgrad(l, &op->args.pair.dgrad, out);
    } else if (work_of[op->kernel]) {
        work_of[op->kernel](l, op, out);
    }
}
