/*
 * collective_broadcast.c - implements the broadcast of collective.h
 *
 * The data go along a binomial tree: rank r receives from the rank whose number is r without its lowest set bit.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "ranks/collective_private.h"

#include <stdlib.h>

struct broadcast {
    uint8_t *data;
    size_t size;
    int tag, parent; /* parent of rank 0: itself */
    bool arrived;
    struct comm_transfer *in, **out; /* [size] */
};

static enum chex_status
hand_on(struct collective *c, struct broadcast *b, struct chex_error *err)
{
    int me = c->comm->rank, bit;
    enum chex_status status = CHEX_OK;

    b->arrived = true;
    for (bit = 1; status == CHEX_OK && bit < c->comm->size && (me & bit) == 0; bit <<= 1)
        if (me + bit < c->comm->size)
            status = c->comm->ops->start_send(c->comm, me + bit, b->tag, b->data, b->size, &b->out[me + bit], err);
    return status;
}

static enum chex_status
advance_broadcast(struct collective *c, void *context, bool *done, struct chex_error *err)
{
    struct broadcast *b = context;
    enum chex_status status = CHEX_OK;
    int i;

    *done = true;
    if (!b->arrived) {
        status = collective_transfer_done(c, b->parent, &b->in, done, err);
        c->peer[b->parent].missing = !*done;
        if (status == CHEX_OK && *done)
            status = hand_on(c, b, err);
    }
    for (i = 0; status == CHEX_OK && i < c->comm->size; i++) {
        bool sent;

        status = collective_transfer_done(c, i, &b->out[i], &sent, err);
        if (!sent)
            c->peer[i].missing = true;
        *done = *done && sent;
    }
    return status;
}

static enum chex_status
broadcast_piece(struct collective *c, struct broadcast *b, struct chex_error *err)
{
    struct task task = {.advance = advance_broadcast, .context = b, .transfers = true, .index = c->begun};
    int me = c->comm->rank;
    enum chex_status status = CHEX_OK;

    b->tag = collective_next_tag(c);
    b->parent = me & (me - 1);
    b->arrived = false;
    c->begun++;
    if (me != 0)
        status = c->comm->ops->start_receive(c->comm, b->parent, b->tag, b->data, b->size, &b->in, err);
    if (status == CHEX_OK)
        status = collective_wait(c, &task, err);
    if (status == CHEX_OK)
        c->ended = c->begun;
    return status;
}

enum chex_status
collective_broadcast(struct collective *c, void *data, size_t size, struct chex_error *err)
{
    struct broadcast b = {.data = data};
    enum chex_status status;
    int i;

    if (c->comm->size == 1 || size == 0)
        return CHEX_OK;
    status = collective_no_sums(c, err);
    if (status == CHEX_OK)
        status = collective_usable(c, err);
    if (status == CHEX_OK && !(b.out = calloc((size_t)c->comm->size, sizeof(struct comm_transfer *))))
        status = error_memory(err);
    for (; status == CHEX_OK && size > 0; size -= b.size, b.data += b.size) {
        b.size = size < COLLECTIVE_PIECE ? size : COLLECTIVE_PIECE;
        status = broadcast_piece(c, &b, err);
        if (status != CHEX_OK)
            break;
    }
    for (i = 0; b.out && i < c->comm->size; i++) {
        c->abandoned = c->abandoned || b.out[i];
        if (b.out[i])
            c->comm->ops->forget(c->comm, &b.out[i]);
    }
    c->abandoned = c->abandoned || b.in;
    if (b.in)
        c->comm->ops->forget(c->comm, &b.in);
    free(b.out);
    return status;
}
