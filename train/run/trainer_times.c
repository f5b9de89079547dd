/*
 * trainer_times.c - time account of this rank, and the exchange of accounts between the ranks; see trainer.h
 *
 * A step sends nothing: each rank adds up its times, and the ranks gather once per epoch.  A rank keeps the work of
 * every step, evaluation and checkpoint (rank_times.h explains why), four bytes each.  Spans are kept only for a trace.
 *
 * A step lasts from the previous result to its own, by the host's clock.  Its work is that time without the waits for
 * sums that were reported meanwhile.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/trainer_private.h"

#include "base/clock.h"
#include "comm/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The account of a rank; the floats of its entries follow it. */
struct account {
    double seconds, work, busy, modelled, cpu, useful, threads;
    struct step_times parts;
    uint64_t steps, entries;
};

/* ---- one rank ---------------------------------------------------------------------------------------------------- */

void
trainer_times_begin(const struct trainer_job *job)
{
    struct trainer_times *times = job->times;
    struct account none = {.steps = 0};

    times->since = clock_now();
    times->waited = collective_waited(job->all);
    times->cpu = clock_process();
    times->waited_cpu = collective_waited_cpu(job->all);
    times->covered = times->covered_wait = times->reduced = 0;
    times->parts = (struct step_times){.seconds = {0}};
    times->steps = times->entries = 0;
    times->whole_steps = 0;
    times->message.size = times->spans.size = 0;
    times->broken = buffer_append(&times->message, &none, sizeof(none), NULL) != CHEX_OK;
}

static void
put_span(struct trainer_times *times, unsigned what, uint64_t step, double begin, double end)
{
    const struct trace_span span = {.begin = begin, .end = end, .step = step, .what = what};

    /* If memory runs out or the limit is reached, the trace has a gap. */
    if (times->spans_most > times->spans.size)
        (void)buffer_append(&times->spans, &span, sizeof(span), NULL);
}

void
trainer_times_part(void *context, enum step_part part, double begin, double end)
{
    struct trainer_times *times = context;

    if (part == PART_REDUCE)
        times->reduced += end - begin;
    put_span(times, part, 0, begin, end);
}

/* Add an entry: the work between two meetings of the ranks. */
static void
put_entry(struct trainer_times *times, double work)
{
    float entry = work > 0 ? (float)work : 0;

    if (!times->broken && buffer_append(&times->message, &entry, sizeof(entry), NULL) != CHEX_OK)
        times->broken = true;
    times->entries++;
}

void
trainer_times_step(const struct trainer_job *job, uint64_t step, double end, const struct trainer_step *seen,
                   double filled)
{
    struct trainer_times *times = job->times;

    put_entry(times, seen->seconds - times->reduced);
    times->reduced = 0;
    times->covered += seen->seconds;
    step_times_add(&times->parts, &seen->times);
    times->steps++;
    times->whole_steps += filled;
    put_span(times, TRACE_STEP, step, end - seen->seconds, end);
}

struct trainer_section
trainer_section_begin(const struct trainer_job *job)
{
    return (struct trainer_section){.since = clock_now(),
                                    .waited = collective_waited(job->all),
                                    .cpu = clock_process(),
                                    .waited_cpu = collective_waited_cpu(job->all)};
}

void
trainer_section_end(const struct trainer_job *job, const struct trainer_section *section, enum step_part part,
                    struct step_times *also)
{
    struct trainer_times *times = job->times;
    double now = clock_now(), waited = collective_waited(job->all) - section->waited;
    struct step_times spent = {.seconds = {0}};

    spent.seconds[PART_PEERS] = waited;
    spent.seconds[part] = now - section->since > waited ? now - section->since - waited : 0;
    spent.cpu[PART_PEERS] = collective_waited_cpu(job->all) - section->waited_cpu;
    spent.cpu[part] = clock_process() - section->cpu - spent.cpu[PART_PEERS];
    put_entry(times, spent.seconds[part]);
    times->covered += now - section->since;
    times->covered_wait += waited;
    step_times_add(&times->parts, &spent);
    if (also)
        step_times_add(also, &spent);
    put_span(times, part, 0, section->since, now);
}

/* ---- all ranks --------------------------------------------------------------------------------------------------- */

/*
 * Returns the useful seconds of this rank, at most its work.  On a CPU, this is the CPU time per thread without the CPU
 * time that waiting for other ranks takes.  A device with its own clock computes beside the CPU, so its work is useful.
 */
static double
useful_seconds(const struct trainer_job *job, const struct trainer_engine *engine, double cpu, double work)
{
    double useful = (cpu - (collective_waited_cpu(job->all) - job->times->waited_cpu)) / job->o->threads;

    return engine->device->info.own_clock || useful > work ? work : useful;
}

/* The work between steps, evaluations and checkpoints is one more entry. */
static void
close_account(const struct trainer_job *job, const struct trainer_engine *engine)
{
    struct trainer_times *times = job->times;
    double seconds = clock_now() - times->since;
    double waited = collective_waited(job->all) - times->waited - times->covered_wait;
    struct account own = {.seconds = seconds,
                          .busy = (double)NAN,
                          .modelled = (double)NAN,
                          .cpu = clock_process() - times->cpu,
                          .threads = job->o->threads};
    const double *spent = times->parts.seconds;
    size_t i;

    put_entry(times, seconds - times->covered - waited);
    times->parts.seconds[PART_PEERS] += waited;
    own.parts = times->parts;
    own.steps = times->steps;
    own.entries = times->entries;
    if (engine->device->info.own_clock)
        own.busy = spent[PART_FORWARD] + spent[PART_BACKWARD] + spent[PART_UPDATE];
    if (engine->device->info.own_clock && engine->modelled > 0)
        own.modelled = engine->modelled * times->whole_steps;
    if (times->broken) { /* its memory exists since the start of the run, or allocation failed */
        times->message.size = times->message.capacity < sizeof(own) ? 0 : sizeof(own);
        own.entries = 0;
        own.work = seconds - spent[PART_REDUCE] - spent[PART_PEERS];
    }
    for (i = sizeof(own); i < times->message.size; i += sizeof(float)) {
        float entry;

        memcpy(&entry, times->message.data + i, sizeof(entry));
        own.work += (double)entry;
    }
    own.useful = useful_seconds(job, engine, own.cpu, own.work);
    if (times->message.size >= sizeof(own))
        memcpy(times->message.data, &own, sizeof(own));
}

static bool
read_account(const uint8_t *data, size_t size, const char *host, struct rank_time *out, uint64_t *steps,
             size_t *entries)
{
    struct account a;

    if (size < sizeof(a))
        return false;
    memcpy(&a, data, sizeof(a));
    *out = (struct rank_time){.seconds = a.seconds,
                              .work = a.work,
                              .busy = a.busy,
                              .modelled = a.modelled,
                              .cpu = a.cpu,
                              .useful = a.useful,
                              .threads = a.threads,
                              .parts = a.parts};
    memcpy(out->host, host, strnlen(host, sizeof(out->host) - 1));
    *steps = a.steps;
    *entries = (size_t)a.entries;
    return size == sizeof(a) + *entries * sizeof(float);
}

/* Rank 0: read the accounts of all ranks.  CHEX_ERR_MEMORY, also if another rank could not send one. */
static enum chex_status
read_accounts(const struct trainer_job *job, const struct buffer *all, const size_t *sizes, struct rank_times *out,
              struct chex_error *err)
{
    unsigned ranks = (unsigned)collective_size(job->all), r;
    const float **work = calloc(ranks, sizeof(*work));
    size_t *count = calloc(ranks, sizeof(*count)), at = 0;
    bool good = work && count;

    out->rank = calloc(ranks, sizeof(*out->rank));
    out->ranks = ranks;
    good = good && out->rank;
    for (r = 0; good && r < ranks; at += sizes[r++]) {
        good = read_account(all->data + at, sizes[r], collective_host(job->all, (int)r), &out->rank[r], &out->steps,
                            &count[r]);
        work[r] = (const float *)(const void *)(all->data + at + sizeof(struct account));
        out->seconds = good && out->rank[r].seconds > out->seconds ? out->rank[r].seconds : out->seconds;
    }
    if (good)
        out->ideal = rank_times_ideal(work, count, ranks);
    free(work);
    free(count);
    return good ? CHEX_OK : error_memory(err);
}

static double
own_clock(void *context)
{
    (void)context;
    return clock_now();
}

enum chex_status
trainer_times_clock(const struct trainer_job *job, struct chex_error *err)
{
    return collective_clock(job->all, own_clock, NULL, &job->times->clock, err);
}

/* Gather the spans of all ranks on rank 0, converted to its clock. */
static enum chex_status
gather_spans(struct trainer *t, struct buffer *all, size_t *sizes, struct chex_error *err)
{
    struct trainer_times *times = t->job.times;
    enum chex_status status = trainer_times_clock(&t->job, err);
    size_t at, i;

    for (i = 0; status == CHEX_OK && i < times->spans.size; i += sizeof(struct trace_span)) {
        struct trace_span span;

        memcpy(&span, times->spans.data + i, sizeof(span));
        span.begin = clock_map_time(&times->clock, span.begin);
        span.end = clock_map_time(&times->clock, span.end);
        memcpy(times->spans.data + i, &span, sizeof(span));
    }
    if (status == CHEX_OK)
        status = collective_allgather(t->job.all, times->spans.data, times->spans.size, all, sizes, err);
    for (i = 0, at = 0; status == CHEX_OK && t->job.is_rank_0 && i < (size_t)collective_size(t->job.all);
         at += sizes[i++])
        t->job.w->spans(t->job.w->context, t, (int)i, (const struct trace_span *)(const void *)(all->data + at),
                        sizes[i] / sizeof(struct trace_span));
    return status;
}

static void
set_in_use(const struct trainer *t, bool in_use[SAVER_COUNT])
{
    in_use[SAVER_NO_TTA] = t->job.o->tta == TTA_NONE;
    in_use[SAVER_NO_BOOTSTRAP] = t->job.o->replicates == 0;
    in_use[SAVER_STAGE] = t->job.o->stage;
    in_use[SAVER_CACHE] = t->images.reading.kept;
    in_use[SAVER_CACHE_DEVICE] = t->images.reading.on_device;
}

enum chex_status
trainer_gather_times(struct trainer *t, bool last, struct chex_error *err)
{
    struct trainer_times *times = t->job.times;
    size_t *sizes = calloc((size_t)collective_size(t->job.all), sizeof(*sizes));
    struct rank_times epoch = {.rank = NULL};
    struct chex_error why;
    struct buffer all = {0};
    enum chex_status status = collective_agree(t->job.all, sizes ? CHEX_OK : error_memory(err), NULL, err);

    close_account(&t->job, &t->engine);
    if (status == CHEX_OK)
        status = collective_allgather(t->job.all, times->message.data, times->message.size, &all, sizes, err);
    /* An error on rank 0 is reported, and the run continues. */
    if (status == CHEX_OK && t->job.is_rank_0) {
        set_in_use(t, epoch.in_use);
        if (read_accounts(&t->job, &all, sizes, &epoch, &why) != CHEX_OK ||
            rank_times_add(&times->all, &epoch, &why) != CHEX_OK)
            trainer_warn(&t->job, "times of the ranks: %s", why.text);
        else if (t->job.w->times)
            t->job.w->times(t->job.w->context, t, last ? &times->all : &epoch, last);
    }
    if (status == CHEX_OK && t->job.w->spans)
        status = gather_spans(t, &all, sizes, err);
    rank_times_release(&epoch);
    buffer_release(&all);
    free(sizes);
    trainer_times_begin(&t->job);
    return status;
}

/* For a run that ends when the ranks do not meet any more. */
void
trainer_write_times(struct trainer *t)
{
    const struct trainer_times *times = t->job.times;

    if (t->job.is_rank_0 && t->job.w->spans && times->spans.size > 0)
        t->job.w->spans(t->job.w->context, t, 0, (const struct trace_span *)(const void *)times->spans.data,
                        times->spans.size / sizeof(struct trace_span));
}

void
trainer_times_release(struct trainer_times *times)
{
    buffer_release(&times->message);
    buffer_release(&times->spans);
    rank_times_release(&times->all);
}
