/*
 * rank_advice.c - names the largest loss of time in one sentence, and what to change; see rank_times.h
 *
 * Every loss is a share of the time.  Only the largest is reported, if it is worth a change.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "log/rank_times.h"

#include <math.h>
#include <stdio.h>

#define LEAST            0.02 /* share of the time; a smaller loss is not worth a change */
#define LEAST_EVALUATION 0.1  /* higher, because evaluations are necessary */
#define LEAST_CORES      0.1  /* higher, because threads never divide their work evenly */

struct advice {
    double loss;
    char *text;
};

/* ---- parts ------------------------------------------------------------------------------------------------------- */

/*
 * A part in which a rank is slower than the others, and a remedy that the run may use already.  Without texts: the rank
 * or its device waits.
 */
struct cause {
    const char *what, *change;
    enum time_saver saver; /* SAVER_COUNT: the change can be made again */
};

#define REST PART_COUNT

static const char computing[] = "its computing";
static const char elsewhere[] = "look for other processes on that machine, and for a lower clock";

static const struct cause causes[PART_COUNT + 1] = {
    [PART_WAIT] = {"its reading", "--stage", SAVER_STAGE},
    [PART_COPY] = {"its copies to the GPU", "look at the link of that GPU", SAVER_COUNT},
    [PART_FORWARD] = {computing, elsewhere, SAVER_COUNT},
    [PART_BACKWARD] = {computing, elsewhere, SAVER_COUNT},
    [PART_UPDATE] = {computing, elsewhere, SAVER_COUNT},
    [PART_EVALUATE] = {"its evaluation", "a smaller --bootstrap", SAVER_NO_BOOTSTRAP},
    [PART_SAVE] = {"its checkpoints", "a longer --checkpoint-every", SAVER_COUNT},
    [REST] = {"its bookkeeping", elsewhere, SAVER_COUNT},
};

double
rank_time_rest(const struct rank_time *r)
{
    double left = r->seconds;
    unsigned i;

    for (i = 0; i < PART_COUNT; i++)
        if (i != PART_MEET || isnan(r->busy))
            left -= r->parts.seconds[i];
    return left > 0 ? left : 0;
}

static double
part_of(const struct rank_time *r, unsigned part)
{
    return part == REST ? rank_time_rest(r) : r->parts.seconds[part];
}

/* Returns the mean of a part over all ranks except one (-1: over all). */
static double
mean_part(const struct rank_times *t, unsigned part, int but)
{
    unsigned count = t->ranks - (but >= 0), r;
    double sum = 0;

    for (r = 0; r < t->ranks; r++)
        if ((int)r != but)
            sum += part_of(&t->rank[r], part);
    return count > 0 ? sum / count : 0;
}

static double
mean_share(const struct rank_times *t, unsigned part)
{
    return mean_part(t, part, -1) / t->seconds;
}

/* ---- losses ------------------------------------------------------------------------------------------------------ */

/* Record the loss if it is the largest so far; then its text is written next. */
static bool
is_worse(struct advice *a, double loss, double least)
{
    if (!(loss >= least) || loss <= a->loss)
        return false;
    a->loss = loss;
    return true;
}

/* Limit the value: a damaged file may contain any number. */
static int
percent(double loss)
{
    return (int)(100 * fmin(loss, 1) + 0.5);
}

static bool
is_in_use(const struct rank_times *t, enum time_saver saver)
{
    return saver < SAVER_COUNT && t->in_use[saver];
}

static unsigned
slowest_rank(const struct rank_times *t)
{
    unsigned most = 0, r;

    for (r = 1; r < t->ranks; r++)
        if (t->rank[r].work > t->rank[most].work)
            most = r;
    return most;
}

/* Find a rank that works longer than the others in every step. */
static void
look_at_slowest(const struct rank_times *t, struct advice *a)
{
    unsigned slow = slowest_rank(t), part, most = REST, r;
    double others = 0, excess = -HUGE_VAL;

    for (r = 0; r < t->ranks; r++)
        others += r == slow ? 0 : t->rank[r].work;
    if (t->ranks < 2 || !is_worse(a, (t->rank[slow].work - others / (t->ranks - 1)) / t->seconds, LEAST))
        return;
    for (part = 0; part <= REST; part++) {
        double more = part_of(&t->rank[slow], part) - mean_part(t, part, (int)slow);

        if (causes[part].what && more > excess) {
            excess = more;
            most = part;
        }
    }
    snprintf(a->text, RANK_ADVICE, "ranks wait %d %% for rank %u, %.63s: %s; %s", percent(a->loss), slow,
             t->rank[slow].host, causes[most].what, is_in_use(t, causes[most].saver) ? elsewhere : causes[most].change);
}

/* Find waits between ranks if no rank is slower than the others overall. */
static void
look_at_messages(const struct rank_times *t, struct advice *a)
{
    double work = t->rank[slowest_rank(t)].work, ideal = isnan(t->ideal) ? work : t->ideal;

    if (t->ranks < 2)
        return;
    if (is_worse(a, (ideal - work) / t->seconds, LEAST))
        snprintf(a->text, RANK_ADVICE, "ranks wait %d %% for one another in turn: %s", percent(a->loss),
                 mean_share(t, PART_WAIT) < LEAST ? elsewhere
                 : t->in_use[SAVER_STAGE]         ? "their reading; a faster disk"
                                                  : "their reading; --stage");
    if (is_worse(a, (t->seconds - ideal) / t->seconds, LEAST))
        snprintf(a->text, RANK_ADVICE,
                 "messages between the ranks take %d %%: a larger --batch or --accumulate, or a faster network",
                 percent(a->loss));
}

/* Find computing that waits for a core, because threads or other processes share it. */
static void
look_at_cores(const struct rank_times *t, struct advice *a)
{
    double factor[FACTOR_COUNT], lost = 0;
    unsigned r;

    for (r = 0; r < t->ranks; r++)
        lost += rank_time_cores(&t->rank[r]).lost;
    rank_times_factors(t, factor);
    if (is_worse(a, lost / (t->seconds * t->ranks), LEAST_CORES))
        snprintf(a->text, RANK_ADVICE,
                 "ranks had %d %% of their cores: fewer ranks on a host or a smaller -j; look for other processes",
                 percent(factor[FACTOR_CORES]));
}

static const char *
to_read(const struct rank_times *t)
{
    if (t->in_use[SAVER_CACHE])
        return t->in_use[SAVER_STAGE] ? "a faster disk" : "--stage";
    return t->in_use[SAVER_STAGE] ? "--cache" : "--cache or --stage";
}

static const char *
to_evaluate(const struct rank_times *t)
{
    if (t->in_use[SAVER_NO_TTA])
        return t->in_use[SAVER_NO_BOOTSTRAP] ? "a smaller validation split" : "a smaller --bootstrap";
    return t->in_use[SAVER_NO_BOOTSTRAP] ? "--tta none" : "a smaller --bootstrap, or --tta none";
}

static void
look_at_parts(const struct rank_times *t, struct advice *a)
{
    if (is_worse(a, mean_share(t, PART_WAIT), LEAST))
        snprintf(a->text, RANK_ADVICE, "images are waited for %d %% of the time: %s", percent(a->loss), to_read(t));
    if (!t->in_use[SAVER_CACHE_DEVICE] && is_worse(a, mean_share(t, PART_COPY), LEAST))
        snprintf(a->text, RANK_ADVICE, "copies to the GPU take %d %%: --cache device", percent(a->loss));
    if (is_worse(a, mean_share(t, PART_SAVE), LEAST))
        snprintf(a->text, RANK_ADVICE, "checkpoints take %d %%: a longer --checkpoint-every", percent(a->loss));
    if (is_worse(a, mean_share(t, PART_EVALUATE), LEAST_EVALUATION))
        snprintf(a->text, RANK_ADVICE, "evaluations take %d %%: %s", percent(a->loss), to_evaluate(t));
}

/* Find idle time of the device that no part explains. */
static void
look_at_device(const struct rank_times *t, struct advice *a)
{
    double left = t->seconds * t->ranks;
    unsigned r, i;

    for (r = 0; r < t->ranks; r++) {
        left -= t->rank[r].busy;
        for (i = 0; i < PART_COUNT; i++)
            if (i != PART_FORWARD && i != PART_BACKWARD && i != PART_UPDATE && i != PART_MEET)
                left -= t->rank[r].parts.seconds[i];
    }
    if (is_worse(a, left / (t->seconds * t->ranks), LEAST))
        snprintf(a->text, RANK_ADVICE, "GPUs wait %d %% for their hosts: a larger --micro-batch", percent(a->loss));
}

char *
rank_times_advice(const struct rank_times *t, char out[RANK_ADVICE])
{
    struct advice a = {.text = out};
    double work = 0;
    bool known = true;
    unsigned r;

    if (t->ranks == 0 || !(t->seconds > 0)) {
        snprintf(out, RANK_ADVICE, "no time was measured");
        return out;
    }
    look_at_slowest(t, &a);
    look_at_messages(t, &a);
    look_at_cores(t, &a);
    look_at_parts(t, &a);
    look_at_device(t, &a);
    for (r = 0; r < t->ranks; r++) {
        work += t->rank[r].work;
        known &= !isnan(t->rank[r].useful);
    }
    if (a.loss <= 0)
        snprintf(out, RANK_ADVICE, "ranks work %d %% of the time: %s", percent(fmin(work / (t->seconds * t->ranks), 1)),
                 known ? "nothing to change" : "their share of the cores is not known");
    return out;
}
