/*
 * layout.c - assigns addresses, and builds the lists except those of the nodes; see layout.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/plan/build.h"

#include <stdlib.h>
#include <string.h>

#define MOST_PIXELS ((size_t)1 << 31) /* of a launch: kernels count pixels, plus a small margin, in 32 bits */
#define SLOT_ALIGN  16

/* ---- limits ------------------------------------------------------------------------------------------------------ */

static enum chex_status
too_large(const struct plan_options *o, struct chex_error *err)
{
    return error_set(err, CHEX_ERR_MEMORY, CUDA_TOO_LARGE, o->batch);
}

static bool
can_count(const struct cuda_layout *l, const struct graph_buffer *buffer)
{
    size_t pixels, bytes;

    return size_mul((size_t)buffer->height * buffer->width, l->options->batch, &pixels) && pixels <= MOST_PIXELS &&
           size_mul(pixels, buffer->channels * sizeof(float), &bytes);
}

/* Sets the shapes of the slabs.  If a tensor passes the test here, all its sizes and grids fit their types. */
static enum chex_status
make_tensors(struct cuda_layout *l, struct chex_error *err)
{
    const struct graph *g = l->graph;
    size_t i, bytes;

    l->tensor = calloc(g->buffer_count, sizeof(*l->tensor));
    if (!l->tensor)
        return error_memory(err);
    for (i = 0; i < g->buffer_count; i++) {
        if (!can_count(l, &g->buffer[i]))
            return too_large(l->options, err);
        l->tensor[i].ld = g->buffer[i].channels;
    }
    if (!size_mul((size_t)l->options->source * l->options->source, l->options->batch, &bytes))
        return too_large(l->options, err);
    return CHEX_OK;
}

/* ---- permanent memory -------------------------------------------------------------------------------------------- */

/*
 * Places the gradients together with the other numbers that are summed, and, if the wire type is smaller, a copy for
 * the network.
 */
static void
place_sums(struct cuda_builder *b)
{
    struct cuda_layout *l = b->layout;
    const struct reduce *r = l->options->reduce;
    size_t line = CUDA_ALIGN / sizeof(float), before = (TAIL_FLOATS + b->graph->stat_floats + line - 1) / line * line;

    l->sum_floats = before + b->graph->param_floats;
    l->sums = build_reserve(b, l->sum_floats, sizeof(float));
    l->tail = l->sums;
    l->running = l->tail + TAIL_FLOATS * sizeof(float);
    l->arena[ARENA_GRADIENTS] = l->sums + before * sizeof(float);
    if (l->options->wire == WIRE_BF16 && r && r->ops->start_bf16)
        l->wire = build_reserve(b, b->graph->param_floats, sizeof(uint16_t));
}

static void
place_arenas(struct cuda_builder *b)
{
    struct cuda_layout *l = b->layout;
    const struct graph *g = b->graph;
    size_t begin = l->bytes;
    int i;

    for (i = 0; i < ARENA_COUNT; i++) {
        if (i == ARENA_GRADIENTS && l->options->train)
            place_sums(b);
        else if (arena_is_wanted(l->options, (enum arena_id)i))
            l->arena[i] = build_reserve(b, arena_floats(g, (enum arena_id)i), sizeof(float));
        if (i == ARENA_STATISTICS)
            l->memory.parameters = l->bytes - begin;
    }
    l->memory.optimizer = l->bytes - begin - l->memory.parameters;
}

static size_t
in_slot(size_t *at, size_t count, size_t size)
{
    size_t here = *at;

    *at += (count * size + SLOT_ALIGN - 1) / SLOT_ALIGN * SLOT_ALIGN;
    return here;
}

struct crop_place
cuda_crop_place(const struct crop *crop)
{
    return (struct crop_place){
        .x = crop->x, .y = crop->y, .flip = crop->flip, .sine = crop->sine, .cosine = crop->cosine, .gain = crop->gain};
}

/* make_tensors() has checked that the pixels, the largest part, fit. */
static void
shape_slot(struct cuda_layout *l)
{
    const struct plan_options *o = l->options;
    size_t outputs = l->graph->buffer[l->graph->output].channels, images = o->batch + (o->mixup ? 1 : 0);
    struct cuda_slot *s = &l->slot;

    s->block = in_slot(&s->bytes, 1, sizeof(struct batch_block));
    s->index = in_slot(&s->bytes, images, sizeof(uint32_t));
    s->crop = in_slot(&s->bytes, images, sizeof(struct crop_place));
    s->weight = in_slot(&s->bytes, o->batch, sizeof(float));
    s->mix = in_slot(&s->bytes, o->mixup ? o->batch : 0, sizeof(float));
    s->label = in_slot(&s->bytes, o->batch * outputs, sizeof(uint8_t));
    s->pixels = in_slot(&s->bytes, images, (size_t)o->source * o->source);
}

static void
place_step(struct cuda_builder *b)
{
    struct cuda_layout *l = b->layout;
    const struct plan_options *o = l->options;
    const struct graph_buffer *in = &b->graph->buffer[b->graph->input];
    size_t outputs = b->graph->buffer[b->graph->output].channels;
    struct graph_head head;
    unsigned i;

    l->state = build_reserve(b, 1, sizeof(struct step_state));
    l->end_block = build_reserve(b, 1, sizeof(struct end_block));
    l->step_block = build_reserve(b, 1, sizeof(struct step_block));
    l->batch_block = build_reserve(b, 1, sizeof(struct batch_block));
    l->weight = build_reserve(b, o->batch, sizeof(float));
    if (o->mixup)
        l->mix = build_reserve(b, o->batch, sizeof(float));
    l->label = build_reserve(b, o->batch * outputs, sizeof(uint8_t));
    l->logits = build_reserve(b, o->batch * outputs, sizeof(float));
    if (o->maps && graph_find_head(b->graph, &head))
        l->maps = build_reserve(b, o->batch * head.map_floats, sizeof(float));
    else if (o->maps)
        build_fail(b, CHEX_ERR_UNSUPPORTED, GRAPH_NO_HEAD);
    if (o->train)
        b->squares = build_reserve(b, cuda_blocks(b->graph->param_floats, STEP_EACH), sizeof(double));
    for (i = 0; i < CUDA_SLOTS; i++)
        l->slots[i] = build_reserve(b, l->slot.bytes, 1);
    l->cells = build_reserve(b, (size_t)o->batch * STEM_ROWS(in->width) * STEM_COLUMNS(in->width),
                             (size_t)STEM_LD * l->chip.value_bytes);
}

/* ---- lists of a step --------------------------------------------------------------------------------------------- */

static void
list_input(struct cuda_builder *b, unsigned slot)
{
    const struct cuda_layout *l = b->layout;
    const struct plan_options *o = l->options;
    const struct graph_buffer *in = &b->graph->buffer[b->graph->input];
    uintptr_t from = l->slots[slot];
    unsigned rows = STEM_ROWS(in->width), columns = STEM_COLUMNS(in->width);
    struct cuda_op op = build_op(b, CUDA_INPUT, build_blocks(b, o->batch, (size_t)rows * columns, INPUT_THREADS));

    b->list = slot == 0 ? CUDA_LIST_INPUT0 : CUDA_LIST_INPUT1;
    op.args.input = (struct input_args){.from = (const struct batch_block *)(from + l->slot.block),
                                        .index = (const unsigned *)(from + l->slot.index),
                                        .crop = (const struct crop_place *)(from + l->slot.crop),
                                        .weight_from = (const float *)(from + l->slot.weight),
                                        .mix_from = o->mixup ? (const float *)(from + l->slot.mix) : NULL,
                                        .label_from = (const uint8_t *)(from + l->slot.label),
                                        .pixels = (const uint8_t *)(from + l->slot.pixels),
                                        .block = (struct batch_block *)l->batch_block,
                                        .weight = (float *)l->weight,
                                        .mix = (float *)l->mix,
                                        .label = (uint8_t *)l->label,
                                        .cells = (void *)l->cells,
                                        .images = o->batch,
                                        .source = o->source,
                                        .side = in->width,
                                        .outputs = b->graph->buffer[b->graph->output].channels};
    build_launch(b, op);
}

static void
launch_pack(struct cuda_builder *b, const struct step_begin_args *begin)
{
    const struct cuda_layout *l = b->layout;
    struct cuda_op op = build_op(b, CUDA_PACK_WEIGHTS, b->pack_blocks);

    op.args.pack = (struct pack_weights_args){
        .master = (const float *)l->arena[ARENA_PARAMETERS],
        .entry = (const struct pack_entry *)l->table[CUDA_TABLE_PACK].at,
        .entries = (unsigned)(l->table[CUDA_TABLE_PACK].bytes / sizeof(struct pack_entry)),
        .blocks = b->pack_blocks,
        .begin = *begin};
    op.x += build_blocks(b, begin->count > 0 ? begin->count : 1, 1, PACK_THREADS);
    build_launch(b, op);
}

static void
list_begin(struct cuda_builder *b)
{
    const struct cuda_layout *l = b->layout;
    const struct reduce *r = l->options->reduce;
    struct step_begin_args begin = {.state = (struct step_state *)l->state,
                                    .statistics = (const float *)l->arena[ARENA_STATISTICS],
                                    .running = (float *)l->running,
                                    .count = (unsigned)b->graph->stat_floats,
                                    .from_zero = r && r->rank > 0};

    b->list = CUDA_LIST_BEGIN;
    launch_pack(b, &begin);
}

static void
list_end(struct cuda_builder *b)
{
    const struct cuda_layout *l = b->layout;
    struct cuda_op op = build_op(b, CUDA_STEP_END, build_blocks(b, b->graph->stat_floats, 1, STEP_THREADS));

    b->list = CUDA_LIST_END;
    op.args.end = (struct step_end_args){.block = (const struct end_block *)l->end_block,
                                         .state = (const struct step_state *)l->state,
                                         .pixels = (const unsigned *)l->table[CUDA_TABLE_STAT_PIXELS].at,
                                         .running = (float *)l->running,
                                         .tail = (float *)l->tail,
                                         .count = (unsigned)b->graph->stat_floats,
                                         .batch = l->options->batch,
                                         .momentum = GRAPH_NORM_MOMENTUM};
    build_launch(b, op);
}

/* Converts the summed gradients of all ranks from the wire type to float. */
static void
launch_from_wire(struct cuda_builder *b)
{
    const struct cuda_layout *l = b->layout;
    unsigned count = (unsigned)b->graph->param_floats;
    struct cuda_op op = build_op(b, CUDA_FROM_WIRE, build_blocks(b, count, 1, STEP_THREADS));

    op.args.wire = (struct wire_args){
        .gradient = (float *)l->arena[ARENA_GRADIENTS], .wire = (uint16_t *)l->wire, .count = count};
    build_launch(b, op);
}

/* Computes the norm of the gradients and decides whether the step is applied. */
static void
launch_decide(struct cuda_builder *b)
{
    const struct cuda_layout *l = b->layout;
    const struct optimizer_options *o = &l->options->optimizer;
    unsigned count = (unsigned)b->graph->param_floats, blocks = build_blocks(b, count, 1, STEP_EACH);
    struct cuda_op op = build_op(b, CUDA_GRADIENT_SQUARES, blocks);

    op.args.squares = (struct gradient_squares_args){
        .gradient = (const float *)l->arena[ARENA_GRADIENTS], .partial = (double *)b->squares, .count = count};
    build_launch(b, op);
    op = build_op(b, CUDA_STEP_DECIDE, 1);
    op.args.decide = (struct step_decide_args){.partial = (const double *)b->squares,
                                               .block = (const struct step_block *)l->step_block,
                                               .tail = (const float *)l->tail,
                                               .state = (struct step_state *)l->state,
                                               .blocks = blocks,
                                               .scaled = l->options->precision == PRECISION_FP16,
                                               .alone = build_is_single_rank(b),
                                               .grow = LOSS_SCALE_GROW,
                                               .least = LOSS_SCALE_LEAST,
                                               .most = LOSS_SCALE_MOST,
                                               .beta1 = optimizer_is_adam(o->kind) ? o->beta1 : 0,
                                               .beta2 = optimizer_is_adam(o->kind) ? o->beta2 : 0,
                                               .decay = o->kind == OPTIMIZER_ADAMW ? o->decay : 0};
    build_launch(b, op);
}

static void
list_update(struct cuda_builder *b)
{
    static const enum optimizer_rule rules[OPTIMIZER_COUNT] = {
        [OPTIMIZER_ADAM] = RULE_ADAM,       [OPTIMIZER_ADAMW] = RULE_ADAM,        [OPTIMIZER_SGD] = RULE_SGD,
        [OPTIMIZER_ADAGRAD] = RULE_SQUARES, [OPTIMIZER_ADADELTA] = RULE_ADADELTA, [OPTIMIZER_RMSPROP] = RULE_SQUARES};
    const struct cuda_layout *l = b->layout;
    const struct optimizer_options *o = &l->options->optimizer;
    unsigned count = (unsigned)b->graph->param_floats, statistics = (unsigned)b->graph->stat_floats;
    bool sums = o->kind == OPTIMIZER_ADAGRAD; /* of squares */
    struct cuda_op op = build_op(
        b, CUDA_OPTIMIZER, build_blocks(b, count, 1, STEP_THREADS) + build_blocks(b, statistics, 1, STEP_THREADS));

    b->list = CUDA_LIST_UPDATE;
    if (l->wire)
        launch_from_wire(b);
    launch_decide(b);
    op.args.optimizer = (struct optimizer_args){.state = (const struct step_state *)l->state,
                                                .parameter = (float *)l->arena[ARENA_PARAMETERS],
                                                .gradient = (const float *)l->arena[ARENA_GRADIENTS],
                                                .moment1 = (float *)l->arena[ARENA_MOMENT1],
                                                .moment2 = (float *)l->arena[ARENA_MOMENT2],
                                                .average = (float *)l->arena[ARENA_AVERAGE],
                                                .count = count,
                                                .rule = rules[o->kind],
                                                .keep1 = (float)o->beta1,
                                                .take1 = (float)(1 - o->beta1),
                                                .keep2 = sums ? 1 : (float)o->beta2,
                                                .take2 = sums ? 1 : (float)(1 - o->beta2),
                                                .keep_average = (float)o->average,
                                                .take_average = (float)(1 - o->average),
                                                .epsilon = (float)o->epsilon,
                                                .momentum = (float)o->momentum,
                                                .decay = o->kind == OPTIMIZER_ADAMW ? 0 : (float)o->decay,
                                                .running = (const float *)l->running,
                                                .statistics = (float *)l->arena[ARENA_STATISTICS],
                                                .statistics_count = statistics};
    build_launch(b, op);
}

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

/* Resets the state of the builder: no tensor has been written. */
static void
start_pass(struct cuda_builder *b, enum cuda_list_id list, enum arena_id weights, bool score)
{
    size_t i;

    for (i = 0; i < b->graph->buffer_count; i++)
        b->pieces[i] = (struct build_pieces){BUILD_NONE, BUILD_NONE, BUILD_NONE, BUILD_NONE};
    for (i = 0; i < b->graph->buffer_count; i++)
        b->pending[i] = build_no_sums();
    memset((void *)b->end, 0, b->graph->buffer_count * sizeof(*b->end));
    for (i = 0; i < b->graph->node_count; i++)
        b->fresh[i] = build_no_sums();
    for (i = 0; i < b->graph->node_count; i++)
        b->winners[i] = BUILD_NONE;
    memset(b->value_written, 0, b->channels * sizeof(*b->value_written));
    memset(b->gradient_written, 0, b->channels * sizeof(*b->gradient_written));
    memset(b->means_written, 0, b->channels * sizeof(*b->means_written));
    memset(b->param_done, 0, b->graph->param_count * sizeof(*b->param_done));
    b->partials = b->splits = b->partial_bytes = b->partial_floats = 0;
    b->list = list;
    b->weights = weights;
    b->score = score;
}

static void
tell_tensors(struct cuda_builder *b)
{
    struct cuda_layout *l = b->layout;
    size_t i;

    for (i = 0; b->status == CHEX_OK && b->memory.placed && i < b->graph->buffer_count; i++) {
        const struct build_pieces *p = &b->pieces[i];

        l->tensor[i].value = p->value == BUILD_NONE ? 0 : b->lived + b->memory.piece[p->value].offset;
        l->tensor[i].gradient = p->gradient == BUILD_NONE ? 0 : b->lived + b->memory.piece[p->gradient].offset;
    }
    l->tensor[b->graph->output].value = l->logits;
}

static void
walk_training(struct cuda_builder *b)
{
    list_begin(b);
    start_pass(b, CUDA_LIST_FORWARD, ARENA_PARAMETERS, false);
    build_forward(b);
    b->list = CUDA_LIST_BACKWARD;
    build_backward(b);
    list_end(b);
    list_update(b);
    if (b->layout->options->keep)
        cuda_memory_keep(&b->memory, b->moment - 1);
    tell_tensors(b);
}

static void
walk_scoring(struct cuda_builder *b, enum arena_id weights, size_t piece)
{
    bool average = weights == ARENA_AVERAGE;

    b->list = average ? CUDA_LIST_PACK_AVERAGE : CUDA_LIST_PACK;
    if (piece != BUILD_NONE)
        b->scoring.base = (uintptr_t)build_at(b, piece);
    build_scoring_weights_all(b, weights);
    start_pass(b, average ? CUDA_LIST_SCORE_AVERAGE : CUDA_LIST_SCORE, weights, true);
    build_forward(b);
    if (piece != BUILD_NONE)
        (void)build_at(b,
                       piece); /* keeps it live: the list runs many times after one launch that fills these weights */
}

/* Scoring uses later moments than training, so its pieces can share the memory of training. */
static void
walk(struct cuda_builder *b)
{
    const struct plan_options *o = b->layout->options;
    size_t piece;
    unsigned slot;

    b->moment = 0;
    b->node = CUDA_NO_NODE;
    for (slot = 0; slot < CUDA_SLOTS; slot++)
        list_input(b, slot);
    if (o->train)
        walk_training(b);
    piece = o->train ? build_allocate(b, b->scoring.bytes) : BUILD_NONE;
    walk_scoring(b, ARENA_PARAMETERS, piece);
    if (arena_is_wanted(o, ARENA_AVERAGE))
        walk_scoring(b, ARENA_AVERAGE, piece);
}

/* Places the pieces with a live range after the permanent memory. */
static void
place_lived(struct cuda_builder *b)
{
    struct cuda_layout *l = b->layout;
    size_t stays = l->bytes;

    if (b->status == CHEX_OK && !b->memory.placed)
        b->status = cuda_memory_place(&b->memory, b->err);
    b->lived = build_reserve(b, b->memory.bytes, 1);
    l->memory.activations = l->bytes - stays;
    l->memory.workspace = stays - l->memory.parameters - l->memory.optimizer;
}

static bool
allocate(struct cuda_builder *b)
{
    const struct graph *g = b->graph;
    size_t i;

    b->layout->cudnn = calloc(g->node_count, sizeof(*b->layout->cudnn));
    b->layout->unfinished = calloc(g->node_count, sizeof(*b->layout->unfinished));
    b->pieces = calloc(g->buffer_count, sizeof(*b->pieces));
    b->first = calloc(g->buffer_count, sizeof(*b->first));
    b->packed = calloc(g->node_count, sizeof(*b->packed));
    b->scoring.at = calloc(g->node_count, sizeof(*b->scoring.at));
    for (i = 0; b->first && i < g->buffer_count; i++) {
        b->first[i] = b->channels;
        b->channels += g->buffer[i].channels;
    }
    b->value_written = calloc(b->channels, sizeof(*b->value_written));
    b->gradient_written = calloc(b->channels, sizeof(*b->gradient_written));
    b->means_written = calloc(b->channels, sizeof(*b->means_written));
    b->fresh = calloc(g->node_count, sizeof(*b->fresh));
    b->pending = calloc(g->buffer_count, sizeof(*b->pending));
    b->winners = calloc(g->node_count, sizeof(*b->winners));
    b->end = calloc(g->buffer_count, sizeof(*b->end));
    b->param_done = calloc(g->param_count, sizeof(*b->param_done));
    b->partial = calloc(g->node_count, sizeof(*b->partial));
    return b->layout->cudnn && b->layout->unfinished && b->pieces && b->first && b->packed && b->scoring.at &&
           b->value_written && b->gradient_written && b->means_written && b->fresh && b->pending && b->winners &&
           b->end && b->param_done && b->partial;
}

static void
free_builder(struct cuda_builder *b)
{
    free(b->pieces);
    free(b->first);
    free(b->packed);
    free(b->scoring.at);
    free(b->value_written);
    free(b->gradient_written);
    free(b->means_written);
    free(b->fresh);
    free(b->pending);
    free(b->winners);
    free((void *)b->end);
    free(b->param_done);
    free(b->partial);
    cuda_fold_free(&b->fold);
    cuda_fold_free(&b->scoring.fold);
    cuda_memory_free(&b->memory);
}

static enum chex_status
make(struct cuda_builder *b, bool measure)
{
    place_arenas(b);
    shape_slot(b->layout);
    place_step(b);
    build_scoring_places(b);
    build_tables(b);
    if (!b->memory.placed)
        walk(b);
    place_lived(b);
    if (b->status == CHEX_OK && !measure)
        walk(b);
    return b->status;
}

/* cuDNN runs all convolutions except the first one, whose input is in the space-to-depth layout. */
static void
choose_engine(struct cuda_builder *b)
{
    const struct graph *g = b->graph;
    size_t i;

    for (i = 0; i < g->node_count; i++)
        b->layout->cudnn[i] = b->layout->options->engine == ENGINE_CUDNN && g->node[i].op == GRAPH_CONV &&
                              g->node[i].in.buffer != g->input;
}

/* cuDNN reads stored tensors, so the BN in front of its convolutions is not fused. */
static enum chex_status
fold_norms(struct cuda_builder *b)
{
    const struct cuda_layout *l = b->layout;
    enum chex_status status = cuda_fold_make(&b->fold, b->graph, l->cudnn, b->err);
    return status == CHEX_OK ? cuda_fold_make_scoring(&b->scoring.fold, b->graph, l->cudnn, b->err) : status;
}

/* live: placed live ranges from an earlier measurement, or empty; they are used up. */
static enum chex_status
start_layout(struct cuda_layout *l, const struct plan_options *options, const struct cuda_chip *chip, uintptr_t base,
             struct cuda_memory live, bool measure, struct chex_error *err)
{
    struct cuda_builder b = {.layout = l,
                             .graph = options->graph,
                             .gpu = cuda_gpu_of(chip->major, chip->processors, chip->value),
                             .node = CUDA_NO_NODE,
                             .memory = live,
                             .err = err};
    enum chex_status status;

    *l = (struct cuda_layout){.options = options, .graph = options->graph, .chip = *chip, .base = base};
    l->loss_scale = options->precision == PRECISION_FP16 ? LOSS_SCALE_START : 1;
    status = make_tensors(l, err);
    if (status == CHEX_OK && !allocate(&b))
        status = error_memory(err);
    if (status == CHEX_OK) {
        choose_engine(&b);
        status = fold_norms(&b);
    }
    if (status == CHEX_OK)
        status = make(&b, measure);
    if (measure) {
        l->live = b.memory;
        b.memory = (struct cuda_memory){.piece = NULL};
    }
    free_builder(&b);
    return status;
}

enum chex_status
cuda_layout_make(struct cuda_layout *l, const struct plan_options *options, const struct cuda_chip *chip,
                 uintptr_t base, struct chex_error *err)
{
    return start_layout(l, options, chip, base, (struct cuda_memory){.piece = NULL}, false, err);
}

enum chex_status
cuda_layout_measure(struct cuda_layout *l, const struct plan_options *options, const struct cuda_chip *chip,
                    struct chex_error *err)
{
    return start_layout(l, options, chip, 0, (struct cuda_memory){.piece = NULL}, true, err);
}

enum chex_status
cuda_layout_make_measured(struct cuda_layout *l, struct cuda_layout *measured, uintptr_t base, struct chex_error *err)
{
    struct cuda_memory live = measured->live;

    measured->live = (struct cuda_memory){.piece = NULL};
    return start_layout(l, measured->options, &measured->chip, base, live, false, err);
}

void
cuda_layout_free(struct cuda_layout *l)
{
    int i;

    for (i = 0; i < CUDA_LIST_COUNT; i++)
        free(l->list[i].op);
    free(l->tensor);
    free(l->cudnn);
    free(l->unfinished);
    cuda_memory_free(&l->live);
    for (i = 0; i < CUDA_TABLE_COUNT; i++)
        free(l->table[i].host);
    *l = (struct cuda_layout){.options = NULL};
}
