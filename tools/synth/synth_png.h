/*
 * synth_png.h - encodes a picture as a PNG in memory, in the form of the real files
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_SYNTH_PNG_H
#define CHEX_TOOLS_SYNTH_PNG_H

#include "base/memory.h"
#include "synth/synth_people.h"

/*
 * Encodes pixels[size][size], 0 = black, into out (sets out->size; reuses its memory).  FORM_GRAY8 is IHDR, IDAT of
 * 8192 bytes, IEND, with a filter for each row that depends on key and row.  The other forms contain the same picture.
 * CHEX_ERR_MEMORY, CHEX_ERR_BUG (with libpng's message)
 */
enum chex_status synth_png(const uint8_t *pixels, unsigned size, enum form form, uint64_t key, struct buffer *out,
                           struct chex_error *err);

#endif
