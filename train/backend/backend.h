/*
 * backend.h - the interface between the trainer and a backend, which executes a whole graph instead of single operators
 *
 * plan_new() takes a device, a graph and the size of a micro-batch.  It chooses layouts, algorithms, fusion and memory;
 * afterwards nothing is allocated.  A plan owns the arenas: parameters, running statistics, gradients, moments of the
 * optimizer.  The interface exposes an arena in the form of the graph (graph.h): float32, row-major, in the order of
 * the tensors.  The internal layout is private, and no pointer to it leaves the backend.
 *
 * A step on each rank:
 *     accumulate(FIRST ... LAST)   for each micro-batch; with LAST the gradients are summed over the ranks as they
 *                                  become final
 *     update()                     applies the optimizer; returns a ticket for the step
 *     result(ticket)               returns the result of the step
 * Only result(), score_start(), score_finish(), read() and write() wait for a device.  So the trainer calls result()
 * for a step after it has given device_info.ahead further steps to the plan.
 *
 * A step changes nothing (parameters, moments, average, running statistics) if its loss or gradients are not finite, or
 * if a rank reports a fault.  With a loss scale the step is skipped and the scale is reduced.  Without one, or if a
 * rank reports a fault, the plan is halted: later steps change nothing until resume().
 *
 * A backend and its reducer (reduce.h) compute the sums over the ranks.  The loss, the numbers of labels, the
 * faults and the requests of the ranks are appended to the gradients, so a step needs no other message between the
 * ranks.
 *
 * Every function returns CHEX_OK or fails with CHEX_ERR_MEMORY or CHEX_ERR_BUG, unless its comment lists more.  One
 * thread at a time may use a plan, except for read_concurrently(); different plans are independent.  The same calls
 * with the same input give the same bits on the same machine, for any number of threads.
 *
 * train/ref is the reference in plain C; tests compare every other backend with it, buffer by buffer.  The backends
 * that compute in host memory share arenas, sums and steps (host.h).
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

/* "auto", "fp32", ...: the values of --precision. */
extern const char *const precision_names[]; /* NULL-terminated */

/* Implementation of the convolutions, on devices with a choice: kernels of the backend, or a library of the vendor. */
enum engine { ENGINE_OWN, ENGINE_CUDNN };

/* "own", "cudnn": the values of --engine. */
extern const char *const engine_names[]; /* ended by NULL */

#define DEVICE_SIZES 2 /* most sizes of memory with which a GPU is sold */

struct device_info {
    char text[128];              /* "CPU, AVX2": equal for equal devices */
    char id[48];                 /* identifies the device, e.g. the UUID of a GPU; may be "" */
    bool own_memory;             /* otherwise the memory of the host */
    bool imagined;               /* from device_imagine(): no real device */
    bool fixed_time;             /* a micro-batch takes the same time with padding as with images */
    uint64_t memory;             /* free bytes; UINT64_MAX: unknown */
    unsigned sold[DEVICE_SIZES]; /* imagined: the sizes of its memory, GB (1e9 bytes); 0: none */
    unsigned precisions;         /* bits 1 << enum precision */
    enum precision precision;    /* meaning of PRECISION_AUTO */
    unsigned micro_batch; /* largest micro-batch, in images, that the trainer chooses by default; 0: the whole batch */
    bool own_clock;       /* step_result.times are device times; the host does other work meanwhile */
    unsigned ahead;       /* steps that may be in flight after the step whose result is requested: 0 or 1 */
};

/* Every backend's device begins with this struct. */
struct device {
    const struct backend *backend;
    struct device_info info;
};

/* Data type of gradients in transfers between ranks, if a device sums them. */
enum wire { WIRE_FP32, WIRE_BF16 };
extern const char *const wire_names[]; /* "fp32", "bf16": the values of --wire; NULL-terminated */

/* ---- plans ------------------------------------------------------------------------------------------------------- */

enum arena_id {
    ARENA_PARAMETERS,
    ARENA_STATISTICS,
    ARENA_GRADIENTS, /* of a step, summed over the ranks; valid after its result() */
    ARENA_MOMENT1,   /* of the optimizer: optimizer.h */
    ARENA_MOMENT2,
    ARENA_AVERAGE,
    ARENA_COUNT
};

/* Size of an arena; whether a plan with these options has it; initial values that are not zero. */
struct plan_options;
size_t arena_floats(const struct graph *g, enum arena_id arena);
bool arena_is_wanted(const struct plan_options *o, enum arena_id arena);
void arena_start_statistics(const struct graph *g, float *statistics);
/*
 * Decay running statistics.  A micro-batch updates them by r = (1 - m) r + m batch, with m = GRAPH_NORM_MOMENTUM.  This
 * function applies only the decay of `times` micro-batches of `images` images: r = (1 - m)^times r.
 */
void arena_fade_statistics(const struct graph *g, unsigned images, uint64_t times, float *statistics);

struct plan_options {
    const struct graph *graph; /* must outlive the plan */
    unsigned batch;            /* images per micro-batch */
    unsigned micro_batches;    /* most micro-batches per step on this rank; 0: 1 */
    unsigned source;           /* side of the source images, at least that of the graph's input */
    bool train;                /* otherwise only scoring: no gradients, no moments */
    bool mixup;                /* micro-batches may have batch.mix */
    bool maps;                 /* score_start() can write maps; a graph without graph_head: CHEX_ERR_UNSUPPORTED */
    bool average;              /* keep an exponential moving average of the parameters */
    bool keep;                 /* for tests: no two buffers share memory, so peek() finds all of them */
    bool deterministic;        /* the result must not depend on timing; all algorithms of all backends comply */
    bool no_graph;             /* launch each kernel separately and wait for it, so that an error names the kernel */
    bool pdl;                  /* programmatic dependent launch, if the device supports it; does not change any bits */
    enum precision precision;
    enum engine engine;    /* ENGINE_CUDNN: CHEX_ERR_UNSUPPORTED if the backend lacks it */
    unsigned threads;      /* CPU: at least 1 */
    struct reduce *reduce; /* from reduce_new(), must outlive the plan; NULL: a single process */
    enum wire wire;        /* type of the gradients in its sums, if it has a choice */
    struct loss_options loss;
    struct optimizer_options optimizer;

    /* Called after each part of a step, with times of clock_now(); may be NULL. */
    void (*part)(void *context, enum step_part part, double begin, double end);
    void *context;
};

/* Bytes that a plan needs, on the device or in the process. */
struct plan_memory {
    uint64_t parameters, optimizer, activations, workspace;
};

/* The choices of a backend, for run.json, the checkpoint and the comparison of ranks. */
#define PLAN_ALGORITHMS 17
#define PLAN_ENGINE     160
struct plan_facts {
    enum precision precision;         /* never PRECISION_AUTO */
    char algorithms[PLAN_ALGORITHMS]; /* hexadecimal hash of everything that affects bits */
    /*
     * Implementation of the convolutions: "own kernels", "52 of 53 convolutions by cuDNN 9.19.0"; "": only own kernels.
     */
    char engine[PLAN_ENGINE];
    bool pdl; /* requested and supported by the device */
    struct plan_memory memory;
};

/* The kernels of a step of a plan, predicted by a cost model of the device.  Nothing is launched or measured. */
#define PLAN_KERNEL 64
struct plan_launch {
    char kernel[PLAN_KERNEL], kind[PLAN_KERNEL]; /* kind: the name without tile shape and data type */
    char shape[PLAN_KERNEL]; /* "401408 x 128 x 64" for a matrix product, otherwise pixels x channels */
    char tile[PLAN_KERNEL];  /* "64x128, 6272 tiles"; "196 blocks" */
    unsigned times;          /* launches per step */
    uint64_t read, written;  /* bytes of device memory; each address counts once per launch */
    double flop;             /* of matrix products */
    double seconds;
    const char *limit; /* the resource that takes longest: "DRAM", "L2", "products", "issue", "shared memory" */
};
struct plan_model_score {
    unsigned images, launches;
    uint64_t bytes;
    double seconds;
};
struct plan_model {
    char device[128];           /* the modelled device */
    struct plan_launch *launch; /* [count], in order of execution; plan_model_free() */
    size_t count;
    unsigned images, launches; /* per step of this rank */
    uint64_t bytes;
    double seconds;
    double forward, backward, update; /* its parts: with the input; with the end of the step; of the optimizer */
    struct plan_model_score score;    /* one micro-batch of an evaluation */
};
void plan_model_free(struct plan_model *m);

/* State of a plan that is in no arena but in checkpoints. */
struct plan_state {
    uint64_t applied;  /* steps that changed the parameters: t of Adam */
    double loss_scale; /* 1 without loss scaling; 0: the value of a new plan */
    uint32_t good;     /* steps since loss_scale changed */
};

/* ---- a step ------------------------------------------------------------------------------------------------------ */

enum step_flags {
    STEP_FIRST = 1, /* start a step: zero the gradients, continue with the running statistics of the last step */
    STEP_LAST = 2,  /* the last micro-batch of this rank */
    STEP_FAULT = 4  /* with STEP_LAST: this rank cannot continue, so no rank applies this step */
};

#define STEP_REQUESTS 8 /* number of request bits */

/* The message that a rank sends with STEP_LAST. */
struct step_end {
    uint32_t requests; /* request bits, below STEP_REQUESTS */
    /*
     * Micro-batches of the ranks after this one: `following` full ones and one of `rest` images (0: none).  The running
     * statistics decay by them.  Rank 0 starts a step with the old statistics, the others with zero.  So the sum over
     * the ranks equals the result of one process that sees all micro-batches in order.
     */
    uint64_t following;
    unsigned rest;
    /*
     * A rank has fewer micro-batches with images in this step than plan_options.micro_batches.  The same on all ranks.
     * In any other step, a rank may call accumulate() without a batch only because of a fault.
     */
    bool uneven;
};

#define STEP_NONE UINT32_MAX

struct step_result {
    double loss; /* over all ranks */
    double norm; /* 2-norm of the gradients, summed over all ranks, unscaled, before clipping */
    bool known;  /* at least one label of any rank is known; otherwise the loss is 0 */
    bool applied;
    bool halted;       /* the plan is halted: this and later steps change nothing */
    uint32_t faults;   /* number of ranks with STEP_FAULT */
    uint32_t requests; /* OR over the ranks */
    uint32_t bad;      /* the first micro-batch of this rank with a loss that is not finite, or STEP_NONE */
    struct plan_state state;
    struct step_times times; /* of the parts that the backend measures, by the clock of the device */
    double idle;             /* with own_clock: idle seconds of the device before and between its micro-batches */
};

/* ---- an evaluation ----------------------------------------------------------------------------------------------- */

/* The device computes one micro-batch while the host prepares the next one and uses the logits of the previous one. */
#define SCORES_IN_FLIGHT 2

/* ---- the interface ----------------------------------------------------------------------------------------------- */

#define BACKEND_LIBRARY 96 /* for the version of a library, or why it is missing */

struct backend {
    const char *name; /* "ref", for --device */

    /* -- devices -- */
    unsigned (*device_count)(void); /* 0 if there is no driver */
    /*
     * Explains why device_count() is 0; NULL: it never is.  Returns false if the machine just has no driver for such
     * devices: then only a user who named the device needs the explanation.
     */
    bool (*device_absence)(char why[BACKEND_LIBRARY]);
    /* CHEX_ERR_UNSUPPORTED explains why the device cannot be used. */
    enum chex_status (*device_open)(unsigned number, struct device **out, struct chex_error *err);
    /*
     * Open a device that does not exist: plan_size() and plan_model() report what a plan would need on it; of the other
     * functions, only reduce_new() and device_close() may be called.  model: the name of a GPU, or NULL for the
     * backend's choice.  CHEX_ERR_USAGE: an unknown model; the text has the known ones.  NULL if the backend's devices
     * always exist.
     */
    enum chex_status (*device_imagine)(const char *model, struct device **out, struct chex_error *err);
    void (*device_close)(struct device *device); /* NULL is allowed */
    /*
     * Lists the libraries that the backend opens on demand, and those of the vendor that are linked, from number 0 on.
     * Returns the name; `text` is the version, or why it is missing.  Returns NULL after the last.  May be NULL.
     */
    const char *(*library)(unsigned number, char text[BACKEND_LIBRARY]);
    /*
     * All ranks call it and exchange data through the collective, which must outlive the reducer.  After an error, free
     * *out if it is not NULL.
     */
    enum chex_status (*reduce_new)(struct device *device, struct collective *c, struct reduce **out,
                                   struct chex_error *err);

    /* -- images in device memory, for batch.index -- */
    /* Allocate memory for `images` images of source x source pixels.  CHEX_ERR_MEMORY */
    enum chex_status (*store_new)(struct device *device, uint32_t images, unsigned source, struct image_store **out,
                                  struct chex_error *err);
    /* Store an image, once per image, from any thread; the copy is complete on return. */
    enum chex_status (*store_put)(struct image_store *store, uint32_t image, const uint8_t *pixels,
                                  struct chex_error *err);
    void (*store_free)(struct image_store *store); /* NULL is allowed; no plan may still use it */

    /* -- plans -- */
    /*
     * Report what plan_new() would choose and the memory it would need, without an allocation.  CHEX_ERR_UNSUPPORTED: a
     * precision or graph that this backend does not support.
     */
    enum chex_status (*plan_size)(const struct device *device, const struct plan_options *o, struct plan_facts *facts,
                                  struct chex_error *err);
    /*
     * Model the kernels of a step of a training plan: those of `plan`, or if it is NULL, those that plan_new() would
     * launch.  NULL if the backend has no model.  Errors as plan_size().
     */
    enum chex_status (*plan_model)(const struct device *device, const struct plan_options *o, const struct plan *plan,
                                   struct plan_model *out, struct chex_error *err);
    /*
     * Errors as plan_size(), and CHEX_ERR_MEMORY, whose text has the required and the available bytes.  All arenas are
     * zero, except that running variances are 1.
     */
    enum chex_status (*plan_new)(struct device *device, const struct plan_options *o, struct plan **out,
                                 struct plan_facts *facts, struct chex_error *err);
    void (*plan_free)(struct plan *plan); /* NULL is allowed */
    /*
     * For benchmarks: make one more step on the micro-batch of the last step, launch by launch, and measure each
     * launch, `runs` times in a row.  seconds[i] is the median of several such measurements of one run of launch i of
     * plan_model().  Afterwards the plan is as after one such step.  Needs a training plan without other ranks, between
     * two steps, and as much memory again as the plan.  NULL if the backend has no launches.
     */
    enum chex_status (*measure_launches)(struct plan *plan, unsigned runs, double *seconds, struct chex_error *err);

    /* Copy whole arenas in the form of the graph: graph->param_floats or stat_floats floats. */
    enum chex_status (*write)(struct plan *plan, enum arena_id arena, const float *from, struct chex_error *err);
    enum chex_status (*read)(struct plan *plan, enum arena_id arena, float *to, struct chex_error *err);
    /*
     * As read(), for a second thread, while the thread of the plan only scores or does nothing, and no step is in
     * flight.  May be NULL.
     */
    enum chex_status (*read_concurrently)(struct plan *plan, enum arena_id arena, float *to, struct chex_error *err);
    enum chex_status (*set_state)(struct plan *plan, const struct plan_state *state, struct chex_error *err);

    /* -- a step -- */
    /*
     * Run one micro-batch forward and backward.  `end` is for STEP_LAST only.  With STEP_LAST, batch may be NULL: this
     * rank has no images left, and contributes its sums so far.  CHEX_ERR_LOST, and errors of other ranks
     */
    enum chex_status (*accumulate)(struct plan *plan, const struct batch *batch, unsigned flags,
                                   const struct step_end *end, struct chex_error *err);
    /* Apply one optimizer step with the gradients; `clip` as in optimizer.h.  Errors as accumulate(). */
    enum chex_status (*update)(struct plan *plan, double rate, double clip, uint64_t *ticket, struct chex_error *err);
    /* Get the result of a step when it is *done; only the last two tickets are valid.  Errors as accumulate(). */
    enum chex_status (*result)(struct plan *plan, uint64_t ticket, bool *done, struct step_result *out,
                               struct chex_error *err);
    /* Let a halted plan continue; no step may be in flight. */
    enum chex_status (*resume)(struct plan *plan, struct chex_error *err);

    /* -- evaluation -- */
    /*
     * Start to compute the logits of a micro-batch with running statistics.  The plan does not change.  At most
     * SCORES_IN_FLIGHT micro-batches may be in flight: started, but not yet finished.  Until they are finished, only
     * score_start(), score_finish() and read_concurrently() may be called.  After an error this micro-batch is not in
     * flight, but earlier ones still are.  CHEX_ERR_LOST, and errors of other ranks
     * crop    [views][batch], read before the call returns, like the batch
     * weights ARENA_PARAMETERS or ARENA_AVERAGE
     * logits  [views][batch][outputs], 0 for padding; written until score_finish() returns
     * maps    [views][batch][outputs][height][width] of graph_head, the class activation maps (maps.h); written as
     *         logits; NULL: none.  Only for a plan with `maps`
     */
    enum chex_status (*score_start)(struct plan *plan, const struct batch *batch, unsigned views,
                                    const struct crop *crop, enum arena_id weights, float *logits, float *maps,
                                    struct chex_error *err);
    /*
     * Wait for the logits of the oldest micro-batch in flight.  It is no longer in flight afterwards, also after an
     * error.  Errors as score_start()
     */
    enum chex_status (*score_finish)(struct plan *plan, struct chex_error *err);

    /*
     * For tests: copy a buffer of the graph, or its gradient, after accumulate() of a plan with `keep`, as
     * [batch][channels][height][width].  Values of padding are undefined.  The output buffer needs no `keep`.
     * CHEX_ERR_UNSUPPORTED: this backend does not keep the buffer.
     */
    enum chex_status (*peek)(struct plan *plan, unsigned buffer, bool gradient, float *out, struct chex_error *err);
};

/*
 * The backends of the program, best first, NULL-terminated.  The build generates train/backends.c with all built
 * backends; a program that defines its own list does not link that file.  backend_find() returns the backend with this
 * name, or NULL.
 */
extern const struct backend *const backends[];
const struct backend *backend_find(const char *name);

/* Score one micro-batch without maps: score_start() and score_finish().  No other may be in flight. */
enum chex_status backend_score(const struct backend *backend, struct plan *plan, const struct batch *batch,
                               unsigned views, const struct crop *crop, enum arena_id weights, float *logits,
                               struct chex_error *err);

#endif
