/*
 * clock.c - see clock.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "comm/clock.h"

#include <math.h>
#include <string.h>

#define ROUNDS 8

/* The message of a round: when it started, and when the previous round was complete. */
struct note {
    double sent, had;
};

void
clock_distance_from_0(struct clock_distance *d, double sent, double arrived)
{
    d->most = fmin(d->most, arrived - sent);
}

void
clock_distance_to_0(struct clock_distance *d, double sent, double arrived)
{
    d->least = fmax(d->least, sent - arrived);
}

void
clock_map_add(struct clock_map *m, const struct clock_distance *found, double now)
{
    double ahead = (found->least + found->most) / 2, most;

    if (m->measured) {
        ahead = fmin(fmax(m->ahead, found->least), found->most);
        most = (now - m->to) / 2; /* limits the slope, so that time also increases on rank 0's clock */
        ahead = fmin(fmax(ahead, m->ahead - most), m->ahead + most);
    }
    m->from = m->measured ? m->to : now;
    m->ahead_from = m->measured ? m->ahead : ahead;
    m->to = now;
    m->ahead = ahead;
    m->now = *found;
    m->measured = true;
}

double
clock_map_time(const struct clock_map *m, double time)
{
    if (time >= m->to)
        return time - m->ahead;
    if (time <= m->from)
        return time - m->ahead_from;
    return time - m->ahead_from - (m->ahead - m->ahead_from) * (time - m->from) / (m->to - m->from);
}

enum chex_status
collective_clock(struct collective *c, double (*clock)(void *context), void *context, struct clock_map *m,
                 struct chex_error *err)
{
    struct clock_distance d = {.least = -HUGE_VAL, .most = HUGE_VAL};
    struct note own = {.sent = 0}, rank_0;
    struct buffer all = {0};
    enum chex_status status = CHEX_OK;
    unsigned round;

    for (round = 0; status == CHEX_OK && round <= ROUNDS; round++) {
        double before = own.sent;

        own.sent = clock(context);
        status = collective_allgather(c, &own, sizeof(own), &all, NULL, err);
        if (status != CHEX_OK)
            break;
        own.had = clock(context);
        memcpy(&rank_0, all.data, sizeof(rank_0));
        clock_distance_from_0(&d, rank_0.sent, own.had);
        if (round > 0)
            clock_distance_to_0(&d, before, rank_0.had);
    }
    buffer_release(&all);
    if (status != CHEX_OK)
        return status;
    if (collective_rank(c) == 0)
        d = (struct clock_distance){.least = 0, .most = 0};
    clock_map_add(m, &d, own.had);
    return CHEX_OK;
}
