/*
 * loss.h - binary cross entropy with logits over the findings, and its gradient
 *
 * For a logit z and a label y, with p = sigmoid(z):
 *     bce    -(w y log p + (1 - y) log(1 - p)),  w: positive weight of the finding (torch.nn.BCEWithLogitsLoss)
 *     focal  as bce, with factors (1 - p)^gamma and p^gamma (Lin et al., ICCV 2017, without alpha)
 * Label smoothing with X replaces a known label y by the target y (1 - X) + X / 2.  The loss of a label is then a
 * mixture of its own loss, with the share 1 - X / 2 (loss_own_share()), and of that of the opposite label.
 * Mix-up adds a partner to each image (batch.h).  A label has the bit LABEL_OPPOSED if that of the partner is the
 * opposite one.  The target is then (1 - mix) y + mix (1 - y), mix: share of the partner; smoothing is applied to it.
 * The functions use log-sum-exp forms in double, which do not overflow.
 *
 * The loss of a step is the mean over its known labels, of all micro-batches and all ranks.  A rank does not know how
 * many labels of the other ranks are known, so a step computes with scale = 1 / labels.  The known labels are counted
 * and summed over the ranks together with the gradients, and then loss and gradients are multiplied by loss_rescale().
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_LOSS_H
#define CHEX_TRAIN_LOSS_H

#include "chex.h" /* CHEX_LABEL_UNKNOWN */

#include <stddef.h>
#include <stdint.h>

enum loss_kind { LOSS_BCE, LOSS_FOCAL };
extern const char *const loss_names[]; /* NULL-terminated, like all arrays of names */

struct loss_options {
    enum loss_kind kind;
    double gamma;                  /* LOSS_FOCAL; 2 in the paper */
    const double *positive_weight; /* [outputs]; NULL: all 1.  Must outlive its users */
    double smoothing;              /* X, from 0 to below 1 */
};

#define LABEL_OPPOSED 2 /* a bit of a label: 2 or 3 */

/* Returns the label of an image that is mixed with a partner; own, partner: 0, 1 or CHEX_LABEL_UNKNOWN. */
uint8_t loss_mixed_label(uint8_t own, uint8_t partner);

/*
 * Returns the share of a label's own loss: 1 - smoothing / 2 - mix (1 - smoothing).  Exactly 1 without smoothing and
 * mix.  mix: the share of a partner with the opposite label, otherwise 0
 */
double loss_own_share(const struct loss_options *options, double mix);

double sigmoid(double x);

/*
 * Returns the sum of weight[i] * scale * loss(z[i][o], label[i][o]), smoothed, and sets gradient[i][o] to its
 * derivative by z[i][o].  z, gradient [count][outputs]; gradient may be NULL
 * label        [count][outputs], 0, 1, these with LABEL_OPPOSED, or CHEX_LABEL_UNKNOWN
 * weight       [count], NULL: all 1
 * mix          [count], shares of the partners, from 0 to 1; NULL: all 0
 * An image of weight 0 and an unknown label contribute nothing, even if their logits are not finite: the gradient is 0.
 */
double loss_sum(const struct loss_options *options, size_t count, size_t outputs, const float *z, const uint8_t *label,
                const float *weight, const float *mix, double scale, float *gradient);

/* Labels of the images with a weight other than 0. */
struct label_count {
    uint64_t all, known;
};

/* Counts the labels of a micro-batch; label and weight as above. */
struct label_count loss_count(size_t count, size_t outputs, const uint8_t *label, const float *weight);

/*
 * Returns the factor that turns a sum over the known labels with scale 1 / all into their mean: all / known.  Exactly 1
 * if all labels are known.  Also 1 if none is known: the sum and its gradient are 0 then.
 */
double loss_rescale(struct label_count labels);

#endif
