/*
 * kinks.h - measures how near a training step is to a discontinuity of its gradient
 *
 * Two backends round differently.  If the input of a ReLU is zero except for rounding, or the two largest values of a
 * max pool are equal except for rounding, one backend passes a gradient and the other does not.  This difference is
 * finite, so no tolerance is right for it.  Tests that compare gradients therefore use weights and images without such
 * points.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_KINKS_H
#define CHEX_TESTS_KINKS_H

#include "graph/graph.h"

/*
 * Returns the minimum of two distances: of the inputs of ReLUs from zero, and of the two largest values in the windows
 * of max pools from each other (if the ReLU before them passes the largest).
 *
 * parameters  those of fprop, in the form of the graph buffer      results of fprop, [buffer_count] of
 * [images][channels][height][width], all kept (backend "ref")
 */
double kink_distance(const struct graph *g, const float *parameters, float *const *buffer, unsigned images);

#endif
