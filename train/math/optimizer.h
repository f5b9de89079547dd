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

enum optimizer_kind { OPTIMIZER_ADAM, OPTIMIZER_ADAMW, OPTIMIZER_SGD, OPTIMIZER_COUNT };
extern const char *const optimizer_names[];

struct optimizer_options {
    enum optimizer_kind kind;
    double beta1, beta2, epsilon; /* Adam and AdamW: 0.9, 0.999, 1e-8 */
    double momentum;              /* SGD: 0.9 */
    double decay;                 /* weight decay */
    double average;               /* decay of the moving average of the parameters, if one is kept: 0.999 */
};

/* Returns PyTorch's defaults for this kind; for SGD also momentum 0.9, which has no such default in torch.optim. */
struct optimizer_options optimizer_default(enum optimizer_kind kind);

/* The inputs that change in each step. */
struct optimizer_step {
    uint64_t number; /* 1 for the first */
    double rate;     /* learning rate */
    double clip;     /* scales gradients with a larger norm down to it; 0: off */
};

/*
 * Apply one step to `count` floats.  SGD does not use moment2; average may be NULL.  The gradients are first multiplied
 * by `scale` (clipping).
 */
void optimizer_apply(const struct optimizer_options *o, const struct optimizer_step *step, double scale, size_t count,
                     float *restrict parameter, const float *restrict gradient, float *restrict moment1,
                     float *restrict moment2, float *restrict average);

/* Returns the 2-norm, summed in double in a fixed order; not finite if a value is not finite. */
double optimizer_norm(const float *gradient, size_t count);

/* Returns the factor for clipping: 1, or clip / norm. */
double optimizer_clip(const struct optimizer_step *step, double norm);

#endif
