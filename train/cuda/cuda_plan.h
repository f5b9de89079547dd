/*
 * cuda_plan.h - a device and a plan on it: private to train/cuda
 *
 * Three streams' worth of order: the host fills a pinned slot of a ring of CUDA_RING and puts its copy into `copies`;
 * `compute` waits for that copy, and the copy for the launch that read the device's slot before.  Results come back at
 * the end of each step into pinned memory, two in turns.  The host waits in cuda_result(), score(), read(), write() and
 * nowhere else, but where a slot of the ring is not free yet (several micro-batches a step), and for staged sums.
 *
 * A step of one process is one launch of a graph: accumulate(LAST) puts only the copy of its micro-batch in; update()
 * launches the graph "micro-batch, end, update".  Whoever needs the gradients before (peek, read, a reducer whose sums
 * are staged by the host) has the micro-batch launched by cuda_flush().  Graphs are recorded when they are first needed,
 * by what they hold: first, last, update, the slot and the result.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_PLAN_H
#define CHEX_CUDA_PLAN_H

#include "cuda/cuda_layout.h"

#ifdef CUDA_EMULATED
#define backend_cuda backend_cuda_emulated
#define CUDA_BACKEND "cuda-emulated"
#else
#define CUDA_BACKEND "cuda"
#endif
extern const struct backend backend_cuda;

#define CUDA_RING 3 /* pinned slots */

/* ---- devices (cuda_devices.c) ------------------------------------------------------------------------------------ */

struct cuda_device {
    struct device device; /* the first member */
    int number;           /* of the CUDA runtime; -1: a device that was imagined, for plan_size() alone */
    unsigned major, minor, processors;
    bool prepared; /* cuda_prepare() was done */
};

unsigned cuda_device_count(void);
enum chex_status cuda_device_open(unsigned number, struct device **out, struct chex_error *err);
void cuda_device_close(struct device *device);
/* The set of kernels of a precision, and what a layout depends on; CHEX_ERR_UNSUPPORTED names the precisions. */
enum chex_status cuda_chip_of(const struct cuda_device *device, enum precision precision, struct cuda_chip *out,
                              struct chex_error *err);

/* ---- errors (cuda_check.c) --------------------------------------------------------------------------------------- */

/*
 * What a failed call means for who runs a training: out of memory, a device that is gone, a driver too old, a kernel
 * that failed.  `what`: "copying a micro-batch", or the name of a kernel.
 */
enum chex_status cuda_check(cudaError_t e, const char *what, struct chex_error *err);

/* ---- plans (cuda_plan.c) ----------------------------------------------------------------------------------------- */

struct cuda_graph {
    unsigned key;
    cudaGraphExec_t exec;
};
#define CUDA_GRAPHS 64

struct plan {
    struct cuda_device *device;
    struct plan_options options;
    struct plan_facts facts;
    struct cuda_layout layout;
    void *memory; /* on the device */
    cudaStream_t compute, copies;

    /* Micro-batches on their way. */
    char *ring[CUDA_RING];           /* pinned, layout.slot.bytes each */
    cudaEvent_t copied[CUDA_RING];   /* the pinned slot may be filled again */
    cudaEvent_t taken[CUDA_SLOTS];   /* the device's slot may be filled again */
    uint64_t batches;                /* that were put in */

    /* The step at hand. */
    unsigned number; /* of the next micro-batch */
    bool ended;      /* STEP_LAST was there */
    bool pending;    /* a micro-batch was copied, and is not launched */
    unsigned pending_key;

    /* Results. */
    uint64_t ticket;                     /* of the last step */
    struct step_state *made[2];          /* pinned */
    struct step_block *step_block[2];    /* pinned */
    struct end_block *end_block[2];      /* pinned */
    cudaEvent_t done[2];
    cudaEvent_t clock[2][PART_COUNT + 1]; /* the times of a step */

    bool no_graph;
    struct cuda_graph graph[CUDA_GRAPHS];
    unsigned graphs;
    float *logits; /* pinned, [batch][outputs] */
};

enum chex_status cuda_plan_size(const struct device *device, const struct plan_options *o, struct plan_facts *facts,
                                struct chex_error *err);
enum chex_status cuda_plan_new(struct device *device, const struct plan_options *o, struct plan **out,
                               struct plan_facts *facts, struct chex_error *err);
void cuda_plan_free(struct plan *plan);

/* ---- a step (cuda_steps.c), its graphs (cuda_record.c) ------------------------------------------------------------ */

enum chex_status cuda_accumulate(struct plan *plan, const struct batch *batch, unsigned flags,
                                 const struct step_end *end, struct chex_error *err);
enum chex_status cuda_update(struct plan *plan, double rate, double clip, uint64_t *ticket, struct chex_error *err);
enum chex_status cuda_result(struct plan *plan, uint64_t ticket, bool *done, struct step_result *out,
                             struct chex_error *err);
enum chex_status cuda_resume(struct plan *plan, struct chex_error *err);
/* Launch the micro-batch that waits for update(). */
enum chex_status cuda_flush(struct plan *plan, struct chex_error *err);
/* Put the launches of a list into the stream of the plan. */
enum chex_status cuda_enqueue(struct plan *plan, enum cuda_list_id list, struct chex_error *err);

/* ---- evaluation (cuda_score.c), images (cuda_store.c), sums (reduce_staged.c) -------------------------------------- */

enum chex_status cuda_score(struct plan *plan, const struct batch *batch, unsigned views, const struct crop *crop,
                            enum arena_id weights, float *logits, struct chex_error *err);

enum chex_status cuda_store_new(struct device *device, uint32_t images, unsigned source, struct image_store **out,
                                struct chex_error *err);
enum chex_status cuda_store_put(struct image_store *store, uint32_t image, const uint8_t *pixels,
                                struct chex_error *err);
void cuda_store_free(struct image_store *store);
const uint8_t *cuda_store_pixels(const struct image_store *store); /* on the device; of image 0 */

/* Sums through pinned memory and messages: floats on the device, in place. */
enum chex_status reduce_staged_new(struct device *device, struct collective *c, struct reduce **out,
                                   struct chex_error *err);

#endif
