/*
 * ratio.h - a share or a mean over images, whose patients are the draws
 *
 * Images of one patient are alike and no independent draws.  So the standard error of a share (or of a mean, such as
 * that of the age) is that of a ratio over patients, var = K / (K - 1) * sum_k (y_k - p n_k)^2 / N^2, for K patients
 * with n_k images each, N in all, y_k the sum over those of patient k (the ratio estimator of cluster sampling:
 * Cochran, Sampling Techniques, 1977, chapter 9A).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_RATIO_H
#define CHEX_TOOLS_RATIO_H

#include <stdbool.h>
#include <stdint.h>

struct ratio {
    uint64_t clusters; /* patients with an image */
    double n, y;       /* images; sum over them */
    double nn, yy, yn; /* sums over patients of n_k^2, y_k^2, y_k n_k */
};

/* One patient's n images, above 0, over which the sum is y. */
void ratio_add(struct ratio *r, double n, double y);
/* y / n, or 0 where there is no image. */
double ratio_value(const struct ratio *r);

/*
 * Can a and b be compared?  Not if fewer than `expected` of y would be expected in one of them, because z is then far
 * from normal; and not if one has a single patient, because it then has no variance.
 */
bool ratio_comparable(const struct ratio *a, const struct ratio *b, double expected);
/*
 * The difference b - a in standard errors, each that of p in both together: good even where no image of one has it.
 * 0 if they cannot be compared.
 */
double ratio_z(const struct ratio *a, const struct ratio *b, double expected);

/*
 * The 95 % interval of a share: Wilson's score interval (J. Am. Stat. Assoc. 22, 1927, 209-212) for n / deff images.
 * The design effect deff is the variance above by that of n independent images, and at least 1; where no image or every
 * one has it, or all are of one patient, deff is n / K.
 */
struct share_interval {
    double low, high;
};
struct share_interval ratio_wilson(const struct ratio *r);

#endif
