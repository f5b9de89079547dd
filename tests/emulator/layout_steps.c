/*
 * layout_steps.c - a whole step as lists of launches (train/gpu/cuda_layout.h), run one by one beside the backend ref
 *
 *     layout_steps [small | MODEL SIDE BATCH [SEED]]
 *
 * densenet-micro at 64 pixels by default, at 32 for builds in which everything is slow.  Two micro-batches, the first
 * with an image of weight 0 in its middle: every buffer, its gradient, gradients of parameters, running statistics,
 * loss, parameters after the step, then logits with running statistics, of the parameters and of their average.  With
 * and without `keep` the bits are the same.
 *
 * A ReLU whose input is 0 but for rounding makes a difference of finite size in gradients (kinks.h), and among so many
 * inputs there may be such a one with any weights.  So gradients are compared closely where a large beta keeps inputs
 * away from 0, and with other weights, for the sake of what a ReLU holds back, within some hundredths.  Where last bits
 * of the parameters move the gradients of ref (three values of a channel are hardly a variance), more is allowed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "backend/backend.h"
#include "comm/reduce_host.h"
#include "emulator.h"
#include "gpu/cuda_layout.h"
#include "gpu/cuda_memory.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUTPUTS    14
#define PROCESSORS 8 /* few, but enough that sums are split */
#define BORDER     5 /* pixels around what the network sees */
#define MOST_LINES 20

extern const struct backend backend_ref;

static unsigned passed, failed;
static cudaStream_t stream;

static void
expect(bool good, const char *format, ...)
{
    va_list args;

    good ? passed++ : failed++;
    if (good || failed > MOST_LINES)
        return;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
}

#define MUST(call) must(call, #call, __LINE__)
static void
must(cudaError_t e, const char *what, int line)
{
    if (e == cudaSuccess)
        return;
    fprintf(stderr, "line %d: %s: %s\n", line, what, cudaGetErrorName(e));
    exit(3);
}

static void
check(enum chex_status status, const struct chex_error *err)
{
    if (status == CHEX_OK)
        return;
    fprintf(stderr, "%s\n", err->text);
    exit(3);
}

static void *
take(size_t count, size_t size)
{
    void *p = calloc(count ? count : 1, size);

    if (!p)
        exit(3);
    return p;
}

/* This program has one rank; ref names the reducer of several. */
enum chex_status
reduce_host_new(struct device *device, struct collective *c, struct reduce **out, struct chex_error *err)
{
    (void)device;
    (void)c;
    (void)err;
    *out = NULL;
    return CHEX_ERR_UNSUPPORTED;
}

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

static uint64_t random_state = 1;

static double
random_unit(void) /* in (-1, 1) */
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(random_state >> 40) / 8388608.0 - 1;
}

static void
fill(float *to, size_t count, double around, double by)
{
    size_t i;

    for (i = 0; i < count; i++)
        to[i] = (float)(around + by * random_unit());
}

/* Filters whose sum is 0: of values that are all large, the outputs are not, and lose no digits in their variance. */
static void
balance(float *w, size_t filters, size_t inputs)
{
    size_t o, i;

    for (o = 0; o < filters; o++) {
        double sum = 0;

        for (i = 0; i < inputs; i++)
            sum += (double)w[o * inputs + i];
        for (i = 0; i < inputs; i++)
            w[o * inputs + i] -= (float)(sum / (double)inputs);
    }
}

/* smooth: what goes into a ReLU is far from 0. */
static float *
make_parameters(const struct graph *g, bool smooth)
{
    float *all = take(g->param_floats, sizeof(*all));
    size_t i;

    for (i = 0; i < g->param_count; i++) {
        const struct graph_tensor *t = &g->param[i];
        double inputs = (double)t->count / t->shape[0];

        if (t->role == GRAPH_WEIGHT)
            fill(all + t->offset, t->count, 0, sqrt((t->rank == 4 ? 6 : 1) / inputs));
        else if (t->role == GRAPH_GAMMA)
            fill(all + t->offset, t->count, smooth ? 0.2 : 1, smooth ? 0.05 : 0.3);
        else
            fill(all + t->offset, t->count, smooth && t->role == GRAPH_BETA ? 4 : 0, 0.3);
        if (smooth && t->rank == 4)
            balance(all + t->offset, t->shape[0], t->count / t->shape[0]);
    }
    return all;
}

static float *
make_statistics(const struct graph *g)
{
    float *all = take(g->stat_floats, sizeof(*all));
    size_t i;

    for (i = 0; i < g->stat_count; i++)
        fill(all + g->stat[i].offset, g->stat[i].count, g->stat[i].role == GRAPH_VARIANCE ? 1 : 0, 0.3);
    return all;
}

struct images {
    uint8_t *pixels, *label;
    struct crop *crop;
    float *weight;
    struct batch batch;
};

/* Smooth images, so that means and variances are no noise. */
static struct images
make_images(const struct plan_options *o, bool padding)
{
    size_t pixels = (size_t)o->source * o->source, i, n;
    struct images m = {take(o->batch, pixels),
                       take(o->batch, OUTPUTS),
                       take(o->batch, sizeof(struct crop)),
                       take(o->batch, sizeof(float)),
                       {.scale = 0.01}};

    for (n = 0; n < o->batch; n++) {
        double phase = random_unit() * 3, wave = 0.1 + 0.05 * random_unit();

        for (i = 0; i < pixels; i++)
            m.pixels[n * pixels + i] = (uint8_t)(128 +
                                                 90 * sin(phase + wave * (double)(i % o->source)) *
                                                     cos(wave * 2 * (double)i / o->source) +
                                                 30 * random_unit());
        m.crop[n] = (struct crop){(uint16_t)(n % BORDER), (uint16_t)(2 * n % BORDER), n % 2 == 1};
        m.weight[n] = padding && n == 1 ? 0 : 1;
    }
    for (i = 0; i < (size_t)o->batch * OUTPUTS; i++)
        m.label[i] = random_unit() > 0.5;
    m.batch.pixels = m.pixels;
    m.batch.crop = m.crop;
    m.batch.label = m.label;
    m.batch.weight = m.weight;
    return m;
}

static void
free_images(struct images *m)
{
    free(m->pixels);
    free(m->label);
    free(m->crop);
    free(m->weight);
}

/* ---- what comes of a step ---------------------------------------------------------------------------------------- */

struct outcome {
    float **value[2], **gradient[2]; /* [micro-batch][buffer], NULL: not kept */
    float *gradients, *statistics, *parameters;
    float *logits[2]; /* with running statistics: of the parameters, of the average */
    double loss, norm;
};

static size_t
buffer_floats(const struct plan_options *o, size_t i)
{
    const struct graph_buffer *b = &o->graph->buffer[i];

    return (size_t)o->batch * b->channels * b->height * b->width;
}

static void
make_outcome(const struct plan_options *o, struct outcome *out)
{
    const struct graph *g = o->graph;
    int k;

    for (k = 0; k < 2; k++) {
        out->value[k] = take(g->buffer_count, sizeof(float *));
        out->gradient[k] = take(g->buffer_count, sizeof(float *));
        out->logits[k] = take((size_t)o->batch * OUTPUTS, sizeof(float));
    }
    out->gradients = take(g->param_floats, sizeof(float));
    out->parameters = take(g->param_floats, sizeof(float));
    out->statistics = take(g->stat_floats, sizeof(float));
}

static void
free_outcome(const struct plan_options *o, struct outcome *out)
{
    size_t i;
    int k;

    for (k = 0; k < 2; k++) {
        for (i = 0; i < o->graph->buffer_count; i++) {
            free(out->value[k][i]);
            free(out->gradient[k][i]);
        }
        free(out->value[k]);
        free(out->gradient[k]);
        free(out->logits[k]);
    }
    free(out->gradients);
    free(out->parameters);
    free(out->statistics);
}

/* ---- the reference ----------------------------------------------------------------------------------------------- */

static void
peek_all(struct plan *plan, const struct plan_options *o, int k, struct outcome *out)
{
    struct chex_error err;
    size_t i;

    for (i = 0; i < o->graph->buffer_count; i++) {
        if (i == o->graph->input)
            continue;
        out->value[k][i] = take(buffer_floats(o, i), sizeof(float));
        out->gradient[k][i] = take(buffer_floats(o, i), sizeof(float));
        check(backend_ref.peek(plan, (unsigned)i, false, out->value[k][i], &err), &err);
        check(backend_ref.peek(plan, (unsigned)i, true, out->gradient[k][i], &err), &err);
    }
}

static void
run_reference(const struct plan_options *o, const struct images *m, const float *parameters, const float *statistics,
              struct outcome *out)
{
    struct plan_options chosen = *o;
    const struct step_end end = {.wishes = 0};
    struct chex_error err;
    struct device *device;
    struct plan_facts facts;
    struct step_result result;
    struct plan *plan;
    uint64_t ticket;
    bool done;

    chosen.precision = PRECISION_AUTO;
    check(backend_ref.device_open(0, &device, &err), &err);
    check(backend_ref.plan_new(device, &chosen, &plan, &facts, &err), &err);
    check(backend_ref.write(plan, ARENA_PARAMETERS, parameters, &err), &err);
    check(backend_ref.write(plan, ARENA_AVERAGE, parameters, &err), &err);
    check(backend_ref.write(plan, ARENA_STATISTICS, statistics, &err), &err);
    check(backend_ref.accumulate(plan, &m[0].batch, STEP_FIRST, NULL, &err), &err);
    peek_all(plan, o, 0, out);
    check(backend_ref.accumulate(plan, &m[1].batch, STEP_LAST, &end, &err), &err);
    peek_all(plan, o, 1, out);
    check(backend_ref.update(plan, 0.1, 1.0, &ticket, &err), &err);
    check(backend_ref.result(plan, ticket, &done, &result, &err), &err);
    out->loss = result.loss;
    out->norm = result.norm;
    check(backend_ref.read(plan, ARENA_GRADIENTS, out->gradients, &err), &err);
    check(backend_ref.read(plan, ARENA_PARAMETERS, out->parameters, &err), &err);
    check(backend_ref.read(plan, ARENA_STATISTICS, out->statistics, &err), &err);
    check(backend_ref.score(plan, &m[0].batch, 1, m[0].crop, ARENA_PARAMETERS, out->logits[0], &err), &err);
    check(backend_ref.score(plan, &m[0].batch, 1, m[0].crop, ARENA_AVERAGE, out->logits[1], &err), &err);
    backend_ref.plan_free(plan);
    backend_ref.device_close(device);
}

/* ---- the lists --------------------------------------------------------------------------------------------------- */

static void
put(uintptr_t to, const void *from, size_t bytes)
{
    if (bytes > 0)
        MUST(cudaMemcpy((void *)to, from, bytes, cudaMemcpyHostToDevice));
}

static void
get(void *to, uintptr_t from, size_t bytes)
{
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaMemcpy(to, (const void *)from, bytes, cudaMemcpyDeviceToHost));
}

static void
run_list(const struct cuda_layout *l, enum cuda_list_id id)
{
    size_t i;

    for (i = 0; i < l->list[id].count; i++)
        MUST(cuda_launch(l->chip.set, &l->list[id].op[i], stream));
}

static void
put_arena(const struct cuda_layout *l, enum arena_id arena, const float *from)
{
    size_t floats = arena_floats(l->graph, arena);
    float *spread = take(floats, sizeof(*spread));

    cuda_eights_spread(l->eights, arena, from, spread);
    put(l->arena[arena], spread, floats * sizeof(*spread));
    free(spread);
}

static void
get_arena(const struct cuda_layout *l, enum arena_id arena, float *to)
{
    size_t floats = arena_floats(l->graph, arena);
    float *spread = take(floats, sizeof(*spread));

    get(spread, l->arena[arena], floats * sizeof(*spread));
    cuda_eights_gather(l->eights, arena, spread, to);
    free(spread);
}

/* Memory of so many bytes, and what cuda_plan_new() puts into it. */
static uintptr_t
make_plan(struct cuda_layout *l, const struct plan_options *o, const struct cuda_chip *chip, const float *parameters,
          const float *statistics)
{
    const struct step_state state = {.loss_scale = o->precision == PRECISION_FP16 ? LOSS_SCALE_START : 1};
    const struct end_block end = {.fade = 1};
    const struct step_block step = {.rate = 0.1, .clip = 1};
    struct chex_error err;
    void *memory;
    size_t bytes;

    check(cuda_layout_make(l, o, chip, 0, &err), &err);
    bytes = l->bytes;
    cuda_layout_free(l);
    MUST(cuda_prepare(chip->set));
    MUST(cudaMalloc(&memory, bytes));
    check(cuda_layout_make(l, o, chip, (uintptr_t)memory, &err), &err);
    expect(l->bytes == bytes, "the same plan is of %zu and of %zu bytes", bytes, l->bytes);
    put_arena(l, ARENA_PARAMETERS, parameters);
    put_arena(l, ARENA_AVERAGE, parameters);
    put_arena(l, ARENA_STATISTICS, statistics);
    MUST(cudaMemset((void *)l->arena[ARENA_MOMENT1], 0, l->graph->param_floats * sizeof(float)));
    if (l->arena[ARENA_MOMENT2])
        MUST(cudaMemset((void *)l->arena[ARENA_MOMENT2], 0, l->graph->param_floats * sizeof(float)));
    put(l->state, &state, sizeof(state));
    put(l->end_block, &end, sizeof(end));
    put(l->step_block, &step, sizeof(step));
    put(l->entry_at, l->entry, l->entries * sizeof(*l->entry));
    put(l->positive_weight_at, l->positive_weight, l->positive_weight ? OUTPUTS * sizeof(float) : 0);
    put(l->stat_pixels_at, l->stat_pixels, l->graph->stat_floats * sizeof(*l->stat_pixels));
    return (uintptr_t)memory;
}

static void
fill_slot(const struct cuda_layout *l, const struct images *m, unsigned slot, unsigned number)
{
    const struct plan_options *o = l->options;
    char *bytes = take(l->slot.bytes, 1);
    struct batch_block block = {.scale = m->batch.scale, .number = number};
    unsigned i;

    for (i = 0; i < o->batch; i++) {
        struct crop_place place = {m->crop[i].x, m->crop[i].y, m->crop[i].flip};

        block.images += m->weight[i] != 0;
        memcpy(bytes + l->slot.crop + i * sizeof(place), &place, sizeof(place));
    }
    memcpy(bytes + l->slot.block, &block, sizeof(block));
    memset(bytes + l->slot.index, 0xff, o->batch * sizeof(uint32_t));
    memcpy(bytes + l->slot.weight, m->weight, o->batch * sizeof(float));
    memcpy(bytes + l->slot.label, m->label, (size_t)o->batch * OUTPUTS);
    memcpy(bytes + l->slot.pixels, m->pixels, (size_t)o->batch * o->source * o->source);
    put(l->slots[slot], bytes, l->slot.bytes);
    free(bytes);
    run_list(l, slot == 0 ? CUDA_LIST_INPUT0 : CUDA_LIST_INPUT1);
}

/* A slab of floats as [image][channel][pixel]. */
static float *
get_slab(const struct cuda_layout *l, size_t buffer, uintptr_t at)
{
    const struct plan_options *o = l->options;
    unsigned ld = l->tensor[buffer].ld;
    const struct graph_buffer *b = &o->graph->buffer[buffer];
    size_t pixels = (size_t)b->height * b->width, n, p, c;
    float *slab = take(o->batch * pixels * ld, sizeof(*slab)), *out = take(buffer_floats(o, buffer), sizeof(*out));

    get(slab, at, o->batch * pixels * ld * sizeof(*slab));
    for (n = 0; n < o->batch; n++)
        for (c = 0; c < b->channels; c++)
            for (p = 0; p < pixels; p++)
                out[(n * b->channels + c) * pixels + p] = slab[(n * pixels + p) * ld + l->eights->channel[buffer][c]];
    free(slab);
    return out;
}

static void
get_buffers(const struct cuda_layout *l, int k, struct outcome *out)
{
    const struct plan_options *o = l->options;
    size_t i;

    for (i = 0; i < o->graph->buffer_count; i++) {
        if (i == o->graph->input || !o->keep || l->chip.value_bytes != sizeof(float))
            continue;
        out->value[k][i] = get_slab(l, i, l->tensor[i].value);
        out->gradient[k][i] = get_slab(l, i, l->tensor[i].gradient);
    }
}

static void
run_lists(const struct plan_options *o, const struct cuda_chip *chip, const struct images *m, const float *parameters,
          const float *statistics, struct outcome *out)
{
    struct cuda_layout l;
    uintptr_t memory = make_plan(&l, o, chip, parameters, statistics);
    struct step_state state;
    unsigned k;

    for (k = 0; k < 2; k++) {
        fill_slot(&l, &m[k], k, k);
        if (k == 0)
            run_list(&l, CUDA_LIST_BEGIN);
        run_list(&l, CUDA_LIST_FORWARD);
        run_list(&l, CUDA_LIST_BACKWARD);
        get_buffers(&l, (int)k, out);
    }
    run_list(&l, CUDA_LIST_END);
    run_list(&l, CUDA_LIST_UPDATE);
    get(&state, l.state, sizeof(state));
    expect(state.apply == 1 && state.applied == 1, "the step is applied: loss %g, norm %g", state.loss, state.norm);
    out->loss = state.loss;
    out->norm = state.norm;
    get_arena(&l, ARENA_GRADIENTS, out->gradients);
    get_arena(&l, ARENA_PARAMETERS, out->parameters);
    get_arena(&l, ARENA_STATISTICS, out->statistics);
    fill_slot(&l, &m[0], 0, 0);
    for (k = 0; k < 2; k++) {
        run_list(&l, k == 0 ? CUDA_LIST_PACK : CUDA_LIST_PACK_AVERAGE);
        run_list(&l, k == 0 ? CUDA_LIST_SCORE : CUDA_LIST_SCORE_AVERAGE);
        get(out->logits[k], l.logits, (size_t)o->batch * OUTPUTS * sizeof(float));
    }
    MUST(cudaFree((void *)memory));
    cuda_layout_free(&l);
}

/* ---- comparison -------------------------------------------------------------------------------------------------- */

/* The norm of the difference over that of what is wanted, or `least` of a norm. */
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

/* Of what is made before a gradient, and behind one. */
struct tolerance {
    double values, gradients;
};

static void
compare_buffers(const struct plan_options *o, const struct outcome *got, const struct outcome *want,
                struct tolerance allowed)
{
    size_t i;
    int k;

    for (k = 0; k < 2; k++)
        for (i = 0; i < o->graph->buffer_count; i++) {
            size_t floats = buffer_floats(o, i);

            if (!got->value[k][i])
                continue;
            compare("values of buffer", i, got->value[k][i], want->value[k][i], floats, allowed.values);
            compare("gradients of buffer", i, got->gradient[k][i], want->gradient[k][i], floats, allowed.gradients);
        }
}

static void
compare_outcomes(const char *name, const struct plan_options *o, const struct outcome *got, const struct outcome *want,
                 struct tolerance allowed)
{
    const struct graph *g = o->graph;
    size_t logits = (size_t)o->batch * OUTPUTS, i;

    worst = 0;
    compare_buffers(o, got, want, allowed);
    /* A beta that the next normalisation takes away again has a gradient of 0 but for rounding. */
    for (i = 0; i < g->param_count && o->precision == PRECISION_FP32; i++)
        compare_least(g->param[i].name, i, got->gradients + g->param[i].offset, want->gradients + g->param[i].offset,
                      g->param[i].count, allowed.gradients, want->norm / 1000);
    compare("all gradients", 0, got->gradients, want->gradients, g->param_floats, allowed.gradients);
    compare("statistics", 0, got->statistics, want->statistics, g->stat_floats, allowed.values);
    compare("parameters", 0, got->parameters, want->parameters, g->param_floats, allowed.gradients);
    compare("logits of the parameters", 0, got->logits[0], want->logits[0], logits, allowed.gradients);
    compare("logits of the average", 0, got->logits[1], want->logits[1], logits, allowed.gradients);
    expect(fabs(got->loss - want->loss) <= allowed.values * want->loss, "loss %.9g, not %.9g", got->loss, want->loss);
    expect(fabs(got->norm - want->norm) <= allowed.gradients * want->norm, "norm %.9g, not %.9g", got->norm,
           want->norm);
    printf("%s: loss %.6f, worst error %.2g\n", name, got->loss, worst);
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
    expect(a->loss == b->loss, "%s: the loss differs", name);
}

/* ---- cases ------------------------------------------------------------------------------------------------------- */

static const struct precision_case {
    const char *name;
    enum precision precision;
    struct cuda_chip chip;
    struct tolerance smooth, rough; /* rough: with a ReLU at its kink here and there */
} cases[] = {
#ifndef ONLY_FP16
    {"fp32", PRECISION_FP32, {cuda_kernels_float, 4, PROCESSORS}, {1e-4, 1e-4}, {1e-4, 0.03}},
    {"bf16", PRECISION_BF16, {cuda_kernels_bf16, 2, PROCESSORS}, {0.1, 0.5}, {0.1, 0.6}},
#endif
    {"fp16", PRECISION_FP16, {cuda_kernels_fp16, 2, PROCESSORS}, {0.02, 0.1}, {0.02, 0.3}},
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
    compare_outcomes(c->name, &o, &kept, want, allowed);
    o.keep = false;
    run_lists(&o, &c->chip, m, parameters, statistics, &shared);
    same_bits(c->name, &o, &kept, &shared);
    free_outcome(&o, &kept);
    free_outcome(&o, &shared);
}

/* How far gradients of the reference move where each parameter moves by some of its last bits. */
static double
sensitivity(const struct plan_options *o, const struct images *m, const float *parameters, const float *statistics,
            const struct outcome *want)
{
    size_t floats = o->graph->param_floats, i;
    float *moved = take(floats, sizeof(*moved));
    struct outcome got = {.loss = 0};
    double most;
    int k;

    for (i = 0; i < floats; i++)
        moved[i] = (float)((double)parameters[i] * (1 + 2e-7 * random_unit()));
    make_outcome(o, &got);
    run_reference(o, m, moved, statistics, &got);
    most = error_of(got.gradients, want->gradients, floats, 0);
    for (k = 0; k < 2; k++)
        for (i = 0; i < o->graph->buffer_count; i++)
            if (got.gradient[k][i])
                most = fmax(most, error_of(got.gradient[k][i], want->gradient[k][i], buffer_floats(o, i), 0));
    free_outcome(o, &got);
    free(moved);
    printf("last bits of the parameters move gradients of ref by %.2g\n", most);
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
                             .average = true,
                             .keep = true,
                             .loss = {.kind = LOSS_FOCAL, .gamma = 2, .positive_weight = positive}};
    struct outcome want = {.loss = 0};
    struct images m[2];
    struct chex_error err;
    struct graph *g;
    float *parameters, *statistics;
    double moves;
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

        allowed.gradients = fmax(allowed.gradients, 10 * moves);
        run_case(&cases[i], &o, m, parameters, statistics, &want, allowed);
    }
    free_outcome(&o, &want);
    free_images(&m[0]);
    free_images(&m[1]);
    free(parameters);
    free(statistics);
    graph_free(g);
}

/* How many launches a step takes, and how much memory, of an H200. */
static void
count_launches(const char *model, unsigned side, unsigned batch)
{
    const struct cuda_chip chip = {cuda_kernels_fp16, 2, 132};
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
    expect(l.memory.activations < kept.memory.activations, "what is kept takes more");
    cuda_layout_free(&l);
    cuda_layout_free(&kept);
    graph_free(g);
}

/* Pieces of any size and time: none lies over another one that lives at the same time, and memory is shared. */
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
        all += m.piece[piece].bytes;
        for (k = begin; k <= end; k++)
            alive[k] += m.piece[piece].bytes;
    }
    check(cuda_memory_place(&m, &err), &err);
    for (i = 0; i < PIECES; i++)
        for (k = 0; k < i; k++) {
            const struct cuda_piece *a = &m.piece[i], *b = &m.piece[k];
            bool alive_both = a->begin <= b->end && b->begin <= a->end;

            together += alive_both && a->at < b->at + b->bytes && b->at < a->at + a->bytes;
        }
    expect(together == 0, "%zu pairs of pieces lie over each other while both live", together);
    for (i = k = 0; k < MOMENTS; k++)
        i = alive[k] > i ? alive[k] : i;
    expect(m.bytes >= i && m.bytes < 2 * i && m.bytes < all / 2, "%zu bytes, of %zu in use at once", m.bytes, i);
    check(cuda_memory_take(&m, m.piece[0].bytes, &piece, &err), &err);
    expect(piece == 0, "the second walk finds the pieces of the first");
    expect(cuda_memory_take(&m, m.piece[1].bytes + 1, &piece, &err) == CHEX_ERR_BUG, "walks that differ are a bug");
    cuda_memory_free(&m);
}

static void
refuses(struct graph *g, unsigned batch, enum chex_status status, const char *words)
{
    const struct cuda_chip chip = {cuda_kernels_fp16, 2, 132};
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
    g->node[5].in.channels -= 4; /* of what two nodes wrote */
    refuses(g, 2, CHEX_ERR_UNSUPPORTED, "node 5");
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
        count_launches("densenet121", 224, 64);
        pieces_are_apart();
        what_is_refused();
    }
    MUST(cudaStreamDestroy(stream));
    printf("%u passed, %u failed\n", passed, failed);
    return failed > 0;
}
