/*
 * png_memory.h - writes a PNG with libpng into a growing buffer; the caller writes the content
 *
 *     struct memory_png m;
 *     status = memory_png_begin(&m, out, err);
 *     if (status == CHEX_OK && setjmp(png_jmpbuf(m.png)) == 0)
 *         ... png_set_IHDR(m.png, m.info, ...), png_write_row(m.png, ...), png_write_end(m.png, NULL)
 *     return memory_png_end(&m);
 *
 * The function that calls setjmp() must not change local variables after the call.
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
    struct buffer *out; /* the file is appended here */
    struct chex_error *err;
    enum chex_status status; /* the first failure */
};

enum chex_status memory_png_begin(struct memory_png *m, struct buffer *out, struct chex_error *err);

/* Frees libpng's structures, also after a failed begin; returns the first failure. */
enum chex_status memory_png_end(struct memory_png *m);

#endif
