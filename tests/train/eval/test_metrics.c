/*
 * test_metrics.c - AUROC and the other metrics; check_auroc.py compares with scikit-learn
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "eval/metrics.h"
#include "math/loss.h"
#include "math/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MANY 400

static const uint32_t own_patient[] = {0, 1, 2, 3, 4, 5, 6, 7};

static struct metrics
metrics_of(size_t count, const float *score, const uint8_t *label)
{
    struct scores s = {count, 1, score, label, own_patient, 8};
    struct chex_error err;
    struct metrics m;

    ck_assert_int_eq(metrics_compute(&s, 0, 0, 1, &m, &err), CHEX_OK);
    return m;
}

TEST_CASE("metrics", "auroc", NULL, NULL);

TEST(auroc_counts_pairs)
{
    /* Positives .35 and .8, negatives .1 and .4: three of four pairs are in order (the example in sklearn's manual). */
    const float score[] = {0.1f, 0.4f, 0.35f, 0.8f};
    const uint8_t label[] = {0, 0, 1, 1};
    struct metrics m = metrics_of(4, score, label);

    ck_assert_double_eq(m.finding[0].metric[METRIC_AUROC].value, 0.75);
    ck_assert_double_eq_tol(m.finding[0].metric[METRIC_AUPRC].value, 0.8333333333333333, 1e-15);
    ck_assert_uint_eq(m.finding[0].positives, 2);
    ck_assert_double_eq(m.mean[METRIC_AUROC].value, 0.75);
}

TEST(a_tie_counts_half)
{
    const float score[] = {1, 1, 1, 1};
    const uint8_t label[] = {0, 1, 0, 1};

    ck_assert_double_eq(metrics_of(4, score, label).finding[0].metric[METRIC_AUROC].value, 0.5);
    ck_assert_double_eq(metrics_of(4, score, label).finding[0].metric[METRIC_AUPRC].value, 0.5);
}

TEST(scores_are_in_the_order_of_numbers)
{
    /* From the highest, P means positive: INFINITY P, 1e-45 (the smallest), 0 P and -0, -2 P, -INFINITY. */
    const float score[] = {-INFINITY, -2, -0.0f, 1e-45f, 0, INFINITY};
    const uint8_t label[] = {0, 1, 0, 0, 1, 1};
    struct metrics m = metrics_of(6, score, label);

    ck_assert_double_eq(m.finding[0].metric[METRIC_AUROC].value, 5.5 / 9);
    ck_assert_double_eq(m.finding[0].point[CRITERION_F1].threshold, -2);
}

TEST(an_auroc_needs_positives)
{
    const float score[] = {0, 1, 0, 1, 1, 0}; /* finding 0 has none, finding 1 is perfect */
    const uint8_t label[] = {0, 1, 0, 1, 0, 0};
    struct scores s = {3, 2, score, label, own_patient, 8};
    struct chex_error err;
    struct metrics m;

    ck_assert_int_eq(metrics_compute(&s, 50, 1, 1, &m, &err), CHEX_OK);
    ck_assert(isnan(m.finding[0].metric[METRIC_AUROC].value) && isnan(m.finding[0].metric[METRIC_AUPRC].value) &&
              isnan(m.finding[0].point[CRITERION_YOUDEN].threshold));
    ck_assert_double_eq(m.finding[1].metric[METRIC_AUROC].value, 1);
    ck_assert_uint_eq(m.defined, 1);
    ck_assert_double_eq(m.mean[METRIC_AUROC].value, 1);
}

TEST(an_unknown_label_counts_in_no_metric)
{
    /* The example of auroc_counts_pairs, with unknown labels between; finding 1 has no known label, 2 no negative. */
    const uint8_t u = CHEX_LABEL_UNKNOWN, label[] = {0, u, u, u, u, 1, 0, u, u, 1, u, 1, u, u, u, 1, u, u};
    const float score[] = {0.1f, 1, 1, 0.9f, 2, 2, 0.4f, 3, 3, 0.35f, 4, 4, 0.2f, 5, 5, 0.8f, 6, 6};
    struct scores s = {6, 3, score, label, own_patient, 8};
    struct chex_error err;
    struct metrics m;

    ck_assert_int_eq(metrics_compute(&s, 50, 1, 1, &m, &err), CHEX_OK);
    ck_assert_double_eq(m.finding[0].metric[METRIC_AUROC].value, 0.75);
    ck_assert(m.finding[0].positives == 2 && m.finding[0].negatives == 2);
    ck_assert(m.finding[1].positives == 0 && m.finding[1].negatives == 0 && m.finding[2].positives == 2);
    ck_assert(isnan(m.finding[1].metric[METRIC_AUROC].value) && isnan(m.finding[1].point[CRITERION_F1].threshold));
    ck_assert(isnan(m.finding[2].metric[METRIC_AUROC].value) && isnan(m.finding[2].metric[METRIC_AUPRC].value));
    ck_assert_uint_eq(m.defined, 1);
    ck_assert_double_eq(m.mean[METRIC_AUROC].value, 0.75);
}

TEST(a_nan_score_is_refused)
{
    const float score[] = {0, NAN};
    const uint8_t label[] = {0, 1};
    struct scores s = {2, 1, score, label, own_patient, 8};
    struct chex_error err;
    struct metrics m;

    ck_assert_int_eq(metrics_compute(&s, 0, 0, 1, &m, &err), CHEX_ERR_USAGE);
    ck_assert_str_eq(err.text, "the score of image 1 for finding 0 is not a number");
}

TEST(a_patient_out_of_range_is_refused)
{
    const float score[] = {0, 1};
    const uint8_t label[] = {0, 1};
    struct scores s = {2, 1, score, label, own_patient, 1};
    struct chex_error err;
    struct metrics m;

    ck_assert_int_eq(metrics_compute(&s, 0, 0, 1, &m, &err), CHEX_ERR_USAGE);
    ck_assert_str_eq(err.text, "metrics of 2 images of 1 patients with 1 findings");
    s.count = 0;
    ck_assert_int_eq(metrics_compute(&s, 0, 0, 1, &m, &err), CHEX_ERR_USAGE);
    ck_assert(isnan(m.mean[METRIC_AUROC].value) && isnan(m.finding[0].point[CRITERION_F1].value));
}

TEST(thresholds_are_existing_scores)
{
    /* At >= .4, a float with these nine digits: both positives, one of three negatives: J = 1 - 1/3, F1 = 4/5. */
    const float score[] = {0.1f, 0.3f, 0.4f, 0.5f, 0.6f};
    const uint8_t label[] = {0, 0, 1, 0, 1};
    struct finding_metrics f = metrics_of(5, score, label).finding[0];

    ck_assert_double_eq(f.point[CRITERION_YOUDEN].threshold, 0.400000006);
    ck_assert_double_eq_tol(f.point[CRITERION_YOUDEN].value, 2.0 / 3, 1e-15);
    ck_assert_double_eq(f.point[CRITERION_F1].threshold, 0.400000006);
    ck_assert_double_eq_tol(f.point[CRITERION_F1].value, 0.8, 1e-15);
    ck_assert_uint_eq(f.point[CRITERION_YOUDEN].true_positives, 2);
    ck_assert_uint_eq(f.point[CRITERION_YOUDEN].false_positives, 1);
    ck_assert_uint_eq(f.point[CRITERION_F1].true_positives, 2);
    ck_assert_uint_eq(f.point[CRITERION_F1].false_positives, 1);
}

/* Random scores with some information, several images per patient. */
struct sample {
    float score[MANY * 2];
    uint8_t label[MANY * 2];
    uint32_t patient[MANY];
};

static struct scores
make_sample(struct sample *x)
{
    const struct random_stream s = {.seed = 11, .purpose = RANDOM_INIT};

    for (uint32_t i = 0; i < MANY * 2; i++) {
        x->label[i] = random_uniform(&s, 2 * i) < 0.3;
        x->score[i] = (float)(random_normal(&s, 2 * i + 1) + x->label[i]);
    }
    for (uint32_t i = 0; i < MANY; i++)
        x->patient[i] = i / 4;
    return (struct scores){MANY, 2, x->score, x->label, x->patient, MANY / 4};
}

TEST(the_order_of_the_images_does_not_matter)
{
    struct sample x, y;
    struct scores s = make_sample(&x), t = make_sample(&y);
    struct chex_error err;
    struct metrics a, b;

    for (uint32_t i = 0; i < MANY; i++) {
        uint32_t from = (i * 7 + 3) % MANY; /* 7 and 400 have no common factor */

        memcpy(y.score + 2 * i, x.score + 2 * from, 2 * sizeof(float));
        memcpy(y.label + 2 * i, x.label + 2 * from, 2);
        y.patient[i] = x.patient[from];
    }
    ck_assert_int_eq(metrics_compute(&s, 100, 5, 1, &a, &err), CHEX_OK);
    ck_assert_int_eq(metrics_compute(&t, 100, 5, 3, &b, &err), CHEX_OK);
    ck_assert_mem_eq(&a.mean[METRIC_AUROC].value, &b.mean[METRIC_AUROC].value, sizeof(double));
    ck_assert_mem_eq(&a.mean[METRIC_AUROC], &b.mean[METRIC_AUROC], sizeof(a.mean[METRIC_AUROC]));
    ck_assert_mem_eq(&a.finding[1].metric[METRIC_AUPRC], &b.finding[1].metric[METRIC_AUPRC],
                     sizeof(a.mean[METRIC_AUROC]));
}

TEST(intervals_enclose_the_value_and_follow_the_seed)
{
    struct sample x;
    struct scores s = make_sample(&x);
    struct chex_error err;
    struct metrics a, b;

    ck_assert_int_eq(metrics_compute(&s, 500, 5, 2, &a, &err), CHEX_OK);
    ck_assert_int_eq(metrics_compute(&s, 500, 6, 2, &b, &err), CHEX_OK);
    for (unsigned k = 0; k < 2; k++) {
        const struct finding_metrics *f = &a.finding[k];

        ck_assert(f->metric[METRIC_AUROC].low < f->metric[METRIC_AUROC].value &&
                  f->metric[METRIC_AUROC].value < f->metric[METRIC_AUROC].high);
        ck_assert(f->metric[METRIC_AUPRC].low < f->metric[METRIC_AUPRC].value &&
                  f->metric[METRIC_AUPRC].value < f->metric[METRIC_AUPRC].high);
        ck_assert(f->metric[METRIC_AUROC].low != b.finding[k].metric[METRIC_AUROC].low);
        /* Hanley and McNeil's standard error is about .026 here; the bootstrap's own noise is below a third of it. */
        ck_assert_double_eq_tol(f->metric[METRIC_AUROC].high - f->metric[METRIC_AUROC].low, 2 * 1.96 * 0.026, 0.035);
    }
}

TEST(a_finding_with_positives_of_fewer_than_five_patients_has_no_interval)
{
    struct sample x;
    struct scores s = make_sample(&x);
    struct chex_error err;
    struct metrics m;

    for (uint32_t patients = 1; patients <= 6; patients++) {
        for (uint32_t i = 0; i < MANY; i++) /* of the four images of a patient, one has an unknown label */
            x.label[2 * i] = x.patient[i] < patients ? (i % 4 == 3 ? CHEX_LABEL_UNKNOWN : 1) : 0;
        ck_assert_int_eq(metrics_compute(&s, 200, 5, 1, &m, &err), CHEX_OK);
        ck_assert_uint_eq(m.finding[0].positive_patients, patients);
        for (unsigned k = 0; k < METRIC_COUNT; k++) {
            ck_assert(isnan(m.finding[0].metric[k].low) == (patients < 5));
            ck_assert(isnan(m.finding[0].metric[k].high) == (patients < 5));
            ck_assert(!isnan(m.finding[0].metric[k].value) && !isnan(m.finding[1].metric[k].low));
        }
    }
}

TEST(parts_of_the_bootstrap_make_the_same_bits)
{
    static const unsigned replicates[] = {1, 8, 100, 203};
    struct sample x;
    struct scores s = make_sample(&x);
    struct chex_error err;
    struct metrics whole, m;

    for (unsigned i = 0; i < sizeof(replicates) / sizeof(replicates[0]); i++) {
        struct bootstrap_options o = {.replicates = replicates[i], .seed = 5, .parts = 1};

        ck_assert_int_eq(metrics_compute(&s, o.replicates, o.seed, 1, &whole, &err), CHEX_OK);
        ck_assert(!isnan(whole.mean[METRIC_AUROC].low));
        for (o.parts = 1; o.parts <= 64; o.parts += o.parts < 5 ? 1 : 59) {
            struct buffer all = {0}, draws = {0};

            for (o.part = 0; o.part < o.parts; o.part++) {
                o.threads = o.part % 3 + 1;
                ck_assert_int_eq(metrics_begin(&s, &o, &m, &draws, &err), CHEX_OK);
                ck_assert(isnan(m.mean[METRIC_AUROC].low));
                /* Each part has as few passes of eight as possible. */
                ck_assert_uint_le(draws.size,
                                  (replicates[i] / 8 / o.parts + 1) * 8 * METRIC_COUNT * 3 * sizeof(double));
                ck_assert_int_eq(buffer_append(&all, draws.data, draws.size, &err), CHEX_OK);
            }
            ck_assert_int_eq(metrics_end(&m, &all, 1 + o.parts % 3, &err), CHEX_OK);
            ck_assert_mem_eq(&m.mean, &whole.mean, sizeof(m.mean));
            ck_assert_mem_eq(&m.finding, &whole.finding, sizeof(m.finding));
            all.size -= sizeof(double);
            ck_assert_int_eq(metrics_end(&m, &all, 1, &err), CHEX_ERR_BUG);
            buffer_release(&draws);
            buffer_release(&all);
        }
    }
}
