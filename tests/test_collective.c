/*
 * test_collective.c - what ranks do together (collective.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "collective.h"

#include <string.h>

START_TEST(a_process_that_is_alone_has_all_calls)
{
    struct comm alone = comm_self();
    struct collective *c;
    struct chex_error err;
    struct buffer all = {0};
    float sum[2] = {1, 2};
    uint64_t flags = 6;
    size_t size;

    ck_assert_int_eq(collective_new(&alone, NULL, &c, &err), CHEX_OK);
    ck_assert_int_eq(collective_rank(c), 0);
    ck_assert_int_eq(collective_size(c), 1);
    ck_assert_uint_gt(strlen(collective_host(c, 0)), 0);
    ck_assert_int_eq(collective_sum_start(c, sum, 2, &err), CHEX_OK);
    ck_assert_int_eq(collective_sum_poll(c, &err), CHEX_OK);
    ck_assert_int_eq(collective_sum_wait(c, &err), CHEX_OK);
    ck_assert(sum[0] == 1 && sum[1] == 2);
    ck_assert_int_eq(collective_broadcast(c, sum, sizeof(sum), &err), CHEX_OK);
    ck_assert_int_eq(collective_gather(c, "abc", 3, &all, &size, &err), CHEX_OK);
    ck_assert_int_eq(collective_gather(c, "de", 2, &all, &size, &err), CHEX_OK);
    ck_assert_uint_eq(size, 2);
    ck_assert_uint_eq(all.size, 2);
    ck_assert_mem_eq(all.data, "de", 2);
    ck_assert_int_eq(collective_agree(c, CHEX_OK, &flags, &err), CHEX_OK);
    ck_assert_uint_eq(flags, 6);
    ck_assert_int_eq(collective_agree(c, chex_fail(&err, CHEX_ERR_WRITE, "disk full"), &flags, &err), CHEX_ERR_WRITE);
    ck_assert_str_eq(err.text, "disk full");
    ck_assert_int_eq(collective_compare(c, CHEX_OK, "seed 1\n", &err), CHEX_OK);
    ck_assert(!collective_broken(c) && collective_speaks(c));
    buffer_release(&all);
    collective_free(c);
}
END_TEST

Suite *
collective_suite(void)
{
    Suite *suite = suite_create("collective");
    TCase *tests = tcase_create("collective");

    tcase_add_test(tests, a_process_that_is_alone_has_all_calls);
    suite_add_tcase(suite, tests);
    return suite;
}
