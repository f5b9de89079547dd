/*
 * backend.h - the seam between the trainer and what computes: a backend runs a whole graph, not single operators
 *
 * The model to keep in mind: plan_new() takes a graph, the size of a micro-batch and a device, and chooses layouts,
 * algorithms, fusion and memory; after that nothing is allocated.  A plan owns the arenas: parameters, running
 * statistics, gradients, moments of the optimizer.  From outside they have one form, that of the graph (graph.h):
 * float32, plain row-major, in the order of its tensors; how they lie inside does not leak.
 *
 *     forward(TRAIN)                        for each micro-batch
 *     clear_gradients(), backward()         the same; in its callback they are added to those of the step, in doubles
 *     (the ranks sum their gradients)       from the last callback on; the sums are put where gradients() says
 *     update()                              once a step
 *
 * Every function returns CHEX_OK or fails with CHEX_ERR_MEMORY or CHEX_ERR_BUG unless it says more.  A plan is used by
 * one thread at a time; different plans are independent.  The same calls with the same input give the same bits on the
 * same machine, whatever the number of threads.
 *
 * train/ref is plain C and the oracle; every other backend is compared with it, buffer by buffer.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_BACKEND_H
#define CHEX_TRAIN_BACKEND_H

#include "graph/graph.h"
#include "math/loss.h"
#include "math/optimizer.h"

enum precision { PRECISION_AUTO, PRECISION_FP32, PRECISION_TF32, PRECISION_FP16, PRECISION_BF16 };

struct plan_options {
    const struct graph *graph; /* outlives the plan */
    unsigned batch;            /* images of a micro-batch */
    unsigned source;           /* side of the images that come in, at least that of the graph's input */
    bool train;                /* else forward(EVALUATE) only: no gradients, no moments */
    bool average;              /* keep an exponential moving average of the parameters */
    bool keep;                 /* tests: no buffer takes the place of another, so that peek() finds gradients too */
    enum precision precision;
    unsigned threads; /* CPU: at least 1 */
    int device;       /* GPU: its number */
    struct loss_options loss;
    struct optimizer_options optimizer;
};

/* Bytes that a plan takes, on the device or in the process. */
struct plan_memory {
    uint64_t parameters, optimizer, activations, workspace;
};

/* How an image enters the network: gray levels 0 .. 255 become (level / 255 - mean[c]) / deviation[c], c = 0 .. 2. */
#define INPUT_CHANNELS 3
extern const float input_mean[INPUT_CHANNELS], input_deviation[INPUT_CHANNELS]; /* ImageNet's, as torchvision */

/* The part of a source image that the network sees. */
struct crop {
    uint16_t x, y; /* left upper corner: x + input width <= source */
    bool flip;     /* left and right exchanged */
};

/*
 * A micro-batch in host memory; read before the call returns.
 *
 * An image of weight 0 is padding and counts in nothing, wherever it stands: the loss, all gradients and the statistics
 * are those of a smaller micro-batch without it, whatever its pixels.  Its logits, and its gradients in every buffer,
 * are 0.  The statistics of a channel are taken over
 *     count = images of another weight * pixels
 * values: mean, variance = squares / count, and in backward() the means over the batch.  The running variance takes
 * squares / (count - 1).
 *     count = 1  the variance is 0, so the normalised value is beta and no gradient flows back through it.  One value
 *                says nothing of a variance: the running statistics of this normalisation stay.  (PyTorch refuses such
 *                a batch.)
 *     no image   nothing is computed: the loss is 0, the running statistics stay, backward() adds nothing.
 */
struct batch {
    const uint8_t *pixels;   /* [batch][source][source], 0 = black */
    const struct crop *crop; /* [batch] */
    const uint8_t *label;    /* [batch][outputs], 0 or 1; NULL with EVALUATE where no loss is wanted */
    const float *weight;     /* [batch], 0 for padding (see below); NULL: all 1 */
    double scale;            /* loss = scale * sum: 1 / (images of weight 1 in the global batch * outputs) */
};

enum forward_mode {
    FORWARD_TRAIN,   /* statistics of the batch, running statistics are updated, what backward() needs is kept */
    FORWARD_EVALUATE /* running statistics */
};

enum arena_id {
    ARENA_PARAMETERS,
    ARENA_STATISTICS,
    ARENA_GRADIENTS,
    ARENA_MOMENT1, /* of Adam, or the momentum of SGD */
    ARENA_MOMENT2,
    ARENA_AVERAGE
};

/*
 * Called during backward() when the gradients of parameters first .. first + count - 1 (floats of the arena) are
 * final for this micro-batch.  Every float comes once, ranges come from the end of the arena to its beginning.
 */
typedef enum chex_status gradients_ready(void *context, size_t first, size_t count, struct chex_error *err);

/* Floats of an arena; whether a plan of these options has it; and what is in one at first that is not zero. */
size_t arena_floats(const struct graph *g, enum arena_id arena);
bool arena_is_wanted(const struct plan_options *o, enum arena_id arena);
void arena_start_statistics(const struct graph *g, float *statistics);
/*
 * How running statistics fade.  forward(TRAIN) makes r = (1 - m) r + m batch of them, m = GRAPH_NORM_MOMENTUM.  This
 * does to them what `times` micro-batches of `images` images do, without what these add: r = (1 - m)^times r.
 */
void arena_fade_statistics(const struct graph *g, unsigned images, uint64_t times, float *statistics);

/* The images of a micro-batch that are no padding: their places in it, in order, to place[], and how many there are. */
unsigned batch_images(const struct batch *batch, unsigned size, unsigned *place);

struct plan;

struct backend {
    const char *name; /* "ref" */

    /*
     * Can it run here?  Describes the device in text ("Xeon, 2 threads, AVX-512").  CHEX_ERR_UNSUPPORTED says why not.
     */
    enum chex_status (*probe)(int device, char *text, size_t size, struct chex_error *err);

    /*
     * CHEX_ERR_MEMORY names what is needed and what there is;  CHEX_ERR_UNSUPPORTED a precision or graph that this
     * backend does not do.  Arenas are zero but for running variances, which are 1.
     */
    enum chex_status (*plan_new)(const struct plan_options *options, struct plan **out, struct chex_error *err);
    void (*plan_free)(struct plan *plan); /* NULL is allowed */
    void (*memory)(const struct plan *plan, struct plan_memory *out);

    /* Whole arenas, in the form of the graph: graph->param_floats, or stat_floats, of them. */
    enum chex_status (*write)(struct plan *plan, enum arena_id arena, const float *from, struct chex_error *err);
    enum chex_status (*read)(struct plan *plan, enum arena_id arena, float *to, struct chex_error *err);

    /*
     * logits   [batch][outputs], or NULL; 0 for padding
     * loss     sum over images of weight 1 and outputs, times batch->scale; or NULL.  It is finite, or the caller
     * stops.  With both NULL a GPU need not be waited for.
     */
    enum chex_status (*forward)(struct plan *plan, const struct batch *batch, enum forward_mode mode, float *logits,
                                double *loss, struct chex_error *err);

    /*
     * Add the gradients of the loss of the last forward(TRAIN) to the arena.  ready may be NULL; it is called, too,
     * where all images were padding.
     */
    enum chex_status (*backward)(struct plan *plan, gradients_ready *ready, void *context, struct chex_error *err);
    enum chex_status (*clear_gradients)(struct plan *plan, struct chex_error *err);

    /* The gradients themselves, to be added up from, and to take the sums: host memory. */
    float *(*gradients)(struct plan *plan);

    /* One step of the optimizer with the gradients there; *norm is their 2-norm, not finite where one of them is not:
     * then nothing is changed. */
    enum chex_status (*update)(struct plan *plan, const struct optimizer_step *step, double *norm,
                               struct chex_error *err);

    /* For tests: a buffer of the graph after forward(), or its gradient after backward() of a plan with `keep`, as
     * [batch][channels][height][width].  CHEX_ERR_UNSUPPORTED where this backend does not keep it. */
    enum chex_status (*peek)(struct plan *plan, unsigned buffer, bool gradient, float *out, struct chex_error *err);
};

/* All that were built in, the best first, ended by NULL; and the one of this name, or NULL. */
extern const struct backend *const backends[];
const struct backend *backend_find(const char *name);

#endif
