/*
 * rank_times.c - sums over epochs, the ideal network, the factors; see rank_times.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "log/rank_times.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void
rank_times_release(struct rank_times *t)
{
    free(t->rank);
    *t = (struct rank_times){.rank = NULL};
}

static void
add_rank(struct rank_time *sum, const struct rank_time *r)
{
    sum->seconds += r->seconds;
    sum->work += r->work;
    sum->busy += r->busy;
    sum->modelled += r->modelled;
    sum->cpu += r->cpu;
    sum->useful += r->useful;
    sum->threads = r->threads;
    step_times_add(&sum->parts, &r->parts);
}

enum chex_status
rank_times_add(struct rank_times *sum, const struct rank_times *t, struct chex_error *err)
{
    unsigned r;

    if (!sum->rank) {
        sum->rank = calloc(t->ranks, sizeof(*sum->rank));
        if (!sum->rank)
            return error_memory(err);
        sum->ranks = t->ranks;
        for (r = 0; r < t->ranks; r++)
            for (size_t i = 0; i < sizeof(sum->rank[r].host); i++)
                sum->rank[r].host[i] = t->rank[r].host[i];
    }
    if (sum->ranks != t->ranks)
        return error_set(err, CHEX_ERR_BUG, "times of %u ranks and of %u", sum->ranks, t->ranks);
    for (r = 0; r < t->ranks; r++)
        add_rank(&sum->rank[r], &t->rank[r]);
    sum->steps += t->steps;
    sum->seconds += t->seconds;
    sum->ideal += t->ideal;
    memcpy(sum->in_use, t->in_use, sizeof(sum->in_use));
    return CHEX_OK;
}

double
rank_times_ideal(const float *const work[], const size_t count[], unsigned ranks)
{
    double sum = 0;
    unsigned r;
    size_t i;

    for (r = 1; r < ranks; r++)
        if (count[r] != count[0])
            return (double)NAN;
    for (i = 0; i < count[0]; i++) {
        float most = 0;

        for (r = 0; r < ranks; r++)
            most = work[r][i] > most ? work[r][i] : most;
        sum += (double)most;
    }
    return sum;
}

/* ---- factors ----------------------------------------------------------------------------------------------------- */

const struct factor_info factor_info[FACTOR_COUNT] = {
    [FACTOR_PARALLEL] = {"parallel_efficiency", "parallel efficiency"},
    [FACTOR_BALANCE] = {"load_balance", "load balance"},
    [FACTOR_COMMUNICATION] = {"communication_efficiency", "communication"},
    [FACTOR_SERIALISATION] = {"serialisation_efficiency", "serialisation"},
    [FACTOR_TRANSFER] = {"transfer_efficiency", "transfer"},
    [FACTOR_BUSY] = {"device_busy", "device busy"},
    [FACTOR_ROOF] = {"roofline_share", "share of the roofline"},
    [FACTOR_CORES] = {"core_share", "share of the cores"},
};

/* Two clocks may differ by a rounding error, so limit a share to one. */
static double
share(double part, double whole)
{
    double value = whole > 0 ? part / whole : (double)NAN;

    return value > 1 ? 1 : value < 0 ? 0 : value;
}

/* The parts in which a CPU computes; wall: times the number of threads. */
struct computing {
    double cpu, wall;
};

static void
add_computing(struct computing *c, const struct rank_time *r)
{
    static const enum step_part parts[] = {PART_FORWARD, PART_BACKWARD, PART_UPDATE, PART_EVALUATE};
    size_t i;

    for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        c->cpu += isnan(r->busy) ? r->parts.cpu[parts[i]] : (double)NAN;
        c->wall += r->parts.seconds[parts[i]] * r->threads;
    }
}

struct rank_cores
rank_time_cores(const struct rank_time *r)
{
    struct computing c = {.cpu = 0};

    add_computing(&c, r);
    return (struct rank_cores){.share = share(c.cpu, c.wall), .lost = (c.wall - c.cpu) / r->threads};
}

void
rank_times_factors(const struct rank_times *t, double out[FACTOR_COUNT])
{
    double sum = 0, most = 0, busy = 0, modelled = 0, ideal = t->ideal;
    struct computing c = {.cpu = 0};
    unsigned r;

    for (r = 0; r < t->ranks; r++) {
        sum += t->rank[r].useful;
        busy += t->rank[r].busy;
        modelled += t->rank[r].modelled;
        most = t->rank[r].useful > most ? t->rank[r].useful : most;
        add_computing(&c, &t->rank[r]);
    }
    if (isnan(sum))
        most = sum;
    if (ideal < most)
        ideal = most;
    if (ideal > t->seconds)
        ideal = t->seconds;
    out[FACTOR_BALANCE] = share(sum, most * t->ranks);
    out[FACTOR_COMMUNICATION] = share(most, t->seconds);
    out[FACTOR_PARALLEL] = out[FACTOR_BALANCE] * out[FACTOR_COMMUNICATION];
    out[FACTOR_SERIALISATION] = share(most, ideal);
    out[FACTOR_TRANSFER] = share(ideal, t->seconds);
    out[FACTOR_BUSY] = share(busy, t->seconds * t->ranks);
    out[FACTOR_ROOF] = busy > 0 ? modelled / busy : (double)NAN;
    out[FACTOR_CORES] = share(c.cpu, c.wall);
}

/* ---- two runs ---------------------------------------------------------------------------------------------------- */

/* Returns the useful CPU seconds of all threads. */
static double
useful_cpu(const struct rank_times *t)
{
    double sum = 0;
    unsigned r;

    for (r = 0; r < t->ranks; r++)
        sum += t->rank[r].useful * t->rank[r].threads;
    return sum;
}

struct rank_scaling
rank_times_scaling(const struct rank_times *reference, const struct rank_times *t)
{
    double factor[FACTOR_COUNT], useful = useful_cpu(t);
    struct rank_scaling out;

    rank_times_factors(t, factor);
    out.computation = useful > 0 ? useful_cpu(reference) / useful : (double)NAN;
    out.global = factor[FACTOR_PARALLEL] * out.computation;
    return out;
}
