/*
 * eights.h - a graph whose slices begin at multiples of eight channels, as the kernels want them
 *
 * Kernels read and write eight channels at once.  So a slab has each slice that a node writes at the next multiple of
 * eight, and between them channels that no node of the original has: their weights are zero, and so all of their
 * values and gradients are and stay zero, with any optimizer.  A node that keeps channels apart (normalisation, pools,
 * sums) writes its slice as it reads it.  A graph of multiples of eight stays the same.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_PLAN_EIGHTS_H
#define CHEX_CUDA_PLAN_EIGHTS_H

#include "backend/backend.h"

struct cuda_eights {
    const struct graph *original;
    struct graph *graph;    /* its buffers, nodes and tensors have the same numbers */
    unsigned **channel;     /* [buffer_count][channels of the original]: where each lies */
    uint32_t *param, *stat; /* [floats of the original]: where each lies in the arena; NULL: nothing has moved */
};

/*
 * Make it; cuda_eights_free() frees it.  The original outlives it.  CHEX_ERR_MEMORY
 * CHEX_ERR_UNSUPPORTED  a node reads a part of what another one wrote, which does not begin or end at a multiple of 8
 */
enum chex_status cuda_eights_new(const struct graph *original, struct cuda_eights **out, struct chex_error *err);
void cuda_eights_free(struct cuda_eights *e); /* NULL is allowed */

/* An arena from the form of the original to that of the graph, zero between, and back. */
void cuda_eights_spread(const struct cuda_eights *e, enum arena_id arena, const float *from, float *to);
void cuda_eights_gather(const struct cuda_eights *e, enum arena_id arena, const float *from, float *to);

#endif
