/*
 * decode.h - decodes an image file in memory to 8-bit gray; its first bytes decide the format, never its name
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_DECODE_H
#define CHEX_LIB_DECODE_H

#include "image/image.h"

/* Buffers and tables of png_fast.h that are kept from image to image.  One per thread. */
struct decoder {
    struct fastpng *png; /* NULL: libpng decodes every PNG */
};

enum chex_status decoder_init(struct decoder *d, struct chex_error *err);
/* Add the CPU seconds of undoing the row filters of PNGs to *unfilter from now on. */
void decoder_measure(struct decoder *d, double *unfilter);
void decoder_release(struct decoder *d); /* a zero-initialised one is allowed */

/*
 * Returns the errors of decode_png() and decode_jpeg(), and also
 * CHEX_ERR_EMPTY      no bytes ("empty file (download interrupted?)")
 * CHEX_ERR_NOT_IMAGE  what it looks like instead: HTML ("the download failed"), a Git LFS pointer, gzip, DICOM, ...
 */
enum chex_status decode_image(struct decoder *d, const uint8_t *data, size_t size, const struct decode_limits *limits,
                              struct image *out, struct image_traits *traits, struct chex_error *err);

/* What decode_image() takes and returns. */
struct decode_job {
    struct decoder *decoder; /* one per job */
    struct image_file file;
    struct image *out;
    struct image_traits traits;
    enum chex_status status;
    struct chex_error err; /* if status is not CHEX_OK */
};

/* Decode two images in less time than one after the other.  The results are those of two calls of decode_image(). */
void decode_two(struct decode_job job[2], const struct decode_limits *limits);

#endif
