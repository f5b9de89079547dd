/*
 * events_read.c - see events_read.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "log/events_read.h"

#include "dataset/tfrecord.h"
#include "io/file.h"
#include "log/events_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- values ------------------------------------------------------------------------------------------------------ */

static const char *
plugin_of(const Chex__Summary__Value *v)
{
    const char *name = v->metadata && v->metadata->plugin_data ? v->metadata->plugin_data->plugin_name : "";

    return name[0] ? name : NULL;
}

static const char *
kind_of(const Chex__Summary__Value *v)
{
    if (v->value_case == CHEX__SUMMARY__VALUE__VALUE_SIMPLE_VALUE)
        return "scalar";
    if (v->value_case == CHEX__SUMMARY__VALUE__VALUE_HISTO)
        return "histogram";
    if (!plugin_of(v))
        return "other";
    return strcmp(plugin_of(v), "scalars") == 0 ? "scalar" : plugin_of(v);
}

/* Returns the value of a scalar, stored as a number or as a tensor of one float. */
static double
number_of(const Chex__Summary__Value *v)
{
    const Chex__Tensor *t = v->value_case == CHEX__SUMMARY__VALUE__VALUE_TENSOR ? v->tensor : NULL;
    uint32_t bits;
    float number;

    if (v->value_case == CHEX__SUMMARY__VALUE__VALUE_SIMPLE_VALUE)
        return (double)v->simple_value;
    if (!t || t->dtype != 1)
        return (double)NAN;
    if (t->n_float_val == 1)
        return (double)t->float_val[0];
    if (t->tensor_content.len != sizeof(bits))
        return (double)NAN;
    bits = get_u32le(t->tensor_content.data);
    memcpy(&number, &bits, sizeof(number));
    return (double)number;
}

/* ---- tags -------------------------------------------------------------------------------------------------------- */

/*
 * Returns the index of a tag, or count.  Tags usually repeat in the same order, so the one after the last hit is tried
 * first.
 */
static size_t
find(const struct event_contents *c, const char *tag, size_t hint)
{
    size_t i;

    if (hint < c->count && strcmp(c->tag[hint].tag, tag) == 0)
        return hint;
    for (i = 0; i < c->count && strcmp(c->tag[i].tag, tag) != 0; i++)
        ;
    return i;
}

static enum chex_status
new_tag(struct event_contents *c, const Chex__Summary__Value *v, int64_t step, struct chex_error *err)
{
    void *grown = array_grow(c->tag, &c->capacity, c->count, sizeof(*c->tag));
    struct event_tag *t;

    if (!grown)
        return error_memory(err);
    c->tag = grown;
    t = &c->tag[c->count];
    *t = (struct event_tag){.tag = arena_copy(&c->strings, v->tag, strlen(v->tag)),
                            .kind = arena_copy(&c->strings, kind_of(v), strlen(kind_of(v))),
                            .first = step};
    if (!t->tag || !t->kind)
        return error_memory(err);
    c->count++;
    return CHEX_OK;
}

static enum chex_status
take_value(struct event_contents *c, const Chex__Summary__Value *v, int64_t step, size_t *hint, struct chex_error *err)
{
    size_t i = find(c, v->tag, *hint);
    enum chex_status status;

    c->first_step = c->values == 0 || step < c->first_step ? step : c->first_step;
    c->last_step = c->values == 0 || step > c->last_step ? step : c->last_step;
    c->values++;
    if (i == c->count) {
        if (i == EVENTS_TAGS_MAX) {
            c->hidden++;
            return CHEX_OK;
        }
        status = new_tag(c, v, step, err);
        if (status != CHEX_OK)
            return status;
    }
    c->tag[i].count++;
    c->tag[i].last = step;
    c->tag[i].value = number_of(v);
    *hint = i + 1;
    return CHEX_OK;
}

static enum chex_status
take_event(struct event_contents *c, const Chex__Event *event, size_t *hint, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    size_t i;

    c->first_time = c->records == 0 ? event->wall_time : c->first_time;
    c->last_time = event->wall_time;
    switch (event->what_case) {
    case CHEX__EVENT__WHAT_FILE_VERSION:
        snprintf(c->version, sizeof(c->version), "%s", event->file_version);
        break;
    case CHEX__EVENT__WHAT_SESSION_LOG:
        c->sessions += event->session_log->status == CHEX__SESSION_LOG__STATUS__START;
        break;
    case CHEX__EVENT__WHAT_SUMMARY:
        for (i = 0; status == CHEX_OK && i < event->summary->n_value; i++)
            status = take_value(c, event->summary->value[i], event->step, hint, err);
        break;
    default:
        break;
    }
    return status;
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

/* Read the record at `at`: returns its size with the frame, and whether it was too large to read. */
static enum chex_status
read_record(int fd, uint64_t at, uint64_t end, struct buffer *b, uint64_t *size, bool *large, struct chex_error *err)
{
    uint8_t head[TFRECORD_HEADER];
    uint64_t length;
    size_t got, whole;
    enum chex_status status = file_pread(fd, at, head, sizeof(head), &got, err);

    if (status == CHEX_OK && got < sizeof(head))
        status = error_set(err, CHEX_ERR_TRUNCATED, "file ends inside the head of the record");
    if (status == CHEX_OK)
        status = tfrecord_length(head, end - at, &length, err);
    if (status != CHEX_OK)
        return status;
    *size = length + TFRECORD_FRAME;
    *large = length > EVENTS_RECORD_MAX;
    if (*large)
        return CHEX_OK;
    whole = (size_t)*size;
    status = buffer_reserve(b, whole, err);
    if (status == CHEX_OK)
        status = file_pread(fd, at, b->data, whole, &got, err);
    if (status == CHEX_OK && got < whole)
        status = error_set(err, CHEX_ERR_TRUNCATED, "the file became shorter");
    return status == CHEX_OK ? tfrecord_check_data(b->data, (size_t)length, err) : status;
}

static int
by_tag(const void *a, const void *b)
{
    return strcmp(((const struct event_tag *)a)->tag, ((const struct event_tag *)b)->tag);
}

enum chex_status
events_read(int fd, uint64_t size, struct event_contents *out, struct chex_error *err)
{
    struct buffer b = {0};
    uint64_t at = 0, record;
    size_t hint = 0;
    bool large;
    enum chex_status status = CHEX_OK;

    *out = (struct event_contents){.records = 0};
    while (at < size) {
        Chex__Event *event;

        status = read_record(fd, at, size, &b, &record, &large, err);
        if (status != CHEX_OK) {
            status = error_context(err, status, "record %llu", (unsigned long long)out->records);
            break;
        }
        event = large ? NULL : chex__event__unpack(NULL, (size_t)record - TFRECORD_FRAME, b.data + TFRECORD_HEADER);
        if (event)
            status = take_event(out, event, &hint, err);
        else
            out->opaque++;
        if (event)
            chex__event__free_unpacked(event, NULL);
        if (status != CHEX_OK)
            break;
        out->records++;
        at += record;
    }
    if (out->count > 1)
        qsort(out->tag, out->count, sizeof(*out->tag), by_tag);
    buffer_release(&b);
    return status;
}

void
event_contents_release(struct event_contents *c)
{
    free(c->tag);
    arena_release(&c->strings);
    *c = (struct event_contents){.records = 0};
}
