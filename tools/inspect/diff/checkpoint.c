/*
 * checkpoint.c - --diff: compares two checkpoints; see inspect/checkpoint.h
 *
 * The action matches tensors by name, never by position in the file.  It maps the names in files from before 0.1.0 to
 * the current names.  It compares metadata field by field; each field of chex-train's run state and each option of the
 * run is a field.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/checkpoint.h"

#include "checkpoint/settings.h"
#include "inspect/diff/diff.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- metadata ---------------------------------------------------------------------------------------------------- */

static enum chex_status
add_meta(struct checkpoint_side *s, const char *prefix, const char *name, const char *value, size_t length,
         struct chex_error *err)
{
    struct meta_line *grown = array_grow(s->meta, &s->meta_capacity, s->meta_count, sizeof(*grown));
    char text[256];

    if (!grown)
        return error_memory(err);
    s->meta = grown;
    if (prefix[0]) {
        snprintf(text, sizeof(text), "%s.%s", prefix, name);
        name = text;
    }
    grown[s->meta_count].name = arena_copy(&s->strings, name, strlen(name));
    grown[s->meta_count].value = arena_copy(&s->strings, value, length);
    if (!grown[s->meta_count].name || !grown[s->meta_count].value)
        return error_memory(err);
    s->meta_count++;
    return CHEX_OK;
}

/* Parse lines "NAME VALUE", as written by settings_keep(). */
static enum chex_status
add_options(struct checkpoint_side *s, const char *text, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;

    while (status == CHEX_OK && *text) {
        size_t length = strcspn(text, "\n"), name = strcspn(text, " \n");
        char key[128];

        snprintf(key, sizeof(key), "%.*s", name < 120 ? (int)name : 120, text);
        if (length > 0)
            status = add_meta(s, "options", key, text + name + (name < length), length - name - (name < length), err);
        text += length + (text[length] == '\n');
    }
    return status;
}

/* Format a value of the run state.  The state stores real numbers in hexadecimal, which is hard to read. */
static enum chex_status
add_field(struct checkpoint_side *s, const char *name, const json_t *value, struct chex_error *err)
{
    const char *text = json_string_value(value);
    char number[SETTINGS_NUMBER], *end;

    if (!text) {
        char *dump = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
        enum chex_status status = dump ? add_meta(s, "state", name, dump, strlen(dump), err) : error_memory(err);

        free(dump);
        return status;
    }
    if (strncmp(text, "0x", 2) == 0 || strncmp(text, "-0x", 3) == 0) {
        double real = strtod(text, &end);

        text = *end == '\0' ? settings_format(real, number) : text;
    }
    return add_meta(s, "state", name, text, strlen(text), err);
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(((const struct meta_line *)a)->name, ((const struct meta_line *)b)->name);
}

static enum chex_status
read_meta(struct checkpoint_side *s, struct chex_error *err)
{
    json_t *state, *value;
    enum chex_status status = checkpoint_state_of(&s->file, &state, err);
    const char *key;
    size_t i;

    if (state && !json_is_object(state)) { /* not a run state: treat it as plain text */
        json_decref(state);
        state = NULL;
    }
    for (i = 0; status == CHEX_OK && i < s->file.metadata_count; i++) {
        const struct metadata *m = &s->file.metadata[i];

        if (!state || strcmp(m->key, "state") != 0)
            status = add_meta(s, "", m->key, m->value, strlen(m->value), err);
    }
    json_object_foreach (state, key, value) {
        if (status != CHEX_OK)
            break;
        if (strcmp(key, "settings") == 0 && json_is_string(value))
            status = add_options(s, json_string_value(value), err);
        else
            status = add_field(s, key, value, err);
    }
    json_decref(state);
    if (s->meta_count > 1)
        qsort(s->meta, s->meta_count, sizeof(*s->meta), by_name);
    return status;
}

/* Without integers: a step counter would outweigh all weights. */
static void
add_to_all(struct checkpoint_diff *d, const struct tensor_pair *p)
{
    struct value_difference more = p->values;

    if (dtype_is_integer(p->a->type) || dtype_is_integer(p->b->type))
        more.max_abs = more.squares = more.squares_a = 0;
    value_difference_add(&d->all, &more);
}

static enum chex_status
compare_tensors(struct checkpoint_diff *d, struct chex_error *err)
{
    const struct tensor_entry *e[2];
    size_t at[2] = {0, 0};
    enum chex_status status = CHEX_OK;

    d->pair = calloc(d->side[0].file.count + 1, sizeof(*d->pair));
    if (!d->pair)
        return error_memory(err);
    while (status == CHEX_OK && checkpoint_diff_next(d, at, e)) {
        struct tensor_pair *p = &d->pair[d->pair_count];

        d->both += e[0] && e[1];
        if (!e[0] || !e[1] || !tensor_same_shape(e[0], e[1]))
            continue;
        *p = (struct tensor_pair){.a = e[0], .b = e[1]};
        status = value_difference_read(&d->side[0].file, e[0], &d->side[1].file, e[1], &p->values, err);
        if (status != CHEX_OK)
            return error_context(err, status, "'%s' and '%s'", d->side[0].target->file, d->side[1].target->file);
        add_to_all(d, p);
        d->pair_count += p->values.differ > 0;
    }
    return status;
}

static void
on_count(void *context, enum tensor_diff_kind kind, const char *name, const char *a, const char *b,
         const struct tensor_pair *pair)
{
    struct checkpoint_diff *d = context;

    (void)name;
    (void)a;
    (void)b;
    (void)pair;
    d->count[kind]++;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static enum chex_status
open_side(struct checkpoint_diff *d, struct checkpoint_side *s, struct chex_error *err)
{
    enum chex_status status = safetensors_open(AT_FDCWD, s->target->file, &s->file, err);

    if (s->target->passed_over[0])
        progress_line_warn(&d->in->line, "%s: warning: %s", d->in->program->name, s->target->passed_over);
    if (status == CHEX_OK)
        status = read_meta(s, err);
    return status == CHEX_OK ? status : error_context(err, status, "'%s'", s->target->file);
}

int
inspect_checkpoint_diff(struct inspect *in, const struct target *a, const struct target *b)
{
    struct checkpoint_diff d = {.in = in,
                                .side = {{.target = a, .file = {.fd = -1}}, {.target = b, .file = {.fd = -1}}}};
    struct chex_error err;
    enum chex_status status = CHEX_OK;
    int code, failed = 0, i;

    for (i = 0; i < 2 && status == CHEX_OK; i++) {
        status = open_side(&d, &d.side[i], &err);
        failed = i;
    }
    if (status == CHEX_OK)
        status = compare_tensors(&d, &err);
    if (status == CHEX_OK) {
        checkpoint_diff_walk(&d, on_count, &d);
        inspect_print_result(in, &checkpoint_diff_result, &d);
        code = checkpoint_diff_is_same(&d) ? EXIT_GOOD : EXIT_DATA;
        if (code != EXIT_GOOD)
            inspect_report_difference(in, a->path, b->path);
    } else {
        code = inspect_fail(in, d.side[failed].target->path, &err);
    }
    for (i = 0; i < 2; i++) {
        safetensors_close(&d.side[i].file);
        free(d.side[i].meta);
        arena_release(&d.side[i].strings);
    }
    free(d.pair);
    return code;
}
