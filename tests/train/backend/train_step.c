/*
 * train_step.c - runs one backend on given weights and images, step by step, for comparison with other software
 *
 *     train-step --list MODEL SIDE OUTPUTS          lines "param|stat NAME COUNT" and "buffer C H W"
 *     train-step BACKEND MODEL SIDE OUTPUTS BATCH STEPS OPTIMIZER RATE THREADS [PRECISION [ENGINE [SMOOTHING
 *                [mixed]]]]
 *
 * PRECISION  as --precision; then the last line of stderr is "applied STEPS, loss scale SCALE"
 * ENGINE  as --engine; with cudnn, a line of stderr is "engine WHAT"
 * SMOOTHING  as --label-smoothing; default 0
 * mixed  the input has float32 shares of the partners [batch] before the pixels of each step, and one more image; see
 *        batch.h
 * BATCH  images of a micro-batch; "4+3": 4 images and 3 of padding (weight 0), in front of and after them.  IN and OUT
 *        contain only the images.
 * IN   float32 parameters, float32 statistics, then for each step uint8 pixels [batch][side][side], uint8 labels
 *      [batch][outputs]
 * OUT  for each step float32 logits [batch][outputs] and loss, float32 gradients; at the end float32 parameters,
 *      statistics, and the logits of the last images with running statistics
 * All in the byte order of the machine.  STEPS 0 only evaluates once: logits.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "backend/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
check(enum chex_status status, const struct chex_error *err)
{
    if (status == CHEX_OK)
        return;
    fprintf(stderr, "train-step: %s\n", err->text);
    exit(1);
}

static void *
take(size_t bytes)
{
    void *p = malloc(bytes);

    if (!p || fread(p, 1, bytes, stdin) != bytes) {
        fprintf(stderr, "train-step: the input is too short\n");
        exit(1);
    }
    return p;
}

static void
give(const void *p, size_t bytes)
{
    if (fwrite(p, 1, bytes, stdout) != bytes)
        exit(1);
}

static void
list(const struct graph *g)
{
    size_t i;

    for (i = 0; i < g->param_count; i++)
        printf("param %s %zu\n", g->param[i].name, g->param[i].count);
    for (i = 0; i < g->stat_count; i++)
        printf("stat %s %zu\n", g->stat[i].name, g->stat[i].count);
    for (i = 0; i < g->buffer_count; i++)
        printf("buffer %u %u %u\n", g->buffer[i].channels, g->buffer[i].height, g->buffer[i].width);
}

static enum optimizer_kind
optimizer_of(const char *name)
{
    int i;

    for (i = 0; optimizer_names[i]; i++)
        if (strcmp(name, optimizer_names[i]) == 0)
            return (enum optimizer_kind)i;
    fprintf(stderr, "train-step: there is no optimizer '%s'\n", name);
    exit(2);
}

/* Reads `count` images of `bytes` each from IN, and adds padding, `before` images of it in front. */
static void *
take_padded(size_t before, size_t count, size_t all, size_t bytes)
{
    uint8_t *images = take(count * bytes), *padded = malloc(all * bytes);

    if (!padded)
        exit(1);
    memset(padded, 1, all * bytes);
    memcpy(padded + before * bytes, images, count * bytes);
    free(images);
    return padded;
}

static struct step_result
make_step(const struct backend *backend, struct plan *plan, const struct batch *batch, double rate)
{
    const struct step_end end = {.requests = 0};
    struct chex_error err = {.status = CHEX_OK};
    struct step_result result;
    uint64_t ticket;
    bool done = false;

    check(backend->accumulate(plan, batch, STEP_FIRST | STEP_LAST, &end, &err), &err);
    check(backend->update(plan, rate, 0, &ticket, &err), &err);
    while (!done)
        check(backend->result(plan, ticket, &done, &result, &err), &err);
    return result;
}

static void
run(const struct backend *backend, struct plan_options *o, unsigned padding, unsigned steps, double rate)
{
    const struct graph *g = o->graph;
    size_t outputs = g->buffer[g->output].channels, all = o->batch, params = g->param_floats, i;
    size_t images = all - padding, read = images + (o->mixup ? 1 : 0), before = padding / 2,
           pixels = (size_t)o->source * o->source;
    struct chex_error err = {.status = CHEX_OK};
    float *arena = take(params * sizeof(float)), *stats = take(g->stat_floats * sizeof(float));
    float *logits = malloc(all * outputs * sizeof(float)), *weight = calloc(all, sizeof(*weight));
    struct crop *crop = calloc(all + 1, sizeof(*crop));
    struct batch batch = {.crop = crop, .weight = weight, .scale = 1 / (double)(images * outputs)};
    struct step_result result = {.loss = 0};
    struct plan_facts facts;
    struct device *device;
    struct plan *plan;

    for (i = before; i < before + images; i++)
        weight[i] = 1;
    check(backend->device_open(0, &device, &err), &err);
    check(backend->plan_new(device, o, &plan, &facts, &err), &err);
    check(backend->write(plan, ARENA_PARAMETERS, arena, &err), &err);
    check(backend->write(plan, ARENA_STATISTICS, stats, &err), &err);
    for (i = 0; i < (steps ? steps : 1); i++) {
        float loss;

        free((void *)batch.pixels);
        free((void *)batch.label);
        free((void *)batch.mix);
        if (o->mixup)
            batch.mix = take_padded(before, images, all, sizeof(*batch.mix));
        batch.pixels = take_padded(before, read, all + 1, pixels);
        batch.label = take_padded(before, images, all, outputs);
        if (steps > 0)
            result = make_step(backend, plan, &batch, rate);
        loss = (float)result.loss;
        if (steps > 0)
            check(backend->peek(plan, g->output, false, logits, &err), &err);
        else
            check(backend_score(backend, plan, &batch, 1, crop, ARENA_PARAMETERS, logits, &err), &err);
        give(logits + before * outputs, images * outputs * sizeof(float));
        give(&loss, sizeof(loss));
        if (steps == 0)
            break;
        check(backend->read(plan, ARENA_GRADIENTS, arena, &err), &err);
        give(arena, params * sizeof(float));
    }
    check(backend->read(plan, ARENA_PARAMETERS, arena, &err), &err);
    check(backend->read(plan, ARENA_STATISTICS, stats, &err), &err);
    check(backend_score(backend, plan, &batch, 1, crop, ARENA_PARAMETERS, logits, &err), &err);
    give(arena, params * sizeof(float));
    give(stats, g->stat_floats * sizeof(float));
    give(logits + before * outputs, images * outputs * sizeof(float));
    if (o->engine == ENGINE_CUDNN)
        fprintf(stderr, "engine %s\n", facts.engine);
    if (o->precision != PRECISION_AUTO)
        fprintf(stderr, "applied %llu, loss scale %g\n", (unsigned long long)result.state.applied,
                result.state.loss_scale);
    backend->plan_free(plan);
    backend->device_close(device);
    free((void *)batch.pixels);
    free((void *)batch.label);
    free((void *)batch.mix);
    free(arena);
    free(stats);
    free(logits);
    free(weight);
    free(crop);
}

static enum precision
precision_of(const char *name)
{
    enum precision p = PRECISION_AUTO;

    while (p < PRECISION_COUNT && strcmp(precision_names[p], name) != 0)
        p++;
    return p;
}

int
main(int argc, char **argv)
{
    bool listing = argc == 5 && strcmp(argv[1], "--list") == 0;
    const struct backend *backend = argc >= 10 && argc <= 14 ? backend_find(argv[1]) : NULL;
    struct chex_error err = {.status = CHEX_OK};
    struct plan_options o = {.train = true};
    struct graph *g;
    unsigned padding;

    if (!listing && !backend) {
        fprintf(stderr, "usage: see the head of train_step.c; backends:");
        for (size_t i = 0; backends[i]; i++)
            if (backends[i]->device_count() > 0)
                fprintf(stderr, " %s", backends[i]->name);
        fprintf(stderr, "\n");
        return 2;
    }
    check(graph_new(argv[2], (unsigned)atoi(argv[3]), (unsigned)atoi(argv[4]), &g, &err), &err);
    if (listing) {
        list(g);
    } else {
        o.graph = g;
        o.source = (unsigned)atoi(argv[3]);
        padding = strchr(argv[5], '+') ? (unsigned)atoi(strchr(argv[5], '+') + 1) : 0;
        o.batch = (unsigned)atoi(argv[5]) + padding;
        o.optimizer = optimizer_default(optimizer_of(argv[7]));
        o.threads = (unsigned)atoi(argv[9]);
        o.precision = argc > 10 ? precision_of(argv[10]) : PRECISION_AUTO;
        o.engine = argc > 11 && strcmp(argv[11], "cudnn") == 0 ? ENGINE_CUDNN : ENGINE_OWN;
        o.loss.smoothing = argc > 12 ? atof(argv[12]) : 0;
        o.mixup = argc > 13 && strcmp(argv[13], "mixed") == 0;
        run(backend, &o, padding, (unsigned)atoi(argv[6]), atof(argv[8]));
    }
    graph_free(g);
    return 0;
}
