/*
 * logistic.h - logistic regression by Newton's method, for few columns
 *
 * Minimises   sum over images of log(1 + exp(-s x.b))  +  ridge / 2 * sum over columns 1, 2, ... of b^2,
 * with s = 1 for positives and -1 for negatives.  Column 0 is the constant 1 and has no penalty.  With ridge 1 this is
 * scikit-learn's LogisticRegression(C=1).  Images with equal columns share a row, which has their numbers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_LOGISTIC_H
#define CHEX_TRAIN_LOGISTIC_H

#include <stdbool.h>
#include <stddef.h>

#define LOGISTIC_COLUMNS 16

struct logistic_rows {
    size_t rows;
    unsigned columns;                    /* at most LOGISTIC_COLUMNS */
    const double *x;                     /* [rows][columns] */
    const double *positives, *negatives; /* [rows] images */
    double ridge;
};

/* Fit b [columns].  Returns false if Newton's method finds no optimum; the caller checks that there is one. */
bool logistic_fit(const struct logistic_rows *d, double *b);

#endif
