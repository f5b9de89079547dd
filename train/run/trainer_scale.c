/*
 * trainer_scale.c - models steps and epochs of a dry run on several ranks; see trainer.h
 *
 * The time of one rank comes from the cost model of its device (plan_model()), the sums over the ranks from the model
 * of scale (math/scale_model.h).  An epoch has whole steps, a last step with the images that are left, the evaluation,
 * whose micro-batches the ranks share, and the meetings of the ranks.  In the last step, rank 0 has the most images
 * (data/order.h).  All micro-batches are whole ones, because padding takes time on a GPU.  Reading images, checkpoints
 * and the bootstrap are left out.  For one rank, trainer_estimate() gives the same time of an epoch.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "eval/evaluate.h"
#include "run/scale_layers.h"
#include "run/trainer_private.h"

#include <stdlib.h>

/* Returns the seconds of an evaluation of the validation split. */
static double
evaluation_seconds(const struct trainer *t, const struct plan_model *m, unsigned ranks)
{
    const struct trainer_task *task = &t->task;
    struct crop view[EVALUATE_VIEWS];
    uint64_t batches;

    if (task->validation < 0)
        return 0;
    batches = order_steps(trainer_evaluated_images(task, task->validation), task->micro);
    return (double)order_steps(batches, ranks) * m->score.seconds *
           evaluate_views(t->job.o->tta, task->side, t->engine.options.source, view);
}

/* Returns the seconds of an epoch with this many ranks. */
static double
epoch_seconds(const struct trainer *t, const struct plan_model *m, const struct scale_job *job, unsigned ranks)
{
    const struct trainer_task *task = &t->task;
    uint64_t each = (uint64_t)task->each * task->micro, global = each * ranks, left = task->samples.count % global;
    double seconds = (double)(task->samples.count / global) * scale_step(job, ranks, (double)each).total;

    if (left > 0) {
        uint64_t images = order_steps(left < each ? left : each, task->micro) * task->micro;

        seconds += scale_step(job, ranks, (double)images).total;
    }
    return seconds + evaluation_seconds(t, m, ranks) + scale_meetings(&job->machine, ranks);
}

enum chex_status
trainer_scale(const struct trainer *t, const struct plan_model *m, const struct scale_machine *machine, unsigned ranks,
              struct trainer_scale *out, struct chex_error *err)
{
    const struct trainer_task *task = &t->task;
    struct scale_job job = {.machine = *machine,
                            .layers = task->graph->node_count,
                            .wire = t->engine.options.wire == WIRE_BF16 ? 2 : 4,
                            .tail = 4.0 * (double)task->graph->stat_floats,
                            .update = m->update};
    struct scale_layer *layer;
    enum chex_status status = scale_layers_new(task->graph, &layer, err);
    double alone, last = m->backward / task->each; /* sums overlap only with backward of the last micro-batch */

    *out = (struct trainer_scale){.ranks = ranks, .nodes = scale_nodes(machine, ranks)};
    if (status != CHEX_OK)
        return status;
    job.layer = layer;
    job.forward = (m->forward + m->backward - last) / m->images;
    job.backward = last / m->images;
    out->global_batch = (uint64_t)m->images * ranks;
    out->step = scale_step(&job, ranks, m->images);
    alone = scale_step(&job, 1, m->images).total;
    out->step_efficiency = alone / out->step.total;
    out->epoch = epoch_seconds(t, m, &job, ranks);
    out->speedup = epoch_seconds(t, m, &job, 1) / out->epoch;
    free(layer);
    return CHEX_OK;
}
