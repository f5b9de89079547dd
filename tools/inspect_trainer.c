/*
 * inspect_trainer.c - what the trainer wrote: a checkpoint, an event file of TensorBoard; see inspect.h
 *
 * Both are read by the readers of the trainer itself (train/safetensors.h, train/events_read.h), which believe nothing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect.h"

#include "events_read.h"
#include "file.h"
#include "json.h"
#include "progress.h"
#include "safetensors.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct json_bounds state_bounds = {.size = 65536, .depth = 4, .values = 1000};

static struct chex_bytes
bytes_of(const char *text)
{
    return (struct chex_bytes){text, strlen(text)};
}

/* The head of the output: what the file is, and its fault; returns the exit code. */
static int
print_head(const struct inspect *in, const struct target *t, const char *what, const char *fault)
{
    if (fault)
        printf("%s: %s%s: %s%s\n", t->path, in->color.red, what, fault, in->color.off);
    else if (!in->common->quiet)
        printf("%s: %s\n", t->path, what);
    return fault ? EXIT_DATA : EXIT_GOOD;
}

static void
add_json(struct inspect *in, const struct target *t, const char *kind, const char *what, const char *fault,
         json_t *details)
{
    inspect_json_add(in, json_pack("{s:o, s:s, s:o, s:o, s:o}", "path", inspect_json_text(bytes_of(t->path)), "kind",
                                   kind, "text", inspect_json_text(bytes_of(what)), "fault",
                                   fault ? inspect_json_text(bytes_of(fault)) : json_null(), kind, details));
}

/* ---- checkpoint ------------------------------------------------------------------------------------------------ */

/* The state of the run as chex-train keeps it (train/checkpoint_state.c), or NULL. */
static json_t *
state_of(const struct safetensors *s)
{
    const char *text = safetensors_metadata(s, "state");
    json_t *state = NULL;

    if (text && json_read(text, strlen(text), &state_bounds, &state, NULL) != CHEX_OK)
        return NULL;
    return state;
}

static const char *
text_in(const json_t *state, const char *key, char out[INSPECT_TEXT])
{
    const char *text = json_string_value(json_object_get(state, key));

    return text ? inspect_text(bytes_of(text), out) : "unknown";
}

static void
print_state(const struct inspect *in, const struct safetensors *s)
{
    const char *const names[] = {"tool", "version", "labels", "note"};
    json_t *state = state_of(s);
    char a[INSPECT_TEXT], b[INSPECT_TEXT], c[INSPECT_TEXT];
    size_t i;

    if (state) {
        printf("%srun%s      %s, step %s, epoch %lld", in->color.bold, in->color.off, text_in(state, "model", a),
               text_in(state, "step", b), (long long)json_integer_value(json_object_get(state, "epoch")));
        printf(", data set %s, seed %s\n", text_in(state, "dataset_id", a), text_in(state, "seed", c));
    }
    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (safetensors_metadata(s, names[i]))
            printf("%-8s %s\n", names[i], inspect_text(bytes_of(safetensors_metadata(s, names[i])), a));
    json_decref(state);
}

static json_t *
checkpoint_json(const struct safetensors *s, uint64_t numbers)
{
    json_t *metadata = json_object();
    size_t i;

    for (i = 0; i < s->metadata_count; i++)
        inspect_json_set(&metadata, s->metadata[i].key, inspect_json_text(bytes_of(s->metadata[i].value)));
    return json_pack("{s:o, s:o, s:o, s:o}", "tensors", inspect_number(s->count), "numbers", inspect_number(numbers),
                     "bytes", inspect_number(s->size), "metadata", metadata);
}

/* Its numbers; the reader has seen to it that they fit the file. */
static uint64_t
count_numbers(const struct safetensors *s)
{
    uint64_t numbers = 0;
    size_t i;

    for (i = 0; i < s->count; i++)
        numbers += s->entry[i].count;
    return numbers;
}

static int
checkpoint(struct inspect *in, const struct target *t)
{
    struct safetensors s;
    struct chex_error err;
    char what[256], a[INSPECT_COUNT], b[INSPECT_COUNT], c[PROGRESS_TEXT];
    enum chex_status status = safetensors_open(AT_FDCWD, t->path, &s, &err);
    const char *fault = status == CHEX_OK ? NULL : err.text;
    uint64_t numbers = status == CHEX_OK ? count_numbers(&s) : 0;
    int code = fault ? EXIT_DATA : EXIT_GOOD;

    snprintf(what, sizeof(what), "a checkpoint (safetensors)");
    if (status == CHEX_OK)
        snprintf(what, sizeof(what), "a checkpoint (safetensors): %s, %s, %s", inspect_count(s.count, "tensor", a),
                 inspect_count(numbers, "number", b), format_bytes(s.size, c));
    if (status == CHEX_ERR_MEMORY || status == CHEX_ERR_READ || status == CHEX_ERR_MISSING)
        code = inspect_fail(in, t->path, &err);
    else if (in->common->json)
        add_json(in, t, "checkpoint", what, fault, fault ? json_null() : checkpoint_json(&s, numbers));
    else {
        code = print_head(in, t, what, fault);
        if (!fault && !in->common->quiet)
            print_state(in, &s);
    }
    safetensors_close(&s);
    return code;
}

/* ---- event file ------------------------------------------------------------------------------------------------ */

/* "30", "10 to 30" */
static char *
format_steps(int64_t first, int64_t last, char out[PROGRESS_TEXT + 32])
{
    if (first == last)
        snprintf(out, PROGRESS_TEXT + 32, "%lld", (long long)first);
    else
        snprintf(out, PROGRESS_TEXT + 32, "%lld to %lld", (long long)first, (long long)last);
    return out;
}

static void
print_tags(const struct inspect *in, const struct event_contents *c)
{
    char tag[INSPECT_TEXT], kind[INSPECT_TEXT], steps[PROGRESS_TEXT + 32], count[PROGRESS_TEXT];
    size_t i, width = 3;

    for (i = 0; i < c->count; i++) {
        size_t length = strlen(inspect_text(bytes_of(c->tag[i].tag), tag));

        width = length > width && length < 60 ? length : width;
    }
    printf("%s%-*s  %-10s %8s  %-20s %s%s\n", in->color.bold, (int)width, "tag", "kind", "values", "steps",
           "last value", in->color.off);
    for (i = 0; i < c->count; i++) {
        const struct event_tag *t = &c->tag[i];

        printf("%-*s  %-10s %8s  ", (int)width, inspect_text(bytes_of(t->tag), tag),
               inspect_text(bytes_of(t->kind), kind), format_count(t->count, count));
        if (isnan(t->value))
            printf("%s\n", format_steps(t->first, t->last, steps));
        else
            printf("%-20s %.6g\n", format_steps(t->first, t->last, steps), t->value);
    }
}

static void
print_events(const struct inspect *in, const struct event_contents *c)
{
    char values[INSPECT_COUNT], records[INSPECT_COUNT], steps[PROGRESS_TEXT + 32], starts[INSPECT_COUNT];

    printf("%sevents%s   %s in %s", in->color.bold, in->color.off, inspect_count(c->values, "value", values),
           inspect_count(c->records, "record", records));
    if (c->values > 0)
        printf(", steps %s", format_steps(c->first_step, c->last_step, steps));
    if (c->sessions > 0)
        printf(", %s", inspect_count(c->sessions, "start", starts));
    printf("\n");
    if (c->opaque > 0)
        printf("         note: %s that this program cannot read\n", inspect_count(c->opaque, "record", records));
    if (c->hidden > 0)
        printf("         note: %s of more than %d tags are not shown\n", inspect_count(c->hidden, "value", values),
               EVENTS_TAGS_MAX);
    if (c->count > 0)
        print_tags(in, c);
}

static json_t *
real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *
events_json(const struct event_contents *c)
{
    json_t *tags = json_array();
    size_t i;

    for (i = 0; i < c->count; i++) {
        const struct event_tag *t = &c->tag[i];

        inspect_json_push(&tags, json_pack("{s:o, s:o, s:o, s:I, s:I, s:o}", "tag", inspect_json_text(bytes_of(t->tag)),
                                           "kind", inspect_json_text(bytes_of(t->kind)), "values",
                                           inspect_number(t->count), "first_step", (json_int_t)t->first, "last_step",
                                           (json_int_t)t->last, "last", real(t->value)));
    }
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "version",
                     inspect_json_text(bytes_of(c->version)), "records", inspect_number(c->records), "values",
                     inspect_number(c->values), "starts", inspect_number(c->sessions), "unreadable",
                     inspect_number(c->opaque), "hidden", inspect_number(c->hidden), "first_time", real(c->first_time),
                     "last_time", real(c->last_time), "tags", tags);
}

static int
events(struct inspect *in, const struct target *t)
{
    struct event_contents c = {.records = 0};
    struct chex_error err;
    char what[256], version[INSPECT_TEXT], size_text[PROGRESS_TEXT];
    uint64_t size = 0;
    const char *fault;
    int fd = -1, code;
    enum chex_status status = file_open(AT_FDCWD, t->path, &fd, &size, &err);

    if (status == CHEX_OK)
        status = events_read(fd, size, &c, &err);
    if (fd >= 0)
        close(fd);
    fault = status == CHEX_OK ? NULL : err.text;
    snprintf(what, sizeof(what), "an event file of TensorBoard (%.100s), %s",
             inspect_text(bytes_of(c.version), version), format_bytes(size, size_text));
    code = fault ? EXIT_DATA : EXIT_GOOD;
    if (status != CHEX_OK && status != CHEX_ERR_CHECKSUM && status != CHEX_ERR_TRUNCATED)
        code = inspect_fail(in, t->path, &err);
    else if (in->common->json)
        add_json(in, t, "events", what, fault, events_json(&c));
    else {
        code = print_head(in, t, what, fault);
        if (!in->common->quiet)
            print_events(in, &c);
    }
    event_contents_release(&c);
    return code;
}

int
inspect_trainer(struct inspect *in, const struct target *t)
{
    return t->kind == TARGET_EVENTS ? events(in, t) : checkpoint(in, t);
}
