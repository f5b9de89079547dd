/*
 * cudnn_launches.c - the launches of convolutions that cuDNN runs (cuda/cudnn/engine.h); see build.h
 *
 * They read stored, normalised tensors and write neither partial sums nor masks.  If cuDNN refuses a convolution, an
 * own kernel runs it in the same way.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/plan/build.h"

static bool
is_by_cudnn(const struct cuda_builder *b, enum conv_kind kind)
{
    const unsigned char *refused = b->layout->chip.refused;

    return !(refused && refused[b->node] >> kind & 1);
}

/* plan_size() does not know what cuDNN refuses, so there is always memory for its workspace. */
static void
launch(struct cuda_builder *b, const struct cuda_conv *c)
{
    void *workspace = build_at(b, build_allocate(b, CUDNN_WORKSPACE));
    struct cuda_op op = cuda_conv_op(c);

    build_conv_check(b, c);
    op.by_cudnn = is_by_cudnn(b, c->kind);
    op.workspace = op.by_cudnn ? workspace : NULL;
    build_conv_launch(b, op);
}

void
build_cudnn_forward(struct cuda_builder *b, const struct graph_node *n)
{
    struct cuda_conv c = build_conv(b, n, CONV_FPROP);

    cuda_conv_choose(&c, b->layout->chip.processors);
    if (b->score)
        c.fprop.w = build_scoring_weights(b, n);
    c.fprop.x = build_read(b, &n->in);
    c.fprop.y = build_write(b, &n->out);
    launch(b, &c);
    build_launch_sums(b, &n->out);
}

static void
dgrad(struct cuda_builder *b, const struct graph_node *n)
{
    struct cuda_conv c = build_conv(b, n, CONV_DGRAD);

    cuda_conv_choose(&c, b->layout->chip.processors);
    c.dgrad.dx = build_write_gradient(b, &n->in, &c.dgrad.add);
    c.dgrad.dy = build_read_gradient(b, &n->out);
    launch(b, &c);
}

/* Converts the gradient of the weights from cuDNN's type to one float partial sum. */
static void
widen(struct cuda_builder *b, size_t values, size_t partial, size_t count)
{
    struct cuda_op op = build_op(b, CUDA_WIDEN, build_blocks(b, count, 1, 8 * WIDEN_THREADS));

    op.args.widen = (struct widen_args){
        .values = build_at(b, values), .sum = build_at(b, partial), .count = (unsigned)count};
    build_launch(b, op);
}

static void
wgrad(struct cuda_builder *b, const struct graph_node *n)
{
    struct cuda_conv c = build_conv(b, n, CONV_WGRAD);
    bool by_cudnn = is_by_cudnn(b, CONV_WGRAD);
    struct build_splits partial;
    size_t values;

    cuda_conv_choose(&c, b->layout->chip.processors);
    if (by_cudnn)
        c.splits = 1;
    partial = build_allocate_splits(b, cuda_conv_partial(&c), c.splits);
    values = build_allocate(b, partial.count * b->layout->chip.value_bytes);
    c.wgrad.x = build_read(b, &n->in);
    c.wgrad.dy = build_read_gradient(b, &n->out);
    c.wgrad.partial = build_at(b, by_cudnn ? values : partial.piece);
    launch(b, &c);
    if (by_cudnn)
        widen(b, values, partial.piece, partial.count);
    build_reduce_splits_later(b, n, &partial);
}

void
build_cudnn_backward(struct cuda_builder *b, const struct graph_node *n)
{
    dgrad(b, n);
    wgrad(b, n);
}
