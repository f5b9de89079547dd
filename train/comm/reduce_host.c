/*
 * reduce_host.c - see reduce_host.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "comm/reduce_host.h"

#include "ranks/collective.h"

#include <stdlib.h>

struct host_reduce {
    struct reduce base;
    struct collective *collective;
};

static struct collective *
collective_of(struct reduce *r)
{
    return ((struct host_reduce *)(void *)r)->collective;
}

static enum chex_status
start(struct reduce *r, void *data, size_t count, void *queue, struct chex_error *err)
{
    (void)queue;
    return collective_allreduce_start(collective_of(r), data, count, err);
}

static enum chex_status
join(struct reduce *r, void *queue, struct chex_error *err)
{
    (void)queue;
    return collective_allreduce_wait(collective_of(r), err);
}

static enum chex_status
poll_peers(struct reduce *r, struct chex_error *err)
{
    return collective_poll(collective_of(r), err);
}

static bool
free_reduce(struct reduce *r)
{
    free(r);
    return true;
}

static const struct reduce_ops ops = {.start = start, .join = join, .poll = poll_peers, .free = free_reduce};

enum chex_status
reduce_host_new(struct device *device, struct collective *c, struct reduce **out, struct chex_error *err)
{
    struct host_reduce *r = calloc(1, sizeof(*r));

    (void)device;
    *out = NULL;
    if (!r)
        return error_memory(err);
    r->base = (struct reduce){.rank = collective_rank(c), .size = collective_size(c), .ops = &ops};
    r->collective = c;
    *out = &r->base;
    return CHEX_OK;
}
