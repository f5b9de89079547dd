/*
 * pool.c - additions, pools and the linear layer; a small part of the time
 *
 * A task is one image; the linear layer is one task.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cpu/cpu_plan.h"

#include <string.h>

size_t
pool_scratch(const struct step *step)
{
    size_t pixels = step->in.from->pixels + step->out->pixels;

    switch (step->node->op) {
    case GRAPH_ADD:
        return 3 * BLOCK * step->out->pixels;
    case GRAPH_MAX_POOL:
        return BLOCK * (pixels + step->in.from->pixels);
    case GRAPH_LINEAR:
        return 2 * BLOCK * (size_t)step->in.blocks;
    default:
        return BLOCK * pixels;
    }
}

static struct box
whole(const struct tensor *s)
{
    return (struct box){s->height, s->width, 0, 0, s->height, s->width};
}

/* ---- forward --------------------------------------------------------------------------------------------------- */

/* Average kernel x kernel pixels; the mean pool is a single window of the size of the image. */
static void
average(const float *x, unsigned width, unsigned kernel_height, unsigned kernel_width, float *y, unsigned out_height,
        unsigned out_width, unsigned stride)
{
    float factor = 1 / ((float)kernel_height * (float)kernel_width);
    unsigned row, column, ky, kx, c;

    for (row = 0; row < out_height; row++) {
        for (column = 0; column < out_width; column++, y += BLOCK) {
            float sum[BLOCK] = {0};

            for (ky = 0; ky < kernel_height; ky++) {
                const float *from = x + ((size_t)(row * stride + ky) * width + (size_t)column * stride) * BLOCK;

                for (kx = 0; kx < kernel_width; kx++)
                    for (c = 0; c < BLOCK; c++)
                        sum[c] += from[kx * BLOCK + c];
            }
            for (c = 0; c < BLOCK; c++)
                y[c] = sum[c] * factor;
        }
    }
}

/* Add what the channels of block b contribute to the maps of an image; x is the block, [pixels][16]. */
static void
add_to_maps(struct plan *plan, const struct step *step, size_t image, unsigned b, const float *x)
{
    const struct graph_head *h = &plan->head;
    const float *w = plan->weights + plan->graph->param[h->linear->weight].offset;
    double *map = plan->map + image * h->map_floats;
    unsigned c, o;
    size_t p;

    for (c = 0; c < h->channels; c++) {
        unsigned lane = step->in.lane[c];

        for (o = 0; lane / BLOCK == b && o < h->outputs; o++)
            for (p = 0; p < h->pixels; p++)
                map[o * h->pixels + p] += (double)w[(size_t)o * h->channels + c] * (double)x[p * BLOCK + lane % BLOCK];
    }
}

/* Returns a block of the view: normalised at `to`, or where it is stored. */
static const float *
read_block(const struct plan *plan, const struct view *in, size_t image, size_t slot, unsigned b, float *to)
{
    struct box box = whole(in->from);

    if (!in->norm)
        return value_of(in->from, slot, in->block + b);
    view_fetch(plan, &plan->kernels->products, in, image, slot, b, 1, &box, to);
    return to;
}

static void
forward_block(struct plan *plan, struct step *step, size_t image, size_t slot, unsigned b, float *scratch)
{
    const struct graph_node *node = step->node;
    const struct tensor *in = step->in.from, *out = step->out;
    const float *x = read_block(plan, &step->in, image, slot, b, scratch);
    float *y = value_of(out, slot, step->out_block + b);

    switch (node->op) {
    case GRAPH_ADD:
        plan->kernels->add(x, read_block(plan, &step->in2, image, slot, b, scratch + BLOCK * in->pixels),
                           out->pixels * BLOCK, node->relu, y);
        break;
    case GRAPH_MAX_POOL:
        plan->kernels->max_pool(x, in->height, in->width, node->kernel, node->stride, node->pad, y, out->height,
                                out->width);
        break;
    case GRAPH_AVG_POOL:
        average(x, in->width, node->kernel, node->kernel, y, out->height, out->width, node->stride);
        break;
    default: /* GRAPH_MEAN_POOL */
        average(x, in->width, in->height, in->width, y, 1, 1, 1);
        if (plan->map && !plan->training && node == plan->head.mean)
            add_to_maps(plan, step, image, b, x);
        break;
    }
    statistics_add(plan, step, image, b, 1, slot, 0, out->pixels);
}

static void
linear_forward(struct plan *plan, struct step *step, size_t image, size_t slot, float *x)
{
    const struct graph_node *node = step->node;
    const float *w = plan->weights + plan->graph->param[node->weight].offset;
    const float *bias = plan->weights + plan->graph->param[node->bias].offset;
    const unsigned *lane = step->in.lane;
    float *y = value_of(step->out, slot, step->out_block);
    struct box box = {1, 1, 0, 0, 1, 1};
    unsigned o, i;

    view_fetch(plan, &plan->kernels->products, &step->in, image, slot, 0, step->in.blocks, &box, x);
    for (o = 0; o < node->out.channels; o++) {
        double sum = (double)bias[o];

        for (i = 0; i < node->in.channels; i++)
            sum += (double)w[(size_t)o * node->in.channels + i] * (double)x[lane[i]];
        y[step->out_lane[o]] = (float)sum;
    }
}

void
simple_forward(struct plan *plan, struct step *step, size_t image, unsigned thread)
{
    float *scratch = plan->scratch + thread * plan->scratch_floats;
    size_t slot = slot_of(plan, image, thread);
    unsigned b;

    if (step->node->op == GRAPH_LINEAR) {
        linear_forward(plan, step, image, slot, scratch);
        return;
    }
    for (b = 0; b < step->out_blocks; b++)
        forward_block(plan, step, image, slot, b, scratch);
}

/* ---- backward -------------------------------------------------------------------------------------------------- */

static void
spread(const float *dy, unsigned out_height, unsigned out_width, unsigned kernel_height, unsigned kernel_width,
       unsigned stride, float *dx, size_t pixels, unsigned width)
{
    float factor = 1 / ((float)kernel_height * (float)kernel_width);
    unsigned row, column, ky, kx, c;

    memset(dx, 0, pixels * BLOCK * sizeof(*dx));
    for (row = 0; row < out_height; row++)
        for (column = 0; column < out_width; column++, dy += BLOCK)
            for (ky = 0; ky < kernel_height; ky++)
                for (kx = 0; kx < kernel_width; kx++) {
                    size_t at = (size_t)(row * stride + ky) * width + (size_t)column * stride + kx;

                    for (c = 0; c < BLOCK; c++)
                        dx[at * BLOCK + c] += dy[c] * factor;
                }
}

static void
backward_block(const struct plan *plan, const struct step *step, size_t image, unsigned b, float *scratch)
{
    const struct graph_node *node = step->node;
    const struct tensor *in = step->in.from, *out = step->out;
    struct box box_out = whole(out);
    float *dx = scratch + BLOCK * out->pixels;
    const float *dy = gradient_of(out, image, step->out_block + b), *given = dx, *x;

    if (out->normed) {
        gradient_fetch(&plan->kernels->products, step, image, b, 1, &box_out, scratch);
        dy = scratch;
    }
    switch (node->op) {
    case GRAPH_ADD:
        if (node->relu)
            plan->kernels->mask(value_of(out, image, step->out_block + b), dy, out->pixels * BLOCK, dx);
        else
            given = dy;
        view_give(plan, &step->in2, image, b, 0, in->pixels, given);
        break;
    case GRAPH_MAX_POOL:
        x = read_block(plan, &step->in, image, image, b, dx + BLOCK * in->pixels);
        memset(dx, 0, in->pixels * BLOCK * sizeof(*dx));
        plan->kernels->max_pool_gradient(x, in->height, in->width, node->kernel, node->stride, node->pad, dy,
                                         out->height, out->width, dx);
        break;
    case GRAPH_AVG_POOL:
        spread(dy, out->height, out->width, node->kernel, node->kernel, node->stride, dx, in->pixels, in->width);
        break;
    default: /* GRAPH_MEAN_POOL */
        spread(dy, 1, 1, in->height, in->width, 1, dx, in->pixels, in->width);
        break;
    }
    view_give(plan, &step->in, image, b, 0, in->pixels, given);
}

static void
backward_image(void *context, size_t image, unsigned thread)
{
    const struct step_tasks *tasks = context;
    unsigned b;

    for (b = 0; b < tasks->step->out_blocks; b++)
        backward_block(tasks->plan, tasks->step, image, b, tasks->plan->scratch + thread * tasks->plan->scratch_floats);
}

static void
linear_backward(struct plan *plan, struct step *step)
{
    const struct graph_node *node = step->node;
    const struct graph *g = plan->graph;
    const float *w = plan->weights + g->param[node->weight].offset;
    float *dw = plan->host.arena[ARENA_GRADIENTS] + g->param[node->weight].offset;
    float *dbias = plan->host.arena[ARENA_GRADIENTS] + g->param[node->bias].offset;
    float *x = plan->scratch, *dx = x + (size_t)step->in.blocks * BLOCK;
    const unsigned *lane = step->in.lane;
    unsigned o, i, b;
    struct box box = {1, 1, 0, 0, 1, 1};
    size_t n;

    for (n = 0; n < plan->images; n++) {
        const float *dy = gradient_of(step->out, n, step->out_block);

        view_fetch(plan, &plan->kernels->products, &step->in, n, n, 0, step->in.blocks, &box, x);
        memset(dx, 0, (size_t)step->in.blocks * BLOCK * sizeof(*dx));
        for (o = 0; o < node->out.channels; o++) {
            float d = dy[step->out_lane[o]];

            dbias[o] += d;
            for (i = 0; i < node->in.channels; i++) {
                size_t at = (size_t)o * node->in.channels + i;

                dw[at] += d * x[lane[i]];
                dx[lane[i]] += d * w[at];
            }
        }
        for (b = 0; b < step->in.blocks; b++)
            view_give(plan, &step->in, n, b, 0, 1, dx + (size_t)b * BLOCK);
    }
}

void
simple_backward(struct plan *plan, struct step *step)
{
    struct step_tasks tasks = {plan, step};

    gradient_close(plan, step);
    if (step->node->op == GRAPH_ADD)
        view_claim(&step->in2); /* in the order in which their gradients are added */
    view_claim(&step->in);
    if (step->node->op == GRAPH_LINEAR)
        linear_backward(plan, step);
    else
        team_run(plan->team, plan->images, backward_image, &tasks);
}
