/*
 * trainer_order.c - computes the order of an epoch during the previous evaluation; see trainer.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/trainer_private.h"

static enum chex_status
make_order(const struct trainer *t, uint32_t epoch, struct pass_order *out, struct chex_error *err)
{
    enum chex_status status = order_epoch(&t->task.samples, t->job.o->seed, epoch, t->state.window, out->sample, err);

    if (status == CHEX_OK)
        status = order_hash(&t->task.samples, out->sample, out->hash, err);
    out->there = status == CHEX_OK;
    out->epoch = epoch;
    return status;
}

void
trainer_order_next(struct trainer *t)
{
    struct chex_error other;

    (void)make_order(t, t->state.epoch + 1, &t->pass.next, &other); /* on failure the epoch computes it */
}

enum chex_status
trainer_take_order(struct trainer *t, struct chex_error *err)
{
    struct trainer_pass *pass = &t->pass;
    struct pass_order old = pass->order;

    if (!pass->next.there || pass->next.epoch != t->state.epoch)
        return make_order(t, t->state.epoch, &pass->order, err);
    pass->order = pass->next;
    pass->next = old;
    pass->next.there = false;
    return CHEX_OK;
}
