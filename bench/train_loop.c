/*
 * train_loop.c - runs one backend on random images and prints how long each part of a step takes
 *
 *     train-loop BACKEND MODEL SIDE BATCH THREADS train|infer [PRECISION]
 *
 * Makes a step for each line of its input.  Prints a line for each: "forward backward update" in seconds (infer: only
 * "forward"), and the processor seconds of the step, of all threads together.  At the end: "memory" with the bytes of
 * the plan and the peak of the process.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "backend/backend.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define OUTPUTS 14

static void
check(enum chex_status status, const struct chex_error *err)
{
    if (status == CHEX_OK)
        return;
    fprintf(stderr, "train-loop: %s\n", err->text);
    exit(1);
}

static double
now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double
processor_seconds(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* Waits for a line of input; returns false at the end. */
static bool
next_step(void)
{
    int c = getchar();

    while (c != '\n' && c != EOF)
        c = getchar();
    return c == '\n';
}

static uint32_t
next_random(void)
{
    static uint64_t state = 1;

    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33);
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
            arena[t->offset + k] = t->role == GRAPH_GAMMA ? 1 : width * ((float)(next_random() % 65536) / 32768.0f - 1);
    }
}

static void
infer(const struct backend *backend, struct plan *plan, const struct batch *batch, float *logits)
{
    struct chex_error err = {.status = CHEX_OK};
    double since = now();

    check(backend_score(backend, plan, batch, 1, batch->crop, ARENA_PARAMETERS, logits, &err), &err);
    printf("%.4f ", now() - since);
}

static void
train(const struct backend *backend, struct plan *plan, const struct batch *batch)
{
    const struct step_end end = {.requests = 0};
    struct chex_error err = {.status = CHEX_OK};
    struct step_result r;
    uint64_t ticket;
    bool done = false;

    check(backend->accumulate(plan, batch, STEP_FIRST | STEP_LAST, &end, &err), &err);
    check(backend->update(plan, 1e-4, 0, &ticket, &err), &err);
    while (!done)
        check(backend->result(plan, ticket, &done, &r, &err), &err);
    printf("%.4f %.4f %.4f ", r.times.seconds[PART_FORWARD], r.times.seconds[PART_BACKWARD],
           r.times.seconds[PART_REDUCE] + r.times.seconds[PART_UPDATE]);
}

static void
one_step(const struct backend *backend, struct plan *plan, const struct batch *batch, bool trains, float *logits)
{
    double cpu = processor_seconds();

    if (trains)
        train(backend, plan, batch);
    else
        infer(backend, plan, batch, logits);
    printf("%.4f\n", processor_seconds() - cpu);
    fflush(stdout);
}

static void
loop(const struct backend *backend, const struct plan_options *o)
{
    const struct graph *g = o->graph;
    size_t pixels = (size_t)o->batch * o->source * o->source, i;
    struct chex_error err = {.status = CHEX_OK};
    struct crop *crop = calloc(o->batch, sizeof(*crop));
    uint8_t *image = malloc(pixels), *label = malloc((size_t)o->batch * OUTPUTS);
    float *arena = malloc(g->param_floats * sizeof(*arena)), *logits = malloc(o->batch * OUTPUTS * sizeof(*logits));
    struct batch batch = {.pixels = image, .crop = crop, .label = label, .scale = 1 / (double)(o->batch * OUTPUTS)};
    struct plan_facts facts;
    struct rusage usage;
    struct device *device;
    struct plan *plan;

    if (!crop || !image || !label || !arena || !logits)
        exit(1);
    fill_parameters(g, arena);
    for (i = 0; i < pixels; i++)
        image[i] = (uint8_t)next_random();
    for (i = 0; i < (size_t)o->batch * OUTPUTS; i++)
        label[i] = next_random() % 8 == 0;
    check(backend->device_open(0, &device, &err), &err);
    check(backend->plan_new(device, o, &plan, &facts, &err), &err);
    check(backend->write(plan, ARENA_PARAMETERS, arena, &err), &err);
    while (next_step())
        one_step(backend, plan, &batch, o->train, logits);
    getrusage(RUSAGE_SELF, &usage);
    printf("memory %llu %llu %llu %llu peak %lld\n", (unsigned long long)facts.memory.parameters,
           (unsigned long long)facts.memory.optimizer, (unsigned long long)facts.memory.activations,
           (unsigned long long)facts.memory.workspace, (long long)usage.ru_maxrss * 1024);
    backend->plan_free(plan);
    backend->device_close(device);
    free(crop);
    free(image);
    free(label);
    free(arena);
    free(logits);
}

int
main(int argc, char **argv)
{
    const struct backend *backend = argc == 7 || argc == 8 ? backend_find(argv[1]) : NULL;
    struct chex_error err = {.status = CHEX_OK};
    struct plan_options o = {.loss = {.kind = LOSS_BCE}};
    struct graph *g;

    while (argc == 8 && o.precision < PRECISION_COUNT && strcmp(precision_names[o.precision], argv[7]) != 0)
        o.precision++;
    if (!backend) {
        fprintf(stderr, "usage: train-loop BACKEND MODEL SIDE BATCH THREADS train|infer [PRECISION]\n");
        return 2;
    }
    check(graph_new(argv[2], (unsigned)atoi(argv[3]), OUTPUTS, &g, &err), &err);
    o.graph = g;
    o.source = (unsigned)atoi(argv[3]);
    o.batch = (unsigned)atoi(argv[4]);
    o.threads = (unsigned)atoi(argv[5]);
    o.train = strcmp(argv[6], "train") == 0;
    o.optimizer = optimizer_default(OPTIMIZER_ADAM);
    loop(backend, &o);
    graph_free(g);
    return 0;
}
