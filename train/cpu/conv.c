/*
 * conv.c - forward convolutions: splits images into strips, packs the weights in the order in which the kernels read
 * them
 *
 * A strip is a part of the outputs of one image.  Its size is chosen so that its normalised inputs fit in the L2 cache.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cpu/cpu_plan.h"

#include <string.h>

#define CACHE_BYTES   262144 /* inputs of a strip: half of a 512 KiB cache */
#define BACK_FLOATS   98304  /* everything that a strip of the backward pass holds; in bf16 it has dy and x twice */
#define FLAT_FORWARD  336    /* pixels per strip of a 1x1 convolution */
#define FLAT_LEAST    56     /* with fewer pixels, weights are reloaded from memory too often */
#define FLAT_BACKWARD 224
#define BACK_BLOCKS   2   /* input blocks per backward step: as many as conv() writes */
#define PIECE_PIXELS  784 /* least pixels per partial weight gradient, to justify its memory */
#define PIECES        32  /* most partial weight gradients */
#define TASKS         16  /* of a backward pass: enough work for this many threads */
#define ROWS_AHEAD    8   /* of a weight gradient, fetched into the cache */

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

static size_t
larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

size_t
conv_weight_floats(const struct step *step)
{
    return (size_t)step->in.blocks * step->out_blocks * step->conv.kernel * step->conv.kernel * BLOCK * BLOCK;
}

/* Returns the length of strips of at most `most`: nearly equal, a multiple of `tile`. */
static unsigned
even_strips(size_t all, size_t most, size_t tile)
{
    size_t strips;

    if (most < tile)
        most = tile;
    strips = (all + most - 1) / most;
    return smaller(all, ((all + strips - 1) / strips + tile - 1) / tile * tile);
}

/* Returns how many rows of `channels` x columns operands fit in the cache together with `halo` more rows. */
static unsigned
strip_rows(const struct plan *plan, size_t channels, size_t columns, unsigned halo, unsigned rows)
{
    size_t room = CACHE_BYTES / plan->products->size / (channels * columns);

    return even_strips(rows, at_least_1(room > halo ? room - halo : 0), 1);
}

/* Floats per pixel of a backward strip, with (wide) and without its halo. */
static size_t
back_wide(const struct step *step)
{
    return ((size_t)step->out_blocks + step->conv.back_blocks) * BLOCK;
}

static size_t
back_narrow(const struct step *step)
{
    return (step->conv.gives ? step->conv.back_blocks : 0) * (size_t)BLOCK;
}

static void
same_geometry(struct plan *plan, struct step *step)
{
    struct conv_plan *c = &step->conv;
    unsigned extra = c->kernel - 1, most;
    size_t pixels = plan->host.options.batch * step->out->pixels, per_pixel = back_wide(step) + back_narrow(step), room;

    c->back_rows = 1;
    c->back_columns = c->width;
    if (c->flat) {
        room = BACK_FLOATS / per_pixel;
        c->back_columns = even_strips(c->width, room < FLAT_BACKWARD ? room : FLAT_BACKWARD, 14);
    } else {
        room = BACK_FLOATS / (per_pixel * (c->width + extra));
        c->back_rows = even_strips(c->height, at_least_1(room > extra ? room - extra : 0), 1);
    }
    c->splits = smaller(c->splits, at_least_1(pixels / PIECE_PIXELS));
    most = at_least_1(step->in.blocks / (c->flat ? 4 * BACK_BLOCKS : BACK_BLOCKS));
    c->ranges = smaller(most, at_least_1(TASKS / c->splits));
}

static bool
find_channels(struct step *step)
{
    const struct graph_node *node = step->node;
    unsigned taps = node->kernel * node->kernel, i, c;

    if (!step->conv.channel)
        return false;
    for (i = 0; i < step->in.blocks * BLOCK; i++)
        step->conv.channel[i] = -1;
    if (step->in.patches)
        for (i = 0; i < taps * INPUT_CHANNELS; i++)
            step->conv.channel[i] = (int)(i % INPUT_CHANNELS * taps + i / INPUT_CHANNELS);
    else
        for (c = 0; c < node->in.channels; c++)
            step->conv.channel[step->in.lane[c]] = (int)(c * taps);
    return true;
}

bool
conv_geometry(struct plan *plan, struct step *step)
{
    const struct graph_node *node = step->node;
    const struct graph_buffer *in = &plan->graph->buffer[node->in.buffer],
                              *out = &plan->graph->buffer[node->out.buffer];
    struct conv_plan *c = &step->conv;
    bool patches = node->in.buffer == plan->graph->input;
    size_t channels, outputs = (size_t)step->out_blocks * BLOCK, floats;
    unsigned extra;

    if (patches && !patches_new(plan, step))
        return false;
    channels = (size_t)step->in.blocks * BLOCK;
    c->kernel = patches ? 1 : node->kernel;
    c->stride = patches ? 1 : node->stride;
    c->pad = patches ? 0 : node->pad;
    c->flat = c->kernel == 1 && c->stride == 1 && c->pad == 0;
    c->same = c->stride == 1 && 2 * c->pad + 1 == c->kernel;
    c->height = c->flat ? 1 : in->height;
    c->width = c->flat ? out->height * out->width : in->width;
    c->out_height = c->flat ? 1 : out->height;
    c->out_width = c->flat ? c->width : out->width;
    c->channel = plan_take(plan, channels, sizeof(*c->channel));
    floats = conv_weight_floats(step);
    c->gives = plan->host.options.train && !patches;
    if (!plan_want(plan, &c->forward, floats, plan->products->size) ||
        (c->gives && !plan_want(plan, &c->backward, floats, plan->products->size)))
        return false;
    extra = c->kernel - 1;
    if (c->flat) {
        c->rows = 1;
        c->columns = even_strips(
            c->width, smaller(larger(CACHE_BYTES / plan->products->size / channels, FLAT_LEAST), FLAT_FORWARD), 14);
        c->strips = (c->width + c->columns - 1) / c->columns;
    } else {
        size_t wide = (size_t)(out->width - 1) * c->stride + c->kernel;

        c->columns = out->width;
        c->rows = strip_rows(plan, channels * c->stride, wide, extra / c->stride + 1, out->height);
        c->strips = (out->height + c->rows - 1) / c->rows;
        c->weight_rows = c->rows;
        c->data_rows = strip_rows(plan, outputs, in->width + extra, extra, in->height);
    }
    c->splits = smaller(plan->host.options.batch, PIECES);
    c->ranges = 1;
    c->back_blocks = patches ? step->in.blocks : BACK_BLOCKS;
    if (c->same)
        same_geometry(plan, step);
    return find_channels(step);
}

size_t
conv_data_bytes(const struct plan *plan, const struct step *step, unsigned rows)
{
    const struct conv_plan *c = &step->conv;
    size_t high = (rows + c->kernel - 2) / c->stride + 1, wide = (c->width + c->kernel - 2) / c->stride + 1;
    size_t bytes = (size_t)step->out_blocks * BLOCK * high * wide * plan->products->size;

    return (bytes + 63) / 64 * 64;
}

/* In bytes. */
size_t
conv_scratch(const struct plan *plan, const struct step *step)
{
    const struct conv_plan *c = &step->conv;
    unsigned k = c->kernel, stride = c->stride;
    size_t in = (size_t)step->in.blocks * BLOCK, forward, data, more = 0;

    if (step->in.patches)
        more = patches_bytes(step->in.patches, (unsigned)larger(c->columns, c->back_columns));
    forward = in * ((c->rows - 1) * stride + k) * (c->flat ? c->columns : (size_t)(c->out_width - 1) * stride + k) *
                  plan->products->size +
              more;
    if (!plan->host.options.train)
        return forward;
    if (c->same)
        return larger(forward, strip_parts(plan, step, c->back_blocks, c->back_rows + k - 1, c->back_columns + k - 1,
                                           c->back_rows, c->back_columns, k - 1, c->gives)
                                       .bytes +
                                   more);
    data = conv_data_bytes(plan, step, c->data_rows) + 2 * BLOCK * (size_t)c->data_rows * c->width * sizeof(float);
    return larger(forward,
                  larger(data, strip_parts(plan, step, step->in.blocks, (c->weight_rows - 1) * stride + k,
                                           (c->out_width - 1) * stride + k, c->weight_rows, c->out_width, 0, false)
                                   .bytes));
}

/* ---- weights --------------------------------------------------------------------------------------------------- */

/* Store a block of weights as operands; conv() sums over its rows. */
static void
put_block(const struct products *as, const float *from, void *to)
{
    _Alignas(64) uint16_t half[BLOCK * BLOCK];

    as->copy(from, BLOCK, as->pair ? half : to);
    if (as->pair)
        as->pair(half, BLOCK, BLOCK, BLOCK / 2, to);
}

/* Returns where the packed weights of the gradient have a tap: which of their blocks of 16 x 16. */
static size_t
backward_tap(const struct step *step, size_t in, size_t out, size_t tap)
{
    const struct conv_plan *c = &step->conv;
    unsigned k = c->kernel, y = k - 1 - (unsigned)tap / k, x = k - 1 - (unsigned)tap % k;
    unsigned row = phase_of(c, y), column = phase_of(c, x);
    size_t wide = phase_taps(c, column), all = (size_t)k * k;

    return (in * all + phase_offset(c, row, column)) * step->out_blocks + out * phase_taps(c, row) * wide +
           y / c->stride * wide + x / c->stride;
}

/* Pack one block of outputs with all blocks of inputs, in both orders.  Lanes without a channel stay zero. */
void
conv_pack(void *context, size_t block, unsigned thread)
{
    struct step_tasks *tasks = context;
    struct step *step = tasks->step;
    const struct graph_node *node = step->node;
    const struct conv_plan *c = &step->conv;
    const struct products *as = tasks->plan->products;
    const float *weights = tasks->plan->weights + tasks->plan->graph->param[node->weight].offset, *of_lane[BLOCK] = {0};
    size_t row = (size_t)node->in.channels * node->kernel * node->kernel; /* per output */
    size_t taps = (size_t)c->kernel * c->kernel, tap, size = BLOCK * BLOCK;
    _Alignas(64) float forward[BLOCK][BLOCK], backward[BLOCK][BLOCK];
    unsigned b, i, o;

    (void)thread;
    for (o = 0; o < node->out.channels; o++)
        if (step->out_lane[o] / BLOCK == block)
            of_lane[step->out_lane[o] % BLOCK] = weights + o * row;
    for (b = 0; b < step->in.blocks; b++) {
        const int *channel = c->channel + b * BLOCK;
        size_t at = (block * step->in.blocks + b) * taps;

        for (tap = 0; tap < taps; tap++) {
            for (o = 0; o < BLOCK; o++)
                for (i = 0; i < BLOCK; i++)
                    backward[o][i] = of_lane[o] && channel[i] >= 0 ? of_lane[o][(size_t)channel[i] + tap] : 0;
            for (i = 0; i < BLOCK; i++)
                for (o = 0; o < BLOCK; o++)
                    forward[i][o] = backward[o][i];
            put_block(as, forward[0], operand_at(as, c->forward, (at + tap) * size));
            if (c->backward)
                put_block(as, backward[0], operand_at(as, c->backward, backward_tap(step, b, block, tap) * size));
        }
    }
}

void
conv_unpack_gradient(void *context, size_t block, unsigned thread)
{
    const struct step_tasks *tasks = context;
    const struct plan *plan = tasks->plan;
    const struct step *step = tasks->step;
    const struct conv_plan *c = &step->conv;
    const struct graph_node *node = step->node;
    size_t all = conv_weight_floats(step), floats = all / step->in.blocks, p;
    size_t row = (size_t)node->in.channels * node->kernel * node->kernel;
    size_t taps = (size_t)c->kernel * c->kernel, tap, size = BLOCK * BLOCK;
    float *sum = plan->weight_gradients + block * floats;
    float *gradient = plan->host.arena[ARENA_GRADIENTS] + plan->graph->param[node->weight].offset;
    const int *channel = c->channel + block * BLOCK;
    unsigned lane[BLOCK] = {0}, lanes = 0, i, o;

    (void)thread;
    for (i = 0; i < BLOCK; i++)
        if (channel[i] >= 0)
            lane[lanes++] = i;
    for (p = 1; p < splits_of(plan, step); p++)
        plan->kernels->accumulate(sum + p * all, floats, false, sum);
    for (o = 0; o < node->out.channels; o++) {
        const float *from = sum + step->out_lane[o] / BLOCK * size + step->out_lane[o] % BLOCK;
        float *to = gradient + o * row;

        /* The rows of the gradient are far apart in memory. */
        if (o + ROWS_AHEAD < node->out.channels)
            __builtin_prefetch(to + ROWS_AHEAD * row + channel[lane[0]], 1);
        for (tap = 0; tap < taps; tap++, from += step->out_blocks * size)
            for (i = 0; i < lanes; i++)
                to[(size_t)channel[lane[i]] + tap] += from[lane[i] * BLOCK];
    }
}

/* ---- forward --------------------------------------------------------------------------------------------------- */

/* The inputs of a strip. */
static struct box
strip_inputs(const struct step *step, unsigned strip)
{
    const struct conv_plan *c = &step->conv;
    unsigned pixels = (unsigned)conv_strip_pixels(step, strip);

    if (c->flat)
        return (struct box){c->height, c->width, 0, (long)(strip * c->columns), 1, pixels};
    return (struct box){c->height,
                        c->width,
                        (long)(strip * c->rows) * (long)c->stride - (long)c->pad,
                        -(long)c->pad,
                        (pixels / c->out_width - 1) * c->stride + c->kernel,
                        (c->out_width - 1) * c->stride + c->kernel};
}

/* The inputs of the strip that this thread probably computes next. */
static void
next_inputs(const struct plan *plan, const struct step *step, size_t image, unsigned strip, unsigned thread,
            struct ahead *ahead)
{
    bool whole = plan->whole_images && !plan->training;
    size_t next = image * step->conv.strips + strip + (whole ? 1 : plan->host.options.threads);
    size_t next_image = next / step->conv.strips, slot;
    struct box box;
    unsigned b;

    if (step->in.patches || next_image >= (whole ? image + 1 : plan->images))
        return;
    slot = slot_of(plan, next_image, thread);
    box = strip_inputs(step, (unsigned)(next % step->conv.strips));
    for (b = 0; b < step->in.blocks; b++)
        ahead_add(ahead, value_of(step->in.from, slot, step->in.block + b), &box);
}

void
conv_forward_strip(struct plan *plan, struct step *step, size_t image, unsigned strip, unsigned thread)
{
    const struct conv_plan *c = &step->conv;
    unsigned k = c->kernel, stride = c->stride, first = strip * (c->flat ? c->columns : c->rows), o, row, rows;
    size_t pixels = conv_strip_pixels(step, strip), slot = slot_of(plan, image, thread);
    size_t at = c->flat ? first : (size_t)first * c->out_width, per_out = conv_weight_floats(step) / step->out_blocks;
    const struct products *as = plan->products;
    void *x = plan->scratch + thread * plan->scratch_floats;
    struct box box = strip_inputs(step, strip);
    struct ahead ahead = {.runs = 0};

    rows = c->flat ? 1 : (unsigned)(pixels / c->out_width);
    view_fetch(plan, as, &step->in, image, slot, 0, step->in.blocks, &box, x);
    next_inputs(plan, step, image, strip, thread, &ahead);
    ahead_spread(&ahead, plan, rows * ((step->out_blocks + 1) / 2), pixels / rows, step->in.blocks * k * k);
    for (o = 0; o < step->out_blocks; o += 2) {
        struct conv_row r = {
            .x_block = (size_t)box.rows * box.columns * BLOCK,
            .x_row = (size_t)box.columns * BLOCK,
            .step = (size_t)stride * BLOCK,
            .kernel_rows = k,
            .kernel_columns = k,
            .blocks = step->in.blocks,
            .last = step->in.last,
            .w = operand_from(as, step->conv.forward, o * per_out),
            .w_out = per_out,
            .y_out = step->out->pixels * BLOCK,
            .y_step = BLOCK,
            .outs = smaller(2, step->out_blocks - o),
            .pixels = c->flat ? pixels : c->out_width,
            .ahead = &ahead,
        };

        for (row = 0; row < rows; row++) {
            r.x = operand_from(as, x, row * stride * r.x_row);
            r.y = value_of(step->out, slot, step->out_block + o) + (at + (size_t)row * c->out_width) * BLOCK;
            as->conv(&r);
        }
        statistics_add(plan, step, image * c->strips + strip, o, r.outs, slot, at, pixels);
    }
}
