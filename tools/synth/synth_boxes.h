/*
 * synth_boxes.h - boxes around the drawn findings of the test images, as BBox_List_2017.csv has them
 *
 * The box of a finding surrounds the pixels of the canvas that its drawing changed by at least a quarter of its
 * greatest change; the box of Cardiomegaly surrounds the heart.  As in the real list, an image has at most one box for
 * a finding.  So a finding that is drawn in several places, such as an effusion on both sides, has none.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_SYNTH_BOXES_H
#define CHEX_TOOLS_SYNTH_BOXES_H

#include "synth/synth_scene.h"

#define SYNTH_BOXES "BBox_List_2017.csv"

/* A box of a test image, in pixels of its file; x and y are those of the top left corner. */
struct synth_box {
    uint32_t study;
    enum finding finding; /* the drawing */
    double x, y, width, height;
};

/* The boxes of all images; boxes_add() needs a lock around it.  Zero it before use. */
struct synth_boxes {
    struct synth_box *box;
    size_t count, capacity;
};

/* The part of the film that a finding covers: from -1 to 1 if the zoom is 1. */
struct film_box {
    float left, right, top, bottom;
};

/* Records what each finding of one image changes.  The caller sets `findings` to 0 for each image. */
struct finding_boxes {
    float before[CANVAS][CANVAS];    /* the density before the current finding */
    struct film_box box[HERNIA + 1]; /* by drawing */
    unsigned findings;               /* a bit for each drawing that has a box */
};

/* Call these around the drawing of a finding; `places`: into how many places it was drawn. */
void boxes_begin(struct finding_boxes *b, const struct film_canvas *c);
void boxes_end(struct finding_boxes *b, const struct film_canvas *c, const struct scene *s, enum finding finding,
               unsigned places);
/* Records the box of the heart. */
void boxes_heart(struct finding_boxes *b, const struct scene *s);

/* Add the boxes of an image of size x size pixels, cut at its borders.  CHEX_ERR_MEMORY */
enum chex_status boxes_add(struct synth_boxes *all, const struct finding_boxes *b, const struct scene *s,
                           uint32_t study, unsigned size, struct chex_error *err);
/* Append the list in NIH's form, ordered by finding and image; sorts the boxes.  CHEX_ERR_MEMORY */
enum chex_status boxes_csv(struct synth_boxes *all, const struct population *p, struct buffer *out,
                           struct chex_error *err);
void boxes_release(struct synth_boxes *all);

#endif
