/*
 * layout_steps.c - compares a step that runs the lists of launches (train/cuda/plan/layout.h) one by one with the
 * backend ref
 *
 *     layout_steps [small | MODEL SIDE BATCH [SEED]]
 *
 * The default is densenet-micro at 64 pixels, or at 32 in slow builds.  A step has two
 * micro-batches, the first with an image of weight 0 in its middle.  Compared are every buffer and its gradient,
 * gradients of parameters, running statistics, loss, parameters after the step, then logits with running statistics,
 * from the parameters and from their average.  The bits must be the same with and without `keep`.
 *
 * If the input of a ReLU is 0 except for rounding, gradients differ by a finite amount (kinks.h), and with this many
 * inputs any weights may have such a case.  So gradients are compared closely with a large beta, which keeps inputs
 * away from 0.  With other weights, which test what a ReLU blocks, some hundredths are allowed.  More is allowed where
 * last bits of the parameters change values or gradients of ref (the variance of three values per channel is poor).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "layout_fixture.h"

#include "cuda/plan/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- comparison -------------------------------------------------------------------------------------------------- */

/* Returns the norm of the difference divided by the norm of `want`, or by `least`. */
static double
error_of(const float *got, const float *want, size_t count, double least)
{
    double difference = 0, norm = 0;
    size_t i;

    for (i = 0; i < count; i++) {
        double d = (double)got[i] - (double)want[i];

        difference += d * d;
        norm += (double)want[i] * (double)want[i];
    }
    norm = fmax(sqrt(norm), least);
    return norm > 0 ? sqrt(difference) / norm : sqrt(difference);
}

static double worst;

static void
compare_least(const char *what, size_t number, const float *got, const float *want, size_t count, double allowed,
              double least)
{
    double error = error_of(got, want, count, least);

    if (!(error <= worst))
        worst = error;
    expect(error <= allowed, "%s %zu: error %.3g, allowed %.3g", what, number, error, allowed);
}

static void
compare(const char *what, size_t number, const float *got, const float *want, size_t count, double allowed)
{
    compare_least(what, number, got, want, count, allowed, 0);
}

/* Of values computed before a gradient, and of gradients. */
struct tolerance {
    double values, gradients;
};

/* Is this a normalised tensor with a single consumer that applies BN itself?  Then it is never stored. */
static bool
is_nowhere(const struct graph *g, size_t buffer)
{
    bool normalised = false;
    unsigned readers = 0;
    size_t i;

    for (i = 0; i < g->node_count; i++) {
        const struct graph_node *n = &g->node[i];

        normalised |= n->op == GRAPH_NORM && n->out.buffer == buffer;
        readers += n->in.buffer == buffer;
        if (n->op == GRAPH_ADD && (n->in.buffer == buffer || n->in2.buffer == buffer))
            return false;
    }
    return normalised && readers == 1;
}

/* Images of weight 0 have values after a BN, but these have no effect: ignores them. */
static void
forget_padding(const struct plan_options *o, const struct images *m, size_t buffer, float *values)
{
    size_t floats = buffer_floats(o, buffer) / o->batch, i;

    for (i = 0; i < o->batch; i++)
        if (m->weight[i] == 0)
            memset(values + i * floats, 0, floats * sizeof(*values));
}

/* If its consumer finalizes a gradient, the final gradient is not stored; the consumer's result is compared. */
static void
forget_unfinished(const struct plan_options *o, const struct outcome *got, size_t buffer, float *gradient)
{
    const struct graph_buffer *b = &o->graph->buffer[buffer];
    size_t pixels = (size_t)b->height * b->width, i, n;

    for (i = 0; i < o->graph->node_count; i++) {
        const struct graph_slice *s = &o->graph->node[i].out;

        for (n = 0; n < o->batch && got->unfinished[i] && s->buffer == buffer; n++)
            memset(gradient + (n * b->channels + s->first) * pixels, 0, s->channels * pixels * sizeof(*gradient));
    }
}

static void
compare_buffers(const struct plan_options *o, const struct images *m, const struct outcome *got,
                const struct outcome *want, struct tolerance allowed)
{
    const struct graph *g = o->graph;
    size_t i;
    int k;

    for (k = 0; k < 2; k++)
        for (i = 0; i < g->buffer_count; i++) {
            size_t floats = buffer_floats(o, i);
            bool there = i != g->input && !is_nowhere(g, i);

            expect(!got->value[k][i] == !there && !got->gradient[k][i] == !there, "buffer %zu is there or is not", i);
            if (!got->value[k][i] || !got->gradient[k][i])
                continue;
            forget_padding(o, &m[k], i, got->value[k][i]);
            forget_padding(o, &m[k], i, want->value[k][i]);
            forget_unfinished(o, got, i, got->gradient[k][i]);
            forget_unfinished(o, got, i, want->gradient[k][i]);
            compare("values of buffer", i, got->value[k][i], want->value[k][i], floats, allowed.values);
            compare("gradients of buffer", i, got->gradient[k][i], want->gradient[k][i], floats, allowed.gradients);
        }
}

/*
 * Compares the gradient of each parameter.  If the next BN cancels a beta, its gradient is 0 except for rounding, so
 * errors are relative to at least 1/1000 of the norm of all gradients, in float only.  With halves, this would hide the
 * gradients of convolutions, which are smaller than that with a large beta, but never 0: their errors are relative to
 * their own norm.  The largest error observed with these cases is 0.41; a gradient of half its size has the error 0.5.
 * In float the largest error of one parameter is 1.3e-4, so twice the limit of all gradients is allowed.
 */
static void
compare_parameters(const struct plan_options *o, const struct outcome *got, const struct outcome *want, double allowed)
{
    const struct graph *g = o->graph;
    size_t i;

    for (i = 0; i < g->param_count; i++) {
        const struct graph_tensor *t = &g->param[i];
        bool is_convolution = t->rank == 4, is_float = o->precision == PRECISION_FP32;

        if (is_convolution || is_float)
            compare_least(t->name, i, got->gradients + t->offset, want->gradients + t->offset, t->count,
                          is_float ? 2 * allowed : 0.45, is_float ? want->norm / 1000 : 0);
    }
}

static void
compare_outcomes(const char *name, const struct plan_options *o, const struct images *m, const struct outcome *got,
                 const struct outcome *want, struct tolerance allowed)
{
    const struct graph *g = o->graph;
    size_t logits = (size_t)o->batch * OUTPUTS;

    worst = 0;
    if (o->precision == PRECISION_FP32)
        compare_buffers(o, m, got, want, allowed);
    compare_parameters(o, got, want, allowed.gradients);
    compare("all gradients", 0, got->gradients, want->gradients, g->param_floats, allowed.gradients);
    compare("statistics", 0, got->statistics, want->statistics, g->stat_floats, allowed.values);
    compare("parameters", 0, got->parameters, want->parameters, g->param_floats, allowed.gradients);
    compare("logits of the parameters", 0, got->logits[0], want->logits[0], logits, allowed.gradients);
    compare("logits of the average", 0, got->logits[1], want->logits[1], logits, allowed.gradients);
    if (got->maps[0]) {
        compare("maps of the parameters", 0, got->maps[0], want->maps[0], map_floats(o), allowed.gradients);
        compare("maps of the average", 0, got->maps[1], want->maps[1], map_floats(o), allowed.gradients);
    }
    expect(fabs(got->loss - want->loss) <= allowed.values * want->loss, "loss %.9g, not %.9g", got->loss, want->loss);
    expect(fabs(got->norm - want->norm) <= allowed.gradients * want->norm, "norm %.9g, not %.9g", got->norm,
           want->norm);
    printf("%s: loss %.6f, logits to score with differ by %.2g, worst error %.2g\n", name, got->loss,
           fmax(error_of(got->logits[0], want->logits[0], logits, 0),
                error_of(got->logits[1], want->logits[1], logits, 0)),
           worst);
}

static void
same_bits(const char *name, const struct plan_options *o, const struct outcome *a, const struct outcome *b)
{
    const struct graph *g = o->graph;
    size_t logits = (size_t)o->batch * OUTPUTS * sizeof(float);

    expect(memcmp(a->gradients, b->gradients, g->param_floats * sizeof(float)) == 0, "%s: gradients differ", name);
    expect(memcmp(a->parameters, b->parameters, g->param_floats * sizeof(float)) == 0, "%s: parameters differ", name);
    expect(memcmp(a->statistics, b->statistics, g->stat_floats * sizeof(float)) == 0, "%s: statistics differ", name);
    expect(memcmp(a->logits[0], b->logits[0], logits) == 0, "%s: logits differ", name);
    expect(memcmp(a->logits[1], b->logits[1], logits) == 0, "%s: logits of the average differ", name);
    expect(map_floats(o) == 0 || memcmp(a->maps[1], b->maps[1], map_floats(o) * sizeof(float)) == 0,
           "%s: maps of the average differ", name);
    expect(a->loss == b->loss, "%s: the loss differs", name);
}

/* ---- cases ------------------------------------------------------------------------------------------------------- */

static const struct precision_case {
    const char *name;
    enum precision precision;
    struct cuda_chip chip;
    struct tolerance smooth, rough; /* rough: some inputs of ReLUs are near 0 */
} cases[] = {
#ifndef ONLY_FP16
    {"fp32",
     PRECISION_FP32,
     {.set = cuda_kernels_float, .value_bytes = 4, .processors = PROCESSORS, .many_sums = true},
     {1e-4, 1e-4},
     {1e-4, 0.03}},
    {"tf32",
     PRECISION_TF32,
     {.set = cuda_kernels_tf32, .value_bytes = 4, .value = CUDA_TF32, .processors = PROCESSORS, .many_sums = true},
     {0.02, 0.1},
     {0.02, 0.3}},
    {"bf16",
     PRECISION_BF16,
     {.set = cuda_kernels_bf16, .value_bytes = 2, .processors = PROCESSORS, .many_sums = true},
     {0.1, 0.5},
     {0.1, 0.6}},
#endif
    {"fp16",
     PRECISION_FP16,
     {.set = cuda_kernels_fp16, .value_bytes = 2, .processors = PROCESSORS, .many_sums = true},
     {0.02, 0.1},
     {0.02, 0.3}},
};

static void
run_case(const struct precision_case *c, const struct plan_options *options, const struct images *m,
         const float *parameters, const float *statistics, const struct outcome *want, struct tolerance allowed)
{
    struct plan_options o = *options;
    struct outcome kept = {.loss = 0}, shared = {.loss = 0};

    o.precision = c->precision;
    make_outcome(&o, &kept);
    make_outcome(&o, &shared);
    run_lists(&o, &c->chip, m, parameters, statistics, &kept);
    compare_outcomes(c->name, &o, m, &kept, want, allowed);
    expect(kept.launches[CUDA_REDUCE_SUMS] > 0, "%s: sums of many CTAs are reduced", c->name);
    expect(kept.launches[CUDA_CONV_ONE_PASS_64x64] + kept.launches[CUDA_CONV_ONE_PASS_64x128] > 0,
           "%s: both gradients in one pass", c->name);
    expect(kept.launches[CUDA_CONV_ONE_PASS_end_64x64] + kept.launches[CUDA_CONV_ONE_PASS_end_64x128] > 0,
           "%s: the last layer of a block makes the gradient of the pool behind it", c->name);
    expect(kept.finals >= 3, "%s: %u launches say what is final", c->name, kept.finals);
    o.keep = false;
    run_lists(&o, &c->chip, m, parameters, statistics, &shared);
    same_bits(c->name, &o, &kept, &shared);
    free_outcome(&o, &kept);
    free_outcome(&o, &shared);
}

/*
 * Returns how far values and gradients of the reference move if each parameter changes by some of its last bits.  If a
 * channel has two values, BN puts one above and one below zero, however close they were.
 */
static struct tolerance
sensitivity(const struct plan_options *o, const struct images *m, const float *parameters, const float *statistics,
            const struct outcome *want)
{
    size_t floats = o->graph->param_floats, i;
    float *moved = take(floats, sizeof(*moved));
    struct outcome got = {.loss = 0};
    struct tolerance most = {0, 0};
    int k;

    for (i = 0; i < floats; i++)
        moved[i] = (float)((double)parameters[i] * (1 + 2e-7 * random_unit()));
    make_outcome(o, &got);
    run_reference(o, m, moved, statistics, &got);
    most.gradients = error_of(got.gradients, want->gradients, floats, 0);
    for (k = 0; k < 2; k++)
        for (i = 0; i < o->graph->buffer_count; i++)
            if (got.gradient[k][i]) {
                size_t count = buffer_floats(o, i);

                most.values = fmax(most.values, error_of(got.value[k][i], want->value[k][i], count, 0));
                most.gradients = fmax(most.gradients, error_of(got.gradient[k][i], want->gradient[k][i], count, 0));
            }
    free_outcome(o, &got);
    free(moved);
    printf("last bits of the parameters move values of ref by %.2g, gradients by %.2g\n", most.values, most.gradients);
    return most;
}

static void
run_model(const char *model, unsigned side, unsigned batch, bool smooth)
{
    double positive[OUTPUTS];
    struct plan_options o = {.batch = batch,
                             .micro_batches = 2,
                             .source = side + BORDER,
                             .train = true,
                             .maps = true,
                             .average = true,
                             .keep = true,
                             .loss = {.kind = LOSS_FOCAL, .gamma = 2, .positive_weight = positive}};
    struct outcome want = {.loss = 0};
    struct images m[2];
    struct chex_error err;
    struct graph *g;
    float *parameters, *statistics;
    struct tolerance moves;
    size_t i;

    for (i = 0; i < OUTPUTS; i++)
        positive[i] = 1 + (double)i / 7;
    printf("%s, %u px, batch %u%s\n", model, side, batch, smooth ? ", no ReLU near its kink" : "");
    check(graph_new(model, side, OUTPUTS, &g, &err), &err);
    o.graph = g;
    o.optimizer = optimizer_default(OPTIMIZER_SGD);
    o.optimizer.average = 0.5;
    parameters = make_parameters(g, smooth);
    statistics = make_statistics(g);
    m[0] = make_images(&o, batch > 1);
    m[1] = make_images(&o, false);
    make_outcome(&o, &want);
    run_reference(&o, m, parameters, statistics, &want);
    moves = sensitivity(&o, m, parameters, statistics, &want);
    for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct tolerance allowed = smooth ? cases[i].smooth : cases[i].rough;

        if (moves.gradients > 0.5 && cases[i].precision != PRECISION_FP32) {
            printf("%s: gradients of ref hang on last bits alone\n", cases[i].name);
            continue;
        }
        allowed.values = fmax(allowed.values, 10 * moves.values);
        allowed.gradients = fmax(allowed.gradients, 10 * moves.gradients);
        run_case(&cases[i], &o, m, parameters, statistics, &want, allowed);
    }
    free_outcome(&o, &want);
    free_images(&m[0]);
    free_images(&m[1]);
    free(parameters);
    free(statistics);
    graph_free(g);
}

/* Requires that a step on an H200 takes at most these launches and this memory. */
static void
count_launches(const char *model, unsigned side, unsigned batch, size_t most_launches, double most_bytes)
{
    const struct cuda_chip chip = {.set = cuda_kernels_fp16, .value_bytes = 2, .processors = 132};
    struct plan_options o = {.batch = batch, .source = side, .train = true, .precision = PRECISION_FP16};
    struct cuda_layout l, kept;
    struct chex_error err;
    struct graph *g;
    size_t step = 0;
    int i;

    check(graph_new(model, side, OUTPUTS, &g, &err), &err);
    o.graph = g;
    o.optimizer = optimizer_default(OPTIMIZER_ADAM);
    check(cuda_layout_make(&l, &o, &chip, 0, &err), &err);
    o.keep = true;
    check(cuda_layout_make(&kept, &o, &chip, 0, &err), &err);
    for (i = CUDA_LIST_INPUT1; i <= CUDA_LIST_UPDATE; i++)
        step += l.list[i].count;
    printf("%s, %u px, batch %u: %zu launches a step, %zu forward, %zu backward, %.1f MB (activations %.1f MB), "
           "%.1f MB where nothing shares\n",
           model, side, batch, step, l.list[CUDA_LIST_FORWARD].count, l.list[CUDA_LIST_BACKWARD].count,
           (double)l.bytes / 1e6, (double)l.memory.activations / 1e6, (double)kept.bytes / 1e6);
    expect(l.memory.parameters + l.memory.optimizer + l.memory.activations + l.memory.workspace == l.bytes,
           "the parts of the memory are the whole");
    expect(step <= most_launches, "%s, batch %u: %zu launches a step, not %zu", model, batch, step, most_launches);
    expect((double)l.bytes <= most_bytes, "%s, batch %u: %zu bytes, not %g", model, batch, l.bytes, most_bytes);
    expect(l.memory.activations < kept.memory.activations, "what is kept takes more");
    cuda_layout_free(&l);
    cuda_layout_free(&kept);
    graph_free(g);
}

/* Pieces of random sizes and live ranges: no two that are live at the same time overlap, and memory is shared. */
static void
pieces_are_apart(void)
{
    enum { PIECES = 400, MOMENTS = 300 };
    struct cuda_memory m = {.piece = NULL};
    struct chex_error err;
    size_t i, k, piece, all = 0, together = 0, alive[MOMENTS] = {0};

    for (i = 0; i < PIECES; i++) {
        size_t begin = (size_t)(fabs(random_unit()) * (MOMENTS - 1)), end = begin;

        while (end < MOMENTS - 1 && random_unit() < 0.9)
            end++;
        check(cuda_memory_take(&m, (size_t)(fabs(random_unit()) * 100000) + 1, &piece, &err), &err);
        cuda_memory_touch(&m, piece, end);
        cuda_memory_touch(&m, piece, begin);
        all += m.piece[piece].size;
        for (k = begin; k <= end; k++)
            alive[k] += m.piece[piece].size;
    }
    check(cuda_memory_place(&m, &err), &err);
    for (i = 0; i < PIECES; i++)
        for (k = 0; k < i; k++) {
            const struct live_range *a = &m.piece[i], *b = &m.piece[k];
            bool alive_both = a->begin <= b->end && b->begin <= a->end;

            together += alive_both && a->offset < b->offset + b->size && b->offset < a->offset + a->size;
        }
    expect(together == 0, "%zu pairs of pieces lie over each other while both live", together);
    for (i = k = 0; k < MOMENTS; k++)
        i = alive[k] > i ? alive[k] : i;
    expect(m.bytes >= i && m.bytes < 2 * i && m.bytes < all / 2, "%zu bytes, of %zu in use at once", m.bytes, i);
    check(cuda_memory_take(&m, m.piece[0].size, &piece, &err), &err);
    expect(piece == 0, "the second walk finds the pieces of the first");
    expect(cuda_memory_take(&m, m.piece[1].size + 1, &piece, &err) == CHEX_ERR_BUG, "walks that differ are a bug");
    cuda_memory_free(&m);
}

static void
refuses(struct graph *g, unsigned batch, enum chex_status status, const char *words)
{
    const struct cuda_chip chip = {.set = cuda_kernels_fp16, .value_bytes = 2, .processors = 132};
    struct plan_options o = {.graph = g, .batch = batch, .source = 64, .train = true, .precision = PRECISION_FP16};
    struct chex_error err = {.text = ""};
    struct cuda_layout l;
    enum chex_status got = cuda_layout_make(&l, &o, &chip, 0, &err);

    expect(got == status && strstr(err.text, words), "status %d '%s', not %d '%s'", (int)got, err.text, (int)status,
           words);
    cuda_layout_free(&l);
}

static void
what_is_refused(void)
{
    struct chex_error err;
    struct graph *g;

    check(graph_new("densenet-micro", 64, OUTPUTS, &g, &err), &err);
    refuses(g, UINT32_MAX, CHEX_ERR_MEMORY, "a micro-batch of 4294967295 images");
    refuses(g, 1u << 23, CHEX_ERR_MEMORY, "a micro-batch of 8388608 images");
    g->node[0].pad = 2;
    refuses(g, 2, CHEX_ERR_UNSUPPORTED, "node 0 (features.conv0)");
    g->node[0].pad = 3;
    g->node[4].out.channels -= 4;
    g->node[5].in.channels -= 4;
    refuses(g, 2, CHEX_ERR_UNSUPPORTED,
            "node 4 (features.denseblock1.denselayer1.conv1): GPU kernels need slices that begin and end at multiples");
    graph_free(g);
}

int
main(int argc, char **argv)
{
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (argc > 4)
        random_state = strtoul(argv[4], NULL, 10);
    if (argc > 3) {
        run_model(argv[1], (unsigned)strtoul(argv[2], NULL, 10), (unsigned)strtoul(argv[3], NULL, 10), true);
    } else {
        run_model("densenet-micro", argc > 1 ? 32 : 64, 3, true);
        run_model("densenet-micro", 32, 3, false);
        count_launches("densenet121", 224, 64, 356, 1.32e9);
        count_launches("densenet121", 224, 256, 392, 3.97e9);
        count_launches("resnet50", 224, 64, 276, 2.65e9);
        pieces_are_apart();
        what_is_refused();
    }
    MUST(cudaStreamDestroy(stream));
    printf("%u passed, %u failed\n", passed, failed);
    return failed > 0;
}
