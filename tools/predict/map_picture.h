/*
 * map_picture.h - draws a class activation map over its image
 *
 * Orange raises the logit, blue lowers it; the stronger the colour, the larger the value.  All pictures of a run have
 * one scale, so they may be compared.  Only the part of the image that the network saw is coloured.
 *
 * A picture with a given box (--boxes) also has, as white lines, the borders of the regions that are compared with it:
 * those where the map reaches one of region_cuts (maps/boxes.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_MAP_PICTURE_H
#define CHEX_TOOLS_MAP_PICTURE_H

#include "draw/canvas.h"
#include "eval/evaluate.h"
#include "maps/boxes.h"
#include "maps/maps.h"

struct map_picture {
    const struct map_grid *grid;
    const float *map;      /* [height][width] of the grid */
    const uint8_t *pixels; /* [size][size] */
    unsigned size;
    struct crop crop; /* the part that the network saw: side x side pixels */
    unsigned side;
    unsigned scale; /* the strongest colours are at -scale and +scale, in logits */
    bool synthetic;
    const struct map_box *box; /* of the list, in pixels of the size x size image; NULL: none */

    const char *image, *finding;
    double probability, threshold; /* threshold: NaN: none */
    const char *chosen_on;         /* the split that the threshold was chosen on, or NULL */
    double logit, bias;
};

/*
 * Append the PNG to out.  canvas: zero-initialised, reused by later pictures, released with canvas_release().
 * CHEX_ERR_MEMORY
 */
enum chex_status map_picture_draw(const struct map_picture *p, struct canvas *canvas, struct buffer *out,
                                  struct chex_error *err);

/* ---- parts, also of a contact sheet ---- */

#define MAP_LEGEND_HEIGHT 30u

/* Draw the image, enlarged by a whole number, under its map.  CHEX_ERR_MEMORY */
enum chex_status map_picture_place(const struct map_picture *p, struct canvas *canvas, unsigned left, unsigned top,
                                   unsigned times, struct chex_error *err);
/* Draw the legend, and below it "research use only" and whether the data are synthetic: two lines. */
void map_picture_foot(const struct map_picture *p, struct canvas *canvas, unsigned left, unsigned top, unsigned width);
/* Append the canvas as PNG, with these texts as metadata. */
enum chex_status map_picture_encode(const struct map_picture *p, const struct canvas *canvas, struct buffer *out,
                                    struct chex_error *err);

#endif
