/*
 * models.h - the list of networks
 *
 * A model is a file in this folder with a function that builds it, and a line in MODELS.  The option --model, its error
 * message, its completion, and the prefix of weights that other programs saved under the model's name all come from
 * this list.
 *
 *   densenet121     Huang et al., Densely Connected Convolutional Networks, CVPR 2017, as in torchvision
 *   densenet-micro  the same construction, small enough to train within minutes on a CPU: growth 16, three blocks of 4
 *   layers.  Every slice begins at a multiple of 8 channels, as GPU kernels require
 *   resnet50        He et al., Deep Residual Learning for Image Recognition, CVPR 2016, with the stride in the 3x3
 *                   convolution, as in torchvision
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_MODELS_H
#define CHEX_TRAIN_MODELS_H

#include "graph/graph.h"

/* first(NAME, BUILDER) for the first model, which is the default; next(NAME, BUILDER) for each other model. */
/* clang-format off */
#define MODELS(first, next)                 \
    first("densenet121", model_densenet121) \
    next("resnet50", model_resnet50)        \
    next("densenet-micro", model_densenet_micro)
/* clang-format on */

/* Add the nodes for images of side x side pixels; returns false if the side is too small. */
typedef bool model_builder(struct graph_builder *b, unsigned side, unsigned outputs);

#define MODEL_DECLARE(name, build) extern model_builder build;
MODELS(MODEL_DECLARE, MODEL_DECLARE)
#undef MODEL_DECLARE

/* The names for help and error messages: "a (default), b, c" and "a, b, c". */
#define MODEL_DEFAULT(name, build)  name " (default)"
#define MODEL_NAME(name, build)     name
#define MODEL_AND_NAME(name, build) ", " name
#define MODEL_HELP                  MODELS(MODEL_DEFAULT, MODEL_AND_NAME)
#define MODEL_NAMES                 MODELS(MODEL_NAME, MODEL_AND_NAME)

#endif
