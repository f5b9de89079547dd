/*
 * fold.h - decides which BN outputs are never stored
 *
 * If a single node reads a normalised tensor, that tensor is never stored.  A convolution applies the BN while it loads
 * its input (struct norm_view); a pool and the BN are one launch.  In backward, the same consumer computes the gradient
 * of the BN's input.  Buffers of such tensors have no memory.
 *
 * For scoring, a BN that is the only consumer of a convolution is folded into that convolution: its running statistics
 * change the weights and add a bias.  The buffer between them has no memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_CUDA_PLAN_FOLD_H
#define CHEX_CUDA_PLAN_FOLD_H

#include "base/memory.h"
#include "graph/graph.h"

#include <stdbool.h>

struct cuda_fold {
    const struct graph_node **norm;   /* [node_count] the BN that this node applies while it loads, or NULL */
    const struct graph_node **reader; /* [node_count] the consumer that applies this BN, or NULL */
    const struct graph_node **behind; /* [node_count] the BN that is folded into this convolution, or NULL */
    const struct graph_node **writer; /* [node_count] the convolution into which this BN is folded, or NULL */
};

/*
 * Decides for all nodes; a `plain` node (cuDNN) applies no BN.  Call cuda_fold_free() also after an error.
 * CHEX_ERR_MEMORY
 */
enum chex_status cuda_fold_make(struct cuda_fold *f, const struct graph *g, const bool *plain, struct chex_error *err);
/*
 * As cuda_fold_make(), for scoring: a BN is also folded into the convolution that writes its input, unless that
 * convolution is plain.
 */
enum chex_status cuda_fold_make_scoring(struct cuda_fold *f, const struct graph *g, const bool *plain,
                                        struct chex_error *err);
void cuda_fold_free(struct cuda_fold *f);

/* Returns the first BN that reads a part of the slice, or NULL. */
const struct graph_node *cuda_fold_norm_of(const struct graph *g, const struct graph_slice *s);

#endif
