/*
 * layout_fixture.c - see layout_fixture.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "layout_fixture.h"

#include "comm/reduce_host.h"
#include "cuda/kernels/runtime.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_LINES 20

extern const struct backend backend_ref;

unsigned passed, failed;
cudaStream_t stream;

void
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

void
must(cudaError_t e, const char *what, int line)
{
    if (e == cudaSuccess)
        return;
    fprintf(stderr, "line %d: %s: %s\n", line, what, cudaGetErrorName(e));
    exit(3);
}

void
check(enum chex_status status, const struct chex_error *err)
{
    if (status == CHEX_OK)
        return;
    fprintf(stderr, "%s\n", err->text);
    exit(3);
}

void *
take(size_t count, size_t size)
{
    void *p = calloc(count ? count : 1, size);

    if (!p)
        exit(3);
    return p;
}

/* This program has one rank; ref refers to the reducer for several. */
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

uint64_t random_state = 1;

double
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

/* Makes filters whose sum is 0: if all values are large, the outputs are not, and their variance keeps its digits. */
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

float *
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

float *
make_statistics(const struct graph *g)
{
    float *all = take(g->stat_floats, sizeof(*all));
    size_t i;

    for (i = 0; i < g->stat_count; i++)
        fill(all + g->stat[i].offset, g->stat[i].count, g->stat[i].role == GRAPH_VARIANCE ? 1 : 0, 0.3);
    return all;
}

struct images
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
        m.crop[n] = (struct crop){.x = (uint16_t)(n % BORDER), .y = (uint16_t)(2 * n % BORDER), .flip = n % 2 == 1};
        m.crop[n].gain = n % 2 ? 0 : CROP_GAIN / 5;
        m.weight[n] = padding && n == 1 ? 0 : 1;
    }
    for (i = 0; i < (size_t)o->batch * OUTPUTS; i++)
        m.label[i] = i % 3 == 2 ? CHEX_LABEL_UNKNOWN : random_unit() > 0.5;
    m.batch.pixels = m.pixels;
    m.batch.crop = m.crop;
    m.batch.label = m.label;
    m.batch.weight = m.weight;
    return m;
}

void
free_images(struct images *m)
{
    free(m->pixels);
    free(m->label);
    free(m->crop);
    free(m->weight);
}

/* ---- results of a step ------------------------------------------------------------------------------------------- */

size_t
buffer_floats(const struct plan_options *o, size_t i)
{
    const struct graph_buffer *b = &o->graph->buffer[i];

    return (size_t)o->batch * b->channels * b->height * b->width;
}

size_t
map_floats(const struct plan_options *o)
{
    struct graph_head head;

    return o->maps && graph_find_head(o->graph, &head) ? o->batch * head.map_floats : 0;
}

void
make_outcome(const struct plan_options *o, struct outcome *out)
{
    const struct graph *g = o->graph;
    int k;

    for (k = 0; k < 2; k++) {
        out->value[k] = take(g->buffer_count, sizeof(float *));
        out->gradient[k] = take(g->buffer_count, sizeof(float *));
        out->logits[k] = take((size_t)o->batch * OUTPUTS, sizeof(float));
        out->maps[k] = map_floats(o) > 0 ? take(map_floats(o), sizeof(float)) : NULL;
    }
    out->gradients = take(g->param_floats, sizeof(float));
    out->parameters = take(g->param_floats, sizeof(float));
    out->statistics = take(g->stat_floats, sizeof(float));
    out->unfinished = take(g->node_count, sizeof(*out->unfinished));
}

void
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
        free(out->maps[k]);
    }
    free(out->unfinished);
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

void
run_reference(const struct plan_options *o, const struct images *m, const float *parameters, const float *statistics,
              struct outcome *out)
{
    struct plan_options chosen = *o;
    const struct step_end end = {.requests = 0};
    struct chex_error err;
    struct device *device;
    struct plan_facts facts;
    struct step_result result;
    struct plan *plan;
    uint64_t ticket;
    bool done;
    int k;

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
    for (k = 0; k < 2; k++) {
        check(backend_ref.score_start(plan, &m[0].batch, 1, m[0].crop, k == 0 ? ARENA_PARAMETERS : ARENA_AVERAGE,
                                      out->logits[k], out->maps[k], &err),
              &err);
        check(backend_ref.score_finish(plan, &err), &err);
    }
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

void (*launched)(const struct cuda_layout *l, const struct cuda_op *op);

static void
tell(const struct cuda_layout *l, const struct cuda_op *op)
{
    if (!launched)
        return;
    MUST(cudaStreamSynchronize(stream));
    launched(l, op);
}

static void
run_list(const struct cuda_layout *l, enum cuda_list_id id)
{
    size_t i;

    for (i = 0; i < l->list[id].count; i++) {
        MUST(cuda_launch(l->chip.set, &l->list[id].op[i], stream));
        tell(l, &l->list[id].op[i]);
    }
}

static void
put_arena(const struct cuda_layout *l, enum arena_id arena, const float *from)
{
    put(l->arena[arena], from, arena_floats(l->graph, arena) * sizeof(*from));
}

static void
get_arena(const struct cuda_layout *l, enum arena_id arena, float *to)
{
    get(to, l->arena[arena], arena_floats(l->graph, arena) * sizeof(*to));
}

/* Allocates a plan of this size and writes the same initial data as cuda_plan_new(). */
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
    int i;

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
    for (i = 0; i < CUDA_TABLE_COUNT; i++)
        put(l->table[i].at, l->table[i].host, l->table[i].bytes);
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
        struct crop_place place = cuda_crop_place(&m->crop[i]);

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

/* Returns a slab of floats as [image][channel][pixel]. */
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
                out[(n * b->channels + c) * pixels + p] = slab[(n * pixels + p) * ld + c];
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
        if (l->tensor[i].value)
            out->value[k][i] = get_slab(l, i, l->tensor[i].value);
        if (l->tensor[i].gradient)
            out->gradient[k][i] = get_slab(l, i, l->tensor[i].gradient);
    }
}

/* Runs backward; requires that gradients which a launch reports as final do not change later. */
static void
run_backward(const struct cuda_layout *l, struct outcome *out)
{
    const struct cuda_list *list = &l->list[CUDA_LIST_BACKWARD];
    size_t floats = l->graph->param_floats, final = floats, i, k;
    float *then = take(floats, sizeof(*then)), *now = take(floats, sizeof(*now));

    out->finals = 0;
    for (i = 0; i < list->count; i++) {
        size_t from = list->op[i].final;

        MUST(cuda_launch(l->chip.set, &list->op[i], stream));
        tell(l, &list->op[i]);
        if (from == SIZE_MAX)
            continue;
        expect(from < final, "launch %zu: floats from %zu on are final, and from %zu on were before", i, from, final);
        get(then + from, l->arena[ARENA_GRADIENTS] + from * sizeof(float), (final - from) * sizeof(float));
        final = from;
        out->finals++;
    }
    expect(final == 0, "floats before %zu are never final", final);
    get(now, l->arena[ARENA_GRADIENTS], floats * sizeof(float));
    for (i = k = 0; i < floats; i++)
        k += memcmp(&then[i], &now[i], sizeof(float)) != 0;
    expect(k == 0, "%zu gradients change after they were final", k);
    free(then);
    free(now);
}

/* Returns how many times a step launches it. */
static unsigned
count_kernel(const struct cuda_layout *l, enum cuda_kernel_id kernel)
{
    unsigned count = 0;
    size_t k;
    int i;

    for (i = CUDA_LIST_INPUT1; i <= CUDA_LIST_UPDATE; i++)
        for (k = 0; k < l->list[i].count; k++)
            count += l->list[i].op[k].kernel == kernel;
    return count;
}

void
run_lists(const struct plan_options *o, const struct cuda_chip *chip, const struct images *m, const float *parameters,
          const float *statistics, struct outcome *out)
{
    struct cuda_layout l;
    uintptr_t memory = make_plan(&l, o, chip, parameters, statistics);
    struct step_state state;
    unsigned k;
    size_t i;

    for (k = 0; k < 2; k++) {
        fill_slot(&l, &m[k], k, k);
        if (k == 0)
            run_list(&l, CUDA_LIST_BEGIN);
        run_list(&l, CUDA_LIST_FORWARD);
        run_backward(&l, out);
        get_buffers(&l, (int)k, out);
    }
    run_list(&l, CUDA_LIST_END);
    run_list(&l, CUDA_LIST_UPDATE);
    get(&state, l.state, sizeof(state));
    expect(state.apply == 1 && state.applied == 1, "the step is applied: loss %g, norm %g", state.loss, state.norm);
    out->loss = state.loss;
    out->norm = state.norm;
    get_arena(&l, ARENA_GRADIENTS, out->gradients);
    for (i = 0; i < o->graph->param_floats; i++) /* as cuda_read() */
        out->gradients[i] = (float)(state.rescale * (double)out->gradients[i]);
    get_arena(&l, ARENA_PARAMETERS, out->parameters);
    get_arena(&l, ARENA_STATISTICS, out->statistics);
    fill_slot(&l, &m[0], 0, 0);
    for (k = 0; k < 2; k++) {
        run_list(&l, k == 0 ? CUDA_LIST_PACK : CUDA_LIST_PACK_AVERAGE);
        run_list(&l, k == 0 ? CUDA_LIST_SCORE : CUDA_LIST_SCORE_AVERAGE);
        get(out->logits[k], l.logits, (size_t)o->batch * OUTPUTS * sizeof(float));
        if (out->maps[k])
            get(out->maps[k], l.maps, map_floats(o) * sizeof(float));
    }
    for (k = 0; k < CUDA_KERNEL_COUNT; k++)
        out->launches[k] = count_kernel(&l, (enum cuda_kernel_id)k);
    memcpy(out->unfinished, l.unfinished, o->graph->node_count * sizeof(*out->unfinished));
    MUST(cudaFree((void *)memory));
    cuda_layout_free(&l);
}
