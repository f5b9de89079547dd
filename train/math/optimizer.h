/*
 * optimizer.h - Adam, AdamW and SGD on plain arrays, with the semantics of torch.optim
 *
 *     Adam    g += decay * p;  m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
 *             p -= lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + epsilon)
 *     AdamW   p -= lr * decay * p first, and no decay in g
 *     SGD     g += decay * p;  m = momentum * m + g (m = g in the first step);  p -= lr * m
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_OPTIMIZER_H
#define CHEX_TRAIN_OPTIMIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum optimizer_kind { OPTIMIZER_ADAM, OPTIMIZER_ADAMW, OPTIMIZER_SGD };
extern const char *const optimizer_names[];

struct optimizer_options {
    enum optimizer_kind kind;
    double beta1, beta2, epsilon; /* Adam and AdamW: 0.9, 0.999, 1e-8 */
    double momentum;              /* SGD: 0.9 */
    double decay;                 /* weight decay */
    double average;               /* decay of the moving average of the parameters, where one is kept: 0.999 */
};

/* PyTorch's defaults for this kind (SGD with momentum 0.9, which torch.optim leaves to the user). */
struct optimizer_options optimizer_default(enum optimizer_kind kind);

/* What changes from step to step. */
struct optimizer_step {
    uint64_t number; /* 1 for the first */
    double rate;     /* learning rate */
    double clip;     /* gradients whose norm is larger are scaled down to it; 0: never */
};

/*
 * One step over count floats.  gradient is read only; moment2 is not touched by SGD, average may be NULL.  scale
 * multiplies the gradients first (clipping).
 */
void optimizer_apply(const struct optimizer_options *o, const struct optimizer_step *step, double scale, size_t count,
                     float *restrict parameter, const float *restrict gradient, float *restrict moment1,
                     float *restrict moment2, float *restrict average);

/* The 2-norm, summed in double in a fixed order; not finite where a value is not. */
double optimizer_norm(const float *gradient, size_t count);

/* The factor that clipping asks for: 1, or clip / norm. */
double optimizer_clip(const struct optimizer_step *step, double norm);

#endif
