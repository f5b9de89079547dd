/*
 * graph.h - a network as data: buffers, and nodes that read and write channel slices of them
 *
 * An activation is a buffer with `channels` planes of height x width values per image.  A node reads one slice of
 * channels and writes another.  A dense block is one buffer: each layer appends its growth channels, so concatenation
 * is free.  Parameters and running statistics have the names and shapes of torchvision.  All parameters form one array
 * and all running statistics another (the arenas), in the order of torchvision's state_dict.
 *
 * A graph is constant after it is built, so any number of threads and plans may share it.  It defines only what is
 * computed.  Layouts, fusion and memory are decided by a backend (backend.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_GRAPH_H
#define CHEX_TRAIN_GRAPH_H

#include "base/memory.h"

enum graph_op {
    GRAPH_CONV, /* out[o][y][x] = sum over i, ky, kx of w[o][i][ky][kx] * in[i][y * stride + ky - pad][...]; no bias */
    GRAPH_NORM, /* batch normalisation over the images and pixels of a micro-batch, then ReLU if `relu` */
    GRAPH_ADD,  /* in + in2, then ReLU if `relu` */
    GRAPH_MAX_POOL,  /* over kernel x kernel; ignores pixels outside */
    GRAPH_AVG_POOL,  /* over kernel x kernel without padding */
    GRAPH_MEAN_POOL, /* over all pixels: 1 x 1 */
    GRAPH_LINEAR     /* out[o] = sum over i of w[o][i] * in[i] + bias[o], on 1 x 1 */
};

/* Channels first .. first + channels - 1 of a buffer. */
struct graph_slice {
    unsigned buffer, first, channels;
};

static inline bool
graph_slice_same(const struct graph_slice *a, const struct graph_slice *b)
{
    return a->buffer == b->buffer && a->first == b->first && a->channels == b->channels;
}

static inline bool
graph_slice_overlaps(const struct graph_slice *a, const struct graph_slice *b)
{
    return a->buffer == b->buffer && a->first < b->first + b->channels && b->first < a->first + a->channels;
}

struct graph_node {
    enum graph_op op;
    struct graph_slice in, in2, out; /* in2: GRAPH_ADD only */
    unsigned kernel, stride, pad;    /* CONV and pools */
    bool relu;                       /* NORM, ADD */
    unsigned weight, bias;           /* indices of parameters: CONV weight; LINEAR both; NORM gamma and beta */
    unsigned mean, variance;         /* NORM: indices of running statistics */
};

struct graph_buffer {
    unsigned channels, height, width; /* values of an image: channels x height x width */
};

enum graph_role { GRAPH_WEIGHT, GRAPH_BIAS, GRAPH_GAMMA, GRAPH_BETA, GRAPH_MEAN, GRAPH_VARIANCE };

#define GRAPH_NAME 64

/* A parameter, or a running statistic. */
struct graph_tensor {
    char name[GRAPH_NAME]; /* as in torchvision: "features.denseblock1.denselayer1.norm1.weight" */
    enum graph_role role;
    unsigned rank, shape[4]; /* CONV: [out][in][kernel][kernel]; LINEAR: [out][in]; others [channels] */
    size_t offset, count;    /* floats: offset in the arena of parameters or of statistics, and length */
};

/* Constants of batch normalisation: PyTorch's defaults. */
#define GRAPH_NORM_EPSILON  1e-5f
#define GRAPH_NORM_MOMENTUM 0.1f
#define GRAPH_NORM_LEAST    2 /* values per channel; with fewer, the running statistics are not updated */

struct graph {
    const char *model; /* "densenet121" */
    struct graph_buffer *buffer;
    struct graph_node *node;    /* in a valid order of execution */
    struct graph_tensor *param; /* trained parameters */
    struct graph_tensor *stat;  /* running mean and variance of the normalisations */
    size_t buffer_count, node_count, param_count, stat_count;
    size_t param_floats, stat_floats; /* sizes of the arenas */
    unsigned input, output;           /* buffers: 3 x height x width; outputs x 1 x 1, the logits */
    const char *const *findings;      /* [outputs] names of the logits, set by the caller of graph_new(); NULL: none */

    size_t buffer_capacity, node_capacity, param_capacity, stat_capacity;
};

/* Names of the models, NULL-terminated. */
extern const char *const graph_models[];

/*
 * Build a model for square inputs of `side` pixels with `outputs` logits.  Release it with graph_free().
 * CHEX_ERR_USAGE   unknown model (the text lists all models), or a side that does not fit its shapes
 * CHEX_ERR_MEMORY
 */
enum chex_status graph_new(const char *model, unsigned side, unsigned outputs, struct graph **out,
                           struct chex_error *err);
void graph_free(struct graph *g); /* NULL is allowed */

/*
 * Check that all shapes are consistent, that each channel is written once and before it is read, and that each
 * parameter is used once.  graph_new() calls it.  CHEX_ERR_BUG names the node.
 */
enum chex_status graph_check(const struct graph *g, struct chex_error *err);

/* Returns the parameter or statistic with this name, or NULL. */
const struct graph_tensor *graph_find(const struct graph *g, const char *name);

/*
 * The end of a network: `linear` makes the logits from the mean over all pixels of an activation.  Such a network has
 * class activation maps (maps.h).
 */
struct graph_head {
    const struct graph_node *mean, *linear;
    unsigned outputs, channels, height, width; /* logits; the activation */
    size_t pixels, map_floats;                 /* height x width; outputs x pixels */
};
/* Returns false if the network does not end like this; GRAPH_NO_HEAD is the error message. */
#define GRAPH_NO_HEAD "the network has no mean over all pixels before its linear layer, so it has no maps"
bool graph_find_head(const struct graph *g, struct graph_head *out);

/* Returns the floating-point operations of one image forward; a multiply-add counts as 2. */
double graph_flops(const struct graph *g);

/* Returns the number of values that a training step keeps per image; a simple backend needs twice as many floats. */
size_t graph_activations(const struct graph *g);

/* ---- building (densenet.c, resnet.c) --------------------------------------------------------------------------- */

/*
 * Each function adds one item.  If memory runs out it sets *failed and later calls do nothing, so the caller checks
 * once, at the end.  Parameters are named after the prefix: "features.conv0" gives "features.conv0.weight".
 */
struct graph_builder {
    struct graph *graph;
    bool failed;
};

unsigned graph_add_buffer(struct graph_builder *b, unsigned channels, unsigned height, unsigned width);
struct graph_slice graph_slice(unsigned buffer, unsigned first, unsigned channels);
struct graph_slice graph_whole(const struct graph_builder *b, unsigned buffer);

void graph_add_conv(struct graph_builder *b, const char *prefix, struct graph_slice in, struct graph_slice out,
                    unsigned kernel, unsigned stride, unsigned pad);
void graph_add_norm(struct graph_builder *b, const char *prefix, struct graph_slice in, struct graph_slice out,
                    bool relu);
void graph_add_linear(struct graph_builder *b, const char *prefix, struct graph_slice in, struct graph_slice out);
void graph_add_pool(struct graph_builder *b, enum graph_op op, struct graph_slice in, struct graph_slice out,
                    unsigned kernel, unsigned stride, unsigned pad);
void graph_add_sum(struct graph_builder *b, struct graph_slice in, struct graph_slice in2, struct graph_slice out,
                   bool relu);

/*
 * Returns the side after a convolution or pool: floor((side + 2 * pad - kernel) / stride) + 1, or 0 if the kernel does
 * not fit.
 */
unsigned graph_side(unsigned side, unsigned kernel, unsigned stride, unsigned pad);

#endif
