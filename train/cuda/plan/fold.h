/*
 * fold.h - which normalisations are written nowhere
 *
 * A normalised tensor that one node alone reads is not written: a convolution makes it of what it was made of while
 * loading (struct norm_view), and a pool is one launch with it.  Backward the reader leaves the gradient of what was
 * normalised.  Buffers of such tensors have no place.
 *
 * To score, a normalisation that alone reads what a convolution writes is a part of that convolution: running
 * statistics are folded into weights and a bias, and the buffer between has no place.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_PLAN_FOLD_H
#define CHEX_CUDA_PLAN_FOLD_H

#include "base/memory.h"
#include "graph/graph.h"

#include <stdbool.h>

struct cuda_fold {
    const struct graph_node **norm;   /* [node_count] that the node reads through, or NULL */
    const struct graph_node **reader; /* [node_count] of a normalisation that is not written, or NULL */
    const struct graph_node **behind; /* [node_count] of a convolution, the normalisation that it does, or NULL */
    const struct graph_node **writer; /* [node_count] of such a normalisation, or NULL */
};

/*
 * Look at all nodes, of which those that are plain read through none; cuda_fold_free() frees it, also after an error.
 * CHEX_ERR_MEMORY
 */
enum chex_status cuda_fold_make(struct cuda_fold *f, const struct graph *g, const bool *plain, struct chex_error *err);
/* The same to score; behind those that are plain no normalisation is folded. */
enum chex_status cuda_fold_make_scoring(struct cuda_fold *f, const struct graph *g, const bool *plain,
                                        struct chex_error *err);
void cuda_fold_free(struct cuda_fold *f);

/* The first normalisation that reads something of a slice, or NULL. */
const struct graph_node *cuda_fold_norm_of(const struct graph *g, const struct graph_slice *s);

#endif
