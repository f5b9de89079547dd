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

double
loss_sum(const struct loss_options *options, size_t count, size_t outputs, const float *z, const uint8_t *label,
         const float *weight, double scale, float *gradient)
{
    double sum = 0;
    size_t i, k;

    for (i = 0; i < count; i++) {
        double w = weight ? (double)weight[i] : 1;

        for (k = 0; k < outputs; k++) {
            size_t at = i * outputs + k;
            bool positive = label[at] != 0;
            double factor = w * scale, slope;

            if (w == 0 || label[at] == CHEX_LABEL_UNKNOWN) {
                if (gradient)
                    gradient[at] = 0;
                continue;
            }
            if (positive && options->positive_weight)
                factor *= options->positive_weight[k];
            sum += factor * loss_of(options, positive ? (double)z[at] : -(double)z[at], &slope);
            if (gradient)
                gradient[at] = (float)(factor * (positive ? slope : -slope));
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
