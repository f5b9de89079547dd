/*
 * optimizer.h - optimizers on plain arrays, with the semantics of torch.optim
 *
 *     Adam      g += decay * p;  m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
 *               p -= lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + epsilon)
 *     AdamW     p -= lr * decay * p first, and no decay in g
 *     SGD       g += decay * p;  m = momentum * m + g (m = g in the first step);  p -= lr * m
 *     Adagrad   g += decay * p;  m += g^2;  p -= lr * g / (sqrt(m) + epsilon)
 *     Adadelta  g += decay * p;  m = b2 m + (1 - b2) g^2;  d = sqrt(v + epsilon) / sqrt(m + epsilon) * g
 *               v = b2 v + (1 - b2) d^2;  p -= lr * d
 *     RMSprop   g += decay * p;  m = b2 m + (1 - b2) g^2;  p -= lr * g / (sqrt(m) + epsilon)
 *
 * m is moment1, v is moment2.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_OPTIMIZER_H
#define CHEX_TRAIN_OPTIMIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Checkpoints contain the numbers. */
enum optimizer_kind {
    OPTIMIZER_ADAM,
    OPTIMIZER_ADAMW,
    OPTIMIZER_SGD,
    OPTIMIZER_ADAGRAD,
    OPTIMIZER_ADADELTA,
    OPTIMIZER_RMSPROP,
    OPTIMIZER_COUNT
};
extern const char *const optimizer_names[];

struct optimizer_options {
    enum optimizer_kind kind;
    double beta1;    /* Adam and AdamW: 0.9 */
    double beta2;    /* Adam and AdamW: 0.999; rho of Adadelta: 0.9; alpha of RMSprop: 0.99 */
    double epsilon;  /* 1e-8; Adagrad: 1e-10; Adadelta: 1e-6 */
    double momentum; /* SGD: 0.9 */
    double decay;    /* weight decay */
    double average;  /* decay of the moving average of the parameters, if one is kept: 0.999 */
};

/* Returns PyTorch's defaults for this kind; for SGD also momentum 0.9, which has no such default in torch.optim. */
struct optimizer_options optimizer_default(enum optimizer_kind kind);

/* Returns true for Adam and AdamW: their rate depends on the number of the step. */
bool optimizer_is_adam(enum optimizer_kind kind);

/* Returns true if the optimizer has a second moment. */
bool optimizer_has_moment2(enum optimizer_kind kind);

/* Returns PyTorch's default learning rate; 1e-3 for SGD, which has none. */
double optimizer_default_rate(enum optimizer_kind kind);

/* The inputs that change in each step. */
struct optimizer_step {
    uint64_t number; /* 1 for the first */
    double rate;     /* learning rate */
    double clip;     /* scales gradients with a larger norm down to it; 0: off */
};

/*
 * Apply one step to `count` floats.  moment2 may be NULL if the optimizer has none; so may average.  The gradients are
 * first multiplied by `scale` (clipping).
 */
void optimizer_apply(const struct optimizer_options *o, const struct optimizer_step *step, double scale, size_t count,
                     float *restrict parameter, const float *restrict gradient, float *restrict moment1,
                     float *restrict moment2, float *restrict average);

/* Returns the 2-norm, summed in double in a fixed order; not finite if a value is not finite. */
double optimizer_norm(const float *gradient, size_t count);

/* Returns the factor for clipping: 1, or clip / norm. */
double optimizer_clip(const struct optimizer_step *step, double norm);

#endif
