/*
 * ops.h - every operation of a graph in plain C, forward and backward, as its definition reads
 *
 * Nothing here is fast and nothing is clever: this is what the other backends are compared with.  Values are float,
 * sums over more than a kernel are in double.  Gradients with respect to inputs are added to what is there, since a
 * channel may have several readers; gradients of parameters likewise, over the micro-batches of a step.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_REF_OPS_H
#define CHEX_TRAIN_REF_OPS_H

#include "graph/graph.h"

/*
 * A slice of a buffer for all images of a batch: value (n, c, y, x) is at data[n * image + (c * height + y) * width +
 * x].
 */
struct slice {
    float *data;
    size_t image; /* floats from one image to the next */
    unsigned images, channels, height, width;
};

/* w [out][in][kernel][kernel] */
void conv_forward(const struct graph_node *node, struct slice x, const float *w, struct slice y);
/* dx may have no data: the input of the network needs no gradient. */
void conv_backward(const struct graph_node *node, struct slice x, struct slice dx, const float *w, float *dw,
                   struct slice dy);

/* mean, variance [channels]: of the batch (biased), out. */
void norm_statistics(struct slice x, float *mean, float *variance);
/* running = (1 - momentum) running + momentum * batch, the variance unbiased as in PyTorch; count = images * pixels.
 * One value says nothing of a variance: then nothing changes (backend.h). */
void norm_update(unsigned channels, size_t count, const float *mean, const float *variance, float *running_mean,
                 float *running_variance);
/* y = gamma (x - mean) / sqrt(variance + epsilon) + beta, then ReLU where asked; all [channels]. */
void norm_forward(const struct graph_node *node, struct slice x, const float *mean, const float *variance,
                  const float *gamma, const float *beta, struct slice y);
/* mean and variance are those of the batch, through which the gradient flows too; y is the output (for the ReLU). */
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
