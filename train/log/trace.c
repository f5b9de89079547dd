/*
 * trace.c - see trace.h; format: "Trace Event Format" of the Chromium project: complete events (X), metadata (M)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "log/trace.h"

#include "base/clock.h"
#include "base/json.h"
#include "store/store.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WRITE_SECONDS 10
#define END_ROOM      512 /* bytes below the limit, for the last span */

enum track { TRACK_STEPS, TRACK_HOST, TRACK_DEVICE, TRACKS };

static const char *const track_name[TRACKS] = {"steps", "host", "device"};

struct trace_ranks {
    bool own_clock;
    double end[TRACKS]; /* of the last span */
};

struct trace {
    struct folder folder;
    char *name;
    struct buffer text; /* without the end of the array */
    size_t written;     /* bytes of it */
    double start, time; /* clock_now() at opening and at the last write */
    uint64_t limit;
    struct trace_ranks *rank;
    int ranks;
    bool full, over; /* over: nothing more is written */
    void (*warn)(void *context, const char *text);
    void *context;
};

/* ---- text -------------------------------------------------------------------------------------------------------- */

/* Report the first failure and end the trace. */
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

/* Append one event as a line; all but the first begin with a comma. */
static void
emit(struct trace *t, const char *format, ...)
{
    size_t before = t->text.size;
    struct chex_error err;
    enum chex_status status;
    va_list args;

    if (t->over)
        return;
    va_start(args, format);
    status = before > 0 ? buffer_append(&t->text, ",\n", 2, &err) : CHEX_OK;
    if (status == CHEX_OK)
        status = buffer_vprintf(&t->text, &err, format, args);
    va_end(args);
    if (status == CHEX_OK)
        return;
    t->text.size = before;
    fail(t, &err);
}

static double
microseconds(const struct trace *t, double time)
{
    return (time - t->start) * 1e6;
}

/* Check for space for one more event; the last event of a full file says that it is full. */
static bool
room(struct trace *t, double time)
{
    if (t->over || t->full)
        return false;
    if (t->text.size + END_ROOM <= t->limit)
        return true;
    emit(t, "{\"name\":\"the trace is full\",\"ph\":\"X\",\"ts\":%.3f,\"dur\":1,\"pid\":0,\"tid\":%d}",
         microseconds(t, time), TRACK_STEPS);
    t->full = true;
    return false;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static enum chex_status
write_file(struct trace *t, struct chex_error *err)
{
    static const char begin[] = "[\n", end[] = "\n]\n";
    struct safe_file *file;
    enum chex_status status = safe_file_create(&t->folder, t->name, SAFE_FILE_NEW, 0, &file, err);

    if (status != CHEX_OK)
        return status;
    status = safe_file_write(file, begin, strlen(begin), err);
    if (status == CHEX_OK && t->text.size > 0)
        status = safe_file_write(file, t->text.data, t->text.size, err);
    if (status == CHEX_OK)
        status = safe_file_write(file, end, strlen(end), err);
    if (status != CHEX_OK) {
        safe_file_free(file);
        return status;
    }
    t->written = t->text.size;
    t->time = clock_now();
    /* No sync: a power loss also ends the run. */
    return safe_file_commit(file, false, err);
}

void
trace_write(struct trace *t, bool at_once)
{
    struct chex_error err;

    if (!t || t->over || t->written == t->text.size || (!at_once && clock_now() - t->time < WRITE_SECONDS))
        return;
    if (write_file(t, &err) != CHEX_OK)
        fail(t, &err);
}

static void
release(struct trace *t)
{
    folder_close(&t->folder);
    buffer_release(&t->text);
    free(t->rank);
    free(t->name);
    free(t);
}

enum chex_status
trace_open(const struct trace_options *options, struct trace **out, struct chex_error *err)
{
    struct trace *t = calloc(1, sizeof(*t));
    const char *name;
    enum chex_status status;

    *out = NULL;
    if (!t)
        return error_memory(err);
    t->folder.fd = -1;
    t->warn = options->warn;
    t->context = options->context;
    t->limit = options->limit > 0 ? options->limit : TRACE_LIMIT;
    t->start = clock_now();
    status = store_open_output(options->path, &t->folder, &name, err);
    t->name = strdup(name);
    if (status == CHEX_OK && !t->name)
        status = error_memory(err);
    if (status != CHEX_OK) {
        release(t);
        return status;
    }
    if (write_file(t, err) != CHEX_OK)
        fail(t, err);
    *out = t;
    return CHEX_OK;
}

void
trace_free(struct trace *t)
{
    if (!t)
        return;
    trace_write(t, true);
    release(t);
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

static void
name_track(struct trace *t, int rank, enum track track)
{
    emit(t, "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":\"%s\"}}", rank, track,
         track_name[track]);
    emit(t, "{\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":{\"sort_index\":%d}}", rank,
         track, track);
}

void
trace_rank(struct trace *t, int rank, const char *host, bool own_clock)
{
    struct trace_ranks *grown;
    json_t *name;
    char text[128], *quoted;

    if (!t || rank < 0 || rank >= TRACE_RANKS || rank < t->ranks)
        return;
    grown = realloc(t->rank, ((size_t)rank + 1) * sizeof(*grown));
    if (!grown)
        return;
    t->rank = grown;
    for (; t->ranks <= rank; t->ranks++)
        t->rank[t->ranks] = (struct trace_ranks){.own_clock = own_clock};
    snprintf(text, sizeof(text), "chex-train, rank %d, %.80s", rank, host);
    name = text_json(text);
    quoted = name ? json_dumps(name, JSON_ENCODE_ANY) : NULL;
    emit(t, "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":%s}}", rank,
         quoted ? quoted : "null");
    emit(t, "{\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"sort_index\":%d}}", rank, rank);
    name_track(t, rank, TRACK_STEPS);
    name_track(t, rank, TRACK_HOST);
    if (own_clock)
        name_track(t, rank, TRACK_DEVICE);
    free(quoted);
    json_decref(name);
}

static enum track
track_of(const struct trace_ranks *r, uint32_t what)
{
    if (what == TRACE_STEP || what == PART_EVALUATE || what == PART_SAVE || what == PART_PEERS)
        return TRACK_STEPS;
    return r->own_clock && what >= PART_COPY && what <= PART_UPDATE ? TRACK_DEVICE : TRACK_HOST;
}

void
trace_put(struct trace *t, int rank, const struct trace_span *span)
{
    char name[40];
    double begin, *before;
    enum track track;

    if (!t || rank < 0 || rank >= t->ranks || span->what > TRACE_STEP)
        return;
    track = track_of(&t->rank[rank], span->what);
    before = &t->rank[rank].end[track];
    begin = span->begin > *before ? span->begin : *before;
    if (!(span->end >= begin) || !room(t, span->end))
        return;
    *before = span->end;
    if (span->what == TRACE_STEP)
        snprintf(name, sizeof(name), "step %llu", (unsigned long long)span->step);
    else
        snprintf(name, sizeof(name), "%s", step_part_name[span->what]);
    emit(t, "{\"name\":\"%s\",\"ph\":\"X\",\"ts\":%.3f,\"dur\":%.3f,\"pid\":%d,\"tid\":%d}", name,
         microseconds(t, begin), (span->end - begin) * 1e6, rank, track);
}
