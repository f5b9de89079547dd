/*
 * plan.h - a device and a plan on it: private to train/cuda
 *
 * A plan uses two streams, and the host is a third party.  The host fills a pinned slot (a ring of CUDA_RING) and
 * queues its copy in the stream `copies`.  `compute` waits for that copy; the copy waits for the launch that read the
 * slot of the device before.  The results of a step return at its end to pinned memory, in two alternating buffers.
 * The host waits only in cuda_result(), score_finish(), read() and write(), for a free slot of the ring (several
 * micro-batches per step, several views per image), and for staged sums.
 *
 * A step is one launch of a graph.  accumulate(LAST) only queues the copy of its micro-batch.  update() launches the
 * graph "micro-batch, end, update", which includes the sums over the ranks if the device computes them.  If a caller
 * needs the gradients earlier (peek, read, staged sums), cuda_flush() launches the micro-batch on its own.
 *
 * A graph is recorded on first use.  Its key is what it holds: the parts of a step, the slot and the result buffer.
 *
 * NCCL requires that all ranks record a sum together, and that the graphs that they replay together come from one such
 * recording.  So the key of a graph that holds sums is the same on all ranks.  It depends only on the step:
 * - The last micro-batch of a step uses the slot that the number of the step selects, not the next free one.
 * - If a rank has fewer micro-batches than the others (step_end.uneven), the graph holds only "end, update", without
 *   the micro-batch.  This is at most the last step of an epoch.
 * - If a rank has a fault, it computes black images in the same graph as the others.  A fault cancels the step.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_RUN_PLAN_H
#define CHEX_CUDA_RUN_PLAN_H

#include "cuda/cudnn/engine.h"
#include "cuda/kernels/runtime.h"
#include "cuda/plan/device.h"

#define CUDA_RING 3 /* pinned slots */

/* ---- devices (devices.c) ------------------------------------------------------------------------------------ */

unsigned cuda_device_count(void);
bool cuda_device_absence(char why[BACKEND_LIBRARY]);
enum chex_status cuda_device_open(const struct backend *backend, unsigned number, struct device **out,
                                  struct chex_error *err);

/* ---- errors (check.c) --------------------------------------------------------------------------------------- */

/*
 * Translates the failure of a CUDA call into an error for the user: out of memory, a lost device, an old driver, a
 * failed kernel.  `what`: "copying a micro-batch", or the name of a kernel.
 */
enum chex_status cuda_check(cudaError_t e, const char *what, struct chex_error *err);
/*
 * As cuda_check(), for the first calls for a device.  Later, a device that is missing or not available has been lost;
 * here it cannot be used.
 */
enum chex_status cuda_check_open(cudaError_t e, const char *what, struct chex_error *err);
/* As cuda_check(), for a kernel that was the only work in flight, so it must be the cause. */
enum chex_status cuda_check_kernel(cudaError_t e, const char *kernel, struct chex_error *err);

/* ---- plans (plan.c) ----------------------------------------------------------------------------------------- */

/* What a graph holds: the parts of a step in this order, then the slot and the result buffer that it uses. */
enum cuda_graph_bits {
    HOLDS_BEGIN = 1,   /* the start of a step */
    HOLDS_CLEAR = 2,   /* the first micro-batch of the step has no image on this rank: set gradients to zero */
    HOLDS_FORWARD = 4, /* fprop of the micro-batch in the slot */
    HOLDS_BACKWARD = 8,
    HOLDS_END = 16, /* the end of this rank's part of a step */
    HOLDS_UPDATE = 32,
    HOLDS_SCORE = 64,    /* scoring of one view, from the slot */
    HOLDS_PACK = 128,    /* prepare the weights for scoring; later views reuse them */
    HOLDS_AVERAGE = 256, /* the averaged weights */
    HOLDS_ANY = 511,     /* a mask of all parts */
    OF_SLOT = 512,       /* set: slot 1; otherwise slot 0 */
    OF_RESULT = 1024     /* set: result buffer 1; otherwise 0 */
};

struct cuda_graph {
    unsigned holds;
    cudaGraphExec_t exec;
};
#define CUDA_GRAPHS 64

/*
 * Times of a micro-batch, or of a graph that includes the update.  Events precede the first part and follow forward,
 * backward, the sums over the ranks (HOLDS_END: the part that was not hidden) and the update.
 */
enum { CLOCK_BEGIN, CLOCK_FORWARD, CLOCK_BACKWARD, CLOCK_SUMS, CLOCK_UPDATE, CLOCK_EVENTS };
struct cuda_clock {
    cudaEvent_t event[CLOCK_EVENTS];
    double given;    /* clock_now() when the host gave the work to the device */
    uint64_t ticket; /* of its step */
    uint64_t batch;  /* plan.batches at that time */
    unsigned number; /* of the micro-batch in its step, from 1 */
    unsigned holds;  /* parts that were measured; 0: already read */
};
/* Times of the copy of a micro-batch. */
struct cuda_copy {
    cudaEvent_t begin, end;
};
#define CUDA_COPIES 16 /* number of copies whose times are kept; more than the clocks that are not read yet */
#define CUDA_ENDS   4  /* steps whose end events are kept; one of them precedes the oldest step in flight */
#define CUDA_CLOCKS 8  /* micro-batch n enters after n - 5 has released its slot, so the clock of n - 8 is complete */

/* What the host and the kernels of a step exchange, in mapped host memory: no copies. */
struct cuda_exchange {
    struct end_block end;
    struct step_block step;
    struct step_state made; /* written by step_decide; valid after plan.done */
};

struct plan {
    struct cuda_device *device;
    struct plan_options options;
    struct plan_facts facts;
    struct cuda_layout layout;
    void *memory;           /* on the device: layout.bytes */
    struct cudnn *cudnn;    /* NULL: cuDNN runs no convolution of this plan */
    unsigned char *refused; /* see cuda_chip.refused */
    cudaStream_t compute, copies;

    /* Micro-batches in flight. */
    char *ring[CUDA_RING];         /* pinned, layout.slot.bytes each */
    cudaEvent_t copied[CUDA_RING]; /* the pinned slot is free again */
    cudaEvent_t taken[CUDA_SLOTS]; /* the slot of the device is free again */
    uint64_t batches;              /* number of micro-batches fed so far */
    unsigned slot;                 /* slot of the latest micro-batch */

    /* The current step. */
    unsigned number;  /* of the next micro-batch */
    bool begun;       /* STEP_FIRST was seen, update() not yet */
    bool ended;       /* STEP_LAST was seen */
    bool empty;       /* the last micro-batch had no image */
    unsigned pending; /* parts that are not launched yet: enum cuda_graph_bits */
    size_t summed;    /* while launches are queued: the sums of the gradients from this index on have started */
    unsigned result;  /* while launches are queued: the exchange that they use */
    uint64_t asked;   /* the last ticket whose result was requested before it was ready */

    /* Results. */
    uint64_t ticket;                      /* of the latest step */
    struct cuda_exchange *exchange[2];    /* addresses of the host */
    struct cuda_exchange *exchange_at[2]; /* the same memory, addresses of the device */
    cudaEvent_t done[2];

    /* Times. */
    struct cuda_clock clock[CUDA_CLOCKS]; /* a ring, for micro-batches that are launched without the update */
    uint64_t clocks;
    struct cuda_clock whole[2]; /* for graphs with an update; the events are nodes of these graphs */
    struct cuda_copy copy[CUDA_COPIES];
    cudaEvent_t step_end[CUDA_ENDS]; /* with timing */
    uint64_t times_of[2];            /* tickets */
    struct step_times times[2];
    double idle[2];
    double measured; /* clock_now() at the end of the latest measured part */

    struct cuda_graph graph[CUDA_GRAPHS];
    unsigned graphs;

    /* Evaluation: a pass is the scoring of one view. */
    enum arena_id folded; /* arena whose weights are prepared for scoring; ARENA_COUNT: none */
    float *logits[2];     /* pinned, [batch][outputs]; of passes in turn */
    float *maps[2];       /* pinned, [batch][map_floats]; NULL: the plan has no maps */
    size_t map_floats;    /* of graph_head */
    cudaEvent_t scored[2];
    float *scored_to[2];                   /* the host's memory for these logits; NULL: nothing to copy */
    float *maps_to[2];                     /* the same of maps */
    uint64_t passes;                       /* started so far */
    uint64_t scores, scores_finished;      /* micro-batches that were started, and finished */
    uint64_t scores_end[SCORES_IN_FLIGHT]; /* number of passes up to the end of these micro-batches, in turn */
    cudaEvent_t drained;                   /* for cuda_drain(); with staged sums, the end of this rank's computation */

    /* For read_concurrently() of a training plan; used only by the thread that calls it. */
    cudaStream_t read_stream;
    float *landing; /* pinned, the size of the largest arena */
    cudaEvent_t landed;
};

enum chex_status cuda_plan_size(const struct device *device, const struct plan_options *o, struct plan_facts *facts,
                                struct chex_error *err);
enum chex_status cuda_plan_model(const struct device *device, const struct plan_options *o, const struct plan *plan,
                                 struct plan_model *out, struct chex_error *err);
enum chex_status cuda_plan_new(struct device *device, const struct plan_options *o, struct plan **out,
                               struct plan_facts *facts, struct chex_error *err);
void cuda_plan_free(struct plan *plan);

/* ---- what the host reads and writes (arenas.c), as in struct backend --------------------------------------------- */

enum chex_status cuda_write(struct plan *plan, enum arena_id arena, const float *from, struct chex_error *err);
enum chex_status cuda_read(struct plan *plan, enum arena_id arena, float *to, struct chex_error *err);
enum chex_status cuda_read_concurrently(struct plan *plan, enum arena_id arena, float *to, struct chex_error *err);
enum chex_status cuda_set_state(struct plan *plan, const struct plan_state *state, struct chex_error *err);
enum chex_status cuda_peek(struct plan *plan, unsigned buffer, bool gradient, float *out, struct chex_error *err);
/* Copy between host and device after all work that the plan has queued, and wait for the copy. */
enum chex_status cuda_copy_now(struct plan *plan, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                               struct chex_error *err);

/* ---- streams and memory (streams.c) ------------------------------------------------------------------------- */

/*
 * Creates the streams, events and pinned memory of a plan.  Its device must be current, its options and layout must be
 * set, and all other members must be zero.  Call cuda_steps_free() in any case, also after an error; it does not wait
 * for work that has failed.
 */
enum chex_status cuda_steps_new(struct plan *plan, struct chex_error *err);
/* Destroys the graphs that hold any of these parts. */
void cuda_drop_graphs(struct plan *plan, unsigned parts);
bool cuda_steps_free(struct plan *plan); /* false: the device is still busy; do not free its memory */

/* Makes the plan's device current in this thread.  Every function of the backend's table starts with it. */
enum chex_status cuda_enter(const struct plan *plan, struct chex_error *err);
/*
 * Call it repeatedly while this rank waits for its device, which may be waiting for other ranks; `begins`: a new wait.
 */
enum chex_status cuda_watch(struct plan *plan, bool begins, struct chex_error *err);
/* Waits for an event.  With other ranks, it sends heartbeats meanwhile. */
enum chex_status cuda_wait(struct plan *plan, cudaEvent_t event, const char *what, struct chex_error *err);
/* Waits for all work in the plan's stream; the second form takes the name of the kernel that was launched. */
enum chex_status cuda_drain(struct plan *plan, const char *what, struct chex_error *err);
enum chex_status cuda_drain_kernel(struct plan *plan, const char *kernel, struct chex_error *err);
/*
 * Call it after an error.  Waits until no work in the stream is in flight, and aborts sums that wait for a lost rank.
 * Returns false if the device does not finish.
 */
bool cuda_quiesce(struct plan *plan);

/* ---- micro-batches (images.c) ------------------------------------------------------------------------- */

/* How a micro-batch is fed, in addition to the batch itself. */
struct cuda_feed {
    const struct crop *crop;
    unsigned number; /* in its step */
    unsigned slot;   /* of the device */
    bool seen;       /* its pixels are already in the slot */
};
/*
 * Copies a micro-batch to a slot of the device; the plan's stream waits for the copy.  batch NULL: black images, whose
 * results nobody uses.
 */
enum chex_status cuda_feed(struct plan *plan, const struct batch *batch, const struct cuda_feed *how,
                           struct chex_error *err);

/* ---- launches (record.c) and their times (clock.c) ----------------------------------------------------- */

/* Returns the launch with the addresses of the exchange plan->result, if it uses mapped host memory. */
struct cuda_op cuda_with_exchange(const struct plan *plan, const struct cuda_op *op);

/* Launches the parts in `holds` as one graph, which is recorded on first use. */
enum chex_status cuda_run(struct plan *plan, unsigned holds, struct chex_error *err);

/* Returns the clock for the next micro-batch. */
struct cuda_clock *cuda_clock_take(struct plan *plan, unsigned holds);
void cuda_clock_start(const struct plan *plan, struct cuda_clock *c, unsigned holds);
/* Adds up the times of a step that has ended. */
void cuda_clock_step(struct plan *plan, uint64_t ticket);

/* ---- sums of the ranks in the graph of a step (buckets.c) --------------------------------------------------- */

/* Whether there are other ranks; whether the device computes the sums, or the host does. */
bool cuda_has_peers(const struct plan *plan);
bool cuda_sums_on_device(const struct plan *plan);
bool cuda_sums_on_host(const struct plan *plan);
/*
 * The last micro-batch of a step follows; start the buckets whose gradients are final, those from `final` on; start the
 * rest and join.
 */
void cuda_sums_begin(struct plan *plan);
enum chex_status cuda_sums_start(struct plan *plan, size_t final, struct chex_error *err);
enum chex_status cuda_sums_end(struct plan *plan, struct chex_error *err);

/* ---- a step (steps.c) --------------------------------------------------------------------------------------- */

enum chex_status cuda_accumulate(struct plan *plan, const struct batch *batch, unsigned flags,
                                 const struct step_end *end, struct chex_error *err);
enum chex_status cuda_update(struct plan *plan, double rate, double clip, uint64_t *ticket, struct chex_error *err);
enum chex_status cuda_result(struct plan *plan, uint64_t ticket, bool *done, struct step_result *out,
                             struct chex_error *err);
enum chex_status cuda_resume(struct plan *plan, struct chex_error *err);
/* Launches the micro-batch that waits for update(), if there is one. */
enum chex_status cuda_flush(struct plan *plan, struct chex_error *err);

/* ---- times of single launches (measure.c), as in struct backend ------------------------------------------------- */

/* With plan_options.no_graph, the host queues each run by itself.  Otherwise the runs are recorded as one graph. */
enum chex_status cuda_measure_launches(struct plan *plan, unsigned runs, double *seconds, struct chex_error *err);

/* ---- evaluation (score.c), images (images.c) ------------------------------------------------------------ */

enum chex_status cuda_score_start(struct plan *plan, const struct batch *batch, unsigned views, const struct crop *crop,
                                  enum arena_id weights, float *logits, float *maps, struct chex_error *err);
enum chex_status cuda_score_finish(struct plan *plan, struct chex_error *err);

enum chex_status cuda_store_new(struct device *device, uint32_t images, unsigned source, struct image_store **out,
                                struct chex_error *err);
enum chex_status cuda_store_put(struct image_store *store, uint32_t image, const uint8_t *pixels,
                                struct chex_error *err);
void cuda_store_free(struct image_store *store);

#endif
