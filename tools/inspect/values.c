/*
 * values.c - see values.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/values.h"

#include <math.h>
#include <string.h>

#define PIECE  1024 /* values */
#define WIDEST 8    /* bytes of a value */

static size_t
piece_of(uint64_t left)
{
    return left < PIECE ? (size_t)left : PIECE;
}

/* ---- one tensor -------------------------------------------------------------------------------------------------- */

static void
add_value(struct value_sums *v, double x)
{
    v->count++;
    if (isnan(x)) {
        v->nan++;
        return;
    }
    if (isinf(x)) {
        v->infinite++;
        return;
    }
    if (v->count == v->nan + v->infinite + 1 || x < v->min)
        v->min = x;
    if (v->count == v->nan + v->infinite + 1 || x > v->max)
        v->max = x;
    v->zeros += x == 0;
    v->sum += x;
    v->squares += x * x;
}

enum chex_status
value_sums_read(const struct safetensors *s, const struct tensor_entry *e, struct value_sums *out,
                struct chex_error *err)
{
    uint8_t bytes[PIECE * WIDEST];
    size_t size = dtype_size(e->type), count, i;
    uint64_t at;
    enum chex_status status = CHEX_OK;

    *out = (struct value_sums){0};
    for (at = 0; status == CHEX_OK && at < e->count; at += count) {
        count = piece_of(e->count - at);
        status = safetensors_read_part(s, e, at, count, bytes, err);
        for (i = 0; status == CHEX_OK && i < count; i++)
            add_value(out, dtype_value(e->type, bytes + i * size));
    }
    return status;
}

uint64_t
value_sums_bad(const struct value_sums *v)
{
    return v->nan + v->infinite;
}

static uint64_t
finite_count(const struct value_sums *v)
{
    return v->count - value_sums_bad(v);
}

void
value_sums_add(struct value_sums *all, const struct value_sums *more)
{
    if (finite_count(more) > 0) {
        all->min = finite_count(all) > 0 ? fmin(all->min, more->min) : more->min;
        all->max = finite_count(all) > 0 ? fmax(all->max, more->max) : more->max;
    }
    all->count += more->count;
    all->nan += more->nan;
    all->infinite += more->infinite;
    all->zeros += more->zeros;
    all->sum += more->sum;
    all->squares += more->squares;
}

double
value_sums_min(const struct value_sums *v)
{
    return finite_count(v) > 0 ? v->min : (double)NAN;
}

double
value_sums_max(const struct value_sums *v)
{
    return finite_count(v) > 0 ? v->max : (double)NAN;
}

double
value_sums_mean(const struct value_sums *v)
{
    return finite_count(v) > 0 ? v->sum / (double)finite_count(v) : (double)NAN;
}

double
value_sums_norm(const struct value_sums *v)
{
    return sqrt(v->squares);
}

/* ---- two tensors ------------------------------------------------------------------------------------------------- */

/* One pair; at is its place. */
static void
add_pair(struct value_difference *d, double a, double b, bool same, uint64_t at)
{
    bool bad = !isfinite(a) || !isfinite(b);
    bool had_bad = d->differ > 0 && (!isfinite(d->at[0]) || !isfinite(d->at[1]));
    double delta = bad ? 0 : b - a;

    d->count++;
    d->bad[0] += isfinite(a) ? 0 : 1;
    d->bad[1] += isfinite(b) ? 0 : 1;
    if (!bad) {
        d->squares += delta * delta;
        d->squares_a += a * a;
    }
    if (same)
        return;
    if (d->differ == 0 || (!had_bad && (bad || fabs(delta) > d->max_abs))) {
        d->worst = at;
        d->at[0] = a;
        d->at[1] = b;
    }
    d->max_abs = fmax(d->max_abs, fabs(delta));
    d->differ++;
}

static void
compare_piece(struct value_difference *d, enum dtype type_a, const uint8_t *a, enum dtype type_b, const uint8_t *b,
              size_t count, uint64_t at)
{
    size_t x = dtype_size(type_a), y = dtype_size(type_b), i;

    for (i = 0; i < count; i++) {
        double here = dtype_value(type_a, a + i * x), there = dtype_value(type_b, b + i * y);
        bool same = type_a == type_b ? memcmp(a + i * x, b + i * x, x) == 0 : here == there;

        add_pair(d, here, there, same, at + i);
    }
    if (type_a != type_b)
        return;
    d->bytes += count * x;
    for (i = 0; i < count * x; i++)
        d->equal_bytes += a[i] == b[i];
}

enum chex_status
value_difference_read(const struct safetensors *a, const struct tensor_entry *in_a, const struct safetensors *b,
                      const struct tensor_entry *in_b, struct value_difference *out, struct chex_error *err)
{
    uint8_t here[PIECE * WIDEST], there[PIECE * WIDEST];
    size_t count;
    uint64_t at;
    enum chex_status status = CHEX_OK;

    *out = (struct value_difference){0};
    for (at = 0; status == CHEX_OK && at < in_a->count; at += count) {
        count = piece_of(in_a->count - at);
        status = safetensors_read_part(a, in_a, at, count, here, err);
        if (status == CHEX_OK)
            status = safetensors_read_part(b, in_b, at, count, there, err);
        if (status == CHEX_OK)
            compare_piece(out, in_a->type, here, in_b->type, there, count, at);
    }
    return status;
}

void
value_difference_add(struct value_difference *all, const struct value_difference *more)
{
    all->count += more->count;
    all->differ += more->differ;
    all->bytes += more->bytes;
    all->equal_bytes += more->equal_bytes;
    all->bad[0] += more->bad[0];
    all->bad[1] += more->bad[1];
    all->max_abs = fmax(all->max_abs, more->max_abs);
    all->squares += more->squares;
    all->squares_a += more->squares_a;
}

double
value_difference_relative(const struct value_difference *d)
{
    if (d->squares == 0)
        return 0;
    return d->squares_a == 0 || !isfinite(d->squares) || !isfinite(d->squares_a) ? (double)NAN
                                                                                 : sqrt(d->squares / d->squares_a);
}
