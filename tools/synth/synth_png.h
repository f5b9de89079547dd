/*
 * synth_png.h - a picture as a PNG in memory, in the form of the real files
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_SYNTH_PNG_H
#define CHEX_TOOLS_SYNTH_PNG_H

#include "base/memory.h"
#include "synth/synth_people.h"

/*
 * Encode pixels[size][size], 0 = black, into out (out->size is set; reused).  FORM_GRAY8 is IHDR, IDAT of 8192 bytes,
 * IEND, with a filter for each row that depends on key and row; all other forms hold the same picture.
 * CHEX_ERR_MEMORY, CHEX_ERR_BUG (libpng's own words)
 */
enum chex_status synth_png(const uint8_t *pixels, unsigned size, enum form form, uint64_t key, struct buffer *out,
                           struct chex_error *err);

#endif
