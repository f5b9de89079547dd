/*
 * resnet.c - ResNet-50 (He et al., CVPR 2016; names and details of torchvision.models.resnet50, stride in the 3x3)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "graph/models.h"

#include <stdio.h>

#define EXPANSION 4

/* Add conv, norm and optionally ReLU; returns the buffer. */
static unsigned
add_conv_norm(struct graph_builder *b, const char *conv, const char *norm, unsigned in, unsigned channels,
              unsigned kernel, unsigned stride, unsigned in_side, bool relu)
{
    unsigned side = graph_side(in_side, kernel, stride, kernel / 2);
    unsigned raw = graph_add_buffer(b, channels, side, side), out = graph_add_buffer(b, channels, side, side);

    graph_add_conv(b, conv, graph_whole(b, in), graph_whole(b, raw), kernel, stride, kernel / 2);
    graph_add_norm(b, norm, graph_whole(b, raw), graph_whole(b, out), relu);
    return out;
}

/* Add one residual block, "layer2.0": 1x1, 3x3 (with the stride), 1x1, plus the input or its projection. */
static unsigned
add_bottleneck(struct graph_builder *b, const char *prefix, unsigned in, unsigned width, unsigned stride, unsigned side,
               bool project)
{
    unsigned after = graph_side(side, 3, stride, 1), wide = width * EXPANSION, x, shortcut = in, out;
    char conv[GRAPH_NAME], norm[GRAPH_NAME];

    snprintf(conv, sizeof(conv), "%s.conv1", prefix);
    snprintf(norm, sizeof(norm), "%s.bn1", prefix);
    x = add_conv_norm(b, conv, norm, in, width, 1, 1, side, true);
    snprintf(conv, sizeof(conv), "%s.conv2", prefix);
    snprintf(norm, sizeof(norm), "%s.bn2", prefix);
    x = add_conv_norm(b, conv, norm, x, width, 3, stride, side, true);
    snprintf(conv, sizeof(conv), "%s.conv3", prefix);
    snprintf(norm, sizeof(norm), "%s.bn3", prefix);
    x = add_conv_norm(b, conv, norm, x, wide, 1, 1, after, false);
    if (project) {
        snprintf(conv, sizeof(conv), "%s.downsample.0", prefix);
        snprintf(norm, sizeof(norm), "%s.downsample.1", prefix);
        shortcut = add_conv_norm(b, conv, norm, in, wide, 1, stride, side, false);
    }
    out = graph_add_buffer(b, wide, after, after);
    graph_add_sum(b, graph_whole(b, x), graph_whole(b, shortcut), graph_whole(b, out), true);
    return out;
}

bool
model_resnet50(struct graph_builder *b, unsigned side, unsigned outputs)
{
    static const unsigned blocks[] = {3, 4, 6, 3};
    unsigned side1 = graph_side(side, 7, 2, 3), side2 = graph_side(side1, 3, 2, 1), x, mean, stage, i;

    if (side2 == 0)
        return false;
    b->graph->input = graph_add_buffer(b, 3, side, side);
    x = add_conv_norm(b, "conv1", "bn1", b->graph->input, 64, 7, 2, side, true);
    mean = graph_add_buffer(b, 64, side2, side2);
    graph_add_pool(b, GRAPH_MAX_POOL, graph_whole(b, x), graph_whole(b, mean), 3, 2, 1);
    x = mean;
    side = side2;
    for (stage = 0; stage < 4; stage++) {
        for (i = 0; i < blocks[stage]; i++) {
            unsigned stride = stage > 0 && i == 0 ? 2 : 1;
            char prefix[32];

            snprintf(prefix, sizeof(prefix), "layer%u.%u", stage + 1, i);
            x = add_bottleneck(b, prefix, x, 64u << stage, stride, side, i == 0);
            side = graph_side(side, 3, stride, 1);
        }
    }
    mean = graph_add_buffer(b, 512 * EXPANSION, 1, 1);
    graph_add_pool(b, GRAPH_MEAN_POOL, graph_whole(b, x), graph_whole(b, mean), 1, 1, 0);
    b->graph->output = graph_add_buffer(b, outputs, 1, 1);
    graph_add_linear(b, "fc", graph_whole(b, mean), graph_whole(b, b->graph->output));
    return true;
}
