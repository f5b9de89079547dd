/*
 * cpu_plan.h - a graph made ready for the CPU: which values are stored or computed again, and where
 *
 * The model to keep in mind: a buffer of the graph is a tensor of 16-channel blocks, [image][block][pixel][16].  Each
 * slice that a node writes begins with a new block; the channels of a block that no slice fills (holes) stay zero, and
 * so do their weights.  The output of a normalisation is not stored: its reader reads the tensor before, and normalises
 * what it has just loaded (a view).  So a dense block keeps its slab and the 4 x growth channels of each
 * layer, nothing else.
 *
 * Forward, each tensor knows the mean and 1 / sqrt(variance + epsilon) of its channels, found once, when they are
 * written: all normalisations that read a channel share them.
 *
 * Backward, with xhat = (x - mean) s and g the gradient of a normalised value where its ReLU let through, summed over
 * the readers l of a channel:
 *     A = sum gamma_l g_l,   b = sum gamma_l mean(g_l),   c = sum gamma_l mean(g_l xhat)
 *     dL/dx = s (A - b - xhat c)
 * Means and variances are over the images that are no padding, and so is every sum.
 * A is what the tensor's gradient holds until its writer asks for it (gradient_fetch()), when all readers are done.
 *
 * Ioffe and Szegedy, Batch Normalization, ICML 2015; Pleiss et al., Memory-Efficient Implementation of DenseNets, 2017.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_CPU_PLAN_H
#define CHEX_TRAIN_CPU_PLAN_H

#include "backend/host.h"
#include "cpu/kernels.h"
#include "cpu/team.h"

#define NO_NODE SIZE_MAX

struct tensor {
    unsigned channels, height, width;
    unsigned blocks;
    size_t pixels, image; /* image: floats of one */
    size_t slot;          /* floats from one slot of values to the next */
    unsigned *lane;       /* [channels]: where a channel lies, block * 16 + its place there */
    size_t norm;          /* the NORM node whose output this is: then nothing is stored; else NO_NODE */
    size_t first, last;   /* nodes that write it first and read it last */
    bool normed, plain;   /* read by normalisations; read without */
    float *value;         /* [slots][image], or with gaps */
    float *gradient;      /* [images][image], train */

    /* For those that are normed, [blocks * 16]: */
    float *mean, *inverse; /* of the batch; inverse = 1 / sqrt(variance + epsilon) */
    double *variance;
    double *b, *c;     /* see above */
    float *finish;     /* [blocks][3][16]: dL/dx = k0 A + k1 (x - mean) + k2 */
    bool *accumulated; /* [blocks]: the gradient holds something already */
};

/* Windows over the images: the lanes of a pixel are [ky][kx][colour]. */
struct patches {
    unsigned kernel, stride, pad, height, width, out_width;
    size_t line;         /* floats of a row of the image, with its borders and room for reading beyond */
    struct patch *patch; /* of all blocks in their order */
    unsigned *first;     /* [blocks + 1]: the patches of a block */
    float (*level)[256]; /* [colours]: gray levels as they enter */
};

/* Lanes of a block that lie side by side in a row of the image, `offset` floats from the window's left edge. */
struct patch {
    unsigned ky;
    long offset;
    int32_t mask[BLOCK]; /* -1 where a lane is one of them, else 0 */
};

/* Blocks of a tensor as a node reads them: as they are, or normalised. */
struct view {
    struct tensor *from;
    struct patches *patches; /* NULL but for the images */
    unsigned block, blocks;
    unsigned *lane;      /* [channels of the slice]: where a channel lies, counted from the first block */
    unsigned last;       /* channels of the last block */
    struct step *norm;   /* NULL: as they are */
    unsigned norm_block; /* the first block, counted from that of the normalisation */
    bool *first;         /* [blocks]: this reader's gradient comes first; set when the node runs backward */
};

/*
 * How a convolution goes over an image.  1x1 ones see it as one row (flat).  That of the images reads patches: what
 * lies under a window is one pixel of many channels, and so it is a 1x1 convolution too.
 */
struct conv_plan {
    bool flat, same;              /* same: outputs lie where inputs do; then backward is one pass over both */
    unsigned kernel, stride, pad; /* as computed, so 1, 1, 0 for patches */
    unsigned height, width, out_height, out_width;
    unsigned rows, columns, strips;   /* forward: outputs of a strip; of a flat one columns, else rows */
    unsigned back_rows, back_columns; /* backward, same: of a strip */
    unsigned back_blocks;             /* and inputs that are fetched at a time */
    unsigned weight_rows, data_rows;  /* backward, not same: rows of the output, and of the input, of a strip */
    unsigned splits;                  /* of the batch at most, each with its own sum of weight gradients */
    unsigned ranges;                  /* of input blocks that are done one by one */
    int *channel;                     /* [in blocks * 16]: where the taps of a lane begin in the weights, or -1 */
    bool gives;                       /* gradients to its input */
    float *forward;                   /* weights [out block][in block][ky][kx][16 in][16 out] */
    float *backward; /* weights [in block][out block][ky][kx][16 out][16 in], taps from last to first */
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
    double *sums; /* [images][2][blocks * 16]: of g, and of g (x - mean) */
};

/* Part of the activations that is needed from one moment to another. */
struct span {
    size_t floats, begin, end, at;
    float **where;
};

struct wanted {
    void *where; /* of the pointer to it */
    size_t count, size;
};

struct plan {
    struct host host; /* the first member */
    const struct graph *graph;
    const struct kernels *kernels;
    struct team *team;
    struct tensor *tensor; /* [buffer_count] */
    struct step *step;     /* [node_count] */
    unsigned slots;        /* images whose values are kept at a time */
    const float *weights;  /* of this pass: parameters, or their average */
    const float *packed;   /* those that the packed weights are made of; NULL: none */
    bool whole_images;     /* EVALUATE: a task is an image through all nodes */
    float *logit_gradient;
    float *logits;             /* [batch][outputs] */
    const struct batch *batch; /* of the call */
    unsigned images;           /* of it that are no padding: all loops are over these, 0 .. images - 1 */
    unsigned *place;           /* [batch]: where each of them stands in the micro-batch */
    bool training;             /* this pass: statistics of the batch; else running ones */

    float *activations; /* all values and gradients, laid out by lifetime */
    size_t activation_floats;
    float *scratch; /* [threads][scratch_floats] */
    size_t scratch_floats;
    double *partial; /* statistics [units][3][channels]: pivot, sum, squares */
    size_t partial_doubles;
    float *weight_gradients; /* [splits][packed weights of one node] */
    size_t weight_gradient_floats;

    struct span *span;
    size_t span_count;
    struct wanted *wanted; /* not taken yet */
    size_t wanted_count, wanted_capacity, wanted_bytes;
    void **owned; /* all that is freed with the plan */
    size_t owned_count, owned_capacity;
    uint64_t bytes; /* of those */
};

/* Zeroed memory aligned to 64 bytes (2 MiB for large ones) that is freed with the plan; NULL when out of memory. */
void *plan_take(struct plan *plan, size_t count, size_t size);
/* The same for large arrays: plan_allocate() will put the pointer at `where`, which is the address of one. */
bool plan_want(struct plan *plan, void *where, size_t count, size_t size);
bool plan_want_activations(struct plan *plan);
/* The memory of a plan that was built; nothing large is taken.  CHEX_ERR_MEMORY: it cannot be counted */
enum chex_status plan_count(const struct plan *plan, struct plan_memory *out, struct chex_error *err);
/* Take it.  CHEX_ERR_MEMORY, before anything is taken, says how much is needed and how much is there. */
enum chex_status plan_allocate(struct plan *plan, struct chex_error *err);

/* plan_build.c: tensors, steps and what memory they want.  CHEX_ERR_UNSUPPORTED names what this backend does not do. */
enum chex_status plan_build(struct plan *plan, struct chex_error *err);

/* A step that runs in tasks. */
struct step_tasks {
    struct plan *plan;
    struct step *step;
};

static inline size_t
slot_of(const struct plan *plan, size_t image, unsigned thread)
{
    return plan->slots == plan->host.options.batch ? image : thread;
}

/* Splits of the images that are there, none of them empty. */
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

/* ---- views (view.c) ------------------------------------------------------------------------------------------ */

/* A box of an image as a convolution sees it: rows and columns outside of height x width are zero. */
struct box {
    unsigned height, width;
    long top, left;
    unsigned rows, columns;
};

/* to [blocks][rows][columns][16]: blocks first .. first + blocks - 1 of a view.  Of patches the box is one row, and
 * behind `to` there is room for the rows of the image (patches_floats()). */
void view_fetch(const struct plan *plan, const struct view *in, size_t image, size_t slot, unsigned first,
                unsigned blocks, const struct box *box, float *to);
size_t patches_floats(const struct patches *p, unsigned columns);
/* The gradient of one block of the view for pixels from .. from + count - 1 of an image comes in. */
void view_give(const struct plan *plan, const struct view *in, size_t image, unsigned block, size_t from, size_t count,
               const float *g);
/*
 * The finished gradient of what a step wrote, to [blocks][rows][columns][16].  Where spread is above 1 the box is one
 * of an image of spread times the size, in which only every spread-th row and column is not zero.
 */
void gradient_fetch(const struct plan *plan, const struct step *step, size_t image, unsigned first, unsigned blocks,
                    const struct box *box, unsigned spread, float *to);
/* All readers of what a step wrote are done: prepare gradient_fetch(). */
void gradient_close(const struct plan *plan, const struct step *step);
/* Which blocks of the view have no gradient yet; they have one from now on. */
void view_claim(struct view *in);

/* ---- statistics (norm.c) --------------------------------------------------------------------------------------- */

/*
 * Unit `unit` of the statistics of what a step writes: `pixels` of one image, `blocks` output blocks from `first` on.
 */
void statistics_add(struct plan *plan, const struct step *step, size_t unit, unsigned first, unsigned blocks,
                    size_t slot, size_t from, size_t pixels);
/* All units are there: mean and inverse of the tensor. */
void statistics_finish(struct plan *plan, const struct step *step);
/* Of a convolution the strips of this number of images, else the images. */
size_t statistics_units(const struct step *step, size_t images);

void norm_prepare(struct plan *plan, struct step *step);
void norm_running(struct plan *plan, struct step *step);
void norm_backward_finish(struct plan *plan, struct step *step);

/* ---- nodes ----------------------------------------------------------------------------------------------------- */

/* conv.c, conv_backward.c, patches.c */
bool patches_new(struct plan *plan, struct step *step);
void patches_fetch(const struct plan *plan, const struct patches *p, size_t image, unsigned first, unsigned blocks,
                   size_t from, size_t count, float *to);
bool conv_geometry(struct plan *plan, struct step *step); /* false: out of memory */
size_t conv_scratch(const struct plan *plan, const struct step *step);
size_t conv_weight_floats(const struct step *step); /* packed */
void conv_pack(void *tasks, size_t block, unsigned thread);
void conv_unpack_gradient(void *tasks, size_t block, unsigned thread); /* sums up the splits of one block of inputs */
void conv_forward_strip(struct plan *plan, struct step *step, size_t image, unsigned strip, unsigned thread);
size_t conv_strip_pixels(const struct step *step, unsigned strip);
void conv_gradients(struct plan *plan, struct step *step);

/* pool.c: one image forward, and whole backward passes */
size_t pool_scratch(const struct step *step);
void simple_forward(struct plan *plan, struct step *step, size_t image, unsigned thread);
void simple_backward(struct plan *plan, struct step *step);

#endif
