/*
 * conv_backward.c - gradients of convolutions; see cpu_plan.h
 *
 * A split is a set of images of the batch; a range is a set of input blocks.  A task processes one split and one range,
 * strip by strip.  It finalizes the gradient of the output (through the normalisations that read it) and normalises two
 * input blocks again.  From these it computes the weight gradient, summed per split, and the input gradient, which it
 * passes on while it is in the cache.  The number of splits depends only on the images and the graph, and splits are
 * added in order.  So the result does not depend on the number of threads.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cpu/cpu_plan.h"

#include <string.h>

static unsigned
smaller(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* State of a task and of its current strip: dy and x with their halo. */
struct backward {
    const struct plan *plan;
    const struct step *step;
    size_t image, last;  /* of the split */
    size_t following;    /* the image that this thread probably begins with next */
    unsigned block, end; /* of the input */
    float *dw;           /* for all blocks */
    char *scratch;
};

/* Add the weight gradients of all taps between one input block and all output blocks. */
static void
add_block_weights(const struct plan *plan, const struct step *step, const struct weight_strip *s, unsigned block,
                  const float *x, float *dw)
{
    unsigned k = step->conv.kernel, stride = step->conv.stride, ky, o;
    size_t tap = (size_t)step->out_blocks * BLOCK * BLOCK;

    for (ky = 0; ky < k; ky++) {
        struct weight_tile t = {
            .x = x + ky * s->x_row,
            .x_row = stride * s->x_row,
            .x_step = (size_t)stride * BLOCK,
            .dy_out = s->dy_block,
            .dy_row = s->dy_row,
            .rows = s->rows,
            .columns = s->columns,
            .inputs = k > 1 || block + 1 < step->in.blocks ? k * BLOCK : step->in.last,
            .dw_tap = tap,
            .dw_out = (size_t)BLOCK * BLOCK,
        };

        for (o = 0; o < step->out_blocks; o += t.outs) {
            t.outs = outs_of(step->out_blocks - o);
            t.dy = (const float *)s->dy + o * t.dy_out;
            t.dw = dw + ky * k * tap + (size_t)o * BLOCK * BLOCK;
            plan->products->weights(&t);
        }
    }
}

/* Add the weight gradients of input blocks first .. first + count - 1. */
static void
add_weights(const struct backward *at, const struct weight_strip *s, unsigned first, unsigned count)
{
    const struct plan *plan = at->plan;
    size_t per_block = conv_weight_floats(at->step) / at->step->in.blocks;
    unsigned b;

    for (b = first; b < first + count; b++) {
        const void *x = operand_from(plan->products, s->x, (b - first) * s->x_block);

        if (plan->products->pair)
            add_pair_weights(plan, at->step, s, b, x, at->dw + b * per_block);
        else
            add_block_weights(plan, at->step, s, b, x, at->dw + b * per_block);
    }
}

/* Returns the first output that row `y` of the input reads in its gradient; the same for columns. */
static long
first_output(const struct conv_plan *c, unsigned y)
{
    return ((long)y + (long)c->pad - (long)(c->kernel - 1) + (long)phase_of(c, y % c->stride)) / (long)c->stride;
}

/* Compute the gradients of row `y` of a box of inputs, for `count` blocks; those of its first pixel are at g. */
static void
give_row(const struct backward *at, struct conv_row *r, const void *dy, const struct box *out, const struct box *in,
         unsigned y, size_t first, float *g)
{
    const struct conv_plan *c = &at->step->conv;
    const struct products *as = at->plan->products;
    size_t taps = (size_t)c->kernel * c->kernel, size = (size_t)at->step->out_blocks * BLOCK * BLOCK;
    unsigned row = y % c->stride, from = (unsigned)in->left, x;

    r->kernel_rows = phase_taps(c, row);
    for (x = from; x < from + in->columns && x < from + c->stride; x++) {
        unsigned column = x % c->stride;
        long above = first_output(c, y) - out->top, before = first_output(c, x) - out->left;

        r->kernel_columns = phase_taps(c, column);
        r->pixels = (from + in->columns - x + c->stride - 1) / c->stride;
        r->w = operand_from(as, c->backward, (first * taps + phase_offset(c, row, column)) * size);
        r->x = dy; /* not read without taps, which may have no output */
        if (r->kernel_rows > 0 && r->kernel_columns > 0)
            r->x = operand_from(as, dy, (size_t)above * r->x_row + (size_t)before * BLOCK);
        r->y = g + (size_t)(x - from) * BLOCK;
        as->conv(r);
    }
}

/* Compute the gradients of `count` input blocks from `first` on, in a box of inputs; dy is of the outputs in `out`. */
static void
give_data(const struct backward *at, unsigned first, unsigned count, const void *dy, const struct box *out,
          const struct box *in, float *g, struct ahead *ahead)
{
    const struct step *step = at->step;
    size_t pixels = (size_t)in->rows * in->columns, from = (size_t)in->top * in->width + (size_t)in->left;
    unsigned o, row;
    struct conv_row r = {
        .x_block = (size_t)out->rows * out->columns * BLOCK,
        .x_row = (size_t)out->columns * BLOCK,
        .step = BLOCK,
        .blocks = step->out_blocks,
        .last = step->out_last,
        .w_out = conv_weight_floats(step) / step->in.blocks,
        .y_out = pixels * BLOCK,
        .y_step = (size_t)step->conv.stride * BLOCK,
        .outs = count,
        .ahead = ahead,
    };

    for (row = 0; row < in->rows; row++)
        give_row(at, &r, dy, out, in, (unsigned)in->top + row, first, g + (size_t)row * in->columns * BLOCK);
    for (o = 0; o < count; o++)
        view_give(at->plan, &step->in, at->image, first + o, from, pixels, g + o * r.y_out);
}

/* A strip of an image, with `edge` more pixels on each side. */
static struct box
strip_at(const struct conv_plan *c, unsigned row, unsigned column, unsigned edge)
{
    return (struct box){c->height,
                        c->width,
                        (long)row - (long)edge,
                        (long)column - (long)edge,
                        smaller(c->back_rows, c->height - row) + 2 * edge,
                        smaller(c->back_columns, c->width - column) + 2 * edge};
}

/* Find the strip after the one at `row`, `column`.  Returns its image; plan->images or more: there is none. */
static size_t
strip_after(const struct backward *at, unsigned row, unsigned column, struct box *box)
{
    const struct conv_plan *c = &at->step->conv;
    size_t image = at->image;

    column += c->back_columns;
    if (column >= c->width) {
        column = 0;
        row += c->back_rows;
    }
    if (row >= c->height) {
        row = 0;
        image = image < at->last ? image + 1 : at->following;
    }
    *box = strip_at(c, row, column, c->pad);
    return image;
}

/*
 * While the gradients of `count` input blocks from `first` on are computed, fetch what is read next: the gradients that
 * they are added to, the following blocks of the input, and a part of the gradients of the next strip's outputs.
 */
static void
fetch_next(const struct backward *at, unsigned row, unsigned column, unsigned first, unsigned count,
           struct ahead *ahead)
{
    const struct step *step = at->step;
    const struct tensor *in = step->in.from, *out = step->out;
    struct box box = strip_at(&step->conv, row, column, 0), next;
    size_t image = strip_after(at, row, column, &next), all = at->end - at->block, done = first - at->block, o;
    bool more = image < at->plan->images;
    unsigned b;

    for (b = first; b < first + count; b++)
        ahead_add(ahead, gradient_of(in, at->image, step->in.block + b), &box);
    for (o = step->out_blocks * done / all; more && o < step->out_blocks * (done + count) / all; o++) {
        ahead_add(ahead, gradient_of(out, image, step->out_block + (unsigned)o), &next);
        if (out->normed)
            ahead_add(ahead, value_of(out, image, step->out_block + (unsigned)o), &next);
    }
    if (first + count < at->end) {
        first += count;
        image = at->image;
        next = strip_at(&step->conv, row, column, step->conv.pad);
    } else {
        first = at->block;
    }
    for (b = first; image < at->plan->images && b < smaller(first + step->conv.back_blocks, at->end); b++)
        ahead_add(ahead, value_of(in, image, step->in.block + b), &next);
}

/* Process the strip at `row`, `column`: weight and input gradients from the same dy. */
static void
same_strip(const struct backward *at, unsigned row, unsigned column)
{
    const struct plan *plan = at->plan;
    const struct step *step = at->step;
    const struct conv_plan *c = &step->conv;
    unsigned k = c->kernel, b, count;
    struct box box = strip_at(c, row, column, c->pad), given = strip_at(c, row, column, 0);
    size_t area = (size_t)box.rows * box.columns * BLOCK, line = (size_t)box.columns * BLOCK;
    struct strip_parts part = strip_parts(plan, step, c->back_blocks, box.rows, box.columns, given.rows, given.columns,
                                          k - 1, c->gives);
    void *dy = at->scratch + part.dy, *x = at->scratch + part.x, *g = at->scratch + part.g;
    struct weight_strip s = {
        given.rows, given.columns, box.columns, x,    operand_at(plan->products, dy, c->pad * (line + BLOCK)),
        area,       line,          area,        line, (void *)(at->scratch + part.x_pairs),
        NULL};

    s.dy_pairs = (void *)(at->scratch + part.dy_pairs);
    gradient_fetch(plan->products, step, at->image, 0, step->out_blocks, &box, dy);
    if (plan->products->pair)
        pair_gradients(plan, step, &s);
    for (b = at->block; b < at->end; b += count) {
        struct ahead ahead = {.runs = 0};

        count = smaller(c->back_blocks, at->end - b);
        view_fetch(plan, plan->products, &step->in, at->image, at->image, b, count, &box, x);
        add_weights(at, &s, b, count);
        if (!c->gives)
            continue;
        fetch_next(at, row, column, b, count, &ahead);
        ahead_spread(&ahead, plan, given.rows, given.columns, step->out_blocks * k * k);
        give_data(at, b, count, dy, &box, &given, g, &ahead);
    }
}

static void
same_image(const struct backward *at)
{
    const struct conv_plan *c = &at->step->conv;
    unsigned row, column;

    for (row = 0; row < c->height; row += c->back_rows)
        for (column = 0; column < c->width; column += c->back_columns)
            same_strip(at, row, column);
}

/* Strides, or an output of another size: weight and input gradients use separate strips. */
static void
window_weights(const struct backward *at, unsigned from, unsigned rows)
{
    const struct plan *plan = at->plan;
    const struct step *step = at->step;
    const struct conv_plan *c = &step->conv;
    unsigned k = c->kernel, stride = c->stride;
    long pad = (long)c->pad;
    struct box in = {c->height,
                     c->width,
                     (long)from * (long)stride - pad,
                     -pad,
                     (rows - 1) * stride + k,
                     (c->out_width - 1) * stride + k};
    struct box out = {c->out_height, c->out_width, (long)from, 0, rows, c->out_width};
    struct strip_parts part = strip_parts(plan, step, step->in.blocks, in.rows, in.columns, rows, c->out_width, 0,
                                          false);
    struct weight_strip s = {.rows = rows,
                             .columns = c->out_width,
                             .x_columns = in.columns,
                             .x = at->scratch + part.x,
                             .dy = at->scratch + part.dy,
                             .x_block = (size_t)in.rows * in.columns * BLOCK,
                             .x_row = (size_t)in.columns * BLOCK,
                             .dy_block = (size_t)rows * c->out_width * BLOCK,
                             .dy_row = (size_t)c->out_width * BLOCK,
                             .x_pairs = (void *)(at->scratch + part.x_pairs),
                             .dy_pairs = (void *)(at->scratch + part.dy_pairs)};

    view_fetch(plan, plan->products, &step->in, at->image, at->image, 0, step->in.blocks, &in, at->scratch + part.x);
    gradient_fetch(plan->products, step, at->image, 0, step->out_blocks, &out, at->scratch + part.dy);
    if (plan->products->pair)
        pair_gradients(plan, step, &s);
    add_weights(at, &s, 0, step->in.blocks);
}

static void
window_data(const struct backward *at, unsigned from, unsigned rows)
{
    const struct step *step = at->step;
    const struct conv_plan *c = &step->conv;
    struct box in = {c->height, c->width, (long)from, 0, rows, c->width};
    long top = first_output(c, from), left = first_output(c, 0);
    /* The last outputs that the last row and column of `in` read. */
    long bottom = (long)((from + rows - 1 + c->pad) / c->stride), right = (long)((c->width - 1 + c->pad) / c->stride);
    struct box out = {c->out_height,
                      c->out_width,
                      top,
                      left,
                      (unsigned)(bottom < top ? 0 : bottom - top + 1),
                      (unsigned)(right < left ? 0 : right - left + 1)};
    void *dy = at->scratch, *g = at->scratch + conv_data_bytes(at->plan, step, rows);
    unsigned b, count;

    gradient_fetch(at->plan->products, step, at->image, 0, step->out_blocks, &out, dy);
    for (b = 0; b < step->in.blocks; b += count) {
        count = smaller(2, step->in.blocks - b);
        give_data(at, b, count, dy, &out, &in, g, NULL);
    }
}

static void
window_image(const struct backward *at)
{
    const struct conv_plan *c = &at->step->conv;
    unsigned from;

    for (from = 0; from < c->out_height; from += c->weight_rows)
        window_weights(at, from, smaller(c->weight_rows, c->out_height - from));
    for (from = 0; c->gives && from < c->height; from += c->data_rows)
        window_data(at, from, smaller(c->data_rows, c->height - from));
}

static void
backward_task(void *context, size_t task, unsigned thread)
{
    const struct step_tasks *tasks = context;
    const struct plan *plan = tasks->plan;
    const struct step *step = tasks->step;
    unsigned ranges = step->conv.ranges, range = (unsigned)(task % ranges);
    size_t split = task / ranges, floats = conv_weight_floats(step), per_block = floats / step->in.blocks;
    size_t images = plan->images, splits = splits_of(plan, step), pairs = (step->in.blocks + 1) / 2;
    size_t next = (task + plan->host.options.threads) / ranges;
    struct backward at = {
        .plan = plan,
        .step = step,
        .last = (split + 1) * images / splits - 1,
        .following = next * images / splits,
        .block = (unsigned)(range * pairs / ranges * 2),
        .end = smaller(step->in.blocks, (unsigned)((range + 1) * pairs / ranges * 2)),
        .dw = plan->weight_gradients + split * floats,
        .scratch = (char *)(plan->scratch + thread * plan->scratch_floats),
    };

    memset(at.dw + at.block * per_block, 0, (at.end - at.block) * per_block * sizeof(*at.dw));
    for (at.image = split * images / splits; at.image < (split + 1) * images / splits; at.image++) {
        if (step->conv.same)
            same_image(&at);
        else
            window_image(&at);
    }
}

void
conv_gradients(struct plan *plan, struct step *step)
{
    struct step_tasks tasks = {plan, step};

    gradient_close(plan, step);
    if (step->conv.gives)
        view_claim(&step->in);
    team_run(plan->team, splits_of(plan, step) * step->conv.ranges, backward_task, &tasks);
    team_run(plan->team, step->in.blocks, conv_unpack_gradient, &tasks);
}
