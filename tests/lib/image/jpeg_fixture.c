/*
 * jpeg_fixture.c - see jpeg_fixture.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "jpeg_fixture.h"

#include "image/jpeg_decode.h"

#include <jpeglib.h>
#include <stdlib.h>

static void
sample_row(const struct jpeg_form *form, unsigned y, uint8_t *row)
{
    for (unsigned x = 0; x < JPEG_WIDTH; x++)
        for (int c = 0; c < form->components; c++)
            row[x * (unsigned)form->components + (unsigned)c] = form->flat
                                                                    ? form->colour[c]
                                                                    : (uint8_t)(128 + 60 * ((x / 5 + y / 7) % 2) + x +
                                                                                2 * y * (unsigned)(c + 1));
}

static void
set_scans(struct jpeg_compress_struct *c, const struct jpeg_form *form)
{
    static const jpeg_scan_info separate[] = {{1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};

    if (form->progressive)
        jpeg_simple_progression(c);
    c->restart_interval = form->restart;
    if (form->separate_scans) {
        c->scan_info = separate;
        c->num_scans = 3;
    }
    if (form->scans) {
        c->scan_info = form->scans;
        c->num_scans = form->scan_count;
    }
}

uint8_t *
jpeg_make(const struct jpeg_form *form, size_t *size)
{
    static const J_COLOR_SPACE spaces[] = {[1] = JCS_GRAYSCALE, [3] = JCS_RGB, [4] = JCS_CMYK};
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    unsigned char *data = NULL;
    unsigned long length = 0;

    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &data, &length);
    c.image_width = JPEG_WIDTH;
    c.image_height = JPEG_HEIGHT;
    c.input_components = form->components;
    c.in_color_space = spaces[form->components];
    jpeg_set_defaults(&c);
    set_scans(&c, form);
    jpeg_start_compress(&c, TRUE);
    for (unsigned y = 0; y < JPEG_HEIGHT; y++) {
        uint8_t row[JPEG_WIDTH * 4];
        JSAMPROW rows[] = {row};

        sample_row(form, y, row);
        jpeg_write_scanlines(&c, rows, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    data = realloc(data, length);
    *size = length;
    return data;
}

void
jpeg_reference(const uint8_t *data, size_t size, uint8_t gray[JPEG_HEIGHT][JPEG_WIDTH])
{
    struct jpeg_decompress_struct d;
    struct jpeg_error_mgr errors;

    d.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&d);
    jpeg_mem_src(&d, data, size);
    jpeg_read_header(&d, TRUE);
    d.out_color_space = JCS_GRAYSCALE;
    jpeg_start_decompress(&d);
    while (d.output_scanline < d.output_height) {
        JSAMPROW row = gray[d.output_scanline];

        jpeg_read_scanlines(&d, &row, 1);
    }
    jpeg_finish_decompress(&d);
    jpeg_destroy_decompress(&d);
}
