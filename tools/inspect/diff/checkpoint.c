/*
 * checkpoint.c - compares two checkpoints; see inspect/inspect.h
 *
 * Tensors are matched by name, never by position in the file.  The names in files from before 0.1.0 become the current
 * names.  The metadata are compared field by field; each field of chex-train's run state and each option of the run is
 * a field.  Values of the same type differ if their bytes differ, values of different types if the numbers differ.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/checkpoint.h"

#include "base/number_format.h"
#include "checkpoint/settings.h"
#include "inspect/diff/diff.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN 10 /* tensors of each kind, without -v */

struct side {
    const struct target *target;
    struct safetensors file;
    json_t *fields; /* of the metadata: an object of texts */
};

enum tensor_change_kind { META, ONLY_A, ONLY_B, SHAPE, DTYPE, VALUES, KINDS };
static const char *const kind_name[KINDS] = {"meta", "only_a", "only_b", "shape", "dtype", "values"};

struct tensor_change {
    enum tensor_change_kind kind;
    const char *name, *a, *b; /* escaped */
    double largest;           /* of VALUES: max |B - A|; NaN if a value is not finite */
};

struct checkpoint_diff {
    struct inspect *in;
    struct side side[2];
    struct tensor_change *item;
    size_t count, capacity;
    struct arena strings;
};

/* ---- metadata ---------------------------------------------------------------------------------------------------- */

static bool
set_field(json_t *fields, const char *prefix, const char *name, size_t name_size, const char *value, size_t size)
{
    char key[256];

    snprintf(key, sizeof(key), "%s%.*s", prefix, name_size < 200 ? (int)name_size : 200, name);
    return json_object_set_new_nocheck(fields, key, json_stringn_nocheck(value, size)) == 0;
}

/* Set a field for each line "NAME VALUE", as written by settings_keep(). */
static bool
set_options(json_t *fields, const char *text)
{
    bool good = true;

    while (good && *text) {
        size_t length = strcspn(text, "\n"), name = strcspn(text, " \n"), value = name + (name < length);

        good = length == 0 || set_field(fields, "options.", text, name, text + value, length - value);
        text += length + (text[length] == '\n');
    }
    return good;
}

/* Set the field of a member of the run state.  The state stores real numbers in hexadecimal, which is hard to read. */
static bool
set_member(json_t *fields, const char *name, const json_t *value)
{
    const char *text = json_string_value(value);
    char *dump = NULL, number[SETTINGS_NUMBER], *end;
    bool good;

    if (text && strcmp(name, "settings") == 0)
        return set_options(fields, text);
    if (!text)
        text = dump = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
    if (text && (strncmp(text, "0x", 2) == 0 || strncmp(text, "-0x", 3) == 0)) {
        double real = strtod(text, &end);

        text = *end == '\0' ? settings_format(real, number) : text;
    }
    good = text && set_field(fields, "state.", name, strlen(name), text, strlen(text));
    free(dump);
    return good;
}

static enum chex_status
read_fields(struct side *s, struct chex_error *err)
{
    json_t *state, *value;
    enum chex_status status = checkpoint_state_of(&s->file, &state, err);
    bool good = (s->fields = json_object()) != NULL, is_state = json_is_object(state);
    const char *key;
    size_t i;

    for (i = 0; good && i < s->file.metadata_count; i++) {
        const struct metadata *m = &s->file.metadata[i];

        if (!is_state || strcmp(m->key, "state") != 0)
            good = set_field(s->fields, "", m->key, strlen(m->key), m->value, strlen(m->value));
    }
    json_object_foreach (state, key, value)
        good = good && set_member(s->fields, key, value);
    json_decref(state);
    return status == CHEX_OK && !good ? error_memory(err) : status;
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

static enum chex_status
add(struct checkpoint_diff *d, enum tensor_change_kind kind, const char *name, const char *a, const char *b,
    double largest, struct chex_error *err)
{
    struct tensor_change *grown = array_grow(d->item, &d->capacity, d->count, sizeof(*grown));
    const char *const text[3] = {name, a, b}, *copy[3];
    char escaped[INSPECT_TEXT];
    unsigned i;

    if (!grown)
        return error_memory(err);
    d->item = grown;
    for (i = 0; i < 3; i++) {
        inspect_text(inspect_bytes(text[i]), escaped);
        copy[i] = arena_copy(&d->strings, escaped, strlen(escaped));
        if (!copy[i])
            return error_memory(err);
    }
    grown[d->count++] = (struct tensor_change){kind, copy[0], copy[1], copy[2], largest};
    return CHEX_OK;
}

static enum chex_status
compare_fields(struct checkpoint_diff *d, struct chex_error *err)
{
    json_t *a = d->side[0].fields, *b = d->side[1].fields, *value;
    enum chex_status status = CHEX_OK;
    const char *name;

    json_object_foreach (a, name, value) {
        const json_t *other = json_object_get(b, name);

        if (status == CHEX_OK && !json_equal(value, other))
            status = add(d, META, name, json_string_value(value), other ? json_string_value(other) : "", 0, err);
    }
    json_object_foreach (b, name, value)
        if (status == CHEX_OK && !json_object_get(a, name))
            status = add(d, META, name, "", json_string_value(value), 0, err);
    return status;
}

/* Compare `count` values and widen *largest; NaN stays.  Returns whether a value differs. */
static bool
compare_piece(enum dtype type_a, const uint8_t *a, enum dtype type_b, const uint8_t *b, size_t count, double *largest)
{
    size_t x = dtype_size(type_a), y = dtype_size(type_b), i;
    bool differ = false;

    for (i = 0; i < count; i++) {
        double here, there;

        if (type_a == type_b && memcmp(a + i * x, b + i * x, x) == 0)
            continue;
        here = dtype_value(type_a, a + i * x);
        there = dtype_value(type_b, b + i * y);
        if (type_a != type_b && here == there)
            continue;
        differ = true;
        if (!isfinite(here) || !isfinite(there) || isnan(*largest))
            *largest = (double)NAN;
        else
            *largest = fmax(*largest, fabs(there - here));
    }
    return differ;
}

/* Compare the values of two tensors with equal shapes. */
static enum chex_status
compare_values(struct checkpoint_diff *d, const struct tensor_entry *a, const struct tensor_entry *b,
               struct chex_error *err)
{
    uint8_t here[CHECKPOINT_BYTES], there[CHECKPOINT_BYTES];
    enum chex_status status = CHEX_OK;
    double largest = 0;
    bool differ = false;
    uint64_t at;
    size_t count;

    for (at = 0; status == CHEX_OK && at < a->count; at += count) {
        count = a->count - at < CHECKPOINT_PIECE ? (size_t)(a->count - at) : CHECKPOINT_PIECE;
        status = safetensors_read_part(&d->side[0].file, a, at, count, here, err);
        if (status == CHEX_OK)
            status = safetensors_read_part(&d->side[1].file, b, at, count, there, err);
        if (status == CHEX_OK)
            differ |= compare_piece(a->type, here, b->type, there, count, &largest);
    }
    if (status != CHEX_OK)
        return error_context(err, status, "'%s' and '%s'", d->side[0].target->file, d->side[1].target->file);
    return differ ? add(d, VALUES, a->name, "", "", largest, err) : CHEX_OK;
}

static enum chex_status
compare_pair(struct checkpoint_diff *d, const struct tensor_entry *a, const struct tensor_entry *b,
             struct chex_error *err)
{
    char x[CHECKPOINT_SHAPE] = "", y[CHECKPOINT_SHAPE] = "";
    enum chex_status status = CHEX_OK;
    bool same_shape;

    if (a)
        checkpoint_shape(a, x);
    if (b)
        checkpoint_shape(b, y);
    if (!a || !b)
        return add(d, a ? ONLY_A : ONLY_B, (a ? a : b)->name, x, y, 0, err);
    same_shape = strcmp(x, y) == 0;
    if (!same_shape)
        status = add(d, SHAPE, a->name, x, y, 0, err);
    if (status == CHEX_OK && a->type != b->type)
        status = add(d, DTYPE, a->name, dtype_name(a->type), dtype_name(b->type), 0, err);
    return status == CHEX_OK && same_shape ? compare_values(d, a, b, err) : status;
}

static enum chex_status
compare_tensors(struct checkpoint_diff *d, struct chex_error *err)
{
    const struct safetensors *a = &d->side[0].file, *b = &d->side[1].file;
    enum chex_status status = CHEX_OK;
    size_t i = 0, j = 0;

    while (status == CHEX_OK && (i < a->count || j < b->count)) {
        int order = i == a->count ? 1 : j == b->count ? -1 : strcmp(a->entry[i].name, b->entry[j].name);

        status = compare_pair(d, order <= 0 ? &a->entry[i] : NULL, order >= 0 ? &b->entry[j] : NULL, err);
        i += order <= 0;
        j += order >= 0;
    }
    return status;
}

/* Order by kind; then the largest difference first, after values that are not finite; then by name. */
static int
by_difference(const void *a, const void *b)
{
    const struct tensor_change *x = a, *y = b;

    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (isnan(x->largest) != isnan(y->largest))
        return isnan(x->largest) ? -1 : 1;
    if (x->largest > y->largest || x->largest < y->largest)
        return x->largest > y->largest ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* ---- output ------------------------------------------------------------------------------------------------------ */

static void
print_text(void *result)
{
    const struct checkpoint_diff *d = result;
    char tensors[FORMAT_THINGS], bytes[FORMAT_TEXT], file[PRINTABLE_TEXT];
    size_t i, same_kind = 0;

    if (d->in->common->quiet)
        return;
    for (i = 0; i < 2; i++)
        printf("%s        %s, %s  %s\n", i ? "B" : "A", format_things(d->side[i].file.count, "tensor", tensors),
               format_bytes(d->side[i].file.size, bytes), printable_text(d->side[i].target->file, file));
    for (i = 0; i < d->count; i++) {
        const struct tensor_change *item = &d->item[i];

        same_kind = i > 0 && item->kind == item[-1].kind ? same_kind + 1 : 0;
        if (same_kind >= SHOWN && item->kind != META && d->in->common->verbose == 0) {
            if (i + 1 == d->count || item[1].kind != item->kind)
                printf("         and %s more: -v, or --format csv\n", COUNT_TEXT(same_kind - SHOWN + 1));
            continue;
        }
        printf("%-8s %-26s ", kind_name[item->kind], item->name);
        if (item->kind == VALUES)
            printf(isnan(item->largest) ? "not finite\n" : "differ by %.4g at most\n", item->largest);
        else
            printf("%.60s%s%.60s\n", item->a[0] ? item->a : "-", " -> ", item->b[0] ? item->b : "-");
    }
    if (d->count == 0)
        printf("%sequal%s\n", d->in->color.green, d->in->color.off);
}

static const struct table_column columns[] = {{.name = "kind"}, {.name = "name"},    {.name = "a"},
                                              {.name = "b"},    {.name = "max_abs"}, {.name = NULL}};

static void
put_rows(struct table_writer *t, void *result)
{
    const struct checkpoint_diff *d = result;
    size_t i;

    for (i = 0; i < d->count; i++) {
        const struct tensor_change *x = &d->item[i];

        table_row(t, (struct cell[]){cell_text(kind_name[x->kind]), cell_text(x->name), cell_text(x->a),
                                     cell_text(x->b), x->kind == VALUES ? cell_number(x->largest) : cell_none()});
    }
}

static json_t *
diff_json(void *result)
{
    struct checkpoint_diff *d = result;

    return json_pack("{s:s, s:[o, o], s:[o, o], s:b, s:o}", "kind", "checkpoints", "paths",
                     text_json(d->side[0].target->path), text_json(d->side[1].target->path), "files",
                     text_json(d->side[0].target->file), text_json(d->side[1].target->file), "same", d->count == 0,
                     "changes", inspect_rows_json(columns, put_rows, d));
}

/* ---- all together ------------------------------------------------------------------------------------------------ */

static enum chex_status
open_side(struct checkpoint_diff *d, struct side *s, struct chex_error *err)
{
    enum chex_status status = safetensors_open(AT_FDCWD, s->target->file, &s->file, err);

    if (s->target->passed_over[0])
        progress_line_warn(&d->in->line, "%s: warning: %s", d->in->program->name, s->target->passed_over);
    if (status == CHEX_OK)
        status = read_fields(s, err);
    return status == CHEX_OK ? status : error_context(err, status, "'%s'", s->target->file);
}

int
inspect_checkpoint_diff(struct inspect *in, const struct target *a, const struct target *b)
{
    static const struct inspect_result how = {columns, put_rows, diff_json, print_text};
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
        status = compare_fields(&d, &err);
    if (status == CHEX_OK)
        status = compare_tensors(&d, &err);
    if (status == CHEX_OK) {
        if (d.count > 1)
            qsort(d.item, d.count, sizeof(*d.item), by_difference);
        inspect_print_result(in, &how, &d);
        code = d.count == 0 ? EXIT_GOOD : EXIT_DATA;
        if (code != EXIT_GOOD)
            inspect_report_difference(in, a->path, b->path);
    } else {
        code = inspect_fail(in, d.side[failed].target->path, &err);
    }
    for (i = 0; i < 2; i++) {
        safetensors_close(&d.side[i].file);
        json_decref(d.side[i].fields);
    }
    free(d.item);
    arena_release(&d.strings);
    return code;
}
