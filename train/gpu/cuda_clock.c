/*
 * cuda_clock.c - see cuda_plan.h: what the parts of a step took, by the events of the device
 *
 * Where a part stands on the clock of the host follows from two things: it did not begin before it was given to the
 * device, nor before the part in front of it had ended.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "gpu/cuda_plan.h"

#include "base/progress.h"

static double
larger(double a, double b)
{
    return a > b ? a : b;
}

static void
read_part(struct plan *plan, const struct cuda_clock *c, enum step_part part, int from, int to)
{
    const struct plan_options *o = &plan->options;
    double now = progress_clock(), begin, end;
    float milliseconds;

    if (cudaEventElapsedTime(&milliseconds, c->event[from], c->event[to]) != cudaSuccess)
        return;
    if (plan->times_of[c->ticket % 2] == c->ticket)
        plan->times[c->ticket % 2].seconds[part] += (double)milliseconds * 1e-3;
    begin = larger(c->given, plan->measured);
    end = begin + (double)milliseconds * 1e-3;
    plan->measured = end < now ? end : now;
    if (o->part)
        o->part(o->context, part, begin < plan->measured ? begin : plan->measured, plan->measured);
}

static void
read_clock(struct plan *plan, struct cuda_clock *c)
{
    if (c->holds & HOLDS_FORWARD)
        read_part(plan, c, PART_FORWARD, CLOCK_BEGIN, CLOCK_FORWARD);
    if (c->holds & HOLDS_BACKWARD)
        read_part(plan, c, PART_BACKWARD, CLOCK_FORWARD, CLOCK_BACKWARD);
    if (c->holds & HOLDS_UPDATE)
        read_part(plan, c, PART_UPDATE, CLOCK_BACKWARD, CLOCK_UPDATE);
    c->holds = 0;
}

void
cuda_clock_start(struct cuda_clock *c, uint64_t ticket, unsigned holds)
{
    c->given = progress_clock();
    c->ticket = ticket;
    c->holds = holds;
}

struct cuda_clock *
cuda_clock_take(struct plan *plan, unsigned holds)
{
    struct cuda_clock *c = &plan->clock[plan->clocks++ % CUDA_CLOCKS];

    read_clock(plan, c);
    cuda_clock_start(c, plan->ticket + 1, holds);
    return c;
}

void
cuda_clock_step(struct plan *plan, uint64_t ticket)
{
    struct cuda_clock *whole = &plan->whole[ticket % 2];
    unsigned i;

    for (i = 0; i < CUDA_CLOCKS; i++) {
        struct cuda_clock *c = &plan->clock[(plan->clocks + i) % CUDA_CLOCKS];

        if (c->ticket == ticket)
            read_clock(plan, c);
    }
    if (whole->ticket == ticket)
        read_clock(plan, whole);
}
