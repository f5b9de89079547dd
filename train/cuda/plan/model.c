/*
 * model.c - see model.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/plan/model.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cuda_place
cuda_place_of(const struct cuda_layout *l)
{
    struct cuda_place p = {.value_bytes = l->chip.value_bytes};
    int i;

    _Static_assert(CUDA_TABLE_COUNT <= CUDA_KNOWN_TABLES, "room for all tables");
    for (i = 0; i < CUDA_TABLE_COUNT; i++)
        p.table[i] = (struct cuda_known_table){l->table[i].host, l->table[i].at, l->table[i].bytes};
    return p;
}

char *
cuda_kind(const char *kernel, char out[PLAN_KERNEL])
{
    static const char *const values[] = {"fp16", "bf16", "tf32", "float"};
    size_t i, used = 0;

    out[0] = '\0';
    while (*kernel) {
        size_t word = strcspn(kernel, "_");
        bool skip = strspn(kernel, "0123456789x") >= word;

        for (i = 0; i < sizeof(values) / sizeof(*values); i++)
            skip = skip || strcmp(kernel, values[i]) == 0;
        if (!skip && used + word + 2 < PLAN_KERNEL)
            used += (size_t)snprintf(out + used, PLAN_KERNEL - used, "%s%.*s", used > 0 ? "_" : "", (int)word, kernel);
        kernel += word + (kernel[word] == '_');
    }
    return out;
}

static void
describe(const struct cuda_layout *l, const struct cuda_place *place, const struct cuda_gpu *gpu,
         const struct cuda_op *op, unsigned times, struct plan_launch *out)
{
    struct cuda_work work;
    enum cuda_limit limit;
    unsigned rows, columns;
    double seconds;
    size_t tiles;

    cuda_work_of(place, op, &work);
    seconds = cuda_seconds(gpu, op, &work, &limit);
    *out = (struct plan_launch){.times = times,
                                .read = cuda_area_bytes(&work.read),
                                .written = cuda_area_bytes(&work.written),
                                .flop = work.flop,
                                .seconds = seconds,
                                .limit = cuda_limit_name(limit)};
    snprintf(out->kernel, sizeof(out->kernel), "%s%s", op->by_cudnn ? "cudnn_" : "", l->chip.set[op->kernel].name);
    cuda_kind(out->kernel, out->kind);
    if (op->by_cudnn) { /* the name must not contain a tile shape or a halo, because they are not known */
        char *halo = strstr(out->kind, "_halo");

        if (halo)
            *halo = '\0';
        memcpy(out->kernel, out->kind, sizeof(out->kernel));
    }
    if (work.depth > 0)
        snprintf(out->shape, sizeof(out->shape), "%zu x %zu x %zu", work.rows, work.columns, work.depth);
    else
        snprintf(out->shape, sizeof(out->shape), "%zu x %zu", work.rows, work.columns);
    if (op->by_cudnn) {
        snprintf(out->tile, sizeof(out->tile), "cuDNN");
    } else if (cuda_is_conv(op) || cuda_is_pair(op) || cuda_is_one_pass(op)) {
        tiles = cuda_tiles(op, &rows, &columns);
        snprintf(out->tile, sizeof(out->tile), "%ux%u, %zu tiles", rows, columns, tiles);
    } else {
        snprintf(out->tile, sizeof(out->tile), "%zu blocks", (size_t)op->x * op->y * op->z);
    }
}

/* The lists of a step, whether they run for each micro-batch, and the part of the step to which their time belongs. */
static const struct step_list {
    enum cuda_list_id id;
    bool each;
    size_t part;
} step_lists[] = {{CUDA_LIST_INPUT0, true, offsetof(struct plan_model, forward)},
                  {CUDA_LIST_BEGIN, false, offsetof(struct plan_model, forward)},
                  {CUDA_LIST_FORWARD, true, offsetof(struct plan_model, forward)},
                  {CUDA_LIST_BACKWARD, true, offsetof(struct plan_model, backward)},
                  {CUDA_LIST_END, false, offsetof(struct plan_model, backward)},
                  {CUDA_LIST_UPDATE, false, offsetof(struct plan_model, update)}};
#define STEP_LISTS (sizeof(step_lists) / sizeof(*step_lists))

const struct cuda_op *
cuda_model_op(const struct cuda_layout *l, size_t number, unsigned slot)
{
    size_t i;

    for (i = 0; i < STEP_LISTS; i++) {
        bool other = step_lists[i].id == CUDA_LIST_INPUT0 && slot == 1;
        const struct cuda_list *list = &l->list[other ? CUDA_LIST_INPUT1 : step_lists[i].id];

        if (number < list->count)
            return &list->op[number];
        number -= list->count;
    }
    return NULL;
}

static void
add_launch(struct plan_model *m, size_t part)
{
    const struct plan_launch *launch = &m->launch[m->count++];

    *(double *)(void *)((char *)m + part) += launch->times * launch->seconds;
    m->launches += launch->times;
    m->bytes += launch->times * (launch->read + launch->written);
    m->seconds += launch->times * launch->seconds;
}

/* A micro-batch of an evaluation; the weights were prepared before the first one. */
static void
add_score(const struct cuda_layout *l, const struct cuda_place *place, const struct cuda_gpu *gpu,
          struct plan_model_score *s)
{
    static const enum cuda_list_id lists[] = {CUDA_LIST_INPUT0, CUDA_LIST_SCORE};
    struct plan_launch launch;
    size_t i, k;

    s->images = l->options->batch;
    for (i = 0; i < sizeof(lists) / sizeof(*lists); i++)
        for (k = 0; k < l->list[lists[i]].count; k++) {
            describe(l, place, gpu, &l->list[lists[i]].op[k], 1, &launch);
            s->launches++;
            s->bytes += launch.read + launch.written;
            s->seconds += launch.seconds;
        }
}

enum chex_status
cuda_model_make(const struct cuda_layout *l, const struct cuda_gpu *gpu, struct plan_model *out, struct chex_error *err)
{
    unsigned micro_batches = l->options->micro_batches > 0 ? l->options->micro_batches : 1;
    struct cuda_place place = cuda_place_of(l);
    size_t all = 0, i, k;

    for (i = 0; i < STEP_LISTS; i++)
        all += l->list[step_lists[i].id].count;
    out->launch = calloc(all > 0 ? all : 1, sizeof(*out->launch));
    if (!out->launch)
        return error_memory(err);
    out->images = l->options->batch * micro_batches;
    for (i = 0; i < STEP_LISTS; i++) {
        const struct cuda_list *list = &l->list[step_lists[i].id];

        for (k = 0; k < list->count; k++) {
            describe(l, &place, gpu, &list->op[k], step_lists[i].each ? micro_batches : 1, &out->launch[out->count]);
            add_launch(out, step_lists[i].part);
        }
    }
    add_score(l, &place, gpu, &out->score);
    return CHEX_OK;
}
