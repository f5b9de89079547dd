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
typedef unsigned short uint16_t;
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
 * A step begins, by blocks of pack_weights: loss, bad and unscale of the state, and running statistics from where the
 * last step left them, or from zero (ranks but the first).
 */
struct step_begin_args {
    struct step_state *state;
    const float *statistics;
    float *running;
    unsigned count, from_zero;
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

/* ---- normalisations that nobody writes (cuda_norm.h) ------------------------------------------------------------- */

/*
 * A normalised tensor that one convolution or one pool reads is written nowhere.  The reader makes it of the slab while
 * loading; who writes a slab leaves sums of its channels; the gradient of a normalisation is masked, summed and added
 * where the gradient of data is made, and is finished when the writer of a slice asks for it.  For the channel c of a
 * slab, with count = block->images * pixels and the readers i of c:
 *
 *   y_i  = relu(x * scale_i + shift_i);  scale_i = gamma_i / sqrt(variance + epsilon)
 *   shift_i = beta_i - scale_i * mean
 *   g_i  = dy_i where y_i > 0 (in float, before it is rounded), else 0
 *   A    = sum over i of gamma_i g_i                      in the slab of gradients, as values
 *   by_beta  = sum over i of gamma_i sum(g_i) / count     float, of the channel
 *   by_gamma = sum over i of gamma_i sum(g_i xhat) / count
 *   dx   = (A - by_beta - xhat by_gamma) / sqrt(variance + epsilon);  0 of images of weight 0
 */

/*
 * Sums of channels as the blocks of a writer leave them, [blocks][2][channels]: of x - pivot and of its square, or of
 * g and of g * xhat; of images whose weight is not 0.  The reader adds the blocks, in double and in their order, so all
 * blocks of all readers have the same bits.  Where that is too much for each block of a reader, fold_sums makes fewer.
 */
struct channel_sums {
    float *partial;     /* NULL: none */
    const float *pivot; /* [channels]: a value near the mean; NULL for those of a gradient */
    unsigned blocks, channels;
};

/*
 * How a reader sees channels 0 .. channels - 1 of a slab.  gamma NULL: as they lie.  Channels fresh_first ..
 * fresh_first + fresh.channels - 1 have only sums yet: every block makes mean and variance of them for itself, and
 * block (0, 0, 0) writes them to mean and variance for the launches behind.
 */
struct norm_view {
    float *mean, *variance;          /* [channels], of the batch (variance biased, 0 of one value); to score: NULL */
    const float *gamma, *beta;       /* [channels]; with mean NULL scale and shift, which fold_weights has made */
    const struct batch_block *block; /* NULL to score: no fresh sums */
    struct channel_sums fresh;       /* partial NULL: none */
    unsigned fresh_first;
    unsigned pixels; /* of an image: for the count */
    unsigned relu;
    float epsilon;
};

/*
 * Shared memory of a block that sees channels through a view (cuda_norm.h): 2 or 4 floats a channel, channels by eight;
 * and while it adds fresh sums, NORM_FRESH channels at a time.
 */
#define NORM_FRESH                          128
#define NORM_TABLE_BYTES(channels, figures) (((channels) + 7) / 8 * 8 * (figures)*4)
#define NORM_SCRATCH                        8192

/* ---- convolutions (cuda_gemm.h) ---------------------------------------------------------------------------------- */

/*
 * out(n, y, x, o) = sum over ky, kx, i of w(o, ky, kx, i) * in(n, y * stride + ky - pad_h, x * stride + kx - pad_w, i).
 * forward: reads x and w, writes y.  data: x becomes the gradient, of y's, or what it has is added to.  weights:
 * partial becomes the gradient of w, a sum for each of the splits, over what lies between split * steps_each and
 * (split + 1) * steps_each steps of GEMM_DEEP pixels.
 *
 * With norm.gamma: forward and weights read x through `norm` (a pixel outside is 0 behind the normalisation).  data:
 * the product is dy of the normalisation; x (+)= gamma * g, and `sums` are those of g and g * xhat, of the `in`
 * channels; `values` is x itself, as x lies.  forward with sums.partial: those of y, rounded, of the `out` channels;
 * without them y may have a bias, and ReLU behind it.
 * Blocks of sums are blocks down, of tiles_each tiles each; rows of images of weight 0 are no part of a sum.
 *
 * Steps of weights are those of pixels of x, or, with a stride beyond 1, of y.  by_width and by_height divide by sides
 * of what a kernel counts: of x for data and for weights with stride 1, else of y.
 */
struct conv_divisor {
    unsigned multiplier, shift;
};
struct conv_args {
    void *x;        /* [images * height * width][x_ld] */
    void *y;        /* [images * out_height * out_width][y_ld] */
    const void *w;  /* [out][kernel_h][kernel_w][in] */
    float *partial; /* [splits][out][kernel_h][kernel_w][in] */
    unsigned images, height, width, out_height, out_width;
    unsigned in, out, x_ld, y_ld; /* channels; the stem's x_ld is less than in */
    unsigned kernel_h, kernel_w, stride, pad_h, pad_w;
    unsigned add;                            /* data: to what x has */
    unsigned steps_each;                     /* weights */
    unsigned tiles_each;                     /* forward, data: tiles down of a block */
    struct conv_divisor by_width, by_height; /* with steps_each and tiles_each filled by who chooses a form */
    struct norm_view norm;                   /* of x */
    const void *values;                      /* data with norm */
    struct channel_sums sums;
    const float *weight; /* [images], with sums; NULL: all 1 */
    const float *bias;   /* forward: [out], or NULL */
    unsigned relu;       /* forward without sums: of y */
};
/* Both gradients of one convolution in one launch: they read y, and neither reads what the other writes. */
struct conv_pair_args {
    struct conv_args data, weights;
};
#define GEMM_DEEP          32
#define GEMM_STAGES        3
#define GEMM_NORM_CHANNELS 2048 /* at most, of a forward convolution that reads x through `norm` */

/*
 * X(name, rows, columns, warp rows, warp columns): the forms of a tile.  Rows are pixels (weights: input channels, of
 * 1x1 output channels), columns are output channels (data: input channels; weights: those of all taps, of 1x1 input
 * channels).  All kinds of products have GEMM_TILES, but weights of larger kernels, whose rows are few, have
 * GEMM_TAP_TILES.
 */
#define GEMM_TILES(X)            \
    X(128x128, 128, 128, 32, 64) \
    X(96x128, 96, 128, 48, 64)   \
    X(64x128, 64, 128, 32, 64)   \
    X(64x64, 64, 64, 32, 32)     \
    X(128x32, 128, 32, 32, 32)
#define GEMM_TAP_TILES(X)      \
    X(128x96, 128, 96, 32, 48) \
    X(64x96, 64, 96, 32, 48)   \
    X(32x128, 32, 128, 32, 32)
/* X(name, of data, of weights): both gradients in one launch, with forms of the same number of threads. */
#define GEMM_PAIRS(X)                              \
    X(128x128, 128, 128, 32, 64, 128, 128, 32, 64) \
    X(64x128, 64, 128, 32, 64, 64, 128, 32, 64)    \
    X(64x64, 64, 64, 32, 32, 64, 64, 32, 32)       \
    X(128x32, 128, 32, 32, 32, 128, 32, 32, 32)
#define GEMM_TAP_PAIRS(X)                                \
    X(128x128_128x96, 128, 128, 32, 64, 128, 96, 32, 48) \
    X(96x128_128x96, 96, 128, 48, 64, 128, 96, 64, 48)   \
    X(64x128_128x96, 64, 128, 32, 64, 128, 96, 64, 48)   \
    X(64x64_128x96, 64, 64, 32, 32, 128, 96, 64, 48)     \
    X(64x64_64x96, 64, 64, 32, 32, 64, 96, 32, 48)
#define GEMM_THREADS(rows, columns, warp_rows, warp_columns) ((rows) / (warp_rows) * ((columns) / (warp_columns)) * 32)

/* Shared memory of a block, for values of `size` bytes: the stages, and then the tile as it leaves. */
#define GEMM_STAGE_BYTES(rows, columns, size) (GEMM_STAGES * ((rows) + (columns)) * GEMM_DEEP * (size))
#define GEMM_OUT_BYTES(rows, columns, size)   ((rows) * ((columns) + 8) * (size))
#define GEMM_SHARED(rows, columns, size)                                         \
    (GEMM_STAGE_BYTES(rows, columns, size) > GEMM_OUT_BYTES(rows, columns, size) \
         ? GEMM_STAGE_BYTES(rows, columns, size)                                 \
         : GEMM_OUT_BYTES(rows, columns, size))

/*
 * conv_halo.cu: rows and columns of its tile, lines of x with the halo, taps, and values that are 0.  Two stages of
 * lines and of weights of all taps.
 */
#define HALO_ROWS         128
#define HALO_COLUMNS      32
#define HALO_LINES        244 /* the halo of 3 x 3 in rows of up to 57 pixels */
#define HALO_TAPS         9
#define HALO_ZEROS        64
#define HALO_SHARED(size) ((2 * (HALO_LINES + HALO_TAPS * HALO_COLUMNS) * GEMM_DEEP + HALO_ZEROS) * (size))

/* And behind it the table of `norm`: of all input channels (forward), or of those of the tile. */
#define GEMM_TABLE_FORWARD(in)      NORM_TABLE_BYTES(((in) + GEMM_DEEP - 1) / GEMM_DEEP * GEMM_DEEP, 2)
#define GEMM_TABLE_DATA(columns)    NORM_TABLE_BYTES(columns, 4)
#define GEMM_TABLE_WEIGHTS(columns) NORM_TABLE_BYTES(columns, 2)

/* ---- both gradients of a pointwise convolution in one pass (cuda_both.h) ----------------------------------------- */

/*
 * How the gradient of the slice y becomes finished while it is loaded.  values NULL: it is finished already.  Else
 * conv.y is A of the slice, and what is written above of normalisations makes dy of it, which is written nowhere.
 * by_beta and by_gamma are those of the slice, of readers that were settled (NULL: there were none).  The sums of the
 * last reader may come as they were left: then every block adds them to these, and block (0, 0, 0) writes dbeta and
 * dgamma of that reader (times state->unscale; added to where block->number > 0); nobody writes by_beta and by_gamma
 * any more.
 */
struct norm_finish {
    const void *values;           /* [pixels][values_ld], of the slice's first channel */
    const float *mean, *variance; /* [out], as all that follow */
    const float *by_beta, *by_gamma;
    struct channel_sums sums; /* of `out` channels; partial NULL: none */
    const float *gamma;       /* with sums, as dgamma, dbeta and state */
    float *dgamma, *dbeta;
    const struct step_state *state;
    const struct batch_block *block;
    unsigned values_ld;
    float epsilon;
};
/*
 * kernel 1 x 1, stride 1, no padding.  As CONV_DATA: x (+)= gamma * g, or (+)= the product where norm.gamma is NULL;
 * `values` is x itself as x lies, `sums` those of g and g * xhat, of the `in` channels (partial NULL: none).  As
 * CONV_WEIGHTS: partial becomes the gradient of w, a sum for each stripe.  A stripe has steps_each tiles of BOTH_PIXELS
 * pixels; both sums have a block for each stripe.  The gradient of pixels of images of weight 0 counts as 0.
 *
 * Grid: slices of `columns` input channels, stripes.  stages: tiles that are in shared memory at a time, 1 or 2.
 */
struct conv_both_args {
    struct conv_args conv;
    struct norm_finish finish;
    unsigned stages;
};
#define BOTH_PIXELS  64
#define BOTH_OUT     128  /* output channels, at most */
#define BOTH_IMAGES  1024 /* at most */
#define BOTH_THREADS 256
/* X(name, input channels of a block, blocks of a multiprocessor that registers are enough for). */
#define BOTH_FORMS(X) \
    X(64x64, 64, 2)   \
    X(64x128, 128, 1)
/* Shared memory: of a stage A, values and x of a tile, and which of its pixels count; beside it weights, tables. */
#define BOTH_STAGE_BYTES(columns, size) (BOTH_PIXELS * (2 * BOTH_OUT + (columns)) * (size) + BOTH_PIXELS)
#define BOTH_FINISH_FIGURES             3
#define BOTH_NORM_FIGURES               5
#define BOTH_TABLE_BYTES(columns) \
    (NORM_TABLE_BYTES(BOTH_OUT, BOTH_FINISH_FIGURES) + NORM_TABLE_BYTES(columns, BOTH_NORM_FIGURES) + BOTH_IMAGES / 8)
#define BOTH_SHARED(columns, size, stages) \
    (BOTH_OUT * (columns) * (size) + BOTH_TABLE_BYTES(columns) + (stages)*BOTH_STAGE_BYTES(columns, size))

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

/* ---- batch normalisation (cuda_norm.cu) -------------------------------------------------------------------------- */

/*
 * Sums of a slab whose writer leaves none, and a normalised tensor that is written: one before a sum of two branches,
 * or before a convolution of cuDNN.
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
/*
 * y = x seen through `norm`, and 0 of images of weight 0; x and y may be the same slab.  Grid: any number of blocks
 * across the pixels, groups of NORM_CHANNELS channels.
 */
struct norm_apply_args {
    const void *x;
    void *y;
    struct norm_view norm;
    const float *weight;                           /* [images]; NULL: all 1 */
    unsigned images, pixels, channels, x_ld, y_ld; /* pixels: of an image */
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

/* ---- normalisations with what is beside them (cuda_settle.cu, cuda_norm_pool.cu) --------------------------------- */

/*
 * Kernels that go through a slab have groups of NORM_CHANNELS channels across, and down the pixels any number of
 * blocks, which stride over the grid: NORM_ROWS pixels at a time.
 */
#define NORM_ROWS (NORM_THREADS / 4)

/*
 * Fewer blocks of sums: block b of `to` is the sum of the blocks b * each .. (b + 1) * each - 1 of `from`, each =
 * from.blocks / to.blocks rounded up, in an order that depends on numbers alone.  Grid: to.blocks, groups of
 * NORM_CHANNELS channels.
 */
#define FOLD_SHARED (NORM_THREADS / 16 * 2 * NORM_CHANNELS * 8)
struct fold_sums_args {
    struct channel_sums from, to;
};
/*
 * What a normalisation (the last reader of a slice) has left is added up, and the slice's gradient is finished.
 * For all `sums.channels` channels that it read: dbeta and dgamma (times state->unscale; added to where block->number >
 * 0).  For those beside the slice: by_beta, by_gamma (+)= gamma * sum / count.  The slice is channels first ..
 * first + channels - 1 of them: its gradient, which is A, becomes dx in place; 0 of images of weight 0.
 *
 * Grid: F + G * S blocks.  The first F = groups of NORM_CHANNELS channels of sums.channels write what belongs to a
 * channel.  Behind them S blocks of each of the G groups of the slice go through the pixels.  These add the sums of
 * their own channels too, so no block waits for another.  They read by_beta and by_gamma of the slice, which nobody
 * writes: no reader of the slice is left that could ask.
 */
#define SETTLE_SHARED (NORM_SCRATCH + 4 * NORM_CHANNELS * 4)
struct norm_settle_args {
    struct channel_sums sums;
    const float *gamma;           /* [sums.channels] */
    float *dgamma, *dbeta;        /* [sums.channels] */
    float *by_beta, *by_gamma;    /* [sums.channels], of the slab */
    unsigned add;                 /* to by_beta and by_gamma */
    unsigned first, channels;     /* of the slice; channels 0: none */
    void *gradient;               /* of the slice's first channel */
    const void *x;                /* the same */
    const float *mean, *variance; /* [sums.channels] */
    const float *weight;          /* [images]; NULL: all 1 */
    const struct batch_block *block;
    const struct step_state *state;
    unsigned images, pixels, x_ld, gradient_ld; /* pixels: of an image */
    float epsilon;
};
/*
 * Backward of a normalisation that was written (norm_apply): A (+)= gamma * g, and its sums.  Images of weight 0 have
 * none.  Grid: sums.blocks, groups of NORM_CHANNELS channels.
 */
#define NORM_VIEW_SHARED (NORM_SCRATCH + NORM_TABLE_BYTES(NORM_CHANNELS, 4))
struct norm_mask_args {
    const void *x, *dy;
    void *gradient; /* A */
    struct norm_view norm;
    struct channel_sums sums;
    const float *weight; /* [images]; NULL: all 1 */
    unsigned images, pixels, channels, x_ld, dy_ld, gradient_ld, add;
};
/*
 * Running statistics of all normalisations of a micro-batch, by blocks of the loss; they move unless the count is below
 * NORM_LEAST.
 */
#define NORM_LEAST 2 /* GRAPH_NORM_LEAST of graph.h */
struct running_entry {
    const float *mean, *variance;
    size_t running_mean, running_variance; /* floats of `running` */
    unsigned pixels, channels;
    unsigned first_block; /* blocks of HEAD_THREADS channels */
};
struct norm_running_args {
    const struct running_entry *entry; /* [entries], in device memory */
    float *running;
    const struct batch_block *block;
    unsigned entries;
    float momentum;
};
/*
 * Gradients of weights of several convolutions in one launch: gradient(o, i, ky, kx) = state->unscale * (sum of the
 * splits) + (block->number > 0 ? gradient : 0); of the stem, [out][3][7][7], what pack_weights does, turned round.
 * partial: [splits][out][taps][in], of the stem [splits][out][4][STEM_IN].
 *
 * A block has SUM_QUADS times four neighbouring inputs of an output, with all their taps, and SUM_PARTS threads share
 * the splits of each; of the stem SUM_STEM weights [out][ky][kx].  Blocks of an entry: cuda_sum_blocks() of
 * cuda_launch.h.  At most PACK_THREADS taps.
 */
#define SUM_PARTS(taps, splits) ((splits) <= 8 || (taps) > PACK_THREADS / 16 ? 1u : (splits) <= 32 ? 4u : 16u)
#define SUM_QUADS(taps, splits) (PACK_THREADS / ((taps)*SUM_PARTS(taps, splits)))
#define SUM_STEM                32
#define SUM_SHARED              (PACK_THREADS * 2 * 16) /* a row of four floats more for each tap and part */
struct splits_entry {
    const float *partial; /* by 16 bytes */
    size_t gradient;      /* float of the arena of gradients */
    unsigned out, in, taps, splits, stem;
    unsigned first_block; /* as of pack_entry */
};
struct sum_all_args {
    const struct splits_entry *entry; /* [entries], in device memory */
    float *gradient;
    const struct batch_block *block;
    const struct step_state *state;
    unsigned entries;
};
/*
 * A normalisation and the pool behind it in one: max (3 x 3, stride 2, padding 1), average (2 x 2, stride 2, no
 * padding), mean (of all pixels).  Of values before they are rounded; 0 of images of weight 0.  With sums.partial max
 * leaves those of what it writes, rounded.  Backward:
 * A (+)= gamma * g with its sums, where g is the pool's gradient of data under the mask; the gradient of a maximum goes
 * to the first of equal ones, and dy may be finished while it is loaded.
 *
 * Grid: forward, any number of blocks, which share the outputs (mean: an image at a time, so `images` are best);
 * backward sums.blocks, which share squares of 2 x 2 inputs (mean: pixels).  Across groups of NORM_CHANNELS channels.
 */
#define NORM_POOL_SHARED (NORM_VIEW_SHARED + 4 * NORM_CHANNELS * 4) /* the last: to finish dy */
struct norm_pool_args {
    struct pool_args pool; /* x, dx: of the normalisation's input: dx is A; mean: kernel 0, y and dy [images][ld] */
    struct norm_view norm;
    struct channel_sums sums;  /* backward; max forward: of y, or none */
    const float *weight;       /* [images]; NULL: all 1 */
    struct norm_finish finish; /* of dy, backward of max */
};

/* ---- the head (cuda_head.cu) ------------------------------------------------------------------------------------- */

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

/* ---- a step (cuda_step.cu) --------------------------------------------------------------------------------------- */

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
