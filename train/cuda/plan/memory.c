/*
 * memory.c - see memory.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/plan/memory.h"

#include <stdint.h>
#include <stdlib.h>

bool
cuda_align(size_t bytes, size_t *out)
{
    size_t more;

    if (!size_add(bytes, CUDA_ALIGN - 1, &more))
        return false;
    *out = more / CUDA_ALIGN * CUDA_ALIGN;
    return true;
}

enum chex_status
cuda_memory_take(struct cuda_memory *m, size_t bytes, size_t *piece, struct chex_error *err)
{
    struct live_range *grown;

    if (!cuda_align(bytes, &bytes))
        return error_set(err, CHEX_ERR_MEMORY, "a piece of memory is larger than can be counted");
    if (m->placed) {
        if (m->next == m->count || m->piece[m->next].size != bytes)
            return error_set(err, CHEX_ERR_BUG, "two walks over the graph differ in piece %zu", m->next);
        *piece = m->next++;
        return CHEX_OK;
    }
    grown = array_grow(m->piece, &m->capacity, m->count, sizeof(*grown));
    if (!grown)
        return error_memory(err);
    m->piece = grown;
    *piece = m->count;
    grown[m->count++] = (struct live_range){.size = bytes, .begin = SIZE_MAX};
    return CHEX_OK;
}

void
cuda_memory_touch(struct cuda_memory *m, size_t piece, size_t moment)
{
    struct live_range *p = &m->piece[piece];

    if (m->placed)
        return;
    if (moment < p->begin)
        p->begin = moment;
    if (moment > p->end)
        p->end = moment;
}

void
cuda_memory_keep(struct cuda_memory *m, size_t moment)
{
    size_t i;

    for (i = 0; i < m->count; i++) {
        cuda_memory_touch(m, i, 0);
        cuda_memory_touch(m, i, moment);
    }
}

enum chex_status
cuda_memory_place(struct cuda_memory *m, struct chex_error *err)
{
    if (!live_ranges_place(m->piece, m->count, &m->bytes))
        return error_memory(err);
    if (m->bytes == SIZE_MAX)
        return error_set(err, CHEX_ERR_MEMORY, "activations are larger than can be counted");
    m->placed = true;
    return CHEX_OK;
}

void
cuda_memory_free(struct cuda_memory *m)
{
    free(m->piece);
    *m = (struct cuda_memory){.piece = NULL};
}
