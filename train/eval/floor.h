/*
 * floor.h - what age, sex and view alone predict: the floor with which the AUROC of a network is compared
 *
 * A logistic regression for each finding, fitted on the training images: a constant and nine columns of 0 or 1 for the
 * age (0-19, 20-39, 40-59, 60-79, 80 and more), the sex (F, M) and the view (AP, PA).  An unknown value has a 0 in all
 * columns of its kind.  The ridge of 1 (logistic.h) keeps columns without an image finite.  Images with the same
 * columns are one cell, so integer counts of each cell are all that the fit needs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_FLOOR_H
#define CHEX_TRAIN_FLOOR_H

#include <stdbool.h>
#include <stdint.h>

#define FLOOR_CELLS  54
#define FLOOR_FEWEST 10 /* positives and negatives of training that a fit needs */

enum floor_age { FLOOR_0, FLOOR_20, FLOOR_40, FLOOR_60, FLOOR_80, FLOOR_AGE_UNKNOWN, FLOOR_AGES };

struct floor_cell {
    uint64_t positives, negatives; /* training images */
};

enum floor_age floor_age(float age); /* years; NaN: unknown */
/* Returns the cell of an image, below FLOOR_CELLS; sex: M, F, others unknown; view: "AP", "PA", others unknown. */
unsigned floor_cell(float age, char sex, const char *view);

/* Compute the probability of a finding in each cell.  Returns false if there are too few images, or no optimum. */
bool floor_fit(const struct floor_cell cell[FLOOR_CELLS], double probability[FLOOR_CELLS]);

#endif
