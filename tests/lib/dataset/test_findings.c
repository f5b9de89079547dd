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

static const struct findings_form nih14 = {&findings_nih14, &findings_nih14, '|'};

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
    size_t ignored = 0;

    memset(label, 2, sizeof(label));
    ck_assert_msg(findings_scan(&nih14, text, strlen(text), keep_unknown, unknown, label, &ignored) == FINDINGS_GOOD,
                  "%s", text);
    for (unsigned i = 0; i < 14; i++)
        ck_assert_uint_eq(label[i], wanted >> i & 1);
}

static void
expect_fault(const char *text, enum findings_fault fault, const char *wanted)
{
    char unknown[64] = "";
    uint8_t label[14];
    size_t ignored = 0;

    ck_assert_int_eq(findings_scan(&nih14, text, strlen(text), keep_unknown, unknown, label, &ignored), fault);
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
    ck_assert_int_eq(index_of("_M-a ss_"), 4);
}

TEST(unknown_findings_are_not_found)
{
    ck_assert_int_eq(index_of(""), -1);
    ck_assert_int_eq(index_of("No Finding"), -1);
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
END_TEST

static void
expect_list(const char *text, unsigned count, const char *first, const char *last)
{
    struct findings list;
    struct chex_error err;

    ck_assert_msg(findings_choose(text, &list, &err) == CHEX_OK, "%s", err.text);
    ck_assert_uint_eq(list.count, count);
    ck_assert_str_eq(list.name[0], first);
    ck_assert_str_eq(list.name[count - 1], last);
    for (unsigned i = 0; i < count; i++)
        ck_assert_int_eq(finding_index(&list, list.name[i], strlen(list.name[i])), (int)i);
    findings_release(&list);
}

TEST(a_list_is_built_in_or_a_file_or_names)
{
    expect_list("nih14", 14, "Atelectasis", "Hernia");
    expect_list("A", 1, "A", "A");
    expect_list("nih15", 15, "Atelectasis", "No Finding");
    expect_list("cxr-lt", 20, "Atelectasis", "No Finding");
    expect_list("cxr-lt-2024", 40, "Adenopathy", "Tuberculosis");
    expect_list("chexpert", 14, "No Finding", "Support Devices");
    expect_list("padchest-top", 25, "cardiomegaly", "granuloma");
    expect_list("Mass, Nodule", 2, "Mass", "Nodule");
    expect_list("Tuberculosis", 1, "Tuberculosis", "Tuberculosis");
    expect_list(unit_file("list.txt", "Mass\r\n\n Rib fracture \nx", 23), 3, "Mass", "x");
    expect_list(unit_file("mark.txt", "\xef\xbb\xbfMass\nx", 9), 2, "Mass", "x");
}

TEST(a_hostile_list_is_refused_and_named)
{
    static const char *const hostile[][2] = {
        {"Mass,,Nodule", "finding 2, \"\", is empty"},
        {"Mass,Nodule,", "finding 3, \"\", is empty"},
        {"Mass,MASS ", "\"Mass\" and \"MASS\" have the same name"},
        {"Lung Opacity,lung_-opacity", "have the same name"},
        {"No Finding,NoFinding", "have the same name"},
        {"Mass,M_ASS", "\"Mass\" and \"M_ASS\" have the same name"},
        {"Pleural Effusion,PleuralEffusion", "have the same name"},
        {"Mass,- _", "finding 2, \"- _\", has only _ and -"},
        {"Mass,Nodule|Edema", "other than printable ASCII"},
        {"Mass,\033[2J", "\"\\x1b[2J\", has a character other"},
        {"Mass,<b>", "has a character other"},
        {"Mass,0123456789012345678901234567890123456789012345678901234567890123x", "longer than 64"},
        {"Mass|Nodule", "other than printable ASCII"},
        {"nih14.txt", "is neither nih14"},
    };
    struct findings list;
    struct chex_error err;

    for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
        ck_assert_int_eq(findings_choose(hostile[i][0], &list, &err), CHEX_ERR_USAGE);
        ck_assert_msg(strstr(err.text, hostile[i][1]) != NULL, "%s: %s", hostile[i][0], err.text);
    }
}

TEST(a_list_has_at_most_254_names)
{
    char text[4 * 255 + 1];
    struct findings list;
    struct chex_error err;

    for (unsigned i = 0; i < 255; i++)
        snprintf(text + 4 * i, 5, "%03u\n", i);
    expect_list(unit_file("254.txt", text, 4 * 254), 254, "000", "253");
    ck_assert_int_eq(findings_choose(unit_file("255.txt", text, 4 * 255), &list, &err), CHEX_ERR_USAGE);
    ck_assert_msg(strstr(err.text, "255 findings: must be 1 to 254") != NULL, "%s", err.text);
    ck_assert_int_eq(findings_choose(unit_file("0.txt", "\n", 1), &list, &err), CHEX_ERR_USAGE);
}

TEST(a_list_ignores_other_findings_of_nih_and_knows_no_finding)
{
    const struct findings list = {(const char *const[]){"Hernia", "No Finding", NULL}, 2};
    const struct findings_form form = {&list, &findings_nih14, '|'};
    uint8_t label[2];
    size_t ignored = 0;
    char unknown[64] = "";

    ck_assert_int_eq(findings_scan(&form, "Mass|hernia", 11, keep_unknown, unknown, label, &ignored), FINDINGS_GOOD);
    ck_assert(label[0] == 1 && label[1] == 0 && ignored == 1);
    ck_assert_int_eq(findings_scan(&form, "Mass", 4, keep_unknown, unknown, label, &ignored), FINDINGS_GOOD);
    ck_assert(label[0] == 0 && label[1] == 0 && ignored == 2);
    ck_assert_int_eq(findings_scan(&form, "NoFinding", 9, keep_unknown, unknown, label, &ignored), FINDINGS_GOOD);
    ck_assert(label[0] == 0 && label[1] == 1 && ignored == 2);
    ck_assert_int_eq(findings_scan(&form, "No Finding|Mass", 15, keep_unknown, unknown, label, &ignored),
                     FINDINGS_CONTRADICTION);
    ck_assert_int_eq(findings_scan(&form, "Fracture", 8, keep_unknown, unknown, label, &ignored), FINDINGS_UNKNOWN);
    ck_assert_str_eq(unknown, "Fracture");
}
