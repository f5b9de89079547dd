/*
 * calibration.h - how well the probabilities of a finding agree with its labels
 *
 * brier      mean of (p - y)^2
 * skill      1 - brier / (q (1 - q)), q: the share of positives.  0: no better than always saying q
 * slope, intercept   of a logistic regression of the labels on the logit of p; 1 and 0 if p is calibrated.  A slope
 *            below 1 means that probabilities are too extreme.  p = 0 and p = 1 count as the nearest float
 * ece        expected calibration error: the mean over images of |mean p - mean y| of their bin.  CALIBRATION_BINS
 *            bins of equally many images in the order of p; images of equal p share a bin
 * perfect    the mean of ece if each label were drawn with its p: the ECE that chance alone causes.  It is computed
 *            exactly from the distribution of the number of positives in each bin
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_CALIBRATION_H
#define CHEX_TRAIN_CALIBRATION_H

#include "base/error.h"

#define CALIBRATION_BINS   15
#define CALIBRATION_IMAGES (10 * CALIBRATION_BINS) /* ece needs as many */
#define CALIBRATION_FEWEST 10                      /* positives and negatives that slope and intercept need */

struct calibration_bin {
    uint32_t images, positives;
    double probability; /* mean */
};

/* Undefined numbers are NaN. */
struct calibration {
    double brier, skill, slope, intercept, ece, perfect;
    unsigned bins; /* 0: no ece */
    struct calibration_bin bin[CALIBRATION_BINS];
};

/* Returns log(p / (1 - p)), with 0 and 1 as the nearest float. */
double calibration_logit(double p);

/*
 * p [count], from 0 to 1; label at every `stride`: 0, 1, others are left out.  All numbers are NaN without a positive
 * or without a negative.  CHEX_ERR_MEMORY
 */
enum chex_status calibration_measure(const double *p, const uint8_t *label, size_t count, size_t stride,
                                     struct calibration *out, struct chex_error *err);

#endif
