/*
 * patches.c - im2col for the input images: the values under a window become the lanes of one pixel; see cpu_plan.h
 *
 * An image has three colours.  A convolution that used them as a block of 16 lanes would waste most of its work.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cpu/cpu_plan.h"

#include <string.h>

#define PARTS_MAX (BLOCK / INPUT_CHANNELS + 2) /* per block, if a window is one pixel wide */

/* Split one block into patches: one per row of the window that its lanes touch. */
static unsigned
split_block(const struct patches *p, unsigned block, struct patch *to)
{
    unsigned row = p->kernel * INPUT_CHANNELS, lane, all = p->kernel * row, count = 0;

    for (lane = block * BLOCK; lane < (block + 1) * BLOCK && lane < all; lane++) {
        if (lane % BLOCK == 0 || lane % row == 0)
            to[count++] = (struct patch){.ky = lane / row, .offset = (long)(lane % row) - (long)(lane % BLOCK)};
        to[count - 1].mask[lane % BLOCK] = -1;
    }
    return count;
}

bool
patches_new(struct plan *plan, struct step *step)
{
    const struct graph_node *node = step->node;
    const struct graph_buffer *in = &plan->graph->buffer[node->in.buffer];
    struct patches *p = plan_take(plan, 1, sizeof(*p));
    unsigned lanes = node->kernel * node->kernel * INPUT_CHANNELS, b, level, c;

    if (!p)
        return false;
    *p = (struct patches){node->kernel, node->stride, node->pad,
                          in->height,   in->width,    plan->graph->buffer[node->out.buffer].width,
                          .line = 0};
    step->in.patches = p;
    step->in.blocks = (lanes + BLOCK - 1) / BLOCK;
    step->in.last = (lanes - 1) % BLOCK + 1;
    p->line = ((size_t)(in->width + 2 * node->pad) * INPUT_CHANNELS + 3 * BLOCK - 1) / BLOCK * BLOCK;
    p->patch = plan_take(plan, (size_t)step->in.blocks * PARTS_MAX, sizeof(*p->patch));
    p->first = plan_take(plan, step->in.blocks + 1, sizeof(*p->first));
    p->level = plan_take(plan, INPUT_CHANNELS, sizeof(*p->level));
    if (!p->patch || !p->first || !p->level)
        return false;
    for (b = 0; b < step->in.blocks; b++)
        p->first[b + 1] = p->first[b] + split_block(p, b, p->patch + p->first[b]);
    for (c = 0; c < INPUT_CHANNELS; c++)
        for (level = 0; level < 256; level++)
            p->level[c][level] = ((float)level / 255 - input_mean[c]) / input_deviation[c];
    return true;
}

/* Returns the image rows that `count` consecutive outputs need. */
static unsigned
rows_under(const struct patches *p, unsigned count)
{
    return ((count + p->out_width - 2) / p->out_width) * p->stride + p->kernel;
}

/* Rows of floats and of operands; the first address is rounded up. */
size_t
patches_bytes(const struct patches *p, unsigned columns)
{
    return 64 + 2 * rows_under(p, columns) * p->line * sizeof(float);
}

/* Fill one image row with its borders; the colours of a pixel are contiguous. */
static void
fill_line(const struct plan *plan, const struct patches *p, size_t image, long y, float *line)
{
    const struct batch *batch = plan->batch;
    size_t place = plan->place[image];
    float *to = line + BLOCK + (size_t)p->pad * INPUT_CHANNELS;
    unsigned source = plan->host.options.source, x, c;
    struct host_row row;

    memset(line, 0, p->line * sizeof(*line));
    if (y < 0 || y >= (long)p->height)
        return;
    host_row_start(&row, batch, place, source, p->width, (unsigned)y);
    for (x = 0; x < p->width; x++, to += INPUT_CHANNELS) {
        uint8_t level = host_row_level(&row, x);

        for (c = 0; c < INPUT_CHANNELS; c++)
            to[c] = p->level[c][level];
    }
}

/* Gather outputs from .. from + count - 1 of one output row; `line` is the topmost image row under them. */
static void
gather_run(const struct products *as, const struct patches *p, unsigned block, const void *line, unsigned column,
           size_t count, void *to)
{
    struct gather part[PARTS_MAX];
    unsigned i, parts = p->first[block + 1] - p->first[block];

    for (i = 0; i < parts; i++) {
        const struct patch *patch = &p->patch[p->first[block] + i];
        size_t at = BLOCK + (size_t)column * p->stride * INPUT_CHANNELS;

        part[i] = (struct gather){operand_from(as, line, patch->ky * p->line + (size_t)((long)at + patch->offset)),
                                  patch->mask};
    }
    as->gather(part, parts, (size_t)p->stride * INPUT_CHANNELS, count, to);
}

/* Fill image rows from `top` on as operands at `to`; floats come first, in bf16 at `line`. */
static void
fill_lines(const struct plan *plan, const struct products *as, const struct patches *p, size_t image, long top,
           unsigned lines, float *line, void *to)
{
    unsigned i;

    for (i = 0; i < lines; i++)
        fill_line(plan, p, image, top + (long)i, line + i * p->line);
    if (as->pair)
        as->copy(line, lines * p->line / BLOCK, to);
}

void
patches_fetch(const struct plan *plan, const struct products *as, const struct patches *p, size_t image, unsigned first,
              unsigned blocks, size_t from, size_t count, void *start)
{
    size_t top = from / p->out_width, last = (from + count - 1) / p->out_width, row, at;
    unsigned lines = (unsigned)(last - top) * p->stride + p->kernel, b;
    uintptr_t end_of = (uintptr_t)operand_at(as, start, blocks * count * BLOCK);
    float *line = (float *)operand_at(as, start, blocks * count * BLOCK) + (64 - end_of % 64) % 64 / sizeof(float);
    void *operands = as->pair ? line + lines * p->line : line, *to = start;

    fill_lines(plan, as, p, image, (long)(top * p->stride) - (long)p->pad, lines, line, operands);
    for (b = first; b < first + blocks; b++) {
        for (row = top, at = from; row <= last; row++) {
            size_t end = (row + 1) * p->out_width < from + count ? (row + 1) * p->out_width : from + count;

            gather_run(as, p, b, operand_from(as, operands, (row - top) * p->stride * p->line),
                       (unsigned)(at - row * p->out_width), end - at, to);
            to = operand_at(as, to, (end - at) * BLOCK);
            at = end;
        }
    }
}
