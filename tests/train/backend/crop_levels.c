/*
 * crop_levels.c - writes the gray levels that a network gets from an image; check_crop.py calls it
 *
 *     crop-levels SOURCE SIDE X Y FLIP DEGREES GAIN <pixels >levels
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "backend/crop.h"

#include <stdio.h>
#include <stdlib.h>

int
main(int argc, char **argv)
{
    unsigned source = argc == 8 ? (unsigned)atoi(argv[1]) : 0, side = argc == 8 ? (unsigned)atoi(argv[2]) : 0, x, y;
    uint8_t *pixels = malloc((size_t)source * source + 1);
    struct crop crop;

    if (!pixels || source == 0 || fread(pixels, source, source, stdin) != source) {
        fprintf(stderr, "crop-levels SOURCE SIDE X Y FLIP DEGREES GAIN <pixels >levels\n");
        return 1;
    }
    crop = (struct crop){.x = (uint16_t)atoi(argv[3]), .y = (uint16_t)atoi(argv[4]), .flip = atoi(argv[5]) != 0};
    if (atof(argv[6]) != 0)
        crop_rotate(&crop, atof(argv[6]));
    crop.gain = atoi(argv[7]);
    for (y = 0; y < side; y++) {
        struct crop_row row;

        crop_row_start(&row, &crop, pixels, source, side, y);
        for (x = 0; x < side; x++)
            putchar(crop_level(&row, x));
    }
    free(pixels);
    return fflush(stdout) == 0 ? 0 : 1;
}
