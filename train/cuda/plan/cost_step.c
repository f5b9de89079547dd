/*
 * cost_step.c - counts the bytes of the kernels of the head and of a step; see cost.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/plan/cost.h"

/* ---- the head ---------------------------------------------------------------------------------------------------- */

static void
linear_shape(const struct linear_args *a, struct cuda_work *w)
{
    w->rows = a->images;
    w->columns = a->out;
    w->depth = a->in;
}

void
cuda_work_linear(const struct cuda_place *l, const struct cuda_op *op, struct cuda_work *w)
{
    const struct linear_args *a = &op->args.linear;

    linear_shape(a, w);
    cuda_add_slab(l, &w->read, a->x, a->images, a->in, a->x_ld);
    cuda_add_floats(&w->read, a->w, (size_t)a->out * a->in);
    cuda_add_floats(&w->read, a->bias, a->out);
    cuda_add_floats(&w->read, a->weight, a->images);
    cuda_add_floats(&w->written, a->z, (size_t)a->images * a->out);
}

void
cuda_work_linear_gradient(const struct cuda_place *l, const struct cuda_op *op, struct cuda_work *w)
{
    const struct linear_args *a = &op->args.linear;

    linear_shape(a, w);
    cuda_add_floats(&w->read, a->dz, (size_t)a->images * a->out);
    cuda_add_floats(&w->read, a->w, (size_t)a->out * a->in);
    cuda_add_slab(l, &w->written, a->dx, a->images, a->in, a->dx_ld);
    cuda_add_slab(l, &w->read, a->x, a->images, a->in, a->x_ld);
    CUDA_ADD_MEMBER(&w->read, a->state, unscale);
    CUDA_ADD_MEMBER(&w->read, a->block, number);
    cuda_add_floats(&w->written, a->dw, (size_t)a->out * a->in);
    cuda_add_floats(&w->written, a->dbias, a->out);
}

void
cuda_work_class_maps(const struct cuda_place *l, const struct cuda_op *op, struct cuda_work *w)
{
    const struct class_maps_args *a = &op->args.class_maps;
    size_t pixels = (size_t)a->images * a->pixels;

    w->rows = pixels;
    w->columns = a->out;
    w->depth = a->in;
    cuda_add_slab(l, &w->read, a->x, pixels, a->in, a->x_ld);
    cuda_add_floats(&w->read, a->scale, a->scale ? a->in : 0);
    cuda_add_floats(&w->read, a->shift, a->scale ? a->in : 0);
    cuda_add_floats(&w->read, a->w, (size_t)a->out * a->in);
    cuda_add_floats(&w->read, a->weight, a->images);
    cuda_add_floats(&w->written, a->map, pixels * a->out);
}

void
cuda_work_loss(const struct cuda_place *l, const struct cuda_op *op, struct cuda_work *w)
{
    const struct loss_args *a = &op->args.loss;
    size_t outputs = (size_t)a->images * a->out;

    w->rows = a->images;
    w->columns = a->out;
    CUDA_ADD_MEMBER(&w->read, a->state, loss_scale);
    CUDA_ADD_MEMBER(&w->read, a->state, loss);
    CUDA_ADD_MEMBER(&w->read, a->block, scale);
    cuda_add_floats(&w->read, a->weight, a->images);
    cuda_add_bytes(&w->read, a->label, outputs);
    cuda_add_floats(&w->read, a->mix, a->mix ? a->images : 0);
    cuda_add_floats(&w->read, a->positive_weight, a->positive_weight ? a->out : 0);
    cuda_add_floats(&w->read, a->z, outputs);
    cuda_add_floats(&w->written, a->dz, outputs);
    CUDA_ADD_MEMBER(&w->written, a->state, loss);
    CUDA_ADD_MEMBER(&w->read, a->state, labels);
    CUDA_ADD_MEMBER(&w->read, a->state, known);
    CUDA_ADD_MEMBER(&w->read, a->block, images);
    CUDA_ADD_MEMBER(&w->written, a->state, labels);
    CUDA_ADD_MEMBER(&w->written, a->state, known);
    if (a->running.entries > 0)
        cuda_add_running(l, &a->running, w);
}

/* ---- a step ------------------------------------------------------------------------------------------------------ */

static void
one_row(struct cuda_work *w, size_t count)
{
    w->rows = 1;
    w->columns = count;
}

void
cuda_add_step_begin(const struct step_begin_args *a, struct cuda_work *w)
{
    cuda_add_floats(&w->read, a->statistics, a->from_zero ? 0 : a->count);
    CUDA_ADD_MEMBER(&w->read, a->state, loss_scale);
    cuda_add_floats(&w->written, a->running, a->count);
    CUDA_ADD_MEMBER(&w->written, a->state, unscale);
    CUDA_ADD_MEMBER(&w->written, a->state, loss);
    CUDA_ADD_MEMBER(&w->written, a->state, labels);
    CUDA_ADD_MEMBER(&w->written, a->state, known);
    CUDA_ADD_MEMBER(&w->written, a->state, bad);
}

void
cuda_work_step_end(const struct cuda_place *l, const struct cuda_op *op, struct cuda_work *w)
{
    const struct step_end_args *a = &op->args.end;

    (void)l;
    one_row(w, a->count);
    cuda_add_floats(&w->read, a->running, a->count);
    cuda_add_bytes(&w->read, a->pixels, a->count * sizeof(*a->pixels));
    cuda_add_bytes(&w->read, a->block, sizeof(*a->block));
    CUDA_ADD_MEMBER(&w->read, a->state, loss);
    CUDA_ADD_MEMBER(&w->read, a->state, labels);
    CUDA_ADD_MEMBER(&w->read, a->state, known);
    cuda_add_floats(&w->written, a->running, a->count);
    cuda_add_floats(&w->written, a->tail, TAIL_FLOATS);
}

void
cuda_work_squares(const struct cuda_place *l, const struct cuda_op *op, struct cuda_work *w)
{
    const struct gradient_squares_args *a = &op->args.squares;

    (void)l;
    one_row(w, a->count);
    cuda_add_floats(&w->read, a->gradient, a->count);
    cuda_add_bytes(&w->written, a->partial, op->x * sizeof(*a->partial));
}

void
cuda_work_decide(const struct cuda_place *l, const struct cuda_op *op, struct cuda_work *w)
{
    const struct step_decide_args *a = &op->args.decide;

    (void)l;
    one_row(w, a->blocks);
    cuda_add_bytes(&w->read, a->partial, a->blocks * sizeof(*a->partial));
    cuda_add_floats(&w->read, a->tail, TAIL_FLOATS);
    cuda_add_bytes(&w->read, a->block, sizeof(*a->block));
    CUDA_ADD_MEMBER(&w->read, a->state, applied);
    CUDA_ADD_MEMBER(&w->read, a->state, loss_scale);
    CUDA_ADD_MEMBER(&w->read, a->state, good);
    CUDA_ADD_MEMBER(&w->read, a->state, halted);
    CUDA_ADD_MEMBER(&w->read, a->state, loss);
    CUDA_ADD_MEMBER(&w->read, a->state, labels);
    CUDA_ADD_MEMBER(&w->read, a->state, known);
    cuda_add_bytes(&w->written, a->state, sizeof(*a->state));
}

void
cuda_work_optimizer(const struct cuda_place *l, const struct cuda_op *op, struct cuda_work *w)
{
    const struct optimizer_args *a = &op->args.optimizer;
    float *const changed[] = {a->parameter, a->moment1, a->moment2, a->average};
    size_t i;

    (void)l;
    one_row(w, a->count);
    cuda_add_floats(&w->read, a->gradient, a->count);
    CUDA_ADD_MEMBER(&w->read, a->state, apply);
    CUDA_ADD_MEMBER(&w->read, a->state, factor);
    CUDA_ADD_MEMBER(&w->read, a->state, rate);
    CUDA_ADD_MEMBER(&w->read, a->state, root);
    CUDA_ADD_MEMBER(&w->read, a->state, shrink);
    for (i = 0; i < sizeof(changed) / sizeof(*changed); i++) {
        cuda_add_floats(&w->read, changed[i], changed[i] || i == 0 ? a->count : 0);
        cuda_add_floats(&w->written, changed[i], changed[i] || i == 0 ? a->count : 0);
    }
    cuda_add_floats(&w->read, a->running, a->statistics_count);
    cuda_add_floats(&w->written, a->statistics, a->statistics_count);
}
