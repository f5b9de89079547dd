/*
 * models.h - what the models of models.c are built by; false where an image of this side is too small
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_MODELS_H
#define CHEX_TRAIN_MODELS_H

#include "graph/graph.h"

/* Huang et al., Densely Connected Convolutional Networks, CVPR 2017, as in torchvision.models.densenet. */
bool model_densenet121(struct graph_builder *b, unsigned side, unsigned outputs);
/* The same construction, small enough to learn within minutes on a CPU: growth 16, blocks of 3, 4 and 4 layers. */
bool model_densenet_micro(struct graph_builder *b, unsigned side, unsigned outputs);
/* He et al., Deep Residual Learning for Image Recognition, CVPR 2016, with the stride in the 3x3, as in torchvision. */
bool model_resnet50(struct graph_builder *b, unsigned side, unsigned outputs);

#endif
