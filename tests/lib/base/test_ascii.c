/*
 * test_ascii.c - escaped text, and the distance of two words (ascii.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "base/ascii.h"
#include "io/csv.h"
#include "unit.h"

TEST_CASE("table", "characters", NULL, NULL);

TEST(escaped_text_is_printable_and_fits)
{
    char out[16];

    ck_assert_str_eq(ascii_escape("a b", 3, out, sizeof(out)), "a b");
    ck_assert_str_eq(ascii_escape("\n\\\xff\x7f", 3, out, sizeof(out)), "\\x0a\\x5c\\xff");
    ck_assert_str_eq(ascii_escape("123456789012345", 15, out, sizeof(out)), "123456789012345");
    ck_assert_str_eq(ascii_escape("1234567890123456", 16, out, sizeof(out)), "123456789012...");
    ck_assert_str_eq(ascii_escape("12345678\n\n", 10, out, sizeof(out)), "12345678\\x0a...");
    ck_assert_str_eq(ascii_escape("", 0, out, sizeof(out)), "");
}

/* kitten and sitting: the textbook example, 3. */
TEST(distance_counts_edits_without_case)
{
    ck_assert_uint_eq(ascii_distance("kitten", 6, "SITTING", 7), 3);
    ck_assert_uint_eq(ascii_distance("", 0, "abc", 3), 3);
    ck_assert_uint_eq(ascii_distance("abc", 3, "", 0), 3);
    ck_assert_uint_eq(ascii_distance("Pnuemonia", 9, "Pneumonia", 9), 2);
    ck_assert_uint_eq(
        ascii_distance("a", 1, "0123456789012345678901234567890123456789012345678901234567890123456789", 70),
        ASCII_FAR);
}
