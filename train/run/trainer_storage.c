/*
 * trainer_storage.c - the storage check: reads the images as a run does, and computes nothing; see trainer.h
 *
 * Order, copy, reader and loader are those of a run; only the steps differ.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/trainer_private.h"

#include "backend/host.h"
#include "base/clock.h"
#include "base/number_format.h"
#include "comm/reduce_host.h"
#include "data/pace.h"
#include "io/disk_reads.h"

#include <stdlib.h>
#include <string.h>

#define STEPS_TOGETHER 16  /* between two meetings of the ranks */
#define PAUSE          0.1 /* seconds: the longest pause without a message to the other ranks */

/* ---- the backend ------------------------------------------------------------------------------------------------- */

static enum chex_status
open_none(unsigned number, struct device **out, struct chex_error *err)
{
    enum chex_status status = host_device_open(&trainer_storage_backend, "no device", out, err);

    (void)number;
    if (status == CHEX_OK)
        (*out)->info.micro_batch = 0; /* as on a GPU: the whole batch */
    return status;
}

static enum chex_status
size_none(const struct device *device, const struct plan_options *o, struct plan_facts *facts, struct chex_error *err)
{
    (void)device, (void)o, (void)err;
    *facts = (struct plan_facts){.precision = PRECISION_FP32};
    return CHEX_OK;
}

static enum chex_status
new_none(struct device *device, const struct plan_options *o, struct plan **out, struct plan_facts *facts,
         struct chex_error *err)
{
    *out = NULL;
    return size_none(device, o, facts, err);
}

static void
free_none(struct plan *plan)
{
    (void)plan;
}

const struct backend trainer_storage_backend = {
    .name = "none",
    .device_count = host_device_count,
    .device_open = open_none,
    .device_close = host_device_close,
    .reduce_new = reduce_host_new,
    .store_new = host_store_new,
    .store_put = host_store_put,
    .store_free = host_store_free,
    .plan_size = size_none,
    .plan_new = new_none,
    .plan_free = free_none,
};

/* ---- a step ------------------------------------------------------------------------------------------------------ */

/* The measurement of a rank. */
struct rank_reading {
    uint64_t images, bytes, disk_bytes, disk_unknown;
    double seconds, first, waited, cpu;
};

/* What a rank uses during the check. */
struct storage {
    struct pace pace;
    struct rank_reading own;
    double began; /* clock_now() */
    uint64_t of;  /* images of the whole check */
};

/* Pause, and send heartbeats meanwhile. */
static enum chex_status
pause_until(const struct trainer_job *job, double until, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    double left;

    while (status == CHEX_OK && (left = until - clock_now()) > 0 && !(job->w->stop && atomic_load(job->w->stop))) {
        backoff(left < PAUSE ? left : PAUSE);
        status = collective_poll(job->all, err);
    }
    return status;
}

static enum chex_status
use_batch(const struct trainer *t, struct storage *s, struct chex_error *err)
{
    struct loaded *loaded = NULL;
    enum chex_status status = loader_next(t->pass.loader, &loaded, err);

    if (status == CHEX_OK && !loaded)
        return error_set(err, CHEX_ERR_BUG, "the loader ended before the epoch did");
    if (status != CHEX_OK)
        return status;
    if (!s->pace.begun)
        s->own.first = clock_now() - s->began;
    s->own.images += loaded->images;
    status = pause_until(&t->job, pace_take(&s->pace, loaded->images), err);
    loader_return(t->pass.loader, loaded);
    return status;
}

static enum chex_status
read_step(struct trainer *t, struct storage *s, struct chex_error *err)
{
    unsigned batches = trainer_filled_batches(&t->job, &t->task, t->state.batches), i;
    uint64_t left = t->task.samples.count - t->state.batches * t->task.global;
    enum chex_status status = CHEX_OK;

    for (i = 0; status == CHEX_OK && i < batches; i++)
        status = use_batch(t, s, err);
    t->state.batches++;
    t->state.step++;
    t->result.steps++;
    t->result.images += left < t->task.global ? left : t->task.global;
    if (t->job.is_rank_0 && t->job.w->reading)
        t->job.w->reading(t->job.w->context, t, t->result.images, s->of);
    return status;
}

/* ---- epochs ------------------------------------------------------------------------------------------------------ */

static bool
is_at_end(const struct trainer *t)
{
    return t->state.batches >= t->task.steps || trainer_is_cut(&t->job, &t->task, &t->state);
}

/* Read the steps until the next meeting, and meet.  A rank with a fault, or one that shall stop, goes there at once. */
static enum chex_status
read_steps(struct trainer *t, struct storage *s, struct chex_error *err)
{
    const atomic_bool *stop = t->job.w->stop;
    enum chex_status status = CHEX_OK;
    uint64_t flags;
    unsigned i;

    for (i = 0; status == CHEX_OK && i < STEPS_TOGETHER && !is_at_end(t) && !(stop && atomic_load(stop)); i++)
        status = read_step(t, s, err);
    flags = stop && atomic_load(stop) ? TRAINER_STOP : 0;
    status = collective_agree(t->job.all, status, &flags, err);
    pace_excuse(&s->pace);
    if (status == CHEX_OK && flags & TRAINER_STOP)
        status = error_set(err, CHEX_ERR_STOPPED, "stopped after %s steps", COUNT_TEXT(t->state.step));
    return status;
}

static enum chex_status
read_epoch(struct trainer *t, struct storage *s, struct chex_error *err)
{
    enum chex_status status = collective_agree(t->job.all, trainer_open_epoch(t, err), NULL, err);
    struct chex_error other;
    bool open = status == CHEX_OK;

    pace_excuse(&s->pace);
    while (status == CHEX_OK && !is_at_end(t))
        status = read_steps(t, s, err);
    if (status == CHEX_OK)
        status = trainer_count_bad(t, err);
    else if (open && status_is_of_input(status))
        (void)trainer_count_bad(t, &other);
    trainer_close_epoch(&t->pass, &t->stepping);
    return status;
}

/* ---- the check --------------------------------------------------------------------------------------------------- */

static enum chex_status
begin(struct trainer *t, struct storage *s, struct chex_error *err)
{
    size_t size = (t->task.samples.count + 1) * sizeof(uint32_t);
    uint64_t steps = t->task.steps * t->job.o->epochs, most = t->job.o->max_steps;
    enum chex_status status = CHEX_OK;

    t->state.window = t->images.reading.window;
    t->pass.order.sample = malloc(size);
    t->pass.next.sample = malloc(size);
    if (!t->pass.order.sample || !t->pass.next.sample)
        status = error_memory(err);
    s->pace.rate = t->job.o->rate;
    s->of = t->task.samples.count * t->job.o->epochs;
    if (most > 0 && most < steps && most * t->task.global < s->of)
        s->of = most * t->task.global;
    trainer_mark_short(&t->job, steps, &t->state);
    return collective_agree(t->job.all, status, NULL, err);
}

static enum chex_status
add_up(const struct trainer *t, const struct rank_reading *own, struct trainer_storage *out, struct chex_error *err)
{
    struct buffer all = {0};
    struct rank_reading one;
    enum chex_status status = collective_allgather(t->job.all, own, sizeof(*own), &all, NULL, err);
    int i;

    *out = (struct trainer_storage){.ranks = collective_size(t->job.all), .steps = t->result.steps, .disk_known = true};
    memcpy(out->order, t->pass.order.hash, sizeof(out->order));
    for (i = 0; status == CHEX_OK && i < out->ranks; i++) {
        double share;

        memcpy(&one, all.data + (size_t)i * sizeof(one), sizeof(one));
        share = one.seconds > one.first ? one.waited / (one.seconds - one.first) : 0;
        out->images += one.images;
        out->bytes += one.bytes;
        out->disk_bytes += one.disk_bytes;
        out->disk_known &= !one.disk_unknown;
        out->seconds = one.seconds > out->seconds ? one.seconds : out->seconds;
        out->first = one.first > out->first ? one.first : out->first;
        out->waited_most = share > out->waited_most ? share : out->waited_most;
        out->ranks_waited += share > TRAINER_STORAGE_WAIT;
        out->waited += one.waited;
        out->cpu += one.cpu;
    }
    buffer_release(&all);
    return status;
}

/* After a stop, the simulated GPU has not used all of the images that it has. */
static void
give_back(struct storage *s)
{
    double left = s->pace.rate * (s->pace.ready - clock_now());

    if (left > 0)
        s->own.images -= left < (double)s->own.images ? (uint64_t)left : s->own.images;
}

/* Read all epochs, and measure them. */
static enum chex_status
measure(struct trainer *t, struct storage *s, struct chex_error *err)
{
    struct rank_reading *own = &s->own;
    double cpu = clock_process() - collective_waited_cpu(t->job.all);
    uint64_t before = 0, after = 0;
    bool counted = disk_reads(&before);
    enum chex_status status = CHEX_OK;

    s->began = clock_now();
    while (status == CHEX_OK && t->state.epoch < t->job.o->epochs && !trainer_is_cut(&t->job, &t->task, &t->state)) {
        status = read_epoch(t, s, err);
        if (status == CHEX_OK && t->state.batches >= t->task.steps) {
            t->state.epoch++;
            t->state.batches = 0;
        }
    }
    if (status == CHEX_OK) /* the work on the last images counts, too */
        status = pause_until(&t->job, s->pace.ready, err);
    give_back(s);
    own->seconds = clock_now() - s->began;
    own->cpu = clock_process() - collective_waited_cpu(t->job.all) - cpu;
    own->waited = s->pace.waited;
    own->bytes = reader_counts(t->images.reader).read * chex_dataset_info(t->task.ds)->stride;
    own->disk_unknown = !counted || !disk_reads(&after);
    own->disk_bytes = own->disk_unknown ? 0 : after - before;
    return status;
}

enum chex_status
trainer_check_storage(struct trainer *t, struct trainer_storage *out, struct chex_error *err)
{
    struct storage s = {.of = 0};
    struct chex_error other;
    enum chex_status status = begin(t, &s, err), added;

    *out = (struct trainer_storage){.ranks = 0};
    if (status == CHEX_OK)
        status = trainer_open_data(t, err);
    if (status == CHEX_OK)
        status = trainer_count_unreadable(t, err);
    if (status != CHEX_OK)
        return status;
    status = measure(t, &s, err);
    if (status != CHEX_OK && status != CHEX_ERR_STOPPED)
        return status;
    added = add_up(t, &s.own, out, status == CHEX_OK ? err : &other);
    return status == CHEX_OK ? added : status;
}
