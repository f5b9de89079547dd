/*
 * cuda_build.c - see cuda_build.h: places and launches, one by one
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "gpu/cuda_build.h"

#include <stdio.h>
#include <string.h>

#define MOST_BLOCKS (1u << 24) /* of a grid, along x: kernels count threads, 256 of a block, in 32 bits */

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static const char *const op_name[] = {
    [GRAPH_CONV] = "convolution",    [GRAPH_NORM] = "normalisation",    [GRAPH_ADD] = "sum",
    [GRAPH_MAX_POOL] = "max pool",   [GRAPH_AVG_POOL] = "average pool", [GRAPH_MEAN_POOL] = "mean pool",
    [GRAPH_LINEAR] = "linear layer",
};

/* "features.conv0" where it has parameters, else "max pool". */
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

size_t
build_take(struct cuda_builder *b, size_t bytes)
{
    size_t piece = 0;

    if (b->status == CHEX_OK)
        b->status = cuda_memory_take(&b->memory, bytes, &piece, b->err);
    return piece;
}

/* Addresses are numbers until they are whole: with base 0 they are offsets. */
static uintptr_t
address_of(struct cuda_builder *b, size_t piece)
{
    if (b->status != CHEX_OK)
        return 0;
    cuda_memory_touch(&b->memory, piece, b->moment);
    return b->lived + b->memory.piece[piece].at;
}

void *
build_at(struct cuda_builder *b, size_t piece)
{
    return (void *)address_of(b, piece);
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

/* cuda_layout_make() has asked whether these bytes can be counted. */
static void *
slab_at(struct cuda_builder *b, size_t *piece, const struct graph_slice *s)
{
    const struct cuda_layout *l = b->layout;
    size_t value = s->buffer == b->graph->output ? sizeof(float) : l->chip.value_bytes;

    if (s->buffer == b->graph->input) {
        build_fail(b, CHEX_ERR_UNSUPPORTED,
                   "of what reads images, the GPU does a convolution of 7 x 7 with stride 2 and padding 3 alone");
        return NULL;
    }
    if (s->buffer != b->graph->output && (s->first % 8 != 0 || s->channels % 8 != 0))
        build_fail(b, CHEX_ERR_UNSUPPORTED, "the GPU takes channels by eights");
    if (*piece == BUILD_NONE)
        *piece = build_take(b, (size_t)build_all_pixels(b, s->buffer) * l->tensor[s->buffer].ld * value);
    return (void *)(address_of(b, *piece) + s->first * value);
}

/* How many channels of a slice were written. */
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
        build_fail(b, CHEX_ERR_UNSUPPORTED, "the GPU has logits for the loss alone");
    if (s->buffer != b->graph->input && count_written(b, b->value_is, s) < s->channels)
        build_fail(b, CHEX_ERR_BUG, "it reads values that nothing wrote");
    return slab_at(b, &b->pieces[s->buffer].value, s);
}

void *
build_write(struct cuda_builder *b, const struct graph_slice *s)
{
    if (count_written(b, b->value_is, s) > 0)
        build_fail(b, CHEX_ERR_BUG, "it writes values that are there");
    set_written(b, b->value_is, s);
    if (s->buffer != b->graph->output)
        return slab_at(b, &b->pieces[s->buffer].value, s);
    if (b->graph->node[b->node].op != GRAPH_LINEAR || s->channels != b->graph->buffer[s->buffer].channels)
        build_fail(b, CHEX_ERR_UNSUPPORTED, "the GPU has logits of one linear layer");
    return (void *)b->layout->logits;
}

void *
build_read_gradient(struct cuda_builder *b, const struct graph_slice *s)
{
    if (count_written(b, b->gradient_is, s) < s->channels)
        build_fail(b, CHEX_ERR_BUG, "it reads gradients that nothing wrote");
    return slab_at(b, &b->pieces[s->buffer].gradient, s);
}

void *
build_write_gradient(struct cuda_builder *b, const struct graph_slice *s, unsigned *add)
{
    unsigned written = count_written(b, b->gradient_is, s);

    if (written > 0 && written < s->channels)
        build_fail(b, CHEX_ERR_UNSUPPORTED, "of its input another node reads a part that is no part of this one");
    *add = written > 0;
    set_written(b, b->gradient_is, s);
    return slab_at(b, &b->pieces[s->buffer].gradient, s);
}

struct build_moments
build_moments(struct cuda_builder *b, unsigned buffer, unsigned first)
{
    struct build_pieces *p = &b->pieces[buffer];
    unsigned channels = b->graph->buffer[buffer].channels;
    size_t array = channels * sizeof(float);
    uintptr_t at;

    if (p->moments == BUILD_NONE)
        p->moments = build_take(b, 3 * array);
    at = address_of(b, p->moments) + first * sizeof(float);
    return (struct build_moments){(float *)at, (float *)(at + array), (float *)(at + 2 * array)};
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

float *
build_running(const struct cuda_builder *b, unsigned stat)
{
    return in_arena(b->layout->running, &b->graph->stat[stat], 0);
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
build_each(const struct cuda_builder *b, unsigned pixels, unsigned channels)
{
    unsigned step = NORM_THREADS / 4, across = cuda_blocks(channels, NORM_CHANNELS);
    unsigned blocks = cuda_blocks((size_t)4 * b->layout->chip.processors, across);
    unsigned each = cuda_blocks(cuda_blocks(pixels, blocks), step) * step;

    return each < 4 * step ? 4 * step : each; /* a block has some work: each is one more number to add */
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
build_final(struct cuda_builder *b, struct cuda_op *op, unsigned first, unsigned last)
{
    const struct graph_tensor *one = &b->graph->param[first], *two = &b->graph->param[last];

    if (two->offset + two->count != b->final || (first != last && one->offset + one->count != two->offset))
        build_fail(b, CHEX_ERR_BUG, "its gradients are not the next from the end of the arena");
    b->final = one->offset;
    op->final = one->offset;
}
