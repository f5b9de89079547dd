/*
 * maps.h - class activation maps: the positions of their cells in an image
 *
 * A network ends with the mean over all pixels of an activation A, and a linear layer:
 *
 *     logit_k = b_k + sum over c of W[k][c] * (mean over y, x of A[c][y][x])
 *
 * Both are linear, so a logit is its bias plus the mean over the cells (y, x) of
 *
 *     M_k(y, x) = sum over c of W[k][c] A[c][y][x]
 *
 * M_k is the map of finding k.  Its values are in units of the logit, have a sign, and may be compared between images.
 * score_start() of backend.h computes it, as float [height][width] for each image and finding.
 *
 * A cell sees a part of the image that is larger than the distance to the next cell.  Its centre follows from kernels,
 * strides and paddings: pixel jump * i + offset of the network's input for cell i, in both directions.  Pixel centres
 * are whole numbers.  For densenet121 this is 32 i + 14.  Resizing a map to the size of the image would put it at
 * 32 i + 15.5.
 *
 * Zhou et al., Learning Deep Features for Discriminative Localization, CVPR 2016.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_MAPS_H
#define CHEX_TRAIN_MAPS_H

#include "graph/graph.h"

struct map_grid {
    unsigned height, width; /* cells */
    double jump, offset;    /* pixels of the network's input */
};

/*
 * Compute the grid of a network's maps.
 * CHEX_ERR_UNSUPPORTED  the network has no graph_head, or the ways through it do not agree about the centre of a cell
 * CHEX_ERR_MEMORY
 */
enum chex_status map_grid_of(const struct graph *g, struct map_grid *out, struct chex_error *err);

/* Returns the map at a point of the network's input: bilinear between the cell centres, constant outside of them. */
double map_value(const struct map_grid *grid, const float *map, double y, double x);

/* The position of a picture in the network's input: its pixel (y, x) is pixel (y * step_y + top, x * step_x + left). */
struct map_place {
    double step_y, step_x, top, left;
};

/*
 * Returns the place of a picture of height x width pixels.  It was shrunk to size x size pixels, and the network read a
 * crop of these, from pixel (crop_y, crop_x) on.  For the shrunk picture itself, height = width = size.  For the
 * crop itself, height = width = size = side of the crop, and crop_y = crop_x = 0.
 */
struct map_place map_place_of(unsigned height, unsigned width, unsigned size, unsigned crop_y, unsigned crop_x);

/* Compute the map at every pixel of a picture.  out: [height][width] */
void map_spread(const struct map_grid *grid, const float *map, const struct map_place *place, unsigned height,
                unsigned width, float *out);

#endif
