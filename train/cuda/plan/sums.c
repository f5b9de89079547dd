/*
 * sums.c - per-channel partial sums for BN: which launch writes them and which launch reduces them; see build.h
 *
 * The epilogue of a producer writes one row of partial sums per CTA.  The next launch that reads the slab through a BN
 * reduces the rows in its prologue, in every CTA.  If that takes longer in the cost model of gpu.h than with a
 * reduce_sums launch before it, such a launch reduces the rows first.
 *
 * rows   float [blocks][2][channels]; blocks: CTAs of the producer along the pixels
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/plan/build.h"
#include "cuda/plan/cost_seconds.h"

/* ---- partial sums and reduce_sums -------------------------------------------------------------------------------- */

struct build_sums
build_no_sums(void)
{
    return (struct build_sums){.piece = BUILD_NONE};
}

struct build_sums
build_allocate_sums(struct cuda_builder *b, unsigned blocks, unsigned channels)
{
    return (struct build_sums){.piece = build_allocate(b, (size_t)blocks * 2 * channels * sizeof(float)),
                               .blocks = blocks,
                               .channels = channels};
}

struct channel_sums
build_sums_at(struct cuda_builder *b, const struct build_sums *sums)
{
    return (struct channel_sums){.partial = build_at(b, sums->piece),
                                 .running_mean = sums->running_mean,
                                 .blocks = sums->blocks,
                                 .channels = sums->channels};
}

/* Returns the time of the readers for reducing `rows` rows in their prologue. */
static double
prologue_seconds(const struct cuda_builder *b, unsigned rows, const struct build_readers *r)
{
    return cuda_rows_seconds(&b->gpu, r->blocks, r->at_once, rows, r->channels);
}

/*
 * A reduce_sums launch must save this fraction of its time beyond it.  Otherwise plans would have up to 10 % more
 * launches, which save less than 0.3 % of a step in the model.
 */
#define MIN_SAVING 0.5

/* Returns the best number of rows; `from` means that no reduce_sums launch is worth it. */
static unsigned
fold_to(const struct cuda_builder *b, unsigned from, unsigned channels, const struct build_readers *readers)
{
    double best = prologue_seconds(b, from, readers);
    unsigned to, chosen = from;

    for (to = 2; to <= from / 2; to *= 2) {
        unsigned rows = cuda_blocks(from, cuda_blocks(from, to)); /* no CTA is without rows */
        double launch = b->layout->chip.many_sums ? 0 : cuda_reduce_seconds(&b->gpu, from, rows, channels);
        double seconds = (1 + MIN_SAVING) * launch + prologue_seconds(b, rows, readers);

        if (seconds < best) {
            best = seconds;
            chosen = rows;
        }
    }
    return chosen;
}

void
build_reduce_sums(struct cuda_builder *b, struct build_sums *sums, const struct build_readers *readers)
{
    unsigned to = fold_to(b, sums->blocks, sums->channels, readers);
    struct build_sums fewer;
    struct cuda_op op;

    if (to == sums->blocks)
        return;
    fewer = build_allocate_sums(b, to, sums->channels);
    fewer.running_mean = sums->running_mean;
    fewer.norm = sums->norm;
    fewer.first = sums->first;
    op = build_op(b, CUDA_REDUCE_SUMS, to);
    op.y = cuda_blocks(sums->channels, NORM_CHANNELS);
    op.args.reduce_sums = (struct reduce_sums_args){.from = build_sums_at(b, sums), .to = build_sums_at(b, &fewer)};
    build_launch(b, op);
    *sums = fewer;
}

/* ---- producers --------------------------------------------------------------------------------------------------- */

/* Takes memory for the partial sums of a slice; returns none if no BN reads the slice. */
static struct build_sums
take_fresh(struct cuda_builder *b, const struct graph_slice *s, unsigned blocks)
{
    const struct graph_node *norm = b->score ? NULL : cuda_fold_norm_of(b->graph, s);
    struct build_sums sums;

    if (!norm)
        return build_no_sums();
    if (norm->in.first > s->first || norm->in.first + norm->in.channels < s->first + s->channels) {
        build_fail(b, CHEX_ERR_UNSUPPORTED, "a normalisation reads only a part of its output");
        return build_no_sums();
    }
    sums = build_allocate_sums(b, blocks, s->channels);
    sums.running_mean = build_statistic(b, norm->mean, s->first - norm->in.first);
    return sums;
}

struct channel_sums
build_epilogue_sums(struct cuda_builder *b, const struct graph_slice *s, unsigned blocks)
{
    struct build_sums *fresh = &b->fresh[b->node];

    *fresh = take_fresh(b, s, blocks);
    if (fresh->piece == BUILD_NONE)
        return (struct channel_sums){.partial = NULL};
    return build_sums_at(b, fresh);
}

void
build_launch_sums(struct cuda_builder *b, const struct graph_slice *s)
{
    unsigned all = build_all_pixels(b, s->buffer), each = build_pixels_each(b, all, s->channels);
    struct build_sums sums = take_fresh(b, s, build_blocks(b, all, 1, each));
    struct cuda_op op;

    if (sums.piece == BUILD_NONE)
        return;
    op = build_op(b, CUDA_NORM_SUMS, sums.blocks);
    op.y = cuda_blocks(s->channels, NORM_CHANNELS);
    op.args.norm_sums = (struct norm_sums_args){.x = build_read(b, s),
                                                .running_mean = sums.running_mean,
                                                .weight = (const float *)b->layout->weight,
                                                .partial = build_at(b, sums.piece),
                                                .images = b->layout->options->batch,
                                                .pixels = build_pixels(b, s->buffer),
                                                .channels = s->channels,
                                                .ld = b->layout->tensor[s->buffer].ld,
                                                .each = each};
    build_launch(b, op);
    b->fresh[b->node] = sums;
}

/* ---- consumers --------------------------------------------------------------------------------------------------- */

/* Returns the node whose partial sums are not reduced yet and whose output this BN reads, or NULL. */
static const struct graph_node *
fresh_writer(struct cuda_builder *b, const struct graph_node *norm)
{
    const struct graph_node *found = NULL;
    size_t i;

    for (i = 0; i < b->graph->node_count; i++) {
        const struct graph_slice *out = &b->graph->node[i].out;

        if (b->fresh[i].piece == BUILD_NONE || out->buffer != norm->in.buffer || out->first < norm->in.first ||
            out->first + out->channels > norm->in.first + norm->in.channels)
            continue;
        if (found)
            build_fail(b, CHEX_ERR_UNSUPPORTED, "it is the first to normalise the output of two nodes");
        found = &b->graph->node[i];
    }
    return found;
}

void
build_reduce_before_conv(struct cuda_builder *b, const struct graph_node *norm, struct build_readers readers)
{
    const struct graph_node *writer = fresh_writer(b, norm);

    if (!writer)
        return;
    if (readers.channels > writer->out.channels)
        readers.channels = writer->out.channels;
    build_reduce_sums(b, &b->fresh[writer - b->graph->node], &readers);
}

void
build_reduce_before_norm_kernel(struct cuda_builder *b, const struct graph_node *norm, enum cuda_kernel_id kernel,
                                unsigned strides)
{
    const struct graph_node *writer = fresh_writer(b, norm);

    if (writer)
        build_reduce_before_conv(b, norm, build_norm_readers(b, kernel, strides, writer->out.channels));
}

struct build_readers
build_readers(const struct cuda_builder *b, const struct cuda_op *op, unsigned channels)
{
    const struct cuda_counts *k = &b->gpu.counts[op->kernel];
    unsigned at_once = cuda_resident(&b->gpu, k->threads, k->registers, k->shared + op->shared);

    return (struct build_readers){
        .blocks = op->x * op->y * op->z, .channels = channels, .at_once = at_once > 0 ? at_once : 1};
}

struct build_readers
build_norm_readers(const struct cuda_builder *b, enum cuda_kernel_id kernel, unsigned strides, unsigned channels)
{
    const struct cuda_op op = {.kernel = kernel, .x = strides, .y = cuda_blocks(channels, NORM_CHANNELS), .z = 1};

    return build_readers(b, &op, NORM_CHANNELS);
}

struct norm_view
build_prologue(struct cuda_builder *b, const struct graph_node *norm)
{
    const struct graph_node *writer = fresh_writer(b, norm);
    struct norm_view v = {.gamma = build_weight(b, norm->weight),
                          .beta = build_weight(b, norm->bias),
                          .block = (const struct batch_block *)b->layout->batch_block,
                          .pixels = build_pixels(b, norm->in.buffer),
                          .relu = norm->relu,
                          .epsilon = GRAPH_NORM_EPSILON};

    if (b->score) { /* scale and shift are ready; there are no sums to reduce and nothing to store */
        struct build_pair view = build_scoring_view(b, norm);

        v.block = NULL;
        v.gamma = view.one;
        v.beta = view.two;
    } else {
        struct build_pair m = build_moments(b, norm->in.buffer, norm->in.first);

        v.mean = m.one;
        v.variance = m.two;
    }
    if (writer) {
        struct build_sums *fresh = &b->fresh[writer - b->graph->node];

        v.fresh = build_sums_at(b, fresh);
        v.fresh_first = writer->out.first - norm->in.first;
        *fresh = build_no_sums();
    }
    return v;
}

/* ---- running statistics ------------------------------------------------------------------------------------------ */

unsigned
build_running(struct cuda_builder *b, struct norm_running_args *a)
{
    const struct cuda_layout *l = b->layout;
    struct running_entry *entry = l->table[CUDA_TABLE_RUNNING].host;
    unsigned entries = 0, blocks = 0;
    size_t i;

    for (i = 0; i < b->graph->node_count; i++) {
        const struct graph_node *n = &b->graph->node[i];
        struct build_pair m;

        if (n->op != GRAPH_NORM)
            continue;
        m = build_moments(b, n->in.buffer, n->in.first);
        entry[entries++] = (struct running_entry){.mean = m.one,
                                                  .variance = m.two,
                                                  .running_mean = b->graph->stat[n->mean].offset,
                                                  .running_variance = b->graph->stat[n->variance].offset,
                                                  .pixels = build_pixels(b, n->in.buffer),
                                                  .channels = n->in.channels,
                                                  .first_block = blocks};
        blocks += build_blocks(b, n->in.channels, 1, HEAD_THREADS);
    }
    *a = (struct norm_running_args){.entry = (const struct running_entry *)l->table[CUDA_TABLE_RUNNING].at,
                                    .running = (float *)l->running,
                                    .block = (const struct batch_block *)l->batch_block,
                                    .entries = entries,
                                    .momentum = GRAPH_NORM_MOMENTUM};
    return blocks;
}
