/*
 * test_ahead.c - what a convolution fetches ahead: which memory, and that it reaches the end of it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "cpu/cpu_plan.h"

#include <stdlib.h>
#include <string.h>

#define WIDTH  10
#define HEIGHT 8

TEST_CASE("backends", "ahead", NULL, NULL);

static void
check_run(const struct ahead *a, unsigned run, const float *from, const float *end)
{
    ck_assert_ptr_eq(a->run[run].at, from);
    ck_assert_ptr_eq(a->run[run].end, end);
}

TEST(a_box_is_the_part_inside_the_image)
{
    static const float block[HEIGHT * WIDTH * BLOCK];
    struct box all = {HEIGHT, WIDTH, -1, -1, HEIGHT + 2, WIDTH + 2}, low = {HEIGHT, WIDTH, 6, -1, 5, WIDTH + 2};
    struct box part = {1, HEIGHT * WIDTH, 0, 70, 1, 14}, outside = {HEIGHT, WIDTH, HEIGHT, 0, 2, WIDTH};
    struct ahead a = {.runs = 0};

    ahead_add(&a, block, &all);
    check_run(&a, 0, block, block + (size_t)HEIGHT * WIDTH * BLOCK);
    a.runs = 0;
    ahead_add(&a, block, &low);
    check_run(&a, 0, block + (size_t)6 * WIDTH * BLOCK, block + (size_t)HEIGHT * WIDTH * BLOCK);
    a.runs = 0;
    ahead_add(&a, block, &part);
    check_run(&a, 0, block + (size_t)70 * BLOCK, block + (size_t)HEIGHT * WIDTH * BLOCK);
    ahead_add(&a, block, &outside);
    ck_assert_uint_eq(a.runs, 1);
}

TEST(blocks_that_are_adjacent_are_one_run_and_too_many_are_left_out)
{
    static const float block[2 * AHEAD_RUNS * BLOCK];
    struct box box = {1, 1, 0, 0, 1, 1};
    struct ahead a = {.runs = 0};
    size_t i;

    for (i = 0; i < AHEAD_RUNS; i++)
        ahead_add(&a, block + i * BLOCK, &box);
    ck_assert_uint_eq(a.runs, 1);
    check_run(&a, 0, block, block + (size_t)AHEAD_RUNS * BLOCK);
    a.runs = 0;
    for (i = 0; i < AHEAD_RUNS; i++)
        ahead_add(&a, block + 2 * i * BLOCK, &box);
    ck_assert_uint_eq(a.runs, AHEAD_RUNS);
    ahead_add(&a, block, &box);
    ck_assert_uint_eq(a.runs, AHEAD_RUNS);
}

TEST(with_fewer_steps_than_runs_nothing_is_fetched)
{
    static const float block[3][HEIGHT * WIDTH * BLOCK];
    struct plan plan = {.kernels = &kernels_plain};
    struct box box = {HEIGHT, WIDTH, 1, 0, 5, WIDTH};
    struct ahead a = {.runs = 0};
    unsigned i;

    for (i = 0; i < 3; i++)
        ahead_add(&a, block[i], &box);
    ahead_spread(&a, &plan, 1, kernels_plain.tile, 4);
    ck_assert_uint_eq(a.runs, 3);
    ck_assert(a.lines >= (size_t)3 * 5 * WIDTH); /* a line is 16 floats; the fourth step is for the ends of runs */
    ahead_spread(&a, &plan, 1, kernels_plain.tile, 3);
    ck_assert_uint_eq(a.runs, 0);
}

/* Compute `pixels` outputs with one block of inputs and outputs, fetching the images ahead. */
static void
check_fetched(const struct kernels *kernels, const struct products *as, unsigned kernel, unsigned pixels)
{
    static _Alignas(64) char x[65536], w[65536], y[65536];
    static const float block[3][HEIGHT * WIDTH * BLOCK];
    struct plan plan = {.kernels = kernels};
    struct box box = {HEIGHT, WIDTH, 1, 0, 5, WIDTH};
    struct ahead a = {.runs = 0};
    struct conv_row row = {.x = x,
                           .x_row = (size_t)(pixels + kernel) * BLOCK,
                           .step = BLOCK,
                           .kernel_rows = kernel,
                           .kernel_columns = kernel,
                           .blocks = 1,
                           .last = BLOCK,
                           .w = w,
                           .y = (float *)(void *)y,
                           .y_step = BLOCK,
                           .outs = 1,
                           .pixels = pixels,
                           .ahead = &a};
    unsigned i;

    for (i = 0; i < 3; i++)
        ahead_add(&a, block[i], &box);
    ahead_spread(&a, &plan, 1, pixels, (size_t)kernel * kernel);
    as->conv(&row);
    ck_assert_uint_eq(a.now, a.runs);
}

TEST(a_convolution_fetches_everything)
{
    const struct products *half;
    const struct kernels *fused = kernels_bf16(&half);
    unsigned pixels;

    for (pixels = 1; pixels < 50; pixels += 6) {
        check_fetched(&kernels_plain, &kernels_plain.products, 3, pixels);
        check_fetched(kernels_best(), &kernels_best()->products, 3, pixels);
        check_fetched(fused, half, 3, pixels);
    }
}
