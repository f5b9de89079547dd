/*
 * host.c - implements host.h: devices, arenas and facts of plans in host memory
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "backend/host.h"

#include "backend/host_memory.h"
#include "base/sha256.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MICRO_BATCH 16 /* largest default, in images */

/* ---- devices ----------------------------------------------------------------------------------------------------- */

unsigned
host_device_count(void)
{
    return 1;
}

enum chex_status
host_device_open(const struct backend *backend, const char *text, struct device **out, struct chex_error *err)
{
    struct device *device = calloc(1, sizeof(*device));

    *out = device;
    if (!device)
        return error_memory(err);
    device->backend = backend;
    snprintf(device->info.text, sizeof(device->info.text), "%s", text);
    device->info.memory = host_memory_available();
    device->info.precisions = 1u << PRECISION_FP32 | 1u << PRECISION_BF16;
    device->info.precision = PRECISION_FP32;
    device->info.micro_batch = MICRO_BATCH;
    return CHEX_OK;
}

void
host_device_close(struct device *device)
{
    free(device);
}

/* ---- images ------------------------------------------------------------------------------------------------------ */

struct image_store {
    size_t image;    /* bytes per image */
    uint8_t *pixels; /* [images][image] */
};

enum chex_status
host_store_new(struct device *device, uint32_t images, unsigned source, struct image_store **out,
               struct chex_error *err)
{
    struct image_store *s = calloc(1, sizeof(*s));
    size_t bytes;

    (void)device;
    *out = s;
    if (!s)
        return error_memory(err);
    s->image = (size_t)source * source;
    s->pixels = size_mul(s->image, images, &bytes) ? malloc(bytes ? bytes : 1) : NULL;
    if (s->pixels)
        return CHEX_OK;
    host_store_free(s);
    *out = NULL;
    return error_memory(err);
}

enum chex_status
host_store_put(struct image_store *store, uint32_t image, const uint8_t *pixels, struct chex_error *err)
{
    (void)err;
    memcpy(store->pixels + image * store->image, pixels, store->image);
    return CHEX_OK;
}

void
host_store_free(struct image_store *store)
{
    if (store)
        free(store->pixels);
    free(store);
}

const uint8_t *
host_store_pixels(const struct image_store *store, uint32_t image)
{
    return store->pixels + image * store->image;
}

/* ---- plans ------------------------------------------------------------------------------------------------------- */

static bool
adds_up(const struct plan_options *o)
{
    return o->train && (o->micro_batches > 1 || (o->reduce && o->reduce->size > 1));
}

bool
host_arrays(struct host *h, host_take *take, void *context)
{
    const struct plan_options *o = &h->options;
    const struct graph *g = o->graph;
    int i;

    for (i = 0; i < ARENA_COUNT; i++)
        if (arena_is_wanted(o, (enum arena_id)i) &&
            !take(context, &h->arena[i], arena_floats(g, (enum arena_id)i), sizeof(float)))
            return false;
    if (o->train && !take(context, &h->running, g->stat_floats, sizeof(float)))
        return false;
    return !adds_up(o) || take(context, &h->sum, g->param_floats + g->stat_floats + HOST_TAIL, sizeof(double));
}

void
host_memory_parts(const struct plan_options *o, struct plan_memory *out)
{
    uint64_t arena = o->graph->param_floats * sizeof(float), stats = o->graph->stat_floats * sizeof(float);
    int i;

    out->parameters = arena + (o->train ? 2 : 1) * stats;
    out->optimizer = 0;
    for (i = ARENA_GRADIENTS; i < ARENA_COUNT; i++)
        out->optimizer += arena_is_wanted(o, (enum arena_id)i) ? arena : 0;
}

uint64_t
host_sum_bytes(const struct plan_options *o)
{
    return adds_up(o) ? (o->graph->param_floats + o->graph->stat_floats + HOST_TAIL) * sizeof(double) : 0;
}

void
host_start(struct host *h, const struct host_ops *ops)
{
    h->ops = ops;
    h->state.loss_scale = 1;
    arena_start_statistics(h->options.graph, h->arena[ARENA_STATISTICS]);
}

enum chex_status
host_facts(const struct device *device, const struct plan_options *o, const char *algorithms, struct plan_facts *facts,
           struct chex_error *err)
{
    struct digest *digest;
    struct graph_head head;
    uint8_t hash[DIGEST_SIZE];

    if (o->precision != PRECISION_AUTO && !(device->info.precisions >> o->precision & 1))
        return error_set(err, CHEX_ERR_UNSUPPORTED, "the backend %s computes in fp32 and bf16 only",
                         device->backend->name);
    if (o->engine == ENGINE_CUDNN)
        return error_set(err, CHEX_ERR_UNSUPPORTED, "the backend %s has no cuDNN", device->backend->name);
    if (o->maps && !graph_find_head(o->graph, &head))
        return error_set(err, CHEX_ERR_UNSUPPORTED, GRAPH_NO_HEAD);
    digest = digest_new();
    if (!digest)
        return error_memory(err);
    digest_start(digest);
    digest_add(digest, (const uint8_t *)algorithms, strlen(algorithms));
    digest_finish(digest, hash);
    digest_free(digest);
    facts->precision = o->precision == PRECISION_AUTO ? device->info.precision : o->precision;
    facts->engine[0] = '\0';
    facts->pdl = false;
    digest_hex(hash, (PLAN_ALGORITHMS - 1) / 2, facts->algorithms);
    return CHEX_OK;
}

/* ---- arenas ------------------------------------------------------------------------------------------------------ */

static enum chex_status
find_arena(const struct host *h, enum arena_id arena, float **out, struct chex_error *err)
{
    *out = h->arena[arena];
    return *out ? CHEX_OK : error_set(err, CHEX_ERR_BUG, "this plan has no arena %d", (int)arena);
}

enum chex_status
host_write(struct plan *plan, enum arena_id arena, const float *from, struct chex_error *err)
{
    struct host *h = host_of(plan);
    float *to;
    enum chex_status status = find_arena(h, arena, &to, err);

    if (status != CHEX_OK)
        return status;
    memcpy(to, from, arena_floats(h->options.graph, arena) * sizeof(float));
    if (h->ops->changed)
        h->ops->changed(plan);
    return CHEX_OK;
}

enum chex_status
host_read(struct plan *plan, enum arena_id arena, float *to, struct chex_error *err)
{
    struct host *h = host_of(plan);
    float *from;
    enum chex_status status = find_arena(h, arena, &from, err);

    if (status == CHEX_OK)
        memcpy(to, from, arena_floats(h->options.graph, arena) * sizeof(float));
    return status;
}

enum chex_status
host_set_state(struct plan *plan, const struct plan_state *state, struct chex_error *err)
{
    (void)err;
    host_of(plan)->state = *state;
    host_of(plan)->state.loss_scale = 1;
    return CHEX_OK;
}

/* ---- evaluation -------------------------------------------------------------------------------------------------- */

enum chex_status
host_score_start(struct plan *plan, const struct batch *batch, unsigned views, const struct crop *crop,
                 enum arena_id weights, float *logits, float *maps, struct chex_error *err)
{
    struct host *h = host_of(plan);
    const struct graph *g = h->options.graph;
    size_t values = (size_t)h->options.batch * g->buffer[g->output].channels;
    struct graph_head head;
    float *there;
    enum chex_status status = find_arena(h, weights, &there, err);
    unsigned v;

    if (status == CHEX_OK && h->scores == SCORES_IN_FLIGHT)
        status = error_set(err, CHEX_ERR_BUG, "too many micro-batches of an evaluation are in flight");
    if (status == CHEX_OK && maps && (!h->options.maps || !graph_find_head(g, &head)))
        status = error_set(err, CHEX_ERR_BUG, "this plan has no maps");
    for (v = 0; status == CHEX_OK && v < views; v++) {
        struct batch view = *batch;

        view.crop = crop + (size_t)v * h->options.batch;
        view.mix = NULL;
        h->ops->score(plan, &view, weights, logits + v * values,
                      maps ? maps + v * h->options.batch * head.map_floats : NULL);
        if (h->options.reduce)
            status = h->options.reduce->ops->poll(h->options.reduce, err);
    }
    h->scores += status == CHEX_OK;
    return status;
}

enum chex_status
host_score_finish(struct plan *plan, struct chex_error *err)
{
    struct host *h = host_of(plan);

    if (h->scores == 0)
        return error_set(err, CHEX_ERR_BUG, "no micro-batch of an evaluation is in flight");
    h->scores--;
    return CHEX_OK;
}
