/*
 * maps.c - implements maps.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "maps/maps.h"

#include <stdlib.h>

/* ---- cell centres ------------------------------------------------------------------------------------------------ */

/* The centre of value i of a buffer is pixel jump * i + offset of the input.  jump 0: not known yet. */
struct centres {
    double jump, offset;
};

/* Returns the centres of the values that a node writes. */
static struct centres
centres_after(const struct graph_node *n, struct centres in)
{
    if (n->op != GRAPH_CONV && n->op != GRAPH_MAX_POOL && n->op != GRAPH_AVG_POOL)
        return in;
    return (struct centres){in.jump * n->stride, in.offset + in.jump * ((n->kernel - 1.0) / 2 - n->pad)};
}

static bool
same(const struct centres *a, const struct centres *b)
{
    return a->jump == b->jump && a->offset == b->offset; /* sums of halves of integers, so they are exact */
}

/* Find the centres of all buffers up to the last activation; returns false if two ways to a buffer do not agree. */
static bool
walk(const struct graph *g, const struct graph_node *last, struct centres *of)
{
    const struct graph_node *n;

    of[g->input] = (struct centres){1, 0};
    for (n = g->node; n < last; n++) {
        struct centres made = centres_after(n, of[n->in.buffer]), *out = &of[n->out.buffer];

        if (n->op == GRAPH_MEAN_POOL || n->op == GRAPH_LINEAR)
            return false;
        if ((n->op == GRAPH_ADD && !same(&of[n->in2.buffer], &of[n->in.buffer])) ||
            (out->jump > 0 && !same(out, &made)))
            return false;
        *out = made;
    }
    return true;
}

enum chex_status
map_grid_of(const struct graph *g, struct map_grid *out, struct chex_error *err)
{
    struct centres *of, cell;
    struct graph_head head;
    bool agree;

    if (!graph_find_head(g, &head))
        return error_set(err, CHEX_ERR_UNSUPPORTED, GRAPH_NO_HEAD);
    of = calloc(g->buffer_count, sizeof(*of));
    if (!of)
        return error_memory(err);
    agree = walk(g, head.mean, of);
    cell = of[head.mean->in.buffer];
    free(of);
    if (!agree)
        return error_set(err, CHEX_ERR_UNSUPPORTED, "the layers of %s do not agree about the centres of its cells",
                         g->model);
    *out = (struct map_grid){head.height, head.width, cell.jump, cell.offset};
    return CHEX_OK;
}

/* ---- a map in an image ------------------------------------------------------------------------------------------- */

/* A point between two cells of a row or column: the value is (1 - part) * cell[first] + part * cell[second]. */
struct between {
    unsigned first, second;
    double part;
};

static struct between
find_cells(const struct map_grid *grid, unsigned cells, double pixel)
{
    double at = (pixel - grid->offset) / grid->jump;
    unsigned first;

    if (at <= 0)
        return (struct between){0, 0, 0};
    if (at >= cells - 1)
        return (struct between){cells - 1, cells - 1, 0};
    first = (unsigned)at;
    return (struct between){first, first + 1, at - first};
}

static double
interpolate(const struct map_grid *grid, const float *map, const struct between *y, const struct between *x)
{
    const float *upper = map + (size_t)y->first * grid->width, *lower = map + (size_t)y->second * grid->width;
    double above = (1 - x->part) * (double)upper[x->first] + x->part * (double)upper[x->second];
    double below = (1 - x->part) * (double)lower[x->first] + x->part * (double)lower[x->second];

    return (1 - y->part) * above + y->part * below;
}

double
map_value(const struct map_grid *grid, const float *map, double y, double x)
{
    struct between row = find_cells(grid, grid->height, y), column = find_cells(grid, grid->width, x);

    return interpolate(grid, map, &row, &column);
}

struct map_place
map_place_of(unsigned height, unsigned width, unsigned size, unsigned crop_y, unsigned crop_x)
{
    double down = (double)size / height, across = (double)size / width;

    /* The pictures have the same edges, so the centre of the first pixel moves by half of the difference. */
    return (struct map_place){down, across, (down - 1) / 2 - crop_y, (across - 1) / 2 - crop_x};
}

void
map_spread(const struct map_grid *grid, const float *map, const struct map_place *place, unsigned height,
           unsigned width, float *out)
{
    unsigned y, x;

    for (y = 0; y < height; y++) {
        struct between row = find_cells(grid, grid->height, y * place->step_y + place->top);

        for (x = 0; x < width; x++) {
            struct between column = find_cells(grid, grid->width, x * place->step_x + place->left);

            *out++ = (float)interpolate(grid, map, &row, &column);
        }
    }
}
