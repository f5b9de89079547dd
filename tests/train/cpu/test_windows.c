/*
 * test_windows.c - compares convolutions of every kernel, stride and padding with the reference
 *
 * The gradient of the input takes another path for each remainder of a row or column by the stride: see phases in
 * cpu_plan.h.  There is no ReLU, so a small difference never changes a gradient much.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "train/backend/step_fixture.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#define CHANNELS 18
#define IMAGES   2
#define SEED     5

/* Returns a graph with one such convolution of 18 channels; graph_free(). */
static struct graph *
window_graph(unsigned kernel, unsigned stride, unsigned pad)
{
    struct graph_builder b = {.graph = calloc(1, sizeof(*b.graph))};
    unsigned high = (HEIGHT + 2 * pad - kernel) / stride + 1, wide = (WIDTH + 2 * pad - kernel) / stride + 1;
    unsigned stem, normal, out, mean;
    struct chex_error err;

    ck_assert_ptr_nonnull(b.graph);
    b.graph->model = "small";
    b.graph->input = graph_add_buffer(&b, INPUT_CHANNELS, HEIGHT, WIDTH);
    stem = graph_add_buffer(&b, CHANNELS, HEIGHT, WIDTH);
    normal = graph_add_buffer(&b, CHANNELS, HEIGHT, WIDTH);
    out = graph_add_buffer(&b, 20, high, wide);
    mean = graph_add_buffer(&b, 20, 1, 1);
    b.graph->output = graph_add_buffer(&b, OUTPUTS, 1, 1);
    graph_add_conv(&b, "stem", graph_whole(&b, b.graph->input), graph_whole(&b, stem), 3, 1, 1);
    graph_add_norm(&b, "norm", graph_whole(&b, stem), graph_whole(&b, normal), false);
    graph_add_conv(&b, "conv", graph_whole(&b, normal), graph_whole(&b, out), kernel, stride, pad);
    graph_add_pool(&b, GRAPH_MEAN_POOL, graph_whole(&b, out), graph_whole(&b, mean), 1, 1, 0);
    graph_add_linear(&b, "head", graph_whole(&b, mean), graph_whole(&b, b.graph->output));
    ck_assert(!b.failed);
    ck_assert_msg(graph_check(b.graph, &err) == CHEX_OK, "%s", err.text);
    return b.graph;
}

static void
check_window(unsigned kernel, unsigned stride, unsigned pad)
{
    struct graph *g = window_graph(kernel, stride, pad);
    struct step_setup setup = {.seed = SEED, .images = IMAGES, .threads = 2};
    struct outcome wanted = step_run(backend_find("ref"), g, &setup), got = step_run(backend_find("cpu"), g, &setup);
    char name[64];

    snprintf(name, sizeof(name), "cpu, kernel %u, stride %u, padding %u", kernel, stride, pad);
    step_compare(name, g, IMAGES, &got, &wanted);
    step_outcome_free(&got, g, IMAGES);
    step_outcome_free(&wanted, g, IMAGES);
    graph_free(g);
}

TEST_CASE("backends", "windows", NULL, NULL);

LOOP_TEST(a_convolution_of_any_stride_equals_the_reference, 1, 6)
{
    unsigned kernel = (unsigned)_i, stride, pad;

    for (stride = 1; stride <= 4; stride++)
        for (pad = 0; pad < kernel; pad++)
            check_window(kernel, stride, pad);
}
