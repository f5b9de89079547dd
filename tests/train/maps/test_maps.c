/*
 * test_maps.c - the positions of the cells of a map in an image
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "maps/maps.h"

#include <math.h>
#include <stdlib.h>

#define SIDE_MAX 256
#define MARGIN   1280 /* pixels around an image: more than a cell can see */
#define LINE     (SIDE_MAX + 2 * MARGIN)

static struct graph *
new_graph(const char *model, unsigned side)
{
    struct chex_error err;
    struct graph *g;

    ck_assert_int_eq(graph_new(model, side, 3, &g, &err), CHEX_OK);
    return g;
}

static struct map_grid
grid_of(const char *model, unsigned side)
{
    struct graph *g = new_graph(model, side);
    struct map_grid grid;
    struct chex_error err;

    ck_assert_int_eq(map_grid_of(g, &grid, &err), CHEX_OK);
    graph_free(g);
    return grid;
}

/* ---- what a cell sees -------------------------------------------------------------------------------------------- */

/* seen[buffer][MARGIN + i]: whether the cell depends on row i of the buffer, if the image had no borders. */
static void
look_back(const struct graph_node *n, unsigned char (*seen)[LINE])
{
    bool window = n->op == GRAPH_CONV || n->op == GRAPH_MAX_POOL || n->op == GRAPH_AVG_POOL;
    unsigned kernel = window ? n->kernel : 1;
    long stride = window ? n->stride : 1, pad = window ? n->pad : 0, i, k;

    for (i = -MARGIN; i < LINE - MARGIN; i++)
        for (k = 0; seen[n->out.buffer][MARGIN + i] && k < (long)kernel; k++) {
            long from = i * stride + k - pad;

            ck_assert(from >= -MARGIN && from < LINE - MARGIN);
            seen[n->in.buffer][MARGIN + from] = 1;
            if (n->op == GRAPH_ADD)
                seen[n->in2.buffer][MARGIN + from] = 1;
        }
}

/* Returns the middle of the rows of the image that a cell depends on. */
static double
middle_of_cell(const struct graph *g, unsigned cell)
{
    unsigned char(*seen)[LINE] = calloc(g->buffer_count, sizeof(*seen));
    struct graph_head head;
    const struct graph_node *n;
    long first = LINE, last = 0, i;

    ck_assert(graph_find_head(g, &head));
    seen[head.mean->in.buffer][MARGIN + cell] = 1;
    for (n = head.mean; n-- > g->node;)
        look_back(n, seen);
    for (i = 0; i < LINE; i++)
        if (seen[g->input][i]) {
            first = i < first ? i : first;
            last = i;
        }
    free(seen);
    return (double)(first + last) / 2 - MARGIN;
}

TEST_CASE("maps", "maps", NULL, NULL);

/* 14.0 and 6.0 are wrong by a pixel or two if a map is resized to the image: that gives 15.5 and 7.5. */
TEST(the_centres_of_the_cells_of_each_network)
{
    static const struct {
        const char *model;
        unsigned cells;
        double jump, offset;
    } wanted[] = {{"densenet121", 7, 32, 14}, {"densenet-micro", 14, 16, 6}, {"resnet50", 7, 32, 0}};
    size_t i;

    for (i = 0; i < 3; i++) {
        struct map_grid grid = grid_of(wanted[i].model, 224);

        ck_assert_uint_eq(grid.height, wanted[i].cells);
        ck_assert_uint_eq(grid.width, wanted[i].cells);
        ck_assert_double_eq(grid.jump, wanted[i].jump);
        ck_assert_double_eq(grid.offset, wanted[i].offset);
    }
}

TEST(a_centre_is_in_the_middle_of_what_its_cell_depends_on)
{
    static const unsigned sides[] = {64, 224, 250, 256};
    size_t m, s;
    unsigned i;

    for (m = 0; graph_models[m]; m++)
        for (s = 0; s < 4; s++) {
            struct graph *g = new_graph(graph_models[m], sides[s]);
            struct map_grid grid = grid_of(graph_models[m], sides[s]);

            for (i = 0; i < grid.width; i++)
                ck_assert_double_eq(middle_of_cell(g, i), grid.jump * i + grid.offset);
            graph_free(g);
        }
}

TEST(a_network_without_maps_is_refused)
{
    struct graph *g = new_graph("densenet-micro", 64);
    struct map_grid grid;
    struct graph_head head;
    struct chex_error err;
    size_t i;

    for (i = 0; i < g->node_count; i++)
        if (g->node[i].op == GRAPH_MEAN_POOL)
            g->node[i].op = GRAPH_MAX_POOL;
    ck_assert(!graph_find_head(g, &head));
    ck_assert_int_eq(map_grid_of(g, &grid, &err), CHEX_ERR_UNSUPPORTED);
    ck_assert_str_eq(err.text, "the network has no mean over all pixels before its linear layer, so it has no maps");
    graph_free(g);
}

TEST(layers_that_do_not_agree_about_the_centres_are_refused)
{
    struct graph *g = new_graph("densenet-micro", 64);
    struct map_grid grid;
    struct chex_error err;
    size_t i;

    for (i = 0; i < g->node_count; i++)
        if (g->node[i].op == GRAPH_CONV && g->node[i].kernel == 3 && i > g->node_count / 2) {
            g->node[i].pad = 0;
            break;
        }
    ck_assert_int_eq(map_grid_of(g, &grid, &err), CHEX_ERR_UNSUPPORTED);
    ck_assert_str_eq(err.text, "the layers of densenet-micro do not agree about the centres of its cells");
    graph_free(g);
}

/* ---- placing ----------------------------------------------------------------------------------------------------- */

static const struct map_grid small = {.height = 2, .width = 3, .jump = 10, .offset = 4};
static const float small_map[] = {1, 2, 4, -3, 8, 0};

TEST(a_map_is_linear_between_the_centres_and_constant_outside)
{
    ck_assert_double_eq(map_value(&small, small_map, 4, 4), 1);
    ck_assert_double_eq(map_value(&small, small_map, 4, 14), 2);
    ck_assert_double_eq(map_value(&small, small_map, 14, 14), 8);
    ck_assert_double_eq(map_value(&small, small_map, 4, 19), 3);
    ck_assert_double_eq(map_value(&small, small_map, 9, 4), -1);
    ck_assert_double_eq(map_value(&small, small_map, 9, 9), 2); /* the mean of 1, 2, -3 and 8 */
    ck_assert_double_eq(map_value(&small, small_map, -100, 0), 1);
    ck_assert_double_eq(map_value(&small, small_map, 1e9, 1e9), 0);
    ck_assert_double_eq(map_value(&small, small_map, 0, 25), 4);
}

TEST(a_map_is_placed_in_the_crop_and_in_the_shrunk_and_the_original_image)
{
    struct map_place crop = map_place_of(224, 224, 224, 0, 0), shrunk = map_place_of(256, 256, 256, 16, 15),
                     original = map_place_of(1024, 512, 256, 16, 15);
    float spread[4 * 5];
    unsigned y, x;

    ck_assert(crop.step_y == 1 && crop.step_x == 1 && crop.top == 0 && crop.left == 0);
    ck_assert(shrunk.step_y == 1 && shrunk.step_x == 1 && shrunk.top == -16 && shrunk.left == -15);
    /* Rows 0 to 3 of the original image are row 0 of the shrunk one: their middle, 1.5, is its centre. */
    ck_assert_double_eq(1.5 * original.step_y + original.top, -16);
    ck_assert_double_eq(0.5 * original.step_x + original.left, -15);
    ck_assert_double_eq(1021.5 * original.step_y + original.top, 255 - 16);
    ck_assert_double_eq(510.5 * original.step_x + original.left, 255 - 15);
    map_spread(&small, small_map, &(struct map_place){5, 6, -1, 2}, 4, 5, spread);
    for (y = 0; y < 4; y++)
        for (x = 0; x < 5; x++)
            ck_assert_float_eq(spread[y * 5 + x], (float)map_value(&small, small_map, y * 5.0 - 1, x * 6.0 + 2));
}
