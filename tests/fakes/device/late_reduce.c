/*
 * late_reduce.c - sums through host memory; see late.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "late.h"

#include "comm/reduce_host.h"

#include <stdlib.h>
#include <string.h>

#define PIECE 1000 /* numbers, if two ranks share a device */

struct staged {
    struct staged *next;
    double *data, *copy;
    size_t count;
};

struct late_reduce {
    struct reduce base;
    struct reduce *host;
    struct staged *staged;
    size_t piece; /* numbers per transfer */
};

static enum chex_status
start_piece(struct late_reduce *r, double *data, size_t count, struct chex_error *err)
{
    struct staged *s = calloc(1, sizeof(*s));

    *s = (struct staged){.next = r->staged, .data = data, .copy = malloc(count * sizeof(*data)), .count = count};
    r->staged = s;
    memcpy(s->copy, data, count * sizeof(*data));
    return r->host->ops->start(r->host, s->copy, count, NULL, err);
}

static enum chex_status
late_start(struct reduce *reduce, void *data, size_t count, void *queue, struct chex_error *err)
{
    struct late_reduce *r = (struct late_reduce *)(void *)reduce;
    enum chex_status status = CHEX_OK;
    size_t at, n;

    (void)queue;
    for (at = 0; status == CHEX_OK && at < count; at += n) {
        n = count - at < r->piece ? count - at : r->piece;
        status = start_piece(r, (double *)data + at, n, err);
    }
    return status;
}

static enum chex_status
late_join(struct reduce *reduce, void *queue, struct chex_error *err)
{
    struct late_reduce *r = (struct late_reduce *)(void *)reduce;
    enum chex_status status = r->host->ops->join(r->host, queue, err);

    while (status == CHEX_OK && r->staged) {
        struct staged *s = r->staged;

        r->staged = s->next;
        memcpy(s->data, s->copy, s->count * sizeof(*s->data));
        free(s->copy);
        free(s);
    }
    return status;
}

static enum chex_status
late_poll(struct reduce *reduce, struct chex_error *err)
{
    struct late_reduce *r = (struct late_reduce *)(void *)reduce;

    return r->host->ops->poll(r->host, err);
}

static bool
late_reduce_free(struct reduce *reduce)
{
    struct late_reduce *r = (struct late_reduce *)(void *)reduce;

    r->host->ops->free(r->host);
    free(r); /* after an aborted run, staged transfers may still be in flight */
    return true;
}

enum chex_status
late_reduce_new(struct device *device, struct collective *c, struct reduce **out, struct chex_error *err)
{
    static const struct reduce_ops ops = {
        .start = late_start, .join = late_join, .poll = late_poll, .free = late_reduce_free};
    struct late_reduce *r = calloc(1, sizeof(*r));
    size_t id = sizeof(device->info.id);
    struct buffer all = {0};
    enum chex_status status = collective_allgather(c, device->info.id, id, &all, NULL, err);

    r->piece = SIZE_MAX;
    for (size_t i = 0; status == CHEX_OK && i < all.size; i += id)
        for (size_t k = 0; k < i; k += id)
            if (memcmp(all.data + i, all.data + k, id) == 0)
                r->piece = PIECE;
    buffer_release(&all);
    if (status == CHEX_OK)
        status = reduce_host_new(device, c, &r->host, err);
    if (status != CHEX_OK) {
        free(r);
        return status;
    }
    r->base = (struct reduce){.rank = r->host->rank, .size = r->host->size, .ops = &ops};
    *out = &r->base;
    return CHEX_OK;
}
