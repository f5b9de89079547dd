/*
 * cuda_build.h - a layout while it is made: private to cuda_layout.c, cuda_forward.c, cuda_backward.c
 *
 * The graph is walked twice by the same code (cuda_memory.h): the first walk counts launches as moments and says what
 * each of them touches, the second one knows the places and keeps the launches.  The first error stays, and what is
 * added behind it has no effect: callers look once, at the end.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_BUILD_H
#define CHEX_CUDA_BUILD_H

#include "gpu/cuda_layout.h"
#include "gpu/cuda_memory.h"

#define BUILD_NONE SIZE_MAX

/* Of a buffer of the graph, numbers of pieces of memory; BUILD_NONE: nothing has asked for it yet. */
struct build_pieces {
    size_t value, gradient;
    size_t moments; /* float [3][channels]: mean, variance, 1 / sqrt(variance + epsilon) */
};

struct cuda_builder {
    struct cuda_layout *layout;
    const struct graph *graph;
    struct cuda_memory memory;
    uintptr_t lived; /* where that memory lies */

    struct build_pieces *pieces;  /* [buffer_count] */
    size_t *first;                /* [buffer_count] its first channel among those of all buffers */
    bool *value_is, *gradient_is; /* [channels of all buffers]: was it written? */
    size_t channels;              /* of all buffers */
    uintptr_t *packed;            /* [node_count] weights of a convolution as the kernels read them */
    unsigned pack_blocks;         /* of the launch that packs all of them */
    uintptr_t squares;            /* partial sums of squares of gradients */

    /* The walk at hand. */
    enum cuda_list_id list;
    enum arena_id weights; /* parameters, or their average */
    bool score;            /* running statistics, and nothing is kept for a way back */
    size_t moment;         /* of the next launch */
    unsigned node;         /* that it belongs to, or CUDA_NO_NODE */
    size_t final;          /* floats of the arena of gradients from here on are final */

    enum chex_status status;
    struct chex_error *err;
};

/* ---- cuda_build.c ------------------------------------------------------------------------------------------------ */

/* Fail with a text that begins with the name of the node at hand. */
void build_fail(struct cuda_builder *b, enum chex_status status, const char *why);

/* A piece of memory, and its address for the launch at hand, which touches it. */
size_t build_take(struct cuda_builder *b, size_t bytes);
void *build_at(struct cuda_builder *b, size_t piece);

/* A slice of a buffer for the launch at hand: its values to read (all were written) or to write (none was). */
void *build_read(struct cuda_builder *b, const struct graph_slice *s);
void *build_write(struct cuda_builder *b, const struct graph_slice *s);
/* The same of gradients; *add: an earlier launch wrote there, so this one adds. */
void *build_read_gradient(struct cuda_builder *b, const struct graph_slice *s);
void *build_write_gradient(struct cuda_builder *b, const struct graph_slice *s, unsigned *add);

/* Mean, variance and inverse of channel `first` of a buffer, for the launch at hand. */
struct build_moments {
    float *mean, *variance, *inverse;
};
struct build_moments build_moments(struct cuda_builder *b, unsigned buffer, unsigned first);

/* Places in arenas: a parameter of the weights at hand, its gradient, a statistic of the plan or of the step. */
const float *build_weight(const struct cuda_builder *b, unsigned param);
float *build_gradient_of(const struct cuda_builder *b, unsigned param);
const float *build_statistic(const struct cuda_builder *b, unsigned stat, unsigned channel);
float *build_running(const struct cuda_builder *b, unsigned stat);

/* Blocks of one thing for each of a * c, `each` a block; a plan for which that is too much fails. */
unsigned build_blocks(struct cuda_builder *b, size_t a, size_t c, unsigned each);

/* A launch without an argument yet: of this kernel, this node. */
struct cuda_op build_op(const struct cuda_builder *b, enum cuda_kernel_id kernel, unsigned x);
/* It is the next of the list at hand. */
void build_launch(struct cuda_builder *b, struct cuda_op op);
/* The launch makes these parameters' gradients final: what lies behind them was so before. */
void build_final(struct cuda_builder *b, struct cuda_op *op, unsigned first, unsigned last);

/* Pixels of an image of a buffer, and of all images. */
unsigned build_pixels(const struct cuda_builder *b, unsigned buffer);
unsigned build_all_pixels(const struct cuda_builder *b, unsigned buffer);
/* Pixels of a block that sums over pixels, for so many channels; the grid is what follows. */
unsigned build_each(const struct cuda_builder *b, unsigned pixels, unsigned channels);

/* ---- cuda_forward.c ---------------------------------------------------------------------------------------------- */

bool build_is_stem(const struct cuda_builder *b, const struct graph_node *n);
/* Shapes and weights of a convolution; x, y and partial are missing, and the form. */
struct cuda_conv build_conv(struct cuda_builder *b, const struct graph_node *n, enum conv_kind kind);
/* Is it one that the kernels do? */
void build_conv_launch(struct cuda_builder *b, struct cuda_conv *c);
struct pool_args build_pool(const struct cuda_builder *b, const struct graph_node *n);

/* All nodes; with training the loss behind them. */
void build_forward(struct cuda_builder *b);

/* ---- cuda_backward.c --------------------------------------------------------------------------------------------- */

void build_backward(struct cuda_builder *b);

#endif
