/*
 * boxes.h - how well a map finds a box that a radiologist has drawn
 *
 * A map is float [height][width], row by row.  Pixel i covers the coordinates i to i + 1.
 *
 * The boxes that a map finds are those of Wang et al., ChestX-ray8, CVPR 2017 (arXiv 1705.02315): scale the map to 0 to
 * 255, keep the pixels that reach 60, and those that reach 180; each region of pixels that are connected through their
 * edges gives its bounding box.  The given box is hit if its overlap with one of these boxes is above a threshold.
 *
 *     IoU    area of the intersection / area of the union
 *     IoBB   area of the intersection / area of the found box
 *     false boxes   found boxes whose IoBB is not above the threshold
 *
 * Two measures need no threshold:
 *
 *     pointing game   is the hottest pixel inside of the box?  Zhang et al., Top-down Neural Attention, ECCV 2016
 *     mass            share of the positive values of the map that is inside of the box
 *
 * A constant map points nowhere and finds no box.  Values that are not finite are left out of all measures.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_BOXES_H
#define CHEX_TRAIN_BOXES_H

#include "base/error.h"

struct map_box {
    double left, top, right, bottom; /* left < right, top < bottom */
};

#define BOX_IOU_STEPS  7
#define BOX_IOBB_STEPS 5
/* Wang's thresholds, of his tables 7, and 4 and 19. */
extern const double box_iou_at[BOX_IOU_STEPS], box_iobb_at[BOX_IOBB_STEPS];

/* His two cuts of a map that is scaled to 0 to 255. */
#define REGION_CUTS 2
extern const double region_cuts[REGION_CUTS];

/* The measures of one map and one box: 0 or 1, except BOX_MASS and the counts at BOX_FALSE. */
enum box_measure {
    BOX_POINT,
    BOX_MASS,
    BOX_IOU,                               /* one for each of box_iou_at */
    BOX_IOBB = BOX_IOU + BOX_IOU_STEPS,    /* one for each of box_iobb_at */
    BOX_FALSE = BOX_IOBB + BOX_IOBB_STEPS, /* false boxes, one for each of box_iobb_at */
    BOX_MEASURES = BOX_FALSE + BOX_IOBB_STEPS
};

/* The boxes that a map finds: those of the lower cut first, each in the order of its first pixel.  Zero it before use;
 * it is reused from map to map. */
struct map_regions {
    struct map_box *box;
    size_t count, capacity;

    /* Internal: */
    struct map_region *region;
    size_t regions, region_capacity;
    struct map_run *run; /* of the previous row and the current one, [2 * width] */
    unsigned width;
};

double box_iou(const struct map_box *given, const struct map_box *found);
double box_iobb(const struct map_box *given, const struct map_box *found);

/* Find the range of the finite values.  Returns false if no two of them differ. */
bool map_range(const float *map, size_t count, float *least, float *most);
/* Find the boxes of a map.  CHEX_ERR_MEMORY */
enum chex_status map_regions_find(struct map_regions *r, const float *map, unsigned height, unsigned width,
                                  struct chex_error *err);
void map_regions_release(struct map_regions *r);

/*
 * Set *x and *y to the middle of the hottest pixel.  Outside of its outermost cells a map is constant, so a row may
 * have many hottest pixels: of equal ones, that nearest to the middle of the map is used, then the first one.  Returns
 * false for a constant map.
 */
bool map_hottest(const float *map, unsigned height, unsigned width, double *x, double *y);

/* Set the measures of found boxes: all from BOX_IOU on. */
void box_measure_regions(const struct map_box *given, const struct map_box *found, size_t count,
                         double value[BOX_MEASURES]);
/* Set all measures of a map; *r is overwritten.  CHEX_ERR_MEMORY */
enum chex_status box_measure_map(const struct map_box *given, const float *map, unsigned height, unsigned width,
                                 struct map_regions *r, double value[BOX_MEASURES], struct chex_error *err);

#endif
