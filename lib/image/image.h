/*
 * image.h - an 8-bit gray image, and the facts that decoding found
 *
 * A decoder (png_decode.h or jpeg_decode.h, chosen by decode.h) converts a file in memory to such an image; resample.h
 * shrinks it.
 *
 * Conversion to 8-bit gray, in this order (a change of any step needs a new IMAGE_GRAY_RULE):
 *   1. palette, 1-, 2- and 4-bit samples are expanded to 8 bits (v * 255 / max); tRNS becomes alpha
 *   2. 16-bit samples are scaled to 8 bits, (v * 255 + 32767) / 65535
 *   3. R, G, B become luma of BT.601 in the fixed point of Pillow's convert("L"):
 *      (19595 R + 38470 G + 7471 B + 32768) >> 16, which is the identity for R = G = B
 *   4. alpha a below 255 is composited on black: (v * a + 127) / 255
 * The gray of a JPEG is its Y channel.  gAMA, sRGB, iCCP, EXIF orientation and all other ancillary data are ignored, as
 * in Pillow.  So the values are those of published preprocessing pipelines.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_IMAGE_H
#define CHEX_LIB_IMAGE_H

#include "base/memory.h"

#include <stdatomic.h>

#define IMAGE_GRAY_RULE "gray8-1" /* the name of these steps in manifests */

struct image {
    uint32_t width, height;
    size_t stride;        /* bytes from one row to the next, >= width */
    uint8_t *data;        /* points into pixels.data */
    struct buffer pixels; /* owned; reused from image to image */
};

/* Set the size, make room (checked), stride = width.  The content is undefined. */
enum chex_status image_resize_buffer(struct image *image, uint32_t width, uint32_t height, struct chex_error *err);
void image_release(struct image *image);

/* An encoded image in memory; not owned. */
struct image_file {
    const uint8_t *data;
    size_t size;
};

enum image_container { IMAGE_PNG, IMAGE_JPEG };

/* Facts about one decoded file, for the counts in the summary. */
struct image_traits {
    enum image_container container;
    unsigned bit_depth; /* as stored */
    unsigned channels;  /* as stored: 1 gray or palette, 2 gray + alpha, 3, 4 */
    bool palette;
    bool interlaced;   /* or a progressive JPEG */
    bool colour;       /* some pixel has unequal R, G, B (JPEG: three components): suspicious in an X-ray */
    bool transparent;  /* some pixel had alpha below 255 and was composited */
    bool animated;     /* an APNG: the first frame was taken */
    bool fast;         /* png_fast.h decoded it */
    unsigned warnings; /* damage outside the pixels: bad checksum of an ancillary chunk, surplus data */
};

struct decode_limits {
    uint64_t max_pixels;     /* limit of width * height; above it CHEX_ERR_LIMIT, before any allocation */
    uint32_t min_side;       /* if width or height is smaller: CHEX_ERR_LIMIT */
    bool lenient;            /* keep an image with all its pixels, even if the end of the file is missing */
    const atomic_bool *stop; /* may be NULL; when set, decoding ends within a fraction of a second: CHEX_ERR_STOPPED */
};

/* CHEX_ERR_LIMIT with a text ("100000x100000 exceeds --max-pixels 64M") or CHEX_OK. */
enum chex_status decode_limits_check(const struct decode_limits *limits, uint32_t width, uint32_t height,
                                     struct chex_error *err);

#endif
