/*
 * resample_axis.c - see resample_axis.h
 *
 * Convolution (bilinear, lanczos).  The centre of output sample o is c = (o + 1/2) s on the line of input samples, with
 * s = in / out.  The filter of radius r is stretched by max(s, 1), so it spans c - r s .. c + r s.  Input sample i, at
 * i + 1/2, gets the filter's value at (i + 1/2 - c) / s.  The weights are divided by their sum and rounded to fixed
 * point, half away from zero.  To match Pillow's weights in every bit, all doubles are computed in the order that
 * Pillow uses (Pillow 9.4 and later, src/libImaging/Resample.c).  That order is part of the format.
 *
 * Area.  In units of 1/out of an input sample, input sample i covers i out .. (i + 1) out, and output sample o covers
 * o in .. (o + 1) in.  The weight is the length of their overlap.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/resample_axis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- filters ------------------------------------------------------------------------------------------------- */

#define PI 3.14159265358979323846

static double
triangle(double x)
{
    double distance = fabs(x);

    return distance < 1.0 ? 1.0 - distance : 0.0;
}

static double
sinc(double x)
{
    double angle = x * PI;

    return x == 0.0 ? 1.0 : sin(angle) / angle;
}

static double
lanczos3(double x)
{
    return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0;
}

/* ---- convolution --------------------------------------------------------------------------------------------- */

struct tap_span {
    uint32_t first, count;
};

struct convolution {
    double (*filter)(double);
    double scale, stretch, support;
};

static struct convolution
convolution_of(enum resample_method method, uint32_t in, uint32_t out)
{
    bool bilinear = method == RESAMPLE_BILINEAR;
    struct convolution c;

    c.filter = bilinear ? triangle : lanczos3;
    c.scale = (double)in / out;
    c.stretch = c.scale < 1.0 ? 1.0 : c.scale;
    c.support = (bilinear ? 1.0 : 3.0) * c.stretch;
    return c;
}

static double
center_of(const struct convolution *c, uint32_t o)
{
    return (o + 0.5) * c->scale;
}

/* Round both bounds.  Conversion truncates towards zero, so a negative bound is first clipped to 0. */
static struct tap_span
convolution_span(const struct convolution *c, uint32_t in, uint32_t o)
{
    double center = center_of(c, o);
    double begin = center - c->support + 0.5;
    double end = center + c->support + 0.5;
    struct tap_span span;

    span.first = begin > 0.0 ? (uint32_t)begin : 0;
    span.count = (end < in ? (uint32_t)end : in) - span.first;
    return span;
}

/* Compute the factors of one output sample; w: scratch, span.count doubles.  Returns true if all low parts are 0. */
static bool
convolution_factors(const struct convolution *c, uint32_t o, struct tap_span span, double *w, int16_t *low,
                    int16_t *high)
{
    double center = center_of(c, o);
    double reciprocal = 1.0 / c->stretch;
    double sum = 0.0;
    bool coarse = true;

    for (uint32_t i = 0; i < span.count; i++) {
        w[i] = c->filter(((double)i + span.first - center + 0.5) * reciprocal);
        sum += w[i];
    }
    for (uint32_t i = 0; i < span.count; i++) {
        double value = (sum != 0.0 ? w[i] / sum : w[i]) * (1 << RESAMPLE_PRECISION);
        int32_t factor = (int32_t)(value < 0.0 ? value - 0.5 : value + 0.5);
        int32_t part = factor & ((1 << RESAMPLE_LOW_BITS) - 1);

        low[i] = (int16_t)part;
        high[i] = (int16_t)((factor - part) / (1 << RESAMPLE_LOW_BITS));
        coarse &= part == 0;
    }
    return coarse;
}

/*
 * If the factors of an output sample are small, set *bits, write them to out and return true.  Small means: none is
 * negative, their sum divided by 2^(22 - bits) is at most 128, and no single factor is 128, which does not fit into 8
 * bits.
 */
static bool
small_factors(const int16_t *low, const int16_t *high, uint32_t count, int8_t *out, uint8_t *bits)
{
    uint32_t all = 0, sum = 0, unused = RESAMPLE_PRECISION;

    for (uint32_t i = 0; i < count; i++) {
        if (high[i] < 0)
            return false;
        all |= (uint32_t)high[i] << RESAMPLE_LOW_BITS | (uint32_t)low[i];
    }
    while (unused > 0 && all & ((1u << unused) - 1))
        unused--;
    if (RESAMPLE_PRECISION - unused > 7)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t factor = ((uint32_t)high[i] << RESAMPLE_LOW_BITS | (uint32_t)low[i]) >> unused;

        sum += factor;
        if (factor > 127 || sum > 128)
            return false;
        out[i] = (int8_t)factor;
    }
    *bits = (uint8_t)(RESAMPLE_PRECISION - unused);
    return true;
}

/* Returns whether sample o has the factors of sample o - 1, moved by 4 input samples. */
static bool
is_like_previous(const struct resample_axis *axis, uint32_t o)
{
    return axis->small_bits[o] == axis->small_bits[o - 1] && axis->count[o] == 8 && axis->count[o - 1] == 8 &&
           axis->first[o] == axis->first[o - 1] + 4 &&
           memcmp(axis->small + o * axis->taps, axis->small + (o - 1) * axis->taps, 8) == 0;
}

/* Find the longest range of output samples with equal factors. */
static void
find_even_range(struct resample_axis *axis)
{
    uint32_t from = 0;

    for (uint32_t o = 1; o <= axis->out; o++) {
        if (o < axis->out && axis->small_bits[o] != RESAMPLE_NOT_SMALL && is_like_previous(axis, o))
            continue;
        if (o - from > 1 && o - from > axis->even_to - axis->even_from) {
            axis->even_from = from;
            axis->even_to = o;
        }
        from = o;
    }
}

static bool
fill_convolution(struct resample_axis *axis)
{
    struct convolution c = convolution_of(axis->method, axis->in, axis->out);
    double *scratch;
    bool good;

    for (uint32_t o = 0; o < axis->out; o++) {
        struct tap_span span = convolution_span(&c, axis->in, o);

        axis->first[o] = span.first;
        axis->count[o] = span.count;
        axis->taps = span.count > axis->taps ? span.count : axis->taps;
    }
    axis->taps += axis->taps & 1;
    scratch = calloc(axis->taps, sizeof(*scratch));
    if (axis->out <= SIZE_MAX / axis->taps) {
        axis->low = calloc(axis->out * axis->taps, sizeof(*axis->low));
        axis->high = calloc(axis->out * axis->taps, sizeof(*axis->high));
        axis->coarse = calloc(axis->out, sizeof(*axis->coarse));
        axis->small = calloc(axis->out * axis->taps, sizeof(*axis->small));
        axis->small_bits = calloc(axis->out, sizeof(*axis->small_bits));
    }
    good = scratch && axis->low && axis->high && axis->coarse && axis->small && axis->small_bits;
    for (uint32_t o = 0; good && o < axis->out; o++) {
        int16_t *low = axis->low + o * axis->taps, *high = axis->high + o * axis->taps;

        axis->coarse[o] = convolution_factors(&c, o, (struct tap_span){axis->first[o], axis->count[o]}, scratch, low,
                                              high);
        if (!small_factors(low, high, axis->count[o], axis->small + o * axis->taps, &axis->small_bits[o]))
            axis->small_bits[o] = RESAMPLE_NOT_SMALL;
    }
    free(scratch);
    if (good)
        find_even_range(axis);
    return good;
}

/* ---- area ---------------------------------------------------------------------------------------------------- */

static bool
fill_area(struct resample_axis *axis)
{
    uint64_t in = axis->in, out = axis->out;

    axis->taps = (size_t)(in / out + 2);
    if (axis->out <= SIZE_MAX / axis->taps)
        axis->weight = calloc(axis->out * axis->taps, sizeof(*axis->weight));
    if (!axis->weight)
        return false;
    for (uint64_t o = 0; o < out; o++) {
        uint64_t begin = o * in, end = begin + in;
        uint64_t first = begin / out, last = (end - 1) / out;

        axis->first[o] = (uint32_t)first;
        axis->count[o] = (uint32_t)(last - first + 1);
        for (uint64_t i = first; i <= last; i++) {
            uint64_t from = i * out > begin ? i * out : begin;
            uint64_t to = (i + 1) * out < end ? (i + 1) * out : end;

            axis->weight[o * axis->taps + (i - first)] = (uint32_t)(to - from);
        }
    }
    return true;
}

/* -------------------------------------------------------------------------------------------------------------- */

struct resample_axis *
resample_axis_new(enum resample_method method, uint32_t in, uint32_t out)
{
    struct resample_axis *axis = calloc(1, sizeof(*axis));
    bool good;

    if (!axis)
        return NULL;
    axis->method = method;
    axis->in = in;
    axis->out = out;
    axis->first = calloc(out, sizeof(*axis->first));
    axis->count = calloc(out, sizeof(*axis->count));
    good = axis->first && axis->count && (method == RESAMPLE_AREA ? fill_area(axis) : fill_convolution(axis));
    if (!good) {
        resample_axis_free(axis);
        return NULL;
    }
    return axis;
}

void
resample_axis_free(struct resample_axis *axis)
{
    if (!axis)
        return;
    free(axis->first);
    free(axis->count);
    free(axis->low);
    free(axis->high);
    free(axis->coarse);
    free(axis->small);
    free(axis->small_bits);
    free(axis->weight);
    free(axis);
}
