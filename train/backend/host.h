/*
 * host.h - for all backends that compute in host memory: devices, arenas, a step and its result
 *
 * The plan of such a backend begins with a struct host, and its table of functions takes host_accumulate() and the like
 * from here.  What differs is in struct host_ops: how a micro-batch goes forward and backward.
 *
 * Gradients of the micro-batches of a step are added up in doubles, over all ranks, and rounded to floats once.  As
 * sums of floats they would depend on how many micro-batches each rank has, and what begins as rounding does not stay
 * small: Adam makes a whole step of a gradient that is nothing but rounding.  A sum of floats in doubles is exact but
 * where one is 2^29 times another, so any number of ranks makes the same step.  One rank with one micro-batch has
 * nothing to add up, and the same gradients.
 *
 * A step is over when update() returns, so a result is there at once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_HOST_H
#define CHEX_TRAIN_HOST_H

#include "backend/backend.h"

/* ---- what a backend brings --------------------------------------------------------------------------------------- */

struct host_ops {
    /* Forward with statistics of the batch, which go into host.running too, and the loss. */
    double (*forward)(struct plan *plan, const struct batch *batch);
    /* Gradients of that loss are added to the arena; host_gradients() is told of each as it becomes final. */
    enum chex_status (*backward)(struct plan *plan, struct chex_error *err);
    /* Logits of one view, with the running statistics of the arena and these weights. */
    void (*score)(struct plan *plan, const struct batch *batch, enum arena_id weights, float *logits);
    /* optimizer_apply() to all parameters. */
    void (*apply)(struct plan *plan, const struct optimizer_step *step, double scale);
    /* Parameters or average are others now; may be NULL. */
    void (*changed)(struct plan *plan);
};

/* Numbers of the tail of the sums: loss, faults, wishes. */
#define HOST_TAIL (2 + STEP_WISHES)

struct host {
    const struct host_ops *ops;
    struct plan_options options;
    float *arena[ARENA_COUNT];
    float *running; /* [stat_floats] of the step at hand: the arena's, once the step is made */
    double *sum; /* gradients [param_floats], statistics [stat_floats], tail; NULL where there is nothing to add up */
    struct plan_state state;
    bool halted;

    /* The step at hand. */
    unsigned batches; /* micro-batches that it has */
    bool ended;       /* STEP_LAST was there */
    size_t left;      /* of the sums, from the first, those that were not started */
    size_t ready;     /* below which none is final */
    double at;        /* progress_clock() when the part at hand began */
    struct step_result now;

    uint64_t ticket; /* of the last step */
    struct step_result made[2];
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

/* The pixels of image i of a micro-batch, wherever they are. */
static inline const uint8_t *
host_pixels(const struct batch *batch, size_t i, unsigned source)
{
    if (batch->index && batch->index[i] != STORE_NONE)
        return host_store_pixels(batch->store, batch->index[i]);
    return batch->pixels + i * source * source;
}

/* ---- plans ------------------------------------------------------------------------------------------------------- */

/*
 * Every array that the plan wants, by take(context, address of the pointer, count, size), which gives it zeroed memory
 * now or later; false where it says so.
 */
typedef bool host_take(void *context, void *where, size_t count, size_t size);
bool host_arrays(struct host *h, host_take *take, void *context);
/* Their memory: parameters and optimizer; and that of the sums, which is workspace. */
void host_memory_parts(const struct plan_options *o, struct plan_memory *out);
uint64_t host_sum_bytes(const struct plan_options *o);
/* All arrays are there. */
void host_start(struct host *h, const struct host_ops *ops);

/* The facts of a plan of fp32 whose bits follow from this text alone.  CHEX_ERR_UNSUPPORTED another precision */
enum chex_status host_facts(const struct device *device, const struct plan_options *o, const char *algorithms,
                            struct plan_facts *facts, struct chex_error *err);

/* During forward(): the loss of these logits, [batch][outputs], and its gradient. */
double host_loss(const struct plan *plan, const struct batch *batch, const float *logits, float *gradient);

/*
 * During backward(): this node is done, so the gradients of its parameters are final for this micro-batch.  Every node
 * comes once, from the last to the first, those without parameters too.
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
enum chex_status host_score(struct plan *plan, const struct batch *batch, unsigned views, const struct crop *crop,
                            enum arena_id weights, float *logits, struct chex_error *err);

#endif
