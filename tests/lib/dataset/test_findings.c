/*
 * test_findings.c - names and sets of findings
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "dataset/findings.h"

#include <stdio.h>
#include <string.h>

static int
index_of(const char *name)
{
    return finding_index(&findings_nih14, name, strlen(name));
}

static bool
is_none(const char *name)
{
    return finding_is_none(name, strlen(name));
}

static void
keep_unknown(const char *name, size_t length, void *context)
{
    snprintf(context, 64, "%.*s", (int)length, name);
}

static void
expect_mask(const char *text, unsigned wanted)
{
    char unknown[64] = "";
    uint8_t label[14];

    memset(label, 2, sizeof(label));
    ck_assert_msg(findings_scan(&findings_nih14, text, strlen(text), keep_unknown, unknown, label) == FINDINGS_GOOD,
                  "%s", text);
    for (unsigned i = 0; i < 14; i++)
        ck_assert_uint_eq(label[i], wanted >> i & 1);
}

static void
expect_fault(const char *text, enum findings_fault fault, const char *wanted)
{
    char unknown[64] = "";
    uint8_t label[14];

    ck_assert_int_eq(findings_scan(&findings_nih14, text, strlen(text), keep_unknown, unknown, label), fault);
    ck_assert_str_eq(unknown, wanted);
}

TEST_CASE("findings", "findings", NULL, NULL);

/* Order: Rajpurkar et al., CheXNet (2017), table 2. */
TEST(the_order_of_findings_follows_chexnet)
{
    static const char *const order[] = {"Atelectasis", "Cardiomegaly", "Effusion",           "Infiltration",  "Mass",
                                        "Nodule",      "Pneumonia",    "Pneumothorax",       "Consolidation", "Edema",
                                        "Emphysema",   "Fibrosis",     "Pleural_Thickening", "Hernia"};

    ck_assert_uint_eq(findings_nih14.count, 14);
    for (unsigned i = 0; i < 14; i++) {
        ck_assert_str_eq(findings_nih14.name[i], order[i]);
        ck_assert_int_eq(index_of(order[i]), (int)i);
    }
    ck_assert_ptr_null(findings_nih14.name[14]);
}

TEST(names_are_known_in_their_spellings)
{
    ck_assert_int_eq(index_of("effusion"), 2);
    ck_assert_int_eq(index_of(" EFFUSION\t"), 2);
    ck_assert_int_eq(index_of("Infiltrate"), 3);
    ck_assert_int_eq(index_of("Pleural Thickening"), 12);
    ck_assert_int_eq(index_of("pleural-thickening"), 12);
    ck_assert_int_eq(index_of("Pleural  thickening"), 12);
    ck_assert_int_eq(index_of("PleuralThickening"), 12);
}

TEST(unknown_findings_are_not_found)
{
    ck_assert_int_eq(index_of(""), -1);
    ck_assert_int_eq(index_of("No Finding"), -1);
    ck_assert_int_eq(index_of("Atel ectasis"), -1);
    ck_assert_int_eq(index_of("Mass|Nodule"), -1);
    ck_assert_int_eq(index_of("Effusion, of a name that is far longer than any there is"), -1);
}

TEST(no_finding_is_known_in_its_spellings)
{
    ck_assert(is_none("No Finding"));
    ck_assert(is_none("no_finding"));
    ck_assert(is_none("NO-FINDING"));
    ck_assert(is_none("NoFinding"));
    ck_assert(!is_none(""));
    ck_assert(!is_none("No"));
    ck_assert(!is_none("Mass"));
}

TEST(a_text_of_findings_sets_their_labels)
{
    expect_mask("No Finding", 0);
    expect_mask("no finding|No Finding", 0);
    expect_mask("Atelectasis", 1);
    expect_mask("Hernia|Atelectasis", 1 | 1 << 13);
    expect_mask(" Mass | nodule ", 1 << 4 | 1 << 5);
    expect_mask("Mass|Mass", 1 << 4);
}

TEST(every_fault_of_a_set_is_named)
{
    expect_fault("", FINDINGS_EMPTY, "");
    expect_fault("  \t", FINDINGS_EMPTY, "");
    expect_fault("Mass|", FINDINGS_EMPTY_PART, "");
    expect_fault("|Mass", FINDINGS_EMPTY_PART, "");
    expect_fault("Mass| |Nodule", FINDINGS_EMPTY_PART, "");
    expect_fault("No Finding|Mass", FINDINGS_CONTRADICTION, "");
    expect_fault("Mass|Pnuemonia", FINDINGS_UNKNOWN, "Pnuemonia");
    expect_fault("Lung Opacity", FINDINGS_UNKNOWN, "Lung Opacity");
    expect_fault("Ma\x1b[31mss", FINDINGS_UNKNOWN, "Ma\x1b[31mss");
}

TEST(a_misspelt_name_gets_the_nearest_within_three_edits)
{
    ck_assert_str_eq(finding_suggest(&findings_nih14, "Oedema", 6), "Edema");
    ck_assert_str_eq(finding_suggest(&findings_nih14, "No Findings", 11), "No Finding");
    ck_assert_str_eq(finding_suggest(&findings_nih14, "atelectases", 11), "Atelectasis");
    ck_assert_str_eq(finding_suggest(&findings_nih14, "Pleural_Thickning", 17), "Pleural_Thickening");
    ck_assert_ptr_null(finding_suggest(&findings_nih14, "Fracture", 8));
    ck_assert_ptr_null(finding_suggest(&findings_nih14, "", 0));
}
