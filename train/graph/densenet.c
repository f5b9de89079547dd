/*
 * densenet.c - DenseNet (Huang et al., CVPR 2017; names and details of torchvision.models.densenet)
 *
 * The network is conv0 7x7/2, norm0, pool0 3x3/2; dense blocks with transitions between them; norm5 (torchvision's
 * name, for any number of blocks), the mean over the pixels, the classifier.
 *
 * A layer of a block is norm1, ReLU, conv1 1x1 to 4 x growth; norm2, ReLU, conv2 3x3 to growth.  It appends its output
 * to the buffer of the block.  A transition halves channels and sides.  torchvision convolves and then pools.  Both are
 * linear, and a 1x1 convolution reads single pixels, so they commute.  Pooling first leaves a quarter of the pixels to
 * convolve.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "graph/models.h"

#include <stdio.h>

#define BOTTLENECK 4 /* channels of conv1, in multiples of the growth */

struct densenet {
    unsigned stem;   /* channels of conv0 */
    unsigned growth; /* channels that a layer adds */
    unsigned blocks;
    unsigned layers[4];
};

/* Add the layers of one block; the slab already holds `channels` channels of the block. */
static void
add_layers(struct graph_builder *b, const struct densenet *d, unsigned block, unsigned slab, unsigned side,
           unsigned channels)
{
    unsigned narrow = BOTTLENECK * d->growth, layer;
    char name[GRAPH_NAME];

    for (layer = 1; layer <= d->layers[block]; layer++, channels += d->growth) {
        struct graph_slice in = graph_slice(slab, 0, channels), out = graph_slice(slab, channels, d->growth);
        unsigned active = graph_add_buffer(b, channels, side, side), squeezed = graph_add_buffer(b, narrow, side, side),
                 active2 = graph_add_buffer(b, narrow, side, side);

        snprintf(name, sizeof(name), "features.denseblock%u.denselayer%u.norm1", block + 1, layer);
        graph_add_norm(b, name, in, graph_whole(b, active), true);
        snprintf(name, sizeof(name), "features.denseblock%u.denselayer%u.conv1", block + 1, layer);
        graph_add_conv(b, name, graph_whole(b, active), graph_whole(b, squeezed), 1, 1, 0);
        snprintf(name, sizeof(name), "features.denseblock%u.denselayer%u.norm2", block + 1, layer);
        graph_add_norm(b, name, graph_whole(b, squeezed), graph_whole(b, active2), true);
        snprintf(name, sizeof(name), "features.denseblock%u.denselayer%u.conv2", block + 1, layer);
        graph_add_conv(b, name, graph_whole(b, active2), out, 3, 1, 1);
    }
}

/* Reduce the whole slab to the first channels of the next one. */
static void
add_transition(struct graph_builder *b, unsigned block, unsigned slab, unsigned channels, unsigned side, unsigned next)
{
    unsigned active = graph_add_buffer(b, channels, side, side),
             pooled = graph_add_buffer(b, channels, side / 2, side / 2);
    char name[GRAPH_NAME];

    snprintf(name, sizeof(name), "features.transition%u.norm", block + 1);
    graph_add_norm(b, name, graph_whole(b, slab), graph_whole(b, active), true);
    graph_add_pool(b, GRAPH_AVG_POOL, graph_whole(b, active), graph_whole(b, pooled), 2, 2, 0);
    snprintf(name, sizeof(name), "features.transition%u.conv", block + 1);
    graph_add_conv(b, name, graph_whole(b, pooled), graph_slice(next, 0, channels / 2), 1, 1, 0);
}

static void
add_head(struct graph_builder *b, unsigned slab, unsigned channels, unsigned side, unsigned outputs)
{
    unsigned active = graph_add_buffer(b, channels, side, side), mean = graph_add_buffer(b, channels, 1, 1);

    b->graph->output = graph_add_buffer(b, outputs, 1, 1);
    graph_add_norm(b, "features.norm5", graph_whole(b, slab), graph_whole(b, active), true);
    graph_add_pool(b, GRAPH_MEAN_POOL, graph_whole(b, active), graph_whole(b, mean), 1, 1, 0);
    graph_add_linear(b, "classifier", graph_whole(b, mean), graph_whole(b, b->graph->output));
}

static bool
add_densenet(struct graph_builder *b, const struct densenet *d, unsigned side, unsigned outputs)
{
    unsigned side1 = graph_side(side, 7, 2, 3), side2 = graph_side(side1, 3, 2, 1), channels = d->stem, block;
    unsigned conv0, norm0, slab;

    if (side2 >> (d->blocks - 1) == 0)
        return false;
    b->graph->input = graph_add_buffer(b, 3, side, side);
    conv0 = graph_add_buffer(b, d->stem, side1, side1);
    norm0 = graph_add_buffer(b, d->stem, side1, side1);
    graph_add_conv(b, "features.conv0", graph_whole(b, b->graph->input), graph_whole(b, conv0), 7, 2, 3);
    graph_add_norm(b, "features.norm0", graph_whole(b, conv0), graph_whole(b, norm0), true);
    slab = graph_add_buffer(b, channels + d->layers[0] * d->growth, side2, side2);
    graph_add_pool(b, GRAPH_MAX_POOL, graph_whole(b, norm0), graph_slice(slab, 0, channels), 3, 2, 1);
    for (block = 0, side = side2; block < d->blocks; block++) {
        unsigned next;

        add_layers(b, d, block, slab, side, channels);
        channels += d->layers[block] * d->growth;
        if (block + 1 == d->blocks)
            break;
        next = graph_add_buffer(b, channels / 2 + d->layers[block + 1] * d->growth, side / 2, side / 2);
        add_transition(b, block, slab, channels, side, next);
        slab = next;
        channels /= 2;
        side /= 2;
    }
    add_head(b, slab, channels, side, outputs);
    return true;
}

bool
model_densenet121(struct graph_builder *b, unsigned side, unsigned outputs)
{
    static const struct densenet d = {.stem = 64, .growth = 32, .blocks = 4, .layers = {6, 12, 24, 16}};

    return add_densenet(b, &d, side, outputs);
}

bool
model_densenet_micro(struct graph_builder *b, unsigned side, unsigned outputs)
{
    static const struct densenet d = {.stem = 32, .growth = 16, .blocks = 3, .layers = {4, 4, 4}};

    return add_densenet(b, &d, side, outputs);
}
