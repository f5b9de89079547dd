/*
 * resample.c - fuzz target: compares resizing with a plain reference
 *
 * The reference has no tables, no separate fixed-point parts and no strips.  It computes every output sample as
 * resample.h and resample_axis.c define it, in the order of Pillow: first all rows, then all columns.
 *
 * Input: width, height, new width, new height (a byte each, plus two bits of a fifth byte), method, stride, then
 * pixels, repeated as needed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "fuzz.h"

#include "image/resample.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD  7
#define GUARD 32
#define PI    3.14159265358979323846

/* ---- the reference --------------------------------------------------------------------------------------------- */

static double
filter(enum resample_method method, double x)
{
    double a = x * PI, b = x / 3 * PI;

    if (method == RESAMPLE_BILINEAR)
        return fabs(x) < 1.0 ? 1.0 - fabs(x) : 0.0;
    if (!(x >= -3.0 && x < 3.0))
        return 0.0;
    return (x == 0.0 ? 1.0 : sin(a) / a) * (x == 0.0 ? 1.0 : sin(b) / b);
}

/*
 * Returns one output sample of a line of `in` samples, `step` bytes apart: Pillow's precompute_coeffs() with its
 * rounding.
 */
static uint8_t
convolve(enum resample_method method, const uint8_t *line, size_t step, uint32_t in, uint32_t out, uint32_t o)
{
    double scale = (double)in / out, stretch = scale < 1.0 ? 1.0 : scale;
    double support = (method == RESAMPLE_BILINEAR ? 1.0 : 3.0) * stretch;
    double center = (o + 0.5) * scale, sum = 0.0;
    long first = (long)(center - support + 0.5), last = (long)(center + support + 0.5);
    int64_t total = 1 << 21; /* half of the last digit */

    first = first < 0 ? 0 : first;
    last = last > (long)in ? (long)in : last;
    for (long i = first; i < last; i++)
        sum += filter(method, ((double)(i - first) + (double)first - center + 0.5) * (1.0 / stretch));
    for (long i = first; i < last; i++) {
        double w = filter(method, ((double)(i - first) + (double)first - center + 0.5) * (1.0 / stretch));
        double value = (sum != 0.0 ? w / sum : w) * (1 << 22);

        total += (int64_t)(value < 0 ? value - 0.5 : value + 0.5) * line[(size_t)i * step];
    }
    total >>= 22;
    return total < 0 ? 0 : total > 255 ? 255 : (uint8_t)total;
}

/*
 * Returns the mean of the area that an output pixel covers, in units of 1/(width * height) of an input pixel, rounded
 * half up.
 */
static uint8_t
mean(const struct image *in, uint32_t width, uint32_t height, uint32_t x, uint32_t y)
{
    uint64_t sum = 0, area = (uint64_t)in->width * in->height;

    for (uint64_t v = (uint64_t)y * in->height / height; v * height < (uint64_t)(y + 1) * in->height; v++) {
        uint64_t top = v * height > (uint64_t)y * in->height ? v * height : (uint64_t)y * in->height;
        uint64_t bottom = (v + 1) * height < (uint64_t)(y + 1) * in->height ? (v + 1) * height
                                                                            : (uint64_t)(y + 1) * in->height;

        for (uint64_t u = (uint64_t)x * in->width / width; u * width < (uint64_t)(x + 1) * in->width; u++) {
            uint64_t left = u * width > (uint64_t)x * in->width ? u * width : (uint64_t)x * in->width;
            uint64_t right = (u + 1) * width < (uint64_t)(x + 1) * in->width ? (u + 1) * width
                                                                             : (uint64_t)(x + 1) * in->width;

            sum += (bottom - top) * (right - left) * in->data[v * in->stride + u];
        }
    }
    return (uint8_t)((2 * sum + area) / (2 * area));
}

static void
reference(enum resample_method method, const struct image *in, uint32_t width, uint32_t height, uint8_t *out)
{
    uint8_t *between = malloc((size_t)width * in->height);

    FUZZ_REQUIRE(between != NULL);
    for (uint32_t y = 0; y < in->height; y++)
        for (uint32_t x = 0; x < width; x++)
            between[y * width + x] = in->width == width
                                         ? in->data[y * in->stride + x]
                                         : convolve(method, in->data + y * in->stride, 1, in->width, width, x);
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++)
            out[y * width + x] = in->height == height ? between[y * width + x]
                                                      : convolve(method, between + x, width, in->height, height, y);
    free(between);
}

/* ---- the target ------------------------------------------------------------------------------------------------ */

static uint32_t
side(uint8_t low, unsigned high)
{
    return 1 + low + 256 * (high & 3);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct resampler kept; /* the tables are kept between inputs */
    struct image in = {0};
    uint32_t width, height;
    enum resample_method method;
    uint8_t *buffer, *out, *wanted;
    size_t pixels;
    struct chex_error err = {0};
    enum chex_status status;

    if (size < HEAD + 1)
        return 0;
    method = (enum resample_method)(data[5] & 3);
    in.width = side(data[0], data[4]);
    in.height = side(data[1], data[4] >> 2);
    width = side(data[2], data[4] >> 4);
    height = side(data[3], data[4] >> 6);
    /* The reference is slow, so skip large inputs. */
    if ((uint64_t)in.width * in.height > 40000 || (uint64_t)width * height > 40000)
        return 0;
    in.stride = in.width + data[6] % 33;
    FUZZ_REQUIRE(buffer_reserve(&in.pixels, in.stride * in.height, NULL) == CHEX_OK);
    in.data = in.pixels.data;
    for (size_t i = 0; i < in.stride * in.height; i++)
        in.data[i] = data[HEAD + i % (size - HEAD)];
    pixels = (size_t)width * height;
    buffer = malloc(pixels + 2 * GUARD);
    wanted = malloc(pixels);
    FUZZ_REQUIRE(buffer && wanted);
    memset(buffer, 0xa5, pixels + 2 * GUARD);
    out = buffer + GUARD;
    status = resampler_run(&kept, method, &in, width, height, out, &err);
    fuzz_require_error(status, &err);
    FUZZ_REQUIRE((status == CHEX_OK) == (method != RESAMPLE_NONE || (width == in.width && height == in.height)));
    for (size_t i = 0; i < GUARD; i++)
        FUZZ_REQUIRE(buffer[i] == 0xa5 && out[pixels + i] == 0xa5);
    if (status == CHEX_OK) {
        if (method == RESAMPLE_AREA) {
            for (size_t i = 0; i < pixels; i++)
                wanted[i] = mean(&in, width, height, (uint32_t)(i % width), (uint32_t)(i / width));
        } else {
            reference(method, &in, width, height, wanted);
        }
        FUZZ_REQUIRE(memcmp(out, wanted, pixels) == 0);
    }
    free(buffer);
    free(wanted);
    image_release(&in);
    return 0;
}

void
fuzz_seeds(fuzz_seed_fn *give, void *context)
{
    static const uint8_t sides[][5] = {
        {0, 0, 0, 0, 0},      {63, 63, 15, 15, 0},   {36, 22, 10, 6, 0},  {10, 6, 36, 22, 0},
        {99, 2, 32, 1, 0},    {2, 99, 1, 32, 0},     {0, 187, 0, 1, 8},   {243, 0, 0, 0, 1},
        {16, 32, 33, 65, 0},  {127, 127, 31, 31, 0}, {15, 15, 14, 16, 0}, {39, 39, 39, 9, 0},
        {199, 99, 15, 15, 0}, {30, 30, 30, 30, 0},   {255, 20, 7, 20, 3}, {5, 5, 120, 120, 0}};
    uint8_t input[HEAD + 200];
    uint64_t random = 1;
    char name[32];

    for (unsigned i = 0; i < sizeof(sides) / sizeof(sides[0]); i++) {
        for (unsigned method = 0; method < 4; method++) {
            memcpy(input, sides[i], 5);
            input[5] = (uint8_t)method;
            input[6] = (uint8_t)(i * 3);
            for (size_t k = HEAD; k < sizeof(input); k++)
                input[k] = (uint8_t)(i % 3 == 0 ? fuzz_random(&random) : i % 3 == 1 ? k : (k / 8) % 2 * 255);
            snprintf(name, sizeof(name), "sides%u-method%u", i, method);
            give(name, input, i % 5 == 4 ? HEAD + 1 : sizeof(input), context);
        }
    }
}
