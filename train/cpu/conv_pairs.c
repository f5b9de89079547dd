/*
 * conv_pairs.c - gradients of weights in bf16: pairs of pixels of x and dy, and the scratch of a backward strip
 *
 * A pair of outputs, columns 2 j and 2 j + 1, reads x at columns 2 j s + kx and (2 j + 1) s + kx, where s is the
 * stride.  If s is 1, taps kx and kx + 2 share pairs: those of kx + 2 begin one pair later.  So x is copied into pairs
 * twice, from even and from odd columns; with another stride, once per kx.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cpu/cpu_plan.h"

#define ALIGN 64

static size_t
pairs_of(unsigned pixels)
{
    return ((size_t)pixels + 1) / 2;
}

/* Returns the pairs of a row of x. */
static size_t
x_pairs_of(const struct step *step, unsigned columns)
{
    return pairs_of(columns) + (step->conv.stride == 1 ? (step->conv.kernel - 1) / 2 : 0);
}

static unsigned
copies_of(const struct step *step)
{
    return step->conv.stride == 1 && step->conv.kernel > 2 ? 2 : step->conv.kernel;
}

static size_t
place(size_t *used, size_t bytes)
{
    size_t at = *used;

    *used += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    return at;
}

struct strip_parts
strip_parts(const struct plan *plan, const struct step *step, unsigned in_blocks, unsigned x_rows, unsigned x_columns,
            unsigned rows, unsigned columns, unsigned halo, bool gives)
{
    const struct products *as = plan->products;
    size_t pixel = BLOCK * as->size, word = BLOCK * sizeof(uint32_t), used = 0;
    struct strip_parts p = {.bytes = 0};

    p.dy = place(&used, (size_t)step->out_blocks * (rows + halo) * (columns + halo) * pixel);
    if (as->pair) {
        p.dy_pairs = place(&used, step->out_blocks * rows * pairs_of(columns) * word);
        p.x_pairs = place(&used, copies_of(step) * x_rows * x_pairs_of(step, columns) * word);
    }
    if (gives)
        p.g = place(&used, (size_t)in_blocks * rows * columns * BLOCK * sizeof(float));
    /* The last one: view_fetch() needs memory after it. */
    p.x = place(&used, (size_t)in_blocks * x_rows * x_columns * pixel);
    p.bytes = used;
    return p;
}

void
pair_gradients(const struct plan *plan, const struct step *step, const struct weight_strip *s)
{
    size_t pairs = pairs_of(s->columns);
    uint32_t *to = s->dy_pairs;
    unsigned o, row;

    for (o = 0; o < step->out_blocks; o++)
        for (row = 0; row < s->rows; row++, to += pairs * BLOCK)
            plan->products->pair((const uint16_t *)s->dy + o * s->dy_block + row * s->dy_row, BLOCK, s->columns, pairs,
                                 to);
}

static void
pair_inputs(const struct plan *plan, const struct step *step, const struct weight_strip *s, unsigned x_rows,
            const uint16_t *x)
{
    const struct conv_plan *c = &step->conv;
    size_t pairs = x_pairs_of(step, s->columns);
    uint32_t *to = s->x_pairs;
    unsigned copy, row;

    for (copy = 0; copy < copies_of(step); copy++)
        for (row = 0; row < x_rows; row++, to += pairs * BLOCK)
            plan->products->pair(x + row * s->x_row + (size_t)copy * BLOCK, (size_t)c->stride * BLOCK,
                                 c->stride == 1 ? s->x_columns - copy : s->columns, pairs, to);
}

void
add_pair_weights(const struct plan *plan, const struct step *step, const struct weight_strip *s, unsigned block,
                 const void *x, float *dw)
{
    const struct conv_plan *c = &step->conv;
    unsigned k = c->kernel, x_rows = (s->rows - 1) * c->stride + k, tap, o;
    size_t pairs = x_pairs_of(step, s->columns), dy_pairs = pairs_of(s->columns), size = (size_t)BLOCK * BLOCK;

    pair_inputs(plan, step, s, x_rows, x);
    for (tap = 0; tap < k * k; tap++) {
        unsigned ky = tap / k, kx = tap % k, copy = c->stride == 1 ? kx % 2 : kx;
        struct weight_tile t = {
            .x = s->x_pairs + (((size_t)copy * x_rows + ky) * pairs + (c->stride == 1 ? kx / 2 : 0)) * BLOCK,
            .x_row = c->stride * pairs * BLOCK,
            .x_step = BLOCK,
            .dy_out = s->rows * dy_pairs * BLOCK,
            .dy_row = dy_pairs * BLOCK,
            .rows = s->rows,
            .columns = (unsigned)dy_pairs,
            .inputs = block + 1 < step->in.blocks ? BLOCK : step->in.last,
            .dw_tap = step->out_blocks * size,
            .dw_out = size,
        };

        for (o = 0; o < step->out_blocks; o += t.outs) {
            t.outs = outs_of(step->out_blocks - o);
            t.dy = s->dy_pairs + o * t.dy_out;
            t.dw = dw + (tap * (size_t)step->out_blocks + o) * size;
            plan->products->weights(&t);
        }
    }
}
