/*
 * predict.c - models the time of an epoch on another number of ranks from the measured parts of a run
 *
 * Of one run, the base, for an epoch: its images I, its steps, and the seconds of each part, summed over its R ranks.
 * Then on N ranks with the global batch G:
 *
 *     step         scale_step() of ceil(G / N) images on each rank, with forward / I and backward / I for an image and
 *                  update / (R x steps) for a step; plus (data wait + copy) / I for each image
 *     last step    as a step, with the images that are left over but at most ceil(G / N): rank 0 has the most of them
 *                  (data/order.h)
 *     evaluation   evaluation / N: the ranks share it
 *     save, rest   the longest save of a rank, and the mean of the rest (bookkeeping); not shared
 *     meetings     scale_meetings()
 *
 * Waiting for other ranks (sums, peers) is left out of the measurement, because the model replaces it.
 *
 * The error bar: each of the other runs is predicted from the same base.  The factor is the largest of
 * predicted / measured and measured / predicted; the bar is the time divided by the factor to the time x the factor.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/scaling/scaling.h"

#include "run/scale_layers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CROP_MAX      4096
#define SECONDS_LEAST 1e-12 /* of an image */
#define SECONDS_MOST  1e12  /* of all parts */

/* Seconds of an epoch of the base. */
struct parts {
    double forward, backward, data; /* of an image */
    double update;                  /* of a step */
    double evaluation;              /* of all ranks together */
    double save, rest;
};

/* CHEX_ERR_DAMAGED: the parts are those of no run; every modelled time is then finite and above 0 */
static enum chex_status
find_parts(const struct scaling_run *base, struct parts *out, struct chex_error *err)
{
    const struct rank_times *t = &base->times;
    double sum[PART_COUNT] = {0}, save = 0, rest = 0, all;
    double images = base->epochs * (double)base->images;
    unsigned r, i;

    for (r = 0; r < t->ranks; r++) {
        for (i = 0; i < PART_COUNT; i++)
            sum[i] += t->rank[r].parts.seconds[i];
        save = fmax(save, t->rank[r].parts.seconds[PART_SAVE]);
        rest += rank_time_rest(&t->rank[r]) / t->ranks;
    }
    *out = (struct parts){.forward = sum[PART_FORWARD] / images,
                          .backward = sum[PART_BACKWARD] / images,
                          .data = (sum[PART_WAIT] + sum[PART_COPY]) / images,
                          .update = sum[PART_UPDATE] / t->ranks / (double)base->steps,
                          .evaluation = sum[PART_EVALUATE] / base->epochs,
                          .save = save / base->epochs,
                          .rest = rest / base->epochs};
    all = out->forward + out->backward + out->data + out->update + out->evaluation + out->save + out->rest;
    if (out->forward + out->backward < SECONDS_LEAST || !(all <= SECONDS_MOST))
        return error_set(err, CHEX_ERR_DAMAGED, "'%s' has no times of forward and backward", base->path);
    return CHEX_OK;
}

static enum chex_status
open_graph(const struct scaling_run *base, struct graph **out, struct chex_error *err)
{
    double crop = strtod(base->fact[FACT_CROP], NULL);

    if (!(crop >= 1 && crop <= CROP_MAX) || base->outputs == 0 || base->outputs > FINDINGS_MAX)
        return error_set(err, CHEX_ERR_DAMAGED, "'%s': run.json names no crop or no findings", base->path);
    return graph_new(base->fact[FACT_MODEL], (unsigned)crop, base->outputs, out, err);
}

/* ---- an epoch ---------------------------------------------------------------------------------------------------- */

static enum scale_link
link_inside(const struct scaling_run *base)
{
    if (!base->cuda)
        return SCALE_PCIE; /* messages in the memory of a host; assumption */
    return scale_nvlink_of(base->fact[FACT_DEVICE]);
}

/* Returns the seconds of a step; images: the most of any rank. */
static double
whole_step(const struct scale_job *job, const struct parts *parts, unsigned ranks, uint64_t images,
           struct scale_step *out)
{
    *out = scale_step(job, ranks, (double)images);
    return out->total + parts->data * (double)images;
}

/* Models an epoch.  Sets the parts and the sum of *out; its ranks and its global batch are set already. */
static void
model_epoch(const struct scale_job *job, const struct parts *parts, uint64_t images, struct scaling_epoch *out)
{
    uint64_t steps = images / out->global_batch, left = images % out->global_batch;
    struct scale_step last;

    out->nodes = scale_nodes(&job->machine, out->ranks);
    out->step_images = (uint64_t)ceil((double)out->global_batch / out->ranks);
    out->data = parts->data * (double)out->step_images;
    out->steps = (double)steps * whole_step(job, parts, out->ranks, out->step_images, &out->step);
    if (left > 0)
        out->steps += whole_step(job, parts, out->ranks, left < out->step_images ? left : out->step_images, &last);
    out->evaluation = parts->evaluation / out->ranks;
    out->save = parts->save;
    out->rest = parts->rest;
    out->meetings = scale_meetings(&job->machine, out->ranks);
    out->seconds = out->steps + out->evaluation + out->save + out->rest + out->meetings;
}

/* ---- all predictions --------------------------------------------------------------------------------------------- */

/* The other runs by the same prediction, and the factor of the error bar. */
static void
check_others(struct scaling *s, struct scale_job job, const struct parts *parts)
{
    struct scaling_run *r;

    s->prediction.factor = (double)NAN;
    for (r = s->run; r < s->run + s->count; r++) {
        struct scaling_epoch e = {.ranks = r->ranks, .global_batch = r->global_batch};

        r->modelled = (double)NAN;
        if (r == s->prediction.base || r->differs[0])
            continue;
        job.machine.node_ranks = r->node_ranks;
        model_epoch(&job, parts, r->images, &e);
        r->modelled = e.seconds;
        s->prediction.factor = fmax(s->prediction.factor,
                                    fmax(e.seconds / r->epoch_seconds, r->epoch_seconds / e.seconds));
    }
}

/* The points of the plot: the ranks of the base, then twice as many, up to those of the prediction. */
static void
model_points(struct scaling_prediction *p, const struct scale_job *job, const struct parts *parts, bool strong)
{
    const struct scaling_run *base = p->base;
    unsigned ranks = base->ranks;

    for (p->points = 0; p->points < SCALING_MODELLED; ranks = ranks * 2 < p->ranks ? ranks * 2 : p->ranks) {
        struct scaling_epoch *e = &p->point[p->points++];

        *e = (struct scaling_epoch){
            .ranks = ranks,
            .global_batch = strong ? base->global_batch : (base->global_batch * ranks + base->ranks - 1) / base->ranks};
        model_epoch(job, parts, base->images, e);
        if (ranks == p->ranks)
            break;
    }
}

static unsigned
most_on_a_node(const struct scaling *s)
{
    unsigned most = 1;
    size_t i;

    for (i = 0; i < s->count; i++)
        most = s->run[i].node_ranks > most ? s->run[i].node_ranks : most;
    return most;
}

const struct scaling_epoch *
scaling_predicted(const struct scaling *s)
{
    return &s->prediction.point[s->prediction.points - 1];
}

double
scaling_speedup(const struct scaling *s, const struct scaling_epoch *e)
{
    return s->reference->ranks * s->reference->epoch_seconds / e->seconds;
}

enum chex_status
scaling_predict(struct scaling *s, const char *base, struct chex_error *err)
{
    const struct inspect_options *o = s->in->options;
    struct scaling_prediction *p = &s->prediction;
    struct scale_layer *layer = NULL;
    struct graph *graph = NULL;
    struct parts parts;
    enum chex_status status;
    size_t i;

    for (i = 0; i + 1 < s->count && s->run[i].path != base; i++)
        continue;
    p->base = &s->run[i];
    p->ranks = o->predict;
    p->machine = (struct scale_machine){.node_ranks = o->node ? o->node : most_on_a_node(s),
                                        .inside = link_inside(p->base),
                                        .outside = (enum scale_link)o->network};
    status = open_graph(p->base, &graph, err);
    if (status == CHEX_OK)
        status = scale_layers_new(graph, &layer, err);
    if (status == CHEX_OK)
        status = find_parts(p->base, &parts, err);
    if (status == CHEX_OK) {
        struct scale_job job = {.machine = p->machine,
                                .layer = layer,
                                .layers = graph->node_count,
                                .wire = p->base->wire,
                                .tail = 4.0 * (double)graph->stat_floats};

        job.forward = parts.forward;
        job.backward = parts.backward;
        job.update = parts.update;
        model_points(p, &job, &parts, s->kind == SCALING_STRONG);
        check_others(s, job, &parts);
    }
    graph_free(graph);
    free(layer);
    return status;
}
