/*
 * checkpoint.c - describes a checkpoint: state of the run, metadata, tensors; see inspect.h
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

struct checkpoint {
    struct inspect *in;
    const struct target *target;
    struct safetensors file;
    struct checkpoint_state state; /* model[0] is 0 if it has none */
    bool values;                   /* the values were read */
    uint64_t not_finite;           /* values that are NaN or infinite */
    uint64_t numbers;
    struct run_times times; /* of the run, if its folder was given */
    bool cut;               /* metrics.jsonl ends within a line */
    bool broken;            /* the header or a tensor cannot be read */
    char what[256], fault[sizeof(((struct chex_error *)0)->text)];
};

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

/* Read all values.  A value that is not finite is a fault, because chex-train would not load it. */
static enum chex_status
read_values(struct checkpoint *c, struct chex_error *err)
{
    uint8_t bytes[CHECKPOINT_BYTES];
    const struct tensor_entry *e = c->file.entry, *first = NULL;
    char name[INSPECT_TEXT], text[FORMAT_THINGS], fault[INSPECT_TEXT];
    enum chex_status status = CHEX_OK;
    size_t i, count;
    uint64_t at;

    for (; e < c->file.entry + c->file.count; e++)
        for (at = 0; at < e->count; at += count) {
            count = checkpoint_piece(e, at);
            status = safetensors_read_part(&c->file, e, at, count, bytes, err);
            if (status != CHEX_OK)
                return status;
            for (i = 0; i < count; i++)
                if (!isfinite(dtype_value(e->type, bytes + i * dtype_size(e->type)))) {
                    first = first ? first : e;
                    c->not_finite++;
                }
        }
    if (first) {
        snprintf(fault, sizeof(fault), "%s not finite, the first in '%.200s'",
                 format_things(c->not_finite, "value", text), inspect_text(inspect_bytes(first->name), name));
        add_fault(c, fault, 0);
    }
    c->values = true;
    return CHEX_OK;
}

/* Read the state from which chex-train resumes.  Weights without a state, and later formats, are not a fault. */
static enum chex_status
read_state(struct checkpoint *c, struct chex_error *err)
{
    enum chex_status status = checkpoint_parse_state(&c->file, &c->state, err);

    if (status == CHEX_OK || status == CHEX_ERR_MEMORY)
        return status;
    c->state.model[0] = '\0';
    if (chex_status_is_data(status) && !c->fault[0])
        add_fault(c, err->text, 0);
    return CHEX_OK;
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
        if (values)
            status = read_values(c, err);
        if (status == CHEX_OK)
            status = read_state(c, err);
    }
    if (chex_status_is_data(status)) {
        memcpy(c->fault, err->text, sizeof(c->fault));
        status = CHEX_OK;
        c->broken = true;
    }
    if (c->target->passed_over[0])
        progress_line_warn(&c->in->line, "%s: warning: %s", c->in->program->name, c->target->passed_over);
    return status;
}

/* Read the other files of the run's folder. */
static enum chex_status
read_folder(struct checkpoint *c, struct chex_error *err)
{
    struct folder folder;
    struct run_check files;
    enum chex_status status = run_times_read(c->target->path, &c->times, err);

    if (status == CHEX_OK)
        status = folder_open(c->target->path, false, &folder, err);
    if (status != CHEX_OK)
        return status;
    status = run_check(&folder, &files, err);
    folder_close(&folder);
    if (status != CHEX_OK)
        return status;
    add_fault(c, files.file, 0);
    add_fault(c, files.metrics, files.lines > 0 ? files.lines - 1 : 0);
    c->cut = files.cut;
    return CHEX_OK;
}

static void
release(struct checkpoint *c)
{
    rank_times_release(&c->times.times);
    safetensors_close(&c->file);
}

/* ---- output ------------------------------------------------------------------------------------------------------ */

static void
print_tensors(const struct checkpoint *c)
{
    char name[INSPECT_TEXT], shape[CHECKPOINT_SHAPE];
    const struct tensor_entry *e;
    int widest = 0;

    for (e = c->file.entry; e < c->file.entry + c->file.count; e++) {
        int width = (int)strlen(inspect_text(inspect_bytes(e->name), name));

        widest = width > widest ? width : widest;
    }
    for (e = c->file.entry; e < c->file.entry + c->file.count; e++)
        printf("%-8s %-*s  %-4s  %s\n", e == c->file.entry ? "tensors" : "", widest,
               inspect_text(inspect_bytes(e->name), name), dtype_name(e->type), checkpoint_shape(e, shape));
}

static void
print_checkpoint(struct checkpoint *c)
{
    const struct checkpoint_state *s = &c->state;
    char file[PRINTABLE_TEXT], key[INSPECT_TEXT], value[INSPECT_TEXT];
    const struct metadata *m = c->file.metadata;

    if (strcmp(c->target->file, c->target->path) != 0)
        printf("file     %s\n", printable_text(c->target->file, file));
    if (s->model[0])
        printf("%srun%s      %s, step %s, epoch %s, data set %s, seed %llu\n", c->in->color.bold, c->in->color.off,
               s->model, COUNT_TEXT(s->step), COUNT_TEXT(s->epoch), s->dataset_id, (unsigned long long)s->seed);
    for (; m < c->file.metadata + c->file.metadata_count; m++) {
        const char *shown = strcmp(m->key, WEIGHTS_OPERATING) == 0 ? "thresholds and calibration; --json prints them"
                                                                   : m->value;

        if (strcmp(m->key, "state") != 0)
            printf("%-8s %s\n", inspect_text(inspect_bytes(m->key), key), inspect_text(inspect_bytes(shown), value));
    }
    if (c->in->common->verbose > 0)
        print_tensors(c);
}

static json_t *
tensors_json(const struct safetensors *s)
{
    json_t *list = json_array();
    const struct tensor_entry *e;
    unsigned k;

    for (e = s->entry; e < s->entry + s->count; e++) {
        json_t *shape = json_array();

        for (k = 0; k < e->rank; k++)
            inspect_json_push(&shape, count_json(e->shape[k]));
        inspect_json_push(&list, json_pack("{s:o, s:s, s:o}", "name", text_json(e->name), "dtype", dtype_name(e->type),
                                           "shape", shape));
    }
    return list;
}

static json_t *
checkpoint_json(const struct checkpoint *c)
{
    const struct safetensors *s = &c->file;
    json_t *metadata = json_object();
    size_t i;

    for (i = 0; i < s->metadata_count; i++)
        inspect_json_set(&metadata, s->metadata[i].key, text_json(s->metadata[i].value));
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "file", text_json(c->target->file), "tensors",
                     tensors_json(s), "numbers", count_json(c->numbers), "bytes", count_json(s->size), "metadata",
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
        if (!c.broken && !in->common->quiet)
            print_checkpoint(&c);
        if (!in->common->quiet && c.cut)
            printf("         note: " RUN_LOG_METRICS
                   " ends within a line, as a kill leaves it; the next start drops it\n");
        if (!in->common->quiet && run_times_print(&c.times, &in->color, in->common->verbose > 0, &err) != CHEX_OK)
            code = inspect_fail(in, t->path, &err);
    }
    release(&c);
    return code;
}
