/*
 * record.c - launches the parts of a step, one by one or as a graph; see plan.h
 *
 * A graph is recorded by queueing its launches while the stream captures.  So both ways share the same code.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/run/plan.h"

#include "backend/ranges.h"

/* ---- launches ---------------------------------------------------------------------------------------------------- */

struct cuda_op
cuda_with_exchange(const struct plan *plan, const struct cuda_op *op)
{
    struct cuda_exchange *exchange = plan->exchange_at[plan->result];
    struct cuda_op own = *op;

    if (op->kernel == CUDA_STEP_END) {
        own.args.end.block = &exchange->end;
    } else if (op->kernel == CUDA_STEP_DECIDE) {
        own.args.decide.block = &exchange->step;
        own.args.decide.result = &exchange->made;
    }
    return own;
}

/* after_kernel: the previous entry of the stream is an own kernel, so programmatic dependent launch is possible. */
static enum chex_status
put_op(struct plan *plan, const struct cuda_op *shared, bool after_kernel, struct chex_error *err)
{
    const struct cuda_op own = cuda_with_exchange(plan, shared), *op = &own;
    const struct cuda_kernel *set = plan->layout.chip.set;
    const char *name = op->by_cudnn ? "a convolution of cuDNN" : set[op->kernel].name;
    bool early = plan->facts.pdl && after_kernel && !plan->options.no_graph;
    enum chex_status status = op->by_cudnn ? cudnn_run(plan->cudnn, op, plan->compute, err) : CHEX_OK;
    cudaError_t e = op->by_cudnn ? cudaSuccess : (early ? cuda_launch_early : cuda_launch)(set, op, plan->compute);

    if (e != cudaSuccess)
        return plan->options.no_graph ? cuda_check_kernel(e, name, err) : cuda_check(e, name, err);
    return status == CHEX_OK && plan->options.no_graph ? cuda_drain_kernel(plan, name, err) : status;
}

static enum chex_status
put_list(struct plan *plan, enum cuda_list_id id, struct chex_error *err)
{
    const struct cuda_list *list = &plan->layout.list[id];
    enum chex_status status = CHEX_OK;
    bool after_kernel = false; /* a copy or an event may precede a list */
    size_t i;

    for (i = 0; i < list->count && status == CHEX_OK; i++) {
        size_t summed = plan->summed;

        status = put_op(plan, &list->op[i], after_kernel, err);
        if (status == CHEX_OK && id == CUDA_LIST_BACKWARD && list->op[i].final != SIZE_MAX)
            status = cuda_sums_start(plan, list->op[i].final, err);
        after_kernel = !list->op[i].by_cudnn && plan->summed == summed;
    }
    return status;
}

/* Records an event of the clock; during capture it becomes a node of the graph. */
static enum chex_status
mark(struct plan *plan, const struct cuda_clock *c, int event, struct chex_error *err)
{
    unsigned flags = plan->options.no_graph ? cudaEventRecordDefault : cudaEventRecordExternal;

    return c ? cuda_check(cudaEventRecordWithFlags(c->event[event], plan->compute, flags), "an event", err) : CHEX_OK;
}

static enum chex_status
put_begin(struct plan *plan, unsigned holds, struct chex_error *err)
{
    const struct cuda_layout *l = &plan->layout;
    enum chex_status status = holds & HOLDS_BEGIN ? put_list(plan, CUDA_LIST_BEGIN, err) : CHEX_OK;

    if (status == CHEX_OK && holds & HOLDS_PACK)
        status = put_list(plan, holds & HOLDS_AVERAGE ? CUDA_LIST_PACK_AVERAGE : CUDA_LIST_PACK, err);
    if (status == CHEX_OK && holds & HOLDS_CLEAR)
        status = cuda_check(cudaMemsetAsync((void *)l->arena[ARENA_GRADIENTS], 0,
                                            l->graph->param_floats * sizeof(float), plan->compute),
                            "clearing gradients", err);
    return status;
}

static enum chex_status
put_forward(struct plan *plan, unsigned holds, const struct cuda_clock *c, struct chex_error *err)
{
    enum cuda_list_id list = holds & HOLDS_FORWARD   ? CUDA_LIST_FORWARD
                             : holds & HOLDS_AVERAGE ? CUDA_LIST_SCORE_AVERAGE
                                                     : CUDA_LIST_SCORE;
    enum chex_status status = put_list(plan, holds & OF_SLOT ? CUDA_LIST_INPUT1 : CUDA_LIST_INPUT0, err);

    if (status == CHEX_OK)
        status = put_list(plan, list, err);
    return status == CHEX_OK ? mark(plan, c, CLOCK_FORWARD, err) : status;
}

static enum chex_status
put_update(struct plan *plan, const struct cuda_clock *c, struct chex_error *err)
{
    enum chex_status status = put_list(plan, CUDA_LIST_UPDATE, err);

    return status == CHEX_OK ? mark(plan, c, CLOCK_UPDATE, err) : status;
}

static enum chex_status
put_backward(struct plan *plan, const struct cuda_clock *c, struct chex_error *err)
{
    enum chex_status status = put_list(plan, CUDA_LIST_BACKWARD, err);

    return status == CHEX_OK ? mark(plan, c, CLOCK_BACKWARD, err) : status;
}

/* Queues the end of this rank's part and the sums over the ranks. */
static enum chex_status
put_sums(struct plan *plan, const struct cuda_clock *c, struct chex_error *err)
{
    bool sums = cuda_sums_on_device(plan);
    enum chex_status status = put_list(plan, CUDA_LIST_END, err);

    if (status == CHEX_OK && sums)
        status = cuda_sums_end(plan, err);
    return status == CHEX_OK && sums ? mark(plan, c, CLOCK_SUMS, err) : status;
}

static enum chex_status
put_all(struct plan *plan, unsigned holds, struct chex_error *err)
{
    unsigned result = holds & OF_RESULT ? 1 : 0;
    const struct cuda_clock *c = holds & HOLDS_UPDATE ? &plan->whole[result] : NULL;
    enum chex_status status = mark(plan, c, holds & HOLDS_FORWARD ? CLOCK_BEGIN : CLOCK_BACKWARD, err);

    plan->summed = 0;
    plan->result = result;
    if (holds & HOLDS_END && cuda_sums_on_device(plan))
        cuda_sums_begin(plan);
    if (status == CHEX_OK)
        status = put_begin(plan, holds, err);
    if (status == CHEX_OK && holds & (HOLDS_FORWARD | HOLDS_SCORE)) {
        ranges_push(PART_FORWARD);
        status = put_forward(plan, holds, c, err);
        ranges_pop();
    }
    if (status == CHEX_OK && holds & HOLDS_BACKWARD) {
        ranges_push(PART_BACKWARD);
        status = put_backward(plan, c, err);
        ranges_pop();
    }
    if (status == CHEX_OK && holds & HOLDS_END) {
        ranges_push(PART_REDUCE);
        status = put_sums(plan, c, err);
        ranges_pop();
    }
    if (status == CHEX_OK && holds & HOLDS_UPDATE) {
        ranges_push(PART_UPDATE);
        status = put_update(plan, c, err);
        ranges_pop();
    }
    return status;
}

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

static enum chex_status
record(struct plan *plan, unsigned holds, cudaGraphExec_t *out, struct chex_error *err)
{
    cudaGraph_t graph = NULL;
    cudaError_t e = cudaStreamBeginCapture(plan->compute, cudaStreamCaptureModeThreadLocal), ended;
    enum chex_status status = cuda_check(e, "recording a step", err);

    if (status != CHEX_OK)
        return status;
    status = put_all(plan, holds, err);
    ended = cudaStreamEndCapture(plan->compute, &graph); /* also after an error: it ends the capture */
    if (status == CHEX_OK)
        status = cuda_check(ended, "recording a step", err);
    if (status == CHEX_OK)
        status = cuda_check(cudaGraphInstantiateWithFlags(out, graph, cudaGraphInstantiateFlagUseNodePriority),
                            "making a graph of a step", err);
    if (graph)
        (void)cudaGraphDestroy(graph);
    return status;
}

static struct cuda_graph *
find_graph(struct plan *plan, unsigned holds)
{
    unsigned i;

    for (i = 0; i < plan->graphs; i++)
        if (plan->graph[i].holds == holds)
            return &plan->graph[i];
    return NULL;
}

enum chex_status
cuda_run(struct plan *plan, unsigned holds, struct chex_error *err)
{
    struct cuda_graph *g = find_graph(plan, holds);

    if (holds & ~(unsigned)(HOLDS_SCORE | HOLDS_PACK | HOLDS_AVERAGE | OF_SLOT | OF_RESULT))
        plan->folded = ARENA_COUNT; /* training reuses their memory and changes the parameters */
    if (plan->options.no_graph)
        return put_all(plan, holds, err);
    if (!g) {
        struct cuda_graph made = {.holds = holds};
        enum chex_status status;

        if (plan->graphs == CUDA_GRAPHS)
            return error_set(err, CHEX_ERR_BUG, "a step has too many forms");
        status = record(plan, holds, &made.exec, err);
        if (status != CHEX_OK)
            return status;
        g = &plan->graph[plan->graphs++];
        *g = made;
    }
    return cuda_check(cudaGraphLaunch(g->exec, plan->compute), "launching a step", err);
}
