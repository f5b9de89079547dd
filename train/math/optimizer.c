/*
 * optimizer.c - see optimizer.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "math/optimizer.h"

#include <math.h>
#include <stddef.h>

const char *const optimizer_names[] = {[OPTIMIZER_ADAM] = "adam",
                                       [OPTIMIZER_ADAMW] = "adamw",
                                       [OPTIMIZER_SGD] = "sgd",
                                       [OPTIMIZER_ADAGRAD] = "adagrad",
                                       [OPTIMIZER_ADADELTA] = "adadelta",
                                       [OPTIMIZER_RMSPROP] = "rmsprop",
                                       NULL};

/* The defaults of torch.optim; the rate of SGD and its momentum are ours. */
static const struct {
    double rate, beta2, epsilon;
} defaults[OPTIMIZER_COUNT] = {
    [OPTIMIZER_ADAM] = {1e-3, 0.999, 1e-8},  [OPTIMIZER_ADAMW] = {1e-3, 0.999, 1e-8},
    [OPTIMIZER_SGD] = {1e-3, 0, 0},          [OPTIMIZER_ADAGRAD] = {1e-2, 0, 1e-10},
    [OPTIMIZER_ADADELTA] = {1.0, 0.9, 1e-6}, [OPTIMIZER_RMSPROP] = {1e-2, 0.99, 1e-8},
};

struct optimizer_options
optimizer_default(enum optimizer_kind kind)
{
    return (struct optimizer_options){
        .kind = kind,
        .beta1 = 0.9,
        .beta2 = defaults[kind].beta2,
        .epsilon = defaults[kind].epsilon,
        .momentum = 0.9,
        .decay = kind == OPTIMIZER_ADAMW ? 0.01 : 0,
        .average = 0.999,
    };
}

bool
optimizer_is_adam(enum optimizer_kind kind)
{
    return kind == OPTIMIZER_ADAM || kind == OPTIMIZER_ADAMW;
}

bool
optimizer_has_moment2(enum optimizer_kind kind)
{
    return optimizer_is_adam(kind) || kind == OPTIMIZER_ADADELTA;
}

double
optimizer_default_rate(enum optimizer_kind kind)
{
    return defaults[kind].rate;
}

static void
apply_adam(const struct optimizer_options *o, const struct optimizer_step *step, double scale, size_t count,
           float *restrict p, const float *restrict gradient, float *restrict m, float *restrict v)
{
    double t = (double)step->number, correct1 = 1 - pow(o->beta1, t), correct2 = sqrt(1 - pow(o->beta2, t));
    float b1 = (float)o->beta1, c1 = (float)(1 - o->beta1), b2 = (float)o->beta2, c2 = (float)(1 - o->beta2);
    float rate = (float)(step->rate / correct1), root = (float)(1 / correct2), epsilon = (float)o->epsilon;
    float shrink = o->kind == OPTIMIZER_ADAMW ? (float)(1 - step->rate * o->decay) : 1;
    float decay = o->kind == OPTIMIZER_ADAM ? (float)o->decay : 0, factor = (float)scale;
    size_t i;

    for (i = 0; i < count; i++) {
        float x = p[i] * shrink, g = gradient[i] * factor + decay * p[i];

        m[i] = b1 * m[i] + c1 * g;
        v[i] = b2 * v[i] + c2 * (g * g);
        p[i] = x - rate * m[i] / (sqrtf(v[i]) * root + epsilon);
    }
}

static void
apply_sgd(const struct optimizer_options *o, const struct optimizer_step *step, double scale, size_t count,
          float *restrict p, const float *restrict gradient, float *restrict m)
{
    float momentum = step->number == 1 ? 0 : (float)o->momentum, decay = (float)o->decay, factor = (float)scale;
    float rate = (float)step->rate;
    size_t i;

    for (i = 0; i < count; i++) {
        m[i] = momentum * m[i] + (gradient[i] * factor + decay * p[i]);
        p[i] -= rate * m[i];
    }
}

/* Adagrad sums the squares, RMSprop averages them. */
static void
apply_squares(const struct optimizer_options *o, const struct optimizer_step *step, double scale, size_t count,
              float *restrict p, const float *restrict gradient, float *restrict m)
{
    bool sums = o->kind == OPTIMIZER_ADAGRAD;
    float keep = sums ? 1 : (float)o->beta2, take = sums ? 1 : (float)(1 - o->beta2), epsilon = (float)o->epsilon;
    float decay = (float)o->decay, factor = (float)scale, rate = (float)step->rate;
    size_t i;

    for (i = 0; i < count; i++) {
        float g = gradient[i] * factor + decay * p[i];

        m[i] = keep * m[i] + take * (g * g);
        p[i] -= rate * g / (sqrtf(m[i]) + epsilon);
    }
}

static void
apply_adadelta(const struct optimizer_options *o, const struct optimizer_step *step, double scale, size_t count,
               float *restrict p, const float *restrict gradient, float *restrict m, float *restrict v)
{
    float keep = (float)o->beta2, take = (float)(1 - o->beta2), epsilon = (float)o->epsilon;
    float decay = (float)o->decay, factor = (float)scale, rate = (float)step->rate;
    size_t i;

    for (i = 0; i < count; i++) {
        float g = gradient[i] * factor + decay * p[i], change;

        m[i] = keep * m[i] + take * (g * g);
        change = sqrtf(v[i] + epsilon) / sqrtf(m[i] + epsilon) * g;
        v[i] = keep * v[i] + take * (change * change);
        p[i] -= rate * change;
    }
}

void
optimizer_apply(const struct optimizer_options *o, const struct optimizer_step *step, double scale, size_t count,
                float *restrict parameter, const float *restrict gradient, float *restrict moment1,
                float *restrict moment2, float *restrict average)
{
    float keep = (float)o->average, take = (float)(1 - o->average);
    size_t i;

    if (optimizer_is_adam(o->kind))
        apply_adam(o, step, scale, count, parameter, gradient, moment1, moment2);
    else if (o->kind == OPTIMIZER_SGD)
        apply_sgd(o, step, scale, count, parameter, gradient, moment1);
    else if (o->kind == OPTIMIZER_ADADELTA)
        apply_adadelta(o, step, scale, count, parameter, gradient, moment1, moment2);
    else
        apply_squares(o, step, scale, count, parameter, gradient, moment1);
    for (i = 0; average && i < count; i++)
        average[i] = keep * average[i] + take * parameter[i];
}

double
optimizer_norm(const float *gradient, size_t count)
{
    double sum = 0;
    size_t at, i;

    /* Sum in chunks, so that the inner loop has no long dependency chain and every build sums in the same order. */
    for (at = 0; at < count; at += 1024) {
        size_t end = count - at < 1024 ? count : at + 1024;
        double part[8] = {0};

        for (i = at; i < end; i++)
            part[i & 7] += (double)gradient[i] * (double)gradient[i];
        sum += ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
    }
    return sqrt(sum);
}

double
optimizer_clip(const struct optimizer_step *step, double norm)
{
    return step->clip > 0 && norm > step->clip ? step->clip / norm : 1;
}
