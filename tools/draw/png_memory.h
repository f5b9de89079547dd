/*
 * png_memory.h - a PNG written by libpng into a growing buffer; the caller writes its content
 *
 *     struct memory_png m;
 *     status = memory_png_begin(&m, out, err);
 *     if (status == CHEX_OK && setjmp(png_jmpbuf(m.png)) == 0)
 *         ... png_set_IHDR(m.png, m.info, ...), png_write_row(m.png, ...), png_write_end(m.png, NULL)
 *     return memory_png_end(&m);
 *
 * setjmp() must stand in a function whose locals are not changed behind it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_PNG_MEMORY_H
#define CHEX_TOOLS_PNG_MEMORY_H

#include "base/memory.h"

#include <png.h>

struct memory_png {
    png_structp png;
    png_infop info;
    struct buffer *out; /* appended to */
    struct chex_error *err;
    enum chex_status status; /* the first failure */
};

enum chex_status memory_png_begin(struct memory_png *m, struct buffer *out, struct chex_error *err);

/* Free libpng's part, also after a failed begin; returns the first failure. */
enum chex_status memory_png_end(struct memory_png *m);

#endif
