/*
 * resample.c - see resample.h
 *
 * All methods are separable.  A table for each direction (resample_axis.h) has the input samples of each output sample.
 *
 * bilinear, lanczos (convolve.h)  First the rows, into bytes, then the columns.  A direction whose size does not change
 * is
 *     skipped, and rows that no output row needs are not computed.  The rounding to 8 bits between the two passes is
 *     visible in the result; Pillow does the same.
 * area  The sums of a row, each at most 255 * in->width, are multiplied by the row's weight, added in 64 bits, and
 * divided
 *     once at the end.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "image/resample.h"

#include "kernels/convolve.h"

#include <inttypes.h>
#include <string.h>

const char *const resample_names[] = {
    [RESAMPLE_BILINEAR] = "bilinear",
    [RESAMPLE_AREA] = "area",
    [RESAMPLE_LANCZOS] = "lanczos",
    [RESAMPLE_NONE] = "none",
    NULL,
};

void
resampler_release(struct resampler *r)
{
    resample_axis_free(r->horizontal);
    resample_axis_free(r->vertical);
    buffer_release(&r->scratch);
    *r = (struct resampler){0};
}

/* Rebuild the table at *axis if it is for other sizes. */
static enum chex_status
axis_for(struct resample_axis **axis, enum resample_method method, uint32_t in, uint32_t out, struct chex_error *err)
{
    const struct resample_axis *a = *axis;

    if (a && a->method == method && a->in == in && a->out == out)
        return CHEX_OK;
    resample_axis_free(*axis);
    *axis = resample_axis_new(method, in, out);
    return *axis ? CHEX_OK : error_memory(err);
}

static void
copy_rows(const struct image *in, uint8_t *out)
{
    for (uint32_t y = 0; y < in->height; y++)
        memcpy(out + (size_t)y * in->width, in->data + y * in->stride, in->width);
}

/* ---- convolution --------------------------------------------------------------------------------------------- */

static enum chex_status
convolve(struct resampler *r, enum resample_method method, const struct image *in, uint32_t width, uint32_t height,
         uint8_t *out, struct chex_error *err)
{
    const struct convolve_kind *kind = r->kind ? r->kind : convolve_best();
    bool across = in->width != width, down = in->height != height;
    uint32_t first = 0, count = in->height;
    enum chex_status status;
    size_t strip, size;
    uint8_t *between;

    status = axis_for(&r->horizontal, method, in->width, width, err);
    if (status == CHEX_OK)
        status = axis_for(&r->vertical, method, in->height, height, err);
    if (status != CHEX_OK)
        return status;
    if (!across) {
        convolve_columns(kind, r->vertical, in->data, 0, in->stride, width, out);
        return CHEX_OK;
    }
    if (down) { /* the first and last row needed */
        first = r->vertical->first[0];
        count = r->vertical->first[height - 1] + r->vertical->count[height - 1] - first;
    }
    if (!convolve_rows_scratch(r->horizontal, &strip) || !size_mul(count, width, &size) ||
        !size_add(size, strip, &size))
        return error_memory(err);
    status = buffer_reserve(&r->scratch, size, err);
    if (status != CHEX_OK)
        return status;
    between = down ? r->scratch.data + strip : out;
    convolve_rows(kind, r->horizontal, in->data + first * in->stride, in->stride, count, r->scratch.data, between);
    if (down)
        convolve_columns(kind, r->vertical, between, first, width, width, out);
    return CHEX_OK;
}

/* ---- area ---------------------------------------------------------------------------------------------------- */

static void
sum_row(const struct resample_axis *axis, const uint8_t *in, uint64_t *sums)
{
    for (uint32_t o = 0; o < axis->out; o++) {
        const uint8_t *from = in + axis->first[o];
        const uint32_t *weight = axis->weight + o * axis->taps;
        uint64_t sum = 0;

        for (uint32_t t = 0; t < axis->count[o]; t++)
            sum += (uint64_t)weight[t] * from[t];
        sums[o] = sum;
    }
}

static enum chex_status
average(struct resampler *r, const struct image *in, uint32_t width, uint32_t height, uint8_t *out,
        struct chex_error *err)
{
    const uint64_t area = (uint64_t)in->width * in->height; /* the weights of an output pixel add up to this */
    enum chex_status status = axis_for(&r->horizontal, RESAMPLE_AREA, in->width, width, err);
    uint64_t *sums, *totals;
    size_t size;

    if (status == CHEX_OK)
        status = axis_for(&r->vertical, RESAMPLE_AREA, in->height, height, err);
    if (status != CHEX_OK)
        return status;
    if (!size_mul(width, 2 * sizeof(uint64_t), &size))
        return error_memory(err);
    status = buffer_reserve(&r->scratch, size, err);
    if (status != CHEX_OK)
        return status;
    sums = (uint64_t *)(void *)r->scratch.data; /* aligned by malloc */
    totals = sums + width;
    for (uint32_t o = 0; o < height; o++, out += width) {
        const uint32_t *weight = r->vertical->weight + o * r->vertical->taps;

        memset(totals, 0, width * sizeof(*totals));
        for (uint32_t t = 0; t < r->vertical->count[o]; t++) {
            sum_row(r->horizontal, in->data + (size_t)(r->vertical->first[o] + t) * in->stride, sums);
            for (uint32_t x = 0; x < width; x++)
                totals[x] += weight[t] * sums[x];
        }
        for (uint32_t x = 0; x < width; x++)
            out[x] = (uint8_t)((2 * totals[x] + area) / (2 * area));
    }
    return CHEX_OK;
}

/* -------------------------------------------------------------------------------------------------------------- */

enum chex_status
resampler_run(struct resampler *r, enum resample_method method, const struct image *in, uint32_t width, uint32_t height,
              uint8_t *out, struct chex_error *err)
{
    r->method = method;
    if (in->width == width && in->height == height) {
        copy_rows(in, out);
        return CHEX_OK;
    }
    switch (method) {
    case RESAMPLE_NONE:
        return error_set(err, CHEX_ERR_LIMIT, "%" PRIu32 "x%" PRIu32 " is not %" PRIu32 "x%" PRIu32, in->width,
                         in->height, width, height);
    case RESAMPLE_AREA:
        return average(r, in, width, height, out, err);
    default:
        return convolve(r, method, in, width, height, out, err);
    }
}
