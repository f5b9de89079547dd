/*
 * test_settings.c - options by name: as text, across ranks, and compared with those of a checkpoint; the default
 * micro-batch
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "base/member.h"
#include "checkpoint/settings.h"
#include "run/trainer.h"

#include <stdlib.h>
#include <string.h>

struct values {
    const char *output;
    uint32_t keep;
    uint64_t seed;
    double rate, batch;
    const char *data, *model;
    bool deep;
    enum { THIS, THAT } which;
};

static const char *const which_names[] = {"this", "that", NULL};

#define AT(member) SETTING_AT(struct values, member)

static const struct setting table[] = {
    {"output", SETTING_LOCAL, SETTING_TEXT, AT(output)},
    {"keep", SETTING_SHARED, SETTING_NUMBER, AT(keep)},
    {"lr", SETTING_FREE, SETTING_REAL, AT(rate)},
    {"global-batch", SETTING_BATCH, SETTING_REAL, AT(batch)},
    {"data-set", SETTING_DATA, SETTING_TEXT, AT(data)},
    {"model", SETTING_FIXED, SETTING_TEXT, AT(model), .none = "any"},
    {"deep", SETTING_FIXED, SETTING_FLAG, AT(deep)},
    {.name = NULL},
};

static void
fill(struct settings *s, double rate, const char *model, double batch, const char *data)
{
    const struct values values = {"runs/a", 2, 0, rate, batch, data, model, true, THIS};

    *s = (struct settings){.count = 0};
    for (const struct setting *row = table; row->name; row++)
        settings_add(s, row, &values);
    ck_assert(!s->failed);
}

static void
put(const struct setting *row, struct values *values, uint64_t number)
{
    member_put((char *)values + row->offset, row->size, number);
}

TEST_CASE("settings", "settings", NULL, NULL);

TEST(a_value_is_read_from_its_member_and_put_there)
{
    static const struct setting rows[] = {{"seed", SETTING_FIXED, SETTING_DIGITS, AT(seed)},
                                          {"which", SETTING_FIXED, SETTING_CHOICE, AT(which), .names = which_names},
                                          {"keep", SETTING_FIXED, SETTING_NUMBER, AT(keep)},
                                          {"deep", SETTING_FIXED, SETTING_CHOICE, AT(deep), .names = which_names},
                                          {"model", SETTING_FIXED, SETTING_TEXT, AT(model), .none = "any"},
                                          {"data", SETTING_FIXED, SETTING_TEXT, AT(data)}};
    struct values values = {.keep = 1};
    struct settings s = {.count = 0};

    put(&rows[0], &values, UINT64_MAX);
    put(&rows[1], &values, THAT);
    put(&rows[2], &values, UINT32_MAX);
    put(&rows[3], &values, 1);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        settings_add(&s, &rows[i], &values);
    ck_assert_str_eq(s.value[0].text, "18446744073709551615");
    ck_assert_str_eq(s.value[1].text, "that");
    ck_assert(s.value[2].kind == RUN_NUMBER && s.value[2].number == UINT32_MAX);
    ck_assert_str_eq(s.value[3].text, "that");
    ck_assert_str_eq(s.value[4].text, "any");
    ck_assert_ptr_null(s.value[5].text);
    settings_release(&s);
}

TEST(the_settings_of_a_run_have_each_name_once)
{
    for (const struct setting *s = trainer_settings; s->name; s++) {
        ck_assert_msg(s->type != SETTING_CHOICE || s->names, "%s", s->name);
        for (const struct setting *other = s + 1; other->name; other++)
            ck_assert_str_ne(s->name, other->name);
    }
}

TEST(numbers_have_the_shortest_text_that_reads_back)
{
    static const double numbers[] = {0.001, 0.1, 1.0 / 3, 1e-300, 3e22, 0, 64, 0.30000000000000004};
    char text[SETTINGS_NUMBER];

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        ck_assert_double_eq(strtod(settings_format(numbers[i], text), NULL), numbers[i]);
    ck_assert_str_eq(settings_format(0.001, text), "0.001");
    ck_assert_str_eq(settings_format(64, text), "64");
    ck_assert_str_eq(settings_format(0.30000000000000004, text), "0.30000000000000004");
}

TEST(ranks_compare_all_but_local_settings_and_checkpoints_keep_those_that_affect_results)
{
    struct settings s;
    struct buffer b = {0};
    struct chex_error err;
    char kept[SETTINGS_TEXT];

    fill(&s, 1e-3, "densenet121", 64, "aa");
    ck_assert_int_eq(settings_common(&s, &b, &err), CHEX_OK);
    ck_assert_str_eq((char *)b.data, "keep 2\nlr 0.001\nglobal-batch 64\ndata-set aa\nmodel densenet121\ndeep yes\n");
    ck_assert_int_eq(settings_keep(&s, kept, &err), CHEX_OK);
    ck_assert_str_eq(kept, "lr 0.001\nglobal-batch 64\ndata-set aa\nmodel densenet121\ndeep yes\n");
    buffer_release(&b);
    settings_release(&s);
}

#define BATCH (1u << SETTING_BATCH)
#define DATA  (1u << SETTING_DATA)

TEST(changes_are_noted_if_allowed_and_refused_with_both_values_if_not)
{
    struct settings before, now;
    struct settings_change change;
    struct chex_error err;
    char kept[SETTINGS_TEXT];

    fill(&before, 1e-3, "densenet121", 64, "aa");
    ck_assert_int_eq(settings_keep(&before, kept, &err), CHEX_OK);
    ck_assert_int_eq(settings_compare(&before, kept, 0, &change, &err), CHEX_OK);
    ck_assert_str_eq(change.text, "");

    fill(&now, 5e-4, "resnet50", 32, "bb");
    ck_assert_int_eq(settings_compare(&now, kept, BATCH | DATA, &change, &err), CHEX_ERR_INCOMPATIBLE);
    ck_assert_str_eq(err.text, "it was made with other options: model densenet121 -> resnet50");
    settings_release(&now);

    fill(&now, 5e-4, "resnet50", 32, "bb");
    ck_assert_int_eq(settings_compare(&now, kept, 0, &change, &err), CHEX_ERR_INCOMPATIBLE);
    ck_assert_ptr_null(strstr(err.text, "--allow")); /* that option would not be enough */
    settings_release(&now);

    fill(&now, 5e-4, "densenet121", 32, "bb");
    ck_assert_int_eq(settings_compare(&now, kept, 0, &change, &err), CHEX_ERR_INCOMPATIBLE);
    ck_assert_ptr_nonnull(strstr(err.text, "aa -> bb (--allow-batch-change --allow-new-data resumes with it)"));
    ck_assert_int_eq(settings_compare(&now, kept, DATA, &change, &err), CHEX_ERR_INCOMPATIBLE);
    ck_assert_ptr_nonnull(strstr(err.text, "global-batch 64 -> 32 (--allow-batch-change resumes with it)"));
    ck_assert_int_eq(settings_compare(&now, kept, BATCH, &change, &err), CHEX_ERR_INCOMPATIBLE);
    ck_assert_ptr_nonnull(strstr(err.text, "data-set aa -> bb (--allow-new-data resumes with it)"));
    ck_assert_int_eq(settings_compare(&now, kept, BATCH | DATA, &change, &err), CHEX_OK);
    ck_assert(change.batch && change.data);
    ck_assert_str_eq(change.text, "lr 0.001 -> 0.0005, global-batch 64 -> 32, data-set aa -> bb");
    settings_release(&now);
    settings_release(&before);
}

TEST(names_that_one_side_lacks_are_not_a_difference)
{
    struct settings s;
    struct settings_change change;
    struct chex_error err;

    fill(&s, 1e-3, "densenet121", 64, "aa");
    ck_assert_int_eq(settings_compare(&s, "model densenet121\nnewer thing\nmodels x\n", 0, &change, &err), CHEX_OK);
    ck_assert_int_eq(settings_compare(&s, "model densenet12", 0, &change, &err), CHEX_ERR_INCOMPATIBLE);
    settings_release(&s);
}

TEST(a_name_that_an_older_checkpoint_lacks_has_the_value_of_older_programs)
{
    const struct values values = {.rate = 0.5};
    struct setting row = table[2];
    struct settings s = {.count = 0};
    struct settings_change change;
    struct chex_error err;

    row.kind = SETTING_FIXED;
    row.before = "0";
    settings_add(&s, &row, &values);
    ck_assert_int_eq(settings_compare(&s, "model densenet121\n", 0, &change, &err), CHEX_ERR_INCOMPATIBLE);
    ck_assert_ptr_nonnull(strstr(err.text, "lr 0 -> 0.5"));
    ck_assert_int_eq(settings_compare(&s, "lr 0.5\n", 0, &change, &err), CHEX_OK);
    settings_release(&s);
    row.before = "0.5";
    settings_add(&s, &row, &values);
    ck_assert_int_eq(settings_compare(&s, "model densenet121\n", 0, &change, &err), CHEX_OK);
    settings_release(&s);
}

TEST(too_many_or_too_long_names_are_reported)
{
    struct settings s = {.count = 0};
    struct values values = {.deep = true};
    struct chex_error err;
    char text[SETTINGS_TEXT + 1], kept[SETTINGS_TEXT];

    for (unsigned i = 0; i <= SETTINGS_MAX; i++)
        settings_add(&s, &table[6], &values);
    ck_assert(s.failed);
    settings_release(&s);
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    values.model = text;
    settings_add(&s, &table[5], &values);
    ck_assert_int_eq(settings_keep(&s, kept, &err), CHEX_ERR_BUG);
    settings_release(&s);
}

TEST(a_micro_batch_divides_the_batch_and_is_neither_tiny_nor_huge)
{
    static const unsigned expected[][2] = {{1, 1},   {7, 7},   {16, 16}, {17, 17}, {20, 10},
                                           {24, 12}, {34, 17}, {48, 16}, {64, 16}, {67, 67}};

    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        ck_assert_uint_eq(trainer_micro_batch(expected[i][0], 16), expected[i][1]);
    for (unsigned batch = 1; batch < 300; batch++) {
        ck_assert_uint_eq(batch % trainer_micro_batch(batch, 16), 0);
        ck_assert_uint_eq(trainer_micro_batch(batch, 0), batch);
    }
}
