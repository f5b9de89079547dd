/*
 * test_split_rule.c - the text of --split (split.h)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "plan/split.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct split_rule
rule_of(const char *text)
{
    struct split_rule rule;
    struct chex_error err = {0};

    ck_assert_msg(split_rule_parse(text, &rule, &err) == CHEX_OK, "%s", err.text);
    return rule;
}

TEST_CASE("split", "rule", NULL, NULL);

TEST(rules_are_parsed_and_written_in_one_form)
{
    static const char *const forms[][2] = {
        {"official", "official"},
        {"none", "none"},
        {"patient:70,10,20", "patient:70,10,20:0"},
        {"patient:100,0,0:7", "patient:100,0,0:7"},
        {"patient:1,2,97:18446744073709551615", "patient:1,2,97:18446744073709551615"},
        {"file:a/b.csv", "file"},
    };

    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct split_rule rule = rule_of(forms[i][0]);
        char text[64];

        split_rule_format(&rule, text, sizeof(text));
        ck_assert_str_eq(text, forms[i][1]);
    }
    ck_assert_str_eq(rule_of("file:a/b.csv").path, "a/b.csv");
}

TEST(rules_of_other_forms_are_refused)
{
    static const char form[] = "a split by patient is patient:TRAIN,VAL,TEST[:SEED] in whole per cent, such as "
                               "patient:70,10,20";
    static const char unknown[] = "\": official, patient:TRAIN,VAL,TEST[:SEED], file:PATH or none";
    static const struct {
        const char *text, *before, *wanted;
    } bad[] = {
        {"", "unknown split \"", unknown},
        {"random", "unknown split \"random", unknown},
        {"Official", "unknown split \"Official", unknown},
        {"patient", "unknown split \"patient", unknown},
        {"none\n", "unknown split \"none\\x0a", unknown},
        {"patient:", "", form},
        {"patient:70,30", "", form},
        {"patient:70;10;20", "", form},
        {"patient:70,10,-20", "", form},
        {"patient:70, 10,20", "", form},
        {"patient:101,0,0", "", form},
        {"patient:99999999999999999999,0,0", "", form},
        {"patient:0.7,0.1,0.2", "", form},
        {"patient:70,10,10", "", "the per cents of a split add up to 90, not 100"},
        {"patient:100,100,100", "", "the per cents of a split add up to 300, not 100"},
        {"patient:70,10,20:", "", "the seed of a split is a whole number below 2^64"},
        {"patient:70,10,20:x", "", "the seed of a split is a whole number below 2^64"},
        {"patient:70,10,20:18446744073709551616", "", "the seed of a split is a whole number below 2^64"},
        {"patient:70,10,20:1 ", "", "a split by patient is patient:TRAIN,VAL,TEST[:SEED], with nothing after it"},
        {"patient:70,10,20%", "", "a split by patient is patient:TRAIN,VAL,TEST[:SEED], with nothing after it"},
        {"file:", "", "file: needs a path, as in file:splits.csv"},
    };
    struct split_rule rule;
    struct chex_error err;
    char text[300], *path;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ck_assert_int_eq(split_rule_parse(bad[i].text, &rule, &err), CHEX_ERR_USAGE);
        snprintf(text, sizeof(text), "%s%s", bad[i].before, bad[i].wanted);
        ck_assert_str_eq(err.text, text);
    }
    path = malloc(sizeof(rule.path) + 6);
    ck_assert_ptr_nonnull(path);
    memset(path, 'x', sizeof(rule.path) + 5);
    memcpy(path, "file:", 5);
    path[sizeof(rule.path) + 5] = '\0';
    ck_assert_int_eq(split_rule_parse(path, &rule, &err), CHEX_ERR_USAGE);
    path[sizeof(rule.path) + 4] = '\0';
    ck_assert_int_eq(split_rule_parse(path, &rule, &err), CHEX_OK);
    free(path);
}
