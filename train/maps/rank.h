/*
 * rank.h - the rank correlation of two maps
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_MAPS_RANK_H
#define CHEX_TRAIN_MAPS_RANK_H

#include "base/memory.h"

/*
 * Compute Spearman's rank correlation of two lists of numbers.  Equal numbers share the mean of their ranks.
 * *out is NaN if all numbers of a list are equal, or if one is not finite.  CHEX_ERR_MEMORY
 */
enum chex_status rank_correlation(const float *a, const float *b, size_t count, double *out, struct chex_error *err);

#endif
