/*
 * late_backend.c - an adversarial device for tests: the reference backend with a queue in front of it
 *
 * late-train is chex-train with this list of backends.  check_late.py compares it with the reference; both must write
 * the same bytes.
 *
 *     work     is done when a result is requested, as late as the rules allow; a result takes several requests
 *     memory   all memory of a plan is in pages that only the device may access; an access of the host ends the process
 *     batches  are overwritten as soon as the call returns
 *     sums     go through host memory; if two ranks share a device, in small pieces
 *     results  are garbage until they are ready, also the logits of an evaluation
 *     steps    are skipped, as by loss scaling, if LATE_SKIP is set; which ones depends only on plan_state
 *
 * There are four devices; the last two are the same.  The environment:
 *     LATE_SEED=N       seed of the number of requests; 0: a result is ready at once
 *     LATE_AHEAD=0      the trainer waits for each result, as with host memory
 *     LATE_SKIP=1       skip steps
 *     LATE_PRECISION=fp16, LATE_ALGORITHMS=N   the properties that the plan reports; the computation is the same
 *     LATE_PLANT=pointer, batch, result        a fault that must be found: the host reads from an arena; a batch
 *                       is kept after the call; a result is used before it is ready
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "late.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUEUE   64
#define DEVICES 4

extern const struct backend backend_ref, backend_late;

static long
setting(const char *name, long otherwise)
{
    const char *text = getenv(name);

    return text ? strtol(text, NULL, 10) : otherwise;
}

static bool
is_planted(const char *what)
{
    const char *text = getenv("LATE_PLANT");

    return text && strcmp(text, what) == 0;
}

/* ---- devices ----------------------------------------------------------------------------------------------------- */

struct late_device {
    struct device base;
    struct device *ref;
};

static unsigned
late_count(void)
{
    return DEVICES;
}

static enum chex_status
late_open(unsigned number, struct device **out, struct chex_error *err)
{
    struct late_device *d = calloc(1, sizeof(*d));
    const char *precision = getenv("LATE_PRECISION");

    if (!d || number >= DEVICES || backend_ref.device_open(0, &d->ref, err) != CHEX_OK)
        abort();
    d->base.backend = &backend_late;
    d->base.info = d->ref->info;
    d->base.info.own_memory = true;
    d->base.info.ahead = (unsigned)setting("LATE_AHEAD", 1);
    d->base.info.precisions |= 1u << PRECISION_FP16;
    if (precision && strcmp(precision, "fp16") == 0)
        d->base.info.precision = PRECISION_FP16;
    snprintf(d->base.info.text, sizeof(d->base.info.text), "late device");
    snprintf(d->base.info.id, sizeof(d->base.info.id), "late-%u", number < DEVICES - 1 ? number : DEVICES - 2);
    *out = &d->base;
    return CHEX_OK;
}

static void
late_close(struct device *device)
{
    if (device)
        backend_ref.device_close(((struct late_device *)(void *)device)->ref);
    free(device);
}

/* ---- plans ------------------------------------------------------------------------------------------------------- */

/* A micro-batch of an evaluation in flight. */
struct late_score {
    struct batch batch;
    unsigned views;
    struct crop *crop;
    enum arena_id weights;
    float *logits, *maps;
};

/* At the start of its region. */
struct plan {
    struct late_region region;
    struct plan *ref;
    struct plan_options options;
    struct op *op; /* [QUEUE], host memory */
    size_t first, count;
    uint64_t given, made; /* tickets */
    struct step_result result[2];
    unsigned askings; /* requests that are still needed before the next result is ready */
    uint32_t draw;
    double loss_scale;
    uint32_t good;
    bool skips; /* does the current step skip? */
    struct late_score score[SCORES_IN_FLIGHT];
    uint64_t scores, scores_finished;
};

static enum chex_status
late_size(const struct device *device, const struct plan_options *o, struct plan_facts *facts, struct chex_error *err)
{
    const struct late_device *d = (const struct late_device *)(const void *)device;
    struct plan_options options = *o;
    enum chex_status status;

    options.precision = PRECISION_FP32;
    status = backend_ref.plan_size(d->ref, &options, facts, err);
    facts->precision = o->precision == PRECISION_AUTO ? device->info.precision : o->precision;
    snprintf(facts->algorithms, sizeof(facts->algorithms), "%016lx", setting("LATE_ALGORITHMS", 0));
    return status;
}

struct op {
    struct batch batch;
    bool has_batch, is_update;
    unsigned flags;
    struct step_end end;
    double rate, clip;
};

static enum chex_status
late_new(struct device *device, const struct plan_options *o, struct plan **out, struct plan_facts *facts,
         struct chex_error *err)
{
    struct late_device *d = (struct late_device *)(void *)device;
    struct plan_options options = *o;
    struct plan_facts ignored;
    struct plan *plan;
    enum chex_status status = late_size(device, o, facts, err);

    *out = NULL;
    if (status != CHEX_OK)
        return status;
    plan = late_new_memory(sizeof(*plan));
    plan->options = *o;
    plan->op = calloc(QUEUE, sizeof(*plan->op));
    plan->draw = (uint32_t)setting("LATE_SEED", 1);
    options.precision = PRECISION_FP32;
    late_allocate_from(&plan->region);
    status = backend_ref.plan_new(d->ref, &options, &plan->ref, &ignored, err);
    late_allocate_from(NULL);
    *out = plan;
    return late_close_memory(plan, status);
}

static void
release_op(struct op *op)
{
    if (op->has_batch && !is_planted("batch")) {
        free((void *)op->batch.pixels);
        free((void *)op->batch.index);
        free((void *)op->batch.crop);
        free((void *)op->batch.label);
        free((void *)op->batch.weight);
        free((void *)op->batch.mix);
    }
    *op = (struct op){.flags = 0};
}

static void
late_free(struct plan *plan)
{
    if (!plan)
        return;
    late_open_memory(plan);
    for (; plan->count > 0; plan->first = (plan->first + 1) % QUEUE, plan->count--)
        release_op(&plan->op[plan->first]);
    free(plan->op);
    backend_ref.plan_free(plan->ref);
    late_free_memory(plan);
}

/* ---- the queue --------------------------------------------------------------------------------------------------- */

static void *
copy_of(const void *data, size_t size)
{
    void *copy = data ? malloc(size) : NULL;

    if (copy)
        memcpy(copy, data, size);
    return copy;
}

static void
spoil(const void *data, size_t size)
{
    if (data)
        memset((void *)(uintptr_t)data, 0x5a, size);
}

/* With mix-up, a micro-batch also has the partner of its last image. */
static size_t
images_of(const struct plan *plan, const struct batch *batch)
{
    return plan->options.batch + (batch->mix ? 1 : 0);
}

static void
take_batch(struct plan *plan, struct op *op, const struct batch *batch)
{
    size_t n = plan->options.batch, outputs = plan->options.graph->buffer[plan->options.graph->output].channels;
    size_t images = images_of(plan, batch), pixels = images * plan->options.source * plan->options.source;

    op->has_batch = true;
    op->batch = *batch;
    if (!is_planted("batch")) {
        op->batch.pixels = copy_of(batch->pixels, pixels);
        op->batch.index = copy_of(batch->index, images * sizeof(*batch->index));
        op->batch.crop = copy_of(batch->crop, images * sizeof(*batch->crop));
        op->batch.label = copy_of(batch->label, n * outputs);
        op->batch.weight = copy_of(batch->weight, n * sizeof(*batch->weight));
        op->batch.mix = copy_of(batch->mix, n * sizeof(*batch->mix));
    }
    spoil(batch->pixels, pixels);
    if (batch->index)
        memset((void *)(uintptr_t)batch->index, 0xff, images * sizeof(*batch->index)); /* STORE_NONE */
    spoil(batch->label, n * outputs);
}

static struct op *
push(struct plan *plan)
{
    if (plan->count == QUEUE)
        abort();
    return &plan->op[(plan->first + plan->count++) % QUEUE];
}

/* Skips a third of the steps, never two in a row; depends only on the state in a checkpoint. */
static bool
should_skip(const struct plan *plan, uint64_t applied)
{
    return setting("LATE_SKIP", 0) && plan->good > 0 && applied * 2654435761u % 97 < 33;
}

static enum chex_status
run_update(struct plan *plan, const struct op *op, struct chex_error *err)
{
    struct step_result r = {0};
    uint64_t ticket;
    bool done;
    enum chex_status status = backend_ref.update(plan->ref, op->rate, op->clip, &ticket, err);

    if (status == CHEX_OK)
        status = backend_ref.result(plan->ref, ticket, &done, &r, err);
    if (status == CHEX_OK && plan->skips && r.faults == 0 && r.halted) {
        status = backend_ref.resume(plan->ref, err);
        r.halted = false;
        r.bad = STEP_NONE;
        plan->loss_scale /= 2;
        plan->good = 0;
    } else if (status == CHEX_OK && r.applied) {
        plan->good++;
    }
    r.state.loss_scale = plan->loss_scale;
    r.state.good = plan->good;
    plan->result[++plan->made % 2] = r;
    return status;
}

static enum chex_status
run_op(struct plan *plan, struct op *op, struct chex_error *err)
{
    size_t image = (size_t)plan->options.source * plan->options.source;
    enum chex_status status;
    uint8_t *pixels = NULL;
    struct batch batch;

    if (op->is_update)
        return run_update(plan, op, err);
    if (op->flags & STEP_FIRST)
        plan->skips = should_skip(plan, plan->result[plan->made % 2].state.applied);
    if (op->has_batch && plan->skips)
        op->batch.scale = HUGE_VAL;
    batch = op->batch;
    if (op->has_batch)
        batch.pixels = pixels = late_gather_pixels(&batch, images_of(plan, &batch), image);
    batch.index = NULL;
    status = backend_ref.accumulate(plan->ref, op->has_batch ? &batch : NULL, op->flags,
                                    op->flags & STEP_LAST ? &op->end : NULL, err);
    free(pixels);
    return status;
}

/* Works until this ticket has its result. */
static enum chex_status
run_until(struct plan *plan, uint64_t ticket, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;

    while (status == CHEX_OK && plan->count > 0 && plan->made < ticket) {
        struct op *op = &plan->op[plan->first];

        status = run_op(plan, op, err);
        release_op(op);
        plan->first = (plan->first + 1) % QUEUE;
        plan->count--;
    }
    return status;
}

static enum chex_status
run_all(struct plan *plan, struct chex_error *err)
{
    return run_until(plan, UINT64_MAX, err);
}

/* ---- the seam ---------------------------------------------------------------------------------------------------- */

static enum chex_status
late_write(struct plan *plan, enum arena_id arena, const float *from, struct chex_error *err)
{
    enum chex_status status = run_all(late_open_memory(plan), err);

    return late_close_memory(plan, status == CHEX_OK ? backend_ref.write(plan->ref, arena, from, err) : status);
}

static enum chex_status
late_read(struct plan *plan, enum arena_id arena, float *to, struct chex_error *err)
{
    enum chex_status status = run_all(late_open_memory(plan), err);

    return late_close_memory(plan, status == CHEX_OK ? backend_ref.read(plan->ref, arena, to, err) : status);
}

static enum chex_status
late_set_state(struct plan *plan, const struct plan_state *state, struct chex_error *err)
{
    enum chex_status status = run_all(late_open_memory(plan), err);

    plan->loss_scale = state->loss_scale > 0 ? state->loss_scale : 65536;
    plan->good = state->good;
    plan->result[plan->made % 2].state = *state;
    return late_close_memory(plan, status == CHEX_OK ? backend_ref.set_state(plan->ref, state, err) : status);
}

static enum chex_status
late_accumulate(struct plan *plan, const struct batch *batch, unsigned flags, const struct step_end *end,
                struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    struct op *op;

    late_open_memory(plan);
    if (plan->count > QUEUE / 2) /* the queue is full: the device had to work meanwhile */
        status = run_all(plan, err);
    op = push(plan);
    op->flags = flags;
    if (end)
        op->end = *end;
    if (batch)
        take_batch(plan, op, batch);
    return late_close_memory(plan, status);
}

static enum chex_status
late_update(struct plan *plan, double rate, double clip, uint64_t *ticket, struct chex_error *err)
{
    (void)err;
    late_open_memory(plan);
    *push(plan) = (struct op){.is_update = true, .rate = rate, .clip = clip};
    *ticket = ++plan->given;
    return late_close_memory(plan, CHEX_OK);
}

static enum chex_status
late_result(struct plan *plan, uint64_t ticket, bool *done, struct step_result *out, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;

    late_open_memory(plan);
    memset(out, 0xff, sizeof(*out));
    *done = plan->askings == 0;
    if (*done)
        status = run_until(plan, ticket, err);
    if (*done && status == CHEX_OK) {
        *out = plan->result[ticket % 2];
        plan->draw = plan->draw * 1664525u + 1013904223u; /* Numerical Recipes, 7.1 */
        plan->askings = setting("LATE_SEED", 1) ? plan->draw >> 30 : 0;
    } else if (!*done) {
        plan->askings--;
        if (is_planted("result")) {
            *done = true; /* the caller did not check *done */
            out->applied = true;
            out->halted = false;
            out->loss = 1;
            out->requests = 0;
        }
    }
    return late_close_memory(plan, status);
}

static enum chex_status
late_resume(struct plan *plan, struct chex_error *err)
{
    enum chex_status status = run_all(late_open_memory(plan), err);

    return late_close_memory(plan, status == CHEX_OK ? backend_ref.resume(plan->ref, err) : status);
}

/* Copies the micro-batch and spoils the caller's; its logits are garbage until late_score_finish(). */
static enum chex_status
late_score_start(struct plan *plan, const struct batch *batch, unsigned views, const struct crop *crop,
                 enum arena_id weights, float *logits, float *maps, struct chex_error *err)
{
    enum chex_status status = run_all(late_open_memory(plan), err);
    size_t n = plan->options.batch, image = (size_t)plan->options.source * plan->options.source;
    size_t outputs = plan->options.graph->buffer[plan->options.graph->output].channels;
    struct late_score *s = &plan->score[plan->scores % SCORES_IN_FLIGHT];

    if (plan->scores - plan->scores_finished == SCORES_IN_FLIGHT)
        abort();
    if (status == CHEX_OK) {
        *s = (struct late_score){.batch = *batch, .views = views, .weights = weights, .logits = logits, .maps = maps};
        s->batch.pixels = late_gather_pixels(batch, n, image);
        s->batch.index = NULL;
        s->batch.weight = copy_of(batch->weight, n * sizeof(*batch->weight));
        s->crop = copy_of(crop, views * n * sizeof(*crop));
        plan->scores++;
        spoil(batch->pixels, n * image);
        memset(logits, 0xff, views * n * outputs * sizeof(*logits));
    }
    return late_close_memory(plan, status);
}

static enum chex_status
late_score_finish(struct plan *plan, struct chex_error *err)
{
    struct late_score *s = &late_open_memory(plan)->score[plan->scores_finished++ % SCORES_IN_FLIGHT];
    float *logits = s->logits;
    enum chex_status status = backend_ref.score_start(plan->ref, &s->batch, s->views, s->crop, s->weights, logits,
                                                      s->maps, err);

    if (status == CHEX_OK)
        status = backend_ref.score_finish(plan->ref, err);
    free((void *)s->batch.pixels);
    free((void *)s->batch.weight);
    free(s->crop);
    late_close_memory(plan, status);
    if (is_planted("pointer"))
        logits[0] += *(volatile float *)(void *)plan;
    return status;
}

static enum chex_status
late_peek(struct plan *plan, unsigned buffer, bool gradient, float *out, struct chex_error *err)
{
    enum chex_status status = run_all(late_open_memory(plan), err);

    return late_close_memory(plan,
                             status == CHEX_OK ? backend_ref.peek(plan->ref, buffer, gradient, out, err) : status);
}

const struct backend backend_late = {
    .name = "late",
    .device_count = late_count,
    .device_open = late_open,
    .device_close = late_close,
    .reduce_new = late_reduce_new,
    .store_new = late_store_new,
    .store_put = late_store_put,
    .store_free = late_store_free,
    .plan_size = late_size,
    .plan_new = late_new,
    .plan_free = late_free,
    .write = late_write,
    .read = late_read,
    .set_state = late_set_state,
    .accumulate = late_accumulate,
    .update = late_update,
    .result = late_result,
    .resume = late_resume,
    .score_start = late_score_start,
    .score_finish = late_score_finish,
    .peek = late_peek,
};

const struct backend *const backends[] = {&backend_late, &backend_ref, NULL};
