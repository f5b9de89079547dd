/*
 * ops.h - every operation of a graph, forward and backward, in plain C that follows its definition
 *
 * This code is not optimised: it is the reference for the other backends.  Values are float; sums over more than one
 * kernel window are double.  Gradients of inputs are added to the existing values, because a channel may have several
 * readers.  Gradients of parameters are added too, over the micro-batches of a step.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_REF_OPS_H
#define CHEX_TRAIN_REF_OPS_H

#include "graph/graph.h"

/*
 * A slice of a buffer for all images of a batch.  Value (n, c, y, x) is at data[n * image + (c * height + y) * width +
 * x].
 */
struct slice {
    float *data;
    size_t image; /* floats between two images */
    unsigned images, channels, height, width;
};

/* Returns the first value of a channel of an image. */
static inline float *
slice_plane(struct slice v, unsigned image, unsigned channel)
{
    return v.data + image * v.image + (size_t)channel * v.height * v.width;
}

/* w [out][in][kernel][kernel] */
void conv_forward(const struct graph_node *node, struct slice x, const float *w, struct slice y);
/* dx.data may be NULL: the input of the network needs no gradient. */
void conv_backward(const struct graph_node *node, struct slice x, struct slice dx, const float *w, float *dw,
                   struct slice dy);

/* Compute mean and (biased) variance of the batch; both [channels]. */
void norm_statistics(struct slice x, float *mean, float *variance);
/*
 * Update running = (1 - momentum) running + momentum * batch.  The variance is unbiased, as in PyTorch; count = images
 * * pixels.  A single value has no variance: then nothing changes (backend.h).
 */
void norm_update(unsigned channels, size_t count, const float *mean, const float *variance, float *running_mean,
                 float *running_variance);
/*
 * Compute y = gamma (x - mean) / sqrt(variance + epsilon) + beta, then ReLU if node->relu; all parameters are
 * [channels].
 */
void norm_forward(const struct graph_node *node, struct slice x, const float *mean, const float *variance,
                  const float *gamma, const float *beta, struct slice y);
/* mean and variance are batch statistics, and the gradient flows through them; y is the output (for the ReLU mask). */
void norm_backward(const struct graph_node *node, struct slice x, struct slice dx, const float *mean,
                   const float *variance, const float *gamma, float *dgamma, float *dbeta, struct slice y,
                   struct slice dy);

void add_forward(const struct graph_node *node, struct slice x, struct slice x2, struct slice y);
void add_backward(const struct graph_node *node, struct slice dx, struct slice dx2, struct slice y, struct slice dy);

void max_pool_forward(const struct graph_node *node, struct slice x, struct slice y);
/* The gradient goes to the first of equal maxima, as in PyTorch. */
void max_pool_backward(const struct graph_node *node, struct slice x, struct slice dx, struct slice dy);
void avg_pool_forward(const struct graph_node *node, struct slice x, struct slice y);
void avg_pool_backward(const struct graph_node *node, struct slice dx, struct slice dy);
void mean_pool_forward(struct slice x, struct slice y);
void mean_pool_backward(struct slice dx, struct slice dy);

/* w [out][in], bias [out] */
void linear_forward(struct slice x, const float *w, const float *bias, struct slice y);
void linear_backward(struct slice x, struct slice dx, const float *w, float *dw, float *dbias, struct slice dy);

#endif
