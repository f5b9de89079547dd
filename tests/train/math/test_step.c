/*
 * test_step.c - compares loss and optimizers with their formulas; check_parity.py compares with PyTorch
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "unit.h"

#include "math/loss.h"
#include "math/optimizer.h"
#include "math/schedule.h"

#include <math.h>

TEST_CASE("step", "loss", NULL, NULL);

TEST(bce_is_minus_log_p_and_its_slope_is_p_minus_y)
{
    const struct loss_options o = {.kind = LOSS_BCE};
    const float z[] = {0.7f, -1.3f};
    const uint8_t y[] = {1, 0};
    double p0 = 1 / (1 + exp(-(double)z[0])), p1 = 1 / (1 + exp(-(double)z[1]));
    float g[2];

    ck_assert_double_eq_tol(loss_sum(&o, 1, 2, z, y, NULL, NULL, 0.5, g), 0.5 * (-log(p0) - log(1 - p1)), 1e-14);
    ck_assert_float_eq_tol(g[0], (float)(0.5 * (p0 - 1)), 1e-7f);
    ck_assert_float_eq_tol(g[1], (float)(0.5 * p1), 1e-7f);
}

TEST(large_logits_do_not_overflow)
{
    const struct loss_options o = {.kind = LOSS_BCE};
    const float z[] = {1e4f, -1e4f, 1e4f};
    const uint8_t y[] = {1, 0, 0};
    float g[3];

    ck_assert_double_eq(loss_sum(&o, 1, 3, z, y, NULL, NULL, 1, g), 1e4);
    ck_assert_float_eq(g[2], 1);
}

TEST(an_image_of_weight_0_counts_nowhere)
{
    const struct loss_options o = {.kind = LOSS_BCE};
    const float z[] = {0, NAN}, weight[] = {1, 0};
    const uint8_t y[] = {0, 1};
    float g[2];

    ck_assert_double_eq_tol(loss_sum(&o, 2, 1, z, y, weight, NULL, 1, g), log(2), 1e-15);
    ck_assert_float_eq(g[1], 0);
}

TEST(an_unknown_label_counts_nowhere)
{
    static const double positive_weight[] = {3, 3, 3};
    const float z[] = {0.5f, NAN, -2, 1, INFINITY, NAN}, weight[] = {1, 0};
    const uint8_t y[] = {1, CHEX_LABEL_UNKNOWN, CHEX_LABEL_UNKNOWN, 0, CHEX_LABEL_UNKNOWN, 1};
    struct label_count labels = loss_count(2, 3, y, NULL);

    ck_assert(labels.all == 6 && labels.known == 3);
    labels = loss_count(2, 3, y, weight);
    ck_assert(labels.all == 3 && labels.known == 1);
    ck_assert_double_eq(loss_rescale(labels), 3);
    ck_assert_double_eq(loss_rescale((struct label_count){7, 7}), 1);
    ck_assert_double_eq(loss_rescale((struct label_count){7, 0}), 1);
    ck_assert_double_eq(loss_rescale((struct label_count){0, 0}), 1);
    for (int kind = LOSS_BCE; kind <= LOSS_FOCAL; kind++) {
        const struct loss_options o = {(enum loss_kind)kind, 2, positive_weight, 0};
        float g[] = {5, 5, 5, 5, 5, 5}, first;
        double one = loss_sum(&o, 1, 1, z, y, NULL, NULL, 0.5, &first);

        ck_assert_double_eq(loss_sum(&o, 2, 3, z, y, weight, NULL, 0.5, g), one);
        ck_assert(g[0] == first && first != 0);
        for (int i = 1; i < 6; i++)
            ck_assert(g[i] == 0);
    }
}

TEST(slopes_are_the_derivatives_of_the_loss)
{
    const double positive_weight[] = {3, 0.5};
    const uint8_t y[] = {1, 0};

    for (int kind = LOSS_BCE; kind <= LOSS_FOCAL; kind++) {
        const struct loss_options o = {(enum loss_kind)kind, 2, positive_weight, 0};

        for (double at = -4; at <= 4; at += 0.5) {
            const float z[] = {(float)at, (float)at};

            for (int k = 0; k < 2; k++) {
                float up[] = {z[0], z[1]}, down[] = {z[0], z[1]}, g[2];
                double slope;

                up[k] += 0x1p-10f;
                down[k] -= 0x1p-10f;
                slope = (loss_sum(&o, 1, 2, up, y, NULL, NULL, 1, NULL) -
                         loss_sum(&o, 1, 2, down, y, NULL, NULL, 1, NULL)) /
                        0x1p-9;
                loss_sum(&o, 1, 2, z, y, NULL, NULL, 1, g);
                ck_assert_double_eq_tol((double)g[k], slope, 1e-5);
            }
        }
    }
}

/* y' = y (1 - X) + X / 2 in the formula of torch.nn.BCEWithLogitsLoss with pos_weight w. */
TEST(a_smoothed_label_is_a_mixture_of_both_labels)
{
    const double w = 3, x = 0.2;
    const struct loss_options o = {LOSS_BCE, 0, &w, x};
    const uint8_t y[] = {0, 1, CHEX_LABEL_UNKNOWN};

    ck_assert_double_eq(loss_own_share(&(struct loss_options){.smoothing = 0}, 0), 1);
    for (int k = 0; k < 2; k++) {
        for (float z = -3; z <= 3; z += 0.75f) {
            double p = 1 / (1 + exp(-(double)z)), target = y[k] * (1 - x) + x / 2;
            float g;

            ck_assert_double_eq_tol(loss_sum(&o, 1, 1, &z, &y[k], NULL, NULL, 0.5, &g),
                                    -(w * target * log(p) + (1 - target) * log(1 - p)) / 2, 1e-14);
            ck_assert_double_eq_tol((double)g, (-w * target * (1 - p) + (1 - target) * p) / 2, 1e-7);
        }
    }
    for (int kind = LOSS_BCE; kind <= LOSS_FOCAL; kind++) {
        const struct loss_options smooth = {(enum loss_kind)kind, 2, &w, x}, plain = {(enum loss_kind)kind, 2, &w, 0};
        const float z = 0.7f;
        double losses[2];
        float g[2], mixed;

        for (int k = 0; k < 2; k++)
            losses[k] = loss_sum(&plain, 1, 1, &z, &y[k], NULL, NULL, 1, &g[k]);
        ck_assert_double_eq_tol(loss_sum(&smooth, 1, 1, &z, &y[1], NULL, NULL, 1, &mixed),
                                0.9 * losses[1] + 0.1 * losses[0], 1e-14);
        ck_assert_float_eq_tol(mixed, 0.9f * g[1] + 0.1f * g[0], 1e-6f);
        ck_assert(loss_sum(&smooth, 1, 1, &z, &y[2], NULL, NULL, 1, &mixed) == 0 && mixed == 0);
    }
}

/* Of a label y and a share m of an opposite one: y' = (1 - m) y + m (1 - y), then smoothed as above. */
TEST(a_mixed_label_is_a_mixture_of_the_labels_of_both_images)
{
    const double w = 3;
    const uint8_t y[] = {LABEL_OPPOSED, LABEL_OPPOSED | 1, 0, 1, CHEX_LABEL_UNKNOWN};
    struct label_count labels = loss_count(1, 5, y, NULL);

    ck_assert(labels.all == 5 && labels.known == 4);
    for (uint8_t own = 0; own < 2; own++) {
        ck_assert_uint_eq(loss_mixed_label(own, own), own);
        ck_assert_uint_eq(loss_mixed_label(own, !own), own | LABEL_OPPOSED);
        ck_assert_uint_eq(loss_mixed_label(own, CHEX_LABEL_UNKNOWN), CHEX_LABEL_UNKNOWN);
        ck_assert_uint_eq(loss_mixed_label(CHEX_LABEL_UNKNOWN, own), CHEX_LABEL_UNKNOWN);
    }
    for (double x = 0; x < 0.5; x += 0.2)
        for (float m = 0; m <= 1; m += 0.125f)
            for (int k = 0; k < 5; k++) {
                const struct loss_options o = {LOSS_BCE, 0, &w, x};
                const float z = 0.7f;
                double p = 1 / (1 + exp(-(double)z)), share = y[k] & LABEL_OPPOSED ? (double)m : 0;
                double target = ((1 - share) * (y[k] & 1) + share * !(y[k] & 1)) * (1 - x) + x / 2;
                double wanted = -(w * target * log(p) + (1 - target) * log(1 - p)) / 2;
                double slope = (-w * target * (1 - p) + (1 - target) * p) / 2;
                bool known = y[k] != CHEX_LABEL_UNKNOWN;
                float g;

                ck_assert_double_eq_tol(loss_sum(&o, 1, 1, &z, &y[k], NULL, &m, 0.5, &g), known ? wanted : 0, 1e-14);
                ck_assert_double_eq_tol((double)g, known ? slope : 0, 1e-7);
            }
}

TEST(focal_with_gamma_0_is_bce)
{
    const struct loss_options bce = {.kind = LOSS_BCE}, focal = {.kind = LOSS_FOCAL, .gamma = 0};
    const float z[] = {0.3f, -2};
    const uint8_t y[] = {0, 1};

    ck_assert_double_eq_tol(loss_sum(&focal, 1, 2, z, y, NULL, NULL, 1, NULL),
                            loss_sum(&bce, 1, 2, z, y, NULL, NULL, 1, NULL), 1e-15);
}

TEST_CASE("step", "optimizer", NULL, NULL);

/* The first step of Adam has the length of the learning rate, against the sign of the gradient. */
TEST(the_first_step_of_adam_has_the_length_of_the_rate)
{
    struct optimizer_options o = optimizer_default(OPTIMIZER_ADAM);
    struct optimizer_step step = {.number = 1, .rate = 0.01};
    float p[] = {1, 1}, g[] = {5, -1e-3f}, m[2] = {0}, v[2] = {0};

    optimizer_apply(&o, &step, 1, 2, p, g, m, v, NULL);
    ck_assert_float_eq_tol(p[0], 0.99f, 1e-6f);
    ck_assert_float_eq_tol(p[1], 1.01f, 1e-6f);
    ck_assert_float_eq_tol(m[0], 0.5f, 1e-6f);
    ck_assert_float_eq_tol(v[0], 0.025f, 1e-8f);
}

TEST(adamw_shrinks_the_parameter_and_adam_adds_to_the_gradient)
{
    struct optimizer_options o = optimizer_default(OPTIMIZER_ADAMW);
    struct optimizer_step step = {.number = 1, .rate = 0.1};
    float p = 2, g = 0, m = 0, v = 0;

    ck_assert_double_eq(o.decay, 0.01);
    optimizer_apply(&o, &step, 1, 1, &p, &g, &m, &v, NULL);
    ck_assert_float_eq_tol(p, 2 * (1 - 0.1f * 0.01f), 1e-6f);
    o = optimizer_default(OPTIMIZER_ADAM);
    o.decay = 0.5;
    p = 2;
    m = v = 0;
    optimizer_apply(&o, &step, 1, 1, &p, &g, &m, &v, NULL);
    ck_assert_float_eq_tol(m, 0.1f, 1e-6f); /* (1 - .9) * .5 * 2 */
    ck_assert_float_eq_tol(p, 1.9f, 1e-5f);
}

TEST(sgd_has_momentum_from_the_second_step_on)
{
    struct optimizer_options o = optimizer_default(OPTIMIZER_SGD);
    struct optimizer_step step = {.number = 1, .rate = 0.1};
    float p = 1, g = 1, m = 123, average = 1; /* the momentum before the first step is ignored */

    o.average = 0.5;
    optimizer_apply(&o, &step, 1, 1, &p, &g, &m, NULL, &average);
    ck_assert_float_eq_tol(p, 0.9f, 1e-6f);
    ck_assert_float_eq_tol(average, 0.95f, 1e-6f);
    step.number = 2;
    optimizer_apply(&o, &step, 1, 1, &p, &g, &m, NULL, &average);
    ck_assert_float_eq_tol(p, 0.9f - 0.1f * 1.9f, 1e-6f);
}

/*
 * Parameters 1, -0.5 and 0.25 after three steps of torch.optim (PyTorch 1.13, float64) with these gradients, weight
 * decay 0.01, momentum 0.9 for SGD, and the default rates of optimizer_default_rate().
 */
static const float gradients[3][3] = {{0.5f, -2, 1e-3f}, {0.25f, 1, -3e-3f}, {-1, 0.125f, 2e-3f}};
static const double by_pytorch[OPTIMIZER_COUNT][3] = {
    [OPTIMIZER_ADAM] = {0.998256598, -0.498557194, 0.247676688},
    [OPTIMIZER_ADAMW] = {0.998244207, -0.498548815, 0.249467925},
    [OPTIMIZER_SGD] = {0.999113922, -0.496577016, 0.249986965},
    [OPTIMIZER_ADAGRAD] = {0.994116945, -0.494981254, 0.233896070},
    [OPTIMIZER_ADADELTA] = {0.999009090, -0.499194626, 0.245350615},
    [OPTIMIZER_RMSPROP] = {0.941351348, -0.450094225, 0.117727564},
};

LOOP_TEST(every_optimizer_moves_as_that_of_pytorch, 0, OPTIMIZER_COUNT)
{
    enum optimizer_kind kind = (enum optimizer_kind)_i;
    struct optimizer_options o = optimizer_default(kind);
    struct optimizer_step step = {.rate = optimizer_default_rate(kind)};
    float p[3] = {1, -0.5f, 0.25f}, m[3] = {0}, v[3] = {0};
    int i;

    o.decay = 0.01;
    for (step.number = 1; step.number <= 3; step.number++)
        optimizer_apply(&o, &step, 1, 3, p, gradients[step.number - 1], m, optimizer_has_moment2(kind) ? v : NULL,
                        NULL);
    for (i = 0; i < 3; i++)
        ck_assert_float_eq_tol(p[i], (float)by_pytorch[kind][i], 1e-6f * fabsf(p[i]));
    ck_assert(fabsf(v[0]) > 0 || !optimizer_has_moment2(kind));
}

TEST(the_norm_shows_values_that_are_not_finite_and_clipping_scales_down)
{
    struct optimizer_step step = {.number = 1, .rate = 1, .clip = 2.5};
    float g[3000] = {[7] = 3, [2999] = 4};

    ck_assert_double_eq(optimizer_norm(g, 3000), 5);
    ck_assert_double_eq(optimizer_clip(&step, 5), 0.5);
    ck_assert_double_eq(optimizer_clip(&step, 2), 1);
    g[1234] = NAN;
    ck_assert(isnan(optimizer_norm(g, 3000)));
}

TEST_CASE("step", "schedule", NULL, NULL);

/* torch.optim.lr_scheduler.ReduceLROnPlateau(factor=0.1, patience=1): bad epochs 2 and 3 in a row reduce. */
TEST(plateau_reduces_when_patience_is_at_an_end)
{
    struct schedule_options o = {.kind = SCHEDULE_PLATEAU, .base = 1, .patience = 1, .factor = 0.1};
    struct schedule s;

    schedule_init(&s, &o);
    ck_assert(!schedule_epoch(&s, 0.5));
    ck_assert(!schedule_epoch(&s, 0.4));
    ck_assert(!schedule_epoch(&s, 0.4)); /* equal is not better: the first bad epoch */
    ck_assert_double_eq(schedule_rate(&s, 10), 1);
    ck_assert(schedule_epoch(&s, 0.39999)); /* better by less than 1e-4 of it: the second */
    ck_assert_double_eq_tol(schedule_rate(&s, 10), 0.1, 1e-15);
    ck_assert(!schedule_epoch(&s, (double)NAN)); /* the count restarts */
    ck_assert(!schedule_epoch(&s, 0.3));
    ck_assert_double_eq_tol(schedule_rate(&s, 10), 0.1, 1e-15);
}

TEST(warm_up_is_linear_and_cosine_ends_at_zero)
{
    struct schedule_options o = {.kind = SCHEDULE_COSINE, .base = 2, .warmup = 4, .steps = 100};
    struct schedule s;

    schedule_init(&s, &o);
    ck_assert_double_eq_tol(schedule_rate(&s, 0), 0.5, 1e-12);
    ck_assert_double_eq_tol(schedule_rate(&s, 50), 1, 1e-12);
    ck_assert_double_eq_tol(schedule_rate(&s, 100), 0, 1e-12);
    ck_assert_double_eq_tol(schedule_rate(&s, 200), 0, 1e-12);
    ck_assert(!schedule_epoch(&s, 1) && !schedule_epoch(&s, 2) && !schedule_epoch(&s, 3));
}
