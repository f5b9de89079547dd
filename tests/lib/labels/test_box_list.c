/*
 * test_box_list.c - lists of boxes (box_list.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "labels/box_list.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

#define HEADER "Image Index,Finding Label,Bbox [x,y,w,h],,,\n"

/* Reads a list of boxes of NIH's findings, which must succeed. */
static void
read_boxes(const char *csv, unsigned parts, struct box_list *out)
{
    struct chex_error err = {0};

    *out = (struct box_list){.count = 0};
    ck_assert_msg(box_list_read(unit_file("boxes.csv", csv, strlen(csv)), &findings_nih14, parts, out, &err) == CHEX_OK,
                  "%s", err.text);
}

/* Requires an error whose text is the path and `wanted`. */
static void
expect_error(const char *csv, const char *wanted)
{
    struct box_list list = {.count = 0};
    struct chex_error err = {0};
    const char *path = unit_file("wrong.csv", csv, strlen(csv));
    char text[CHEX_ERROR_TEXT + 1100];

    ck_assert_int_eq(box_list_read(path, &findings_nih14, 1, &list, &err), CHEX_ERR_USAGE);
    snprintf(text, sizeof(text), "%s%s", path, wanted);
    ck_assert_str_eq(err.text, text);
    box_list_release(&list);
}

TEST_CASE("labels", "boxes", NULL, NULL);

/* The first rows of each kind in NIH's file. */
TEST(a_list_in_nihs_form_is_sorted_by_image_and_finding)
{
    struct box_list list;
    const struct listed_box *box;
    size_t count;

    read_boxes(HEADER "00013118_008.png,Atelectasis,225.084745762712,547.019216763771,86.7796610169491,"
                      "79.1864406779661\n"
                      "00005066_030.png,Infiltrate,0,10.5,1024,3\n00005066_030.png,Effusion,7,8,9,10\n",
               1, &list);
    ck_assert_uint_eq(list.count, 3);
    ck_assert_uint_eq(list.ignored, 0);
    ck_assert_str_eq(list.box[0].image, "00005066_030.png");
    ck_assert_uint_eq(list.box[0].finding, 2);
    ck_assert_uint_eq(list.box[1].finding, 3);
    ck_assert_double_eq(list.box[1].y, 10.5);
    ck_assert_double_eq(list.box[1].width, 1024);
    ck_assert_uint_eq(list.box[1].line, 3);
    ck_assert_double_eq(list.box[2].x, 225.084745762712);
    ck_assert_double_eq(list.box[2].height, 79.1864406779661);
    box = box_list_find(&list, "00005066_030.png", &count);
    ck_assert_ptr_eq(box, &list.box[0]);
    ck_assert_uint_eq(count, 2);
    box_list_find(&list, "00005066_031.png", &count);
    ck_assert_uint_eq(count, 0);
    box_list_release(&list);
}

TEST(other_columns_a_quoted_header_and_folders_are_read)
{
    struct box_list list;

    read_boxes("\xef\xbb\xbf"
               "n,finding_label,Image Index,\"Bbox [x,y,w,h]\"\r\n1,mass, a/b/c.png ,1,2,3,4,,,\r\n",
               2, &list);
    ck_assert_uint_eq(list.count, 1);
    ck_assert_str_eq(list.box[0].image, "b/c.png");
    ck_assert_uint_eq(list.box[0].finding, 4);
    box_list_release(&list);
}

TEST(findings_that_the_data_set_lacks_are_counted)
{
    static const char *const names[] = {"Mass", NULL};
    static const struct findings mass = {.name = names, .count = 1};
    struct box_list list = {.count = 0};
    struct chex_error err = {0};
    const char *csv = HEADER "a.png,Effusion,1,2,3,4\na.png,Mass,1,2,3,4\nb.png,Infiltrate,1,2,3,4\n";

    ck_assert_int_eq(box_list_read(unit_file("boxes.csv", csv, strlen(csv)), &mass, 1, &list, &err), CHEX_OK);
    ck_assert_uint_eq(list.count, 1);
    ck_assert_uint_eq(list.ignored, 2);
    box_list_release(&list);
}

TEST(a_file_that_is_no_list_of_boxes_is_refused)
{
    expect_error("", ": no box");
    expect_error(HEADER, ": no box");
    expect_error("Image Index,Finding Labels,Patient ID\na.png,Mass,1\n",
                 ":1: no column \"Finding Label\": this is no list of boxes (BBox_List_2017.csv)");
    expect_error("Image Index,Finding Label,x,y,w,h\na.png,Mass,1,2,3,4\n",
                 ":1: no column \"Bbox [x,y,w,h]\": this is no list of boxes (BBox_List_2017.csv)");
    expect_error("Image Index;Finding Label;Bbox [x,y,w,h]\n",
                 ":1: the columns are separated by \";\": save the file with commas");
    expect_error("Image Index,Image Index,Finding Label,Bbox [x,y,w,h]\n",
                 ":1: column \"Image Index\" occurs twice: fields 1 and 2");
    expect_error("Image Index,Bbox [x,y,w,h],,,Finding Label\n",
                 ":1: the column \"Bbox [x,y,w,h]\" must be the last one");
}

TEST(rows_of_another_length_are_refused)
{
    expect_error(HEADER "a.png,Mass,1,2,3\n", ":2: expected 6 fields, got 5");
    expect_error(HEADER "a.png,Mass,1,2,3,4,5\n", ":2: expected 6 fields, got 7");
    expect_error(HEADER "a.png\n", ":2: expected 6 fields, got 1");
}

TEST(numbers_of_another_form_are_refused)
{
    static const char *const wrong[] = {"",
                                        "-1",
                                        "+1",
                                        "nan",
                                        "inf",
                                        "0x1",
                                        "1e3",
                                        "1 2",
                                        ".5",
                                        "1.2.3",
                                        "65537",
                                        "1\x1b",
                                        "99999999999999999999999999999999999"};
    char csv[200], text[200], shown[64];

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        snprintf(csv, sizeof(csv), HEADER "a.png,Mass,%s,2,3,4\n", wrong[i]);
        snprintf(shown, sizeof(shown), "%s", strcmp(wrong[i], "1\x1b") == 0 ? "1\\x1b" : wrong[i]);
        snprintf(text, sizeof(text), ":2: \"%s\" is no x of a box: expected pixels, 0 to 65536", shown);
        expect_error(csv, text);
    }
    expect_error(HEADER "a.png,Mass,1,2,0,4\n", ":2: \"0\" is no w of a box: expected pixels, above 0, up to 65536");
    expect_error(HEADER "a.png,Mass,1,2,3,0.000\n",
                 ":2: \"0.000\" is no h of a box: expected pixels, above 0, up to 65536");
}

TEST(names_and_findings_that_are_unusable_are_refused)
{
    expect_error(HEADER "a.png,Masss,1,2,3,4\n", ":2: unknown finding \"Masss\"; did you mean \"Mass\"?");
    expect_error(HEADER "a.png,,1,2,3,4\n", ":2: unknown finding \"\"");
    expect_error(HEADER ",Mass,1,2,3,4\n", ":2: empty file name: \"\"");
    expect_error(HEADER "a\\b.png,Mass,1,2,3,4\n", ":2: unsafe file name: \"a\\x5cb.png\"");
}

TEST(a_second_box_of_a_finding_names_both_lines)
{
    expect_error(HEADER "a.png,Infiltrate,1,2,3,4\nb.png,Mass,1,2,3,4\na.png,Infiltration,1,2,3,4\n",
                 ":4: a second box of Infiltration in a.png; the first is in line 2");
}
