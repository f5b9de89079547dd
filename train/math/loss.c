/*
 * loss.c - see loss.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "math/loss.h"

#include <math.h>
#include <stdbool.h>

const char *const loss_names[] = {[LOSS_BCE] = "bce", [LOSS_FOCAL] = "focal", NULL};

/* log(1 + exp(x)) without overflow. */
static double
softplus(double x)
{
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

double
sigmoid(double x)
{
    return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
}

/*
 * The loss of a positive with logit z is -log p = softplus(-z); the loss of a negative is softplus(z).  So both are one
 * function of t, with t = z for a positive and t = -z for a negative.  The same holds for the focal loss: q^gamma
 * softplus(-t) with q = sigmoid(-t).
 */
static double
loss_of(const struct loss_options *o, double t, double *slope)
{
    double entropy = softplus(-t), q = sigmoid(-t), factor;

    if (o->kind == LOSS_BCE) {
        *slope = -q;
        return entropy;
    }
    factor = pow(q, o->gamma);
    /* The derivative of q by t is -q (1 - q), that of softplus(-t) is -q. */
    *slope = -factor * (o->gamma * (1 - q) * entropy + q);
    return factor * entropy;
}

uint8_t
loss_mixed_label(uint8_t own, uint8_t partner)
{
    if (own == CHEX_LABEL_UNKNOWN || partner == CHEX_LABEL_UNKNOWN)
        return CHEX_LABEL_UNKNOWN;
    return own == partner ? own : own | LABEL_OPPOSED;
}

double
loss_own_share(const struct loss_options *options, double mix)
{
    return 1 - options->smoothing / 2 - mix * (1 - options->smoothing);
}

/* Adds share * (loss of one label with logit z) to *sum, and the derivative by z to *slope. */
static void
add_share(const struct loss_options *o, bool positive, double z, double share, double *sum, double *slope)
{
    double derivative, loss = loss_of(o, positive ? z : -z, &derivative);

    *sum += share * loss;
    *slope += share * (positive ? derivative : -derivative);
}

double
loss_sum(const struct loss_options *options, size_t count, size_t outputs, const float *z, const uint8_t *label,
         const float *weight, const float *mix, double scale, float *gradient)
{
    double sum = 0;
    size_t i, k;

    for (i = 0; i < count; i++) {
        double w = weight ? (double)weight[i] : 1;

        for (k = 0; k < outputs; k++) {
            size_t at = i * outputs + k;
            bool positive = label[at] & 1;
            double own = loss_own_share(options, mix && label[at] & LABEL_OPPOSED ? (double)mix[i] : 0);
            double share[2] = {w * scale, w * scale}, one = 0, slope = 0; /* of a negative, of a positive */

            if (w == 0 || label[at] == CHEX_LABEL_UNKNOWN) {
                if (gradient)
                    gradient[at] = 0;
                continue;
            }
            share[positive] *= own;
            share[!positive] *= 1 - own;
            if (options->positive_weight)
                share[1] *= options->positive_weight[k];
            add_share(options, positive, (double)z[at], share[positive], &one, &slope);
            if (own < 1)
                add_share(options, !positive, (double)z[at], share[!positive], &one, &slope);
            sum += one;
            if (gradient)
                gradient[at] = (float)slope;
        }
    }
    return sum;
}

struct label_count
loss_count(size_t count, size_t outputs, const uint8_t *label, const float *weight)
{
    struct label_count labels = {.all = 0};
    size_t i, k;

    for (i = 0; i < count; i++) {
        if (weight && weight[i] == 0)
            continue;
        labels.all += outputs;
        for (k = 0; k < outputs; k++)
            labels.known += label[i * outputs + k] != CHEX_LABEL_UNKNOWN;
    }
    return labels;
}

double
loss_rescale(struct label_count labels)
{
    return labels.known > 0 ? (double)labels.all / (double)labels.known : 1;
}
