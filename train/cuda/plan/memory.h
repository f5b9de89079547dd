/*
 * memory.h - places of what lives for a while only: pieces that no moment sees together lie over each other
 *
 * The model to keep in mind: launches are moments, counted from 0.  A piece lives from the first moment that touches it
 * to the last one.  The walk over the graph is done twice: the first time pieces are added and touched, then all get
 * their places, and the second walk finds them there by the same calls in the same order.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_PLAN_MEMORY_H
#define CHEX_CUDA_PLAN_MEMORY_H

#include "base/memory.h"

#include <stdbool.h>
#include <stddef.h>

#define CUDA_ALIGN ((size_t)256) /* of every piece, as that of an allocation of the CUDA runtime */

/* The next multiple of CUDA_ALIGN; false where that does not fit. */
bool cuda_align(size_t bytes, size_t *out);

struct cuda_piece {
    size_t bytes;      /* a multiple of CUDA_ALIGN */
    size_t begin, end; /* the first and the last moment; begin > end: nothing touched it */
    size_t at;         /* its place, from the beginning of the memory */
};

/* Zero-initialise; cuda_memory_free() frees it. */
struct cuda_memory {
    struct cuda_piece *piece;
    size_t count, capacity;
    size_t next;  /* to be taken */
    size_t bytes; /* of all, once they are placed */
    bool placed;
};

/*
 * The next piece, of so many bytes: its number.  The first walk adds it, the second finds it.
 * CHEX_ERR_MEMORY;  CHEX_ERR_BUG  the second walk wants another one than the first
 */
enum chex_status cuda_memory_take(struct cuda_memory *m, size_t bytes, size_t *piece, struct chex_error *err);
void cuda_memory_touch(struct cuda_memory *m, size_t piece, size_t moment);
/* All pieces live from moment 0 to this one at least: nothing shares. */
void cuda_memory_keep(struct cuda_memory *m, size_t moment);
/* Largest first, each at the lowest place that is free while it lives.  CHEX_ERR_MEMORY */
enum chex_status cuda_memory_place(struct cuda_memory *m, struct chex_error *err);
void cuda_memory_free(struct cuda_memory *m);

#endif
