/*
 * inspect_checkpoint_diff.c - --diff: how do two checkpoints differ? see inspect_checkpoint.h
 *
 * Tensors are matched by name, never by place in the file, and what files from before 0.1.0 call otherwise by its name of
 * today.  Metadata are compared field by field: of chex-train's state of the
 * run each field is a line of its own, and so is each of the options that the run was started with.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/inspect_checkpoint.h"

#include "compare/inspect_diff.h"
#include "checkpoint/settings.h"
#include "checkpoint/weights.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- metadata -------------------------------------------------------------------------------------------------- */

static enum chex_status
add_meta(struct checkpoint_side *s, const char *prefix, const char *name, const char *value, size_t length,
         struct chex_error *err)
{
    struct meta_line *grown = array_grow(s->meta, &s->meta_capacity, s->meta_count, sizeof(*grown));
    char text[256];

    if (!grown)
        return chex_fail_memory(err);
    s->meta = grown;
    if (prefix[0]) {
        snprintf(text, sizeof(text), "%s.%s", prefix, name);
        name = text;
    }
    grown[s->meta_count].name = arena_copy(&s->strings, name, strlen(name));
    grown[s->meta_count].value = arena_copy(&s->strings, value, length);
    if (!grown[s->meta_count].name || !grown[s->meta_count].value)
        return chex_fail_memory(err);
    s->meta_count++;
    return CHEX_OK;
}

/* Lines "NAME VALUE", as settings_keep() writes them. */
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

/* A value of the state; a real number is kept there as hexadecimal, and nobody reads that. */
static enum chex_status
add_field(struct checkpoint_side *s, const char *name, const json_t *value, struct chex_error *err)
{
    const char *text = json_string_value(value);
    char number[SETTINGS_NUMBER], *end;

    if (!text) {
        char *dump = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
        enum chex_status status = dump ? add_meta(s, "state", name, dump, strlen(dump), err) : chex_fail_memory(err);

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

    if (state && !json_is_object(state)) { /* no state of a run: a text like others */
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

static void
walk_meta(struct checkpoint_diff *d, tensor_diff_fn *fn, void *context)
{
    const struct checkpoint_side *a = &d->side[0], *b = &d->side[1];
    char name[INSPECT_TEXT], here[INSPECT_TEXT], there[INSPECT_TEXT];
    size_t i = 0, j = 0;

    while (i < a->meta_count || j < b->meta_count) {
        int order = i == a->meta_count ? 1 : j == b->meta_count ? -1 : by_name(&a->meta[i], &b->meta[j]);
        const char *x = order <= 0 ? a->meta[i].value : "", *y = order >= 0 ? b->meta[j].value : "";

        if (order != 0 || strcmp(x, y) != 0)
            fn(context, TENSOR_META, inspect_text(inspect_bytes(order <= 0 ? a->meta[i].name : b->meta[j].name), name),
               inspect_text(inspect_bytes(x), here), inspect_text(inspect_bytes(y), there), NULL);
        i += order <= 0;
        j += order >= 0;
    }
}

/* ---- tensors --------------------------------------------------------------------------------------------------- */

const char *
tensor_diff_name(enum tensor_diff_kind kind)
{
    static const char *const names[TENSOR_DIFF_KINDS] = {"meta", "only_a", "only_b", "shape", "dtype", "values"};

    return names[kind];
}

static bool
same_shape(const struct tensor_entry *a, const struct tensor_entry *b)
{
    return a->rank == b->rank && (a->rank == 0 || memcmp(a->shape, b->shape, a->rank * sizeof(a->shape[0])) == 0);
}

/* The next name of both lists: either may be NULL. */
static bool
next_tensor(const struct checkpoint_diff *d, size_t at[2], const struct tensor_entry *found[2])
{
    const struct safetensors *a = &d->side[0].file, *b = &d->side[1].file;
    int order;

    if (at[0] == a->count && at[1] == b->count)
        return false;
    order = at[0] == a->count ? 1 : at[1] == b->count ? -1 : strcmp(a->entry[at[0]].name, b->entry[at[1]].name);
    found[0] = order <= 0 ? &a->entry[at[0]++] : NULL;
    found[1] = order >= 0 ? &b->entry[at[1]++] : NULL;
    return true;
}

/* What numbers look like in a text: as many digits as the type has. */
static char *
number_text(enum dtype type, double value, char out[40])
{
    if (isnan(value))
        snprintf(out, 40, "nan");
    else
        snprintf(out, 40, type == DTYPE_F64 || dtype_is_integer(type) ? "%.17g" : "%.9g", value);
    return out;
}

static void
tell_pair(const struct tensor_pair *p, const char *name, tensor_diff_fn *fn, void *context)
{
    char x[40], y[40];

    fn(context, TENSOR_VALUES, name, number_text(p->a->type, p->values.at[0], x),
       number_text(p->b->type, p->values.at[1], y), p);
}

void
checkpoint_diff_walk(struct checkpoint_diff *d, tensor_diff_fn *fn, void *context)
{
    const struct tensor_entry *e[2];
    char name[INSPECT_TEXT], x[CHECKPOINT_SHAPE], y[CHECKPOINT_SHAPE];
    size_t at[2] = {0, 0}, next = 0;

    walk_meta(d, fn, context);
    while (next_tensor(d, at, e)) {
        inspect_text(inspect_bytes((e[0] ? e[0] : e[1])->name), name);
        if (!e[1])
            fn(context, TENSOR_ONLY_A, name, checkpoint_shape(e[0], x), "", NULL);
        else if (!e[0])
            fn(context, TENSOR_ONLY_B, name, "", checkpoint_shape(e[1], y), NULL);
        else if (!same_shape(e[0], e[1]))
            fn(context, TENSOR_SHAPE, name, checkpoint_shape(e[0], x), checkpoint_shape(e[1], y), NULL);
        if (!e[0] || !e[1])
            continue;
        if (e[0]->type != e[1]->type)
            fn(context, TENSOR_TYPE, name, dtype_name(e[0]->type), dtype_name(e[1]->type), NULL);
        if (next < d->pair_count && d->pair[next].a == e[0])
            tell_pair(&d->pair[next++], name, fn, context);
    }
}

/* A counter of steps would outweigh all weights. */
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
        return chex_fail_memory(err);
    while (status == CHEX_OK && next_tensor(d, at, e)) {
        struct tensor_pair *p = &d->pair[d->pair_count];

        d->both += e[0] && e[1];
        if (!e[0] || !e[1] || !same_shape(e[0], e[1]))
            continue;
        *p = (struct tensor_pair){.a = e[0], .b = e[1]};
        status = value_difference_read(&d->side[0].file, e[0], &d->side[1].file, e[1], &p->values, err);
        if (status != CHEX_OK)
            return chex_context(err, status, "'%s' and '%s'", d->side[0].target->file, d->side[1].target->file);
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

bool
checkpoint_diff_same_model(const struct checkpoint_diff *d)
{
    return d->count[TENSOR_ONLY_A] == 0 && d->count[TENSOR_ONLY_B] == 0 && d->count[TENSOR_SHAPE] == 0;
}

bool
checkpoint_diff_is_same(const struct checkpoint_diff *d)
{
    return checkpoint_diff_same_model(d) && d->count[TENSOR_META] == 0 && d->count[TENSOR_TYPE] == 0 &&
           d->count[TENSOR_VALUES] == 0;
}

/*
 * Old names become those of today.  They stay in their order: only where a file has no tensor of the new name, and no
 * other one is between the two.
 */
static enum chex_status
rename_tensors(struct checkpoint_side *s, struct chex_error *err)
{
    char name[WEIGHTS_NAME];
    size_t i;

    for (i = 0; i < s->file.count; i++) {
        struct tensor_entry *e = &s->file.entry[i];

        if (!weights_new_name(e->name, name) || safetensors_find(&s->file, name))
            continue;
        e->name = arena_copy(&s->strings, name, strlen(name));
        if (!e->name)
            return chex_fail_memory(err);
    }
    return CHEX_OK;
}

/* ---- the whole ------------------------------------------------------------------------------------------------- */

static enum chex_status
open_side(struct checkpoint_diff *d, struct checkpoint_side *s, struct chex_error *err)
{
    enum chex_status status = safetensors_open(AT_FDCWD, s->target->file, &s->file, err);

    if (s->target->passed_over[0])
        meter_warn(&d->in->meter, "%s: warning: %s", d->in->program->name, s->target->passed_over);
    if (status == CHEX_OK)
        status = rename_tensors(s, err);
    if (status == CHEX_OK)
        status = read_meta(s, err);
    return status == CHEX_OK ? status : chex_context(err, status, "'%s'", s->target->file);
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
        checkpoint_diff_report(&d);
        code = checkpoint_diff_is_same(&d) ? EXIT_GOOD : EXIT_DATA;
        if (code != EXIT_GOOD)
            inspect_say_different(in, a->path, b->path);
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
