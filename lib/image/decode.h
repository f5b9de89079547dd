/*
 * decode.h - an image file in memory to 8-bit gray, by its first bytes and never by its name
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_DECODE_H
#define CHEX_LIB_DECODE_H

#include "image/image.h"

/* What is kept from image to image: the buffers and tables of png_fast.h.  One a thread. */
struct decoder {
    struct fastpng *png; /* NULL: every PNG goes to libpng */
};

enum chex_status decoder_init(struct decoder *d, struct chex_error *err);
void decoder_release(struct decoder *d); /* a zero-initialised one is allowed */

/*
 * As decode_png() and decode_jpeg(); besides
 * CHEX_ERR_EMPTY      no bytes ("empty file (download interrupted?)")
 * CHEX_ERR_NOT_IMAGE  what it looks like instead: HTML ("the download failed"), a Git LFS pointer, gzip, DICOM, ...
 */
enum chex_status decode_image(struct decoder *d, const uint8_t *data, size_t size, const struct decode_limits *limits,
                              struct image *out, struct image_traits *traits, struct chex_error *err);

#endif
