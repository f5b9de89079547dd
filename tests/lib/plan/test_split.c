/*
 * test_split.c - the splits by patient, by the official lists and by a file (split.h)
 *
 * Values of the rule by patient: Python 3.11, hashlib.sha256(b"chex-split:0:00000001"), the first 8 digest bytes as a
 * big-endian u, floor(100 u / 2^64); check_tables.py computes them for whole files.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "plan/split.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- helpers -------------------------------------------------------------------------------------------------- */

/* Returns labels of these images, "NAME:PATIENT NAME:PATIENT ..."; valid until the test ends. */
static const struct labels *
labels_of(const char *text)
{
    static struct labels labels;
    struct labels_options options = {0};
    struct chex_error err = {0};
    char csv[8192] = "Image Index,Patient ID,Finding Labels\n";
    size_t used = strlen(csv);

    for (const char *p = text; *p; p++) {
        if (*p == ' ')
            used += (size_t)sprintf(csv + used, ",Mass\n");
        else
            csv[used++] = *p == ':' ? ',' : *p;
    }
    used += (size_t)sprintf(csv + used, ",Mass\n");
    labels_release(&labels);
    ck_assert_msg(labels_read(unit_file("labels.csv", csv, used), &options, &labels, &err) == CHEX_OK, "%s", err.text);
    return &labels;
}

static struct split_rule
rule_of(const char *text)
{
    struct split_rule rule;
    struct chex_error err = {0};

    ck_assert_msg(split_rule_parse(text, &rule, &err) == CHEX_OK, "%s", err.text);
    return rule;
}

/* Requires "train 2/1 test 1/1: 0 0 1 -": images/patients and the split of each entry. */
static void
expect_set(const struct split_rule *rule, const struct labels *labels, const bool *skip, const char *wanted)
{
    struct split_set set = {0};
    struct chex_error err = {0};
    char text[4096];
    size_t used = 0;

    ck_assert_msg(split_assign(rule, labels, skip, &set, &err) == CHEX_OK, "%s", err.text);
    ck_assert_uint_eq(set.outside, 0);
    for (unsigned i = 0; i < set.count; i++)
        used += (size_t)sprintf(text + used, "%s %zu/%zu%s", set.name[i], set.images[i], set.patients[i],
                                i + 1 < set.count ? " " : ":");
    for (size_t i = 0; i < labels->count; i++) {
        if (set.of_entry[i] == SPLIT_OUTSIDE)
            used += (size_t)sprintf(text + used, " -");
        else
            used += (size_t)sprintf(text + used, " %d", set.of_entry[i]);
    }
    ck_assert_str_eq(text, wanted);
    split_set_release(&set);
    split_set_release(&set); /* twice is fine */
}

static void
expect_error(const struct split_rule *rule, const struct labels *labels, const bool *skip, enum chex_status status,
             const char *wanted)
{
    struct split_set set = {0};
    struct chex_error err = {0};

    ck_assert_int_eq(split_assign(rule, labels, skip, &set, &err), status);
    ck_assert_int_eq(err.status, status);
    ck_assert_str_eq(err.text, wanted);
    split_set_release(&set);
}

static void
write_lists(const char *train, const char *test)
{
    unit_file(SPLIT_LIST_TRAIN, train, strlen(train));
    unit_file(SPLIT_LIST_TEST, test, strlen(test));
}

static struct split_rule
official(void)
{
    struct split_rule rule = rule_of("official");

    snprintf(rule.path, sizeof(rule.path), "%s", unit_folder());
    return rule;
}

/* Returns the rule file:PATH for a file of this text. */
static struct split_rule
file_of(const char *csv)
{
    struct split_rule rule = {.kind = SPLIT_FILE};

    snprintf(rule.path, sizeof(rule.path), "%s", unit_file("splits.csv", csv, strlen(csv)));
    return rule;
}

/* Requires an error whose text starts with the rule's path. */
static void
expect_file_error(const char *csv, const struct labels *labels, const char *wanted)
{
    struct split_rule rule = file_of(csv);
    char text[8192];

    snprintf(text, sizeof(text), "%s%s", rule.path, wanted);
    expect_error(&rule, labels, NULL, CHEX_ERR_USAGE, text);
}

/* ---- by patient ----------------------------------------------------------------------------------------------- */

TEST_CASE("split", "patient", NULL, NULL);

/* With seed 0, floor(100 u) of patients 1, 20, 2, 20, 15, 30805 is 54, 71, 81, 71, 92, 5 (see above). */
TEST(membership_follows_the_hash_of_the_patient)
{
    const struct labels *l = labels_of("a:1 b:20 c:2 d:20 e:15 f:30805");
    struct split_rule rule = rule_of("patient:70,10,20");

    expect_set(&rule, l, NULL, "train 2/2 val 2/1 test 2/2: 0 1 2 1 2 0");
    rule = rule_of("patient:54,17,29");
    expect_set(&rule, l, NULL, "train 1/1 val 1/1 test 4/3: 1 2 2 2 2 0");
    rule = rule_of("patient:55,17,28");
    expect_set(&rule, l, NULL, "train 2/2 val 2/1 test 2/2: 0 1 2 1 2 0");
}

/* With seed 7 patients 1, 13, 30805 and "abc" have 56, 79, 9, 12. */
TEST(another_seed_gives_another_split)
{
    const struct labels *l = labels_of("a:1 b:13 c:30805 d:abc");
    struct split_rule rule = rule_of("patient:9,3,88:7");

    expect_set(&rule, l, NULL, "val 1/1 test 3/3: 1 1 0 1");
    rule = rule_of("patient:10,3,87:7");
    expect_set(&rule, l, NULL, "train 1/1 val 1/1 test 2/2: 2 2 0 1");
}

TEST(a_split_of_no_images_is_not_there)
{
    const struct labels *l = labels_of("a:1 b:20 c:2");
    struct split_rule rule = rule_of("patient:0,0,100");

    expect_set(&rule, l, NULL, "test 3/3: 0 0 0");
    rule = rule_of("patient:100,0,0");
    expect_set(&rule, l, NULL, "train 3/3: 0 0 0");
}

TEST(none_is_one_split)
{
    const struct labels *l = labels_of("a:1 b:20 c:1");
    struct split_rule rule = rule_of("none");
    bool skip[3] = {false, true, false};

    expect_set(&rule, l, NULL, "all 3/2: 0 0 0");
    expect_set(&rule, l, skip, "all 2/1: 0 - 0");
}

TEST(skipped_entries_take_no_part)
{
    const struct labels *l = labels_of("a:1 b:20 c:2 d:20 e:15 f:30805");
    struct split_rule rule = rule_of("patient:70,10,20");
    bool skip[6] = {true, false, false, true, false, true};

    expect_set(&rule, l, skip, "val 1/1 test 2/2: - 0 1 - 1 -");
}

TEST(no_image_at_all_is_an_error)
{
    const struct labels *l = labels_of("a:1");
    struct labels none = {0};
    struct split_rule rule = rule_of("none");
    bool skip[1] = {true};

    expect_error(&rule, l, skip, CHEX_ERR_USAGE, "there is no image to put into a split");
    expect_error(&rule, &none, NULL, CHEX_ERR_USAGE, "there is no image to put into a split");
}

/* ---- the official lists --------------------------------------------------------------------------------------- */

TEST_CASE("split", "official", NULL, NULL);

/* A tenth is val: patient 21 has 2, patient 30805 has 5, patient 11 has 12 (see above). */
TEST(the_official_lists_are_followed)
{
    const struct labels *l = labels_of("a:21 b:11 c:30805 d:5 e:5 f:11");
    struct split_rule rule = official();
    bool skip[6] = {false, false, true, false, false, false};

    write_lists("f\nb\na\nc\nnot here", "d\r\ne\r\nnor this");
    ck_assert(split_has_lists(unit_folder()));
    expect_set(&rule, l, NULL, "train 2/1 val 2/2 test 2/1: 1 0 1 2 2 0");
    expect_set(&rule, l, skip, "train 2/1 val 1/1 test 2/1: 1 0 - 2 2 0");
}

TEST(the_official_lists_may_be_compressed)
{
    const struct labels *l = labels_of("a:11 d:5");
    struct split_rule rule = official();
    char plain[1100];

    /* Only by name: line_reader.c checks the bytes. */
    unit_file(SPLIT_LIST_TRAIN ".gz", "a\n", 2);
    unit_file(SPLIT_LIST_TEST ".gz", "d\n", 2);
    snprintf(plain, sizeof(plain), "%s/%s", unit_folder(), SPLIT_LIST_TRAIN);
    unlink(plain);
    snprintf(plain, sizeof(plain), "%s/%s", unit_folder(), SPLIT_LIST_TEST);
    unlink(plain);
    ck_assert(split_has_lists(unit_folder()));
    expect_set(&rule, l, NULL, "train 1/1 test 1/1: 0 1");
    /* The plain file is preferred. */
    write_lists("d\n", "a\n");
    expect_set(&rule, l, NULL, "train 1/1 test 1/1: 1 0");
    snprintf(plain, sizeof(plain), "%s/%s", unit_folder(), SPLIT_LIST_TRAIN ".gz");
    unlink(plain);
    snprintf(plain, sizeof(plain), "%s/%s", unit_folder(), SPLIT_LIST_TEST ".gz");
    unlink(plain);
}

TEST(a_missing_list_is_missing)
{
    const struct labels *l = labels_of("a:1");
    struct split_rule rule = official();
    char text[4500];

    snprintf(rule.path, sizeof(rule.path), "%s/none", unit_folder());
    snprintf(text, sizeof(text), "'%s/%s': cannot open: No such file or directory", rule.path, SPLIT_LIST_TRAIN);
    expect_error(&rule, l, NULL, CHEX_ERR_MISSING, text);
    ck_assert(!split_has_lists(rule.path));
    rule.path[0] = '\0'; /* the current folder */
    expect_error(&rule, l, NULL, CHEX_ERR_MISSING, "'" SPLIT_LIST_TRAIN "': cannot open: No such file or directory");
}

TEST(a_patient_in_both_lists_is_an_error)
{
    static const char lists[] = SPLIT_LIST_TRAIN " and " SPLIT_LIST_TEST ": ";
    const struct labels *l = labels_of("a:13 b:13 c:5");
    struct split_rule rule = official();
    bool skip[3] = {false, true, false};
    char wanted[300];

    write_lists("a\n", "b\nc\n");
    snprintf(wanted, sizeof(wanted), "%spatient 00000013 is in train and test", lists);
    expect_error(&rule, l, NULL, CHEX_ERR_USAGE, wanted);
    expect_set(&rule, l, skip, "train 1/1 test 1/1: 0 - 1");

    write_lists("a\nb\n", "b\nc\n"); /* one image in both */
    expect_error(&rule, l, NULL, CHEX_ERR_USAGE, wanted);
}

TEST(an_allowed_leak_is_counted_and_an_image_in_two_splits_stays_an_error)
{
    const struct labels *l = labels_of("a:13 b:13 c:5 d:5 e:21 f:13");
    struct split_rule rule = official();
    bool skip[6] = {false, true, false, false, false, false};
    struct split_set set = {0};
    struct chex_error err = {0};

    rule.allow_leak = true;
    write_lists("a\nd\n", "b\nc\ne\nf\n"); /* patients 13 and 5 are in train and test */
    expect_set(&rule, l, NULL, "train 2/2 test 4/3: 0 1 1 0 1 1");
    ck_assert_int_eq(split_assign(&rule, l, skip, &set, &err), CHEX_OK);
    ck_assert_uint_eq(set.leaky_patients, 2);
    ck_assert_uint_eq(set.leaky_images, 4); /* a c d f: b is skipped, e is alone */
    split_set_release(&set);
    write_lists("a\nd\n", "a\nb\nc\nd\ne\nf\n");
    expect_error(&rule, l, NULL, CHEX_ERR_USAGE,
                 SPLIT_LIST_TRAIN " and " SPLIT_LIST_TEST ": image a is in train and test");
}

TEST(of_many_shared_patients_ten_are_named)
{
    char text[1024] = "", train[256] = "", test[256] = "", wanted[2048];
    struct split_rule rule = official();
    size_t used;

    for (int p = 1; p <= 12; p++) {
        sprintf(text + strlen(text), "%sa%d:%d b%d:%d", p > 1 ? " " : "", p, p, p, p);
        sprintf(train + strlen(train), "a%d\n", p);
        sprintf(test + strlen(test), "b%d\n", p);
    }
    write_lists(train, test);
    used = (size_t)sprintf(wanted, SPLIT_LIST_TRAIN " and " SPLIT_LIST_TEST ": 12 patients are in two splits: ");
    for (int p = 1; p <= 10; p++)
        used += (size_t)sprintf(wanted + used, "patient %08d is in train and test, ", p);
    sprintf(wanted + used, "...");
    expect_error(&rule, labels_of(text), NULL, CHEX_ERR_USAGE, wanted);
}

TEST(an_entry_in_no_list_is_an_error)
{
    const struct labels *l = labels_of("a:1 b:2 c:3");
    struct split_rule rule = official();
    bool skip[3] = {false, true, true};

    write_lists("a\n", "");
    expect_error(&rule, l, NULL, CHEX_ERR_USAGE,
                 "2 images are in neither train_val_list.txt nor test_list.txt, the first is b");
    skip[2] = false;
    expect_error(&rule, l, skip, CHEX_ERR_USAGE,
                 "1 image is in neither train_val_list.txt nor test_list.txt, the first is c");
    skip[2] = true;
    expect_set(&rule, l, skip, "train 1/1: 0 - -");
}

/* ---- a file --------------------------------------------------------------------------------------------------- */

TEST_CASE("split", "file", NULL, NULL);

TEST(a_file_may_go_by_image_or_by_patient)
{
    const struct labels *l = labels_of("a:1 b:2 c:3 d:1");
    struct split_rule rule = file_of("Image Index,split\na,train\nb,val\nc,test\nimages/d,train\nother,x\n");

    expect_set(&rule, l, NULL, "train 2/1 val 1/1 test 1/1: 0 1 2 0");
    rule = file_of("filename;x,Set,NAME\n1,Training,a\n1,VALID,b\n1,testing,c\n1,train,d\n");
    expect_set(&rule, l, NULL, "train 2/1 val 1/1 test 1/1: 0 1 2 0");
    rule = file_of("Patient ID,fold\n1,train\n00000002,dev\n3,validation\n3,val\n4,test\n");
    expect_set(&rule, l, NULL, "train 2/1 val 2/2: 0 1 1 0");
    rule = file_of("patient,subset\n1,train\n2,val\n3,test\n");
    expect_set(&rule, l, NULL, "train 2/1 val 1/1 test 1/1: 0 1 2 0");
    /* If both are given, the image decides. */
    rule = file_of("patient,image,split\n9,a,train\n9,b,val\n9,c,test\n9,d,train\n");
    expect_set(&rule, l, NULL, "train 2/1 val 1/1 test 1/1: 0 1 2 0");
}

TEST(other_names_come_after_train_val_test_by_name)
{
    const struct labels *l = labels_of("a:1 b:2 c:3 d:4 e:5");
    struct split_rule rule = file_of("name,fold\na,site_b\nb,TEST\nc,10\nd,Val\ne,site_a\nf,unused\n");

    expect_set(&rule, l, NULL, "val 1/1 test 1/1 10 1/1 site_a 1/1 site_b 1/1: 4 1 2 0 3");
}

TEST(a_split_file_need_not_list_skipped_images)
{
    const struct labels *l = labels_of("a:1 b:2 c:1");
    bool skip[3] = {false, true, true};
    struct split_rule rule = file_of("image,split\na,train\nc,test\n");

    expect_set(&rule, l, skip, "train 1/1: 0 - -");
}

TEST(faults_of_a_split_file_are_errors)
{
    const struct labels *l = labels_of("a:1 b:2");
    char csv[1024];
    size_t used;

    expect_file_error("image,part\na,train\n", l, ":1: no column \"split\" (or set, fold, subset)");
    expect_file_error("image,split,Image\na,train,b\n", l, ":1: column \"Image\" occurs twice: fields 1 and 3");
    expect_file_error("picture,split\na,train\n", l,
                      ":1: no column \"Image Index\" (or image, name, filename) or \"Patient ID\" (or patient)");
    expect_file_error("image,split\na\n", l, ":2: expected 2 fields, got 1");
    expect_file_error("image,split\na,train\nb,hold-out\n", l,
                      ":3: \"hold-out\" is not a valid name of a split: letters, digits and '_', at most 23");
    expect_file_error("image,split\na,\n", l,
                      ":2: \"\" is not a valid name of a split: letters, digits and '_', at most 23");
    expect_file_error(
        "image,split\na,aaaaaaaaaaaaaaaaaaaaaaaa\n", l,
        ":2: \"aaaaaaaaaaaaaaaaaaaaaaaa\" is not a valid name of a split: letters, digits and '_', at most 23");
    expect_file_error("image,split\na,train\nb,val\na,test\n", l, ":4: a is in test, and in train in line 2");
    expect_file_error("patient,split\n1,train\n2,val\n0001,test\n", l,
                      ":4: patient 00000001 is in test, and in train in line 2");
    expect_file_error("patient,split\n,train\n", l, ":2: the patient id is empty");
    expect_file_error("image,split\nimages/,train\n", l, ":2: no file name");
    expect_file_error("image,split\n", l, ":1: no rows");
    expect_file_error("", l, ":1: no rows");
    used = (size_t)sprintf(csv, "image,split\n");
    for (int i = 0; i <= SPLIT_MAX; i++)
        used += (size_t)sprintf(csv + used, "i%d,s%d\n", i, i);
    expect_file_error(csv, l, ":18: more than 16 splits");
}

TEST(sixteen_splits_are_allowed)
{
    struct split_rule rule;
    char csv[1024], text[512] = "";
    size_t used = (size_t)sprintf(csv, "image,split\n");

    for (int i = 0; i < SPLIT_MAX; i++) {
        used += (size_t)sprintf(csv + used, "i%02d,s%02d\n", i, i);
        sprintf(text + strlen(text), "%si%02d:%d", i > 0 ? " " : "", i, i);
    }
    rule = file_of(csv);
    expect_set(&rule, labels_of(text), NULL,
               "s00 1/1 s01 1/1 s02 1/1 s03 1/1 s04 1/1 s05 1/1 s06 1/1 s07 1/1 s08 1/1 s09 1/1 s10 1/1 s11 1/1 s12 "
               "1/1 s13 1/1 s14 1/1 s15 1/1: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15");
}

TEST(a_file_that_splits_a_patient_is_an_error)
{
    const struct labels *l = labels_of("a:13 b:13 c:2");
    struct split_rule rule = file_of("image,split\na,train\nb,test\nc,test\n");
    char wanted[4500];

    snprintf(wanted, sizeof(wanted), "'%s': patient 00000013 is in train and test", rule.path);
    expect_error(&rule, l, NULL, CHEX_ERR_USAGE, wanted);
}

TEST(an_entry_that_a_file_does_not_know_is_an_error)
{
    const struct labels *l = labels_of("a:1 b:2 c:3");
    struct split_rule rule = file_of("image,split\nb,test\n");
    char wanted[4500];

    snprintf(wanted, sizeof(wanted), "2 images are in no split of '%s', the first is a", rule.path);
    expect_error(&rule, l, NULL, CHEX_ERR_USAGE, wanted);
}

TEST(a_missing_split_file_is_missing)
{
    struct split_rule rule = {.kind = SPLIT_FILE};
    char wanted[4500];

    snprintf(rule.path, sizeof(rule.path), "%s/none.csv", unit_folder());
    snprintf(wanted, sizeof(wanted), "'%s': cannot open: No such file or directory", rule.path);
    expect_error(&rule, labels_of("a:1"), NULL, CHEX_ERR_MISSING, wanted);
}
