/*
 * args.h - the kernels, and the struct that each takes: for C and for CUDA
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
#ifndef CHEX_CUDA_KERNELS_ARGS_H
#define CHEX_CUDA_KERNELS_ARGS_H

#include "cuda/kernels/blocks.h"
#include "cuda/kernels/conv_args.h"
#include "cuda/kernels/norm_args.h"
#include "cuda/kernels/pool_args.h"

/* ---- what comes in (input.cu) ------------------------------------------------------------------------------- */

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

/* ---- what lies between master weights and packed ones (pack.cu) --------------------------------------------- */

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
    unsigned entries, blocks;       /* blocks: of all entries; those behind them begin a step */
    struct step_begin_args begin;   /* state NULL: there are none */
};

/*
 * To score, all at once, of running statistics: scale = gamma / sqrt(variance + epsilon), shift = beta - scale mean.
 * Weights of a convolution are packed as above, those of output channel o times scale[o] where a normalisation alone
 * reads what it writes, with shift as its bias; of other normalisations scale and shift are kept for a norm_view.
 */
struct fold_entry {
    struct pack_entry pack;             /* packed NULL: a normalisation of `out` channels, in and taps 1 */
    size_t gamma, beta, mean, variance; /* floats of the arenas of parameters and of statistics */
    float *scale, *shift;               /* [out]; shift NULL: weights without a normalisation; scale of one alone */
    unsigned first_block;               /* as in pack_entry */
};
struct fold_weights_args {
    const float *master, *statistics; /* parameters, or their average; running statistics */
    const struct fold_entry *entry;   /* [entries], in device memory */
    unsigned entries;
    float epsilon;
};

/* Values as floats, [count], a multiple of 8: a gradient of weights that cuDNN has made. */
#define WIDEN_THREADS 256
struct widen_args {
    const void *values;
    float *sum;
    unsigned count;
};

/* ---- the head (head.cu) ------------------------------------------------------------------------------------- */

#define HEAD_THREADS 256
/*
 * z(n, o) = sum over i of w(o, i) * x(n, i) + bias(o); gradients likewise.  z and its gradient are float.  Grid of both
 * gradients: blocks of a thread for each of images * in, then blocks of a thread for each of out * in + out.
 */
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
 * to state->loss; where it is not finite, state->bad becomes block->number, if it was STEP_BAD_NONE.  That
 * is block 0; behind it are those of the running statistics, if any.
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
    struct norm_running_args running;
};

/* ---- a step (step.cu) --------------------------------------------------------------------------------------- */

#define STEP_THREADS 256
#define STEP_EACH    4096 /* gradients that a block squares */

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
 * Decides whether a step is applied.  Loss, faults and requests of all ranks come from the tail of the sums.  A step is
 * not applied if the plan is halted, if a rank has a fault (which halts the plan), or if the loss or the norm is not
 * finite.  In the last case the loss scale is halved and the count of good steps restarts; without a loss scale, or at
 * the lowest one, the plan is halted.  After `grow` good steps the scale doubles, up to the highest one.  One CTA.
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
/*
 * As train/math/optimizer.h; sgd: momentum, moment2 NULL.  decay: that which is added to the gradient (Adam, SGD).  Of
 * a step that is applied, its running statistics become those of the plan.  Grid: blocks of a thread for each of count
 * parameters, then of statistics.
 */
struct optimizer_args {
    const struct step_state *state;
    float *parameter;
    const float *gradient;
    float *moment1, *moment2, *average; /* average NULL: none */
    unsigned count, sgd;
    float beta1, beta2, epsilon, momentum, decay, keep; /* keep: of the average */
    const float *running;
    float *statistics;
    unsigned statistics_count;
};

/* Between gradients and what the network carries, where that is bfloat16 (--wire). */
struct wire_args {
    float *gradient;
    uint16_t *wire;
    unsigned count;
};

#endif
