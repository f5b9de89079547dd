/*
 * png_memory.c - see png_memory.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "draw/png_memory.h"

#include <stdlib.h>

static void
on_error(png_structp png, png_const_charp text)
{
    struct memory_png *m = png_get_error_ptr(png);

    if (m->status == CHEX_OK)
        m->status = error_set(m->err, CHEX_ERR_BUG, "libpng: %s", text);
    png_longjmp(png, 1);
}

static void
on_warning(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

static void
on_write(png_structp png, png_bytep data, size_t size)
{
    struct memory_png *m = png_get_io_ptr(png);

    m->status = buffer_append(m->out, data, size, m->err);
    if (m->status != CHEX_OK)
        png_error(png, "out of memory");
}

static void
on_flush(png_structp png)
{
    (void)png;
}

/* libpng reports a failed allocation in many ways, so record it here. */
static void *
allocate(png_structp png, size_t size)
{
    struct memory_png *m = png_get_mem_ptr(png);
    void *p = malloc(size);

    if (!p && m->status == CHEX_OK)
        m->status = error_memory(m->err);
    return p;
}

static void
release(png_structp png, void *p)
{
    (void)png;
    free(p);
}

enum chex_status
memory_png_begin(struct memory_png *m, struct buffer *out, struct chex_error *err)
{
    *m = (struct memory_png){.out = out, .err = err, .status = CHEX_OK};
    m->png = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, m, on_error, on_warning, m, allocate, release);
    m->info = m->png ? png_create_info_struct(m->png) : NULL;
    if (!m->info)
        return m->status = error_memory(err);
    png_set_write_fn(m->png, m, on_write, on_flush);
    return CHEX_OK;
}

enum chex_status
memory_png_end(struct memory_png *m)
{
    png_destroy_write_struct(&m->png, &m->info);
    return m->status;
}
