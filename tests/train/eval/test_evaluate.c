/*
 * test_evaluate.c - scores of a split (evaluate_fixture.h) and the files written from them; check_auroc.py reads those
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "evaluate_fixture.h"
#include "unit.h"

#include "eval/predictions.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static double
logistic(double z)
{
    return 1 / (1 + exp(-z));
}

/* ---- views ----------------------------------------------------------------------------------------------------- */

static void
expect_views(enum tta tta, unsigned side, unsigned source, unsigned count, const struct crop *expected)
{
    struct crop view[EVALUATE_VIEWS];

    ck_assert_uint_eq(evaluate_views(tta, side, source, view), count);
    for (unsigned i = 0; i < count; i++)
        ck_assert_msg(view[i].x == expected[i].x && view[i].y == expected[i].y && view[i].flip == expected[i].flip,
                      "view %u is at %u, %u", i, view[i].x, view[i].y);
}

TEST_CASE("evaluate", "scores", NULL, NULL);

/* torchvision.transforms.functional: five_crop(), ten_crop(), center_crop(); check_auroc.py calls them. */
TEST(views_are_torchvisions)
{
    static const struct crop flip[] = {{.x = 16, .y = 16}, {.x = 16, .y = 16, .flip = true}};
    static const struct crop ten[] = {
        {.x = 0},
        {.x = 32},
        {.y = 32},
        {.x = 32, .y = 32},
        {.x = 16, .y = 16},
        {.x = 32, .flip = true},
        {.flip = true},
        {.x = 32, .y = 32, .flip = true},
        {.y = 32, .flip = true},
        {.x = 16, .y = 16, .flip = true},
    };
    /*
     * With a margin of 3 pixels the centre starts at round(1.5) = 2; that of the mirrored image, 2 from the other edge.
     */
    static const struct crop odd[] = {
        {.x = 0},
        {.x = 3},
        {.y = 3},
        {.x = 3, .y = 3},
        {.x = 2, .y = 2},
        {.x = 3, .flip = true},
        {.flip = true},
        {.x = 3, .y = 3, .flip = true},
        {.y = 3, .flip = true},
        {.x = 1, .y = 2, .flip = true},
    };
    static const struct crop five = {.x = 2, .y = 2}; /* round(2.5) = 2 */

    expect_views(TTA_NONE, 224, 256, 1, flip);
    expect_views(TTA_FLIP, 224, 256, 2, flip);
    expect_views(TTA_TENCROP, 224, 256, 10, ten);
    expect_views(TTA_TENCROP, 5, 8, 10, odd);
    expect_views(TTA_NONE, 3, 8, 1, &five);
}

/* ---- scores ---------------------------------------------------------------------------------------------------- */

TEST(every_image_is_scored_once)
{
    struct scorer b;
    double loss = 0;

    scorer_make(&b);
    scorer_run(&b);
    ck_assert_uint_eq(b.e.count, IMAGES);
    ck_assert_uint_eq(b.e.patients, IMAGES);
    ck_assert_uint_eq(b.e.views, 1);
    ck_assert_uint_eq(b.e.skipped_count, 0);
    for (unsigned i = 0; i < IMAGES; i++) {
        double v = i * 20 + (i == 5 ? 0 : 2); /* the middle of 8 for 6 begins at 1 */
        char name[32], person[16];

        snprintf(name, sizeof(name), "%08u_000.png", i);
        snprintf(person, sizeof(person), "%08u", i);
        ck_assert_str_eq(b.e.image[i].name, name);
        ck_assert_str_eq(b.e.image[i].person, person);
        ck_assert_uint_eq(b.e.image[i].sample, i);
        ck_assert_uint_eq(b.e.image[i].patient, i);
        for (unsigned k = 0; k < FINDINGS; k++) {
            double p = logistic((v - 100) / 50 - k / 10.0);

            ck_assert_uint_eq(b.e.label[i * FINDINGS + k], i > 0 && i == k);
            ck_assert_double_eq_tol((double)b.e.probability[i * FINDINGS + k], p, 1e-7);
            loss -= log(i > 0 && i == k ? p : 1 - p) / (IMAGES * FINDINGS);
        }
    }
    ck_assert_double_eq_tol(b.e.loss, loss, 1e-6);
    /*
     * Finding 5: its image has the largest score.  Finding 0 has no positive.  Finding 1: four of five images score
     * higher.
     */
    ck_assert_double_eq(b.e.metrics.finding[5].metric[METRIC_AUROC].value, 1);
    ck_assert_double_eq(b.e.metrics.finding[1].metric[METRIC_AUROC].value, 0.2);
    ck_assert(isnan(b.e.metrics.finding[0].metric[METRIC_AUROC].value));
    ck_assert_uint_eq(b.e.metrics.defined, 5);
    scorer_release(&b);
}

TEST(the_micro_batch_changes_nothing)
{
    struct scorer a, b;

    scorer_make(&a);
    scorer_run(&a);
    for (unsigned batch = 1; batch <= 9; batch += 2) {
        b = (struct scorer){.small = a.small, .ds = a.ds, .samples = a.samples, .stub = {.batch = batch}, .o = a.o};
        b.o.plan = (struct plan *)&b.stub;
        b.o.batch = batch;
        b.o.samples = &b.samples;
        scorer_run(&b);
        ck_assert_uint_eq(b.stub.passes, (IMAGES + batch - 1) / batch);
        ck_assert_uint_eq(b.e.count, a.e.count);
        ck_assert_mem_eq(b.e.probability, a.e.probability, IMAGES * FINDINGS * sizeof(float));
        ck_assert_mem_eq(&b.e.loss, &a.e.loss, sizeof(double));
        ck_assert_mem_eq(&b.e.metrics.finding, &a.e.metrics.finding, sizeof(a.e.metrics.finding));
        evaluation_release(&b.e);
    }
    scorer_release(&a);
}

TEST(probabilities_of_the_views_are_averaged)
{
    struct scorer b;
    double mean = 0, z;

    scorer_make(&b);
    b.o.tta = TTA_TENCROP;
    scorer_run(&b);
    ck_assert_uint_eq(b.e.views, 10);
    ck_assert_uint_eq(b.stub.passes, 20);
    /* Image 2: 40 + x + y at the corners 0 and 2 and the centre 1; mirrored, the pixel 5 further right. */
    for (unsigned v = 0; v < 10; v++) {
        static const unsigned sum[10] = {0, 2, 2, 4, 2, 2 + 5, 0 + 5, 4 + 5, 2 + 5, 2 + 5};

        mean += logistic((40.0 + sum[v] - 100) / 50) / 10;
    }
    ck_assert_double_eq_tol((double)b.e.probability[2 * FINDINGS], mean, 1e-7);
    z = (double)b.e.logit[2 * FINDINGS];
    ck_assert_double_eq_tol(logistic(z), mean, 1e-7);
    evaluation_release(&b.e);
    b.o.tta = TTA_FLIP;
    scorer_run(&b);
    ck_assert_double_eq_tol((double)b.e.probability[2 * FINDINGS],
                            (logistic((42.0 - 100) / 50) + logistic((47.0 - 100) / 50)) / 2, 1e-7);
    scorer_release(&b);
}

TEST(the_loss_equals_the_loss_of_training)
{
    const double weight[FINDINGS] = {3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3};
    const struct loss_options focal = {.kind = LOSS_FOCAL, .gamma = 2, .positive_weight = weight};
    struct scorer b;
    double expected = 0;

    scorer_make(&b);
    b.o.loss = &focal;
    scorer_run(&b);
    for (unsigned i = 0; i < IMAGES * FINDINGS; i++) {
        double p = logistic((double)b.e.logit[i]), q = b.e.label[i] ? p : 1 - p;

        expected -= (b.e.label[i] ? 3 : 1) * (1 - q) * (1 - q) * log(q) / (IMAGES * FINDINGS);
    }
    ck_assert_double_eq_tol(b.e.loss, expected, 1e-12);
    scorer_release(&b);
}

/* ---- faults ---------------------------------------------------------------------------------------------------- */

TEST_CASE("evaluate", "faults", NULL, NULL);

TEST(a_damaged_record_ends_it_or_is_left_out)
{
    struct scorer b;
    struct chex_error err;

    scorer_make(&b);
    scorer_damage(&b, 0, 2);
    scorer_damage(&b, 1, 0); /* samples 2 and 3, side by side */
    ck_assert_int_eq(evaluate(&b.o, &b.e, &err), CHEX_ERR_CHECKSUM);
    ck_assert_msg(strstr(err.text, "' record 2 (") && strstr(err.text, ".png): "), "%s", err.text);
    evaluation_release(&b.e);
    b.o.skip_bad = true;
    scorer_run(&b);
    ck_assert_uint_eq(b.e.count, IMAGES - 2);
    ck_assert_uint_eq(b.e.metrics.images, IMAGES - 2);
    ck_assert_uint_eq(b.e.metrics.defined, 3); /* findings 1, 4 and 5: those of images 2 and 3 are gone */
    ck_assert_uint_eq(b.e.skipped_count, 2);
    ck_assert(b.e.skipped[0].shard == 0 && b.e.skipped[0].index == 2);
    ck_assert(b.e.skipped[1].shard == 1 && b.e.skipped[1].index == 0);
    ck_assert_str_eq(b.e.image[2].name, "00000004_000.png");
    ck_assert_uint_eq(b.e.image[2].sample, 4);
    ck_assert_uint_eq(b.e.patients, IMAGES - 2);
    scorer_release(&b);
}

TEST(an_evaluation_needs_a_good_record)
{
    struct samples none = {.count = 0};
    struct scorer b;
    struct chex_error err;

    scorer_make(&b);
    for (unsigned i = 0; i < IMAGES; i++)
        scorer_damage(&b, i / 3, i % 3);
    b.o.skip_bad = true;
    ck_assert_int_eq(evaluate(&b.o, &b.e, &err), CHEX_ERR_CHECKSUM);
    evaluation_release(&b.e);
    b.o.samples = &none;
    ck_assert_int_eq(evaluate(&b.o, &b.e, &err), CHEX_ERR_USAGE);
    ck_assert_str_eq(err.text, "split 'train' has no image");
    scorer_release(&b);
}

TEST(with_a_nan_logit_no_metric_is_defined)
{
    struct scorer b;

    scorer_make(&b);
    b.stub.breaks = true;
    scorer_run(&b);
    ck_assert_uint_eq(b.e.not_finite, 1);
    ck_assert(isnan(b.e.loss) && isnan(b.e.metrics.mean[METRIC_AUROC].value) &&
              isnan(b.e.metrics.finding[5].metric[METRIC_AUROC].value));
    scorer_release(&b);
}

TEST(a_wish_to_stop_is_seen_before_the_next_micro_batch)
{
    atomic_bool stop = false;
    struct scorer b;
    struct chex_error err;

    scorer_make(&b);
    b.o.batch = b.stub.batch = 1;
    b.o.stop = b.stub.stop = &stop;
    b.stub.stop_after = 2;
    ck_assert_int_eq(evaluate(&b.o, &b.e, &err), CHEX_ERR_STOPPED);
    ck_assert_uint_eq(b.stub.started, 3); /* the third one was in flight when the second one had ended */
    ck_assert_uint_eq(b.stub.finished, 3);
    scorer_release(&b);
}

LOOP_TEST(two_micro_batches_are_in_flight_and_none_at_the_end, 1, IMAGES + 1)
{
    struct scorer b;

    scorer_make(&b);
    b.o.batch = b.stub.batch = (unsigned)_i;
    scorer_run(&b);
    ck_assert_uint_eq(b.stub.most, _i < IMAGES ? 2 : 1);
    ck_assert_uint_eq(b.stub.finished, b.stub.started);
    scorer_release(&b);
}

/* The third start, the third finish, the third and the last record. */
LOOP_TEST(after_an_error_in_flight_nothing_is_in_flight, 0, 4)
{
    static const char *const words[] = {"planted at a start", "planted at a finish", "' record 2 (", "' record 2 ("};
    struct scorer b;
    struct chex_error err;

    scorer_make(&b);
    b.o.batch = b.stub.batch = 1;
    b.stub.fails_start = _i == 0 ? 3 : 0;
    b.stub.fails_finish = _i == 1 ? 3 : 0;
    if (_i > 1)
        scorer_damage(&b, _i == 2 ? 0 : 1, 2);
    ck_assert_int_eq(evaluate(&b.o, &b.e, &err), _i > 1 ? CHEX_ERR_CHECKSUM : CHEX_ERR_LOST);
    ck_assert_msg(strstr(err.text, words[_i]) != NULL, "'%s'", err.text);
    ck_assert_uint_gt(b.stub.started, 1);
    ck_assert_uint_eq(b.stub.finished, b.stub.started);
    scorer_release(&b);
}

/* ---- output ---------------------------------------------------------------------------------------------------- */

static void
read_back(const struct folder *folder, const char *name, struct buffer *out)
{
    struct chex_error err;

    ck_assert_int_eq(file_read(folder->fd, name, 1 << 20, out, &err), CHEX_OK);
    ck_assert_int_eq(buffer_append(out, "", 1, &err), CHEX_OK);
}

TEST_CASE("evaluate", "documents", NULL, NULL);

TEST(predictions_are_one_line_an_image)
{
    struct buffer text = {0};
    struct folder folder;
    struct scorer b;
    struct chex_error err;
    char expected[64];
    const char *line;

    scorer_make(&b);
    scorer_run(&b);
    b.e.image[1].name = "a \"b\", c.png"; /* no name of the data set, but valid in a field */
    ck_assert_int_eq(folder_open(b.small.path, false, &folder, &err), CHEX_OK);
    {
        const struct evaluation_source from = {.ds = b.ds, .model = "stub", .side = SIDE};

        ck_assert_int_eq(predictions_write(&b.e, &from, &folder, "p.csv", &err), CHEX_OK);
    }
    read_back(&folder, "p.csv", &text);
    line = (const char *)text.data;
    ck_assert_msg(strncmp(line, "image,patient,split,age,sex,view,prob_Atelectasis,prob_Cardiomegaly,", 68) == 0, "%s",
                  line);
    ck_assert_ptr_nonnull(strstr(line, ",prob_Hernia,label_Atelectasis,"));
    ck_assert_ptr_nonnull(strstr(line, ",label_Hernia,research_use_only\n"));
    line = strchr(line, '\n') + 1;
    snprintf(expected, sizeof(expected), "00000000_000.png,00000000,train,0,M,AP,%.9g,", (double)b.e.probability[0]);
    ck_assert_msg(strncmp(line, expected, strlen(expected)) == 0, "%s", line);
    line = strchr(line, '\n') + 1;
    ck_assert_msg(strncmp(line, "\"a \"\"b\"\", c.png\",00000001,train,,F,PA,", 38) == 0, "%s", line);
    ck_assert_str_eq(strrchr(line, '\n'), "\n");
    buffer_release(&text);
    folder_close(&folder);
    scorer_release(&b);
}

TEST(the_mark_is_the_only_difference_to_an_unmarked_file)
{
    struct buffer text = {0}, unmarked = {0};
    struct evaluation_source from = {.model = "stub", .side = SIDE};
    struct scorer b;
    struct chex_error err;
    const char *line, *other;

    scorer_make(&b);
    scorer_run(&b);
    from.ds = b.ds;
    ck_assert_int_eq(predictions_text(&b.e, &from, &text, &err), CHEX_OK);
    from.unmarked = true;
    ck_assert_int_eq(predictions_text(&b.e, &from, &unmarked, &err), CHEX_OK);
    ck_assert_int_eq(buffer_append(&text, "", 1, &err), CHEX_OK);
    ck_assert_int_eq(buffer_append(&unmarked, "", 1, &err), CHEX_OK);
    for (line = (const char *)text.data, other = (const char *)unmarked.data; *line; line = strchr(line, '\n') + 1) {
        const char *end = strchr(other, '\n'),
                   *mark = line == (const char *)text.data ? ",research_use_only\n" : ",1\n";

        ck_assert_ptr_nonnull(end);
        ck_assert_int_eq(strncmp(line, other, (size_t)(end - other)), 0);
        ck_assert_int_eq(strncmp(line + (end - other), mark, strlen(mark)), 0);
        other = end + 1;
    }
    ck_assert_int_eq(*other, '\0');
    buffer_release(&text);
    buffer_release(&unmarked);
    scorer_release(&b);
}

TEST(an_unknown_label_is_an_empty_field)
{
    struct buffer text = {0};
    struct folder folder;
    struct scorer b;
    struct chex_error err;
    const char *line;

    scorer_make(&b);
    scorer_run(&b);
    memset(b.e.label, 1, FINDINGS);
    b.e.label[0] = b.e.label[FINDINGS - 1] = CHEX_LABEL_UNKNOWN;
    ck_assert_int_eq(folder_open(b.small.path, false, &folder, &err), CHEX_OK);
    {
        const struct evaluation_source from = {.ds = b.ds, .model = "stub", .side = SIDE};

        ck_assert_int_eq(predictions_write(&b.e, &from, &folder, "u.csv", &err), CHEX_OK);
    }
    read_back(&folder, "u.csv", &text);
    line = strchr((const char *)text.data, '\n') + 1;
    ck_assert_ptr_nonnull(strstr(line, ",,1,1,1,1,1,1,1,1,1,1,1,1,,1\n"));
    buffer_release(&text);
    folder_close(&folder);
    scorer_release(&b);
}

TEST(the_document_names_the_model_and_the_data)
{
    static const char *const parts[] = {
        "\"dataset_id\": \"0123456789abcdef\"",
        "\"name\": \"train\"",
        "\"members_sha256\": \"00112233",
        "\"checkpoint\": null",
        "\"checkpoint_sha256\": \"abc\"",
        "\"tta\": \"flip\"",
        "\"replicates\": 20",
        "\"record\": 2",
        "\"use\": \"research only, not for diagnosis\"",
    };
    struct buffer text = {0};
    struct folder folder;
    struct scorer b;
    struct chex_error err;

    scorer_make(&b);
    scorer_damage(&b, 0, 2);
    b.o.skip_bad = true;
    b.o.tta = TTA_FLIP;
    scorer_run(&b);
    ck_assert_int_eq(folder_open(b.small.path, false, &folder, &err), CHEX_OK);
    {
        const struct evaluation_source from = {
            .ds = b.ds, .model = "stub", .side = SIDE, .checkpoint_sha256 = "abc", .epochs = 0.5};

        ck_assert_int_eq(metrics_write(&b.e, &from, &folder, "m.json", &err), CHEX_OK);
    }
    read_back(&folder, "m.json", &text);
    for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        ck_assert_msg(strstr((const char *)text.data, parts[i]) != NULL, "%s is not in %s", parts[i], text.data);
    buffer_release(&text);
    folder_close(&folder);
    scorer_release(&b);
}
