/*
 * build.h - the builder of a layout: private to layout.c and the files named below
 *
 * The contract: the walk is done twice, with the same calls in the same order.  The first walk only records which
 * launch touches which piece of memory, so that live ranges are known.  Then every piece gets its address (memory.h).
 * In the second walk the n-th build_allocate() finds the n-th piece again, and launches are kept.  So no decision may
 * depend on an address, and all calls for a launch come before its build_launch(), which ends the moment.
 *
 * Example, forward: convolution a, a BN that is fused into its reader, convolution c.  Two launches; after the first
 * walk the live ranges are:
 *
 *   launch  call                          piece                           live range
 *   0, a    build_write(a's output)       0: values                       0 .. 1
 *           build_epilogue_sums()         1: partial sums of them         0 .. 1
 *   1, c    build_prologue(BN)            2: mean, variance; reads 1      1 .. 1, and later by backward
 *           build_read(a's output)        reads 0
 *           build_write(c's output)       3: values                       1 .. (its last reader)
 *
 * If the second walk called build_write() of c before build_prologue(), it would find piece 2 for the values: their
 * sizes differ, so build_allocate() fails with CHEX_ERR_BUG.  Pieces 0 and 3 are both live at launch 1, so they do not
 * overlap; a piece of a later launch may get the memory of piece 1.
 *
 * The first error is kept, and later calls have no effect.  So callers check b->status once, at the end.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_PLAN_BUILD_H
#define CHEX_CUDA_PLAN_BUILD_H

#include "cuda/plan/conv.h"
#include "cuda/plan/fold.h"
#include "cuda/plan/gpu.h"
#include "cuda/plan/layout.h"
#include "cuda/plan/memory.h"
#include "cuda/plan/one_pass.h"

#define BUILD_NONE     SIZE_MAX
#define CUDA_TOO_LARGE "a micro-batch of %u images is larger than a GPU can count"

/* The pieces of memory of a buffer of the graph, as indices; BUILD_NONE: not taken yet. */
struct build_pieces {
    size_t value, gradient;
    size_t moments; /* float [2][channels]: mean, variance */
    size_t by;      /* float [2][channels]: by_beta, by_gamma of kernels/args.h */
};

/*
 * The per-channel partial sums that a launch has written, as in struct channel_sums; piece BUILD_NONE: there are none,
 * or they are reduced.
 */
struct build_sums {
    size_t piece;
    const float *running_mean;
    unsigned blocks, channels;
    /*
     * For the sums of a gradient: the BN that it belongs to, and the first of its channels.  They are all channels that
     * the BN read, or those of the last slice, and the others follow later.
     */
    const struct graph_node *norm;
    unsigned first;
};

/* wgrad partial sums that are not reduced yet. */
struct build_partial {
    size_t piece;
    unsigned weight; /* the parameter */
    struct splits_entry entry;
};

/* Data that only scoring needs. */
struct build_scoring {
    struct cuda_fold fold;
    size_t *at;     /* [node_count] offsets from base: packed weights, a bias, scale and shift */
    size_t entries; /* number of entries of fold_weights */
    size_t bytes;   /* total size */
    uintptr_t base; /* in the current walk */
};

struct cuda_builder {
    struct cuda_layout *layout;
    const struct graph *graph;
    struct cuda_gpu gpu; /* what the cost model knows of the chip */
    struct cuda_memory memory;
    uintptr_t lived; /* address of that memory */

    struct build_pieces *pieces; /* [buffer_count] */
    size_t *first;               /* [buffer_count] index of its first channel in the arrays over all channels */
    bool *value_written, *gradient_written; /* [channels of all buffers] has this walk written the channel? */
    bool *means_written;                    /* [channels of all buffers] has it written by_beta and by_gamma? */
    size_t channels;                        /* of all buffers */
    struct cuda_fold fold;                  /* for training */
    struct build_scoring scoring;
    struct build_sums *fresh;             /* [node_count] partial sums of the node's output, until a BN reads it */
    struct build_sums *pending;           /* [buffer_count] partial sums of its gradient, from the last BN's backward */
    size_t *winners;                      /* [node_count] the piece with the winners of a fused max pool */
    const struct graph_node **end;        /* [buffer_count] a pool whose gradient conv_one_pass computes, or NULL */
    bool *param_done;                     /* [param_count] is its gradient computed? */
    struct build_partial *partial;        /* [node_count] waiting to be reduced by one launch */
    size_t partials, splits;              /* number of these; number of those that are reduced */
    size_t partial_bytes, partial_floats; /* bytes of their pieces; floats of gradients that become final with them */
    uintptr_t *packed;                    /* [node_count] packed weights of a convolution */
    unsigned pack_blocks;                 /* CTAs of the launch that packs all of them */
    uintptr_t squares;                    /* partial sums of squares of the gradients */

    /* The current walk. */
    enum cuda_list_id list;
    enum arena_id weights; /* the parameters, or their average */
    bool score;            /* scoring: running statistics are folded into the weights, nothing is kept for backward */
    size_t moment;         /* index of the next launch */
    unsigned node;         /* node of the next launch, or CUDA_NO_NODE */
    size_t final;          /* index of the first parameter whose gradient is final; so are all after it */

    enum chex_status status;
    struct chex_error *err;
};

/* ---- build.c ------------------------------------------------------------------------------------------------ */

/* Fails with a text that starts with the name of the current node. */
void build_fail(struct cuda_builder *b, enum chex_status status, const char *why);

/* Returns the address of permanent memory for `count` elements, at the end of the layout so far. */
uintptr_t build_reserve(struct cuda_builder *b, size_t count, size_t size);

/*
 * build_allocate() takes a piece of memory.  build_at() returns its address and extends its live range to the next
 * launch.
 */
size_t build_allocate(struct cuda_builder *b, size_t bytes);
void *build_at(struct cuda_builder *b, size_t piece);

/*
 * Return the address of a slice for the next launch, to read its values (all must be written) or to write them (none
 * may be).
 */
void *build_read(struct cuda_builder *b, const struct graph_slice *s);
void *build_write(struct cuda_builder *b, const struct graph_slice *s);
/* Return the address of its gradient; *add: an earlier launch wrote there, so this one must accumulate. */
void *build_read_gradient(struct cuda_builder *b, const struct graph_slice *s);
void *build_write_gradient(struct cuda_builder *b, const struct graph_slice *s, unsigned *add);
/* Returns where the launch writes A (kernels/norm_args.h), the gradient of a slice that a BN read. */
void *build_write_norm_gradient(struct cuda_builder *b, const struct graph_slice *s, unsigned *add);

/* Would build_write_gradient() return *add? */
bool build_adds(const struct cuda_builder *b, const struct graph_slice *s);

/* Two float arrays for the channels of a buffer, starting at channel `first`, for the next launch. */
struct build_pair {
    float *one, *two;
};
/* Mean and variance. */
struct build_pair build_moments(struct cuda_builder *b, unsigned buffer, unsigned first);
/* by_beta and by_gamma of a slice; *add: an earlier launch wrote there. */
struct build_pair build_write_means(struct cuda_builder *b, const struct graph_slice *s, unsigned *add);
/* by_beta and by_gamma of a slice, to read; NULL if nothing was written. */
struct build_pair build_read_means(struct cuda_builder *b, const struct graph_slice *s);

/* Addresses in arenas: a parameter, from the current arena of weights; its gradient; a statistic of the plan. */
const float *build_weight(const struct cuda_builder *b, unsigned param);
float *build_gradient_of(const struct cuda_builder *b, unsigned param);
const float *build_statistic(const struct cuda_builder *b, unsigned stat, unsigned channel);

/* Returns the CTAs for a * c elements, `each` per CTA; fails if there are too many. */
unsigned build_blocks(struct cuda_builder *b, size_t a, size_t c, unsigned each);

/* Returns a launch of a kernel for the current node, with grid (x, 1, 1) and without arguments. */
struct cuda_op build_op(const struct cuda_builder *b, enum cuda_kernel_id kernel, unsigned x);
/* Appends it to the current list. */
void build_launch(struct cuda_builder *b, struct cuda_op op);
/*
 * build_mark_made(): the next launch computes the gradient of a parameter.  build_mark_final(): sets which gradients
 * are final after this launch.
 */
void build_mark_made(struct cuda_builder *b, unsigned param);
void build_mark_final(struct cuda_builder *b, struct cuda_op *op);

/* Is there only one rank? */
bool build_is_single_rank(const struct cuda_builder *b);

/* Pixels of one image of a buffer, and of all images. */
unsigned build_pixels(const struct cuda_builder *b, unsigned buffer);
unsigned build_all_pixels(const struct cuda_builder *b, unsigned buffer);
/* Returns the pixels per CTA of a kernel that sums over pixels, for this number of channels. */
unsigned build_pixels_each(const struct cuda_builder *b, unsigned pixels, unsigned channels);
/*
 * Returns the CTAs along x of a kernel with groups of NORM_CHANNELS channels that has a grid-stride loop over pixels.
 */
unsigned build_pixel_blocks(const struct cuda_builder *b, unsigned pixels, unsigned channels);

bool build_is_stem(const struct cuda_builder *b, const struct graph_node *n);
/* Returns which BNs are fused in the current walk. */
const struct cuda_fold *build_fused_norms(const struct cuda_builder *b);
/* Returns the slice that a node reads from memory: its own input, or the input of its fused BN. */
const struct graph_slice *build_source(const struct cuda_builder *b, const struct graph_node *n);
/* Returns the BN that the node applies in its prologue, or NULL. */
const struct graph_node *build_norm_before(const struct cuda_builder *b, const struct graph_node *n);
/* Scoring: returns the BN that is folded into a convolution, or NULL. */
const struct graph_node *build_norm_after(const struct cuda_builder *b, const struct graph_node *conv);
/* Returns a convolution with shapes and weights, but without tile shape and addresses. */
struct cuda_conv build_conv(struct cuda_builder *b, const struct graph_node *n, enum conv_kind kind);
/* Fails if the kernels do not support the convolution; appends its launch, or that of both gradients. */
void build_conv_check(struct cuda_builder *b, const struct cuda_conv *c);
void build_conv_launch(struct cuda_builder *b, struct cuda_op op);
bool build_is_cudnn(const struct cuda_builder *b, const struct graph_node *n); /* cuDNN runs it */

/* ---- tables.c ----------------------------------------------------------------------------------------------- */

/* Makes the tables of the layout and places the packed weights. */
void build_tables(struct cuda_builder *b);
/* Returns the entry that packs the weights of a convolution to this address, without first_block. */
struct pack_entry build_pack_entry(const struct cuda_builder *b, const struct graph_node *conv, void *packed);

/* ---- scoring.c ---------------------------------------------------------------------------------------------- */

/* Assigns offsets to all weights for scoring, and counts the entries. */
void build_scoring_places(struct cuda_builder *b);
/* Appends the launch that computes them, at scoring.base. */
void build_scoring_weights_all(struct cuda_builder *b, enum arena_id weights);
/* For scoring: the weights of a convolution; the bias from the BN folded into it; scale and shift of another BN. */
const void *build_scoring_weights(const struct cuda_builder *b, const struct graph_node *conv);
const float *build_scoring_bias(const struct cuda_builder *b, const struct graph_node *conv);
struct build_pair build_scoring_view(const struct cuda_builder *b, const struct graph_node *norm);

/* ---- sums.c ------------------------------------------------------------------------------------------------- */

/*
 * Per-channel partial sums.  A launch that writes values also writes their partial sums if a BN reads them.  The next
 * launch that applies the BN reduces them to mean and variance.
 */
struct build_sums build_no_sums(void);
/* Takes memory for this number of rows; returns the sums as an argument of the next launch. */
struct build_sums build_allocate_sums(struct cuda_builder *b, unsigned blocks, unsigned channels);
struct channel_sums build_sums_at(struct cuda_builder *b, const struct build_sums *sums);
/*
 * The launch that reduces them: its CTAs, the channels that each CTA reduces, and the CTAs that fit on a
 * multiprocessor.
 */
struct build_readers {
    unsigned blocks, channels, at_once;
};
/* For a launch whose CTAs reduce this number of channels each. */
struct build_readers build_readers(const struct cuda_builder *b, const struct cuda_op *op, unsigned channels);
/* For a kernel with groups of NORM_CHANNELS channels: `strides` CTAs per group. */
struct build_readers build_norm_readers(const struct cuda_builder *b, enum cuda_kernel_id kernel, unsigned strides,
                                        unsigned channels);
/* Appends a reduce_sums launch for the rows, if that is cheaper than reducing all of them in every CTA. */
void build_reduce_sums(struct cuda_builder *b, struct build_sums *sums, const struct build_readers *readers);

/*
 * For a launch that writes a slice with this number of CTAs: returns the partial sums that it must also write, or none.
 */
struct channel_sums build_epilogue_sums(struct cuda_builder *b, const struct graph_slice *s, unsigned blocks);
/* Appends a norm_sums launch for a slice whose producer wrote no partial sums. */
void build_launch_sums(struct cuda_builder *b, const struct graph_slice *s);

/* Call before a launch that applies a BN: appends a reduce_sums launch if needed. */
void build_reduce_before_conv(struct cuda_builder *b, const struct graph_node *norm, struct build_readers readers);
/* As build_reduce_before_conv(), for a kernel with groups of NORM_CHANNELS channels and `strides` CTAs per group. */
void build_reduce_before_norm_kernel(struct cuda_builder *b, const struct graph_node *norm, enum cuda_kernel_id kernel,
                                     unsigned strides);
struct norm_view build_prologue(struct cuda_builder *b, const struct graph_node *norm);

/* Sets the arguments for the running statistics of all BNs; returns the CTAs that they add to the next launch. */
unsigned build_running(struct cuda_builder *b, struct norm_running_args *a);

/* ---- finalize.c --------------------------------------------------------------------------------------------- */

/*
 * Deferred reductions of backward.  build_norm_gradient_sums() is for a launch that writes the gradient A of a slice
 * that a BN read: it returns the partial sums that the launch must also write.  Call build_finalize_pending() before:
 * it appends a launch that reduces the partial sums of an earlier BN.
 */
void build_finalize_pending(struct cuda_builder *b, const struct graph_node *norm);
struct channel_sums build_norm_gradient_sums(struct cuda_builder *b, const struct graph_node *norm,
                                             const struct graph_slice *s, unsigned blocks);
/*
 * Returns the partial sums for a second BN in the same launch; build_finalize_second() appends the launch that reduces
 * them.
 */
struct channel_sums build_second_gradient_sums(struct cuda_builder *b, const struct graph_node *norm,
                                               const struct graph_slice *s, unsigned blocks, struct build_sums *too);
void build_finalize_second(struct cuda_builder *b, const struct build_sums *too);
/*
 * Called when the producer of a slice needs its gradient: appends a launch that reduces the partial sums of the last BN
 * and finalizes the gradient.  Does nothing if no BN reads the slice.
 */
void build_finalize(struct cuda_builder *b, const struct graph_slice *s);
/*
 * Alternatively the next launch finalizes the gradient in its prologue.  build_can_finalize_in_prologue(): is this
 * possible?  The last BN must have read exactly this slice.  build_reduce_before_finalize() may append a reduce_sums
 * launch.  build_finalize_in_prologue() returns the argument of the next launch, which also makes the gradients of the
 * BN's parameters final.
 */
bool build_can_finalize_in_prologue(const struct cuda_builder *b, const struct graph_slice *s);
void build_reduce_before_finalize(struct cuda_builder *b, const struct graph_slice *s,
                                  const struct build_readers *readers);
struct finalize_view build_finalize_in_prologue(struct cuda_builder *b, const struct graph_slice *s);

/*
 * wgrad partial sums of a convolution: `count` floats of each of `splits`, in one piece.  build_reduce_splits_later()
 * queues them; build_reduce_splits() appends a launch that reduces all that are queued.
 */
struct build_splits {
    size_t piece, count, bytes;
    unsigned splits;
};
struct build_splits build_allocate_splits(struct cuda_builder *b, size_t count, unsigned splits);
void build_reduce_splits_later(struct cuda_builder *b, const struct graph_node *n, const struct build_splits *s);
void build_reduce_splits(struct cuda_builder *b);

/* ---- cudnn_launches.c --------------------------------------------------------------------------------------- */

void build_cudnn_forward(struct cuda_builder *b, const struct graph_node *n);
void build_cudnn_backward(struct cuda_builder *b, const struct graph_node *n);

/* ---- forward.c ---------------------------------------------------------------------------------------------- */

/* Returns the CTAs per group of a pool that is fused with a BN, over this number of pixels. */
unsigned build_pool_blocks(const struct cuda_builder *b, const struct graph_node *n, unsigned pixels);
/* Sets the shapes of a pool; with a fused BN, those of the BN's input. */
struct pool_args build_pool(const struct cuda_builder *b, const struct graph_node *n);

/* Returns the winners of a max pool that is fused with a BN, for the next launch; not for scoring. */
unsigned *build_winners(struct cuda_builder *b, const struct graph_node *n);

/* Appends the launches of all nodes and, when training, the loss. */
void build_forward(struct cuda_builder *b);

/* ---- end.c -------------------------------------------------------------------------------------------------- */

/*
 * The end of a dense block in backward (end.c).  The convolution that next writes the gradient of these channels also
 * computes the gradient of the pool and of the BN in front of it, for all channels of the slab except the last slice.
 *
 *   build_can_fuse_pool()     is this possible?  If so, the pool's own launch only handles *rest, that last slice
 *   build_fused_pool_shape()  the argument without addresses; dy_ld 0: nothing to do
 *   build_fused_pool()        the argument for the next launch, which also writes the partial sums `too`, one row per
 *                             CTA
 */
bool build_can_fuse_pool(struct cuda_builder *b, const struct graph_node *pool, const struct graph_node *norm,
                         struct graph_slice *rest);
struct one_pass_end build_fused_pool_shape(const struct cuda_builder *b, const struct graph_node *conv);
struct one_pass_end build_fused_pool(struct cuda_builder *b, const struct graph_node *conv, unsigned blocks,
                                     struct build_sums *too);

/* ---- backward.c --------------------------------------------------------------------------------------------- */

/* Returns the arguments of conv_one_pass for a convolution: shapes, but no addresses. */
struct cuda_one_pass build_one_pass(struct cuda_builder *b, const struct graph_node *n);

void build_backward(struct cuda_builder *b);

#endif
