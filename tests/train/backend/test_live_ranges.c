/*
 * test_live_ranges.c - the planner of live ranges (live_ranges.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "backend/live_ranges.h"
#include "unit.h"

enum { RANGES = 200, STEPS = 100 };

TEST_CASE("backends", "live ranges", NULL, NULL);

TEST(buffers_that_are_never_live_at_the_same_time_share_memory)
{
    struct live_range r[] = {{.size = 10, .begin = 0, .end = 1},
                             {.size = 30, .begin = 1, .end = 2},
                             {.size = 20, .begin = 2, .end = 3},
                             {.size = 30, .begin = 3, .end = 3}};
    size_t total;

    ck_assert(live_ranges_place(r, 4, &total));
    ck_assert_uint_eq(total, 50); /* step 2 or 3 */
    ck_assert_uint_eq(r[1].offset, 0);
    ck_assert_uint_eq(r[3].offset, 0);
    ck_assert_uint_eq(r[2].offset, 30);
    ck_assert_uint_eq(r[0].offset, 30); /* the lowest gap above r[1], shared with r[2] */
    ck_assert(live_ranges_place(NULL, 0, &total));
    ck_assert_uint_eq(total, 0);
}

TEST(buffers_that_are_live_at_the_same_time_never_overlap)
{
    struct live_range r[RANGES];
    size_t live[STEPS] = {0}, total, most = 0, all = 0;
    unsigned seed = 1;

    for (size_t i = 0; i < RANGES; i++) {
        seed = seed * 1103515245 + 12345;
        r[i].begin = seed >> 16 & 63;
        r[i].end = r[i].begin + (seed >> 24 & 15);
        r[i].size = 1 + (seed >> 8 & 1023);
        all += r[i].size;
        for (size_t k = r[i].begin; k <= r[i].end; k++)
            live[k] += r[i].size;
    }
    ck_assert(live_ranges_place(r, RANGES, &total));
    for (size_t i = 0; i < RANGES; i++) {
        ck_assert_uint_le(r[i].offset + r[i].size, total);
        for (size_t k = 0; k < i; k++)
            ck_assert(r[i].begin > r[k].end || r[k].begin > r[i].end || r[i].offset >= r[k].offset + r[k].size ||
                      r[k].offset >= r[i].offset + r[i].size);
    }
    for (size_t k = 0; k < STEPS; k++)
        most = live[k] > most ? live[k] : most;
    ck_assert_msg(total >= most && total < 2 * most && total < all, "%zu, live at once %zu, all %zu", total, most, all);
}

TEST(memory_that_cannot_be_counted_is_reported)
{
    struct live_range r[] = {{.size = SIZE_MAX / 2 + 2}, {.size = SIZE_MAX / 2 + 1}};
    size_t total;

    ck_assert(live_ranges_place(r, 2, &total));
    ck_assert_uint_eq(total, SIZE_MAX);
}
