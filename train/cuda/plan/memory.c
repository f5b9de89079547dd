/*
 * memory.c - see memory.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "cuda/plan/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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
    struct cuda_piece *grown;

    if (!cuda_align(bytes, &bytes))
        return error_set(err, CHEX_ERR_MEMORY, "a piece of memory is larger than can be counted");
    if (m->placed) {
        if (m->next == m->count || m->piece[m->next].bytes != bytes)
            return error_set(err, CHEX_ERR_BUG, "two walks over the graph differ in piece %zu", m->next);
        *piece = m->next++;
        return CHEX_OK;
    }
    grown = array_grow(m->piece, &m->capacity, m->count, sizeof(*grown));
    if (!grown)
        return error_memory(err);
    m->piece = grown;
    *piece = m->count;
    grown[m->count++] = (struct cuda_piece){.bytes = bytes, .begin = SIZE_MAX};
    return CHEX_OK;
}

void
cuda_memory_touch(struct cuda_memory *m, size_t piece, size_t moment)
{
    struct cuda_piece *p = &m->piece[piece];

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

static int
larger_first(const void *a, const void *b)
{
    const struct cuda_piece *x = *(struct cuda_piece *const *)a, *y = *(struct cuda_piece *const *)b;

    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x < y ? -1 : x > y; /* in the order in which they were taken */
}

/*
 * Finds the lowest gap for p between `count` placed pieces, which are sorted by offset; returns the index of the gap.
 */
static size_t
find_gap(struct cuda_piece *const *placed, size_t count, const struct cuda_piece *p, size_t *at)
{
    size_t i;

    *at = 0;
    for (i = 0; i < count; i++) {
        const struct cuda_piece *other = placed[i];

        if (other->begin > p->end || p->begin > other->end)
            continue;
        if (other->at >= *at && other->at - *at >= p->bytes)
            break;
        if (other->at + other->bytes > *at)
            *at = other->at + other->bytes;
    }
    for (i = 0; i < count && placed[i]->at <= *at; i++)
        ;
    return i;
}

enum chex_status
cuda_memory_place(struct cuda_memory *m, struct chex_error *err)
{
    size_t room = m->count ? m->count : 1, i, k, end;
    struct cuda_piece **order = calloc(room, sizeof(struct cuda_piece *));
    struct cuda_piece **placed = calloc(room, sizeof(struct cuda_piece *));
    bool counted = true;

    for (i = 0; order && i < m->count; i++)
        order[i] = &m->piece[i];
    if (order && placed)
        qsort(order, m->count, sizeof(struct cuda_piece *), larger_first);
    for (i = 0; order && placed && counted && i < m->count; i++) {
        k = find_gap(placed, i, order[i], &order[i]->at);
        memmove(placed + k + 1, placed + k, (i - k) * sizeof(struct cuda_piece *));
        placed[k] = order[i];
        counted = size_add(order[i]->at, order[i]->bytes, &end);
        if (counted && end > m->bytes)
            m->bytes = end;
    }
    m->placed = order && placed && counted;
    free(order);
    free(placed);
    if (!counted)
        return error_set(err, CHEX_ERR_MEMORY, "activations are larger than can be counted");
    return m->placed ? CHEX_OK : error_memory(err);
}

void
cuda_memory_free(struct cuda_memory *m)
{
    free(m->piece);
    *m = (struct cuda_memory){.piece = NULL};
}
