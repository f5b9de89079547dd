/*
 * sum_kernels.cc - reduces wgrad partial sums to gradients of master weights, for all convolutions in one launch;
 * converts values to floats
 *
 *     sum_kernels
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernel_fixture.h"

#include "backend/input.h"

#include <algorithm>
#include <math.h>
#include <stdio.h>

/* out, in, taps, splits, stem: one and several parts, partly filled CTAs, and the stem between the others. */
static const splits_entry shapes[] = {
    {NULL, 0, 8, 16, 1, 1, 0, 0},     {NULL, 0, 5, 24, 9, 3, 0, 0},   {NULL, 0, 24, 1, 49, 19, 1, 0},
    {NULL, 0, 3, 40, 9, 37, 0, 0},    {NULL, 0, 40, 32, 1, 40, 0, 0}, {NULL, 0, 4, 8, 49, 9, 0, 0},
    {NULL, 0, 130, 128, 1, 20, 0, 0}, {NULL, 0, 2, 8, 16, 33, 0, 0},
};
enum { GAP = 3 }; /* floats between gradients, which have no alignment */

static size_t
packed_of(const splits_entry &e)
{
    return e.stem ? (size_t)e.out * 4 * STEM_IN : (size_t)e.out * e.in * e.taps;
}

static size_t
master_of(const splits_entry &e)
{
    return (size_t)e.out * (e.stem ? INPUT_CHANNELS : e.in) * e.taps;
}

/* Adds the sum of a packed weight n to the gradients of the weights that it was computed from. */
static void
unpack(const splits_entry &e, unsigned n, double sum, double *gradient)
{
    static const float means[] = INPUT_MEAN, deviations[] = INPUT_DEVIATION;
    unsigned ky = n / STEM_IN % 4 * 2 + n / 4 % 2, kx = n / 8 % 4 * 2 + n / 2 % 2, out = n / STEM_IN / 4;

    if (!e.stem) {
        gradient[((size_t)n / e.in / e.taps * e.in + n % e.in) * e.taps + n / e.in % e.taps] += sum;
        return;
    }
    for (unsigned c = 0; c < INPUT_CHANNELS && ky > 0 && kx > 0; c++)
        gradient[((out * INPUT_CHANNELS + c) * STEM_KERNEL + ky - 1) * STEM_KERNEL + kx - 1] +=
            sum * (n % 2 == 0 ? 256.0 / 255 : 128.0 / 255 - (double)means[c]) / (double)deviations[c];
}

static void
run_all(const value_set &set, unsigned number)
{
    std::vector<splits_entry> table(shapes, shapes + sizeof(shapes) / sizeof(shapes[0]));
    doubles want;
    unsigned blocks = 0;
    step_state state = {};
    char name[60];

    for (splits_entry &e : table) {
        const value_set as = partial_set(set, e.splits);
        floats partial = random_values(as, packed_of(e) * e.splits);

        want.insert(want.end(), GAP, 9);
        e.gradient = want.size();
        e.partial = upload(as, partial);
        e.first_block = blocks;
        blocks += cuda_sum_blocks(&e);
        want.insert(want.end(), master_of(e), number > 0 ? 9 : 0);
        for (size_t i = 0; i < partial.size(); i++)
            unpack(e, (unsigned)(i % packed_of(e)), (double)partial[i] * 0.25, &want[e.gradient]);
    }
    want.insert(want.end(), GAP, 9);
    state.unscale = 0.25f;
    sum_all_args a = {upload(table), upload(floats(want.size(), 9)), upload(std::vector<batch_block>{{1, 1, number}}),
                      upload(std::vector<step_state>{state}), (unsigned)table.size()};
    launch(set, CUDA_SUM_ALL, blocks, 1, a);
    floats got = download(a.gradient, want.size());
    compare("gradient", want, got, 2 * set.sums);
    for (const splits_entry &e : table)
        for (unsigned i = 0; i < GAP; i++)
            expect(got[e.gradient - GAP + i] == 9 && got[got.size() - 1 - i] == 9, "a float beside it was written");
    release();
    snprintf(name, sizeof(name), "%s: splits of all convolutions, micro-batch %u", set.name, number);
    finish_case(name);
}

/* The first two rows are so large that a float sum loses the other rows. */
static void
run_large_row(const value_set &set)
{
    enum { ROWS = 2048, CHANNELS = 8 };
    floats partial((size_t)ROWS * 2 * CHANNELS, 97.0f / 128);

    std::fill(partial.begin(), partial.begin() + 4 * CHANNELS, (float)(1 << 24));
    reduce_sums_args a = {{upload(partial), NULL, ROWS, CHANNELS}, {room(2 * CHANNELS), NULL, 1, CHANNELS}};
    launch(set, CUDA_REDUCE_SUMS, 1, 1, a);
    compare("sums", doubles(2 * CHANNELS, (2 << 24) + (ROWS - 2) * 97.0 / 128), download(a.to.partial, 2 * CHANNELS),
            6e-8);
    release();
    finish_case(set, "rows that a float sum would lose");
}

/* More rows than fit, and exactly as many; channels that end inside a group. */
static void
run_reduce(const value_set &set)
{
    static const unsigned from[] = {1, 3, 67, 259}, to[] = {1, 2, 5, 16}, channels[] = {8, 32, 40, 72};

    for (unsigned k = 0; k < 4; k++) {
        unsigned row = 2 * channels[k], each = cuda_blocks(from[k], to[k]);
        floats partial = random_floats((size_t)from[k] * row);
        doubles want((size_t)to[k] * row);

        for (size_t i = 0; i < partial.size(); i++)
            want[i / row / each * row + i % row] += (double)partial[i];
        reduce_sums_args a = {{upload(partial), NULL, from[k], channels[k]},
                              {room(want.size()), NULL, to[k], channels[k]}};
        launch(set, CUDA_REDUCE_SUMS, to[k], cuda_blocks(channels[k], NORM_CHANNELS), a);
        compare("sums", want, download(a.to.partial, want.size()), 1e-7);
    }
    release();
    finish_case(set, "fewer blocks of sums");
}

/* Less than a CTA, exactly one, and more; what follows is not written. */
static void
run_widen(const value_set &set)
{
    for (unsigned count : {8, WIDEN_THREADS * 8, WIDEN_THREADS * 8 + 24}) {
        floats values = random_values(set, count + 8);
        widen_args a = {NULL, upload(floats(count + 8, 9)), count};

        values[1] = -0.0f;
        values[3] = INFINITY;
        a.values = upload(set, values);
        launch(set, CUDA_WIDEN, cuda_blocks(count, WIDEN_THREADS * 8), 1, a);
        for (unsigned i = 0; i < 8; i++)
            values[count + i] = 9;
        expect(download(a.sum, count + 8) == values, "values as floats");
    }
    release();
    finish_case(set, "values as floats");
}

static void
run_cases(const value_set &set)
{
    run_all(set, 0);
    run_all(set, 3);
    run_reduce(set);
    run_large_row(set);
    run_widen(set);
}

int
main(int argc, char **argv)
{
    return run_program(argc, argv, run_cases);
}
