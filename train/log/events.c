/*
 * events.c - builds Event messages and appends them to the file; see events.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "log/events.h"

#include "dataset/tfrecord.h"

#include "schemas/event.pb-c.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FILE_VERSION "brain.Event:2"
#define NAME_SIZE    256
#define NAME_PREFIX  "events.out.tfevents."
#define NAME_TRIES   100

struct events {
    struct append *file;
    char name[NAME_SIZE];
    Chex__Summary__Value *value; /* of the next Event; their tags are owned */
    size_t count, capacity;
    struct buffer record;
};

/* ---- one Event --------------------------------------------------------------------------------------------------- */

static enum chex_status
append_event(struct events *e, const Chex__Event *event, struct chex_error *err)
{
    size_t size = chex__event__get_packed_size(event), need;
    enum chex_status status;

    if (!size_add(size, TFRECORD_FRAME, &need))
        return error_memory(err);
    status = buffer_reserve(&e->record, need, err);
    if (status != CHEX_OK)
        return status;
    chex__event__pack(event, e->record.data + TFRECORD_HEADER);
    tfrecord_frame(e->record.data, size);
    return append_put(e->file, e->record.data, need, err);
}

enum chex_status
events_scalar(struct events *e, const char *tag, double value, struct chex_error *err)
{
    void *grown = array_grow(e->value, &e->capacity, e->count, sizeof(*e->value));
    Chex__Summary__Value *v;

    if (!grown)
        return error_memory(err);
    e->value = grown;
    v = &e->value[e->count];
    chex__summary__value__init(v);
    v->tag = strdup(tag);
    v->value_case = CHEX__SUMMARY__VALUE__VALUE_SIMPLE_VALUE;
    v->simple_value = (float)value;
    if (!v->tag)
        return error_memory(err);
    e->count++;
    return CHEX_OK;
}

static void
drop_values(struct events *e)
{
    while (e->count > 0)
        free(e->value[--e->count].tag);
}

enum chex_status
events_write(struct events *e, uint64_t step, double time, struct chex_error *err)
{
    Chex__Summary__Value **values = malloc((e->count + 1) * sizeof(*values));
    Chex__Summary summary = CHEX__SUMMARY__INIT;
    Chex__Event event = CHEX__EVENT__INIT;
    enum chex_status status = values ? CHEX_OK : error_memory(err);
    size_t i;

    for (i = 0; status == CHEX_OK && i < e->count; i++)
        values[i] = &e->value[i];
    summary.n_value = e->count;
    summary.value = values;
    event.wall_time = time;
    event.step = (int64_t)step;
    event.what_case = CHEX__EVENT__WHAT_SUMMARY;
    event.summary = &summary;
    if (status == CHEX_OK && e->count > 0)
        status = append_event(e, &event, err);
    free(values);
    drop_values(e);
    return status;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static bool
is_event_file(const char *name)
{
    return strncmp(name, NAME_PREFIX, strlen(NAME_PREFIX)) == 0;
}

/* Returns the current time, but later than every existing event file: the new name must sort last. */
static enum chex_status
first_second(const struct folder *folder, unsigned long long *out, struct chex_error *err)
{
    struct folder_names names = {0};
    enum chex_status status = folder_list(folder, is_event_file, &names, err);
    unsigned long long second = (unsigned long long)time(NULL);
    size_t i;

    for (i = 0; status == CHEX_OK && i < names.count; i++) {
        const char *digits = names.name[i] + strlen(NAME_PREFIX);
        size_t length = strspn(digits, "0123456789");

        /* TensorBoard compares names, so numbers of another length do not matter. */
        if (length == 10 && strtoull(digits, NULL, 10) >= second)
            second = strtoull(digits, NULL, 10) + 1;
    }
    folder_names_release(&names);
    *out = second;
    return status == CHEX_ERR_READ ? error_context(err, CHEX_ERR_WRITE, "event file") : status;
}

/* Copy the characters of the host's name that are safe in a file name. */
static void
host_for_name(char *out, size_t size)
{
    size_t i;

    if (gethostname(out, size) != 0)
        snprintf(out, size, "localhost");
    out[size - 1] = '\0';
    for (i = 0; out[i]; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.", out[i]))
            out[i] = '_';
}

static enum chex_status
create_file(struct events *e, const struct folder *folder, struct chex_error *err)
{
    char host[64];
    unsigned long long second;
    unsigned tries;
    enum chex_status status = first_second(folder, &second, err);

    host_for_name(host, sizeof(host));
    for (tries = 0; status == CHEX_OK && tries < NAME_TRIES; tries++) {
        snprintf(e->name, sizeof(e->name), NAME_PREFIX "%010llu.%s.%ld", second + tries, host, (long)getpid());
        status = append_open(folder, e->name, true, &e->file, err);
        if (status == CHEX_OK || err->cause != EEXIST)
            return status;
        status = CHEX_OK;
    }
    return status == CHEX_OK ? CHEX_ERR_WRITE : status; /* err has the reason of the last attempt */
}

enum chex_status
events_open(const struct folder *folder, uint64_t step, struct events **out, struct chex_error *err)
{
    struct events *e = calloc(1, sizeof(*e));
    Chex__SessionLog session = CHEX__SESSION_LOG__INIT;
    Chex__Event event = CHEX__EVENT__INIT;
    enum chex_status status;

    *out = NULL;
    if (!e)
        return error_memory(err);
    status = create_file(e, folder, err);
    event.wall_time = (double)time(NULL);
    event.what_case = CHEX__EVENT__WHAT_FILE_VERSION;
    event.file_version = FILE_VERSION;
    if (status == CHEX_OK)
        status = append_event(e, &event, err);
    /* In the first file too: TensorBoard treats the first START that it sees as the start of the run. */
    session.status = CHEX__SESSION_LOG__STATUS__START;
    event.step = step > 0 ? (int64_t)step + 1 : 0;
    event.what_case = CHEX__EVENT__WHAT_SESSION_LOG;
    event.session_log = &session;
    if (status == CHEX_OK)
        status = append_event(e, &event, err);
    if (status == CHEX_OK)
        *out = e;
    else
        events_free(e);
    return status;
}

enum chex_status
events_flush(struct events *e, struct chex_error *err)
{
    return append_flush(e->file, err);
}

enum chex_status
events_sync(struct events *e, struct chex_error *err)
{
    return append_sync(e->file, err);
}

void
events_free(struct events *e)
{
    if (!e)
        return;
    drop_values(e);
    free(e->value);
    buffer_release(&e->record);
    append_free(e->file);
    free(e);
}
