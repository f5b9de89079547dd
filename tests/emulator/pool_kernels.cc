/*
 * pool_kernels.cc - pools and sums of branches of train/cuda/, forward and backward, beside formulas in double
 *
 *     pool_kernels
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernel_fixture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef std::vector<double> doubles;

static const struct shape {
    const char *name;
    unsigned images, height, width, channels, more, kernel, stride, pad;
    bool average, add, ties;
} shapes[] = {
    {"largest of 3x3, stride 2, pad 1", 2, 9, 8, 64, 0, 3, 2, 1, false, false, false},
    {"largest of 3x3, stride 2, pad 1, equal values, added", 2, 7, 7, 16, 16, 3, 2, 1, false, true, true},
    {"mean of 2x2, stride 2", 2, 8, 6, 32, 32, 2, 2, 0, true, false, false},
    {"mean of 2x2, stride 2, a row too many, added", 3, 5, 5, 8, 0, 2, 2, 0, true, true, false},
};

static unsigned
side(unsigned n, const shape &s)
{
    return (n + 2 * s.pad - s.kernel) / s.stride + 1;
}

/* y and dx of the slices; every slab has the same ld, the slice is in the middle. */
static void
formulas(const shape &s, const floats &x, const floats &dy, doubles &y, doubles &dx)
{
    unsigned ld = s.channels + s.more, first = s.more / 2, rows = side(s.height, s), columns = side(s.width, s);

    for (unsigned n = 0; n < s.images; n++)
        for (unsigned r = 0; r < rows; r++)
            for (unsigned q = 0; q < columns; q++)
                for (unsigned c = 0; c < s.channels; c++) {
                    size_t out = ((size_t)n * rows + r) * columns + q, best = 0;
                    double g = (double)dy[out * ld + first + c], sum = 0, most = -1e9;

                    for (unsigned k = 0; k < s.kernel * s.kernel; k++) {
                        int iy = (int)(r * s.stride + k / s.kernel) - (int)s.pad;
                        int ix = (int)(q * s.stride + k % s.kernel) - (int)s.pad;

                        if (iy < 0 || iy >= (int)s.height || ix < 0 || ix >= (int)s.width)
                            continue;
                        size_t in = ((size_t)n * s.height + (size_t)iy) * s.width + (size_t)ix;
                        double v = (double)x[in * ld + first + c];

                        sum += v / (s.kernel * s.kernel);
                        if (s.average)
                            dx[in * s.channels + c] += g / (s.kernel * s.kernel);
                        if (v > most) {
                            most = v;
                            best = in;
                        }
                    }
                    y[out * s.channels + c] = s.average ? sum : most;
                    if (!s.average)
                        dx[best * s.channels + c] += g;
                }
}

static floats
slice(const floats &slab, unsigned ld, unsigned channels)
{
    unsigned first = (ld - channels) / 2;
    floats out;

    for (size_t i = 0; i < slab.size(); i++)
        if (i % ld >= first && i % ld < first + channels)
            out.push_back(slab[i]);
    return out;
}

static void
run_window(const value_set &set, const shape &s)
{
    unsigned ld = s.channels + s.more, rows = side(s.height, s), columns = side(s.width, s);
    size_t inputs = (size_t)s.images * s.height * s.width, outputs = (size_t)s.images * rows * columns;
    size_t offset = s.more / 2 * (set.kind == VALUE_FLOAT ? 4 : 2);
    floats x = random_values(set, inputs * ld), dy = random_values(set, outputs * ld),
           dx = random_values(set, inputs * ld);
    doubles want_y(outputs * s.channels), want_dx(inputs * s.channels);
    char name[120];

    for (float &f : x)
        f = s.ties ? floorf(f * 2) : f;
    formulas(s, x, dy, want_y, want_dx);
    floats before = slice(dx, ld, s.channels);
    for (size_t i = 0; i < want_dx.size(); i++)
        want_dx[i] += s.add ? (double)before[i] : 0;
    void *on_x = upload(set, x), *on_dy = upload(set, dy), *on_dx = upload(set, dx),
         *on_y = upload(set, floats(outputs * ld));
    auto at = [&](void *p) { return (void *)((char *)p + offset); };
    pool_args a = {at(on_x),   at(on_y), at(on_dy), at(on_dx), s.images, s.height, s.width,  rows,  columns,
                   s.channels, ld,       ld,        ld,        ld,       s.kernel, s.stride, s.pad, s.add};

    launch(set, s.average ? CUDA_AVERAGE_POOL : CUDA_MAX_POOL, cuda_blocks(outputs * s.channels / 8, POOL_THREADS), 1,
           a);
    launch(set, s.average ? CUDA_AVERAGE_POOL_GRADIENT : CUDA_MAX_POOL_GRADIENT,
           cuda_blocks(inputs * s.channels / 8, POOL_THREADS), 1, a);
    compare("y", want_y, slice(download(set, on_y, outputs * ld), ld, s.channels), set.tolerance);
    compare("gradient", want_dx, slice(download(set, on_dx, inputs * ld), ld, s.channels), set.tolerance);
    release();
    snprintf(name, sizeof(name), "%s: %s", set.name, s.name);
    finish_case(name);
}

static void
run_mean(const value_set &set)
{
    enum { IMAGES = 3, PIXELS = 49, CHANNELS = 40, LD = 48 };
    floats x = random_values(set, IMAGES * PIXELS * LD), dy = random_values(set, IMAGES * CHANNELS);
    doubles y(IMAGES * CHANNELS), dx(IMAGES * PIXELS * CHANNELS);
    char name[60];

    for (size_t i = 0; i < dx.size(); i++) {
        size_t pixel = i / CHANNELS, c = i % CHANNELS, image = pixel / PIXELS;

        y[image * CHANNELS + c] += (double)x[pixel * LD + c] / PIXELS;
        dx[i] = (double)dy[image * CHANNELS + c] / PIXELS;
    }
    mean_pool_args a = {upload(set, x),  upload(set, floats(y.size())),
                        upload(set, dy), upload(set, floats(dx.size())),
                        IMAGES,          PIXELS,
                        CHANNELS,        LD,
                        CHANNELS,        CHANNELS,
                        CHANNELS,        0};

    launch(set, CUDA_MEAN_POOL, cuda_blocks(y.size() / 8, POOL_THREADS), 1, a);
    launch(set, CUDA_MEAN_POOL_GRADIENT, cuda_blocks(dx.size() / 8, POOL_THREADS), 1, a);
    compare("y", y, download(set, a.y, y.size()), set.tolerance);
    compare("gradient", dx, download(set, a.dx, dx.size()), set.tolerance);
    release();
    snprintf(name, sizeof(name), "%s: mean of all pixels", set.name);
    finish_case(name);
}

static void
run_branches(const value_set &set)
{
    enum { PIXELS = 70, CHANNELS = 24 };
    size_t count = PIXELS * CHANNELS;
    floats x = random_values(set, count), x2 = random_values(set, count), dy = random_values(set, count);
    floats dx2 = random_values(set, count);
    doubles y(count), g(count), g2(count);
    char name[60];

    branches_args a = {upload(set, x),
                       upload(set, x2),
                       upload(set, floats(count)),
                       upload(set, dy),
                       upload(set, floats(count)),
                       upload(set, dx2),
                       PIXELS,
                       CHANNELS,
                       CHANNELS,
                       CHANNELS,
                       CHANNELS,
                       CHANNELS,
                       CHANNELS,
                       CHANNELS,
                       1,
                       0,
                       1};
    for (size_t i = 0; i < count; i++) {
        y[i] = fmax(0, (double)x[i] + (double)x2[i]);
        g[i] = y[i] > 0 ? (double)dy[i] : 0;
        g2[i] = g[i] + (double)dx2[i];
    }
    launch(set, CUDA_BRANCHES, cuda_blocks(count / 8, POOL_THREADS), 1, a);
    launch(set, CUDA_BRANCHES_GRADIENT, cuda_blocks(count / 8, POOL_THREADS), 1, a);
    compare("y", y, download(set, a.y, count), set.tolerance);
    compare("gradient", g, download(set, a.dx, count), set.tolerance);
    compare("gradient of the other branch", g2, download(set, a.dx2, count), set.tolerance);
    release();
    snprintf(name, sizeof(name), "%s: sum of two branches", set.name);
    finish_case(name);
}

int
main(void)
{
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (const value_set &set : value_sets) {
        for (const shape &s : shapes)
            run_window(set, s);
        run_mean(set);
        run_branches(set);
    }
    return summary();
}
