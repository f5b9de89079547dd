/*
 * checkpoint.c - compares two checkpoints; see inspect/inspect.h
 *
 * Tensors are matched by name, never by position in the file.  The metadata are compared by key; each member of
 * chex-train's run state and each option of the run counts as a key.  Values of the same type differ if their bytes
 * differ, values of different types if the numbers differ.  Each difference is written as soon as it is found.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/checkpoint.h"

#include "base/number_format.h"
#include "checkpoint/settings.h"
#include "inspect/diff/diff.h"
#include "train/run_times.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct checkpoint_diff {
    struct inspect *in;
    const struct target *target[2];
    struct safetensors file[2];
    json_t *fields[2]; /* the metadata: an object of texts */
    struct run_times times[2];
    bool differ;
    enum chex_status status; /* of the comparison; err: its error */
    struct chex_error err;
};

/* ---- metadata ---------------------------------------------------------------------------------------------------- */

static bool
set_field(json_t *fields, const char *prefix, const char *name, const char *value, size_t size)
{
    char key[256];

    snprintf(key, sizeof(key), "%s%.200s", prefix, name);
    return json_object_set_new_nocheck(fields, key, json_stringn_nocheck(value, size)) == 0;
}

/* Set a field for each line "NAME VALUE", as written by settings_keep(). */
static bool
set_options(json_t *fields, const char *text)
{
    char name[201];
    bool good = true;

    for (; good && sscanf(text, "%200s", name) == 1; text += strcspn(text, "\n"), text += *text == '\n') {
        const char *value = text + strcspn(text, " \n");

        value += *value == ' ';
        good = set_field(fields, "options.", name, value, strcspn(value, "\n"));
    }
    return good;
}

/* Set the field of a member of the run state.  The state stores real numbers in hexadecimal, which is hard to read. */
static bool
set_member(json_t *fields, const char *name, const json_t *value)
{
    const size_t flags = JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17);
    char *text = json_is_string(value) ? strdup(json_string_value(value)) : json_dumps(value, flags);
    char number[SETTINGS_NUMBER], *end = NULL;
    double real = text && strncmp(text + (text[0] == '-'), "0x", 2) == 0 ? strtod(text, &end) : 0.0;
    const char *shown = end && *end == '\0' ? settings_format(real, number) : text;
    bool good = text && (strcmp(name, "settings") == 0 ? set_options(fields, text)
                                                       : set_field(fields, "state.", name, shown, strlen(shown)));

    free(text);
    return good;
}

static enum chex_status
read_fields(const struct safetensors *s, json_t **out, struct chex_error *err)
{
    static const struct parse_bounds bounds = {.size = 65536, .depth = 4, .values = 1000};
    enum chex_status status = CHEX_OK;
    json_t *fields = *out = json_object(), *state = NULL, *value;
    const struct metadata *m = s->metadata;
    bool good = fields != NULL;
    const char *key;

    for (; good && status == CHEX_OK && m < s->metadata + s->metadata_count; m++) {
        if (strcmp(m->key, "state") == 0)
            status = parse_json(m->value, strlen(m->value), &bounds, &state, err);
        if (strcmp(m->key, "state") != 0 || !json_is_object(state))
            good = set_field(fields, "", m->key, m->value, strlen(m->value));
    }
    json_object_foreach (state, key, value)
        good = good && set_member(fields, key, value);
    json_decref(state);
    return status == CHEX_OK && !good ? error_memory(err) : status;
}

/* ---- differences ------------------------------------------------------------------------------------------------- */

static const struct table_column columns[] = {{.name = "kind"}, {.name = "name"},    {.name = "a"},
                                              {.name = "b"},    {.name = "max_abs"}, {.name = NULL}};

/* Write one difference: as a row of t, or as text if t is NULL.  largest: max |B - A|; NULL: no values were compared */
static void
put_difference(struct checkpoint_diff *d, struct table_writer *t, const char *kind, const char *name, const char *a,
               const char *b, const double *largest)
{
    char text[3][INSPECT_TEXT];

    d->differ = true;
    inspect_text(inspect_bytes(name), text[0]);
    inspect_text(inspect_bytes(a ? a : ""), text[1]);
    inspect_text(inspect_bytes(b ? b : ""), text[2]);
    if (t)
        table_row(t, (struct cell[]){cell_text(kind), cell_text(text[0]), cell_text(text[1]), cell_text(text[2]),
                                     largest ? cell_number(*largest) : cell_none()});
    else if (d->in->common->quiet)
        return;
    else if (!largest)
        printf("%-8s %-26s %.60s -> %.60s\n", kind, text[0], a ? text[1] : "-", b ? text[2] : "-");
    else if (isnan(*largest))
        printf("%-8s %-26s not finite\n", kind, text[0]);
    else
        printf("%-8s %-26s differ by %.4g at most\n", kind, text[0], *largest);
}

static void
compare_fields(struct checkpoint_diff *d, struct table_writer *t)
{
    json_t *a = d->fields[0], *b = d->fields[1], *value;
    const char *name;

    json_object_foreach (a, name, value)
        if (!json_equal(value, json_object_get(b, name)))
            put_difference(d, t, "meta", name, json_string_value(value), json_string_value(json_object_get(b, name)),
                           NULL);
    json_object_foreach (b, name, value)
        if (!json_object_get(a, name))
            put_difference(d, t, "meta", name, NULL, json_string_value(value), NULL);
}

/* Compare `count` values and widen *largest; NaN stays.  Returns whether a value differs. */
static bool
compare_piece(enum dtype type_a, const uint8_t *a, enum dtype type_b, const uint8_t *b, size_t count, double *largest)
{
    bool differ = false;

    for (; count > 0; count--, a += dtype_size(type_a), b += dtype_size(type_b)) {
        double x = dtype_value(type_a, a), y = dtype_value(type_b, b);

        if (type_a == type_b ? memcmp(a, b, dtype_size(type_a)) == 0 : x == y)
            continue;
        differ = true;
        *largest = isfinite(x) && isfinite(y) && !isnan(*largest) ? fmax(*largest, fabs(y - x)) : (double)NAN;
    }
    return differ;
}

/* Compare the values of two tensors with equal shapes. */
static enum chex_status
compare_values(struct checkpoint_diff *d, struct table_writer *t, const struct tensor_entry *a,
               const struct tensor_entry *b)
{
    uint8_t here[CHECKPOINT_BYTES], there[CHECKPOINT_BYTES];
    enum chex_status status = CHEX_OK;
    double largest = 0;
    bool differ = false;
    uint64_t at;
    size_t count;

    for (at = 0; at < a->count; at += count) {
        count = checkpoint_piece(a, at);
        status = safetensors_read_part(&d->file[0], a, at, count, here, &d->err);
        if (status == CHEX_OK)
            status = safetensors_read_part(&d->file[1], b, at, count, there, &d->err);
        if (status != CHEX_OK)
            return error_context(&d->err, status, "'%s' and '%s'", d->target[0]->file, d->target[1]->file);
        differ |= compare_piece(a->type, here, b->type, there, count, &largest);
    }
    if (differ)
        put_difference(d, t, "values", a->name, NULL, NULL, &largest);
    return CHEX_OK;
}

/* Report a tensor of one side, "only_a" or "only_b". */
static void
put_single(struct checkpoint_diff *d, struct table_writer *t, const char *kind, const struct tensor_entry *e)
{
    char shape[CHECKPOINT_SHAPE];
    bool in_a = strcmp(kind, "only_a") == 0;

    checkpoint_shape(e, shape);
    put_difference(d, t, kind, e->name, in_a ? shape : NULL, in_a ? NULL : shape, NULL);
}

/* Compare the tensors with one name. */
static enum chex_status
compare_pair(struct checkpoint_diff *d, struct table_writer *t, const struct tensor_entry *a,
             const struct tensor_entry *b)
{
    char x[CHECKPOINT_SHAPE], y[CHECKPOINT_SHAPE];

    checkpoint_shape(a, x);
    checkpoint_shape(b, y);
    if (strcmp(x, y) != 0)
        put_difference(d, t, "shape", a->name, x, y, NULL);
    if (a->type != b->type)
        put_difference(d, t, "dtype", a->name, dtype_name(a->type), dtype_name(b->type), NULL);
    return strcmp(x, y) == 0 ? compare_values(d, t, a, b) : CHEX_OK;
}

static void
compare(struct table_writer *t, void *result)
{
    struct checkpoint_diff *d = result;
    const struct safetensors *a = &d->file[0], *b = &d->file[1];
    size_t i = 0, j = 0;

    compare_fields(d, t);
    while (d->status == CHEX_OK && (i < a->count || j < b->count)) {
        int order = i == a->count ? 1 : j == b->count ? -1 : strcmp(a->entry[i].name, b->entry[j].name);

        if (order < 0)
            put_single(d, t, "only_a", &a->entry[i++]);
        else if (order > 0)
            put_single(d, t, "only_b", &b->entry[j++]);
        else
            d->status = compare_pair(d, t, &a->entry[i++], &b->entry[j++]);
    }
}

/* ---- times of two runs ------------------------------------------------------------------------------------------- */

/* Compares B with A if both recorded the times of equally many steps since their last start. */
static bool
compare_times(const struct checkpoint_diff *d, struct rank_scaling *out)
{
    const struct run_times *a = &d->times[0], *b = &d->times[1];

    if (a->times.ranks == 0 || b->times.ranks == 0 || !a->all || !b->all || a->times.steps != b->times.steps)
        return false;
    *out = rank_times_scaling(&a->times, &b->times);
    return true;
}

static const char *
format_share(double share, char out[FORMAT_TEXT])
{
    if (isnan(share))
        return "n/a";
    snprintf(out, FORMAT_TEXT, "%.2f", share);
    return out;
}

static void
print_scaling(const struct checkpoint_diff *d)
{
    char computation[FORMAT_TEXT], global[FORMAT_TEXT];
    struct rank_scaling s;

    if (compare_times(d, &s))
        printf("time     from A to B: computation scaling %s, global efficiency %s\n",
               format_share(s.computation, computation), format_share(s.global, global));
}

static json_t *
scaling_json(const struct checkpoint_diff *d)
{
    struct rank_scaling s;

    return compare_times(d, &s) ? json_pack("{s:o, s:o}", "computation_scaling", real_json(s.computation),
                                            "global_efficiency", real_json(s.global))
                                : json_null();
}

/* ---- output ------------------------------------------------------------------------------------------------------ */

static void
print_text(struct checkpoint_diff *d)
{
    char tensors[FORMAT_THINGS], bytes[FORMAT_TEXT], file[PRINTABLE_TEXT];
    int i;

    for (i = 0; i < 2 && !d->in->common->quiet; i++)
        printf("%c        %s, %s  %s\n", 'A' + i, format_things(d->file[i].count, "tensor", tensors),
               format_bytes(d->file[i].size, bytes), printable_text(d->target[i]->file, file));
    if (!d->in->common->quiet)
        print_scaling(d);
    compare(NULL, d);
    if (d->status == CHEX_OK && !d->differ && !d->in->common->quiet)
        printf("%sequal%s\n", d->in->color.green, d->in->color.off);
}

static void
print_json(struct checkpoint_diff *d)
{
    json_t *changes = inspect_rows_json(columns, compare, d);

    if (d->status == CHEX_OK)
        inspect_json_add(d->in, json_pack("{s:s, s:[o, o], s:[o, o], s:b, s:o, s:o}", "kind", "checkpoints", "paths",
                                          text_json(d->target[0]->path), text_json(d->target[1]->path), "files",
                                          text_json(d->target[0]->file), text_json(d->target[1]->file), "same",
                                          !d->differ, "changes", changes, "scaling", scaling_json(d)));
    else
        json_decref(changes);
}

static void
print_difference(struct checkpoint_diff *d)
{
    struct table_writer t = {.format = inspect_format(d->in), .column = columns};

    if (t.format == TABLE_TEXT) {
        print_text(d);
    } else if (t.format == TABLE_JSON) {
        print_json(d);
    } else {
        table_begin(&t);
        compare(&t, d);
        d->in->output_failed |= t.failed;
    }
}

static enum chex_status
open_side(struct checkpoint_diff *d, unsigned i, struct chex_error *err)
{
    const struct target *t = d->target[i];
    enum chex_status status = safetensors_open(AT_FDCWD, t->file, &d->file[i], err);

    if (t->passed_over[0])
        progress_line_warn(&d->in->line, "%s: warning: %s", d->in->program->name, t->passed_over);
    if (status == CHEX_OK)
        status = read_fields(&d->file[i], &d->fields[i], err);
    if (status == CHEX_OK && strcmp(t->file, t->path) != 0) /* the folder of a run */
        status = run_times_read(t->path, &d->times[i], err);
    return status == CHEX_OK ? status : error_context(err, status, "'%s'", t->file);
}

int
inspect_checkpoint_diff(struct inspect *in, const struct target *a, const struct target *b)
{
    struct checkpoint_diff d = {.in = in, .target = {a, b}, .file = {{.fd = -1}, {.fd = -1}}};
    unsigned i, failed = 0;
    int code;

    for (i = 0; i < 2 && d.status == CHEX_OK; i++) {
        d.status = open_side(&d, i, &d.err);
        failed = i;
    }
    if (d.status == CHEX_OK)
        print_difference(&d);
    code = d.status == CHEX_OK ? (d.differ ? EXIT_DATA : EXIT_GOOD) : inspect_fail(in, d.target[failed]->path, &d.err);
    if (d.status == CHEX_OK && d.differ)
        inspect_report_difference(in, a->path, b->path);
    for (i = 0; i < 2; i++) {
        safetensors_close(&d.file[i]);
        json_decref(d.fields[i]);
        rank_times_release(&d.times[i].times);
    }
    return code;
}
