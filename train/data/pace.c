/*
 * pace.c - see pace.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "data/pace.h"

#include "base/clock.h"

double
pace_take(struct pace *p, unsigned images)
{
    double now = clock_now(), begins = p->ready > now ? p->ready : now;

    if (p->begun)
        p->waited += begins - p->ready;
    p->begun = true;
    p->ready = p->rate > 0 ? begins + images / p->rate : now;
    return begins;
}

void
pace_excuse(struct pace *p)
{
    double now = clock_now();

    if (p->ready < now)
        p->ready = now;
}
