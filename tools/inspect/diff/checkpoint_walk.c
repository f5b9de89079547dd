/*
 * checkpoint_walk.c - calls a function for each difference of two checkpoints; see inspect/checkpoint.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/checkpoint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void
walk_meta(struct checkpoint_diff *d, tensor_diff_fn *fn, void *context)
{
    const struct checkpoint_side *a = &d->side[0], *b = &d->side[1];
    char name[INSPECT_TEXT], here[INSPECT_TEXT], there[INSPECT_TEXT];
    size_t i = 0, j = 0;

    while (i < a->meta_count || j < b->meta_count) {
        int order = i == a->meta_count ? 1 : j == b->meta_count ? -1 : strcmp(a->meta[i].name, b->meta[j].name);
        const char *x = order <= 0 ? a->meta[i].value : "", *y = order >= 0 ? b->meta[j].value : "";

        if (order != 0 || strcmp(x, y) != 0)
            fn(context, TENSOR_META, inspect_text(inspect_bytes(order <= 0 ? a->meta[i].name : b->meta[j].name), name),
               inspect_text(inspect_bytes(x), here), inspect_text(inspect_bytes(y), there), NULL);
        i += order <= 0;
        j += order >= 0;
    }
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

const char *
tensor_diff_name(enum tensor_diff_kind kind)
{
    static const char *const names[TENSOR_DIFF_KINDS] = {"meta", "only_a", "only_b", "shape", "dtype", "values"};

    return names[kind];
}

bool
tensor_same_shape(const struct tensor_entry *a, const struct tensor_entry *b)
{
    return a->rank == b->rank && (a->rank == 0 || memcmp(a->shape, b->shape, a->rank * sizeof(a->shape[0])) == 0);
}

/* Step to the next name of both lists; either tensor may be NULL. */
bool
checkpoint_diff_next(const struct checkpoint_diff *d, size_t at[2], const struct tensor_entry *found[2])
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

/* Format a number with as many digits as its type holds. */
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
visit_pair(const struct tensor_pair *p, const char *name, tensor_diff_fn *fn, void *context)
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
    while (checkpoint_diff_next(d, at, e)) {
        inspect_text(inspect_bytes((e[0] ? e[0] : e[1])->name), name);
        if (!e[1])
            fn(context, TENSOR_ONLY_A, name, checkpoint_shape(e[0], x), "", NULL);
        else if (!e[0])
            fn(context, TENSOR_ONLY_B, name, "", checkpoint_shape(e[1], y), NULL);
        else if (!tensor_same_shape(e[0], e[1]))
            fn(context, TENSOR_SHAPE, name, checkpoint_shape(e[0], x), checkpoint_shape(e[1], y), NULL);
        if (!e[0] || !e[1])
            continue;
        if (e[0]->type != e[1]->type)
            fn(context, TENSOR_TYPE, name, dtype_name(e[0]->type), dtype_name(e[1]->type), NULL);
        if (next < d->pair_count && d->pair[next].a == e[0])
            visit_pair(&d->pair[next++], name, fn, context);
    }
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
