/*
 * graph.h - a network as data: buffers, and nodes that read and write channel slices of them
 *
 * The model to keep in mind: an activation is a buffer of `channels` planes of height x width values for each image.
 * A node reads a slice of channels and writes another.  A dense block is one buffer, into which each layer writes its
 * growth channels behind those that are there: concatenation is no operation.  Parameters and running statistics have
 * the names and shapes of torchvision, and lie one behind the other in one array each (the arenas), in the order of
 * torchvision's state_dict.
 *
 * A graph is constant once built: it may be used by any number of threads and plans.  It says what is computed,
 * nothing about how: layouts, fusion and memory are the business of a backend (backend.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_GRAPH_H
#define CHEX_TRAIN_GRAPH_H

#include "base/memory.h"

enum graph_op {
    GRAPH_CONV, /* out[o][y][x] = sum over i, ky, kx of w[o][i][ky][kx] * in[i][y * stride + ky - pad][...]; no bias */
    GRAPH_NORM, /* batch normalisation over the images and pixels of a micro-batch, then ReLU where relu is set */
    GRAPH_ADD,  /* in + in2, then ReLU where relu is set */
    GRAPH_MAX_POOL,  /* over kernel x kernel; pixels outside do not count */
    GRAPH_AVG_POOL,  /* over kernel x kernel without padding */
    GRAPH_MEAN_POOL, /* over all pixels: 1 x 1 */
    GRAPH_LINEAR     /* out[o] = sum over i of w[o][i] * in[i] + bias[o], on 1 x 1 */
};

/* Channels first .. first + channels - 1 of a buffer. */
struct graph_slice {
    unsigned buffer, first, channels;
};

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
    char name[GRAPH_NAME]; /* torchvision's: "features.denseblock1.denselayer1.norm1.weight" */
    enum graph_role role;
    unsigned rank, shape[4]; /* CONV: [out][in][kernel][kernel]; LINEAR: [out][in]; others [channels] */
    size_t offset, count;    /* floats: its place in the arena of parameters, or of statistics */
};

/* What a batch normalisation does besides its parameters, as PyTorch's defaults. */
#define GRAPH_NORM_EPSILON  1e-5f
#define GRAPH_NORM_MOMENTUM 0.1f
#define GRAPH_NORM_LEAST    2 /* values of a channel; from fewer the running statistics learn nothing */

struct graph {
    const char *model; /* "densenet121" */
    struct graph_buffer *buffer;
    struct graph_node *node;    /* in the order in which they can run */
    struct graph_tensor *param; /* what is learnt */
    struct graph_tensor *stat;  /* running mean and variance of the normalisations */
    size_t buffer_count, node_count, param_count, stat_count;
    size_t param_floats, stat_floats; /* sizes of the arenas */
    unsigned input, output;           /* buffers: 3 x height x width; outputs x 1 x 1, the logits */

    size_t buffer_capacity, node_capacity, param_capacity, stat_capacity;
};

/* Names of the models, ended by NULL. */
extern const char *const graph_models[];

/*
 * Build a model for square inputs of `side` pixels with `outputs` logits.  graph_free() frees it.
 * CHEX_ERR_USAGE  no such model (the text lists them), or a side for which its shapes do not fit;  CHEX_ERR_MEMORY
 */
enum chex_status graph_new(const char *model, unsigned side, unsigned outputs, struct graph **out,
                           struct chex_error *err);
void graph_free(struct graph *g); /* NULL is allowed */

/*
 * Are all shapes consistent, is each channel written before it is read and only once, is each parameter used once?
 * graph_new() has asked.  CHEX_ERR_BUG names the node.
 */
enum chex_status graph_check(const struct graph *g, struct chex_error *err);

/* The parameter, or statistic, of this name; NULL where there is none. */
const struct graph_tensor *graph_find(const struct graph *g, const char *name);

/* Multiplications and additions (2 for each pair) of one image forward. */
double graph_flops(const struct graph *g);

/* Values that a training step keeps of one image, all buffers: the plainest backend needs twice that many floats. */
size_t graph_activations(const struct graph *g);

/* ---- building (densenet.c, resnet.c) --------------------------------------------------------------------------- */

/*
 * Each adds one thing and sets *failed, for good, when memory runs out: the caller looks once, at the end.  Nodes with
 * parameters are named by prefix: "features.conv0" makes "features.conv0.weight".
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

/* The side after a convolution or pool: floor((side + 2 * pad - kernel) / stride) + 1; 0 where nothing is left. */
unsigned graph_side(unsigned side, unsigned kernel, unsigned stride, unsigned pad);

#endif
