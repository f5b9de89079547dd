/*
 * conv_backward.c - gradients of convolutions; see plan.h
 *
 * A piece is some images of the batch.  One task goes over them and over their strips: the gradient of the output is
 * finished (through the normalisations that read it), the input normalised once more, and from these two come the
 * gradient of the weights, summed up for each piece, and the gradient of the input, which is handed on while it is in
 * the cache.  The number of pieces depends on the batch only, and they are summed up in their order.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cpu/plan.h"

#include <string.h>

static unsigned
smaller(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* All taps of all pairs of blocks of one strip: rows x columns outputs at dy, their inputs at x. */
static void
add_weights(const struct plan *plan, const struct step *step, const float *x, size_t x_block, size_t x_row,
            const float *dy, unsigned rows, unsigned columns, float *dw)
{
    unsigned k = step->node->kernel, stride = step->node->stride, b, ky, kx, o;

    for (b = 0; b < step->in.blocks; b++) {
        for (ky = 0; ky < k; ky++) {
            for (kx = 0; kx < k; kx++, dw += (size_t)step->out_blocks * BLOCK * BLOCK) {
                struct weight_tile t = {
                    .x = x + b * x_block + ky * x_row + (size_t)kx * BLOCK,
                    .x_row = stride * x_row,
                    .x_step = (size_t)stride * BLOCK,
                    .dy_out = (size_t)rows * columns * BLOCK,
                    .dy_row = (size_t)columns * BLOCK,
                    .rows = rows,
                    .columns = columns,
                    .dw_out = (size_t)BLOCK * BLOCK,
                    .last = b + 1 < step->in.blocks ? BLOCK : step->in.last,
                };

                for (o = 0; o < step->out_blocks; o += 2) {
                    t.dy = dy + o * t.dy_out;
                    t.dw = dw + (size_t)o * BLOCK * BLOCK;
                    t.outs = smaller(2, step->out_blocks - o);
                    plan->kernels->weights(&t);
                }
            }
        }
    }
}

/* Gradients of the input for rows x columns pixels from `at` on; dy has k - 1 more rows and columns. */
static void
give_data(const struct plan *plan, const struct step *step, size_t image, const float *dy, size_t at, unsigned rows,
          unsigned columns, float *g)
{
    unsigned k = step->node->kernel, b, o, row;
    size_t per_block = conv_weight_floats(step) / step->in.blocks, pixels = (size_t)rows * columns;

    for (b = 0; b < step->in.blocks; b += 2) {
        struct conv_row r = {
            .x_block = (size_t)(rows + k - 1) * (columns + k - 1) * BLOCK,
            .x_row = (size_t)(columns + k - 1) * BLOCK,
            .step = BLOCK,
            .kernel = k,
            .blocks = step->out_blocks,
            .last = step->out_last,
            .w = step->conv.backward + b * per_block,
            .w_out = per_block,
            .y_out = pixels * BLOCK,
            .outs = smaller(2, step->in.blocks - b),
            .pixels = columns,
        };

        for (row = 0; row < rows; row++) {
            r.x = dy + row * r.x_row;
            r.y = g + (size_t)row * columns * BLOCK;
            plan->kernels->conv(&r);
        }
        for (o = 0; o < r.outs; o++)
            operand_give(plan, &step->in, image, b + o, at, pixels, g + o * r.y_out);
    }
}

static void
flat_image(const struct plan *plan, const struct step *step, size_t image, float *scratch, float *dw)
{
    const struct conv_plan *c = &step->conv;
    size_t in = (size_t)step->in.blocks * BLOCK, out = (size_t)step->out_blocks * BLOCK;
    unsigned from, count;

    for (from = 0; from < c->width; from += count) {
        struct box box = {1, c->width, 0, (long)from, 1, 0};
        float *x = scratch, *dy, *g;

        box.columns = count = smaller(c->weight_rows, c->width - from);
        dy = x + in * count;
        g = dy + out * count;
        operand_fetch(plan, &step->in, image, image, 0, step->in.blocks, &box, x);
        gradient_fetch(plan, step, image, 0, step->out_blocks, &box, 1, dy);
        add_weights(plan, step, x, (size_t)count * BLOCK, (size_t)count * BLOCK, dy, 1, count, dw);
        if (step->conv.backward)
            give_data(plan, step, image, dy, from, 1, count, g);
    }
}

static void
window_image(const struct plan *plan, const struct step *step, size_t image, float *scratch, float *dw)
{
    const struct conv_plan *c = &step->conv;
    unsigned k = step->node->kernel, stride = step->node->stride, from, rows;
    long pad = (long)step->node->pad, extra = (long)k - 1;
    float *dy;

    for (from = 0; from < c->out_height; from += rows) {
        struct box in = {c->height, c->width, (long)from * (long)stride - pad,
                         -pad,      0,        (c->out_width - 1) * stride + k};
        struct box out = {c->out_height, c->out_width, (long)from, 0, 0, c->out_width};

        out.rows = rows = smaller(c->weight_rows, c->out_height - from);
        in.rows = (rows - 1) * stride + k;
        dy = scratch + (size_t)step->in.blocks * in.rows * in.columns * BLOCK;
        operand_fetch(plan, &step->in, image, image, 0, step->in.blocks, &in, scratch);
        gradient_fetch(plan, step, image, 0, step->out_blocks, &out, 1, dy);
        add_weights(plan, step, scratch, (size_t)in.rows * in.columns * BLOCK, (size_t)in.columns * BLOCK, dy, rows,
                    c->out_width, dw);
    }
    for (from = 0; step->conv.backward && from < c->height; from += rows) {
        /* Output o at row o * stride of the spread image; input y is read by those from y + pad - extra to y + pad. */
        struct box out = {c->out_height, c->out_width, (long)from + pad - extra, pad - extra, 0, c->width + k - 1};

        rows = smaller(c->data_rows, c->height - from);
        out.rows = rows + k - 1;
        gradient_fetch(plan, step, image, 0, step->out_blocks, &out, stride, scratch);
        give_data(plan, step, image, scratch, (size_t)from * c->width, rows, c->width,
                  scratch + (size_t)step->out_blocks * out.rows * out.columns * BLOCK);
    }
}

static void
backward_piece(void *context, size_t piece, unsigned thread)
{
    const struct part *part = context;
    const struct plan *plan = part->plan;
    const struct step *step = part->step;
    size_t floats = conv_weight_floats(step), batch = plan->options.batch, pieces = step->conv.pieces, n;
    float *dw = plan->weight_gradients + piece * floats, *scratch = plan->scratch + thread * plan->scratch_floats;

    memset(dw, 0, floats * sizeof(*dw));
    for (n = piece * batch / pieces; n < (piece + 1) * batch / pieces; n++) {
        if (step->conv.flat)
            flat_image(plan, step, n, scratch, dw);
        else
            window_image(plan, step, n, scratch, dw);
    }
}

/* One block of inputs: sum up the pieces, and add them to the gradients of the graph. */
static void
sum_pieces(void *context, size_t block, unsigned thread)
{
    const struct part *part = context;
    const struct plan *plan = part->plan;
    const struct step *step = part->step;
    const struct graph_node *node = step->node;
    size_t floats = conv_weight_floats(step), taps = (size_t)node->kernel * node->kernel, size = BLOCK * BLOCK, tap, p;
    size_t row = taps * step->out_blocks * size, j;
    float *sum = plan->weight_gradients + block * row;
    float *gradient = plan->arena[ARENA_GRADIENTS] + plan->graph->param[node->weight].offset;
    unsigned i, o;

    (void)thread;
    for (p = 1; p < step->conv.pieces; p++)
        for (j = 0; j < row; j++)
            sum[j] += sum[p * floats + j];
    for (i = 0; i < node->in.channels; i++) {
        size_t lane = step->in.lane[i];

        if (lane / BLOCK != block)
            continue;
        for (o = 0; o < node->out.channels; o++) {
            size_t out = step->out_lane[o];
            float *to = gradient + ((size_t)o * node->in.channels + i) * taps;

            for (tap = 0; tap < taps; tap++)
                to[tap] += sum[(tap * step->out_blocks + out / BLOCK) * size + lane % BLOCK * BLOCK + out % BLOCK];
        }
    }
}

void
conv_gradients(struct plan *plan, struct step *step)
{
    struct part part = {plan, step};

    gradient_close(plan, step);
    if (step->conv.backward)
        operand_claim(&step->in);
    team_run(plan->team, step->conv.pieces, backward_piece, &part);
    team_run(plan->team, step->in.blocks, sum_pieces, &part);
}
