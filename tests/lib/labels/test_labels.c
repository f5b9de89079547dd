/*
 * test_labels.c - the label file
 *
 * The forms are those of NIH's Data_Entry_2017.csv (12 header tokens over 11 fields, CR LF, ages "058Y") and
 * Data_Entry_2017_v2020.csv; check_tables.py compares the files themselves.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "label_fixture.h"
#include "labels/label_file.h"
#include "labels/label_row.h"
#include "labels_mask.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char header_2017[] = "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View "
                                  "Position,OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y],\r\n";

/* ---- helpers -------------------------------------------------------------------------------------------------- */

/* Returns the age of a text; *impossible counts. */
static float
age_of(const char *text, size_t *impossible)
{
    struct labels labels = {0};
    char csv[256];
    float age;

    snprintf(csv, sizeof(csv), LABELS_FULL "a.png,Mass,1,\"%s\",M,PA\n", text);
    labels_read_text(csv, NULL, &labels);
    age = labels.entry[0].age;
    *impossible = labels.impossible_ages;
    labels_release(&labels);
    return age;
}

/* ---- forms ---------------------------------------------------------------------------------------------------- */

TEST_CASE("labels", "forms", NULL, NULL);

TEST(the_release_of_2017_is_read)
{
    struct labels l = {0};
    char csv[1000];

    snprintf(csv, sizeof(csv), "%s%s", header_2017,
             "00000001_000.png,Cardiomegaly,000,00000001,058Y,M,PA,2682,2749,0.143,0.143\r\n"
             "00000002_000.png,No Finding,000,00000002,081Y,F,AP,2500,2048,0.171,0.171\r\n"
             "00000001_001.png,Cardiomegaly|Emphysema,001,00000001,058Y,M,PA,2894,2729,0.143,0.143");
    labels_read_text(csv, NULL, &l);
    ck_assert_uint_eq(l.count, 3);
    ck_assert_uint_eq(l.row_count, 3);
    ck_assert_uint_eq(l.patient_count, 2);
    ck_assert_str_eq(l.entry[0].name, "00000001_000.png");
    ck_assert_str_eq(l.entry[1].name, "00000001_001.png");
    ck_assert_str_eq(l.entry[2].name, "00000002_000.png");
    ck_assert_uint_eq(labels_mask(l.entry[1].label, 14), 1 << 1 | 1 << 10);
    ck_assert_uint_eq(l.entry[1].line, 4);
    ck_assert_str_eq(l.entry[1].patient, "00000001");
    ck_assert_float_eq(l.entry[1].age, 58);
    ck_assert_int_eq(l.entry[2].sex, 'F');
    ck_assert_str_eq(l.entry[2].view, "AP");
    ck_assert_uint_eq(labels_mask(l.entry[2].label, 14), 0);
    ck_assert_float_eq(l.age_min, 58);
    ck_assert_float_eq(l.age_max, 81);
    ck_assert_uint_eq(strlen(l.sha256), 64);
    labels_release(&l);
    labels_release(&l); /* twice is fine */
}

TEST(the_release_of_2020_is_read)
{
    struct labels l = {0};

    labels_read_text(
        "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View Position,OriginalImage["
        "Width,Height],OriginalImagePixelSpacing[x,y]\n"
        "00000001_000.png,Cardiomegaly,0,1,57,M,PA,2682,2749,0.14300000000000002,0.14300000000000002\n",
        NULL, &l);
    ck_assert_uint_eq(l.count, 1);
    ck_assert_str_eq(l.entry[0].patient, "00000001");
    ck_assert_str_eq(l.patient[0], "00000001");
    ck_assert_float_eq(l.entry[0].age, 57);
    labels_release(&l);
}

TEST(columns_may_stand_anywhere_and_some_may_be_missing)
{
    struct labels l = {0};

    labels_read_text("\xef\xbb\xbfother,patient_id,FINDING LABELS,image index\nx,17,Mass,b.png\ny,a7,Nodule,a.jpg\n",
                     NULL, &l);
    ck_assert_uint_eq(l.count, 2);
    ck_assert_str_eq(l.entry[0].name, "a.jpg");
    ck_assert_str_eq(l.entry[0].patient, "a7");
    ck_assert_uint_eq(l.entry[0].patient_no, 1); /* in the order of the file */
    ck_assert_str_eq(l.entry[1].patient, "00000017");
    ck_assert_uint_eq(l.entry[1].patient_no, 0);
    ck_assert(isnan(l.entry[0].age));
    ck_assert_int_eq(l.entry[0].sex, 'U');
    ck_assert_str_eq(l.entry[0].view, "U");
    ck_assert(isnan(l.age_min) && isnan(l.age_max));
    ck_assert_uint_eq(l.unknown_ages, 2);
    ck_assert_uint_eq(l.impossible_ages, 0);
    labels_release(&l);
}

TEST(patient_ids_of_digits_are_one_with_and_without_zeros)
{
    struct labels l = {0};

    labels_read_text(LABELS_HEADER "a,Mass,1\nb,Mass,00000001\nc,Mass,0001\nd,Mass,123456789\ne,Mass,p1\n", NULL, &l);
    ck_assert_uint_eq(l.patient_count, 3);
    ck_assert_str_eq(l.entry[2].patient, "00000001");
    ck_assert_str_eq(l.entry[3].patient, "123456789");
    ck_assert_str_eq(l.entry[4].patient, "p1");
    labels_release(&l);
}

TEST(many_patients_are_distinguished)
{
    enum { MANY = 5000 };
    struct labels l = {0};
    char *csv = malloc(64 + MANY * 24);
    size_t used;

    ck_assert_ptr_nonnull(csv);
    used = (size_t)sprintf(csv, "%s", LABELS_HEADER);
    for (int i = 0; i < 2 * MANY; i += 2)
        used += (size_t)sprintf(csv + used, "n%05d,Mass,%d\n", i, i / 4);
    labels_read_text(csv, NULL, &l);
    ck_assert_uint_eq(l.count, MANY);
    ck_assert_uint_eq(l.patient_count, MANY / 2);
    for (int i = 0; i < MANY; i++) {
        ck_assert_uint_eq(l.entry[i].patient_no, (unsigned)i / 2);
        ck_assert_int_eq(atoi(l.patient[i / 2]), i / 2);
        ck_assert_ptr_eq(labels_find(&l, l.entry[i].name), &l.entry[i]);
    }
    labels_release(&l);
    free(csv);
}

/* These ids collide in a table with the common hash FNV-1a; each would be compared with all ids before it. */
TEST(patients_cannot_be_chosen_to_take_long)
{
    enum { MANY = 250000, SLOTS = 1 << 19 };
    struct patients p = {0};
    struct arena strings = {0};
    unsigned long long next = 0;
    uint32_t number;

    while (p.count < MANY) {
        uint64_t hash = 0xcbf29ce484222325u;
        char id[32];

        sprintf(id, "x%llu", next++);
        for (const char *c = id; *c; c++)
            hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
        if (((hash ^ hash >> 32) & (SLOTS - 1)) < SLOTS / 16) {
            ck_assert_int_eq(patients_add(&p, id, &strings, &number, NULL), CHEX_OK);
            ck_assert_uint_eq(number, p.count - 1);
        }
    }
    ck_assert_int_eq(patients_add(&p, p.id[7], &strings, &number, NULL), CHEX_OK);
    ck_assert_uint_eq(number, 7);
    ck_assert_uint_eq(p.count, MANY);
    patients_release(&p);
    arena_release(&strings);
}

TEST(ages_have_units)
{
    static const struct {
        const char *text;
        float years;
    } good[] = {{"58", 58},     {"058Y", 58},          {"0", 0},        {"003M", 0.25f},
                {"120", 120},   {"02W", 14 / 365.25f}, {"58.5", 58.5f}, {"001D", 1 / 365.25f},
                {"1440M", 120}, {" 7 y ", 7},          {"-0", 0},       {"0.125", 0.125f}};
    static const char *const unknown[] = {"", "Y", "nan", "inf", "0x10", "5X", "5YY", "five", ".5", "1e1", "1,5"};
    static const char *const impossible[] = {"414Y",  "121",   "-3",
                                             "120.5", "1500M", "99999999999999999999999999999999999999999999"};
    size_t bad;

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        ck_assert_float_eq_tol(age_of(good[i].text, &bad), good[i].years, 1e-7f);
        ck_assert_uint_eq(bad, 0);
    }
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
        ck_assert_msg(isnan(age_of(unknown[i], &bad)), "%s", unknown[i]);
        ck_assert_uint_eq(bad, 0);
    }
    for (size_t i = 0; i < sizeof(impossible) / sizeof(impossible[0]); i++) {
        ck_assert_msg(isnan(age_of(impossible[i], &bad)), "%s", impossible[i]);
        ck_assert_uint_eq(bad, 1);
    }
}

TEST(sex_and_view_are_normalised)
{
    struct labels l = {0};

    labels_read_text(LABELS_FULL
                     "a,Mass,1,,M,PA\nb,Mass,1,,female,ap\nc,Mass,1,,?,\nd,Mass,1,,,LATERAL\ne,Mass,1,,Male,AP supine\n"
                     "f,Mass,1,,m,12345678\n",
                     NULL, &l);
    ck_assert_int_eq(l.entry[0].sex, 'M');
    ck_assert_int_eq(l.entry[1].sex, 'F');
    ck_assert_int_eq(l.entry[2].sex, 'U');
    ck_assert_int_eq(l.entry[3].sex, 'U');
    ck_assert_int_eq(l.entry[4].sex, 'M');
    ck_assert_str_eq(l.entry[0].view, "PA");
    ck_assert_str_eq(l.entry[1].view, "AP");
    ck_assert_str_eq(l.entry[2].view, "U");
    ck_assert_str_eq(l.entry[3].view, "LATERAL");
    ck_assert_str_eq(l.entry[4].view, "U");
    ck_assert_str_eq(l.entry[5].view, "U");
    labels_release(&l);
}

TEST(an_image_is_found_by_its_name)
{
    struct labels l = {0}, none = {0};

    labels_read_text(LABELS_HEADER "c,Mass,1\na,Mass,1\nb,Mass,1\n", NULL, &l);
    ck_assert_ptr_eq(labels_find(&l, "a"), &l.entry[0]);
    ck_assert_ptr_eq(labels_find(&l, "c"), &l.entry[2]);
    ck_assert_ptr_null(labels_find(&l, "bb"));
    ck_assert_ptr_null(labels_find(&l, ""));
    ck_assert_ptr_null(labels_find(&none, "a"));
    labels_release(&l);
}

/* ---- rows that are rejected or dropped ------------------------------------------------------------------------- */

TEST_CASE("labels", "rejects", NULL, NULL);

TEST(unsafe_names_are_rejected_and_the_rest_is_read)
{
    static const char *const reason[] = {"unsafe file name", "unsafe file name", "unsafe file name", "unsafe file name",
                                         "unsafe file name", "unsafe file name", "unsafe file name", "empty file name"};
    static const char *const shown[] = {"../../etc/passwd", "/a.png", "c:\\x5ca.png", ".", "..", "a\\x1b[2J.png",
                                        "a\\xc2\\x9b.png",  ""};
    struct labels l = {0};

    labels_read_text(LABELS_HEADER
                     "../../etc/passwd,Mass,1\n/a.png,Mass,1\nc:\\a.png,Mass,1\n.,Mass,1\n..,Mass,1\n"
                     "a\x1b[2J.png,Mass,1\na\xc2\x9b.png,Mass,1\n,Mass,1\n\xc2\xa9.png,Mass,1\n...,Mass,1\n",
                     NULL, &l);
    ck_assert_uint_eq(l.row_count, 10);
    ck_assert_uint_eq(l.count, 2);
    ck_assert_uint_eq(l.reject_count, 8);
    for (size_t i = 0; i < 8; i++) {
        ck_assert_uint_eq(l.reject[i].line, i + 2);
        ck_assert_int_eq(l.reject[i].status, CHEX_ERR_DAMAGED);
        ck_assert_str_eq(l.reject[i].name, shown[i]);
        ck_assert_str_eq(l.reject[i].reason, reason[i]);
    }
    ck_assert_str_eq(l.entry[0].name, "...");
    labels_release(&l);
}

/* As in a record, where another field follows. */
TEST(a_name_ends_with_its_length)
{
    ck_assert_ptr_nonnull(label_name_fault(".\n", 1, false));
    ck_assert_ptr_nonnull(label_name_fault("..\n", 2, false));
    ck_assert_ptr_null(label_name_fault("a/", 1, false));
    ck_assert_ptr_null(label_name_fault("...", 3, false));
}

TEST(a_name_may_have_255_bytes_and_no_more)
{
    struct labels l = {0};
    char csv[1000];

    snprintf(csv, sizeof(csv), LABELS_HEADER "%0255d,Mass,1\n%0256d,Mass,1\n", 1, 2);
    labels_read_text(csv, NULL, &l);
    ck_assert_uint_eq(l.count, 1);
    ck_assert_uint_eq(strlen(l.entry[0].name), 255);
    ck_assert_uint_eq(l.reject_count, 1);
    ck_assert_str_eq(l.reject[0].reason, "file name longer than 255 bytes");
    labels_release(&l);
}

TEST(an_empty_label_is_rejected_unless_it_means_no_finding)
{
    struct labels_options options = {.empty_is_no_finding = true};
    struct labels l = {0};

    labels_read_text(LABELS_HEADER "a,,1\nb,Mass,1\n", NULL, &l);
    ck_assert_uint_eq(l.count, 1);
    ck_assert_uint_eq(l.reject_count, 1);
    ck_assert_uint_eq(l.reject[0].line, 2);
    ck_assert_int_eq(l.reject[0].status, CHEX_ERR_EMPTY);
    ck_assert_str_eq(l.reject[0].name, "a");
    ck_assert_str_eq(l.reject[0].reason, "empty label");
    labels_release(&l);

    labels_read_text(LABELS_HEADER "a,,1\nb,Mass,1\n", &options, &l);
    ck_assert_uint_eq(l.count, 2);
    ck_assert_uint_eq(l.reject_count, 0);
    ck_assert_uint_eq(labels_mask(l.entry[0].label, 14), 0);
    labels_release(&l);
}

TEST(identical_rows_are_dropped_and_counted)
{
    struct labels l = {0};

    labels_read_text(LABELS_FULL "b,Mass|Nodule,1,411Y,M,PA\na,Mass,1,30,M,PA\nb,Nodule|Mass,00000001,411Y,m,pa\n"
                                 "b,Mass|Nodule,1,411Y,M,PA\n",
                     NULL, &l);
    ck_assert_uint_eq(l.count, 2);
    ck_assert_uint_eq(l.row_count, 4);
    ck_assert_uint_eq(l.duplicate_rows, 2);
    ck_assert_uint_eq(l.entry[1].line, 2);
    ck_assert_uint_eq(l.impossible_ages, 1);
    ck_assert_uint_eq(l.unknown_ages, 1);
    labels_release(&l);
}

TEST(the_same_image_with_other_values_is_an_error_with_both_lines)
{
    labels_expect_error(LABELS_HEADER "a,Mass,1\nb,Mass,1\na,Nodule,1\n",
                        ":4: a has other values than in line 2 (1 such row)");
    labels_expect_error(LABELS_HEADER "a,Mass,1\na,Mass,2\n", ":3: a has other values than in line 2 (1 such row)");
    labels_expect_error(LABELS_FULL "a,Mass,1,5,M,PA\na,Mass,1,6,M,PA\n",
                        ":3: a has other values than in line 2 (1 such row)");
    labels_expect_error(LABELS_FULL "a,Mass,1,5,M,PA\na,Mass,1,,M,PA\n",
                        ":3: a has other values than in line 2 (1 such row)");
    labels_expect_error(LABELS_FULL "b,Mass,1,5,M,PA\na,Mass,1,5,M,PA\nb,Mass,1,5,F,PA\na,Mass,1,5,M,AP\n",
                        ":4: b has other values than in line 2 (2 such rows)");
}
