/*
 * memory.h - assigns memory to pieces with a live range; pieces whose live ranges do not overlap share memory
 *
 * Time is counted in launches, from 0.  A piece is live from the first launch that touches it to the last one.  The
 * graph is walked twice.  The first walk adds pieces and records their touches; then all pieces get their addresses.
 * The second walk makes the same calls in the same order and finds each piece at its address.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_PLAN_MEMORY_H
#define CHEX_CUDA_PLAN_MEMORY_H

#include "backend/live_ranges.h"
#include "base/memory.h"

#include <stdbool.h>
#include <stddef.h>

#define CUDA_ALIGN ((size_t)256) /* alignment of every piece; the CUDA runtime aligns allocations the same way */

/* Rounds up to a multiple of CUDA_ALIGN; returns false on overflow. */
bool cuda_align(size_t bytes, size_t *out);

/* Zero-initialise; cuda_memory_free() frees it. */
struct cuda_memory {
    struct live_range *piece; /* sizes in bytes, multiples of CUDA_ALIGN; the steps are launches */
    size_t count, capacity;
    size_t next;  /* index of the next piece to take */
    size_t bytes; /* size of the memory, after cuda_memory_place() */
    bool placed;
};

/*
 * Returns the index of the next piece, which has this size.  The first walk adds it, the second walk finds it.
 * CHEX_ERR_MEMORY;  CHEX_ERR_BUG  the second walk asks for another size than the first
 */
enum chex_status cuda_memory_take(struct cuda_memory *m, size_t bytes, size_t *piece, struct chex_error *err);
void cuda_memory_touch(struct cuda_memory *m, size_t piece, size_t moment);
/* Extends all live ranges to launches 0 to `moment`, so that no pieces share memory. */
void cuda_memory_keep(struct cuda_memory *m, size_t moment);
/* Places all pieces.  CHEX_ERR_MEMORY */
enum chex_status cuda_memory_place(struct cuda_memory *m, struct chex_error *err);
void cuda_memory_free(struct cuda_memory *m);

#endif
