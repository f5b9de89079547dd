/*
 * plan.h - a device and a plan on it: private to train/cuda
 *
 * Three streams' worth of order: the host fills a pinned slot of a ring of CUDA_RING and puts its copy into `copies`;
 * `compute` waits for that copy, and the copy for the launch that read the device's slot before.  Results come back at
 * the end of each step into pinned memory, two in turns.  The host waits in cuda_result(), score(), read(), write() and
 * nowhere else, but where a slot of the ring is not free yet (several micro-batches a step), and for staged sums.
 *
 * A step is one launch of a graph: accumulate(LAST) puts only the copy of its micro-batch in; update() launches the
 * graph "micro-batch, end, update", with the sums of the ranks in it where the device makes them.  A call that needs
 * the gradients before (peek, read, a reducer whose sums are staged by the host) has the micro-batch launched by
 * cuda_flush().  Graphs are recorded when they are first
 * needed, by what they hold: first, last, update, the slot and the result.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_RUN_PLAN_H
#define CHEX_CUDA_RUN_PLAN_H

#include "cuda/cudnn/engine.h"
#include "cuda/plan/layout.h"

#define CUDA_RING 3 /* pinned slots */

/* ---- devices (devices.c) ------------------------------------------------------------------------------------ */

#define CUDA_BUS 32
struct cuda_device {
    struct device device; /* the first member */
    int number;           /* of the CUDA runtime; -1: a device that was imagined, for plan_size() alone */
    char bus[CUDA_BUS];   /* its place: "0000:3b:00"; parts of one GPU (MIG) have the same */
    unsigned major, minor, processors;
};

unsigned cuda_device_count(void);
bool cuda_device_absence(char why[BACKEND_LIBRARY]);
enum chex_status cuda_device_open(const struct backend *backend, unsigned number, struct device **out,
                                  struct chex_error *err);
void cuda_device_close(struct device *device);
/* The set of kernels of a precision, and what a layout depends on; CHEX_ERR_UNSUPPORTED names the precisions. */
enum chex_status cuda_chip_of(const struct cuda_device *device, enum precision precision, struct cuda_chip *out,
                              struct chex_error *err);

/* ---- errors (check.c) --------------------------------------------------------------------------------------- */

/*
 * What a failed call means for who runs a training: out of memory, a device that is gone, a driver too old, a kernel
 * that failed.  `what`: "copying a micro-batch", or the name of a kernel.
 */
enum chex_status cuda_check(cudaError_t e, const char *what, struct chex_error *err);
/* The same for a kernel that ran alone. */
enum chex_status cuda_check_kernel(cudaError_t e, const char *kernel, struct chex_error *err);

/* ---- plans (plan.c) ----------------------------------------------------------------------------------------- */

/* What a graph holds: parts of a step in this order, and which slot and result they are for. */
enum cuda_graph_bits {
    HOLDS_BEGIN = 1,   /* of a step */
    HOLDS_CLEAR = 2,   /* a rank's first micro-batch has no image: gradients are zero */
    HOLDS_FORWARD = 4, /* a micro-batch, from the slot */
    HOLDS_BACKWARD = 8,
    HOLDS_END = 16, /* of this rank's part of a step */
    HOLDS_UPDATE = 32,
    HOLDS_SCORE = 64,    /* a view, from the slot */
    HOLDS_PACK = 128,    /* weights to score with, for views that follow */
    HOLDS_AVERAGE = 256, /* those of the average */
    OF_SLOT = 512,       /* 1, else 0 */
    OF_RESULT = 1024     /* 1, else 0 */
};

struct cuda_graph {
    unsigned holds;
    cudaGraphExec_t exec;
};
#define CUDA_GRAPHS 64

/*
 * Times of a micro-batch, or of what is one graph with the update: events before the first part and behind forward,
 * backward, sums of the ranks (what of them was not hidden; HOLDS_END) and update, and when the host gave the work to
 * the device.
 */
enum { CLOCK_BEGIN, CLOCK_FORWARD, CLOCK_BACKWARD, CLOCK_SUMS, CLOCK_UPDATE, CLOCK_EVENTS };
struct cuda_clock {
    cudaEvent_t event[CLOCK_EVENTS];
    double given;    /* progress_clock() */
    uint64_t ticket; /* of the step */
    uint64_t batch;  /* plan.batches with it */
    unsigned number; /* of the micro-batch in its step, from 1 */
    unsigned holds;  /* which parts there are; 0: it was read */
};
/* The copy of a micro-batch. */
struct cuda_copy {
    cudaEvent_t begin, end;
};
#define CUDA_COPIES 16 /* whose times are kept: more than clocks that were not read */
#define CUDA_ENDS   4  /* steps whose ends are kept: that before the oldest under way is among them */
#define CUDA_CLOCKS 8  /* when micro-batch n is put in, n - 5 has ended: its pinned slot was free */

struct plan {
    struct cuda_device *device;
    struct plan_options options;
    struct plan_facts facts;
    struct cuda_layout layout;
    void *memory;           /* on the device: layout.bytes */
    struct cudnn *cudnn;    /* NULL: it does no convolution of this plan */
    unsigned char *refused; /* cuda_chip.refused */
    cudaStream_t compute, copies;

    /* Micro-batches on their way. */
    char *ring[CUDA_RING];         /* pinned, layout.slot.bytes each */
    cudaEvent_t copied[CUDA_RING]; /* the pinned slot may be filled again */
    cudaEvent_t taken[CUDA_SLOTS]; /* the device's slot may be filled again */
    uint64_t batches;              /* that were put in */

    /* The step at hand. */
    unsigned number;  /* of the next micro-batch */
    bool begun;       /* STEP_FIRST was there, and no update() yet */
    bool ended;       /* STEP_LAST was there */
    bool empty;       /* the last micro-batch had no image */
    unsigned pending; /* what of it is still to be launched: enum cuda_graph_bits */
    size_t summed;    /* while its launches are put in: gradients from here on are on their way to the other ranks */
    uint64_t asked;   /* ticket whose result was asked for last and was not there */

    /* Results. */
    uint64_t ticket;                  /* of the last step */
    struct step_state *made[2];       /* pinned */
    struct step_block *step_block[2]; /* pinned */
    struct end_block *end_block[2];   /* pinned */
    cudaEvent_t done[2];

    /* Times. */
    struct cuda_clock clock[CUDA_CLOCKS]; /* of micro-batches that are no part of a larger graph, in turns */
    uint64_t clocks;
    struct cuda_clock whole[2]; /* its events are nodes of the graphs with an update */
    struct cuda_copy copy[CUDA_COPIES];
    cudaEvent_t step_end[CUDA_ENDS]; /* timed */
    uint64_t times_of[2];            /* tickets */
    struct step_times times[2];
    double idle[2];
    double measured; /* progress_clock() of the end of what was measured last */

    struct cuda_graph graph[CUDA_GRAPHS];
    unsigned graphs;

    /* Evaluation. */
    enum arena_id folded; /* whose weights are ready to score with; ARENA_COUNT: none */
    float *logits[2];     /* pinned, [batch][outputs] */
    cudaEvent_t scored[2];
    cudaEvent_t drained; /* of cuda_drain(); the end of what this rank computes, where the host sums */

    /* Of read_beside(), where it trains: by its thread alone. */
    cudaStream_t beside;
    float *landing; /* pinned, the largest arena */
    cudaEvent_t landed;
};

enum chex_status cuda_plan_size(const struct device *device, const struct plan_options *o, struct plan_facts *facts,
                                struct chex_error *err);
enum chex_status cuda_plan_model(const struct device *device, const struct plan_options *o, struct plan_model *out,
                                 struct chex_error *err);
enum chex_status cuda_plan_new(struct device *device, const struct plan_options *o, struct plan **out,
                               struct plan_facts *facts, struct chex_error *err);
void cuda_plan_free(struct plan *plan);

/* ---- what the host reads and writes (arenas.c, peek.c), as in struct backend ------------------------------------- */

enum chex_status cuda_write(struct plan *plan, enum arena_id arena, const float *from, struct chex_error *err);
enum chex_status cuda_read(struct plan *plan, enum arena_id arena, float *to, struct chex_error *err);
enum chex_status cuda_read_beside(struct plan *plan, enum arena_id arena, float *to, struct chex_error *err);
enum chex_status cuda_set_state(struct plan *plan, const struct plan_state *state, struct chex_error *err);
enum chex_status cuda_peek(struct plan *plan, unsigned buffer, bool gradient, float *out, struct chex_error *err);
/* Copy between host and device after all work that the plan has queued, and wait for the copy. */
enum chex_status cuda_copy_now(struct plan *plan, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                               struct chex_error *err);

/* ---- what a step needs (streams.c) -------------------------------------------------------------------------- */

/*
 * Streams, events and pinned memory of a plan whose device is current, whose options and layout are there, and which is
 * zero else.  cuda_steps_free() is the end of it, also after an error of either, and waits for nothing that has failed.
 */
enum chex_status cuda_steps_new(struct plan *plan, struct chex_error *err);
void cuda_drop_graphs(struct plan *plan);
bool cuda_steps_free(struct plan *plan); /* false: the device is still busy, and has to be left as it is */

/* Its device becomes that of this thread: what every function of the table begins with. */
enum chex_status cuda_enter(const struct plan *plan, struct chex_error *err);
/* Called again and again while a rank waits for its device, which may wait for other ranks; `begins`: a new wait. */
enum chex_status cuda_watch(struct plan *plan, bool begins, struct chex_error *err);
/* Until an event was reached.  A rank with peers tells them that it lives. */
enum chex_status cuda_wait(struct plan *plan, cudaEvent_t event, const char *what, struct chex_error *err);
/* Until all is done that was put into the stream of the plan; the same of a kernel alone. */
enum chex_status cuda_drain(struct plan *plan, const char *what, struct chex_error *err);
enum chex_status cuda_drain_kernel(struct plan *plan, const char *kernel, struct chex_error *err);
/*
 * After an error: nothing that was put into the stream is under way any more.  Sums that wait for a rank that is gone
 * are given up.  False: the device does not end.
 */
bool cuda_settle(struct plan *plan);

/* ---- micro-batches on their way (feed.c) -------------------------------------------------------------------- */

/* How one is seen besides what it holds. */
struct cuda_feed {
    const struct crop *crop;
    unsigned number; /* in its step */
    bool seen;       /* its pixels are in the slot: those of the last but one */
};
/* Into the next slot of the device, *slot; the stream of the plan waits for it. */
enum chex_status cuda_feed(struct plan *plan, const struct batch *batch, const struct cuda_feed *how, unsigned *slot,
                           struct chex_error *err);

/* ---- launches (record.c) and their times (clock.c) ----------------------------------------------------- */

/* Launch what `holds` says, as one graph: recorded when it is first needed. */
enum chex_status cuda_run(struct plan *plan, unsigned holds, struct chex_error *err);

/* A clock for the next micro-batch. */
struct cuda_clock *cuda_clock_take(struct plan *plan, unsigned holds);
void cuda_clock_start(const struct plan *plan, struct cuda_clock *c, unsigned holds);
/* All of a step that has ended into its times. */
void cuda_clock_step(struct plan *plan, uint64_t ticket);

/* ---- sums of the ranks in the graph of a step (buckets.c) --------------------------------------------------- */

/* Are there other ranks?  Are sums made by the device; or by the host, with peers? */
bool cuda_has_peers(const struct plan *plan);
bool cuda_sums_on_device(const struct plan *plan);
bool cuda_sums_on_host(const struct plan *plan);
/* What follows is the last micro-batch of a step; gradients from `final` on are final: those buckets; all, and join. */
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
/* Launch the micro-batch that waits for update(), if there is one. */
enum chex_status cuda_flush(struct plan *plan, struct chex_error *err);

/* ---- evaluation (score.c), images (store.c) ------------------------------------------------------------ */

enum chex_status cuda_score(struct plan *plan, const struct batch *batch, unsigned views, const struct crop *crop,
                            enum arena_id weights, float *logits, struct chex_error *err);

enum chex_status cuda_store_new(struct device *device, uint32_t images, unsigned source, struct image_store **out,
                                struct chex_error *err);
enum chex_status cuda_store_put(struct image_store *store, uint32_t image, const uint8_t *pixels,
                                struct chex_error *err);
void cuda_store_free(struct image_store *store);
const uint8_t *cuda_store_pixels(const struct image_store *store); /* on the device; of image 0 */

#endif
