/*
 * canvas_jpeg.c - JPEG by libjpeg-turbo; see canvas.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "draw/canvas.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#define QUALITY 90
#define PIECE   65536
#define COMMENT 4096 /* bytes of all notes; a JPEG comment has room for 65533 */

/* The first members, where our callbacks find them through libjpeg's pointers. */
struct errors {
    struct jpeg_error_mgr base;
    jmp_buf back;
    struct chex_error *err;
    enum chex_status status;
};

struct file_sink {
    struct jpeg_destination_mgr base;
    struct buffer *out;
    JOCTET piece[PIECE];
};

static void
on_error(j_common_ptr info)
{
    struct errors *e = (struct errors *)info->err;
    char text[JMSG_LENGTH_MAX];

    info->err->format_message(info, text);
    if (e->status == CHEX_OK)
        e->status = error_set(e->err, CHEX_ERR_BUG, "libjpeg: %s", text);
    longjmp(e->back, 1);
}

static void
on_message(j_common_ptr info)
{
    (void)info;
}

static void
sink_begin(j_compress_ptr c)
{
    c->dest->next_output_byte = ((struct file_sink *)c->dest)->piece;
    c->dest->free_in_buffer = PIECE;
}

static void
flush(j_compress_ptr c, size_t size)
{
    struct errors *e = (struct errors *)c->err;
    struct file_sink *s = (struct file_sink *)c->dest;

    e->status = buffer_append(s->out, s->piece, size, e->err);
    if (e->status != CHEX_OK)
        longjmp(e->back, 1);
}

static boolean
sink_full(j_compress_ptr c)
{
    flush(c, PIECE);
    sink_begin(c);
    return TRUE;
}

static void
sink_end(j_compress_ptr c)
{
    flush(c, PIECE - c->dest->free_in_buffer);
}

static void
write_comment(j_compress_ptr c, const struct picture_spec *spec)
{
    char text[COMMENT];
    size_t used = 0, i;

    for (i = 0; i < spec->note_count && used < sizeof(text); i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s: %s", i ? "\n" : "", spec->notes[i].key,
                                 spec->notes[i].text);
    if (used >= sizeof(text))
        used = sizeof(text) - 1;
    jpeg_write_marker(c, JPEG_COM, (const JOCTET *)text, (unsigned)used);
}

/* A function of its own, so that longjmp() cannot clobber local variables. */
static void
encode(j_compress_ptr c, struct errors *e, const struct picture_spec *spec)
{
    int i;

    if (setjmp(e->back))
        return;
    c->image_width = spec->width;
    c->image_height = spec->height;
    c->input_components = (int)spec->channels;
    c->in_color_space = spec->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(c);
    jpeg_set_quality(c, QUALITY, TRUE);
    c->dct_method = JDCT_ISLOW;
    c->optimize_coding = TRUE;
    for (i = 0; i < c->num_components; i++)
        c->comp_info[i].h_samp_factor = c->comp_info[i].v_samp_factor = 1;
    jpeg_start_compress(c, TRUE);
    write_comment(c, spec);
    while (c->next_scanline < c->image_height) {
        JSAMPROW row = (JSAMPROW)(uintptr_t)picture_row(spec, c->next_scanline, e->err);

        if (!row) {
            e->status = e->err->status;
            return;
        }
        jpeg_write_scanlines(c, &row, 1);
    }
    jpeg_finish_compress(c);
}

enum chex_status
picture_jpeg(const struct picture_spec *spec, struct buffer *out, struct chex_error *err)
{
    struct jpeg_compress_struct c;
    struct errors e = {.err = err, .status = CHEX_OK};
    struct file_sink *sink = malloc(sizeof(*sink));

    if (!sink)
        return error_memory(err);
    sink->base = (struct jpeg_destination_mgr){
        .init_destination = sink_begin, .empty_output_buffer = sink_full, .term_destination = sink_end};
    sink->out = out;
    memset(&c, 0, sizeof(c));
    c.err = jpeg_std_error(&e.base);
    e.base.error_exit = on_error;
    e.base.output_message = on_message;
    if (setjmp(e.back) == 0) {
        jpeg_create_compress(&c);
        c.dest = &sink->base;
        encode(&c, &e, spec);
    }
    jpeg_destroy_compress(&c);
    free(sink);
    return e.status;
}
