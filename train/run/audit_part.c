/*
 * audit_part.c - begins and ends a part of an audit: a pair of checkpoints, or a file; see audit_private.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/audit_private.h"

#include <stdio.h>

void
audit_skip(struct audit *a, const char *why)
{
    a->part.outcome = AUDIT_SKIPPED;
    snprintf(a->part.text, sizeof(a->part.text), "%s", why);
    if (a->first.status == CHEX_OK)
        error_set(&a->first, CHEX_ERR_INCOMPATIBLE, "nothing of '%s' could be compared: %.300s", a->folder.path, why);
}

void
audit_begin_part(struct audit *a)
{
    if (a->watch->begun)
        a->watch->begun(a->watch->context, a->t, &a->part);
}

void
audit_end_part(struct audit *a)
{
    a->result->parts[a->part.outcome]++;
    if (a->watch->ended)
        a->watch->ended(a->watch->context, a->t, &a->part);
}

enum chex_status
audit_spread(struct audit *a, struct chex_error *err)
{
    struct trainer *t = a->t;
    enum chex_status status = trainer_make_host(&t->task, &t->engine, &t->host, err);

    status = collective_agree(t->job.all, status, NULL, err);
    if (status == CHEX_OK)
        status = trainer_broadcast(t, err);
    t->pass.order.there = t->pass.next.there = false;
    t->images.reading.window = t->state.window;
    if (status == CHEX_OK && !a->data_open) {
        a->data_open = true;
        status = trainer_open_data(t, err);
    }
    return status;
}
