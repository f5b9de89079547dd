/*
 * build.c - addresses and launches, one at a time; see build.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/plan/build.h"

#include <stdio.h>
#include <string.h>

#define MOST_BLOCKS (1u << 24) /* of a grid along x: kernels count threads, 256 per CTA, in 32 bits */

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static const char *const op_name[] = {
    [GRAPH_CONV] = "convolution",    [GRAPH_NORM] = "normalisation",    [GRAPH_ADD] = "sum",
    [GRAPH_MAX_POOL] = "max pool",   [GRAPH_AVG_POOL] = "average pool", [GRAPH_MEAN_POOL] = "mean pool",
    [GRAPH_LINEAR] = "linear layer",
};

/* Sets the name to "features.conv0" if the node has parameters, otherwise "max pool". */
static void
name_node(const struct graph *g, const struct graph_node *n, char name[GRAPH_NAME])
{
    bool has = n->op == GRAPH_CONV || n->op == GRAPH_NORM || n->op == GRAPH_LINEAR;
    char *dot;

    snprintf(name, GRAPH_NAME, "%s", has ? g->param[n->weight].name : op_name[n->op]);
    dot = has ? strrchr(name, '.') : NULL;
    if (dot)
        *dot = '\0';
}

void
build_fail(struct cuda_builder *b, enum chex_status status, const char *why)
{
    char name[GRAPH_NAME] = "";

    if (b->status != CHEX_OK)
        return;
    if (b->node == CUDA_NO_NODE) {
        b->status = error_set(b->err, status, "%s: %s", b->graph->model, why);
        return;
    }
    name_node(b->graph, &b->graph->node[b->node], name);
    b->status = error_set(b->err, status, "%s, node %u (%s): %s", b->graph->model, b->node, name, why);
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

uintptr_t
build_reserve(struct cuda_builder *b, size_t count, size_t size)
{
    struct cuda_layout *l = b->layout;
    uintptr_t at = l->base + l->bytes;
    size_t bytes;

    if (b->status == CHEX_OK && (!size_mul(count, size, &bytes) || !cuda_align(bytes, &bytes) ||
                                 !size_add(l->bytes, bytes, &l->bytes) || l->bytes > UINTPTR_MAX - l->base))
        b->status = error_set(b->err, CHEX_ERR_MEMORY, CUDA_TOO_LARGE, l->options->batch);
    return at;
}

size_t
build_allocate(struct cuda_builder *b, size_t bytes)
{
    size_t piece = 0;

    if (b->status == CHEX_OK)
        b->status = cuda_memory_take(&b->memory, bytes, &piece, b->err);
    return piece;
}

/* Addresses are computed as numbers; with base 0 they are offsets. */
static uintptr_t
address_of(struct cuda_builder *b, size_t piece)
{
    if (b->status != CHEX_OK)
        return 0;
    cuda_memory_touch(&b->memory, piece, b->moment);
    return b->lived + b->memory.piece[piece].offset;
}

void *
build_at(struct cuda_builder *b, size_t piece)
{
    return (void *)address_of(b, piece);
}

bool
build_is_single_rank(const struct cuda_builder *b)
{
    const struct reduce *r = b->layout->options->reduce;

    return !r || r->size <= 1;
}

unsigned
build_pixels(const struct cuda_builder *b, unsigned buffer)
{
    return b->graph->buffer[buffer].height * b->graph->buffer[buffer].width;
}

unsigned
build_all_pixels(const struct cuda_builder *b, unsigned buffer)
{
    return b->layout->options->batch * build_pixels(b, buffer);
}

/* cuda_layout_make() has checked that these sizes fit. */
static void *
slab_at(struct cuda_builder *b, size_t *piece, const struct graph_slice *s)
{
    const struct cuda_layout *l = b->layout;
    size_t value = s->buffer == b->graph->output ? sizeof(float) : l->chip.value_bytes;

    if (s->buffer == b->graph->input) {
        build_fail(b, CHEX_ERR_UNSUPPORTED,
                   "the GPU reads images only by a convolution of 7 x 7 with stride 2 and padding 3");
        return NULL;
    }
    if (s->buffer != b->graph->output && (s->first % 8 != 0 || s->channels % 8 != 0))
        build_fail(b, CHEX_ERR_UNSUPPORTED, "GPU kernels need slices that begin and end at multiples of 8 channels");
    if (*piece == BUILD_NONE)
        *piece = build_allocate(b, (size_t)build_all_pixels(b, s->buffer) * l->tensor[s->buffer].ld * value);
    return (void *)(address_of(b, *piece) + s->first * value);
}

/* Returns how many channels of a slice were written. */
static unsigned
count_written(const struct cuda_builder *b, const bool *is, const struct graph_slice *s)
{
    unsigned count = 0, c;

    for (c = 0; c < s->channels; c++)
        count += is[b->first[s->buffer] + s->first + c];
    return count;
}

static void
set_written(struct cuda_builder *b, bool *is, const struct graph_slice *s)
{
    memset(is + b->first[s->buffer] + s->first, true, s->channels * sizeof(*is));
}

void *
build_read(struct cuda_builder *b, const struct graph_slice *s)
{
    if (s->buffer == b->graph->output)
        build_fail(b, CHEX_ERR_UNSUPPORTED, "on the GPU, only the loss may read the logits");
    if (s->buffer != b->graph->input && count_written(b, b->value_written, s) < s->channels)
        build_fail(b, CHEX_ERR_BUG, "it reads values that nothing wrote");
    return slab_at(b, &b->pieces[s->buffer].value, s);
}

void *
build_write(struct cuda_builder *b, const struct graph_slice *s)
{
    if (count_written(b, b->value_written, s) > 0)
        build_fail(b, CHEX_ERR_BUG, "it overwrites values");
    set_written(b, b->value_written, s);
    if (s->buffer != b->graph->output)
        return slab_at(b, &b->pieces[s->buffer].value, s);
    if (b->graph->node[b->node].op != GRAPH_LINEAR || s->channels != b->graph->buffer[s->buffer].channels)
        build_fail(b, CHEX_ERR_UNSUPPORTED, "the GPU has logits of one linear layer");
    return (void *)b->layout->logits;
}

void *
build_read_gradient(struct cuda_builder *b, const struct graph_slice *s)
{
    if (count_written(b, b->gradient_written, s) < s->channels)
        build_fail(b, CHEX_ERR_BUG, "it reads gradients that nothing wrote");
    return slab_at(b, &b->pieces[s->buffer].gradient, s);
}

static void *
write_gradient(struct cuda_builder *b, const struct graph_slice *s, unsigned *add)
{
    unsigned written = count_written(b, b->gradient_written, s);

    if (written > 0 && written < s->channels)
        build_fail(b, CHEX_ERR_UNSUPPORTED, "of its input another node reads a part that is no part of this one");
    *add = written > 0;
    set_written(b, b->gradient_written, s);
    return slab_at(b, &b->pieces[s->buffer].gradient, s);
}

void *
build_write_gradient(struct cuda_builder *b, const struct graph_slice *s, unsigned *add)
{
    if (cuda_fold_norm_of(b->graph, s))
        build_fail(b, CHEX_ERR_UNSUPPORTED, "a normalisation reads the same input");
    return write_gradient(b, s, add);
}

void *
build_write_norm_gradient(struct cuda_builder *b, const struct graph_slice *s, unsigned *add)
{
    return write_gradient(b, s, add);
}

bool
build_adds(const struct cuda_builder *b, const struct graph_slice *s)
{
    return count_written(b, b->gradient_written, s) > 0;
}

/* Returns two arrays of a float per channel of a buffer. */
static struct build_pair
pair_at(struct cuda_builder *b, size_t *piece, unsigned buffer, unsigned first)
{
    size_t array = b->graph->buffer[buffer].channels * sizeof(float);
    uintptr_t at;

    if (*piece == BUILD_NONE)
        *piece = build_allocate(b, 2 * array);
    at = address_of(b, *piece) + first * sizeof(float);
    return (struct build_pair){(float *)at, (float *)(at + array)};
}

struct build_pair
build_moments(struct cuda_builder *b, unsigned buffer, unsigned first)
{
    return pair_at(b, &b->pieces[buffer].moments, buffer, first);
}

struct build_pair
build_write_means(struct cuda_builder *b, const struct graph_slice *s, unsigned *add)
{
    unsigned written = count_written(b, b->means_written, s);

    if (written > 0 && written < s->channels)
        build_fail(b, CHEX_ERR_UNSUPPORTED, "a normalisation reads a part of what another one reads");
    *add = written > 0;
    set_written(b, b->means_written, s);
    return pair_at(b, &b->pieces[s->buffer].by, s->buffer, s->first);
}

struct build_pair
build_read_means(struct cuda_builder *b, const struct graph_slice *s)
{
    if (count_written(b, b->means_written, s) == 0)
        return (struct build_pair){NULL, NULL};
    if (count_written(b, b->means_written, s) < s->channels)
        build_fail(b, CHEX_ERR_UNSUPPORTED, "a normalisation reads a part of what another one reads");
    return pair_at(b, &b->pieces[s->buffer].by, s->buffer, s->first);
}

static float *
in_arena(uintptr_t arena, const struct graph_tensor *t, unsigned channel)
{
    return (float *)(arena + (t->offset + channel) * sizeof(float));
}

const float *
build_weight(const struct cuda_builder *b, unsigned param)
{
    return in_arena(b->layout->arena[b->weights], &b->graph->param[param], 0);
}

float *
build_gradient_of(const struct cuda_builder *b, unsigned param)
{
    return in_arena(b->layout->arena[ARENA_GRADIENTS], &b->graph->param[param], 0);
}

const float *
build_statistic(const struct cuda_builder *b, unsigned stat, unsigned channel)
{
    return in_arena(b->layout->arena[ARENA_STATISTICS], &b->graph->stat[stat], channel);
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

unsigned
build_blocks(struct cuda_builder *b, size_t a, size_t c, unsigned each)
{
    size_t count;

    if (size_mul(a, c, &count) && count / each < MOST_BLOCKS)
        return cuda_blocks(count, each);
    build_fail(b, CHEX_ERR_MEMORY, "the micro-batch is too large for one launch");
    return 1;
}

unsigned
build_pixels_each(const struct cuda_builder *b, unsigned pixels, unsigned channels)
{
    unsigned step = NORM_THREADS / 4, across = cuda_blocks(channels, NORM_CHANNELS);
    unsigned blocks = cuda_blocks((size_t)4 * b->layout->chip.processors, across);
    unsigned each = cuda_blocks(cuda_blocks(pixels, blocks), step) * step;

    return each < 4 * step ? 4 * step : each; /* gives each CTA enough work, because each adds a row to reduce */
}

unsigned
build_pixel_blocks(const struct cuda_builder *b, unsigned pixels, unsigned channels)
{
    return cuda_blocks(pixels, build_pixels_each(b, pixels, channels));
}

struct cuda_op
build_op(const struct cuda_builder *b, enum cuda_kernel_id kernel, unsigned x)
{
    return (struct cuda_op){.kernel = kernel, .x = x, .y = 1, .z = 1, .node = b->node, .final = SIZE_MAX};
}

void
build_launch(struct cuda_builder *b, struct cuda_op op)
{
    struct cuda_list *list = &b->layout->list[b->list];
    struct cuda_op *grown;

    b->moment++;
    if (b->status != CHEX_OK || !b->memory.placed)
        return;
    grown = array_grow(list->op, &list->capacity, list->count, sizeof(*grown));
    if (!grown) {
        b->status = error_memory(b->err);
        return;
    }
    list->op = grown;
    grown[list->count++] = op;
}

void
build_mark_made(struct cuda_builder *b, unsigned param)
{
    if (b->param_done[param])
        build_fail(b, CHEX_ERR_BUG, "the gradient of a parameter is made twice");
    b->param_done[param] = true;
}

void
build_mark_final(struct cuda_builder *b, struct cuda_op *op)
{
    size_t before = b->final;

    while (b->final > 0 && b->param_done[b->final - 1])
        b->final--;
    if (b->final < before)
        op->final = b->graph->param[b->final].offset;
}

/* ---- convolutions ------------------------------------------------------------------------------------------------ */

bool
build_is_stem(const struct cuda_builder *b, const struct graph_node *n)
{
    const struct graph_buffer *in = &b->graph->buffer[n->in.buffer];

    return n->op == GRAPH_CONV && n->in.buffer == b->graph->input && n->in.channels == 3 && in->height == in->width &&
           n->kernel == 7 && n->stride == 2 && n->pad == 3;
}

static void
shape_stem(struct conv_shape *s, unsigned side)
{
    s->height = STEM_ROWS(side);
    s->width = STEM_COLUMNS(side);
    s->in = STEM_IN;
    s->x_ld = STEM_LD;
    s->kernel_h = 4;
    s->kernel_w = 1;
    s->stride = 1;
    s->pad_h = 2;
    s->pad_w = 0;
}

const struct cuda_fold *
build_fused_norms(const struct cuda_builder *b)
{
    return b->score ? &b->scoring.fold : &b->fold;
}

const struct graph_node *
build_norm_before(const struct cuda_builder *b, const struct graph_node *n)
{
    return build_fused_norms(b)->norm[n - b->graph->node];
}

const struct graph_node *
build_norm_after(const struct cuda_builder *b, const struct graph_node *conv)
{
    return b->scoring.fold.behind[conv - b->graph->node];
}

const struct graph_slice *
build_source(const struct cuda_builder *b, const struct graph_node *n)
{
    const struct graph_node *norm = build_norm_before(b, n);

    return norm ? &norm->in : &n->in;
}

struct cuda_conv
build_conv(struct cuda_builder *b, const struct graph_node *n, enum conv_kind kind)
{
    const struct cuda_layout *l = b->layout;
    const struct graph_buffer *in = &b->graph->buffer[n->in.buffer], *out = &b->graph->buffer[n->out.buffer];
    struct conv_shape shape = {.images = l->options->batch,
                               .height = in->height,
                               .width = in->width,
                               .out_height = out->height,
                               .out_width = out->width,
                               .in = n->in.channels,
                               .out = n->out.channels,
                               .x_ld = l->tensor[build_source(b, n)->buffer].ld,
                               .y_ld = l->tensor[n->out.buffer].ld,
                               .kernel_h = n->kernel,
                               .kernel_w = n->kernel,
                               .stride = n->stride,
                               .pad_h = n->pad,
                               .pad_w = n->pad};
    struct cuda_conv c;

    if (build_is_stem(b, n))
        shape_stem(&shape, in->height);
    c = cuda_conv_start(kind, &shape, l->chip.major);
    c.value = l->chip.value;
    if (kind == CONV_FPROP) {
        c.fprop.w = (const void *)b->packed[n - b->graph->node];
        c.fprop.weight = (const float *)l->weight;
    } else if (kind == CONV_DGRAD) {
        c.dgrad.w = (const void *)b->packed[n - b->graph->node];
        c.dgrad.weight = (const float *)l->weight;
    }
    return c;
}

void
build_conv_check(struct cuda_builder *b, const struct cuda_conv *c)
{
    if (b->status == CHEX_OK && !cuda_conv_fits(c))
        build_fail(b, CHEX_ERR_UNSUPPORTED, "the GPU has no kernel for a convolution of this shape");
}

void
build_conv_launch(struct cuda_builder *b, struct cuda_op op)
{
    op.node = b->node;
    op.final = SIZE_MAX;
    build_launch(b, op);
}

bool
build_is_cudnn(const struct cuda_builder *b, const struct graph_node *n)
{
    return b->layout->cudnn[n - b->graph->node];
}
