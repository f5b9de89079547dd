/*
 * cost_areas.c - areas of memory and the number of sectors that they touch; see cost.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/plan/cost.h"

/* ---- areas ------------------------------------------------------------------------------------------------------- */

static size_t
first_sector(const struct cuda_area *a, size_t row)
{
    return (a->at + row * a->step) / CUDA_SECTOR;
}

static size_t
last_sector(const struct cuda_area *a, size_t row)
{
    return (a->at + row * a->step + a->width - 1) / CUDA_SECTOR;
}

/* Returns the sectors of rows first .. end - 1, without a sector that the previous row has touched. */
static size_t
sectors_of_rows(const struct cuda_area *a, size_t first, size_t end)
{
    size_t sum = 0, row;

    for (row = first; row < end; row++) {
        sum += last_sector(a, row) - first_sector(a, row) + 1;
        if (row > 0 && a->step > 0 && last_sector(a, row - 1) == first_sector(a, row))
            sum--;
    }
    return sum;
}

/* The offset of a row in its sector repeats after at most CUDA_SECTOR rows. */
static size_t
sectors_of(const struct cuda_area *a)
{
    size_t period = CUDA_SECTOR;

    if (a->rows <= 2 * period)
        return sectors_of_rows(a, 0, a->rows);
    return sectors_of_rows(a, 0, period) + sectors_of_rows(a, period, 2 * period) * (a->rows / period - 1) +
           sectors_of_rows(a, period, period + a->rows % period);
}

/* Returns the sectors of an area of one row that no area before it in the list has touched. */
static size_t
new_sectors(const struct cuda_areas *all, unsigned which)
{
    const struct cuda_area *a = &all->area[which];
    size_t sector = first_sector(a, 0), end = last_sector(a, 0) + 1, sum = 0;
    unsigned i;

    while (sector < end) {
        size_t next = end, behind = sector;

        for (i = 0; i < which; i++) {
            const struct cuda_area *b = &all->area[i];

            if (b->rows != 1)
                continue;
            if (first_sector(b, 0) <= sector && last_sector(b, 0) >= sector && last_sector(b, 0) + 1 > behind)
                behind = last_sector(b, 0) + 1;
            else if (first_sector(b, 0) > sector && first_sector(b, 0) < next)
                next = first_sector(b, 0);
        }
        if (behind == sector) {
            sum += next - sector;
            behind = next;
        }
        sector = behind;
    }
    return sum;
}

uint64_t
cuda_area_bytes(const struct cuda_areas *a)
{
    uint64_t sectors = a->alone;
    unsigned i;

    for (i = 0; i < a->count; i++)
        sectors += a->area[i].rows == 1 ? new_sectors(a, i) : sectors_of(&a->area[i]);
    return sectors * CUDA_SECTOR;
}

void
cuda_add_rows(struct cuda_areas *to, const void *at, size_t rows, size_t width, size_t step)
{
    unsigned i;

    if (rows == 0 || width == 0 || to->count == CUDA_AREAS)
        return;
    if (width >= step || rows == 1) { /* no gaps between rows; the rows of the stem's input overlap */
        width = (rows - 1) * step + width;
        step = width;
        rows = 1;
    }
    for (i = 0; i < to->count; i++) /* areas that two parts of a launch share */
        if (to->area[i].at == (uintptr_t)at && to->area[i].rows == rows && to->area[i].width == width &&
            to->area[i].step == step)
            return;
    to->area[to->count++] = (struct cuda_area){(uintptr_t)at, rows, width, step};
}

void
cuda_add_bytes(struct cuda_areas *to, const void *at, size_t bytes)
{
    cuda_add_rows(to, at, 1, bytes, bytes);
}

void
cuda_add_alone(struct cuda_areas *to, const void *at, size_t bytes)
{
    struct cuda_area a = {(uintptr_t)at, 1, bytes, bytes};

    if (bytes > 0)
        to->alone += sectors_of(&a);
}

void
cuda_add_floats(struct cuda_areas *to, const float *at, size_t count)
{
    cuda_add_bytes(to, at, count * sizeof(*at));
}

void
cuda_add_partial(const struct cuda_place *l, struct cuda_areas *to, const void *at, size_t splits, size_t weights)
{
    cuda_add_bytes(to, at, splits * weights * PARTIAL_SIZE(splits, l->value_bytes));
}

const void *
cuda_known(const struct cuda_place *l, const void *at)
{
    unsigned i;

    for (i = 0; i < CUDA_KNOWN_TABLES; i++) {
        const struct cuda_known_table *t = &l->table[i];

        if (t->host && (uintptr_t)at >= t->at && (uintptr_t)at < t->at + t->bytes)
            return (const char *)t->host + ((uintptr_t)at - t->at);
    }
    return NULL;
}

/* Adds `channels` of each pixel of a slab. */
void
cuda_add_slab(const struct cuda_place *l, struct cuda_areas *to, const void *at, size_t pixels, size_t channels,
              size_t ld)
{
    size_t bytes = l->value_bytes;

    cuda_add_rows(to, at, pixels, channels * bytes, ld * bytes);
}

/* ---- normalisations and sums ------------------------------------------------------------------------------------- */

void
cuda_add_sums(struct cuda_areas *to, const struct channel_sums *s)
{
    if (s->partial)
        cuda_add_floats(to, s->partial, (size_t)s->blocks * 2 * s->channels);
}

/* Adds what a CTA reads and writes to apply a BN to these channels. */
void
cuda_add_view(struct cuda_work *w, const struct norm_view *v, size_t channels)
{
    size_t fresh = v->fresh.partial ? v->fresh.channels : 0, first = fresh > 0 ? v->fresh_first : channels;

    if (!v->gamma)
        return;
    cuda_add_floats(&w->read, v->gamma, channels);
    cuda_add_floats(&w->read, v->beta, channels);
    if (!v->mean)
        return;
    cuda_add_floats(&w->read, v->mean, first);
    cuda_add_floats(&w->read, v->variance, first);
    cuda_add_floats(&w->read, v->mean + first + fresh, channels - first - fresh);
    cuda_add_floats(&w->read, v->variance + first + fresh, channels - first - fresh);
    if (fresh == 0)
        return;
    cuda_add_sums(&w->read, &v->fresh);
    cuda_add_floats(&w->read, v->fresh.running_mean, fresh);
    CUDA_ADD_MEMBER(&w->read, v->block, images);
    cuda_add_floats(&w->written, v->mean + first, fresh);
    cuda_add_floats(&w->written, v->variance + first, fresh);
}

/* Counts the first micro-batch: it only writes gradients of parameters and does not read them. */
void
cuda_add_finalize(const struct cuda_place *l, const struct finalize_view *f, size_t pixels, size_t channels,
                  struct cuda_work *w)
{
    if (!f->values)
        return;
    cuda_add_slab(l, &w->read, f->values, pixels, channels, f->values_ld);
    cuda_add_floats(&w->read, f->mean, channels);
    cuda_add_floats(&w->read, f->variance, channels);
    cuda_add_floats(&w->read, f->by_beta, f->by_beta ? channels : 0);
    cuda_add_floats(&w->read, f->by_gamma, f->by_gamma ? channels : 0);
    CUDA_ADD_MEMBER(&w->read, f->block, images);
    if (!f->sums.partial)
        return;
    cuda_add_sums(&w->read, &f->sums);
    cuda_add_floats(&w->read, f->gamma, channels);
    CUDA_ADD_MEMBER(&w->read, f->block, number);
    CUDA_ADD_MEMBER(&w->read, f->state, unscale);
    cuda_add_floats(&w->written, f->dbeta, channels);
    cuda_add_floats(&w->written, f->dgamma, channels);
}
