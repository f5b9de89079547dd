/*
 * test_graph.c - networks as data
 *
 * Expected numbers are from torchvision 0.14 (parameters of densenet121 and resnet50 with 14 outputs); check_parity.py
 * compares every name and shape.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "graph/graph.h"

#include <string.h>

static struct graph *
new_graph(const char *model, unsigned side)
{
    struct chex_error err;
    struct graph *g;

    ck_assert_int_eq(graph_new(model, side, 14, &g, &err), CHEX_OK);
    return g;
}

TEST_CASE("graph", "models", NULL, NULL);

TEST(densenet121_has_torchvisions_tensors)
{
    struct graph *g = new_graph("densenet121", 224);

    ck_assert_uint_eq(g->param_floats, 6968206);
    ck_assert_uint_eq(g->param_count, 364);
    ck_assert_uint_eq(g->stat_count, 242);
    ck_assert_str_eq(g->param[0].name, "features.conv0.weight");
    ck_assert_ptr_nonnull(graph_find(g, "features.denseblock4.denselayer16.norm2.running_var"));
    ck_assert_uint_eq(graph_find(g, "features.denseblock1.denselayer6.conv1.weight")->shape[1], 224);
    ck_assert_ptr_null(graph_find(g, "features.denseblock1.denselayer7.conv1.weight"));
    graph_free(g);
}

/* torchvision/models/densenet.py: class DenseNet adds "norm5" for any number of blocks. */
TEST(the_last_norm_is_norm5_with_three_blocks_too)
{
    struct graph *g = new_graph("densenet-micro", 64);

    ck_assert_ptr_nonnull(graph_find(g, "features.norm5.running_var"));
    ck_assert_ptr_null(graph_find(g, "features.norm4.running_var"));
    graph_free(g);
}

TEST(resnet50_has_torchvisions_tensors)
{
    struct graph *g = new_graph("resnet50", 224);

    ck_assert_uint_eq(g->param_floats, 23536718); /* 25,557,032 with 1,000 outputs */
    ck_assert_uint_eq(g->param_count, 161);
    ck_assert_ptr_nonnull(graph_find(g, "layer1.0.downsample.1.running_mean"));
    graph_free(g);
}

TEST(transitions_pool_before_they_convolve)
{
    struct graph *g = new_graph("densenet121", 224);

    /* 5.67 GFLOP in torchvision's order; pooling first saves three quarters of the transitions' 0.62. */
    ck_assert_double_eq_tol(graph_flops(g) / 1e9, 5.20, 0.01);
    graph_free(g);
}

TEST(models_and_sides_that_do_not_exist_are_named)
{
    struct chex_error err;
    struct graph *g;

    ck_assert_int_eq(graph_new("densenet999", 224, 14, &g, &err), CHEX_ERR_USAGE);
    ck_assert_str_eq(err.text, "no model 'densenet999': densenet121, resnet50, densenet-micro");
    ck_assert_int_eq(graph_new("densenet121", 16, 14, &g, &err), CHEX_ERR_USAGE);
    ck_assert_str_eq(err.text, "densenet121 does not take images of 16x16");
    ck_assert_int_eq(graph_new("densenet121", 1u << 20, 14, &g, &err), CHEX_ERR_USAGE);
    ck_assert_int_eq(graph_new("densenet121", 29, 14, &g, &err), CHEX_OK);
    graph_free(g);
}

TEST(a_graph_whose_shapes_do_not_fit_is_refused)
{
    struct graph *g = new_graph("densenet-micro", 64);
    struct chex_error err;
    size_t i;

    for (i = 0; i < g->node_count; i++) {
        struct graph_node saved = g->node[i];

        g->node[i].out.channels++;
        ck_assert_int_eq(graph_check(g, &err), CHEX_ERR_BUG);
        g->node[i] = saved;
        g->node[i].in.first++;
        ck_assert_int_eq(graph_check(g, &err), CHEX_ERR_BUG);
        g->node[i] = saved;
        g->node[i].out.buffer = (unsigned)g->buffer_count;
        ck_assert_int_eq(graph_check(g, &err), CHEX_ERR_BUG);
        g->node[i] = saved;
    }
    ck_assert_int_eq(graph_check(g, &err), CHEX_OK);
    graph_free(g);
}
