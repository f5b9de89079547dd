/*
 * test_label_errors.c - label files that are refused, with the line (label_file.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "label_fixture.h"
#include "labels/label_file.h"
#include "labels/label_row.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

TEST_CASE("labels", "errors", NULL, NULL);

TEST(a_missing_column_is_named_with_those_found)
{
    labels_expect_error(
        "Image Indx,Finding Labels,Patient ID\na,Mass,1\n",
        ":1: no column \"Image Index\"; is \"Image Indx\" the column \"Image Index\"? (columns found: Image "
        "Indx, Finding Labels, Patient ID)");
    labels_expect_error("Image Index,Labels\na,Mass\n",
                        ":1: no column \"Finding Labels\" (columns found: Image Index, Labels)");
    labels_expect_error("Image Index,Finding Labels\na,Mass\n",
                        ":1: no column \"Patient ID\" (columns found: Image Index, Finding Labels)");
    labels_expect_error("Finding Labels,Image Index,Patient ID,finding_labels\n",
                        ":1: column \"finding_labels\" occurs twice: fields 1 and 4");
    labels_expect_error("Image Index,Finding Labels,Patient ID,Sex,Image Index\n",
                        ":1: column \"Image Index\" occurs twice: fields 1 and 5");
    labels_expect_error("a\x1b,Mass\n", ":1: no column \"Image Index\" (columns found: a\\x1b, Mass)");
}

TEST(another_separator_than_the_comma_is_named)
{
    labels_expect_error("Image Index;Finding Labels;Patient ID;OriginalImage[Width,Height]\na;Mass;1;2,3\n",
                        ":1: the columns are separated by \";\": save the file with commas");
    labels_expect_error("Image Index\tFinding Labels\tPatient ID\na\tMass\t1\n",
                        ":1: the columns are separated by tabs: save the file with commas");
}

TEST(a_list_of_boxes_is_recognised)
{
    labels_expect_error(
        "Image Index,Finding Label,Bbox [x,y,w,h],,,\n00013118_008.png,Atelectasis,225.08,547.02,86.78,79.19\n",
        ":1: this is a list of boxes (BBox_List_2017.csv), not the label file (Data_Entry_2017_v2020.csv)");
}

TEST(rows_of_another_length_are_errors)
{
    labels_expect_error(LABELS_HEADER "a,Mass,1\nb,Mass\n", ":3: expected 3 fields, got 2");
    labels_expect_error(LABELS_HEADER "a,Mass,1\nb,Mass,1,\n", ":3: expected 3 fields, got 4");
    labels_expect_error(LABELS_HEADER "a,Mass\nb,Mass,1\n", ":2: expected 3 fields, got 2");
    labels_expect_error("Image Index,Finding Labels,Patient ID,\na,Mass,1,\nb,Mass,1\n",
                        ":3: expected 4 fields, got 3");
    labels_expect_error("Image Index,Finding Labels,Patient ID,,\na,Mass,1,,,\n", ":2: expected 3 fields, got 6");
}

TEST(an_unknown_finding_is_counted_over_the_file)
{
    labels_expect_error(LABELS_HEADER
                        "a,Mass,1\nb,Pnuemonia,1\nc,Mass|Pnuemonia,1\nd,No Finding,1\ne,Pnuemonia|Nodule,1\n",
                        ":3: unknown label \"Pnuemonia\" (3 rows, first line 3); did you mean Pneumonia?");
    labels_expect_error(LABELS_HEADER "a,Lung Opacity,1\n", ":2: unknown label \"Lung Opacity\" (1 row, first line 2)");
    labels_expect_error(LABELS_HEADER "a,Fracture,1\nb,Other,1\nc,Other|Fracture,1\n",
                        ":2: unknown label \"Fracture\" (2 rows, first line 2) (1 more with other unknown labels)");
    labels_expect_error(LABELS_HEADER "a,\"x\ny\",1\nb,Mass,1\n",
                        ":2: unknown label \"x\\x0ay\" (1 row, first line 2)");
}

TEST(a_contradiction_and_an_empty_part_are_errors)
{
    labels_expect_error(LABELS_HEADER "a,Mass,1\nb,No Finding|Mass,1\n",
                        ":3: \"No Finding|Mass\" is No Finding and a finding");
    labels_expect_error(LABELS_HEADER "a,Mass|,1\n", ":2: a part of the label \"Mass|\" is empty");
}

TEST(a_bad_patient_id_is_an_error)
{
    char csv[256], id[65];

    labels_expect_error(LABELS_HEADER "a,Mass,1\nb,Mass,\n", ":3: the patient id is empty");
    memset(id, 'p', 64);
    id[64] = '\0';
    snprintf(csv, sizeof(csv), LABELS_HEADER "a,Mass,%s\n", id);
    labels_expect_error(csv, ":2: the patient id is longer than 63 bytes");
    labels_expect_error(LABELS_HEADER "a,Mass,p\x1b[m\n", ":2: the patient id contains a control character");
    labels_expect_error(LABELS_HEADER "00000002_000.png,Mass,3\n",
                        ":2: patient id 00000003 does not fit the image 00000002_000.png");
    labels_expect_error(LABELS_HEADER "00000002_000.png,Mass,000000021\n",
                        ":2: patient id 000000021 does not fit the image 00000002_000.png");
    labels_expect_error(LABELS_HEADER "00000002_000.png,Mass,abc\n",
                        ":2: patient id abc does not fit the image 00000002_000.png");
}

TEST(names_of_other_forms_take_any_patient)
{
    struct labels l = {0};

    labels_read_text(LABELS_HEADER
                     "0000002_000.png,Mass,3\n00000002_0000.png,Mass,3\n00000002_000,Mass,3\n00000002-000.png,Mass,3\n",
                     NULL, &l);
    ck_assert_uint_eq(l.count, 4);
    labels_release(&l);
}

TEST(a_file_without_rows_is_an_error)
{
    labels_expect_error("", ":1: no rows");
    labels_expect_error(LABELS_HEADER, ":1: no rows below the header");
    labels_expect_error(LABELS_HEADER "\n\n", ":1: no rows below the header");
}

TEST(faults_of_the_text_are_passed_on)
{
    labels_expect_error(LABELS_HEADER "a,Mass,1\nb,\"Mass,1\n", ":3: a quote that is not closed");
    labels_expect_error(LABELS_HEADER "a,Mass,\xff\n", ":2: the text is not UTF-8");
}

TEST(a_missing_file_is_missing)
{
    struct labels_options options = {0};
    struct labels l = {0};
    struct chex_error err;
    char path[1100];

    snprintf(path, sizeof(path), "%s/none.csv", unit_folder());
    ck_assert_int_eq(labels_read(path, &options, &l, &err), CHEX_ERR_MISSING);
    labels_release(&l);
}
