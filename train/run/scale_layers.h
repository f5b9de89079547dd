/*
 * scale_layers.h - the layers of a network for the model of scale (math/scale_model.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_SCALE_LAYERS_H
#define CHEX_TRAIN_SCALE_LAYERS_H

#include "base/error.h"
#include "graph/graph.h"
#include "math/scale_model.h"

/*
 * Sets *out to an array with one layer for each node of the graph, which free() frees.  The share of a layer of the
 * time of backward is its share of the elements that all nodes read and write.  CHEX_ERR_MEMORY
 */
enum chex_status scale_layers_new(const struct graph *g, struct scale_layer **out, struct chex_error *err);

#endif
