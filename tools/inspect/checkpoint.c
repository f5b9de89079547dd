/*
 * checkpoint.c - describes a checkpoint: its run state and each of its tensors; see inspect.h
 *
 * It uses the trainer's own reader (train/checkpoint/safetensors.h), which validates all input.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/checkpoint.h"

#include "base/json.h"
#include "base/number_format.h"
#include "checkpoint/checkpoint.h"
#include "log/run_check.h"
#include "log/run_log.h"
#include "train/run_times.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct parse_bounds state_bounds = {.size = 65536, .depth = 4, .values = 1000};

struct checkpoint {
    struct inspect *in;
    const struct target *target;
    struct safetensors file;
    json_t *state;       /* or NULL */
    bool values;         /* the values were read */
    uint64_t not_finite; /* values that are NaN or infinite */
    uint64_t numbers;
    struct run_times times; /* these two: if the folder of a run was named */
    struct run_check files;
    bool broken;                                                   /* the header or a tensor cannot be read */
    char what[256], fault[sizeof(((struct chex_error *)0)->text)]; /* fault: "" where there is none */
};

/* ---- parts that diff shows too ----------------------------------------------------------------------------------- */

enum chex_status
checkpoint_state_of(const struct safetensors *s, json_t **out, struct chex_error *err)
{
    const char *text = safetensors_metadata(s, "state");
    enum chex_status status;

    *out = NULL;
    if (!text)
        return CHEX_OK;
    status = parse_json(text, strlen(text), &state_bounds, out, err);
    if (status == CHEX_OK || status == CHEX_ERR_MEMORY)
        return status;
    /*
     * No JSON, as far as one reading tells: without memory jansson loses bytes of a token, and calls the rest faulty.
     */
    if (parse_json(text, strlen(text), &state_bounds, out, err) != CHEX_OK)
        return CHEX_OK;
    json_decref(*out);
    *out = NULL;
    return error_memory(err);
}

char *
checkpoint_shape(const struct tensor_entry *e, char out[CHECKPOINT_SHAPE])
{
    size_t used = 0;
    unsigned i;

    snprintf(out, CHECKPOINT_SHAPE, "a single value");
    for (i = 0; i < e->rank; i++)
        used += (size_t)snprintf(out + used, CHECKPOINT_SHAPE - used, "%s%llu", i > 0 ? "x" : "",
                                 (unsigned long long)e->shape[i]);
    return out;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Count the values of a tensor that are not finite. */
static enum chex_status
count_not_finite(const struct safetensors *s, const struct tensor_entry *e, uint64_t *out, struct chex_error *err)
{
    uint8_t bytes[CHECKPOINT_BYTES];
    size_t size = dtype_size(e->type), count, i;
    enum chex_status status = CHEX_OK;
    uint64_t at;

    *out = 0;
    for (at = 0; status == CHEX_OK && at < e->count; at += count) {
        count = e->count - at < CHECKPOINT_PIECE ? (size_t)(e->count - at) : CHECKPOINT_PIECE;
        status = safetensors_read_part(s, e, at, count, bytes, err);
        for (i = 0; status == CHEX_OK && i < count; i++)
            *out += isfinite(dtype_value(e->type, bytes + i * size)) ? 0 : 1;
    }
    return status;
}

/* Read all values.  A value that is not finite is a fault, because chex-train would not load it. */
static enum chex_status
read_values(struct checkpoint *c, struct chex_error *err)
{
    const char *first = NULL;
    char name[INSPECT_TEXT], text[FORMAT_THINGS];
    enum chex_status status = CHEX_OK;
    uint64_t count;
    size_t i;

    for (i = 0; status == CHEX_OK && i < c->file.count; i++) {
        status = count_not_finite(&c->file, &c->file.entry[i], &count, err);
        c->not_finite += count;
        first = first || count == 0 ? first : c->file.entry[i].name;
    }
    if (status == CHEX_OK && first)
        snprintf(c->fault, sizeof(c->fault), "%s not finite, the first in '%.200s'",
                 format_things(c->not_finite, "value", text), inspect_text(inspect_bytes(first), name));
    c->values = status == CHEX_OK;
    return status;
}

/* Would chex-train resume from its state?  Weights without one, and later formats, are no fault. */
static enum chex_status
check_state(struct checkpoint *c, struct chex_error *err)
{
    struct checkpoint_state state;
    enum chex_status status = checkpoint_parse_state(&c->file, &state, err);

    if (chex_status_is_data(status) && !c->fault[0])
        memcpy(c->fault, err->text, sizeof(c->fault));
    return status == CHEX_ERR_MEMORY ? status : CHEX_OK;
}

/* Sets c->fault and returns CHEX_OK if the data have a fault. */
static enum chex_status
read_checkpoint(struct checkpoint *c, bool values, struct chex_error *err)
{
    char a[FORMAT_THINGS], b[FORMAT_THINGS], text[FORMAT_TEXT];
    enum chex_status status = safetensors_open(AT_FDCWD, c->target->file, &c->file, err);
    size_t i;

    snprintf(c->what, sizeof(c->what), "a checkpoint (safetensors)");
    if (status == CHEX_OK) {
        for (i = 0; i < c->file.count; i++)
            c->numbers += c->file.entry[i].count;
        snprintf(c->what, sizeof(c->what), "a checkpoint (safetensors): %s, %s, %s",
                 format_things(c->file.count, "tensor", a), format_things(c->numbers, "number", b),
                 format_bytes(c->file.size, text));
        status = checkpoint_state_of(&c->file, &c->state, err);
        if (status == CHEX_OK && values)
            status = read_values(c, err);
        if (status == CHEX_OK)
            status = check_state(c, err);
    }
    if (chex_status_is_data(status)) {
        memcpy(c->fault, err->text, sizeof(c->fault));
        status = CHEX_OK;
        c->file.count = 0;
        c->broken = true;
    }
    if (c->target->passed_over[0])
        progress_line_warn(&c->in->line, "%s: warning: %s", c->in->program->name, c->target->passed_over);
    return status;
}

/* Append a fault to the list. */
static void
add_fault(struct checkpoint *c, const char *text, uint64_t others)
{
    size_t used = strlen(c->fault);

    if (!text[0])
        return;
    used += (size_t)snprintf(c->fault + used, sizeof(c->fault) - used, "%s%s", used > 0 ? "; " : "", text);
    if (others > 0 && used < sizeof(c->fault))
        snprintf(c->fault + used, sizeof(c->fault) - used, ", and %s more", COUNT_TEXT(others));
}

/* Read the other files of the run's folder. */
static enum chex_status
read_folder(struct checkpoint *c, struct chex_error *err)
{
    struct folder folder;
    enum chex_status status = run_times_read(c->target->path, &c->times, err);

    if (status == CHEX_OK)
        status = folder_open(c->target->path, false, &folder, err);
    if (status != CHEX_OK)
        return status;
    status = run_check(&folder, &c->files, err);
    folder_close(&folder);
    if (status == CHEX_OK) {
        add_fault(c, c->files.file, 0);
        add_fault(c, c->files.metrics, c->files.lines > 0 ? c->files.lines - 1 : 0);
    }
    return status;
}

static void
release(struct checkpoint *c)
{
    json_decref(c->state);
    rank_times_release(&c->times.times);
    safetensors_close(&c->file);
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

static const char *
text_in(const json_t *state, const char *key, char out[INSPECT_TEXT])
{
    const char *text = json_string_value(json_object_get(state, key));

    return text ? inspect_text(inspect_bytes(text), out) : "unknown";
}

static void
print_state(const struct checkpoint *c)
{
    const char *const names[] = {"tool", "version", "labels", "note"};
    const struct color *color = &c->in->color;
    const json_t *state = c->state;
    char a[INSPECT_TEXT], b[INSPECT_TEXT], text[INSPECT_TEXT], step[FORMAT_TEXT];
    size_t i;

    if (state) {
        printf("%srun%s      %s, step %s, epoch %s", color->bold, color->off, text_in(state, "model", a),
               inspect_count(text_in(state, "step", b), step),
               COUNT_TEXT(json_integer_value(json_object_get(state, "epoch"))));
        printf(", data set %s, seed %s\n", text_in(state, "dataset_id", a), text_in(state, "seed", text));
    }
    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (safetensors_metadata(&c->file, names[i]))
            printf("%-8s %s\n", names[i], inspect_text(inspect_bytes(safetensors_metadata(&c->file, names[i])), a));
}

static const struct table_column tensor_columns[] = {{.name = "name", .heading = "name", .width = TABLE_FIT},
                                                     {.name = "dtype", .heading = "type", .width = -4, .gap = "  "},
                                                     {.name = "shape", .heading = "shape", .gap = "  "},
                                                     {.name = "count"},
                                                     {.name = NULL}};

static void
put_tensors(struct table_writer *t, void *result)
{
    const struct checkpoint *c = result;
    char name[INSPECT_TEXT], shape[CHECKPOINT_SHAPE];
    size_t i;
    unsigned k;

    for (i = 0; i < c->file.count; i++) {
        const struct tensor_entry *e = &c->file.entry[i];
        json_t *list = t->list ? json_array() : NULL;

        for (k = 0; list && k < e->rank; k++)
            inspect_json_push(&list, count_json(e->shape[k]));
        checkpoint_shape(e, shape);
        table_row(t, (struct cell[]){inspect_name(t, e->name, name, sizeof(name)), cell_text(dtype_name(e->type)),
                                     t->list ? cell_json(list, "") : cell_text(e->rank == 0 ? "" : shape),
                                     cell_count(e->count)});
    }
}

static void
print_tensors(void *result)
{
    struct checkpoint *c = result;
    struct table_writer t = {.column = tensor_columns, .color = &c->in->color, .title = "tensors", .fit = 6};
    char name[INSPECT_TEXT];
    size_t i;

    for (i = 0; i < c->file.count; i++)
        table_fit(&t, inspect_text(inspect_bytes(c->file.entry[i].name), name));
    table_begin(&t);
    put_tensors(&t, c);
}

static void
print_checkpoint(struct checkpoint *c)
{
    char file[PRINTABLE_TEXT];

    if (c->in->common->quiet)
        return;
    if (strcmp(c->target->file, c->target->path) != 0)
        printf("file     %s\n", printable_text(c->target->file, file));
    print_state(c);
    if (c->in->common->verbose > 0 && c->file.count > 0)
        print_tensors(c);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static json_t *
checkpoint_json(const struct checkpoint *c)
{
    const struct safetensors *s = &c->file;
    json_t *metadata = json_object();
    size_t i;

    for (i = 0; i < s->metadata_count; i++)
        inspect_json_set(&metadata, s->metadata[i].key, text_json(s->metadata[i].value));
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "file", text_json(c->target->file), "tensors",
                     count_json(s->count), "numbers", count_json(c->numbers), "bytes", count_json(s->size), "metadata",
                     metadata, "not_finite", c->values ? count_json(c->not_finite) : json_null(), "times",
                     run_times_json(&c->times));
}

/* ---- all together ------------------------------------------------------------------------------------------------ */

int
inspect_checkpoint(struct inspect *in, const struct target *t)
{
    struct checkpoint c = {.in = in, .target = t, .file = {.fd = -1}};
    struct chex_error err;
    /* A plain description reads the values too, because that is fast. */
    bool values = in->options->action != INSPECT_VERIFY || in->options->depth != VERIFY_QUICK;
    enum chex_status status = read_checkpoint(&c, values, &err);
    const char *fault;
    int code;

    if (status == CHEX_OK && strcmp(t->file, t->path) != 0)
        status = read_folder(&c, &err);
    fault = c.fault[0] ? c.fault : NULL;
    code = fault ? EXIT_DATA : EXIT_GOOD;
    if (status != CHEX_OK) {
        code = inspect_fail(in, t->path, &err);
    } else if (in->common->json) {
        inspect_json_file(in, t, "checkpoint", c.what, fault, c.broken ? json_null() : checkpoint_json(&c));
    } else {
        inspect_print_head(in, t, c.what, fault);
        if (!c.broken)
            print_checkpoint(&c);
        if (!in->common->quiet && c.files.cut)
            printf("         note: " RUN_LOG_METRICS
                   " ends within a line, as a kill leaves it; the next start drops it\n");
        if (!in->common->quiet && run_times_print(&c.times, &in->color, in->common->verbose > 0, &err) != CHEX_OK)
            code = inspect_fail(in, t->path, &err);
    }
    release(&c);
    return code;
}

/* ---- list -------------------------------------------------------------------------------------------------------- */

static json_t *
tensors_json(void *result)
{
    const struct target *t = ((const struct checkpoint *)result)->target;

    return json_pack("{s:o, s:o, s:o}", "path", text_json(t->path), "file", text_json(t->file), "tensors",
                     inspect_rows_json(tensor_columns, put_tensors, result));
}

int
inspect_tensors(struct inspect *in, const struct target *t)
{
    static const struct inspect_result tensors = {tensor_columns, put_tensors, tensors_json, print_tensors};
    struct checkpoint c = {.in = in, .target = t, .file = {.fd = -1}};
    struct chex_error err;
    enum chex_status status = read_checkpoint(&c, true, &err);
    int code = c.fault[0] ? EXIT_DATA : EXIT_GOOD;

    if (status == CHEX_OK && c.broken)
        status = error_set(&err, CHEX_ERR_DAMAGED, "'%s': %s", t->file, c.fault);
    if (status == CHEX_OK)
        inspect_print_result(in, &tensors, &c);
    else
        code = inspect_fail(in, t->path, &err);
    release(&c);
    return code;
}
