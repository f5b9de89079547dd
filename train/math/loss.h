/*
 * loss.h - binary cross entropy with logits over the findings, and its gradient
 *
 * For a logit z and a label y, with p = sigmoid(z):
 *     bce    -(w y log p + (1 - y) log(1 - p)),  w: positive weight of the finding (torch.nn.BCEWithLogitsLoss)
 *     focal  as bce, with factors (1 - p)^gamma and p^gamma (Lin et al., ICCV 2017, without alpha)
 * The functions use log-sum-exp forms in double, which do not overflow.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_LOSS_H
#define CHEX_TRAIN_LOSS_H

#include <stddef.h>
#include <stdint.h>

enum loss_kind { LOSS_BCE, LOSS_FOCAL };
extern const char *const loss_names[]; /* NULL-terminated, like all arrays of names */

struct loss_options {
    enum loss_kind kind;
    double gamma;                  /* LOSS_FOCAL; 2 in the paper */
    const double *positive_weight; /* [outputs]; NULL: all 1.  Must outlive its users */
};

double sigmoid(double x);

/*
 * Returns the sum of weight[i] * scale * loss(z[i][o], label[i][o]), and sets gradient[i][o] to its derivative by
 * z[i][o].  z, gradient [count][outputs]; gradient may be NULL
 * label        [count][outputs], 0 or 1
 * weight       [count], NULL: all 1
 * An image of weight 0 contributes nothing, even if its logits are not finite.
 */
double loss_sum(const struct loss_options *options, size_t count, size_t outputs, const float *z, const uint8_t *label,
                const float *weight, double scale, float *gradient);

#endif
