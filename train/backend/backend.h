/*
 * backend.h - the seam between the trainer and what computes: a backend runs a whole graph, not single operators
 *
 * The model to keep in mind: plan_new() takes a device, a graph and the size of a micro-batch, and chooses layouts,
 * algorithms, fusion and memory; after that nothing is allocated.  A plan owns the arenas: parameters, running
 * statistics, gradients, moments of the optimizer.  From outside they have one form, that of the graph (graph.h):
 * float32, plain row-major, in the order of its tensors; how they lie inside does not leak, and no pointer to them
 * leaves a backend.
 *
 * A step on each rank:
 *     accumulate(FIRST ... LAST)   each micro-batch; with LAST the gradients are summed over the ranks as they become
 *                                  final
 *     update()                     gives the step a ticket
 *     result(ticket)               the result of the step
 * Nothing but result(), score(), read() and write() waits for a device, so the trainer asks for a result when
 * device_info.ahead further steps were given to the plan.
 *
 * A step whose loss or gradients are not finite, or in which a rank has a fault, changes nothing: neither parameters,
 * moments, average nor running statistics.  With a loss scale the step is skipped, and the scale falls.  Without one,
 * or where a rank has a fault, the plan is halted: later steps change nothing either, until resume().
 *
 * Sums over the ranks are the business of a backend and its reducer (reduce.h).  The loss, the faults and the wishes of
 * the ranks travel behind the gradients, so a step needs no other word between the ranks.
 *
 * Every function returns CHEX_OK or fails with CHEX_ERR_MEMORY or CHEX_ERR_BUG unless it says more.  A plan is used by
 * one thread at a time, but for read_beside(); different plans are independent.  The same calls with the same input
 * give the same bits on the same machine, whatever the number of threads.
 *
 * train/ref is plain C and the oracle; every other backend is compared with it, buffer by buffer.  A backend that
 * computes in host memory shares arenas, sums and steps with it (host.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_BACKEND_H
#define CHEX_TRAIN_BACKEND_H

#include "backend/batch.h"
#include "backend/reduce.h"
#include "backend/step_parts.h"
#include "graph/graph.h"
#include "math/loss.h"
#include "math/optimizer.h"

#include <limits.h>

struct backend;
struct collective; /* collective.h */
struct plan;       /* of one backend */

/* ---- devices ----------------------------------------------------------------------------------------------------- */

enum precision { PRECISION_AUTO, PRECISION_FP32, PRECISION_TF32, PRECISION_FP16, PRECISION_BF16, PRECISION_COUNT };

/* "auto", "fp32", ..., as --precision takes them. */
extern const char *const precision_names[]; /* ended by NULL */

/* What computes convolutions on a device that has a choice: kernels of its backend, or a library of its vendor. */
enum engine { ENGINE_OWN, ENGINE_CUDNN };

/* "own", "cudnn", as --engine takes them. */
extern const char *const engine_names[]; /* ended by NULL */

struct device_info {
    char text[128];           /* "CPU, AVX2": equal for equal devices */
    char id[48];              /* which one it is, as the UUID of a GPU; "" */
    bool own_memory;          /* else that of the host */
    bool imagined;            /* there is none: of DEVICE_IMAGINED */
    uint64_t memory;          /* bytes that are free there; UINT64_MAX: not known */
    unsigned precisions;      /* bits 1 << enum precision */
    enum precision precision; /* what PRECISION_AUTO becomes */
    unsigned micro_batch;     /* images of the largest micro-batch that is chosen by itself; 0: the whole batch */
    bool own_clock;           /* step_result.times are of the device, whose host does other things meanwhile */
    unsigned ahead;           /* steps that may be under way behind one whose result is asked for: 0 or 1 */
};

/*
 * The number of a device that is not there: plan_size() says what a plan would take on one, and nothing else may be
 * called.  A backend whose devices are always there opens what it has.
 */
#define DEVICE_IMAGINED UINT_MAX

/* What the device of every backend begins with. */
struct device {
    const struct backend *backend;
    struct device_info info;
};

/* Gradients on their way to the other ranks, where a device sums them. */
enum wire { WIRE_FP32, WIRE_BF16 };
extern const char *const wire_names[]; /* "fp32", "bf16", as --wire takes them; ended by NULL */

/* ---- plans ------------------------------------------------------------------------------------------------------- */

enum arena_id {
    ARENA_PARAMETERS,
    ARENA_STATISTICS,
    ARENA_GRADIENTS, /* once its result is there, those of a step, summed over the ranks */
    ARENA_MOMENT1,   /* of Adam, or the momentum of SGD */
    ARENA_MOMENT2,
    ARENA_AVERAGE,
    ARENA_COUNT
};

/* Floats of an arena; whether a plan of these options has it; and its first values other than zero. */
struct plan_options;
size_t arena_floats(const struct graph *g, enum arena_id arena);
bool arena_is_wanted(const struct plan_options *o, enum arena_id arena);
void arena_start_statistics(const struct graph *g, float *statistics);
/*
 * How running statistics fade.  A micro-batch makes r = (1 - m) r + m batch of them, m = GRAPH_NORM_MOMENTUM.  This
 * does to them what `times` micro-batches of `images` images do, without what these add: r = (1 - m)^times r.
 */
void arena_fade_statistics(const struct graph *g, unsigned images, uint64_t times, float *statistics);

struct plan_options {
    const struct graph *graph; /* outlives the plan */
    unsigned batch;            /* images of a micro-batch */
    unsigned micro_batches;    /* of a step on this rank, at most; 0: 1 */
    unsigned source;           /* side of the images that come in, at least that of the graph's input */
    bool train;                /* else score() only: no gradients, no moments */
    bool average;              /* keep an exponential moving average of the parameters */
    bool keep;                 /* tests: no buffer takes the place of another, so that peek() finds all of them */
    bool deterministic;        /* only algorithms whose bits do not depend on timing; else the fastest */
    bool no_graph;             /* each kernel is launched by itself and waited for, so that an error names it */
    bool pdl;                  /* programmatic dependent launch, where a device has it; no bit depends on it */
    enum precision precision;
    enum engine engine;    /* ENGINE_CUDNN: CHEX_ERR_UNSUPPORTED where a backend has none */
    unsigned threads;      /* CPU: at least 1 */
    struct reduce *reduce; /* of reduce_new(), outlives the plan; NULL: alone */
    enum wire wire;        /* of its sums, where it has such */
    struct loss_options loss;
    struct optimizer_options optimizer;

    /* Told of each part of a step, by progress_clock(); may be NULL. */
    void (*part)(void *context, enum step_part part, double begin, double end);
    void *context;
};

/* Bytes that a plan takes, on the device or in the process. */
struct plan_memory {
    uint64_t parameters, optimizer, activations, workspace;
};

/* The choices of a backend: for run.json, the checkpoint and the comparison of ranks. */
#define PLAN_ALGORITHMS 17
#define PLAN_ENGINE     160
struct plan_facts {
    enum precision precision;         /* never PRECISION_AUTO */
    char algorithms[PLAN_ALGORITHMS]; /* a hash over all that decides about bits, in hexadecimal digits */
    /* What computes the convolutions: "own kernels", "52 of 53 convolutions by cuDNN 9.19.0"; "": only own kernels. */
    char engine[PLAN_ENGINE];
    bool pdl; /* it was asked for, and the device has it */
    struct plan_memory memory;
};

/*
 * The kernels of a step of a plan, as a model of the device has them: nothing is launched, and nothing was measured.
 */
#define PLAN_KERNEL 64
struct plan_launch {
    char kernel[PLAN_KERNEL], kind[PLAN_KERNEL]; /* kind: without the form of its tiles and the type of values */
    char shape[PLAN_KERNEL];                     /* "401408 x 128 x 64" of a product, else pixels x channels */
    char tile[PLAN_KERNEL];                      /* "64x128, 6272 tiles"; "196 blocks" */
    unsigned times;                              /* a step */
    uint64_t read, written;                      /* bytes of device memory, each place once a launch */
    double flop;                                 /* of products of matrices */
    double seconds;
};
struct plan_model_score {
    unsigned images, launches;
    uint64_t bytes;
    double seconds;
};
struct plan_model {
    char device[128];           /* what was modelled */
    struct plan_launch *launch; /* [count], in their order; plan_model_free() */
    size_t count;
    unsigned images, launches; /* of a step of this rank */
    uint64_t bytes;
    double seconds;
    struct plan_model_score score; /* of one micro-batch of an evaluation */
};
void plan_model_free(struct plan_model *m);

/* What of a plan is in no arena, and in a checkpoint. */
struct plan_state {
    uint64_t applied;  /* steps that changed something: t of Adam */
    double loss_scale; /* 1 without one; 0: that of a new plan */
    uint32_t good;     /* steps since it changed */
};

/* ---- a step ------------------------------------------------------------------------------------------------------ */

enum step_flags {
    STEP_FIRST = 1, /* a step begins: gradients from zero, running statistics from where the last one left them */
    STEP_LAST = 2,  /* no other micro-batch follows on this rank */
    STEP_FAULT = 4  /* with STEP_LAST: this rank cannot go on, and no rank makes this step */
};

#define STEP_WISHES 8 /* bits */

/* The message of a rank with STEP_LAST. */
struct step_end {
    uint32_t wishes; /* bits below STEP_WISHES */
    /*
     * Micro-batches of the ranks behind this one: `behind` whole ones, and one of `rest` images (0: none).  Running
     * statistics fade by them, so that the sum over the ranks is what one process has that sees all micro-batches in
     * their order: rank 0 begins a step with what they were, the others with zero.
     */
    uint64_t behind;
    unsigned rest;
};

#define STEP_NONE UINT32_MAX

struct step_result {
    double loss; /* of all ranks */
    double norm; /* 2-norm of the gradients of all ranks, unscaled, before clipping */
    bool applied;
    bool halted;     /* the plan: this step and those behind it change nothing */
    uint32_t faults; /* ranks with STEP_FAULT */
    uint32_t wishes; /* the OR over the ranks */
    uint32_t bad;    /* the first micro-batch of this rank whose loss is not finite; STEP_NONE */
    struct plan_state state;
    struct step_times times; /* of the parts that the backend sees, by the clock of the device */
    double idle;             /* with own_clock: seconds before and between its micro-batches with nothing to do */
};

/* ---- the seam ---------------------------------------------------------------------------------------------------- */

#define BACKEND_LIBRARY 96 /* of the version of a library, or why it is not there */

struct backend {
    const char *name; /* "ref", for --device */

    /* -- devices -- */
    unsigned (*device_count)(void); /* 0 where there is no driver */
    /*
     * Why device_count() is 0, in words; NULL: it never is.  False: the machine has no driver of such a device, as most
     * have none, so nobody who did not name the device needs to hear of it.
     */
    bool (*device_absence)(char why[BACKEND_LIBRARY]);
    /* CHEX_ERR_UNSUPPORTED says why the device cannot be used. */
    enum chex_status (*device_open)(unsigned number, struct device **out, struct chex_error *err);
    void (*device_close)(struct device *device); /* NULL is allowed */
    /*
     * Libraries that it opens when it needs them, from number 0 on: the name, and in text the version or why it is not
     * there; NULL behind the last.  May be NULL.
     */
    const char *(*library)(unsigned number, char text[BACKEND_LIBRARY]);
    /* All ranks call.  The collective tells the ranks of each other; it outlives the reducer. */
    enum chex_status (*reduce_new)(struct device *device, struct collective *c, struct reduce **out,
                                   struct chex_error *err);

    /* -- images that stay with the device, for batch.index -- */
    /* Room for this number of images of source x source pixels.  CHEX_ERR_MEMORY */
    enum chex_status (*store_new)(struct device *device, uint32_t images, unsigned source, struct image_store **out,
                                  struct chex_error *err);
    /* From any thread, each image once; there when it returns. */
    enum chex_status (*store_put)(struct image_store *store, uint32_t image, const uint8_t *pixels,
                                  struct chex_error *err);
    void (*store_free)(struct image_store *store); /* NULL is allowed; no plan uses it any more */

    /* -- plans -- */
    /*
     * What plan_new() would choose, and the memory it would take; none of it is taken.  CHEX_ERR_UNSUPPORTED a
     * precision or graph that this backend does not do
     */
    enum chex_status (*plan_size)(const struct device *device, const struct plan_options *o, struct plan_facts *facts,
                                  struct chex_error *err);
    /* The kernels of a step, of a plan that trains; NULL where there are none.  The same errors. */
    enum chex_status (*plan_model)(const struct device *device, const struct plan_options *o, struct plan_model *out,
                                   struct chex_error *err);
    /*
     * The same errors, and CHEX_ERR_MEMORY, which names needed and present bytes.  Arenas are zero but for
     * running variances, which are 1.
     */
    enum chex_status (*plan_new)(struct device *device, const struct plan_options *o, struct plan **out,
                                 struct plan_facts *facts, struct chex_error *err);
    void (*plan_free)(struct plan *plan); /* NULL is allowed */

    /* Whole arenas, in the form of the graph: graph->param_floats, or stat_floats, of them. */
    enum chex_status (*write)(struct plan *plan, enum arena_id arena, const float *from, struct chex_error *err);
    enum chex_status (*read)(struct plan *plan, enum arena_id arena, float *to, struct chex_error *err);
    /*
     * read() by a second thread, while that of the plan calls score() alone, or nothing; no step is under way.  May be
     * NULL.
     */
    enum chex_status (*read_beside)(struct plan *plan, enum arena_id arena, float *to, struct chex_error *err);
    enum chex_status (*set_state)(struct plan *plan, const struct plan_state *state, struct chex_error *err);

    /* -- a step -- */
    /*
     * One micro-batch forward and backward.  `end` with STEP_LAST alone.  batch NULL: with STEP_LAST, of a rank that
     * has no image for it; it takes part in the sums with what it has.  CHEX_ERR_LOST, and errors of other ranks
     */
    enum chex_status (*accumulate)(struct plan *plan, const struct batch *batch, unsigned flags,
                                   const struct step_end *end, struct chex_error *err);
    /* One step of the optimizer with these gradients; `clip` as in optimizer.h.  The same errors. */
    enum chex_status (*update)(struct plan *plan, double rate, double clip, uint64_t *ticket, struct chex_error *err);
    /* The result of a step, once it is *done.  Those of the last two tickets can be asked for.  The same errors. */
    enum chex_status (*result)(struct plan *plan, uint64_t ticket, bool *done, struct step_result *out,
                               struct chex_error *err);
    /* A plan that is halted takes part again; nothing is under way. */
    enum chex_status (*resume)(struct plan *plan, struct chex_error *err);

    /* -- evaluation -- */
    /*
     * Logits with running statistics, [views][batch][outputs], 0 for padding; nothing in the plan changes.
     * crop     [views][batch]
     * weights  ARENA_PARAMETERS or ARENA_AVERAGE
     */
    enum chex_status (*score)(struct plan *plan, const struct batch *batch, unsigned views, const struct crop *crop,
                              enum arena_id weights, float *logits, struct chex_error *err);

    /*
     * For tests: a buffer of the graph, or its gradient, after accumulate() of a plan with `keep`, as
     * [batch][channels][height][width]; values of padding are any.  The output is there without `keep` too.
     * CHEX_ERR_UNSUPPORTED where this backend does not keep it.
     */
    enum chex_status (*peek)(struct plan *plan, unsigned buffer, bool gradient, float *out, struct chex_error *err);
};

/*
 * The best first, ended by NULL: a list of the program.  train/backends.c, which make writes, is the one of all that
 * were built; a program with a list of its own does not get it.  And the one of this name, or NULL.
 */
extern const struct backend *const backends[];
const struct backend *backend_find(const char *name);

#endif
