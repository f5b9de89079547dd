/*
 * scale_model.c - see scale_model.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "math/scale_model.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define US         1e-6
#define REACHED    0.85 /* of the nominal bandwidth */
#define CONTENTION 0.05
#define JITTER     0.005
#define BUCKET     7e6
#define SMALL_LAST 1.6e6
#define MEETINGS   20
#define MESSAGE    (2 * US)

const char *const scale_link_name[] = {
    [SCALE_EDR] = "EDR",
    [SCALE_HDR] = "HDR",
    [SCALE_NDR] = "NDR",
    [SCALE_10G] = "10 GbE",
    [SCALE_NVLINK_V100] = "NVLink V100",
    [SCALE_NVLINK_A100] = "NVLink A100",
    [SCALE_NVLINK_H200] = "NVLink H200",
    [SCALE_PCIE] = "PCIe 3",
};

const char *const scale_network_names[] = {
    [SCALE_EDR] = "edr", [SCALE_HDR] = "hdr", [SCALE_NDR] = "ndr", [SCALE_10G] = "10g", NULL};

/* Nominal bandwidth of one direction, bytes/s; seconds of a hop of each algorithm. */
static const struct {
    double nominal, ring_hop, tree_hop;
} links[] = {
    [SCALE_EDR] = {12.5e9, 9.6 * US, 8.5 * US},        [SCALE_HDR] = {25e9, 9.6 * US, 8.5 * US},
    [SCALE_NDR] = {50e9, 9.6 * US, 8.5 * US},          [SCALE_10G] = {1.25e9, 30 * US, 30 * US},
    [SCALE_NVLINK_V100] = {150e9, 3.4 * US, 1.2 * US}, [SCALE_NVLINK_A100] = {300e9, 3.4 * US, 1.2 * US},
    [SCALE_NVLINK_H200] = {450e9, 3.4 * US, 1.2 * US}, [SCALE_PCIE] = {15.75e9, 5.7 * US, 1.9 * US},
};

enum scale_link
scale_nvlink_of(const char *gpu)
{
    if (strstr(gpu, "V100"))
        return SCALE_NVLINK_V100;
    return strstr(gpu, "A100") ? SCALE_NVLINK_A100 : SCALE_NVLINK_H200;
}

/* ---- links ------------------------------------------------------------------------------------------------------- */

unsigned
scale_nodes(const struct scale_machine *m, unsigned ranks)
{
    return (ranks + m->node_ranks - 1) / m->node_ranks;
}

static double
bandwidth(const struct scale_machine *m, unsigned ranks)
{
    double inside = links[m->inside].nominal, outside = links[m->outside].nominal;

    return REACHED * (scale_nodes(m, ranks) == 1 ? inside : fmin(inside, outside));
}

double
scale_ring(const struct scale_machine *m, unsigned ranks, double bytes)
{
    unsigned nodes = scale_nodes(m, ranks);
    double steps = 2.0 * (ranks - 1), between = 2.0 * (nodes - 1);
    double latency = (steps - between) * links[m->inside].ring_hop + between * links[m->outside].ring_hop;

    if (ranks == 1)
        return 0;
    if (nodes > 1 && bytes >= 4096.0 * ranks)
        latency *= 1.9;
    return 8.4 * US + latency + bytes * steps / ranks / bandwidth(m, ranks);
}

double
scale_tree(const struct scale_machine *m, unsigned ranks, double bytes)
{
    unsigned nodes = scale_nodes(m, ranks), local = (ranks + nodes - 1) / nodes;
    double latency = 2 * ((local - 1) * links[m->inside].tree_hop + ceil(log2(nodes)) * links[m->outside].tree_hop);

    return ranks == 1 ? 0 : 4.4 * US + latency + 2 * bytes / (0.9 * 0.915 * 0.7 * bandwidth(m, ranks));
}

double
scale_allreduce(const struct scale_machine *m, unsigned ranks, double bytes)
{
    return fmin(scale_ring(m, ranks, bytes), scale_tree(m, ranks, bytes));
}

double
scale_meetings(const struct scale_machine *m, unsigned ranks)
{
    double hop = links[scale_nodes(m, ranks) > 1 ? m->outside : m->inside].ring_hop;

    return ranks == 1 ? 0 : MEETINGS * (hop + (ranks - 1) * MESSAGE);
}

/* ---- a step ------------------------------------------------------------------------------------------------------ */

/* Blom's score: the normal quantile of (N - 3/8) / (N + 1/4), by bisection. */
double
scale_largest(unsigned ranks)
{
    double wanted = (ranks - 0.375) / (ranks + 0.25), low = 0, high = 10;
    unsigned i;

    for (i = 0; ranks > 1 && i < 60; i++) {
        double middle = (low + high) / 2;

        if (0.5 * erfc(-middle / sqrt(2)) < wanted)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Returns the number of layers at the start of the arena that form the last bucket. */
static size_t
last_bucket(const struct scale_job *job)
{
    double size = 0;
    size_t count = 0;

    for (; count < job->layers && size + 4 * job->layer[count].parameters <= SMALL_LAST; count++)
        size += 4 * job->layer[count].parameters;
    return count;
}

struct scale_step
scale_step(const struct scale_job *job, unsigned ranks, double images)
{
    struct scale_step s = {.forward = job->forward * images, .update = job->update};
    size_t first = last_bucket(job), i;
    double now = s.forward, free = 0, waiting = 0;

    for (i = job->layers; i-- > 0;) {
        double took = job->backward * images * job->layer[i].share;

        now += took + (ranks > 1 ? fmin(took, fmax(0, free - now)) * CONTENTION : 0);
        waiting += job->layer[i].parameters;
        /* A bucket ends with the layer that fills it, before the layers of the last bucket, and with the first one. */
        if (4 * waiting < BUCKET && i != first && i != 0)
            continue;
        if (i < first && i != 0)
            continue;
        free = fmax(free, now) + scale_allreduce(&job->machine, ranks, waiting * job->wire + (i == 0 ? job->tail : 0));
        waiting = 0;
    }
    s.backward = now - s.forward;
    s.exposed = fmax(now, free) - now;
    s.straggler = JITTER * scale_largest(ranks) * ((job->forward + job->backward) * images + job->update);
    s.total = s.forward + s.backward + s.exposed + s.update + s.straggler;
    return s;
}
