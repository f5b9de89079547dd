/*
 * cpu_plan.h - execution plan of a graph on the CPU: tensors, their layout in memory, and the steps
 *
 * A buffer of the graph is a tensor of 16-channel blocks, [image][block][pixel][16].  Each slice that a node writes
 * starts in a new block.  The unused channels of the last block of a slice (holes) stay zero, and so do their weights.
 * The output of a normalisation is never stored: its consumer loads the tensor in front of it and normalises the loaded
 * values (struct view).  So a dense block keeps only its slab and the 4 x growth channels of each layer.
 *
 * The forward pass computes the mean and 1 / sqrt(variance + epsilon) of each channel once, right after the channel is
 * written.  All normalisations that read the channel share them.
 *
 * In the backward pass, xhat = (x - mean) s, and g is the gradient of a normalised value under its ReLU mask.  The sums
 * run over the readers l of a channel:
 *     A = sum gamma_l g_l,   b = sum gamma_l mean(g_l),   c = sum gamma_l mean(g_l xhat)
 *     dL/dx = s (A - b - xhat c)
 * Means, variances and sums leave out padding images.  The gradient of a tensor holds A until all readers are done.
 * Then the step that wrote the tensor reads dL/dx through gradient_fetch().
 *
 * Ioffe and Szegedy, Batch Normalization, ICML 2015; Pleiss et al., Memory-Efficient Implementation of DenseNets, 2017.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_CPU_PLAN_H
#define CHEX_TRAIN_CPU_PLAN_H

#include "backend/host.h"
#include "backend/live_ranges.h"
#include "cpu/kernels.h"
#include "cpu/team.h"

#define NO_NODE SIZE_MAX

struct tensor {
    unsigned channels, height, width;
    unsigned blocks;
    size_t pixels, image; /* image: floats per image */
    size_t slot;          /* floats between the values of two slots */
    unsigned *lane;       /* [channels]: the position of a channel, block * 16 + lane */
    size_t norm;          /* if the tensor is the output of a NORM node (not stored): that node; otherwise NO_NODE */
    size_t first, last;   /* the first node that writes it, the last that reads it */
    bool normed, plain;   /* read by a normalisation; read directly */
    float *value;         /* [slots][image]; slots may have gaps between them */
    float *gradient;      /* [images][image], train */

    /* Only if `normed`, [blocks * 16]: */
    float *mean, *inverse; /* of the batch; inverse = 1 / sqrt(variance + epsilon) */
    double *variance;
    double *b, *c;     /* see above */
    float *finish;     /* [blocks][3][16]: dL/dx = k0 A + k1 (x - mean) + k2 */
    bool *accumulated; /* [blocks]: the gradient already holds a value */
};

/* Patches of the input images (im2col): the lanes of a pixel are [ky][kx][colour]. */
struct patches {
    unsigned kernel, stride, pad, height, width, out_width;
    size_t line;         /* floats of an image row with its borders, plus room for reads past its end */
    struct patch *patch; /* the patches of all blocks, in the order of the blocks */
    unsigned *first;     /* [blocks + 1]: the patches of a block */
    float (*level)[256]; /* [colours]: the network's input value for each gray level */
};

/* Lanes of a block that are contiguous in a row of the image, `offset` floats from the left edge of the window. */
struct patch {
    unsigned ky;
    long offset;
    int32_t mask[BLOCK]; /* -1 for a lane of this patch, otherwise 0 */
};

/* Blocks of a tensor as a node reads them: plain or normalised. */
struct view {
    struct tensor *from;
    struct patches *patches; /* only for the input images, otherwise NULL */
    unsigned block, blocks;
    unsigned *lane;      /* [channels of the slice]: the position of a channel, relative to the first block */
    unsigned last;       /* channels of the last block */
    struct step *norm;   /* NULL: plain */
    unsigned norm_block; /* the first block, relative to the first block of the normalisation */
    bool *first; /* [blocks]: this reader writes the gradient first (store, not add); set in its backward step */
};

/*
 * How a convolution iterates over an image.  A 1x1 convolution treats the image as one row (flat).  The convolution of
 * the input images reads patches: the values under a window are the channels of one pixel, so it becomes a 1x1
 * convolution too.
 */
struct conv_plan {
    bool flat, same;              /* same: the output has the size of the input; then backward is one pass over both */
    unsigned kernel, stride, pad; /* as computed: 1, 1, 0 for patches */
    unsigned height, width, out_height, out_width;
    unsigned rows, columns, strips;   /* forward: outputs per strip; columns if flat, otherwise rows */
    unsigned back_rows, back_columns; /* backward, same: size of a strip */
    unsigned back_blocks;             /* input blocks that backward loads together */
    unsigned weight_rows, data_rows;  /* backward, not same: output rows and input rows per strip */
    unsigned splits;                  /* at most; each split of the batch sums its own weight gradients */
    unsigned ranges;                  /* of input blocks; each range is a task */
    int *channel;                     /* [in blocks * 16]: offset of a lane's taps in the weights, or -1 */
    bool gives;                       /* computes the gradient of its input */
    /*
     * Packed weights, as operands: [out block][in block][ky][kx][16 in][16 out], and for the gradient of the input
     * [in block][phase][out block][taps of the phase][16 out][16 in].  In bf16 two inputs of conv() are a pair:
     * [8][16][2] instead of [16][16].
     */
    void *forward, *backward;
};

/*
 * Phases.  Row y of the input meets only every stride-th row of the kernel.  Which ones depends on y modulo the stride,
 * the phase of the row; the same holds for columns.  The gradient of the input is computed for each pair of phases,
 * with the taps that they meet, so that no product has a zero factor.  Taps are counted from the end of the kernel.
 *
 * Returns the phase that a tap belongs to.  The same formula returns the first tap of a phase, if it is below `kernel`;
 * otherwise the phase has no tap.
 */
static inline unsigned
phase_of(const struct conv_plan *c, unsigned tap)
{
    /* (kernel - 1 - pad - tap) modulo the stride; a multiple of the stride keeps the difference from being negative */
    return (c->kernel - 1 - tap + c->kernel * c->stride - c->pad % c->stride) % c->stride;
}

/* Returns the number of taps; a kernel smaller than the stride has phases without any. */
static inline unsigned
phase_taps(const struct conv_plan *c, unsigned phase)
{
    unsigned first = phase_of(c, phase);

    return first < c->kernel ? (c->kernel - first + c->stride - 1) / c->stride : 0;
}

/* Returns the number of taps in the phases of the rows before `row`, and in those of `row` before `column`. */
static inline size_t
phase_offset(const struct conv_plan *c, unsigned row, unsigned column)
{
    size_t rows = 0, columns = 0;
    unsigned i;

    for (i = 0; i < row; i++)
        rows += phase_taps(c, i);
    for (i = 0; i < column; i++)
        columns += phase_taps(c, i);
    return rows * c->kernel + phase_taps(c, row) * columns;
}

/* The scratch of a strip of the backward pass, in bytes from its start; see strip_parts(). */
struct strip_parts {
    size_t dy, x;             /* operands [blocks][rows][columns][16] */
    size_t dy_pairs, x_pairs; /* bf16: pairs of pixels */
    size_t g;                 /* gradients of the input, float */
    size_t bytes;
};

/* The inputs and the gradients of the outputs of a strip, for the gradients of weights. */
struct weight_strip {
    unsigned rows, columns; /* outputs */
    unsigned x_columns;
    const void *x, *dy;      /* operands; dy of the first output */
    size_t x_block, x_row;   /* operands */
    size_t dy_block, dy_row; /* operands */
    uint32_t *x_pairs, *dy_pairs;
};

/* A node. */
struct step {
    const struct graph_node *node;
    struct view in, in2;
    struct tensor *out;
    unsigned out_block, out_blocks;
    unsigned *out_lane;
    unsigned out_last; /* channels of the last block of the output */
    struct conv_plan conv;

    /* NORM, [blocks * 16] */
    float *mean, *scale, *beta, *gamma;
    double *sums; /* [images][2][blocks * 16]: sums of g and of g (x - mean) */
};

struct wanted {
    void *where; /* address of the pointer to set */
    size_t count, size;
};

struct plan {
    struct host host; /* the first member */
    const struct graph *graph;
    const struct kernels *kernels;
    const struct products *products; /* of convolutions; other nodes read floats, by kernels->products */
    struct team *team;
    struct tensor *tensor; /* [buffer_count] */
    struct step *step;     /* [node_count] */
    unsigned slots;        /* images whose values are kept at the same time */
    const float *weights;  /* of this pass: the parameters or their average */
    const float *packed;   /* the source of the packed weights; NULL: nothing is packed */
    bool whole_images;     /* EVALUATE: a task runs one image through all nodes */
    float *logit_gradient;
    float *logits;             /* [batch][outputs] */
    struct graph_head head;    /* only for maps: */
    double *map;               /* [batch][head.map_floats] of images 0 .. images - 1; NULL: the plan has no maps */
    const struct batch *batch; /* of the current call */
    unsigned images;           /* images without padding; all loops run over 0 .. images - 1 */
    unsigned *place;           /* [batch]: index of each of them in the micro-batch */
    bool training;             /* normalise with batch statistics; otherwise with running statistics */

    float *activations; /* all values and gradients; buffers with disjoint live ranges share memory */
    size_t activation_floats;
    float *scratch; /* [threads][scratch_floats] */
    size_t scratch_floats;
    double *partial; /* statistics [units][3][channels]: pivot, sum, squares */
    size_t partial_doubles;
    float *weight_gradients; /* [splits][packed weights of one node] */
    size_t weight_gradient_floats;

    struct live_range *range; /* [range_count]: the values and gradients in `activations`, in floats */
    float ***range_of;        /* [range_count]: the pointer to set for each */
    size_t range_count;
    struct wanted *wanted; /* requested, not yet allocated */
    size_t wanted_count, wanted_capacity, wanted_bytes;
    void **owned; /* everything that plan_free releases */
    size_t owned_count, owned_capacity;
    uint64_t bytes; /* sum of the sizes in `owned` */
};

/*
 * Allocate zeroed memory, aligned to 64 bytes (2 MiB for large arrays) and freed with the plan.  NULL: out of memory.
 */
void *plan_take(struct plan *plan, size_t count, size_t size);
/* Request a large array; plan_allocate() allocates it and stores the pointer in the pointer at `where`. */
bool plan_want(struct plan *plan, void *where, size_t count, size_t size);
bool plan_want_activations(struct plan *plan);
/* Compute the memory of a built plan; allocates nothing large.  CHEX_ERR_MEMORY: the size overflows. */
enum chex_status plan_count(const struct plan *plan, struct plan_memory *out, struct chex_error *err);
/*
 * Allocate the requested arrays.  CHEX_ERR_MEMORY (before any allocation) reports the required and the available size.
 */
enum chex_status plan_allocate(struct plan *plan, struct chex_error *err);

/*
 * plan_build.c: create tensors and steps, and request their memory.  CHEX_ERR_UNSUPPORTED names what is not supported.
 */
enum chex_status plan_build(struct plan *plan, struct chex_error *err);

/* Context of the tasks of a step. */
struct step_tasks {
    struct plan *plan;
    struct step *step;
};

static inline size_t
slot_of(const struct plan *plan, size_t image, unsigned thread)
{
    return plan->slots == plan->host.options.batch ? image : thread;
}

/* Returns the number of splits in use; each has at least one image. */
static inline size_t
splits_of(const struct plan *plan, const struct step *step)
{
    return plan->images < step->conv.splits ? plan->images : step->conv.splits;
}

static inline float *
value_of(const struct tensor *s, size_t slot, unsigned block)
{
    return s->value + slot * s->slot + (size_t)block * s->pixels * BLOCK;
}

static inline float *
gradient_of(const struct tensor *s, size_t image, unsigned block)
{
    return s->gradient + image * s->image + (size_t)block * s->pixels * BLOCK;
}

/* Returns the address `count` operands after p. */
static inline void *
operand_at(const struct products *as, void *p, size_t count)
{
    return (char *)p + count * as->size;
}

static inline const void *
operand_from(const struct products *as, const void *p, size_t count)
{
    return (const char *)p + count * as->size;
}

/* ---- views (view.c) ------------------------------------------------------------------------------------------ */

/* A box of an image as a convolution reads it: rows and columns outside height x width are zero. */
struct box {
    unsigned height, width;
    long top, left;
    unsigned rows, columns;
};

/*
 * Load blocks first .. first + blocks - 1 of a view to [blocks][rows][columns][16], as operands of `as`.  For patches
 * the box is one row, and `to` needs patches_bytes() more bytes at its end, for rows of the image.
 */
void view_fetch(const struct plan *plan, const struct products *as, const struct view *in, size_t image, size_t slot,
                unsigned first, unsigned blocks, const struct box *box, void *to);
size_t patches_bytes(const struct patches *p, unsigned columns);
/* Add the gradient of one block of the view, for pixels from .. from + count - 1 of an image. */
void view_give(const struct plan *plan, const struct view *in, size_t image, unsigned block, size_t from, size_t count,
               const float *g);
/*
 * Write the final gradient of a step's output to [blocks][rows][columns][16], as operands of `as`.
 */
void gradient_fetch(const struct products *as, const struct step *step, size_t image, unsigned first, unsigned blocks,
                    const struct box *box, void *to);
/* Prepare gradient_fetch(), after all readers of the step's output are done. */
void gradient_close(const struct plan *plan, const struct step *step);
/* Set `first` for the blocks of the view that have no gradient yet, and mark them as accumulated. */
void view_claim(struct view *in);

/* ---- fetching ahead (ahead.c) ---------------------------------------------------------------------------------- */

/* Add the part of a box that is inside the image, with all columns between its first and last row. */
void ahead_add(struct ahead *ahead, const float *block, const struct box *box);
/* Spread it over `rows` rows of `pixels` outputs; conv() multiplies each tile of them by so many blocks of weights. */
void ahead_spread(struct ahead *ahead, const struct plan *plan, size_t rows, size_t pixels, size_t weights);

/* ---- statistics (norm.c) --------------------------------------------------------------------------------------- */

/*
 * Compute unit `unit` of the statistics of a step's output: `pixels` pixels of one image, `blocks` output blocks from
 * `first` on.
 */
void statistics_add(struct plan *plan, const struct step *step, size_t unit, unsigned first, unsigned blocks,
                    size_t slot, size_t from, size_t pixels);
/* Combine all units to mean and inverse of the tensor. */
void statistics_finish(struct plan *plan, const struct step *step);
/* Returns the number of units: strips of all images for a convolution, otherwise images. */
size_t statistics_units(const struct step *step, size_t images);

void norm_prepare(struct plan *plan, struct step *step);
void norm_running(struct plan *plan, struct step *step);
void norm_backward_finish(struct plan *plan, struct step *step);

/* ---- nodes ----------------------------------------------------------------------------------------------------- */

/* conv.c, conv_backward.c, conv_pairs.c, patches.c */
bool patches_new(struct plan *plan, struct step *step);
void patches_fetch(const struct plan *plan, const struct products *as, const struct patches *p, size_t image,
                   unsigned first, unsigned blocks, size_t from, size_t count, void *to);
bool conv_geometry(struct plan *plan, struct step *step);              /* false: out of memory */
size_t conv_scratch(const struct plan *plan, const struct step *step); /* bytes */
size_t conv_weight_floats(const struct step *step);                    /* packed: floats or operands */
void conv_pack(void *tasks, size_t block, unsigned thread);
void conv_unpack_gradient(void *tasks, size_t block, unsigned thread); /* adds up the splits for one input block */
void conv_forward_strip(struct plan *plan, struct step *step, size_t image, unsigned strip, unsigned thread);
size_t conv_strip_pixels(const struct step *step, unsigned strip);
void conv_gradients(struct plan *plan, struct step *step);
/* Lay out the scratch for so many input blocks; dy has halo more rows and columns.  Without g: only for weights. */
struct strip_parts strip_parts(const struct plan *plan, const struct step *step, unsigned in_blocks, unsigned x_rows,
                               unsigned x_columns, unsigned rows, unsigned columns, unsigned halo, bool gives);
/* Returns the bytes of dy for the input gradients of so many rows, if the convolution is not `same`. */
size_t conv_data_bytes(const struct plan *plan, const struct step *step, unsigned rows);
/* Make the pairs of dy for all output blocks. */
void pair_gradients(const struct plan *plan, const struct step *step, const struct weight_strip *s);
/* Add the weight gradients of all taps between input block `block` and all output blocks to dw; x is of that block. */
void add_pair_weights(const struct plan *plan, const struct step *step, const struct weight_strip *s, unsigned block,
                      const void *x, float *dw);
/* Returns the output blocks of the next tile; splits four blocks into 2 + 2 instead of 3 + 1. */
static inline unsigned
outs_of(unsigned left)
{
    return left == WEIGHT_OUTS_MAX + 1 ? 2 : left < WEIGHT_OUTS_MAX ? left : WEIGHT_OUTS_MAX;
}

/* pool.c: forward for one image, backward for the batch */
size_t pool_scratch(const struct step *step);
void simple_forward(struct plan *plan, struct step *step, size_t image, unsigned thread);
void simple_backward(struct plan *plan, struct step *step);

#endif
