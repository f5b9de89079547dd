/*
 * map_sheet.h - contact sheets of maps: for each finding the hits, false alarms and misses
 *
 * The labels come from the records of data sets.  A hit is a positive image with a flag, a false alarm a negative one
 * with a flag, a miss a positive one without.  Each row shows up to SHEET_TILES images, hits and false alarms by
 * falling probability, misses by rising probability.  So the choice does not depend on the order of scoring.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_MAP_SHEET_H
#define CHEX_TOOLS_MAP_SHEET_H

#include "predict/map_picture.h"
#include "predict/predict_flags.h"
#include "predict/predict_images.h"

#define SHEET_TILES 6
enum sheet_row { SHEET_HIT, SHEET_ALARM, SHEET_MISS, SHEET_ROWS };

/* An image that may be shown.  pixels NULL: none. */
struct sheet_tile {
    uint32_t image;
    double probability;
    const char *name;
    uint8_t *pixels; /* [size][size] */
    float *map;      /* [height][width] */
};

struct map_sheet {
    struct sheet_tile tile[SHEET_ROWS][SHEET_TILES]; /* the first ones first */
    uint64_t count[SHEET_ROWS], labelled;            /* images */
};

struct map_sheets {
    const struct flags *flags;
    const uint8_t **label; /* [images] of the record, NULL: none */
    unsigned *column;      /* [images][outputs] index in it, UINT_MAX: the data set has no such finding */
    unsigned outputs;
    size_t pixels, cells;
    struct map_sheet *sheet; /* [outputs] */
};

/*
 * Find the labels of the images.  Zero *out before the call; release it also after a failure.
 * CHEX_ERR_USAGE  no image has a label, or no finding has a threshold;  CHEX_ERR_MEMORY
 */
enum chex_status sheets_begin(const struct images *images, const struct findings *findings, const struct flags *flags,
                              size_t pixels, size_t cells, struct map_sheets *out, struct chex_error *err);
void sheets_release(struct map_sheets *s);

/* Count the output of an image for finding k, and keep the image if it may be shown.  CHEX_ERR_MEMORY */
enum chex_status sheets_add(struct map_sheets *s, uint32_t image, unsigned k, const char *name, double probability,
                            const uint8_t *pixels, const float *map, struct chex_error *err);

/*
 * Append the PNG of finding k.  base: a picture without image and map, which gives all else.  The finding has a
 * threshold.  CHEX_ERR_MEMORY
 */
enum chex_status sheets_draw(const struct map_sheets *s, unsigned k, const struct map_picture *base,
                             struct canvas *canvas, struct buffer *out, struct chex_error *err);

#endif
