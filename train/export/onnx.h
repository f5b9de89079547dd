/*
 * onnx.h - writes a network as an ONNX file, which other programs can run
 *
 * The file needs opset 13 (IR version 8), which runtimes know since 2021.  It has one operation for each node of the
 * graph (graph.h), a second one for its ReLU, and a Concat for a slice of channels that several nodes wrote.  Nothing
 * is folded, so the weights keep torchvision's names.
 *
 * input    image        uint8 [N][1][side][side]: gray levels after shrinking and the center crop; the file
 *                       normalises them (input.h)
 * outputs  probability  float [N][outputs]: 1 / (1 + exp(-logit))
 *          logit        float [N][outputs]
 *          calibrated   float [N][outputs]: see operating.h; NaN for an output without a calibration.  If there is none
 *                       at all, this output is left out
 *          cam          float [N][outputs][height][width]: class activation maps, the last layer applied to each pixel
 *                       of its input before the mean, without the bias; mean over the pixels + bias = logit
 *
 * The same arguments give the same bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_ONNX_H
#define CHEX_TRAIN_ONNX_H

#include "checkpoint/safetensors.h"
#include "graph/graph.h"

#define ONNX_IR    8
#define ONNX_OPSET 13

struct onnx_model {
    const struct graph *graph;
    const float *params, *stats;     /* the arenas of the graph */
    const double *slope, *intercept; /* [outputs] of the calibration, NaN: none; NULL: no output has one */
    const char *description;         /* one line for people */
    const struct metadata *metadata; /* pairs of strings, written in this order */
    size_t metadata_count;
};

/*
 * Write the file; it appears by rename when it is complete.  hex: its SHA-256, may be NULL.
 * CHEX_ERR_UNSUPPORTED  a graph that reads a part of the channels that a node wrote, or that has no mean before its
 *                       last layer: none of graph_models does
 * CHEX_ERR_LIMIT        more than 2 GB, the largest file of protobuf;  CHEX_ERR_WRITE, CHEX_ERR_MEMORY
 */
enum chex_status onnx_write(const struct onnx_model *m, const struct folder *folder, const char *name, char *hex,
                            struct chex_error *err);

#endif
