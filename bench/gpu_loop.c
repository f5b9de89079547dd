/*
 * gpu_loop.c - runs one backend on random images at full speed; reads each result one step late
 *
 *     gpu-loop DEVICE[:PRECISION] MODEL SIDE BATCH train|infer SECONDS [no-graph|pdl]
 *     gpu-loop --model DEVICE[:PRECISION] MODEL SIDE BATCH
 *     gpu-loop kernels DEVICE[:PRECISION] MODEL SIDE BATCH [RUNS] [graph] [table]
 *
 * Prints one JSON object.  ms: median over rounds of five steps, by the wall clock; device_ms: the parts of a step by
 * the clock of the device, if it has one; first_s: from opening the device to the first result.  0 seconds means two
 * steps, for a profiler.  pdl: programmatic dependent launch (plan_options.pdl).
 *
 * --model: for each kernel, the bytes and operations of a training step and the time that they would take, by the
 * plan's cost model, as in chex-train -n -v.  Nothing is measured.
 *
 * kernels: runs each launch of a training step 20 times (RUNS) between two events, five times over, and prints the
 * median time of one run and the modelled time: of each launch, and of all launches of each kernel.  This needs no
 * profiler.  graph: the runs are the nodes of a graph, as launches are in a step.  Without it, the host queues each
 * run, and a launch that takes less time than that is measured too long.  table: a table for people instead of JSON.
 *
 * Exit status: 0 good, 1 an error, 2 usage, 77 there is no such device here
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "device_word.h"
#include "gpu_kernels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OUTPUTS = 14, WARM = 15, ROUND = 5, LEAST_ROUNDS = 3, MOST_ROUNDS = 2000, WARM_KERNELS = 3, RUNS = 20 };

static void
check(enum chex_status status, const struct chex_error *err)
{
    if (status == CHEX_OK)
        return;
    fprintf(stderr, "gpu-loop: %s\n", err->text);
    exit(1);
}

static void *
checked(void *p)
{
    if (!p) {
        fprintf(stderr, "gpu-loop: out of memory\n");
        exit(1);
    }
    return p;
}

static double
now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static float
draw(void)
{
    static uint64_t state = 1;

    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float)(state >> 40) * 0x1p-24f;
}

/* He's initialisation, gamma 1. */
static void
fill_parameters(const struct graph *g, float *arena)
{
    size_t i, k;

    for (i = 0; i < g->param_count; i++) {
        const struct graph_tensor *t = &g->param[i];
        float width = t->role == GRAPH_WEIGHT ? sqrtf(6.0f * (float)t->shape[0] / (float)t->count) : 0;

        for (k = 0; k < t->count; k++)
            arena[t->offset + k] = t->role == GRAPH_GAMMA ? 1 : width * (2 * draw() - 1);
    }
}

static struct batch
random_batch(unsigned images, unsigned side)
{
    size_t pixels = (size_t)images * side * side, i;
    struct crop *crop = checked(calloc(images, sizeof(*crop)));
    uint8_t *image = checked(malloc(pixels)), *label = checked(malloc((size_t)images * OUTPUTS));

    for (i = 0; i < pixels; i++)
        image[i] = (uint8_t)(256 * draw());
    for (i = 0; i < (size_t)images * OUTPUTS; i++)
        label[i] = draw() < 0.125f;
    return (struct batch){.pixels = image, .crop = crop, .label = label, .scale = 1 / (double)(images * OUTPUTS)};
}

static void
free_batch(const struct batch *batch)
{
    free((void *)batch->pixels);
    free((void *)batch->label);
    free((void *)batch->crop);
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

struct loop {
    const struct backend *backend;
    struct plan *plan;
    const struct batch *batch;
    float *logits;
    bool trains;
    unsigned ahead;
    uint64_t ticket[2]; /* of the newest step and of the previous one */
    uint64_t steps;
    unsigned applied, results;
    double device; /* seconds of the steps whose results have arrived */
    double loss;
};

static void
take_result(struct loop *l, uint64_t ticket)
{
    struct chex_error err = {.status = CHEX_OK};
    struct step_result r;
    bool done = false;

    while (!done)
        check(l->backend->result(l->plan, ticket, &done, &r, &err), &err);
    if (r.halted) {
        fprintf(stderr, "gpu-loop: the loss is not finite after %llu steps\n", (unsigned long long)l->steps);
        exit(1);
    }
    l->applied += r.applied;
    l->results++;
    l->loss = r.loss;
    l->device += r.times.seconds[PART_FORWARD] + r.times.seconds[PART_BACKWARD] + r.times.seconds[PART_REDUCE] +
                 r.times.seconds[PART_UPDATE];
}

static void
one_step(struct loop *l)
{
    const struct step_end end = {.requests = 0};
    struct chex_error err = {.status = CHEX_OK};

    if (!l->trains) {
        check(backend_score(l->backend, l->plan, l->batch, 1, l->batch->crop, ARENA_PARAMETERS, l->logits, &err), &err);
        l->steps++;
        return;
    }
    check(l->backend->accumulate(l->plan, l->batch, STEP_FIRST | STEP_LAST, &end, &err), &err);
    l->ticket[1] = l->ticket[0];
    check(l->backend->update(l->plan, 1e-4, 0, &l->ticket[0], &err), &err);
    l->steps++;
    if (l->ahead == 0 || l->steps == 1)
        take_result(l, l->ticket[0]);
    else if (l->steps > 2)
        take_result(l, l->ticket[1]);
}

/* Waits until no step is in flight. */
static void
drain(struct loop *l)
{
    if (l->trains && l->ahead > 0 && l->steps > 1)
        take_result(l, l->ticket[0]);
    l->steps = 1; /* the next step is like the second one */
}

static int
by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Runs rounds of steps; sorts their milliseconds per step. */
static unsigned
measure(struct loop *l, double seconds, double *round)
{
    double until = now() + seconds;
    unsigned least = seconds > 0 ? LEAST_ROUNDS : 1, steps = seconds > 0 ? ROUND : 1, rounds, i;

    for (rounds = 0; rounds < MOST_ROUNDS && (rounds < least || now() < until); rounds++) {
        double since = now();

        for (i = 0; i < steps; i++)
            one_step(l);
        round[rounds] = (now() - since) * 1e3 / steps;
    }
    drain(l);
    qsort(round, rounds, sizeof(*round), by_size);
    return rounds;
}

static void
run(const struct backend *b, const struct plan_options *o, double seconds)
{
    const struct graph *g = o->graph;
    struct chex_error err = {.status = CHEX_OK};
    struct batch batch = random_batch(o->batch, o->source);
    float *arena = checked(malloc(g->param_floats * sizeof(*arena)));
    static double round[MOST_ROUNDS];
    struct loop l = {.backend = b, .batch = &batch, .trains = o->train};
    struct plan_facts facts;
    struct device *device;
    double begun = now(), first;
    unsigned i, rounds;

    fill_parameters(g, arena);
    l.logits = checked(malloc((size_t)o->batch * OUTPUTS * sizeof(float)));
    check(b->device_open(0, &device, &err), &err);
    check(b->plan_new(device, o, &l.plan, &facts, &err), &err);
    if (o->pdl && !facts.pdl) {
        fprintf(stderr, "gpu-loop: %s has no programmatic dependent launch\n", device->info.text);
        exit(77);
    }
    check(b->write(l.plan, ARENA_PARAMETERS, arena, &err), &err);
    l.ahead = device->info.ahead;
    one_step(&l);
    first = now() - begun;
    for (i = 1; i < WARM && seconds > 0; i++)
        one_step(&l);
    drain(&l);
    l.device = 0;
    l.applied = l.results = 0;
    rounds = measure(&l, seconds, round);
    printf("{\"device\": \"%s\", \"precision\": \"%s\", \"model\": \"%s\", \"side\": %u, \"batch\": %u, \"what\": "
           "\"%s\", \"graph\": %s, \"pdl\": %s, \"ms\": %.4f, \"best_ms\": %.4f, \"worst_ms\": %.4f, \"img_s\": %.1f, "
           "\"rounds\": %u, \"first_s\": %.3f, \"bytes\": %llu, \"activations\": %llu, \"algorithms\": \"%s\"",
           device->info.text, precision_names[facts.precision], g->model, o->source, o->batch,
           o->train ? "train" : "infer", o->no_graph ? "false" : "true", o->pdl ? "true" : "false", round[rounds / 2],
           round[0], round[rounds - 1], o->batch * 1e3 / round[rounds / 2], rounds, first,
           (unsigned long long)(facts.memory.parameters + facts.memory.optimizer + facts.memory.activations +
                                facts.memory.workspace),
           (unsigned long long)facts.memory.activations, facts.algorithms);
    if (o->train)
        printf(", \"device_ms\": %.4f, \"applied\": %u, \"results\": %u, \"loss\": %.6g", l.device * 1e3 / l.results,
               l.applied, l.results, isfinite(l.loss) ? l.loss : -1.0);
    printf("}\n");
    b->plan_free(l.plan);
    b->device_close(device);
    free_batch(&batch);
    free(arena);
    free(l.logits);
}

/* ---- the model --------------------------------------------------------------------------------------------------- */

static void
print_model(const struct backend *b, const struct plan_options *o)
{
    struct chex_error err = {.status = CHEX_OK};
    struct plan_model m;
    struct device *device;

    if (!b->plan_model) {
        fprintf(stderr, "gpu-loop: the backend %s has no model\n", b->name);
        exit(77);
    }
    check(b->device_open(0, &device, &err), &err);
    check(b->plan_model(device, o, NULL, &m, &err), &err);
    gpu_kernels_print_model(&m, o->graph->model);
    plan_model_free(&m);
    b->device_close(device);
}

/* ---- launches, measured ------------------------------------------------------------------------------------------ */

/* How to measure them. */
struct words {
    unsigned runs;
    bool table;
};

/* Makes steps until both slots of the device hold a micro-batch, and the clock of the device has risen. */
static void
warm_up(struct loop *l)
{
    unsigned i;

    for (i = 0; i < WARM_KERNELS; i++)
        one_step(l);
    drain(l);
}

static void
measure_kernels(const struct backend *b, const struct plan_options *o, const struct words *words)
{
    struct chex_error err = {.status = CHEX_OK};
    struct batch batch = random_batch(o->batch, o->source);
    float *arena = checked(malloc(o->graph->param_floats * sizeof(*arena)));
    struct loop l = {.backend = b, .batch = &batch, .trains = true};
    struct gpu_kernels k = {.model = o->graph->model, .side = o->source, .runs = words->runs, .graph = !o->no_graph};
    struct plan_model m;
    struct plan_facts facts;
    struct device *device;
    double *seconds;

    if (!b->plan_model || !b->measure_launches) {
        fprintf(stderr, "gpu-loop: the backend %s has no launches\n", b->name);
        exit(77);
    }
    fill_parameters(o->graph, arena);
    check(b->device_open(0, &device, &err), &err);
    check(b->plan_new(device, o, &l.plan, &facts, &err), &err);
    check(b->write(l.plan, ARENA_PARAMETERS, arena, &err), &err);
    check(b->plan_model(device, o, l.plan, &m, &err), &err);
    k.seconds = seconds = checked(calloc(m.count, sizeof(*seconds)));
    k.device = device->info.text;
    k.precision = precision_names[facts.precision];
    warm_up(&l);
    check(b->measure_launches(l.plan, words->runs, seconds, &err), &err);
    one_step(&l); /* fails if the loss is not finite */
    (words->table ? gpu_kernels_print_table : gpu_kernels_print_json)(&m, &k);
    free(seconds);
    plan_model_free(&m);
    b->plan_free(l.plan);
    b->device_close(device);
    free_batch(&batch);
    free(arena);
}

/* ---- command line ------------------------------------------------------------------------------------------------ */

static int
usage(void)
{
    fprintf(stderr, "usage: gpu-loop DEVICE[:PRECISION] MODEL SIDE BATCH train|infer SECONDS [no-graph|pdl]\n"
                    "       gpu-loop --model DEVICE[:PRECISION] MODEL SIDE BATCH\n"
                    "       gpu-loop kernels DEVICE[:PRECISION] MODEL SIDE BATCH [RUNS] [graph] [table]\n");
    return 2;
}

/* Reads the words after BATCH of `kernels`. */
static bool
read_words(int count, char **word, struct plan_options *o, struct words *out)
{
    int i;

    *out = (struct words){.runs = RUNS};
    o->no_graph = true;
    for (i = 0; i < count; i++) {
        if (strcmp(word[i], "graph") == 0)
            o->no_graph = false;
        else if (strcmp(word[i], "table") == 0)
            out->table = true;
        else
            out->runs = (unsigned)atoi(word[i]);
    }
    return out->runs > 0;
}

int
main(int argc, char **argv)
{
    struct chex_error err = {.status = CHEX_OK};
    struct plan_options o = {.threads = 2, .optimizer = optimizer_default(OPTIMIZER_ADAM)};
    const struct backend *backend = NULL;
    struct words words = {.runs = 0};
    struct graph *g;
    bool model = argc == 6 && strcmp(argv[1], "--model") == 0;
    bool kernels = argc >= 6 && strcmp(argv[1], "kernels") == 0;

    o.no_graph = argc == 8 && strcmp(argv[7], "no-graph") == 0;
    o.pdl = argc == 8 && strcmp(argv[7], "pdl") == 0;
    if (kernels ? !read_words(argc - 6, argv + 6, &o, &words) : !model && argc != 7 && !o.no_graph && !o.pdl)
        return usage();
    argv += model || kernels;
    backend = device_of_word("gpu-loop", argv[1], &o.precision);
    o.source = (unsigned)atoi(argv[3]);
    o.batch = (unsigned)atoi(argv[4]);
    o.train = model || kernels || strcmp(argv[5], "train") == 0;
    check(graph_new(argv[2], o.source, OUTPUTS, &g, &err), &err);
    o.graph = g;
    if (model)
        print_model(backend, &o);
    else if (kernels)
        measure_kernels(backend, &o, &words);
    else
        run(backend, &o, atof(argv[6]));
    graph_free(g);
    return 0;
}
