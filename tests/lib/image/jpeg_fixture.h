/*
 * jpeg_fixture.h - JPEG files of many forms, written by libjpeg
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TESTS_JPEG_FIXTURE_H
#define CHEX_TESTS_JPEG_FIXTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h>

#define JPEG_WIDTH  37
#define JPEG_HEIGHT 29

struct jpeg_form {
    int components; /* 1 gray, 3 RGB, 4 CMYK */
    bool progressive;
    bool separate_scans; /* a sequential file with one scan per component */
    unsigned restart;    /* MCUs between restart markers, 0 = none */
    bool flat;           /* all samples have the value `colour` */
    uint8_t colour[4];
    const jpeg_scan_info *scans; /* instead of the default scans */
    int scan_count;
};

/* Returns a file in memory from malloc(), with exactly this length. */
uint8_t *jpeg_make(const struct jpeg_form *form, size_t *size);
/* Decodes it with libjpeg and without our callbacks: the reference. */
void jpeg_reference(const uint8_t *data, size_t size, uint8_t gray[JPEG_HEIGHT][JPEG_WIDTH]);

#endif
