/*
 * engine.c - cuda_layout_make(): which convolutions are those of cuDNN, then the layout
 *
 * A convolution of cuDNN is plain: what it reads was normalised and written before, what it writes is summed behind it,
 * and its gradient of data is masked by a launch of its own.  So `auto` makes two layouts, one without cuDNN and one in
 * which it does all that it may win, and compares them node by node, by the seconds that -n -v prints (cost.h).  A
 * normalisation that only one of both writes counts as a part of the convolution behind it.
 *
 * Nothing of this was measured.  Before Hopper both engines have the same instructions: there cuDNN is not expected to
 * win anything, nor on chips that came later with neither wgmma nor tcgen05.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/plan/build.h"
#include "cuda/plan/place.h"

#include <stdlib.h>

#define WORTH 0.02 /* of all seconds: less than that is no reason for another engine, by figures that nobody measured */

/* A slice of a larger slab: cuDNN packs it before each product, as its workspace shows. */
static bool
is_slice(const struct graph *g, const struct graph_slice *s)
{
    return s->channels < g->buffer[s->buffer].channels;
}

/* All that cuDNN does: the first convolution reads cells. */
static void
take_all(const struct graph *g, bool slices, bool *is)
{
    size_t i;

    for (i = 0; i < g->node_count; i++) {
        const struct graph_node *n = &g->node[i];

        is[i] = n->op == GRAPH_CONV && n->in.buffer != g->input &&
                (slices || (!is_slice(g, &n->in) && !is_slice(g, &n->out)));
    }
}

static bool
has_faster_instructions(const struct cuda_chip *chip)
{
    return chip->major == 9 || chip->major == 10;
}

/* Partial sums of gradients of weights are read by one launch for many nodes. */
static void
add_partial_sums(const struct cuda_layout *l, const struct cuda_gpu *gpu, double *seconds)
{
    const struct cuda_table *table = &l->table[CUDA_TABLE_SPLITS];
    const struct splits_entry *entry = table->host;
    const double many = 1e12, byte = cuda_memory_seconds(gpu, many) / many;
    size_t i, k;

    for (i = 0; i < table->bytes / sizeof(*entry); i++)
        for (k = 0; k < l->graph->node_count; k++) {
            const struct graph_node *n = &l->graph->node[k];
            unsigned each = PARTIAL_SIZE(entry[i].splits, l->chip.value_bytes);

            if (n->op == GRAPH_CONV && l->graph->param[n->weight].offset == entry[i].gradient)
                seconds[k] += byte * each * entry[i].splits * entry[i].out * entry[i].in * entry[i].taps;
        }
}

/* Seconds of the launches of each node, forward and backward. */
static void
time_nodes(const struct cuda_layout *l, const struct cuda_gpu *gpu, double *seconds)
{
    static const enum cuda_list_id lists[] = {CUDA_LIST_FORWARD, CUDA_LIST_BACKWARD};
    const struct cuda_place place = cuda_place_of(l);
    struct cuda_work work;
    size_t i, k;

    for (i = 0; i < sizeof(lists) / sizeof(*lists); i++)
        for (k = 0; k < l->list[lists[i]].count; k++) {
            const struct cuda_op *op = &l->list[lists[i]].op[k];

            if (op->node == CUDA_NO_NODE)
                continue;
            cuda_work_of(&place, op, &work);
            seconds[op->node] += cuda_seconds(gpu, op, &work);
        }
    add_partial_sums(l, gpu, seconds);
}

/* A layout with these of cuDNN, only to time its nodes. */
static enum chex_status
try_layout(const struct plan_options *o, const struct cuda_chip *chip, const bool *is, double *seconds,
           struct chex_error *err)
{
    const struct cuda_gpu gpu = cuda_gpu_of(chip->major, chip->processors);
    struct plan_options training = *o;
    struct cuda_chip any = *chip;
    struct cuda_layout l;
    enum chex_status status;

    any.refused = NULL;    /* the choice does not know what cuDNN refuses */
    training.train = true; /* a plan that only scores has the bits of one that trains */
    status = cuda_layout_with(&l, &training, &any, is, 0, err);
    if (status == CHEX_OK)
        time_nodes(&l, &gpu, seconds);
    cuda_layout_free(&l);
    return status;
}

/* The convolution that a launch of the node is for, of those that cuDNN may do. */
static size_t
whose(const struct cuda_fold *fold, const struct graph *g, size_t node, const bool *is)
{
    const struct graph_node *reader = fold->reader[node];

    return reader && is[reader - g->node] ? (size_t)(reader - g->node) : node;
}

/* Add a node's seconds to those of the convolution that it is a part of. */
static void
gather(const struct cuda_fold *fold, const struct graph *g, const bool *is, double *seconds)
{
    size_t i;

    for (i = 0; i < g->node_count; i++) {
        size_t to = whose(fold, g, i, is);

        if (to == i)
            continue;
        seconds[to] += seconds[i];
        seconds[i] = 0;
    }
}

/* Leave to cuDNN what takes less with it, or nothing. */
static void
keep_faster(size_t count, const double *own, const double *cudnn, bool *is)
{
    double all = 0, less = 0;
    size_t i;

    for (i = 0; i < count; i++) {
        is[i] = is[i] && cudnn[i] < own[i];
        all += own[i];
        less += is[i] ? own[i] - cudnn[i] : 0;
    }
    for (i = 0; i < count; i++)
        is[i] = is[i] && less >= WORTH * all;
}

static enum chex_status
compare(const struct plan_options *o, const struct cuda_chip *chip, const bool *none, bool *is, double *own,
        double *cudnn, struct chex_error *err)
{
    const struct graph *g = o->graph;
    struct cuda_fold fold = {.norm = NULL};
    enum chex_status status = cuda_fold_make(&fold, g, none, err);

    if (status == CHEX_OK)
        status = try_layout(o, chip, none, own, err);
    if (status == CHEX_OK)
        status = try_layout(o, chip, is, cudnn, err);
    if (status == CHEX_OK) {
        gather(&fold, g, is, own);
        gather(&fold, g, is, cudnn);
        keep_faster(g->node_count, own, cudnn, is);
    }
    cuda_fold_free(&fold);
    return status;
}

static enum chex_status
choose(const struct plan_options *o, const struct cuda_chip *chip, bool *is, struct chex_error *err)
{
    size_t count = o->graph->node_count;
    double *own = calloc(count, sizeof(*own)), *cudnn = calloc(count, sizeof(*cudnn));
    bool *none = calloc(count, sizeof(*none));
    enum chex_status status;

    take_all(o->graph, false, is);
    if (own && cudnn && none)
        status = compare(o, chip, none, is, own, cudnn, err);
    else
        status = error_memory(err);
    free(own);
    free(cudnn);
    free(none);
    return status;
}

enum chex_status
cuda_layout_make(struct cuda_layout *l, const struct plan_options *options, const struct cuda_chip *chip,
                 uintptr_t base, struct chex_error *err)
{
    bool *is = calloc(options->graph->node_count, sizeof(*is));
    enum chex_status status = is ? CHEX_OK : error_memory(err);

    *l = (struct cuda_layout){.options = NULL};
    if (is && chip->cudnn && options->engine == ENGINE_CUDNN)
        take_all(options->graph, true, is);
    else if (is && chip->cudnn && options->engine == ENGINE_AUTO && has_faster_instructions(chip))
        status = choose(options, chip, is, err);
    if (status == CHEX_OK)
        status = cuda_layout_with(l, options, chip, is, base, err);
    free(is);
    return status;
}
