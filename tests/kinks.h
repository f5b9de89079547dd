/*
 * kinks.h - how near a training step is to where its gradient jumps
 *
 * Two backends round differently.  Where the input of a ReLU is zero but for rounding, or the two largest values under
 * a max pool are equal but for it, one lets a gradient through and the other does not: a difference of finite size, for
 * which no tolerance is right.  So tests that compare gradients take weights and images without such a place.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_KINKS_H
#define CHEX_TESTS_KINKS_H

#include "graph/graph.h"

/*
 * The least distance of an input of a ReLU from zero, and of the two largest values of a max pool's window from each
 * other where the ReLU before it lets the largest through.
 *
 * parameters  those of the forward pass, in the form of the graph
 * buffer      what it left, [buffer_count] of [images][channels][height][width], all there (backend "ref")
 */
double kink_distance(const struct graph *g, const float *parameters, float *const *buffer, unsigned images);

#endif
