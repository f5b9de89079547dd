/*
 * steps.c - compares training steps on one device with those on another: repeated bits, and relative errors
 *
 *     gpu-steps DEVICE[:PRECISION] OTHER[:PRECISION] MODEL SIDE BATCH STEPS [ENGINE]
 *
 * DEVICE runs several times, and the bits must be the same each time.  The third run launches each kernel on its own
 * instead of a graph (plan_options.no_graph), the fourth uses programmatic dependent launch (plan_options.pdl), the
 * fifth has sums over one rank by NCCL in its graph, if NCCL is available.
 *
 * All runs use the same random weights and images; with three or more images, the second one has weight 0.  Prints one
 * JSON object: relative errors (the norm of the difference divided by the norm of OTHER) of the logits, the gradients
 * (all together, the median over tensors, the worst tensor) and the running statistics of the first step, of the logits
 * in evaluation, and the loss of each step.  Precision: auto unless given.  ENGINE of DEVICE: own unless given.
 *
 * Exit status: 0 both ran, 1 an error or other bits in another run, 2 usage, 77 there is no such device here
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "device_word.h"
#include "ranks/collective.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OUTPUTS = 14, MOST_SKIPPED = 30 };

struct problem {
    struct graph *graph;
    unsigned side, batch, steps;
    enum engine engine;      /* of the current run */
    uint8_t *pixels, *label; /* of one step; all steps use the same images */
    struct crop *crop;
    float *weight, *parameters;
    float *statistics; /* for evaluation: those of the batch, after a run has found them */
};

/* The results of a run. */
struct outcome {
    struct device_info device;
    struct plan_facts facts;
    float *logits, *gradients, *statistics, *parameters, *evaluated;
    double *loss;
    unsigned skipped; /* steps that were skipped to lower the loss scale */
};

static void *
checked(void *p)
{
    if (!p) {
        fprintf(stderr, "gpu-steps: out of memory\n");
        exit(1);
    }
    return p;
}

static float *
room(size_t count)
{
    return checked(calloc(count, sizeof(float)));
}

static void
check(enum chex_status status, const struct chex_error *err)
{
    if (status == CHEX_OK)
        return;
    fprintf(stderr, "gpu-steps: %s\n", err->text);
    exit(1);
}

/* Knuth's MMIX generator; the upper bits as a number in [0, 1). */
static float
draw(void)
{
    static uint64_t state = 1;

    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float)(state >> 40) * 0x1p-24f;
}

/* He's initialisation, gamma 1; a quarter of the labels is 1. */
static void
fill(struct problem *p)
{
    const struct graph *g = p->graph;
    size_t pixels = (size_t)p->batch * p->side * p->side, i, k;

    p->parameters = room(g->param_floats);
    p->weight = room(p->batch);
    p->crop = checked(calloc(p->batch, sizeof(*p->crop)));
    p->pixels = checked(malloc(pixels));
    p->label = checked(malloc((size_t)p->batch * OUTPUTS));
    for (i = 0; i < g->param_count; i++) {
        const struct graph_tensor *t = &g->param[i];
        float width = t->role == GRAPH_WEIGHT ? sqrtf(6.0f * (float)t->shape[0] / (float)t->count) : 0;

        for (k = 0; k < t->count; k++)
            p->parameters[t->offset + k] = t->role == GRAPH_GAMMA ? 1 : width * (2 * draw() - 1);
    }
    for (i = 0; i < pixels; i++)
        p->pixels[i] = (uint8_t)(256 * draw());
    for (i = 0; i < (size_t)p->batch * OUTPUTS; i++)
        p->label[i] = draw() < 0.25f;
    for (i = 0; i < p->batch; i++)
        p->weight[i] = p->batch < 3 || i != 1;
}

/* Repeats a step that was skipped to lower the loss scale. */
static double
make_step(const struct backend *b, struct plan *plan, const struct batch *batch, unsigned *skipped)
{
    const struct step_end end = {.requests = 0};
    struct chex_error err = {.status = CHEX_OK};
    struct step_result result;
    unsigned tries;

    for (tries = 0; tries < MOST_SKIPPED; tries++) {
        uint64_t ticket;
        bool done = false;

        check(b->accumulate(plan, batch, STEP_FIRST | STEP_LAST, &end, &err), &err);
        check(b->update(plan, 1e-4, 0, &ticket, &err), &err);
        while (!done)
            check(b->result(plan, ticket, &done, &result, &err), &err);
        if (result.applied)
            return result.loss;
        if (result.halted)
            break;
        (*skipped)++;
    }
    fprintf(stderr, "gpu-steps: %s: the step is not finite, loss %g, norm %g, loss scale %g\n", b->name, result.loss,
            result.norm, result.state.loss_scale);
    exit(1);
}

/* After one step, the running statistics are 0.9 start + 0.1 batch; solve for those of the batch. */
static void
find_batch_statistics(struct problem *p, const float *after)
{
    size_t count = p->graph->stat_floats, i;

    p->statistics = room(count);
    arena_start_statistics(p->graph, p->statistics);
    for (i = 0; i < count; i++)
        p->statistics[i] += (after[i] - p->statistics[i]) / GRAPH_NORM_MOMENTUM;
}

/* Only in a build with CUDA (comm/reduce.h). */
enum chex_status reduce_nccl_new(struct device *device, struct collective *c, struct reduce **out,
                                 struct chex_error *err) __attribute__((weak));

/* Creates an NCCL reducer of one rank. */
static struct reduce *
sum_alone(struct device *device, struct collective *c)
{
    struct chex_error err = {.status = CHEX_OK};
    struct reduce *reduce;

    check(reduce_nccl_new(device, c, &reduce, &err), &err);
    return reduce;
}

/* Returns true if the backend can sum by NCCL; *why is the reason if it cannot. */
static bool
has_nccl(const struct backend *b, char why[BACKEND_LIBRARY])
{
    why[0] = '\0';
    if (!b->library || !reduce_nccl_new || strcmp(b->library(0, why), "nccl") != 0)
        return false;
    return why[0] >= '0' && why[0] <= '9'; /* "2.28.9" */
}

struct way {
    bool no_graph, nccl, pdl;
};

static struct outcome
run(struct problem *p, const struct backend *b, enum precision precision, struct way way)
{
    const struct collective_options together = {.timeout = 0};
    struct comm comm = comm_self();
    struct collective *self;
    const struct graph *g = p->graph;
    struct plan_options o = {.graph = g,
                             .batch = p->batch,
                             .source = p->side,
                             .train = true,
                             .deterministic = true,
                             .no_graph = way.no_graph,
                             .pdl = way.pdl,
                             .precision = precision,
                             .engine = p->engine,
                             .threads = 2,
                             .optimizer = optimizer_default(OPTIMIZER_ADAM)};
    unsigned counted = p->batch < 3 ? p->batch : p->batch - 1, i;
    struct batch batch = {.pixels = p->pixels,
                          .crop = p->crop,
                          .label = p->label,
                          .weight = p->weight,
                          .scale = 1 / (double)(counted * OUTPUTS)};
    struct chex_error err = {.status = CHEX_OK};
    struct outcome out = {.logits = room((size_t)p->batch * OUTPUTS),
                          .evaluated = room((size_t)p->batch * OUTPUTS),
                          .gradients = room(g->param_floats),
                          .parameters = room(g->param_floats),
                          .statistics = room(g->stat_floats),
                          .loss = checked(calloc(p->steps, sizeof(double)))};
    struct device *device;
    struct plan *plan;

    check(collective_new(&comm, &together, &self, &err), &err);
    check(b->device_open(0, &device, &err), &err);
    if (way.nccl)
        o.reduce = sum_alone(device, self);
    check(b->plan_new(device, &o, &plan, &out.facts, &err), &err);
    out.device = device->info;
    check(b->write(plan, ARENA_PARAMETERS, p->parameters, &err), &err);
    for (i = 0; i < p->steps; i++) {
        out.loss[i] = make_step(b, plan, &batch, &out.skipped);
        if (i > 0)
            continue;
        check(b->peek(plan, g->output, false, out.logits, &err), &err);
        check(b->read(plan, ARENA_GRADIENTS, out.gradients, &err), &err);
        check(b->read(plan, ARENA_STATISTICS, out.statistics, &err), &err);
        if (!p->statistics)
            find_batch_statistics(p, out.statistics);
    }
    check(b->read(plan, ARENA_PARAMETERS, out.parameters, &err), &err);
    check(b->write(plan, ARENA_PARAMETERS, p->parameters, &err), &err);
    check(b->write(plan, ARENA_STATISTICS, p->statistics, &err), &err);
    check(backend_score(b, plan, &batch, 1, p->crop, ARENA_PARAMETERS, out.evaluated, &err), &err);
    b->plan_free(plan);
    if (o.reduce)
        o.reduce->ops->free(o.reduce);
    b->device_close(device);
    collective_free(self);
    return out;
}

static void
free_outcome(struct outcome *o)
{
    free(o->logits);
    free(o->evaluated);
    free(o->gradients);
    free(o->parameters);
    free(o->statistics);
    free(o->loss);
}

/* ---- comparison -------------------------------------------------------------------------------------------------- */

static double
error_of(const float *got, const float *wanted, size_t count, double least)
{
    double difference = 0, norm = 0;
    size_t i;

    for (i = 0; i < count; i++) {
        difference += ((double)got[i] - (double)wanted[i]) * ((double)got[i] - (double)wanted[i]);
        norm += (double)wanted[i] * (double)wanted[i];
    }
    return sqrt(difference) / fmax(sqrt(norm), least);
}

static int
by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* NaN and infinity become null. */
static void
put_number(const char *name, double value)
{
    if (isfinite(value))
        printf(", \"%s\": %.6g", name, value);
    else
        printf(", \"%s\": null", name);
}

/* The error of a gradient that is zero except for rounding is relative to the mean of all tensors' norms. */
static void
put_gradients(const struct graph *g, const float *got, const float *wanted)
{
    double *errors = checked(calloc(g->param_count, sizeof(double))), squares = 0, least;
    size_t i, worst = 0;

    for (i = 0; i < g->param_floats; i++)
        squares += (double)wanted[i] * (double)wanted[i];
    least = 3e-3 * sqrt(squares / (double)g->param_count);
    for (i = 0; i < g->param_count; i++) {
        const struct graph_tensor *t = &g->param[i];

        errors[i] = error_of(got + t->offset, wanted + t->offset, t->count, least);
        worst = errors[i] > errors[worst] ? i : worst;
    }
    put_number("gradients", error_of(got, wanted, g->param_floats, 1e-30));
    printf(", \"worst\": \"%s\"", g->param[worst].name);
    put_number("worst_error", errors[worst]);
    qsort(errors, g->param_count, sizeof(*errors), by_size);
    put_number("median", errors[g->param_count / 2]);
    free(errors);
}

static void
put_losses(const char *name, const double *loss, unsigned count)
{
    unsigned i;

    printf(", \"%s\": [", name);
    for (i = 0; i < count; i++)
        printf("%s%.9g", i ? ", " : "", loss[i]);
    printf("]");
}

/* The error of the logits of images with weight. */
static double
logits_error(const struct problem *p, const float *got, const float *wanted)
{
    size_t count = 0, i;
    float *a = room((size_t)p->batch * OUTPUTS), *b = room((size_t)p->batch * OUTPUTS);
    double error;

    for (i = 0; i < (size_t)p->batch * OUTPUTS; i++)
        if (p->weight[i / OUTPUTS] != 0) {
            a[count] = got[i];
            b[count++] = wanted[i];
        }
    error = error_of(a, b, count, 1e-30);
    free(a);
    free(b);
    return error;
}

static bool
same_bits(const struct problem *p, const struct outcome *a, const struct outcome *b)
{
    const struct graph *g = p->graph;
    size_t logits = (size_t)p->batch * OUTPUTS * sizeof(float), params = g->param_floats * sizeof(float);

    return memcmp(a->logits, b->logits, logits) == 0 && memcmp(a->evaluated, b->evaluated, logits) == 0 &&
           memcmp(a->gradients, b->gradients, params) == 0 && memcmp(a->parameters, b->parameters, params) == 0 &&
           memcmp(a->statistics, b->statistics, g->stat_floats * sizeof(float)) == 0 &&
           memcmp(a->loss, b->loss, p->steps * sizeof(double)) == 0;
}

static void
report(const struct problem *p, const struct outcome *got, const struct outcome *other, bool same, bool same_launched)
{
    const struct plan_memory *m = &got->facts.memory;

    printf("{\"device\": \"%s\", \"precision\": \"%s\", \"against\": \"%s\", \"against_precision\": \"%s\"",
           got->device.text, precision_names[got->facts.precision], other->device.text,
           precision_names[other->facts.precision]);
    printf(", \"model\": \"%s\", \"side\": %u, \"batch\": %u, \"algorithms\": \"%s\"", p->graph->model, p->side,
           p->batch, got->facts.algorithms);
    printf(", \"same_bits\": %s, \"same_without_graph\": %s, \"skipped\": %u, \"bytes\": %llu", same ? "true" : "false",
           same_launched ? "true" : "false", got->skipped,
           (unsigned long long)(m->parameters + m->optimizer + m->activations + m->workspace));
    put_number("logits", logits_error(p, got->logits, other->logits));
    put_number("statistics", error_of(got->statistics, other->statistics, p->graph->stat_floats, 1e-30));
    put_number("evaluated", logits_error(p, got->evaluated, other->evaluated));
    put_gradients(p->graph, got->gradients, other->gradients);
    put_losses("loss", got->loss, p->steps);
    put_losses("against_loss", other->loss, p->steps);
}

static bool
report_pdl(struct problem *p, const struct backend *device, enum precision precision, const struct outcome *first)
{
    struct outcome early = run(p, device, precision, (struct way){.pdl = true});
    bool there = early.facts.pdl, same = same_bits(p, first, &early);

    free_outcome(&early);
    printf(", \"same_with_pdl\": %s", !there ? "null" : same ? "true" : "false");
    return same;
}

/* Prints the last part of the report. */
static bool
report_nccl(struct problem *p, const struct backend *device, enum precision precision, const struct outcome *first)
{
    char why[BACKEND_LIBRARY];
    bool there = has_nccl(device, why), same = true;

    if (there) {
        struct outcome summed = run(p, device, precision, (struct way){.nccl = true});

        same = same_bits(p, first, &summed);
        free_outcome(&summed);
    }
    printf(", \"nccl\": \"%s\", \"same_with_nccl\": %s}\n", why, !there ? "null" : same ? "true" : "false");
    return same;
}

/* ---- command line ------------------------------------------------------------------------------------------------ */

static enum engine
engine_of_word(const char *word)
{
    int i;

    for (i = 0; engine_names[i]; i++)
        if (strcmp(word, engine_names[i]) == 0)
            return (enum engine)i;
    fprintf(stderr, "gpu-steps: there is no engine '%s'\n", word);
    exit(2);
}

int
main(int argc, char **argv)
{
    struct problem p = {.graph = NULL};
    struct outcome wanted, first, second, launched;
    const struct backend *device, *other;
    enum precision precision, other_precision;
    struct chex_error err = {.status = CHEX_OK};
    bool same, same_launched, same_early, same_summed;

    if (argc < 7 || argc > 8) {
        fprintf(stderr, "usage: gpu-steps DEVICE[:PRECISION] OTHER[:PRECISION] MODEL SIDE BATCH STEPS [ENGINE]\n");
        return 2;
    }
    device = device_of_word("gpu-steps", argv[1], &precision);
    other = device_of_word("gpu-steps", argv[2], &other_precision);
    p.side = (unsigned)atoi(argv[4]);
    p.batch = (unsigned)atoi(argv[5]);
    p.steps = (unsigned)atoi(argv[6]);
    check(graph_new(argv[3], p.side, OUTPUTS, &p.graph, &err), &err);
    fill(&p);
    wanted = run(&p, other, other_precision, (struct way){.no_graph = false});
    p.engine = argc > 7 ? engine_of_word(argv[7]) : ENGINE_OWN;
    first = run(&p, device, precision, (struct way){.no_graph = false});
    second = run(&p, device, precision, (struct way){.no_graph = false});
    launched = run(&p, device, precision, (struct way){.no_graph = true});
    same = same_bits(&p, &first, &second);
    same_launched = same_bits(&p, &first, &launched);
    report(&p, &first, &wanted, same, same_launched);
    same_early = report_pdl(&p, device, precision, &first);
    same_summed = report_nccl(&p, device, precision, &first);
    free_outcome(&wanted);
    free_outcome(&first);
    free_outcome(&second);
    free_outcome(&launched);
    free(p.pixels);
    free(p.label);
    free(p.crop);
    free(p.weight);
    free(p.parameters);
    free(p.statistics);
    graph_free(p.graph);
    return same && same_launched && same_early && same_summed ? 0 : 1;
}
