/*
 * build.h - a layout while it is made: private to layout.c and to those that are named below
 *
 * The graph is walked twice by the same code (memory.h): the first walk counts launches as moments and says what
 * each of them touches, the second one knows the places and keeps the launches.  The first error stays, and what is
 * added behind it has no effect: callers look once, at the end.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_PLAN_BUILD_H
#define CHEX_CUDA_PLAN_BUILD_H

#include "cuda/plan/both.h"
#include "cuda/plan/conv.h"
#include "cuda/plan/fold.h"
#include "cuda/plan/layout.h"
#include "cuda/plan/memory.h"

#define BUILD_NONE     SIZE_MAX
#define CUDA_TOO_LARGE "a micro-batch of %u images is larger than a GPU can count"

/* Of a buffer of the graph, numbers of pieces of memory; BUILD_NONE: nothing has asked for it yet. */
struct build_pieces {
    size_t value, gradient;
    size_t moments; /* float [2][channels]: mean, variance */
    size_t by;      /* float [2][channels]: by_beta, by_gamma of kernels/args.h */
};

/* Sums of channels that a launch has left, as in struct channel_sums; piece BUILD_NONE: none, or they were added up. */
struct build_sums {
    size_t piece;
    const float *pivot;
    unsigned blocks, channels;
    /*
     * Of a gradient: whose gradient it is, and the first of these channels.  Of what a normalisation read, all channels
     * or those of the last slice, and the others later.
     */
    const struct graph_node *norm;
    unsigned first;
};

/* Sums of gradients of weights that are still partial. */
struct build_partial {
    size_t piece;
    unsigned weight; /* the parameter */
    struct splits_entry entry;
};

/* What scoring has of its own. */
struct build_scoring {
    struct cuda_fold fold;
    size_t *at;     /* [node_count] bytes behind base: packed weights, a bias, scale and shift */
    size_t entries; /* of fold_weights */
    size_t bytes;   /* of all */
    uintptr_t base; /* on the walk at hand */
};

struct cuda_builder {
    struct cuda_layout *layout;
    const struct graph *graph;
    struct cuda_memory memory;
    uintptr_t lived; /* where that memory lies */

    struct build_pieces *pieces;  /* [buffer_count] */
    size_t *first;                /* [buffer_count] its first channel among those of all buffers */
    bool *value_is, *gradient_is; /* [channels of all buffers]: was it written? */
    bool *by_is;                  /* the same of by_beta and by_gamma */
    size_t channels;              /* of all buffers */
    struct cuda_fold fold;        /* of training */
    struct build_scoring scoring;
    struct build_sums *fresh;             /* [node_count] of what the node wrote, until a normalisation reads it */
    struct build_sums *left;              /* [buffer_count] of its gradient, by the last normalisation that was there */
    const struct graph_node **end;        /* [buffer_count] a pool whose gradient conv_both takes in, or NULL */
    bool *param_is;                       /* [param_count]: was its gradient made? */
    struct build_partial *partial;        /* [node_count] that wait for one launch */
    size_t partials, splits;              /* how many of these, and of those that were added */
    size_t partial_bytes, partial_floats; /* of their pieces; of the gradients that become final with them */
    uintptr_t *packed;                    /* [node_count] weights of a convolution as the kernels read them */
    unsigned pack_blocks;                 /* of the launch that packs all of them */
    uintptr_t squares;                    /* partial sums of squares of gradients */

    /* The walk at hand. */
    enum cuda_list_id list;
    enum arena_id weights; /* parameters, or their average */
    bool score;            /* running statistics in weights, and nothing is kept for a way back */
    size_t moment;         /* of the next launch */
    unsigned node;         /* that it belongs to, or CUDA_NO_NODE */
    size_t final;          /* parameters from here on have a final gradient */

    enum chex_status status;
    struct chex_error *err;
};

/* ---- build.c ------------------------------------------------------------------------------------------------ */

/* Fail with a text that begins with the name of the node at hand. */
void build_fail(struct cuda_builder *b, enum chex_status status, const char *why);

/* Room that stays, for `count` things behind what there is. */
uintptr_t build_place(struct cuda_builder *b, size_t count, size_t size);

/* A piece of memory, and its address for the launch at hand, which touches it. */
size_t build_take(struct cuda_builder *b, size_t bytes);
void *build_at(struct cuda_builder *b, size_t piece);

/* A slice of a buffer for the launch at hand: its values to read (all were written) or to write (none was). */
void *build_read(struct cuda_builder *b, const struct graph_slice *s);
void *build_write(struct cuda_builder *b, const struct graph_slice *s);
/* The same of gradients; *add: an earlier launch wrote there, so this one adds. */
void *build_read_gradient(struct cuda_builder *b, const struct graph_slice *s);
void *build_write_gradient(struct cuda_builder *b, const struct graph_slice *s, unsigned *add);
/* The same where a normalisation read the slice: what is written is A of kernels/args.h. */
void *build_write_masked(struct cuda_builder *b, const struct graph_slice *s, unsigned *add);

/* Would it add? */
bool build_adds(const struct cuda_builder *b, const struct graph_slice *s);

/* Two arrays of a float for each channel of a buffer, from channel `first` on, for the launch at hand. */
struct build_pair {
    float *one, *two;
};
/* Mean and variance. */
struct build_pair build_moments(struct cuda_builder *b, unsigned buffer, unsigned first);
/* by_beta and by_gamma of a slice; *add: an earlier launch wrote there. */
struct build_pair build_by(struct cuda_builder *b, const struct graph_slice *s, unsigned *add);
/* The same to read; NULL where nothing was written. */
struct build_pair build_read_by(struct cuda_builder *b, const struct graph_slice *s);

/* Places in arenas: a parameter of the weights at hand, its gradient, a statistic of the plan or of the step. */
const float *build_weight(const struct cuda_builder *b, unsigned param);
float *build_gradient_of(const struct cuda_builder *b, unsigned param);
const float *build_statistic(const struct cuda_builder *b, unsigned stat, unsigned channel);

/* Blocks of one thing for each of a * c, `each` a block; a plan for which that is too much fails. */
unsigned build_blocks(struct cuda_builder *b, size_t a, size_t c, unsigned each);

/* A launch without an argument yet: of this kernel, this node. */
struct cuda_op build_op(const struct cuda_builder *b, enum cuda_kernel_id kernel, unsigned x);
/* It is the next of the list at hand. */
void build_launch(struct cuda_builder *b, struct cuda_op op);
/* A launch makes the gradient of a parameter; and what of all gradients is final behind that launch. */
void build_made(struct cuda_builder *b, unsigned param);
void build_final(struct cuda_builder *b, struct cuda_op *op);

/* Is there no other rank to sum with? */
bool build_alone(const struct cuda_builder *b);

/* Pixels of an image of a buffer, and of all images. */
unsigned build_pixels(const struct cuda_builder *b, unsigned buffer);
unsigned build_all_pixels(const struct cuda_builder *b, unsigned buffer);
/* Pixels of a block that sums over pixels, for so many channels; the grid is what follows. */
unsigned build_each(const struct cuda_builder *b, unsigned pixels, unsigned channels);
/* Blocks along x of a kernel of groups of NORM_CHANNELS channels, for so many pixels, of which it sums none. */
unsigned build_strides(const struct cuda_builder *b, unsigned pixels, unsigned channels);

bool build_is_stem(const struct cuda_builder *b, const struct graph_node *n);
/* Which normalisations are written nowhere, on the walk at hand. */
const struct cuda_fold *build_norms(const struct cuda_builder *b);
/* What a node reads: its own slice, or that of the normalisation through which it reads. */
const struct graph_slice *build_source(const struct cuda_builder *b, const struct graph_node *n);
/* The normalisation through which it reads, or NULL. */
const struct graph_node *build_through(const struct cuda_builder *b, const struct graph_node *n);
/* To score: the normalisation that a convolution does itself, or NULL. */
const struct graph_node *build_behind(const struct cuda_builder *b, const struct graph_node *conv);
/* Shapes and weights of a convolution; its form and places are missing. */
struct cuda_conv build_conv(struct cuda_builder *b, const struct graph_node *n, enum conv_kind kind);
/* Is it one that the kernels do?  Its launch, or that of both gradients. */
void build_conv_check(struct cuda_builder *b, const struct cuda_conv *c);
void build_conv_launch(struct cuda_builder *b, struct cuda_op op);
bool build_is_plain(const struct cuda_builder *b, const struct graph_node *n); /* it is cuDNN's */

/* ---- tables.c ----------------------------------------------------------------------------------------------- */

/* The tables of the layout, and places of packed weights. */
void build_tables(struct cuda_builder *b);
/* The weights of a convolution, packed to this place; without its first block. */
struct pack_entry build_pack_entry(const struct cuda_builder *b, const struct graph_node *conv, void *packed);

/* ---- scoring.c ---------------------------------------------------------------------------------------------- */

/* Where everything lies in the piece of memory of these weights; how many entries there are. */
void build_scoring_places(struct cuda_builder *b);
/* The launch that makes them, at scoring.base. */
void build_scoring_weights_all(struct cuda_builder *b, enum arena_id weights);
/* On such a walk: weights, the bias of a convolution with a normalisation behind it; scale and shift of another one. */
const void *build_scoring_weights(const struct cuda_builder *b, const struct graph_node *conv);
const float *build_scoring_bias(const struct cuda_builder *b, const struct graph_node *conv);
struct build_pair build_scoring_view(const struct cuda_builder *b, const struct graph_node *norm);

/* ---- sums.c ------------------------------------------------------------------------------------------------- */

/*
 * Sums of channels from who leaves them to who adds them.  A launch that writes values leaves sums where a
 * normalisation reads them; the next launch that sees them makes mean and variance.
 */
struct build_sums build_no_sums(void);
/* Room for sums of so many blocks; and as an argument of the launch at hand. */
struct build_sums build_take_sums(struct cuda_builder *b, unsigned blocks, unsigned channels);
struct channel_sums build_sums_at(struct cuda_builder *b, const struct build_sums *sums);
/* Who adds them: each of so many blocks, sums of so many channels; at_once: blocks that a multiprocessor has. */
struct build_readers {
    unsigned blocks, channels, at_once;
};
/* Of a kernel of groups of NORM_CHANNELS channels: blocks of each group, of which those of so many channels add. */
struct build_readers build_norm_readers(unsigned strides, unsigned channels);
/* Fewer blocks of sums, by a launch before the one at hand, where that is less work than all of them for each. */
void build_fold(struct cuda_builder *b, struct build_sums *sums, const struct build_readers *readers);

/* A slice is written by the launch at hand in so many blocks: the sums that it leaves, or none. */
struct channel_sums build_leave_sums(struct cuda_builder *b, const struct graph_slice *s, unsigned blocks);
/* A slice was written by a kernel that leaves no sums. */
void build_make_sums(struct cuda_builder *b, const struct graph_slice *s);

/* Before a launch that sees a slab through a normalisation. */
void build_before_view(struct cuda_builder *b, const struct graph_node *norm, struct build_readers readers);
/* The same before a kernel of groups of NORM_CHANNELS channels, with so many blocks of each. */
void build_before_norm_view(struct cuda_builder *b, const struct graph_node *norm, unsigned strides);
struct norm_view build_view(struct cuda_builder *b, const struct graph_node *norm);

/* Running statistics of all normalisations, by so many blocks of the launch at hand. */
unsigned build_running(struct cuda_builder *b, struct norm_running_args *a);

/* ---- settle.c ----------------------------------------------------------------------------------------------- */

/*
 * What backward leaves for later.  build_masked(): the launch at hand leaves the gradient of a normalisation, of a
 * slice of what it read, in so many blocks; build_before_masked() comes before it.
 */
void build_before_masked(struct cuda_builder *b, const struct graph_node *norm);
struct channel_sums build_masked(struct cuda_builder *b, const struct graph_node *norm, const struct graph_slice *s,
                                 unsigned blocks);
/* The same of a second normalisation, and the launch behind that one, which adds its sums up. */
struct channel_sums build_masked_too(struct cuda_builder *b, const struct graph_node *norm, const struct graph_slice *s,
                                     unsigned blocks, struct build_sums *too);
void build_settle_too(struct cuda_builder *b, const struct build_sums *too);
/* The gradient of a slice is asked for by who wrote the slice: it is finished where normalisations have read it. */
void build_settle(struct cuda_builder *b, const struct graph_slice *s);
/*
 * Or the launch that asks finishes it while loading.  Can it?  The last normalisation has read this slice alone.
 * build_before_finish() comes before that launch, build_finish() is for it; it makes gradients of parameters final.
 */
bool build_can_finish(const struct cuda_builder *b, const struct graph_slice *s);
void build_before_finish(struct cuda_builder *b, const struct graph_slice *s, const struct build_readers *readers);
struct norm_finish build_finish(struct cuda_builder *b, const struct graph_slice *s);

/*
 * Partial sums that a convolution leaves of its gradient of weights, so many of all splits in a piece; they are added
 * when there are enough of them.
 */
struct build_splits {
    size_t piece, count, bytes;
    unsigned splits;
};
struct build_splits build_take_splits(struct cuda_builder *b, size_t count, unsigned splits);
void build_add_later(struct cuda_builder *b, const struct graph_node *n, const struct build_splits *s);
void build_add_all(struct cuda_builder *b);

/* ---- plain.c ------------------------------------------------------------------------------------------------ */

void build_plain_forward(struct cuda_builder *b, const struct graph_node *n);
void build_plain_backward(struct cuda_builder *b, const struct graph_node *n);

/* ---- forward.c ---------------------------------------------------------------------------------------------- */

/* Blocks of each group of a pool behind a normalisation, over so many pixels. */
unsigned build_pool_strides(const struct cuda_builder *b, const struct graph_node *n, unsigned pixels);
/* Shapes of a pool; with `through`, of its source. */
struct pool_args build_pool(const struct cuda_builder *b, const struct graph_node *n);

/* All nodes; with training the loss behind them. */
void build_forward(struct cuda_builder *b);

/* ---- end.c -------------------------------------------------------------------------------------------------- */

/*
 * The end of a dense block backward: the gradient of a pool and the normalisation before it, of all channels of the
 * slab but the last slice, is made by the convolution that writes the gradient of these channels next.
 * build_can_end(): can that one?  Then the rest, that slice, is left to the launch at hand.  Of that convolution
 * build_end_shape() is what it takes in, without places, and build_end() the same for the launch at hand, which leaves
 * `too` in so many blocks; dy_ld 0, and no sums: nothing.
 */
bool build_can_end(struct cuda_builder *b, const struct graph_node *pool, const struct graph_node *norm,
                   struct graph_slice *rest);
struct both_end build_end_shape(const struct cuda_builder *b, const struct graph_node *conv);
struct both_end build_end(struct cuda_builder *b, const struct graph_node *conv, unsigned blocks,
                          struct build_sums *too);

/* ---- backward.c --------------------------------------------------------------------------------------------- */

/* A convolution whose gradients could come in one pass: shapes, and of places none. */
struct cuda_both build_both(struct cuda_builder *b, const struct graph_node *n);

void build_backward(struct cuda_builder *b);

#endif
