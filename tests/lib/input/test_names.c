/*
 * test_names.c - lists of image names (name_list.h), names without a row (unlabeled.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "input/unlabeled.h"
#include "labels/name_list.h"

#include <stdio.h>
#include <string.h>

/* Requires these names in the list, joined by blanks. */
static void
expect_names(const char *text, const char *wanted, size_t repeated)
{
    struct names n = {0};
    struct chex_error err = {0};
    char joined[1000] = "";
    size_t used = 0;

    ck_assert_msg(names_read(unit_file("list.txt", text, strlen(text)), 1, &n, &err) == CHEX_OK, "%s", err.text);
    for (size_t i = 0; i < n.count; i++) {
        used += (size_t)snprintf(joined + used, sizeof(joined) - used, "%s%s", i > 0 ? " " : "", n.name[i]);
        ck_assert(names_have(&n, n.name[i]));
    }
    ck_assert_str_eq(joined, wanted);
    ck_assert_uint_eq(n.repeated, repeated);
    ck_assert(!names_have(&n, "not there"));
    names_release(&n);
    names_release(&n); /* twice is fine */
}

static void
expect_error(const char *text, size_t size, const char *wanted)
{
    struct names n = {0};
    struct chex_error err = {0};
    const char *path = unit_file("wrong.txt", text, size);
    char full[2048];

    ck_assert_int_eq(names_read(path, 1, &n, &err), CHEX_ERR_USAGE);
    snprintf(full, sizeof(full), "%s%s", path, wanted);
    ck_assert_str_eq(err.text, full);
    names_release(&n);
}

#define EXPECT_ERROR(text, wanted) expect_error(text, sizeof(text) - 1, wanted)

TEST_CASE("names", "names", NULL, NULL);

TEST(names_are_sorted_and_unique)
{
    expect_names("b.png\na.png\nc.png", "a.png b.png c.png", 0);
    expect_names("b.png\r\na.png\r\nb.png\r\nb.png\r\n", "a.png b.png", 2);
    expect_names("\n\n  a.png  \n\t\n", "a.png", 0);
    expect_names("", "", 0);
}

/* NIH's lists have no newline at their end; CheXNet's have labels after the name. */
TEST(only_the_first_word_of_a_line_counts)
{
    expect_names("00028178_000.png 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n00025128_008.png\t0 0 0 0 1 1",
                 "00025128_008.png 00028178_000.png", 0);
}

TEST(folders_before_a_name_are_dropped)
{
    expect_names("images/00000001_000.png\n/data/images_001/images/00000002_000.png\n00000003_000.png",
                 "00000001_000.png 00000002_000.png 00000003_000.png", 0);
}

TEST(a_csv_counts_by_its_column)
{
    expect_names("Image Index,Finding Label,Bbox [x,y,w,h],,,\nb.png,Mass,1,2,3,4\na.png,Mass,1,2,3,4\n"
                 "b.png,Nodule,1,2,3,4\n",
                 "a.png b.png", 1);
    expect_names("\xef\xbb\xbfPatient ID,\"image_index\"\n1,\"b.png\"\n2,images/a.png\n", "a.png b.png", 0);
    expect_names("\nImage Index\nb.png\na.png\n", "a.png b.png", 0);
    expect_names("Image Index\nb.png\nimages/ a.png\n", "a.png b.png", 0);
    expect_names("other,columns\nb.png,x\n", "b.png,x other,columns", 0);
}

TEST(faults_are_reported_with_their_line)
{
    char text[400];

    EXPECT_ERROR("a.png\nb\0.png\n", ":2: a NUL byte, so this is not text");
    EXPECT_ERROR("a.png\nimages/\n", ":2: no file name");
    EXPECT_ERROR("x,Image Index\n1,a.png\n2\n", ":3: expected at least 2 fields, got 1");
    EXPECT_ERROR("x,Image Index\n1,a.png\n2,\n", ":3: no file name");
    EXPECT_ERROR("x,Image Index\n1,a.png\n2,\"images/ \"\n", ":3: no file name");
    EXPECT_ERROR("x,\"Image Index\"\n1,\"a.png\n", ":2: a quote that is not closed");
    snprintf(text, sizeof(text), "%0256d", 0);
    expect_error(text, 256,
                 ":1: the file name \"000000000000000000000000000000000000000000000000000000000000...\" is "
                 "longer than 255 bytes");
    expect_names(text + 1, text + 1, 0);
}

TEST(a_missing_list_is_missing)
{
    struct names n = {0};
    struct chex_error err;
    char path[1100];

    snprintf(path, sizeof(path), "%s/none.txt", unit_folder());
    ck_assert_int_eq(names_read(path, 1, &n, &err), CHEX_ERR_MISSING);
    ck_assert(!names_have(&n, "a.png"));
    names_release(&n);
}

TEST(unlabeled_images_are_sorted_and_listed_once)
{
    static const char *const names[] = {"b", "a", "c", "a", "B", "c"};
    struct unlabeled s = {0};
    struct chex_error err;

    for (size_t i = 0; i < 6; i++)
        ck_assert_int_eq(unlabeled_add(&s, names[i], &err), CHEX_OK);
    unlabeled_sort(&s);
    ck_assert_uint_eq(s.count, 4);
    ck_assert_str_eq(s.name[0], "B");
    ck_assert_str_eq(s.name[3], "c");
    ck_assert(!s.capped);
    unlabeled_release(&s);
}

TEST(of_too_many_unlabeled_images_the_first_by_name_are_kept)
{
    struct unlabeled s = {0};
    struct chex_error err;
    char name[16];
    size_t i, all = UNLABELED_MAX + 100000;

    /* Not in sorted order: 7919 is prime to the count. */
    for (i = 0; i < all; i++) {
        snprintf(name, sizeof(name), "%08zu", i * 7919 % all);
        ck_assert_int_eq(unlabeled_add(&s, name, &err), CHEX_OK);
    }
    unlabeled_sort(&s);
    ck_assert_uint_eq(s.count, UNLABELED_MAX);
    ck_assert_str_eq(s.name[UNLABELED_MAX - 1], "00999999");
    ck_assert(s.capped);
    unlabeled_release(&s);
}
