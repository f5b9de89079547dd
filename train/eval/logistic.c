/*
 * logistic.c - see logistic.h
 *
 * Newton's method with step halving; the system of each step is solved by Cholesky's decomposition.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "eval/logistic.h"

#include <math.h>
#include <string.h>

#define ITERATIONS 100
#define HALVINGS   40
#define FLAT       1e-11 /* gradient at the optimum, per image */
#define NEARLY     1e-8  /* accepted if rounding prevents a better one */

/* The loss at b, with its gradient and the matrix of second derivatives. */
struct newton {
    double loss, gradient[LOGISTIC_COLUMNS], second[LOGISTIC_COLUMNS][LOGISTIC_COLUMNS];
};

static void
add_row(const struct logistic_rows *d, size_t row, const double *b, struct newton *out)
{
    const double *x = d->x + row * d->columns;
    double positives = d->positives[row], negatives = d->negatives[row], z = 0, p, slope, weight;
    unsigned i, j;

    for (i = 0; i < d->columns; i++)
        z += x[i] * b[i];
    p = 1 / (1 + exp(-z));
    slope = negatives * p - positives * (1 - p);
    weight = (positives + negatives) * p * (1 - p);
    out->loss += (positives + negatives) * ((z > 0 ? z : 0) + log1p(exp(-fabs(z)))) - positives * z;
    for (i = 0; i < d->columns; i++) {
        out->gradient[i] += slope * x[i];
        for (j = 0; j <= i; j++)
            out->second[i][j] += weight * x[i] * x[j];
    }
}

static void
newton_at(const struct logistic_rows *d, const double *b, struct newton *out)
{
    size_t row;
    unsigned i;

    memset(out, 0, sizeof(*out));
    for (row = 0; row < d->rows; row++)
        add_row(d, row, b, out);
    for (i = 1; i < d->columns; i++) {
        out->loss += d->ridge / 2 * b[i] * b[i];
        out->gradient[i] += d->ridge * b[i];
        out->second[i][i] += d->ridge;
    }
}

/* Solve second * step = gradient in place: second becomes its Cholesky factor.  Returns false if it is not definite. */
static bool
solve(struct newton *n, unsigned columns, double *step)
{
    unsigned i, j, k;

    for (i = 0; i < columns; i++) {
        for (j = 0; j <= i; j++) {
            double sum = n->second[i][j];

            for (k = 0; k < j; k++)
                sum -= n->second[i][k] * n->second[j][k];
            if (i == j && !(sum > 0))
                return false;
            n->second[i][j] = i == j ? sqrt(sum) : sum / n->second[j][j];
        }
    }
    for (i = 0; i < columns; i++) {
        step[i] = n->gradient[i];
        for (k = 0; k < i; k++)
            step[i] -= n->second[i][k] * step[k];
        step[i] /= n->second[i][i];
    }
    for (i = columns; i-- > 0;) {
        for (k = i + 1; k < columns; k++)
            step[i] -= n->second[k][i] * step[k];
        step[i] /= n->second[i][i];
    }
    return true;
}

static double
steepest(const struct newton *n, unsigned columns)
{
    double most = 0;
    unsigned i;

    for (i = 0; i < columns; i++)
        most = fmax(most, fabs(n->gradient[i]));
    return most;
}

/* Make one step, halved until the loss is lower; returns false if it never is. */
static bool
descend(const struct logistic_rows *d, double *b, struct newton *at)
{
    double step[LOGISTIC_COLUMNS], next[LOGISTIC_COLUMNS], length = 1, loss = at->loss;
    unsigned i, k;

    if (!solve(at, d->columns, step))
        return false;
    for (k = 0; k < HALVINGS; k++, length /= 2) {
        for (i = 0; i < d->columns; i++)
            next[i] = b[i] - length * step[i];
        newton_at(d, next, at);
        if (at->loss < loss) {
            memcpy(b, next, d->columns * sizeof(*b));
            return true;
        }
    }
    newton_at(d, b, at);
    return false;
}

bool
logistic_fit(const struct logistic_rows *d, double *b)
{
    struct newton at;
    double images = 0;
    size_t row;
    int i;

    for (row = 0; row < d->rows; row++)
        images += d->positives[row] + d->negatives[row];
    memset(b, 0, d->columns * sizeof(*b));
    newton_at(d, b, &at);
    for (i = 0; i < ITERATIONS && steepest(&at, d->columns) > FLAT * images; i++)
        if (!descend(d, b, &at))
            break;
    return images > 0 && steepest(&at, d->columns) <= NEARLY * images;
}
