/*
 * conv.c - convolutions forward: strips, and weights in the order in which the kernels read them
 *
 * A strip is so many outputs of one image that its inputs, normalised, fit the second-level cache.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cpu/plan.h"

#include <string.h>

#define CACHE_FLOATS  65536 /* of the inputs of a strip: half a cache of 512 KiB */
#define FLAT_FORWARD  336   /* pixels of a strip of a 1x1 convolution */
#define FLAT_BACKWARD 168   /* the same where two such operands should stay in the first-level cache */
#define PIECES        32    /* most sums of weight gradients */
#define PIECE_FLOATS  (4u << 20)

static unsigned
at_least_1(size_t n)
{
    return n > 0 ? (unsigned)n : 1;
}

static unsigned
smaller(size_t a, size_t b)
{
    return (unsigned)(a < b ? a : b);
}

size_t
conv_weight_floats(const struct step *step)
{
    return (size_t)step->in.blocks * step->out_blocks * step->node->kernel * step->node->kernel * BLOCK * BLOCK;
}

/* Columns of a flat strip: at most `most`, all strips about equally long, a multiple of what the kernels like. */
static unsigned
flat_columns(const struct step *step, size_t tile, unsigned most)
{
    size_t pixels = step->conv.width, room = CACHE_FLOATS / ((size_t)step->in.blocks * BLOCK), strips;

    if (room > most)
        room = most;
    if (room < tile)
        room = tile;
    strips = (pixels + room - 1) / room;
    return smaller(pixels, ((pixels + strips - 1) / strips + tile - 1) / tile * tile);
}

/* Rows of which `channels` x columns floats each fit the cache, `halo` more being needed. */
static unsigned
strip_rows(size_t channels, size_t columns, unsigned halo, unsigned rows)
{
    size_t room = CACHE_FLOATS / (channels * columns);

    return smaller(rows, at_least_1(room > halo ? room - halo : 0));
}

void
conv_geometry(struct plan *plan, struct step *step)
{
    const struct graph_node *node = step->node;
    const struct graph_buffer *in = &plan->graph->buffer[node->in.buffer],
                              *out = &plan->graph->buffer[node->out.buffer];
    struct conv_plan *c = &step->conv;
    size_t channels = (size_t)step->in.blocks * BLOCK, outputs = (size_t)step->out_blocks * BLOCK, pieces;
    unsigned stride = node->stride, extra = node->kernel - 1;

    /* The images come as rows of their own. */
    c->flat = node->kernel == 1 && stride == 1 && node->pad == 0 && node->in.buffer != plan->graph->input;
    c->height = c->flat ? 1 : in->height;
    c->width = c->flat ? in->height * in->width : in->width;
    c->out_height = c->flat ? 1 : out->height;
    c->out_width = c->flat ? c->width : out->width;
    if (c->flat) {
        c->rows = 1;
        c->columns = flat_columns(step, 14, FLAT_FORWARD);
        c->strips = (c->width + c->columns - 1) / c->columns;
        c->weight_rows = flat_columns(step, 14, FLAT_BACKWARD);
    } else {
        size_t wide = (size_t)(out->width - 1) * stride + node->kernel;

        c->columns = out->width;
        c->rows = strip_rows(channels * stride, wide, extra / stride + 1, out->height);
        c->strips = (out->height + c->rows - 1) / c->rows;
        c->weight_rows = c->rows;
        c->data_rows = strip_rows(outputs, in->width + extra, extra, in->height);
    }
    pieces = PIECE_FLOATS / conv_weight_floats(step);
    c->pieces = smaller(plan->options.batch, smaller(PIECES, at_least_1(pieces)));
}

static size_t
larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

size_t
conv_scratch(const struct plan *plan, const struct step *step)
{
    const struct conv_plan *c = &step->conv;
    unsigned k = step->node->kernel, stride = step->node->stride;
    size_t in = (size_t)step->in.blocks * BLOCK, out = (size_t)step->out_blocks * BLOCK, forward, weights, data;

    if (c->flat) {
        forward = in * c->columns;
        weights = (in + out + 2 * BLOCK) * c->weight_rows;
        return plan->options.train ? larger(forward, weights) : forward;
    }
    forward = in * ((c->rows - 1) * stride + k) * ((size_t)(c->out_width - 1) * stride + k);
    weights = in * ((c->weight_rows - 1) * stride + k) * ((size_t)(c->out_width - 1) * stride + k) +
              out * c->weight_rows * c->out_width;
    data = out * (c->data_rows + k - 1) * ((size_t)c->width + k - 1) + 2 * BLOCK * (size_t)c->data_rows * c->width;
    return plan->options.train ? larger(forward, larger(weights, data)) : forward;
}

/* ---- weights --------------------------------------------------------------------------------------------------- */

/* The channels of a slice that lie in one block: channel, or -1 for a hole. */
static void
block_channels(const unsigned *lane, unsigned channels, size_t block, int channel[BLOCK])
{
    unsigned i;

    for (i = 0; i < BLOCK; i++)
        channel[i] = -1;
    for (i = 0; i < channels; i++)
        if (lane[i] / BLOCK == block)
            channel[lane[i] % BLOCK] = (int)i;
}

/* One block of outputs, all blocks of inputs, in both orders. */
void
conv_pack(void *context, size_t block, unsigned thread)
{
    struct part *part = context;
    struct step *step = part->step;
    const struct graph_node *node = step->node;
    const float *w = part->plan->arena[ARENA_PARAMETERS] + part->plan->graph->param[node->weight].offset;
    size_t taps = (size_t)node->kernel * node->kernel, tap, size = BLOCK * BLOCK;
    int out[BLOCK], in[BLOCK];
    unsigned b, i, o;

    (void)thread;
    block_channels(step->out_lane, node->out.channels, block, out);
    for (b = 0; b < step->in.blocks; b++) {
        float *forward = step->conv.forward + (block * step->in.blocks + b) * taps * size;
        float *backward = step->conv.backward
                              ? step->conv.backward + (b * (size_t)step->out_blocks + block) * taps * size
                              : NULL;

        block_channels(step->in.lane, node->in.channels, b, in);
        for (o = 0; o < BLOCK; o++) {
            for (i = 0; i < BLOCK; i++) {
                const float *from = out[o] < 0 || in[i] < 0
                                        ? NULL
                                        : w + ((size_t)out[o] * node->in.channels + (size_t)in[i]) * taps;

                for (tap = 0; tap < taps; tap++) {
                    forward[tap * size + i * BLOCK + o] = from ? from[tap] : 0;
                    if (backward)
                        backward[(taps - 1 - tap) * size + o * BLOCK + i] = from ? from[tap] : 0;
                }
            }
        }
    }
}

/* ---- forward --------------------------------------------------------------------------------------------------- */

size_t
conv_strip_pixels(const struct step *step, unsigned strip)
{
    const struct conv_plan *c = &step->conv;
    unsigned length = c->flat ? c->columns : c->rows, all = c->flat ? c->width : c->out_height;
    unsigned from = strip * length, count = smaller(length, all - from);

    return c->flat ? count : (size_t)count * c->out_width;
}

void
conv_forward_strip(struct plan *plan, struct step *step, size_t image, unsigned strip, unsigned thread)
{
    const struct conv_plan *c = &step->conv;
    unsigned k = step->node->kernel, stride = step->node->stride, first = strip * (c->flat ? c->columns : c->rows), o,
             row, rows;
    size_t pixels = conv_strip_pixels(step, strip), slot = slot_of(plan, image, thread);
    size_t at = c->flat ? first : (size_t)first * c->out_width, per_out = conv_weight_floats(step) / step->out_blocks;
    float *x = plan->scratch + thread * plan->scratch_floats;
    struct box box = {c->height, c->width, 0, 0, 1, (unsigned)pixels};

    rows = c->flat ? 1 : (unsigned)(pixels / c->out_width);
    if (c->flat)
        box.left = (long)first;
    else
        box = (struct box){c->height,
                           c->width,
                           (long)first * (long)stride - (long)step->node->pad,
                           -(long)step->node->pad,
                           (rows - 1) * stride + k,
                           (c->out_width - 1) * stride + k};
    operand_fetch(plan, &step->in, image, slot, 0, step->in.blocks, &box, x);
    for (o = 0; o < step->out_blocks; o += 2) {
        struct conv_row r = {
            .x_block = (size_t)box.rows * box.columns * BLOCK,
            .x_row = (size_t)box.columns * BLOCK,
            .step = (size_t)stride * BLOCK,
            .kernel = k,
            .blocks = step->in.blocks,
            .last = step->in.last,
            .w = step->conv.forward + o * per_out,
            .w_out = per_out,
            .y_out = step->out->pixels * BLOCK,
            .outs = smaller(2, step->out_blocks - o),
            .pixels = c->flat ? pixels : c->out_width,
        };

        for (row = 0; row < rows; row++) {
            r.x = x + row * stride * r.x_row;
            r.y = value_of(step->out, slot, step->out_block + o) + (at + (size_t)row * c->out_width) * BLOCK;
            plan->kernels->conv(&r);
        }
        statistics_add(plan, step, image * c->strips + strip, o, r.outs, slot, at, pixels);
    }
}
