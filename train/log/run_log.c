/*
 * run_log.c - writes events to metrics.jsonl and to the event file; see run_log.h
 *
 * run_log_lines.c formats the lines of metrics.jsonl, events.c the messages of the event file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "log/run_log.h"

#include "base/clock.h"
#include "base/json.h"
#include "dataset/findings.h"
#include "log/append.h"
#include "log/events.h"
#include "log/run_log_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLUSH_SECONDS 10
#define TAG_SIZE      256

struct run_log {
    struct append *metrics; /* NULL: it could not be opened */
    struct events *events;  /* NULL: it could not be opened */
    struct buffer line;
    double flushed; /* clock_now() */
    bool leaky;     /* of run_log_options */
    char short_run[METRICS_SHORT_RUN];
    bool warned;
    void (*warn)(void *context, const char *text);
    void *context;
};

/* ---- errors, time ------------------------------------------------------------------------------------------------ */

/* Warn only of the first failure; the run continues. */
static void
watch(struct run_log *log, enum chex_status status, const struct chex_error *err)
{
    char text[CHEX_ERROR_TEXT + 64];

    if (status == CHEX_OK || log->warned)
        return;
    log->warned = true;
    snprintf(text, sizeof(text), "%s; the run continues, and says this once", err->text);
    if (log->warn)
        log->warn(log->context, text);
}

void
run_log_flush(struct run_log *log)
{
    struct chex_error err;

    if (log->metrics)
        watch(log, append_flush(log->metrics, &err), &err);
    if (log->events)
        watch(log, events_flush(log->events, &err), &err);
    log->flushed = clock_now();
}

static void
flush_sometimes(struct run_log *log)
{
    if (clock_now() - log->flushed >= FLUSH_SECONDS)
        run_log_flush(log);
}

/* Append a line that was formatted successfully. */
static void
put_line(struct run_log *log, enum chex_status status, struct chex_error *err)
{
    if (status == CHEX_OK && log->metrics)
        status = append_put(log->metrics, log->line.data, log->line.size, err);
    watch(log, status, err);
    log->line.size = 0;
}

/* ---- open, close ------------------------------------------------------------------------------------------------- */

enum chex_status
run_log_open(const struct run_log_options *options, struct run_log **out, struct chex_error *err)
{
    struct run_log *log = calloc(1, sizeof(*log));
    enum chex_status status;
    struct chex_error why;

    *out = NULL;
    if (!log)
        return error_memory(err);
    log->leaky = options->leaky;
    snprintf(log->short_run, sizeof(log->short_run), "%s", options->short_run ? options->short_run : "");
    log->warn = options->warn;
    log->context = options->context;
    /* Do not append to a file that could not be trimmed: lines could follow an incomplete line, or be duplicates. */
    status = run_log_trim(options, &why);
    if (status == CHEX_OK)
        status = append_open(options->folder, RUN_LOG_METRICS, false, &log->metrics, &why);
    watch(log, status, &why);
    status = events_open(options->folder, options->step, &log->events, &why);
    watch(log, status, &why);
    run_log_flush(log);
    *out = log;
    return CHEX_OK;
}

void
run_log_free(struct run_log *log)
{
    struct chex_error err;

    if (!log)
        return;
    run_log_flush(log); /* append_sync() tries again what fails here */
    if (log->metrics)
        watch(log, append_sync(log->metrics, &err), &err);
    if (log->events)
        watch(log, events_sync(log->events, &err), &err);
    append_free(log->metrics);
    events_free(log->events);
    buffer_release(&log->line);
    free(log);
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

/*
 * Add a scalar "GROUP/NAME", in a leaky run "leaky/GROUP/NAME", in a short run "short_run/GROUP/NAME"; curves leave out
 * numbers that are not finite.
 */
static void
scalar(struct run_log *log, const char *group, const char *name, double value)
{
    char tag[TAG_SIZE];
    struct chex_error err;

    if (!log->events || !isfinite(value))
        return;
    snprintf(tag, sizeof(tag), "%s%s%.100s/%.100s", log->leaky ? "leaky/" : "", log->short_run[0] ? "short_run/" : "",
             group, name);
    watch(log, events_scalar(log->events, tag, value, &err), &err);
}

/* Write the Event with the collected values. */
static void
write_event(struct run_log *log, uint64_t step, double time)
{
    struct chex_error err;

    if (log->events)
        watch(log, events_write(log->events, step, time, &err), &err);
}

static struct line_head
head_of_now(const struct run_log *log)
{
    return (struct line_head){run_log_now(), log->leaky, log->short_run};
}

void
run_log_step(struct run_log *log, const struct run_log_step *s)
{
    const struct line_head head = head_of_now(log);
    struct chex_error err;
    unsigned i;

    put_line(log, run_log_step_line(s, head, &log->line, &err), &err);
    for (i = 0; i < STEP_NUMBERS; i++)
        scalar(log, "train", step_number[i].name, step_number_of(s, i));
    if (s->seconds > 0) {
        scalar(log, "speed", "images_per_second", (double)s->images / s->seconds);
        for (i = 0; i < PART_COUNT; i++)
            scalar(log, "speed", step_part_name[i], s->times.seconds[i] / s->seconds);
    }
    write_event(log, s->step, head.time);
    flush_sometimes(log);
}

void
run_log_epoch(struct run_log *log, const struct run_log_epoch *e)
{
    const struct line_head head = head_of_now(log);
    struct chex_error err;

    put_line(log, run_log_epoch_line(e, head, &log->line, &err), &err);
    scalar(log, "epoch", "loss", e->loss);
    write_event(log, e->step, head.time);
    run_log_flush(log);
}

void
run_log_times(struct run_log *log, uint64_t step, uint32_t epoch, const char *over, const struct rank_times *times)
{
    bool is_epoch = strcmp(over, "epoch") == 0;
    const struct line_head head = head_of_now(log);
    double factor[FACTOR_COUNT];
    struct chex_error err;
    unsigned i;

    put_line(log, run_log_times_line(step, epoch, over, times, head, &log->line, &err), &err);
    rank_times_factors(times, factor);
    for (i = 0; is_epoch && i < FACTOR_COUNT; i++)
        scalar(log, "efficiency", factor_info[i].name, factor[i]);
    write_event(log, step, head.time);
    run_log_flush(log);
}

void
run_log_evaluation(struct run_log *log, const struct run_log_evaluation *e)
{
    const struct metrics *m = e->metrics;
    const struct line_head head = head_of_now(log);
    struct chex_error err;
    char name[TAG_SIZE];
    unsigned i, k;

    put_line(log, run_log_evaluation_line(e, head, &log->line, &err), &err);
    scalar(log, e->split, "loss", e->loss);
    for (k = 0; k < METRIC_COUNT; k++)
        scalar(log, e->split, metric_info[k].name, m->mean[k].value);
    for (i = 0; i < m->outputs; i++) {
        for (k = 0; k < METRIC_COUNT; k++) {
            snprintf(name, sizeof(name), "%s/%s", metric_info[k].name, e->findings[i]);
            if (metric_info[k].each)
                scalar(log, e->split, name, m->finding[i].metric[k].value);
        }
    }
    write_event(log, e->step, head.time);
    run_log_flush(log);
}

void
run_log_note(struct run_log *log, uint64_t step, uint32_t epoch, const char *what, const char *text)
{
    struct chex_error err;

    put_line(log, run_log_note_line(step, epoch, what, text, head_of_now(log), &log->line, &err), &err);
    flush_sometimes(log);
}
