/*
 * clock.c - measures the parts of a step by events of the device; see plan.h
 *
 * Events give durations only.  The start of a part on the host's clock is estimated: it is the later of the time when
 * the host gave the work to the device and the end of the previous part.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/run/plan.h"

#include "base/clock.h"

static double
larger(double a, double b)
{
    return a > b ? a : b;
}

/* Sets the seconds between two events; returns false if they are unknown. */
static bool
elapsed(cudaEvent_t from, cudaEvent_t to, double *out)
{
    float milliseconds;

    if (cudaEventElapsedTime(&milliseconds, from, to) != cudaSuccess)
        return false;
    *out = (double)milliseconds * 1e-3;
    return true;
}

static void
add_part(struct plan *plan, const struct cuda_clock *c, enum step_part part, double seconds)
{
    const struct plan_options *o = &plan->options;
    double now = clock_now(), begin, end;

    if (plan->times_of[c->ticket % 2] == c->ticket)
        plan->times[c->ticket % 2].seconds[part] += seconds;
    begin = larger(c->given, plan->measured);
    end = begin + seconds;
    plan->measured = end < now ? end : now;
    if (o->part)
        o->part(o->context, part, begin < plan->measured ? begin : plan->measured, plan->measured);
}

static void
read_part(struct plan *plan, const struct cuda_clock *c, enum step_part part, int from, int to)
{
    double seconds;

    if (elapsed(c->event[from], c->event[to], &seconds))
        add_part(plan, c, part, seconds);
}

/* ---- between micro-batches --------------------------------------------------------------------------------------- */

static double
within(double x, double most)
{
    return x < 0 ? 0 : x < most ? x : most;
}

/*
 * Splits the time from the end of earlier work to the start of this micro-batch: the part of its copy that the earlier
 * work did not hide, and idle time of the device.
 */
static void
read_gap(struct plan *plan, cudaEvent_t before, const struct cuda_clock *c)
{
    const struct cuda_copy *copy = &plan->copy[c->batch % CUDA_COPIES];
    double gap, begin, end, copied = 0;

    if (!elapsed(before, c->event[CLOCK_BEGIN], &gap) || gap <= 0)
        return;
    if (plan->batches - c->batch < CUDA_COPIES && elapsed(before, copy->begin, &begin) &&
        elapsed(before, copy->end, &end))
        copied = within(end, gap) - within(begin, gap);
    if (copied > 0)
        add_part(plan, c, PART_COPY, copied);
    if (plan->times_of[c->ticket % 2] == c->ticket)
        plan->idle[c->ticket % 2] += gap - copied;
}

/* Returns the clock of the next micro-batch of the same step, which has ended too; NULL if there is none. */
static const struct cuda_clock *
next_clock(const struct plan *plan, const struct cuda_clock *c)
{
    const struct cuda_clock *ring = plan->clock, *whole = &plan->whole[c->ticket % 2];
    const struct cuda_clock *next = &ring[(c - ring + 1) % CUDA_CLOCKS];

    if (next->ticket == c->ticket && next->number == c->number + 1)
        return next;
    return whole->ticket == c->ticket && whole->holds & HOLDS_FORWARD && whole->number == c->number + 1 ? whole : NULL;
}

static void
read_clock(struct plan *plan, struct cuda_clock *c)
{
    bool of_ring = c != &plan->whole[0] && c != &plan->whole[1];
    const struct cuda_clock *next = of_ring && c->holds & HOLDS_BACKWARD ? next_clock(plan, c) : NULL;

    if (c->holds & HOLDS_FORWARD && c->number == 1 && c->ticket > 1)
        read_gap(plan, plan->step_end[(c->ticket - 1) % CUDA_ENDS], c);
    if (c->holds & HOLDS_FORWARD)
        read_part(plan, c, PART_FORWARD, CLOCK_BEGIN, CLOCK_FORWARD);
    if (c->holds & HOLDS_BACKWARD)
        read_part(plan, c, PART_BACKWARD, CLOCK_FORWARD, CLOCK_BACKWARD);
    if (c->holds & HOLDS_END)
        read_part(plan, c, PART_REDUCE, CLOCK_BACKWARD, CLOCK_SUMS);
    if (c->holds & HOLDS_UPDATE)
        read_part(plan, c, PART_UPDATE, c->holds & HOLDS_END ? CLOCK_SUMS : CLOCK_BACKWARD, CLOCK_UPDATE);
    if (next)
        read_gap(plan, c->event[CLOCK_BACKWARD], next);
    c->holds = 0;
}

/* ---- clocks ------------------------------------------------------------------------------------------------------ */

void
cuda_clock_start(const struct plan *plan, struct cuda_clock *c, unsigned holds)
{
    c->given = clock_now();
    c->ticket = plan->ticket + 1;
    c->batch = plan->batches;
    c->number = plan->number;
    c->holds = holds;
}

struct cuda_clock *
cuda_clock_take(struct plan *plan, unsigned holds)
{
    struct cuda_clock *c = &plan->clock[plan->clocks++ % CUDA_CLOCKS];

    read_clock(plan, c);
    cuda_clock_start(plan, c, holds);
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
