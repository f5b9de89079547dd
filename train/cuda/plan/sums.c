/*
 * sums.c - per-channel partial sums for BN: which launch writes them and which launch reduces them; see build.h
 *
 * The epilogue of a producer writes one row of partial sums per CTA.  The next launch that reads the slab through a BN
 * reduces the rows in its prologue, in every CTA.  If that costs too much, a reduce_sums launch reduces the rows first.
 *
 * rows   float [blocks][2][channels]; blocks: CTAs of the producer along the pixels
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/plan/build.h"

/* ---- partial sums and reduce_sums -------------------------------------------------------------------------------- */

/*
 * Cost of reducing the rows in every CTA of the consumer, in microseconds: the larger of an L2 latency bound and an L2
 * bandwidth bound.  Latency: each wave of CTAs waits once per ON_ITS_WAY floats.  Bandwidth: the bytes that all CTAs
 * read.  Modelled for an H200 (published: 5.5 TB/s).  On other GPUs the costs differ, but their ratios hardly do.
 */
#define WAIT       0.5 /* latency of the L2, us */
#define ON_ITS_WAY (256 * 4 * 8)
#define CACHE_RATE 5.5e6 /* bandwidth of the L2, bytes per us */
#define WORTH      0.7   /* of a launch: reduce_sums must save this much beyond its own cost */

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

/* Cost for r->blocks CTAs that each reduce `rows` rows of r->channels channels. */
static double
cost_to_add(const struct cuda_builder *b, unsigned rows, const struct build_readers *r)
{
    double waves = cuda_blocks(r->blocks, r->at_once * b->layout->chip.processors);
    double numbers = 2.0 * rows * r->channels;
    double wait = waves * numbers / ON_ITS_WAY * WAIT, bytes = r->blocks * numbers * sizeof(float) / CACHE_RATE;

    return wait > bytes ? wait : bytes;
}

/* Cost of a reduce_sums launch that reduces `from` rows to `to` rows, in CTAs of NORM_CHANNELS channels. */
static double
cost_to_reduce(const struct cuda_builder *b, unsigned from, unsigned to)
{
    return b->layout->chip.launch + 2.0 * cuda_blocks(from, to) * NORM_CHANNELS / ON_ITS_WAY * WAIT;
}

/* Returns the best number of rows; `from` means that no reduce_sums launch is worth it. */
static unsigned
fold_to(const struct cuda_builder *b, unsigned from, const struct build_readers *readers)
{
    double best = cost_to_add(b, from, readers) - WORTH * b->layout->chip.launch;
    unsigned to, chosen = from;

    for (to = 2; to <= from / 2; to *= 2) {
        double cost = cost_to_reduce(b, from, to) + cost_to_add(b, to, readers);

        if (cost < best) {
            best = cost;
            chosen = cuda_blocks(from, cuda_blocks(from, to)); /* no CTA is without rows */
        }
    }
    return chosen;
}

void
build_reduce_sums(struct cuda_builder *b, struct build_sums *sums, const struct build_readers *readers)
{
    unsigned to = fold_to(b, sums->blocks, readers);
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
build_reduce_before_norm_kernel(struct cuda_builder *b, const struct graph_node *norm, unsigned strides)
{
    const struct graph_node *writer = fresh_writer(b, norm);

    if (writer)
        build_reduce_before_conv(b, norm, build_norm_readers(strides, writer->out.channels));
}

struct build_readers
build_norm_readers(unsigned strides, unsigned channels)
{
    return (struct build_readers){
        .blocks = strides * cuda_blocks(channels, NORM_CHANNELS), .channels = NORM_CHANNELS, .at_once = 4};
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
