/*
 * events.c - describes an event file of TensorBoard; see inspect.h
 *
 * It uses the trainer's own reader (train/log/events_read.h), which validates all input.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/inspect.h"

#include "base/progress.h"
#include "io/file.h"
#include "log/events_read.h"

#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#define STEPS (2 * PROGRESS_TEXT + 8)

/* "30", "10 to 1,030" */
static char *
format_steps(int64_t first, int64_t last, char out[STEPS])
{
    if (first == last)
        snprintf(out, STEPS, "%s%s", first < 0 ? "-" : "", COUNT_TEXT(first < 0 ? -(uint64_t)first : (uint64_t)first));
    else
        snprintf(out, STEPS, "%s%s to %s%s", first < 0 ? "-" : "",
                 COUNT_TEXT(first < 0 ? -(uint64_t)first : (uint64_t)first), last < 0 ? "-" : "",
                 COUNT_TEXT(last < 0 ? -(uint64_t)last : (uint64_t)last));
    return out;
}

static const struct table_column tag_columns[] = {{.name = "tag", .heading = "tag", .width = TABLE_FIT},
                                                  {.name = "kind", .heading = "kind", .width = -10, .gap = "  "},
                                                  {.name = "values", .heading = "values", .width = 8},
                                                  {.heading = "steps", .width = -20, .gap = "  "},
                                                  {.name = "first_step"},
                                                  {.name = "last_step"},
                                                  {.name = "last", .heading = "last value", .digits = 6, .none = ""},
                                                  {.name = NULL}};

static void
put_tags(struct table_writer *w, void *result)
{
    const struct event_contents *c = result;
    char tag[INSPECT_TEXT], kind[INSPECT_TEXT], steps[STEPS];
    size_t i;

    for (i = 0; i < c->count; i++) {
        const struct event_tag *t = &c->tag[i];

        table_row(w, (struct cell[]){inspect_name(w, t->tag, tag, sizeof(tag)),
                                     inspect_name(w, t->kind, kind, sizeof(kind)), cell_count(t->count),
                                     cell_text(format_steps(t->first, t->last, steps)),
                                     cell_json(json_integer(t->first), ""), cell_json(json_integer(t->last), ""),
                                     cell_number(t->value)});
    }
}

static void
print_tags(const struct inspect *in, struct event_contents *c)
{
    struct table_writer w = {.column = tag_columns, .color = &in->color, .fit = 3};
    char tag[INSPECT_TEXT];
    size_t i;

    for (i = 0; i < c->count; i++)
        table_fit(&w, inspect_text(inspect_bytes(c->tag[i].tag), tag));
    table_begin(&w);
    put_tags(&w, c);
}

static void
print_events(const struct inspect *in, struct event_contents *c)
{
    char values[PROGRESS_THINGS], records[PROGRESS_THINGS], steps[STEPS], starts[PROGRESS_THINGS];

    printf("%sevents%s   %s in %s", in->color.bold, in->color.off, format_things(c->values, "value", values),
           format_things(c->records, "record", records));
    if (c->values > 0)
        printf(", steps %s", format_steps(c->first_step, c->last_step, steps));
    if (c->sessions > 0)
        printf(", %s", format_things(c->sessions, "start", starts));
    printf("\n");
    if (c->opaque > 0)
        printf("         note: %s that this program cannot read\n", format_things(c->opaque, "record", records));
    if (c->hidden > 0)
        printf("         note: %s of more than %s tags are not shown\n", format_things(c->hidden, "value", values),
               COUNT_TEXT(EVENTS_TAGS_MAX));
    if (c->count > 0)
        print_tags(in, c);
}

static json_t *
events_json(struct event_contents *c)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "version", text_json(c->version), "records",
                     count_json(c->records), "values", count_json(c->values), "starts", count_json(c->sessions),
                     "unreadable", count_json(c->opaque), "hidden", count_json(c->hidden), "first_time",
                     real_json(c->first_time), "last_time", real_json(c->last_time), "tags",
                     inspect_rows_json(tag_columns, put_tags, c));
}

int
inspect_events(struct inspect *in, const struct target *t)
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
             inspect_text(inspect_bytes(c.version), version), format_bytes(size, size_text));
    code = fault ? EXIT_DATA : EXIT_GOOD;
    if (status != CHEX_OK && status != CHEX_ERR_CHECKSUM && status != CHEX_ERR_TRUNCATED)
        code = inspect_fail(in, t->path, &err);
    else if (in->common->json)
        inspect_json_file(in, t, "events", what, fault, events_json(&c));
    else {
        code = inspect_print_head(in, t, what, fault);
        if (!in->common->quiet)
            print_events(in, &c);
    }
    event_contents_release(&c);
    return code;
}
