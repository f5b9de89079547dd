/*
 * cuda_kernels.h - the kernels, and the struct that each takes: for C and for CUDA
 *
 * Activations are slabs: value (pixel, channel) of all images at [pixel * ld + channel], channels fastest, so a slice
 * of channels is a pointer and its ld.  Channels and lds are multiples of 8, and pointers of 16 bytes.  Weights are
 * packed as [out][kernel y][kernel x][in].  Values are those of CUDA_VALUE, sums and statistics float.  Threads of a
 * launch are counted in 32 bits, of which each has eight values: a slab has at most 64 GiB of halves.
 *
 * Each kernel is there once for each type of value, with its name behind its own: conv_forward_64x64_fp16.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_KERNELS_H
#define CHEX_CUDA_KERNELS_H

#ifndef __CUDACC_RTC__
#include <stddef.h>
#include <stdint.h>
#else
typedef unsigned char uint8_t;
#endif

/* ---- what the host says, and what stays on the device ------------------------------------------------------------ */

/*
 * Kernels of a graph are recorded once, so nothing that changes from step to step is in an argument: it lies in one of
 * these blocks, in device memory.
 */

/* Of a micro-batch. */
struct batch_block {
    double scale;    /* of the loss: batch.h */
    unsigned images; /* that are no padding; at least 1 */
    unsigned number; /* of the micro-batch in its step; gradients of number 0 begin from zero */
};

/* With the last micro-batch of a step: struct step_end (backend.h). */
struct end_block {
    double fade;             /* (1 - momentum)^behind */
    unsigned behind, rest;   /* micro-batches of the ranks behind this one: whole ones, images of a partial one */
    unsigned faults, wishes; /* of this rank: 0 or 1, bits */
};

/* Of the update. */
struct step_block {
    double rate, clip; /* clip 0: never */
};

#define STEP_BAD_NONE 0xffffffffu

/* What stays from kernel to kernel and from step to step; the host reads a copy as the result of a step. */
struct step_state {
    /* From step to step, and in a checkpoint. */
    double applied;   /* steps that changed something: t of Adam */
    float loss_scale; /* of the next step; 1 without one */
    unsigned good;    /* steps since it changed */
    unsigned halted;  /* nothing is applied until the host clears it */
    /* Of the step at hand. */
    float unscale;            /* 1 / the loss scale of this step: gradients of weights are multiplied by it */
    double loss;              /* of this rank so far; after step_decide of all ranks */
    double norm;              /* of the gradients of all ranks, before clipping */
    unsigned bad;             /* the first micro-batch of this rank whose loss is not finite, or STEP_BAD_NONE */
    unsigned apply;           /* does this step change anything? */
    unsigned faults, wishes;  /* of all ranks: how many, bits */
    float factor;             /* of the gradients: clipping */
    float rate, root, shrink; /* of Adam: rate / correction, 1 / sqrt(correction), AdamW's decay */
};

/*
 * Behind the gradients lie the running statistics of the step and this tail, floats: what is summed over the ranks.
 * The loss is two floats, the larger and what it lacks.
 */
#define TAIL_WISHES 8
enum { TAIL_LOSS, TAIL_LOSS_REST, TAIL_FAULTS, TAIL_WISH, TAIL_FLOATS = TAIL_WISH + TAIL_WISHES };

/* ---- what comes in (cuda_input.cu) ------------------------------------------------------------------------------- */

#define INPUT_THREADS 256

struct crop_place {
    unsigned short x, y;
    unsigned flip;
};

/*
 * The stem reads gray levels, not three channels.  A convolution of 7 x 7 with stride 2 and padding 3 over planes of
 * side x side is one of 4 x 4 with stride 1 over cells of 2 x 2 pixels, of which each has two values: (level - 128) /
 * 256, and 1 for "inside"; so a cell is eight values, 16 bytes, [y][x][plane].  Cells lie as
 * [images][STEM_ROWS(side)][STEM_COLUMNS(side)], column 0 is two cells left of the image: with STEM_IN values side by
 * side the four columns of a tap row are one piece of k.  What is outside, and an image of weight 0, is all 0.
 *
 * Convolution: kernel_h 4, kernel_w 1, stride 1, pad_h 2, pad_w 0, in STEM_IN, x_ld STEM_LD, height STEM_ROWS, width
 * STEM_COLUMNS, out_height and out_width STEM_OUT.
 */
#define STEM_KERNEL        7
#define STEM_LD            8
#define STEM_IN            32
#define STEM_OUT(side)     (((side) + 1) / 2)
#define STEM_ROWS(side)    (((side) + 1) / 2)
#define STEM_COLUMNS(side) (STEM_OUT(side) + 3)

/*
 * From a slot that the host filled, or the store of images, to where the kernels look.  As batch.h has it.  A thread
 * has a cell; pixels, index and crop of an image of weight 0 are not read.
 */
struct input_args {
    const struct batch_block *from;
    const unsigned *index; /* [images] of the store, or all bits set: in pixels */
    const struct crop_place *crop;
    const float *weight_from;
    const uint8_t *label_from;
    const uint8_t *pixels; /* [images][source][source] */
    const uint8_t *store;  /* the same; NULL: no image has an index */
    struct batch_block *block;
    float *weight;  /* [images] */
    uint8_t *label; /* [images][outputs] */
    void *cells;
    unsigned images, source, side, outputs;
};

/* ---- convolutions (cuda_gemm.h) ---------------------------------------------------------------------------------- */

/*
 * out(n, y, x, o) = sum over ky, kx, i of w(o, ky, kx, i) * in(n, y * stride + ky - pad_h, x * stride + kx - pad_w, i).
 * forward: reads x and w, writes y.  data: x becomes the gradient, of y's, or what it has is added to.  weights:
 * partial becomes the gradient of w, a sum for each of the splits, over what lies between split * steps_each and
 * (split + 1) * steps_each steps of GEMM_DEEP pixels.
 */
struct conv_args {
    void *x;        /* [images * height * width][x_ld] */
    void *y;        /* [images * out_height * out_width][y_ld] */
    const void *w;  /* [out][kernel_h][kernel_w][in] */
    float *partial; /* [splits][out][kernel_h][kernel_w][in] */
    unsigned images, height, width, out_height, out_width;
    unsigned in, out, x_ld, y_ld; /* channels; the stem's x_ld is less than in */
    unsigned kernel_h, kernel_w, stride, pad_h, pad_w;
    unsigned add; /* data: to what x has */
    unsigned steps_each;
};
#define GEMM_DEEP   32
#define GEMM_STAGES 3

/*
 * X(name, rows, columns, warp rows, warp columns): the forms of a tile.  Rows are pixels (weights: output channels),
 * columns are output channels (data, weights: input channels).
 */
#define GEMM_TILES(X)            \
    X(128x128, 128, 128, 32, 64) \
    X(64x128, 64, 128, 32, 64)   \
    X(64x64, 64, 64, 32, 32)     \
    X(128x32, 128, 32, 32, 32)
#define GEMM_THREADS(rows, columns, warp_rows, warp_columns) ((rows) / (warp_rows) * ((columns) / (warp_columns)) * 32)

/* Shared memory of a block, for values of `size` bytes: the stages, and then the tile as it leaves. */
#define GEMM_STAGE_BYTES(rows, columns, size) (GEMM_STAGES * ((rows) + (columns)) * GEMM_DEEP * (size))
#define GEMM_OUT_BYTES(rows, columns, size)   ((rows) * ((columns) + 8) * (size))
#define GEMM_SHARED(rows, columns, size)                                         \
    (GEMM_STAGE_BYTES(rows, columns, size) > GEMM_OUT_BYTES(rows, columns, size) \
         ? GEMM_STAGE_BYTES(rows, columns, size)                                 \
         : GEMM_OUT_BYTES(rows, columns, size))

/* ---- what lies between master weights and packed ones (cuda_pack.cu) --------------------------------------------- */

#define PACK_THREADS 256
/*
 * All weights of convolutions at once: packed(o, ky, kx, i) = master(o, i, ky, kx).  The stem's are those of its cells:
 * plane 0 the sum over c of w(o, c, ky, kx) * 256 / (255 deviation[c]), plane 1 that of
 * w(o, c, ky, kx) * (128 / 255 - mean[c]) / deviation[c], with batch.h's mean and deviation; 0 where the 4 x 4 cells
 * reach beyond the 7 x 7.
 */
struct pack_entry {
    size_t master;          /* float of the arena of parameters */
    void *packed;           /* [out][taps][in]; the stem [out][4][STEM_IN] */
    unsigned out, in, taps; /* of master */
    unsigned stem;
    unsigned first_block; /* blocks first_block .. that of the next entry - 1 of PACK_THREADS packed values each */
};
struct pack_weights_args {
    const float *master;            /* parameters, or their average */
    const struct pack_entry *entry; /* [entries], in device memory */
    unsigned entries;
};
/* gradient(o, i, ky, kx) = state->unscale * (sum of the splits, in their order) + (block->number > 0 ? gradient : 0) */
struct sum_splits_args {
    const float *partial;
    float *gradient;
    const struct batch_block *block;
    const struct step_state *state;
    unsigned out, in, taps, splits;
};
/* The same for the stem, [out][3][7][7]: what pack_weights does, turned round. */
struct sum_stem_args {
    const float *partial; /* [splits][out][4][STEM_IN] */
    float *gradient;
    const struct batch_block *block;
    const struct step_state *state;
    unsigned out, splits;
};

/* ---- batch normalisation (cuda_norm.cu) -------------------------------------------------------------------------- */

/*
 * Several normalisations may read one channel, each with a gamma and beta of its own; mean and variance over the batch
 * belong to the channel and are made once, when it was written: norm_sums and norm_moments.  For each normalisation
 * norm_finish and norm_apply.
 */
#define NORM_THREADS     256
#define NORM_CHANNELS    32                                          /* of a block that sums */
#define NORM_SUMS_SHARED (NORM_THREADS / 32 * 2 * NORM_CHANNELS * 4) /* two sums of each warp */
/*
 * Of the pixels of images whose weight is not 0: sums of x - pivot and of its square, one of each for each block.
 * pivot: a value near the mean (the running mean), so that the squares do not cancel.
 */
struct norm_sums_args {
    const void *x;
    const float *pivot;                    /* [channels] */
    const float *weight;                   /* [images]; NULL: all 1 */
    float *partial;                        /* [blocks][2][channels] */
    unsigned images, pixels, channels, ld; /* pixels: of an image */
    unsigned each;                         /* pixels, of all images, of a block */
};
/* Of each channel: mean, variance (biased; 0 of one value), 1 / sqrt(variance + epsilon). */
struct norm_moments_args {
    const float *partial, *pivot;
    const struct batch_block *block;
    float *mean, *variance, *inverse; /* [channels] */
    unsigned pixels, channels, blocks;
    float epsilon;
};
/* gamma and beta as scale and shift; running statistics move, unless the count is below NORM_LEAST. */
#define NORM_LEAST 2 /* GRAPH_NORM_LEAST of graph.h */
struct norm_finish_args {
    const float *mean, *variance, *inverse, *gamma, *beta;
    const struct batch_block *block;
    float *scale, *shift;                   /* y = x * scale + shift */
    float *running_mean, *running_variance; /* of the step at hand */
    unsigned pixels, channels;
    float momentum;
};
/* To score: scale and shift from running statistics. */
struct norm_running_args {
    const float *mean, *variance, *gamma, *beta;
    float *scale, *shift;
    unsigned channels;
    float epsilon;
};
/* y = x * scale + shift, then ReLU, and 0 of images of weight 0; x and y may be the same slab. */
struct norm_apply_args {
    const void *x;
    void *y;
    const float *scale, *shift;
    const float *weight;                                 /* [images] */
    unsigned images, pixels, channels, x_ld, y_ld, relu; /* pixels: of an image */
};
/* With g = dy where y > 0 (or no ReLU): sums of g and of g * (x - mean) * inverse, as norm_sums. */
struct norm_gradient_sums_args {
    const void *x, *y, *dy;
    const float *mean, *inverse;
    float *partial; /* [blocks][2][channels] */
    unsigned pixels, channels, x_ld, y_ld, dy_ld, relu, each;
};
/* dbeta, dgamma from the sums, multiplied by state->unscale, added to where block->number > 0; and the two factors of
 * the gradient of data. */
struct norm_gradient_finish_args {
    const float *partial;
    const struct batch_block *block;
    const struct step_state *state;
    float *dgamma, *dbeta;
    float *by_beta, *by_gamma; /* sums / count */
    unsigned pixels, channels, blocks;
};
/* dx (+)= gamma * inverse * (g - by_beta - xhat * by_gamma); images of weight 0 have no part in the means. */
struct norm_gradient_args {
    const void *x, *y, *dy;
    void *dx;
    const float *mean, *inverse, *gamma, *by_beta, *by_gamma, *weight;
    unsigned images, pixels, channels, x_ld, y_ld, dy_ld, dx_ld, relu, add;
};

/* ---- pools, sums of two branches (cuda_pool.cu) ------------------------------------------------------------------ */

#define POOL_THREADS 256
/*
 * Over kernel x kernel; what lies outside counts neither for a maximum nor, without padding, for a mean.  The
 * gradient of a maximum goes to the first of equal ones.  Gradients are gathered: an input asks the windows that it
 * is in.
 */
struct pool_args {
    const void *x; /* max_pool_gradient too */
    void *y;
    const void *dy;
    void *dx;
    unsigned images, height, width, out_height, out_width, channels;
    unsigned x_ld, y_ld, dy_ld, dx_ld;
    unsigned kernel, stride, pad, add; /* add: to what dx has */
};
/* y(image, channel) = the mean over `pixels` pixels; dx = dy / pixels. */
struct mean_pool_args {
    const void *x;
    void *y; /* [images][y_ld] */
    const void *dy;
    void *dx;
    unsigned images, pixels, channels, x_ld, y_ld, dy_ld, dx_ld, add;
};
/* y = x + x2, then ReLU; g = dy where y > 0, dx (+)= g, dx2 (+)= g; pixels: of all images. */
struct branches_args {
    const void *x, *x2;
    void *y;
    const void *dy;
    void *dx, *dx2;
    unsigned pixels, channels, x_ld, x2_ld, y_ld, dy_ld, dx_ld, dx2_ld, relu, add, add2;
};

/* ---- the head (cuda_head.cu) ------------------------------------------------------------------------------------- */

#define HEAD_THREADS 256
/* z(n, o) = sum over i of w(o, i) * x(n, i) + bias(o); gradients likewise.  z and its gradient are float. */
struct linear_args {
    const void *x;       /* [images][x_ld] */
    const float *w;      /* [out][in], master weights */
    const float *bias;   /* [out] */
    const float *weight; /* [images]; z of images of weight 0 is 0 */
    float *z;            /* [images][out] */
    const float *dz;
    void *dx;          /* [images][dx_ld] */
    float *dw, *dbias; /* state->unscale * sum, added to where block->number > 0 */
    const struct batch_block *block;
    const struct step_state *state;
    unsigned images, in, out, x_ld, dx_ld;
};
/*
 * As train/math/loss.h; dz is multiplied by state->loss_scale, the loss is not.  The loss of the micro-batch is added
 * to state->loss; where it is not finite, state->bad becomes block->number, if it was STEP_BAD_NONE.  One block.
 */
struct loss_args {
    const float *z;
    const uint8_t *label;         /* [images][out] */
    const float *weight;          /* [images] */
    const float *positive_weight; /* [out]; NULL: all 1 */
    const struct batch_block *block;
    struct step_state *state;
    float *dz;
    unsigned images, out, focal;
    float gamma;
};

/* ---- a step (cuda_step.cu) --------------------------------------------------------------------------------------- */

#define STEP_THREADS 256
#define STEP_EACH    4096 /* gradients that a block squares */

/*
 * A step begins: loss, bad and unscale of the state, and running statistics from where the last step left them, or from
 * zero (ranks but the first).
 */
struct step_begin_args {
    struct step_state *state;
    const float *statistics;
    float *running;
    unsigned count, from_zero;
};
/* A rank's last micro-batch was there: running statistics fade as arena_fade_statistics() says; the tail is filled. */
struct step_end_args {
    const struct end_block *block;
    const struct step_state *state;
    const unsigned *pixels; /* [count] of an image, of the normalisation that a statistic belongs to */
    float *running, *tail;
    unsigned count, batch; /* batch: images of a whole micro-batch */
    float momentum;
};
/* partial[block]: sum of squares of STEP_EACH gradients, in double. */
struct gradient_squares_args {
    const float *gradient;
    double *partial;
    unsigned count;
};
/*
 * What becomes of a step.  Loss, faults and wishes of all ranks come from the tail.  Nothing is applied where the plan
 * is halted; where a rank has a fault, which halts it; and where loss or norm are not finite.  Then the loss scale
 * falls by half and the good steps begin from 0; without one, or where it is at the lowest, the plan is halted.  After
 * `grow` good steps it doubles, up to the highest.  One block.
 */
struct step_decide_args {
    const double *partial;
    const struct step_block *block;
    const float *tail;
    struct step_state *state;
    unsigned blocks, scaled, grow; /* scaled: there is a loss scale */
    unsigned alone;                /* no other rank: the loss is there already, in double */
    float least, most;
    double beta1, beta2, decay; /* decay: AdamW's, else 0; SGD: betas 0 */
};
/* As train/math/optimizer.h; sgd: momentum, moment2 NULL.  decay: that which is added to the gradient (Adam, SGD). */
struct optimizer_args {
    const struct step_state *state;
    float *parameter;
    const float *gradient;
    float *moment1, *moment2, *average; /* average NULL: none */
    unsigned count, sgd;
    float beta1, beta2, epsilon, momentum, decay, keep; /* keep: of the average */
};
/* A step that is applied: its running statistics are those of the plan. */
struct step_statistics_args {
    const struct step_state *state;
    const float *running;
    float *statistics;
    unsigned count;
};

#endif
