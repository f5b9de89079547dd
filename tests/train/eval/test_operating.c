/*
 * test_operating.c - parses and refuses operating points as text; check_operating.py compares the numbers with
 * scikit-learn and SciPy
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "eval/operating.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const names[] = {"A", "B", NULL};

static const char good[] =
    "{\"format\":1,\"split\":\"val\",\"members_sha256\":\"0123\",\"precision\":\"bf16\",\"tta\":\"flip\",\"images\":60,"
    "\"patients\":50,\"findings\":[{\"name\":\"A\",\"positives\":20,\"negatives\":40,\"refused\":null,"
    "\"platt\":{\"a\":1.5,\"b\":-2},\"youden\":{\"threshold\":0.25,\"true_positives\":15,\"false_positives\":10},"
    "\"sensitivity_90\":{\"threshold\":0.125,\"true_positives\":18,\"false_positives\":20}},"
    "{\"name\":\"B\",\"positives\":3,\"negatives\":57,\"refused\":\"fewer than 10 positives\",\"platt\":null,"
    "\"youden\":null,\"sensitivity_90\":null}]}";

static struct operating parsed;

/* Parse the text after one part of it is replaced. */
static enum chex_status
parse_with(const char *part, const char *other, struct chex_error *err)
{
    char text[2 * sizeof(good)];
    const char *at = strstr(good, part);

    ck_assert_msg(at != NULL, "'%s'", part);
    snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - good), good, other, at + strlen(part));
    return operating_parse(text, names, 2, &parsed, err);
}

TEST_CASE("operating", "text", NULL, NULL);

TEST(a_text_has_all_numbers)
{
    struct chex_error err;

    ck_assert_int_eq(operating_parse(good, names, 2, &parsed, &err), CHEX_OK);
    ck_assert(parsed.there);
    ck_assert_str_eq(parsed.split, "val");
    ck_assert_int_eq(parsed.precision, PRECISION_BF16);
    ck_assert_int_eq(parsed.tta, TTA_FLIP);
    ck_assert_double_eq(parsed.finding[0].a, 1.5);
    ck_assert_double_eq(parsed.finding[0].b, -2);
    ck_assert_double_eq(parsed.finding[0].point[OPERATING_YOUDEN].threshold, 0.25);
    ck_assert_double_eq(parsed.finding[0].point[OPERATING_YOUDEN].value, 0.5); /* 15 / 20 - 10 / 40 */
    ck_assert_double_eq(parsed.finding[0].point[OPERATING_SENSITIVITY].value, 0.9);
    ck_assert_int_eq(parsed.finding[1].refusal, OPERATING_FEW_POSITIVES);
    ck_assert(isnan(parsed.finding[1].a) && isnan(parsed.finding[1].point[OPERATING_YOUDEN].threshold));
}

TEST(a_model_without_them_is_no_error)
{
    struct chex_error err;

    ck_assert_int_eq(operating_parse(NULL, names, 2, &parsed, &err), CHEX_OK);
    ck_assert(!parsed.there);
}

static const struct bad {
    const char *part, *other;
    enum chex_status status;
    const char *words;
} bad[] = {
    {"\"format\":1", "\"format\":2", CHEX_ERR_INCOMPATIBLE, "format"},
    {"\"format\":1,", "", CHEX_ERR_INCOMPATIBLE, "format"},
    {"\"name\":\"A\"", "\"name\":\"C\"", CHEX_ERR_INCOMPATIBLE, "'A'"},
    {"\"name\":\"B\"", "\"name\":7", CHEX_ERR_INCOMPATIBLE, "'B'"},
    {"bf16", "fp8", CHEX_ERR_DAMAGED, "'precision' is \"fp8\""},
    {"bf16", "auto", CHEX_ERR_DAMAGED, "'precision' is \"auto\""},
    {"flip", "spin", CHEX_ERR_DAMAGED, "'tta'"},
    {"\"images\":60", "\"images\":-1", CHEX_ERR_DAMAGED, "'images'"},
    {"\"images\":60", "\"images\":1e300", CHEX_ERR_DAMAGED, "'images'"},
    {"\"patients\":50", "\"patients\":61", CHEX_ERR_DAMAGED, "'patients'"},
    {"\"positives\":20", "\"positives\":61", CHEX_ERR_DAMAGED, "'positives'"},
    {"\"negatives\":40", "\"negatives\":41", CHEX_ERR_DAMAGED, "'negatives'"},
    {"\"positives\":20", "\"positives\":9", CHEX_ERR_DAMAGED, "'refused'"},
    {"\"refused\":null", "\"refused\":\"because\"", CHEX_ERR_DAMAGED, "'refused'"},
    {"\"refused\":\"fewer than 10 positives\"", "\"refused\":null", CHEX_ERR_DAMAGED, "'refused'"},
    {"{\"a\":1.5,\"b\":-2}", "null", CHEX_ERR_DAMAGED, "'platt'"},
    {"\"a\":1.5", "\"a\":\"1.5\"", CHEX_ERR_DAMAGED, "'a'"},
    {"\"a\":1.5", "\"a\":1e31", CHEX_ERR_DAMAGED, "'a'"},
    {"\"threshold\":0.25", "\"threshold\":1.25", CHEX_ERR_DAMAGED, "'threshold'"},
    {"\"true_positives\":15", "\"true_positives\":21", CHEX_ERR_DAMAGED, "'true_positives'"},
    {"\"false_positives\":10", "\"false_positives\":0.5", CHEX_ERR_DAMAGED, "'false_positives'"},
    {"\"split\":\"val\"", "\"split\":[]", CHEX_ERR_DAMAGED, "'split'"},
    {"\"findings\":[", "\"others\":[", CHEX_ERR_INCOMPATIBLE, "findings"},
    {"}]}", "}]", CHEX_ERR_DAMAGED, "operating points"},
};

LOOP_TEST(a_text_that_does_not_fit_is_refused, 0, sizeof(bad) / sizeof(bad[0]))
{
    struct chex_error err = {.text = ""};

    ck_assert_int_eq(parse_with(bad[_i].part, bad[_i].other, &err), bad[_i].status);
    ck_assert_msg(strstr(err.text, bad[_i].words) != NULL, "'%s'", err.text);
    ck_assert(!parsed.there);
}

TEST(other_numbers_of_findings_are_refused)
{
    struct chex_error err;

    ck_assert_int_eq(operating_parse(good, names, 1, &parsed, &err), CHEX_ERR_INCOMPATIBLE);
}

TEST_CASE("operating", "calibration", NULL, NULL);

/* Twelve of each class; label 255 and the other output must not count. */
TEST(unknown_labels_and_other_outputs_do_not_count)
{
    float logit[2 * 30];
    uint8_t label[2 * 30];
    double a[2], b[2];
    size_t i;

    for (i = 0; i < 30; i++) {
        logit[2 * i] = (float)(i * 7 % 24) / 8 - (i % 2 ? 1 : 0);
        label[2 * i] = i < 24 ? i % 2 : CHEX_LABEL_UNKNOWN;
        logit[2 * i + 1] = (float)i * 1e10F;
        label[2 * i + 1] = i % 3 == 0;
    }
    ck_assert_int_eq(operating_calibrate(logit, label, 24, 2, &a[0], &b[0]), OPERATING_COMPLETE);
    ck_assert_int_eq(operating_calibrate(logit, label, 30, 2, &a[1], &b[1]), OPERATING_COMPLETE);
    ck_assert(isfinite(a[0]) && a[0] == a[1] && b[0] == b[1]);
}

static const struct few {
    unsigned positives, negatives;
    float step;
    enum operating_refusal refusal;
} few[] = {
    {9, 100, 1, OPERATING_FEW_POSITIVES}, {100, 9, 1, OPERATING_FEW_NEGATIVES}, {0, 0, 1, OPERATING_FEW_POSITIVES},
    {1, 119, 1, OPERATING_FEW_POSITIVES}, {10, 10, 0, OPERATING_CONSTANT},      {10, 10, 1, OPERATING_COMPLETE},
    {10, 10, 1e-30F, OPERATING_COMPLETE}, {10, 10, 1e30F, OPERATING_COMPLETE},
};

/* Separable images, too: the targets keep the fit finite. */
LOOP_TEST(a_fit_needs_ten_of_both_and_different_outputs, 0, sizeof(few) / sizeof(few[0]))
{
    unsigned count = few[_i].positives + few[_i].negatives, i;
    float logit[120];
    uint8_t label[120];
    double a, b;

    for (i = 0; i < count; i++) {
        label[i] = i < few[_i].positives;
        logit[i] = -(float)i * few[_i].step;
    }
    ck_assert_int_eq(operating_calibrate(logit, label, count, 1, &a, &b), few[_i].refusal);
    ck_assert(few[_i].refusal == OPERATING_COMPLETE ? isfinite(a) && isfinite(b) && a > 0 : isnan(a) && isnan(b));
}
