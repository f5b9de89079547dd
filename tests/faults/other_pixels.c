/*
 * other_pixels.c - a preloaded library that changes a pixel of each PNG that libpng decodes, for check_libraries.py
 *
 * The lowest bit of the first sample of each row is inverted.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

void png_read_row(void *png, uint8_t *row, uint8_t *display);

void
png_read_row(void *png, uint8_t *row, uint8_t *display)
{
    void (*next)(void *, uint8_t *, uint8_t *);
    void *address = dlsym(RTLD_NEXT, "png_read_row");

    memcpy(&next, &address, sizeof(next));
    next(png, row, display);
    row[0] ^= 1;
}
