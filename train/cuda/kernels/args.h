/*
 * args.h - the argument struct of each kernel, for C and for CUDA
 *
 * Activations are NHWC slabs.  Element (pixel, channel) is at [pixel * ld + channel]; the pixels of all images are
 * counted in one sequence.  So a slice of channels is a pointer and an ld.  Channel counts and lds are multiples of 8,
 * pointers are aligned to 16 bytes.  Weights are packed as [out][kernel y][kernel x][in].  Values have the type
 * CUDA_VALUE; sums and statistics are float.  A launch counts its threads in 32 bits, with eight values each, so a slab
 * of halves has at most 64 GiB.
 *
 * Each kernel exists once per type of value, with the type at the end of its name: conv_fprop_64x64_fp16.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_KERNELS_ARGS_H
#define CHEX_CUDA_KERNELS_ARGS_H

#include "cuda/kernels/blocks.h"
#include "cuda/kernels/conv_args.h"
#include "cuda/kernels/norm_args.h"
#include "cuda/kernels/pool_args.h"

/* ---- input (input.cu) --------------------------------------------------------------------------------------- */

#define INPUT_THREADS 256

/* As struct crop, with the same units; the formulas of input.cu are those of crop.c. */
struct crop_place {
    unsigned short x, y;
    unsigned flip;
    int sine, cosine, gain;
};

/*
 * The stem reads gray levels instead of three channels, in a space-to-depth layout.  A 7 x 7 convolution with stride 2
 * and padding 3 over an image of side x side equals a 4 x 4 convolution with stride 1 over cells of 2 x 2 pixels.  Each
 * pixel has two values: (level - 128) / 256, and 1 for "inside".  So a cell has eight values, 16 bytes, [y][x][plane].
 *
 * cells   [images][STEM_ROWS(side)][STEM_COLUMNS(side)][STEM_LD]; column 0 is two cells left of the image
 *
 * Four adjacent cells have STEM_IN consecutive values, so the four columns of a tap row are one run of k.  Pixels
 * outside, and images of weight 0, are all 0.
 *
 * The convolution has kernel_h 4, kernel_w 1, stride 1, pad_h 2, pad_w 0, in STEM_IN, x_ld STEM_LD, height STEM_ROWS,
 * width STEM_COLUMNS, out_height and out_width STEM_OUT.
 */
#define STEM_KERNEL        7
#define STEM_LD            8
#define STEM_IN            32
#define STEM_OUT(side)     (((side) + 1) / 2)
#define STEM_ROWS(side)    (((side) + 1) / 2)
#define STEM_COLUMNS(side) (STEM_OUT(side) + 3)

/*
 * Copies a micro-batch from a slot, or from the store of images, to the buffers of the kernels; see batch.h.  One
 * thread per cell.  Pixels, index and crop of an image of weight 0 are not read, unless it is the partner of another
 * one.  With mix_from, index, crop and pixels have one more image.
 */
struct input_args {
    const struct batch_block *from;
    const unsigned *index; /* [images]: index in the store; all bits set: the image is in pixels */
    const struct crop_place *crop;
    const float *weight_from;
    const float *mix_from; /* NULL: no image is mixed */
    const uint8_t *label_from;
    const uint8_t *pixels; /* [images][source][source] */
    const uint8_t *store;  /* as pixels; NULL: no image has an index */
    struct batch_block *block;
    float *weight;  /* [images] */
    float *mix;     /* [images]; NULL without mix_from */
    uint8_t *label; /* [images][outputs] */
    void *cells;
    unsigned images, source, side, outputs;
};

/* ---- packing of weights (pack.cu) --------------------------------------------------------------------------- */

#define PACK_THREADS 256
#define PACK_FOUND   16 /* bytes of shared memory: the entry that a CTA of pack_weights or sum_all has found */
/*
 * Packs the weights of all convolutions: packed(o, ky, kx, i) = master(o, i, ky, kx).  The stem has weights for its
 * cells: plane 0 is the sum over c of w(o, c, ky, kx) * 256 / (255 deviation[c]), and plane 1 the sum over c of
 * w(o, c, ky, kx) * (128 / 255 - mean[c]) / deviation[c], with batch.h's mean and deviation.  Taps of the 4 x 4 cells
 * that are outside the 7 x 7 kernel are 0.
 *
 * A CTA has PACK_EIGHTS groups of eight adjacent inputs of an output, with all their taps; for the stem it has
 * PACK_THREADS packed weights.  cuda_pack_blocks() of launch.h returns the CTAs of an entry.  At most PACK_THREADS
 * taps.
 */
#define PACK_EIGHTS(taps) (PACK_THREADS / (taps))
#define PACK_SHARED       (PACK_FOUND + PACK_THREADS * 9 * 4) /* one extra float for each eight */
struct pack_entry {
    size_t master;          /* index of a float in the arena of parameters */
    void *packed;           /* [out][taps][in]; the stem [out][4][STEM_IN] */
    unsigned out, in, taps; /* shape of the master weights */
    unsigned stem;
    unsigned first_block; /* its CTAs are first_block .. first_block of the next entry - 1 */
};
struct pack_weights_args {
    const float *master;            /* parameters, or their average */
    const struct pack_entry *entry; /* [entries], in device memory */
    unsigned entries, blocks;       /* blocks: CTAs of all entries; further CTAs start a step */
    struct step_begin_args begin;   /* state NULL: there are no further CTAs */
};

/*
 * Prepares all weights for scoring, with running statistics: scale = gamma / sqrt(variance + epsilon), shift = beta -
 * scale * mean.  Weights are packed as above.  If a BN is the only consumer of a convolution, the weights of output
 * channel o are multiplied by scale[o], and shift is the bias.  For other BNs, scale and shift are stored for a
 * norm_view.
 */
struct fold_entry {
    struct pack_entry pack;             /* packed NULL: a BN with `out` channels, in and taps 1 */
    size_t gamma, beta, mean, variance; /* indices of floats in the arenas of parameters and of statistics */
    float *scale, *shift;               /* [out]; shift NULL: weights without a BN; scale: only for a BN on its own */
    unsigned first_block;               /* as in pack_entry; a CTA has PACK_THREADS values */
};
struct fold_weights_args {
    const float *master, *statistics; /* parameters, or their average; running statistics */
    const struct fold_entry *entry;   /* [entries], in device memory */
    unsigned entries;
    float epsilon;
};

/* Converts values to floats: [count], a multiple of 8, the gradient of weights from cuDNN. */
#define WIDEN_THREADS 256
struct widen_args {
    const void *values;
    float *sum;
    unsigned count;
};

/* ---- the head (head.cu) ------------------------------------------------------------------------------------- */

#define HEAD_THREADS  256
#define LABEL_UNKNOWN 255 /* CHEX_LABEL_UNKNOWN of chex.h, which kernels do not include */
#define LABEL_OPPOSED 2   /* of loss.h, which kernels do not include */
/*
 * z(n, o) = sum over i of w(o, i) * x(n, i) + bias(o), and its gradients.  z and dz are float.  The grid of the
 * gradients:  first CTAs with one thread for each of images * in, then CTAs with one thread for each of out * in + out.
 */
struct linear_args {
    const void *x;       /* [images][x_ld] */
    const float *w;      /* [out][in], master weights */
    const float *bias;   /* [out] */
    const float *weight; /* [images]; z of images of weight 0 is 0 */
    float *z;            /* [images][out] */
    const float *dz;
    void *dx;          /* [images][dx_ld] */
    float *dw, *dbias; /* state->unscale * sum; accumulated if block->number > 0 */
    const struct batch_block *block;
    const struct step_state *state;
    unsigned images, in, out, x_ld, dx_ld;
};
/*
 * The class activation maps of train/maps/maps.h: map(n, o, p) = sum over i of w(o, i) * y(n, p, i), where y is the
 * activation at pixel p.  With scale, y = relu(x * scale + shift), as in a norm_view for scoring.
 */
struct class_maps_args {
    const void *x;              /* [images * pixels][x_ld] */
    const float *scale, *shift; /* [in]; NULL: x is the activation */
    const float *w;             /* [out][in], master weights */
    const float *weight;        /* [images]; maps of images of weight 0 are 0 */
    float *map;                 /* [images][out][pixels] */
    unsigned images, pixels, in, out, x_ld, relu;
};
/*
 * The loss of train/math/loss.h.  dz is multiplied by state->loss_scale, the loss is not.  CTA 0 adds the loss and the
 * numbers of labels of the micro-batch to the state; if the loss is not finite and state->bad is STEP_BAD_NONE,
 * state->bad becomes block->number.
 * Further CTAs, if any, update the running statistics.
 */
struct loss_args {
    const float *z;
    const uint8_t *label;         /* [images][out] */
    const float *weight;          /* [images] */
    const float *mix;             /* [images]; NULL: all 0 */
    const float *positive_weight; /* [out]; NULL: all 1 */
    const struct batch_block *block;
    struct step_state *state;
    float *dz;
    unsigned images, out, focal;
    float gamma;
    double smoothing;
    struct norm_running_args running;
};

/* ---- a step (step.cu) --------------------------------------------------------------------------------------- */

#define STEP_THREADS 256
#define STEP_EACH    4096 /* gradients per CTA of gradient_squares */

/* After a rank's last micro-batch: decays the running statistics like arena_fade_statistics(), and fills the tail. */
#define END_SHARED sizeof(struct end_block)
struct step_end_args {
    const struct end_block *block; /* in a run: mapped host memory, so each read crosses PCIe */
    const struct step_state *state;
    const unsigned *pixels; /* [count] pixels per image of the BN to which the statistic belongs */
    float *running, *tail;
    unsigned count, batch; /* batch: images of a full micro-batch */
    float momentum;
};
/* partial[CTA]: sum of squares of STEP_EACH gradients, in double. */
struct gradient_squares_args {
    const float *gradient;
    double *partial;
    unsigned count;
};
/*
 * Decides whether a step is applied.  Loss, labels, faults and requests of all ranks come from the tail of the sums.  A
 * step is not applied if the plan is halted, if a rank has a fault (which halts the plan), or if loss or norm is not
 * finite.  In the last case the loss scale is halved and the count of good steps restarts; without a loss scale, or at
 * the lowest one, the plan is halted.  After `grow` good steps the scale doubles, up to the highest one.  One CTA.
 */
struct step_decide_args {
    const double *partial;
    const struct step_block *block; /* in a run: mapped host memory */
    const float *tail;
    struct step_state *state;
    struct step_state *result;     /* a copy of the state for the host, in mapped memory; NULL: none */
    unsigned blocks, scaled, grow; /* scaled: there is a loss scale */
    unsigned alone;                /* a single rank: loss and labels of the state are complete, in double */
    float least, most;
    double beta1, beta2, decay; /* decay: for AdamW, otherwise 0; betas: of Adam and AdamW, otherwise 0 */
};
/*
 * The optimizers of train/math/optimizer.h; AdamW is RULE_ADAM.  moment2 is NULL if the rule has none.  decay: added to
 * the gradient (not AdamW).  If the step is applied, its running statistics become those of the plan.  Grid: CTAs with
 * one thread for each of count parameters, then for each statistic.
 */
enum optimizer_rule { RULE_ADAM, RULE_SGD, RULE_SQUARES, RULE_ADADELTA }; /* squares: Adagrad and RMSprop */
struct optimizer_args {
    const struct step_state *state;
    float *parameter;
    const float *gradient;
    float *moment1, *moment2, *average; /* average NULL: none */
    unsigned count, rule;
    /*
     * m = keep1 * m + take1 * g, and so on: b1 and 1 - b1 of Adam; b2 and 1 - b2, or 1 and 1 for Adagrad; of the
     * average.  The host computes them in double, because 1 - 0.999f has an error of 1e-5.
     */
    float keep1, take1, keep2, take2, keep_average, take_average;
    float epsilon, momentum, decay;
    const float *running;
    float *statistics;
    unsigned statistics_count;
};

/* Converts gradients to the wire type, if that is bfloat16 (--wire), and back. */
struct wire_args {
    float *gradient;
    uint16_t *wire;
    unsigned count;
};

#endif
