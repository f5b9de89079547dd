/*
 * ratio.h - estimates a share or a mean over images, with patients as the sampling units
 *
 * Images of one patient are correlated.  So the standard error of a share (or of a mean, such as the mean age) uses the
 * ratio estimator of cluster sampling (Cochran, Sampling Techniques, 1977, chapter 9A), with patients as clusters:
 * var = K / (K - 1) * sum_k (y_k - p n_k)^2 / N^2.  K is the number of patients, n_k the images of patient k, N the sum
 * of all n_k, y_k the sum over the images of patient k, and p = sum_k y_k / N.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_RATIO_H
#define CHEX_TOOLS_RATIO_H

#include <stdbool.h>
#include <stdint.h>

struct ratio {
    uint64_t clusters; /* patients with at least one image */
    double n, y;       /* number of images; sum of y over all images */
    double nn, yy, yn; /* sums over patients of n_k^2, y_k^2, y_k n_k */
};

/* Add a patient with n > 0 images whose values add up to y. */
void ratio_add(struct ratio *r, double n, double y);
/* Returns y / n, or 0 without images. */
double ratio_value(const struct ratio *r);

/*
 * Returns whether z can compare a and b.  It cannot if the expected y of one of them is below `expected`, because the
 * distribution of z is then far from normal, or if one has a single patient, because its variance is then undefined.
 */
bool ratio_comparable(const struct ratio *a, const struct ratio *b, double expected);
/*
 * Returns the difference b - a in standard errors, which use the pooled p of a and b.  So z is valid even if the share
 * of one is 0.  Returns 0 if ratio_comparable() is false.
 */
double ratio_z(const struct ratio *a, const struct ratio *b, double expected);

/*
 * The 95 % interval of a share: Wilson's score interval (J. Am. Stat. Assoc. 22, 1927, 209-212) for n / deff images.
 * The design effect deff is the variance above divided by the variance of n independent images, at least 1.  If the
 * share is 0 or 1, or all images are of one patient, deff is n / K.
 */
struct share_interval {
    double low, high;
};
struct share_interval ratio_wilson(const struct ratio *r);

#endif
