/*
 * trace.c - see trace.h; format: "Trace Event Format" of the Chromium project: complete events (X), counters (C),
 * metadata (M)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "log/trace.h"

#include "base/progress.h"
#include "log/append.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define LINE_SIZE     256
#define FLUSH_SECONDS 10
#define END_ROOM      512 /* bytes below the limit: for the last span */

enum { TRACK_STEPS, TRACK_PARTS };

struct trace {
    struct folder folder;
    struct append *file;
    double start, flushed; /* progress_clock() */
    uint64_t size, limit;
    bool over; /* nothing more is written */
    void (*warn)(void *context, const char *text);
    void *context;
};

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* The first failure is reported and ends the trace. */
static void
fail(struct trace *t, const struct chex_error *err)
{
    char text[CHEX_ERROR_TEXT + 64];

    t->over = true;
    snprintf(text, sizeof(text), "%s; the run continues without the trace", err->text);
    if (t->warn)
        t->warn(t->context, text);
}

static void emit(struct trace *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* One event, a line. */
static void
emit(struct trace *t, const char *format, ...)
{
    char line[LINE_SIZE];
    struct chex_error err;
    va_list args;
    int length;

    if (t->over)
        return;
    va_start(args, format);
    length = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (length < 0 || length >= (int)sizeof(line))
        return;
    t->size += (uint64_t)length;
    if (append_put(t->file, line, (size_t)length, &err) != CHEX_OK)
        fail(t, &err);
    else if (progress_clock() - t->flushed >= FLUSH_SECONDS) {
        t->flushed = progress_clock();
        if (append_flush(t->file, &err) != CHEX_OK)
            fail(t, &err);
    }
}

static double
microseconds(const struct trace *t, double time)
{
    return (time - t->start) * 1e6;
}

/* Room for one more event?  The last one of a file that is full says so. */
static bool
room(struct trace *t, double time)
{
    if (t->over)
        return false;
    if (t->size + END_ROOM <= t->limit)
        return true;
    emit(t, ",\n{\"name\":\"the trace is full\",\"ph\":\"X\",\"ts\":%.1f,\"dur\":1,\"pid\":0,\"tid\":%d}\n]\n",
         microseconds(t, time), TRACK_STEPS);
    t->over = true;
    return false;
}

/* ---- open, close ------------------------------------------------------------------------------------------------- */

static enum chex_status
open_file(struct trace *t, const char *path, struct chex_error *err)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    enum chex_status status = folder ? folder_open(folder, false, &t->folder, err) : error_memory(err);
    struct stat there;

    free(folder);
    /* A device or a pipe would be replaced by the file. */
    if (status == CHEX_OK && fstatat(t->folder.fd, name, &there, 0) == 0 && !S_ISREG(there.st_mode))
        status = error_set(err, CHEX_ERR_WRITE, "--trace: '%s' is no regular file", path);
    if (status == CHEX_OK)
        status = folder_remove(&t->folder, name, err);
    return status == CHEX_OK ? append_open(&t->folder, name, true, &t->file, err) : status;
}

enum chex_status
trace_open(const struct trace_options *options, struct trace **out, struct chex_error *err)
{
    struct trace *t = calloc(1, sizeof(*t));
    enum chex_status status;

    *out = NULL;
    if (!t)
        return error_memory(err);
    t->folder.fd = -1;
    t->warn = options->warn;
    t->context = options->context;
    t->limit = options->limit > 0 ? options->limit : TRACE_LIMIT;
    t->start = t->flushed = progress_clock();
    status = open_file(t, options->path, err);
    if (status != CHEX_OK) {
        t->over = true;
        trace_free(t);
        return status;
    }
    emit(t, "[\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":0,\"args\":{\"name\":\"chex-train, rank 0\"}}");
    emit(t, ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":0,\"tid\":%d,\"args\":{\"name\":\"steps\"}}",
         TRACK_STEPS);
    emit(t, ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":0,\"tid\":%d,\"args\":{\"name\":\"parts\"}}",
         TRACK_PARTS);
    *out = t;
    return CHEX_OK;
}

void
trace_free(struct trace *t)
{
    struct chex_error err;

    if (!t)
        return;
    if (!t->over)
        emit(t, "\n]\n");
    if (t->file && append_flush(t->file, &err) != CHEX_OK && !t->over)
        fail(t, &err);
    append_free(t->file);
    folder_close(&t->folder);
    free(t);
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

static void
span(struct trace *t, int track, const char *name, double begin, double end)
{
    if (t && end >= begin && room(t, end))
        emit(t, ",\n{\"name\":\"%.80s\",\"ph\":\"X\",\"ts\":%.1f,\"dur\":%.1f,\"pid\":0,\"tid\":%d}", name,
             microseconds(t, begin), (end - begin) * 1e6, track);
}

void
trace_part(struct trace *t, enum step_part part, double begin, double end)
{
    span(t, TRACK_PARTS, step_part_name[part], begin, end);
}

void
trace_step(struct trace *t, uint64_t step, double begin, double end)
{
    char name[40];

    snprintf(name, sizeof(name), "step %llu", (unsigned long long)step);
    span(t, TRACK_STEPS, name, begin, end);
}

void
trace_span(struct trace *t, const char *name, double begin, double end)
{
    span(t, TRACK_STEPS, name, begin, end);
}

void
trace_value(struct trace *t, const char *name, double time, double value)
{
    if (t && isfinite(value) && room(t, time))
        emit(t, ",\n{\"name\":\"%.80s\",\"ph\":\"C\",\"ts\":%.1f,\"pid\":0,\"args\":{\"value\":%.9g}}", name,
             microseconds(t, time), value);
}
