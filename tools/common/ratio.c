/*
 * ratio.c - see ratio.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "common/ratio.h"

#include <math.h>

#define Z95 1.959963984540054 /* 97.5 % of the normal distribution */

void
ratio_add(struct ratio *r, double n, double y)
{
    r->clusters++;
    r->n += n;
    r->y += y;
    r->nn += n * n;
    r->yy += y * y;
    r->yn += y * n;
}

double
ratio_value(const struct ratio *r)
{
    return r->n > 0 ? r->y / r->n : 0;
}

static double
variance(const struct ratio *r, double p)
{
    double sum = r->yy - 2 * p * r->yn + p * p * r->nn;

    if (r->clusters < 2 || sum < 0)
        return 0;
    return sum / (r->n * r->n) * (double)r->clusters / (double)(r->clusters - 1);
}

/* Returns the pooled y / n of both. */
static double
pooled(const struct ratio *a, const struct ratio *b)
{
    return a->n + b->n > 0 ? (a->y + b->y) / (a->n + b->n) : 0;
}

bool
ratio_comparable(const struct ratio *a, const struct ratio *b, double expected)
{
    double p = pooled(a, b);

    return p * a->n >= expected && p * b->n >= expected && a->clusters > 1 && b->clusters > 1;
}

double
ratio_z(const struct ratio *a, const struct ratio *b, double expected)
{
    double p = pooled(a, b), error = sqrt(variance(a, p) + variance(b, p));

    if (!ratio_comparable(a, b, expected))
        return 0;
    return error > 0 ? (ratio_value(b) - ratio_value(a)) / error : 0;
}

struct share_interval
ratio_wilson(const struct ratio *r)
{
    double p = ratio_value(r), n = r->n, plain = n > 0 ? p * (1 - p) / n : 0, deff = 1, centre, half;

    if (n <= 0)
        return (struct share_interval){0, 1};
    if (plain > 0 && r->clusters > 1)
        deff = variance(r, p) / plain;
    else
        deff = n / (double)r->clusters;
    if (deff > 1)
        n /= deff;
    centre = (p + Z95 * Z95 / (2 * n)) / (1 + Z95 * Z95 / n);
    half = Z95 / (1 + Z95 * Z95 / n) * sqrt(p * (1 - p) / n + Z95 * Z95 / (4 * n * n));
    return (struct share_interval){centre - half > 0 ? centre - half : 0, centre + half < 1 ? centre + half : 1};
}
