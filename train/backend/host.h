/*
 * host.h - shared code of the backends that compute in host memory: devices, arenas, steps and results
 *
 * The plan of such a backend begins with a struct host, and its struct backend uses host_accumulate() and the other
 * functions below.  struct host_ops has the functions that differ: forward and backward of a micro-batch.
 *
 * Gradients of all micro-batches of a step are added in double, over all ranks, and rounded to float once.  Sums in
 * float would depend on the number of micro-batches per rank.  Such rounding errors do not stay small, because Adam
 * turns a gradient that is only rounding error into a full step.  A sum of floats in double is exact unless one is 2^29
 * times another, so any number of ranks computes the same step.  One rank with one micro-batch needs no sum and has the
 * same gradients.
 *
 * A step is complete when update() returns, so result() never waits.  Logits are complete when score_start() returns.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_HOST_H
#define CHEX_TRAIN_HOST_H

#include "backend/backend.h"

/* ---- provided by a backend --------------------------------------------------------------------------------------- */

struct host_ops {
    /* Run forward with batch statistics, and update host.running; returns the loss. */
    double (*forward)(struct plan *plan, const struct batch *batch);
    /* Add the gradients of that loss to the arena; call host_gradients() for each node whose gradients are final. */
    enum chex_status (*backward)(struct plan *plan, struct chex_error *err);
    /*
     * Compute the logits of one view with the running statistics of the arena and these weights; also its maps, unless
     * `maps` is NULL.
     */
    void (*score)(struct plan *plan, const struct batch *batch, enum arena_id weights, float *logits, float *maps);
    /* Call optimizer_apply() for all parameters. */
    void (*apply)(struct plan *plan, const struct optimizer_step *step, double scale);
    /* Called after the parameters or their average changed; may be NULL. */
    void (*changed)(struct plan *plan);
};

/* Numbers in the tail of the sums: loss, labels, known labels, faults, requests. */
#define HOST_TAIL (4 + STEP_REQUESTS)

struct host {
    const struct host_ops *ops;
    struct plan_options options;
    float *arena[ARENA_COUNT];
    float *running; /* [stat_floats] of the current step; copied to the arena when the step is applied */
    double *sum;    /* gradients [param_floats], statistics [stat_floats], tail; NULL if no sum is needed */
    struct plan_state state;
    bool halted;

    /* The current step: */
    unsigned batches;          /* its micro-batches so far */
    bool ended;                /* STEP_LAST was given */
    struct label_count labels; /* of this rank; of all ranks after the sums */
    size_t left;               /* numbers whose sum has not been started: the first `left` */
    size_t ready;              /* numbers from this index on are final */
    double at, cpu_at;         /* clock_now() and clock_process() at the start of the current part */
    struct step_result now;

    uint64_t ticket; /* of the last step */
    struct step_result made[2];

    unsigned scores; /* micro-batches of an evaluation in flight */
};

static inline struct host *
host_of(struct plan *plan)
{
    return (struct host *)(void *)plan; /* its first member */
}

/* ---- devices ----------------------------------------------------------------------------------------------------- */

unsigned host_device_count(void);
enum chex_status host_device_open(const struct backend *backend, const char *text, struct device **out,
                                  struct chex_error *err);
void host_device_close(struct device *device);

/* ---- images ------------------------------------------------------------------------------------------------------ */

enum chex_status host_store_new(struct device *device, uint32_t images, unsigned source, struct image_store **out,
                                struct chex_error *err);
enum chex_status host_store_put(struct image_store *store, uint32_t image, const uint8_t *pixels,
                                struct chex_error *err);
void host_store_free(struct image_store *store);
const uint8_t *host_store_pixels(const struct image_store *store, uint32_t image);

/* Returns the pixels of image i of a micro-batch, from the store or from the batch. */
static inline const uint8_t *
host_pixels(const struct batch *batch, size_t i, unsigned source)
{
    if (batch->index && batch->index[i] != STORE_NONE)
        return host_store_pixels(batch->store, batch->index[i]);
    return batch->pixels + i * source * source;
}

/* A row of the network's input: that of an image and, if mix is not 0, that of its partner. */
struct host_row {
    struct crop_row own, partner;
    unsigned mix; /* of MIX_ONE */
};

static inline void
host_row_start(struct host_row *row, const struct batch *batch, size_t i, unsigned source, unsigned side, unsigned y)
{
    row->mix = batch->mix ? (unsigned)(batch->mix[i] * MIX_ONE) : 0;
    crop_row_start(&row->own, &batch->crop[i], host_pixels(batch, i, source), source, side, y);
    if (row->mix > 0)
        crop_row_start(&row->partner, &batch->crop[i + 1], host_pixels(batch, i + 1, source), source, side, y);
}

/* Returns the gray level of pixel x. */
static inline uint8_t
host_row_level(const struct host_row *row, unsigned x)
{
    uint8_t level = crop_level(&row->own, x);

    return row->mix > 0 ? crop_mix(level, crop_level(&row->partner, x), row->mix) : level;
}

/* ---- plans ------------------------------------------------------------------------------------------------------- */

/*
 * Request every array of the plan by take(context, address of the pointer, count, size), which provides zeroed memory
 * immediately or later.  Returns false if take() does.
 */
typedef bool host_take(void *context, void *where, size_t count, size_t size);
bool host_arrays(struct host *h, host_take *take, void *context);
/* Memory of parameters and optimizer; memory of the sums, which counts as workspace. */
void host_memory_parts(const struct plan_options *o, struct plan_memory *out);
uint64_t host_sum_bytes(const struct plan_options *o);
/* Initialize, after all arrays are allocated. */
void host_start(struct host *h, const struct host_ops *ops);

/*
 * Fill in the facts of a plan; `algorithms` and the precision determine its bits.  CHEX_ERR_UNSUPPORTED: a precision
 * other than fp32 and bf16
 */
enum chex_status host_facts(const struct device *device, const struct plan_options *o, const char *algorithms,
                            struct plan_facts *facts, struct chex_error *err);

/* For forward(): returns the loss of these logits, [batch][outputs], and computes its gradient. */
double host_loss(const struct plan *plan, const struct batch *batch, const float *logits, float *gradient);

/*
 * For backward(): call it when a node is done, so the gradients of its parameters are final for this micro-batch.  Call
 * it for every node once, from the last to the first, including those without parameters.
 */
enum chex_status host_gradients(struct plan *plan, const struct graph_node *node, struct chex_error *err);

/* ---- functions of struct backend --------------------------------------------------------------------------------- */

enum chex_status host_write(struct plan *plan, enum arena_id arena, const float *from, struct chex_error *err);
enum chex_status host_read(struct plan *plan, enum arena_id arena, float *to, struct chex_error *err);
enum chex_status host_set_state(struct plan *plan, const struct plan_state *state, struct chex_error *err);
enum chex_status host_accumulate(struct plan *plan, const struct batch *batch, unsigned flags,
                                 const struct step_end *end, struct chex_error *err);
enum chex_status host_update(struct plan *plan, double rate, double clip, uint64_t *ticket, struct chex_error *err);
enum chex_status host_result(struct plan *plan, uint64_t ticket, bool *done, struct step_result *out,
                             struct chex_error *err);
enum chex_status host_resume(struct plan *plan, struct chex_error *err);
enum chex_status host_score_start(struct plan *plan, const struct batch *batch, unsigned views, const struct crop *crop,
                                  enum arena_id weights, float *logits, float *maps, struct chex_error *err);
enum chex_status host_score_finish(struct plan *plan, struct chex_error *err);

#endif
