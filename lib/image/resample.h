/*
 * resample.h - change the size of a gray image
 *
 *   bilinear  Pillow's resize(size, BILINEAR) to the last bit: a triangle filter whose support grows with the
 *             reduction (it averages, unlike OpenCV's), coefficients in 22-bit fixed point, horizontal pass first,
 *             rounded to 8 bits between the passes.  torchvision's Resize on a PIL image is the same.  (Pillow 13
 *             does the vertical pass first if the height shrinks much more than the width; this code never does.)
 *   lanczos   Pillow's resize(size, LANCZOS), a = 3, also to the last bit.
 *   area      the mean of the source area that an output pixel covers, exact in integers, rounded half up.
 *   none      a copy; the sizes must be equal.
 *
 * The bytes do not depend on compiler, CPU or thread count.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_RESAMPLE_H
#define CHEX_LIB_RESAMPLE_H

#include "image/image.h"
#include "kernels/resample_axis.h"

extern const char *const resample_names[]; /* of enum resample_method: "bilinear" ..., NULL */

/*
 * Coefficients and scratch rows, kept from image to image: most images of a data set have one size, so the tables
 * are computed once.  One per thread.  Zero-initialise; release with resampler_release().
 */
struct resampler {
    enum resample_method method;
    struct resample_axis *horizontal, *vertical; /* tables of the last sizes, or NULL */
    struct buffer scratch;
    const struct convolve_kind *kind; /* NULL: the best of this CPU; tests set others (convolve.h) */
};

void resampler_release(struct resampler *r);

/*
 * Shrink or enlarge in (any size from 1x1) to width x height.
 * out      width * height bytes of the caller, row-major without gaps, fully written on success
 * Returns CHEX_OK, CHEX_ERR_MEMORY, or CHEX_ERR_LIMIT for `none` with another size ("1024x768 is not 256x256").
 */
enum chex_status resampler_run(struct resampler *r, enum resample_method method, const struct image *in, uint32_t width,
                               uint32_t height, uint8_t *out, struct chex_error *err);

#endif
