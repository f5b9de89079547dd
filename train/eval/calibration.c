/*
 * calibration.c - see calibration.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "eval/calibration.h"

#include "eval/logistic.h"

#include <math.h>
#include <stdlib.h>

#define NEGLIGIBLE 1e-20 /* probability of a number of positives that is left out */

struct labelled {
    double p;
    unsigned y;
};

double
calibration_logit(double p)
{
    if (!(p > 0))
        p = 0x1p-149; /* the smallest float */
    if (!(p < 1))
        return log(0x1p25); /* p = 1 - 2^-25 */
    return log(p) - log1p(-p);
}

static int
by_probability(const void *a, const void *b)
{
    const struct labelled *x = a, *y = b;

    if (x->p != y->p)
        return x->p < y->p ? -1 : 1;
    return (x->y > y->y) - (x->y < y->y);
}

/* ---- calibration error ------------------------------------------------------------------------------------------- */

/*
 * Returns the mean of |sum of p - number of positives|, if each of `count` labels is 1 with its p.  share[k] is the
 * probability of k positives among the images so far; share has count + 1 elements.
 */
static double
chance_error(const struct labelled *image, size_t count, double *share)
{
    double sum = 0, error = 0;
    size_t low = 0, high = 0, i, k;

    share[0] = 1;
    for (i = 0; i < count; i++) {
        double p = image[i].p;

        share[high + 1] = share[high] * p;
        for (k = high; k > low; k--)
            share[k] = share[k] * (1 - p) + share[k - 1] * p;
        share[low] *= 1 - p;
        high++;
        while (low < high && share[low] < NEGLIGIBLE)
            low++;
        while (high > low && share[high] < NEGLIGIBLE)
            high--;
        sum += p;
    }
    for (k = low; k <= high; k++)
        error += share[k] * fabs(sum - (double)k);
    return error;
}

/* Returns the end of the bin with this number: equal probabilities stay together. */
static size_t
bin_end(const struct labelled *image, size_t count, unsigned bin)
{
    size_t end = count * (bin + 1) / CALIBRATION_BINS;

    while (end > 0 && end < count && image[end].p <= image[end - 1].p)
        end++;
    return end;
}

static void
measure_bins(const struct labelled *image, size_t count, double *share, struct calibration *out)
{
    size_t begin = 0, end, i;
    unsigned b;

    out->ece = out->perfect = 0;
    for (b = 0; b < CALIBRATION_BINS; b++, begin = end) {
        struct calibration_bin bin = {.images = 0};
        double sum = 0;

        end = bin_end(image, count, b);
        if (end <= begin) {
            end = begin;
            continue;
        }
        for (i = begin; i < end; i++) {
            sum += image[i].p;
            bin.positives += image[i].y;
        }
        bin.images = (uint32_t)(end - begin);
        bin.probability = sum / (double)bin.images;
        out->ece += fabs(sum - (double)bin.positives) / (double)count;
        out->perfect += chance_error(image + begin, end - begin, share) / (double)count;
        out->bin[out->bins++] = bin;
    }
}

/* ---- slope and intercept ----------------------------------------------------------------------------------------- */

/* There is no best line if a limit separates the labels. */
static bool
is_separable(const struct labelled *image, size_t count)
{
    double low[2] = {2, 2}, high[2] = {-1, -1};
    size_t i;

    for (i = 0; i < count; i++) {
        low[image[i].y] = fmin(low[image[i].y], image[i].p);
        high[image[i].y] = fmax(high[image[i].y], image[i].p);
    }
    return low[1] >= high[0] || low[0] >= high[1];
}

/* Fits standardised logits: Newton's method needs fewer steps. */
static enum chex_status
measure_slope(const struct labelled *image, size_t count, struct calibration *out, struct chex_error *err)
{
    double *x = malloc(4 * count * sizeof(*x)), *positives = x ? x + 2 * count : NULL, sum = 0, squares = 0, b[2];
    struct logistic_rows rows = {.rows = count, .columns = 2, .x = x, .positives = positives};
    double mean, deviation;
    size_t i;

    if (!x)
        return error_memory(err);
    rows.negatives = positives + count;
    for (i = 0; i < count; i++) {
        x[2 * i] = 1;
        x[2 * i + 1] = calibration_logit(image[i].p);
        positives[i] = image[i].y;
        positives[count + i] = 1 - (double)image[i].y;
        sum += x[2 * i + 1];
    }
    mean = sum / (double)count;
    for (i = 0; i < count; i++)
        squares += (x[2 * i + 1] - mean) * (x[2 * i + 1] - mean);
    deviation = sqrt(squares / (double)count);
    for (i = 0; i < count; i++)
        x[2 * i + 1] = (x[2 * i + 1] - mean) / deviation;
    if (logistic_fit(&rows, b)) {
        out->slope = b[1] / deviation;
        out->intercept = b[0] - b[1] * mean / deviation;
    }
    free(x);
    return CHEX_OK;
}

/* ---- all together ------------------------------------------------------------------------------------------------ */

static enum chex_status
measure(struct labelled *image, size_t count, size_t positives, struct calibration *out, struct chex_error *err)
{
    double share = (double)positives / (double)count, sum = 0, *room;
    size_t i;

    if (positives == 0 || positives == count)
        return CHEX_OK;
    qsort(image, count, sizeof(*image), by_probability);
    for (i = 0; i < count; i++)
        sum += (image[i].p - image[i].y) * (image[i].p - image[i].y);
    out->brier = sum / (double)count;
    out->skill = 1 - out->brier / (share * (1 - share));
    if (count >= CALIBRATION_IMAGES) {
        room = malloc((count + 2) * sizeof(*room));
        if (!room)
            return error_memory(err);
        measure_bins(image, count, room, out);
        free(room);
    }
    if (positives < CALIBRATION_FEWEST || count - positives < CALIBRATION_FEWEST || is_separable(image, count))
        return CHEX_OK;
    return measure_slope(image, count, out, err);
}

enum chex_status
calibration_measure(const double *p, const uint8_t *label, size_t count, size_t stride, struct calibration *out,
                    struct chex_error *err)
{
    static const double none = (double)NAN;
    struct labelled *image = malloc((count ? count : 1) * sizeof(*image));
    size_t known = 0, positives = 0, i;
    enum chex_status status;

    *out = (struct calibration){none, none, none, none, none, none, .bins = 0};
    if (!image)
        return error_memory(err);
    for (i = 0; i < count; i++) {
        unsigned y = label[i * stride];

        if (y > 1)
            continue;
        image[known++] = (struct labelled){p[i], y};
        positives += y;
    }
    status = known > 0 ? measure(image, known, positives, out, err) : CHEX_OK;
    free(image);
    return status;
}
