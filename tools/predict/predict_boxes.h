/*
 * predict_boxes.h - compares the maps of a prediction with a list of boxes (box_list.h, localization.h)
 *
 * While images are scored, the maps of the listed findings are kept, as cells.  Afterwards each is spread over its
 * image and compared with the box.  An image of more than BOX_RASTER pixels a side is compared on BOX_RASTER pixels.
 *
 * A box is in pixels of the original image.  A file has them; a data set has only smaller images, so its boxes are
 * taken to be in images of BOX_SIDE x BOX_SIDE pixels, as those of ChestX-ray14 are.  Where each file has its own size,
 * a box that reaches beyond its image is found after scoring: it is left out and counted.
 *
 * The patient of an image, for the bootstrap, follows from its name: NNNNNNNN of NNNNNNNN_NNN.png, or the first folder
 * of a name with folders.  An image with another name counts as a patient.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_PREDICT_BOXES_H
#define CHEX_TOOLS_PREDICT_BOXES_H

#include "eval/localization.h"
#include "io/file.h"
#include "labels/box_list.h"
#include "maps/maps.h"
#include "predict/predict_run.h"

#include <jansson.h>

#define PREDICT_BOXES_CSV  "boxes.csv"
#define PREDICT_BOXES_JSON "boxes.json"

#define BOX_SIDE       1024
#define BOX_RASTER     1024
#define BOX_REPLICATES 1000
#define BOX_SEED       1

/* A listed box whose image is among the images. */
struct kept_box {
    const struct listed_box *listed;
    uint32_t row; /* of the image */
};

struct box_run {
    const struct predict_options *options;
    const struct models *models; /* one */
    const struct images *images;
    struct box_list list;
    struct kept_box *box; /* [count], ordered by row */
    size_t count;
    float *cells; /* [count][head.pixels]: the map of the box's finding */
    struct map_grid grid;
    struct graph_head head;
    struct crop crop; /* what the network sees of an image */
    bool synthetic;   /* a data set or the list was made by chex-synth */

    /* Results: */
    size_t measured, scored, refused; /* boxes; images of these; boxes of refused images */
    size_t outside;                   /* boxes that reach beyond their images */
    struct chex_error first_outside;  /* says where the first of these is */
    struct localization found;
};

/* Check the options about boxes.  CHEX_ERR_USAGE */
enum chex_status boxes_check_options(const struct predict_options *o, struct chex_error *err);

/*
 * Read the list and find its images.  synthetic: a data set is.  Zero *out before the call; free it with boxes_end(),
 * also after a failure.
 * CHEX_ERR_USAGE        no listed image is among the images; a box reaches beyond images of one size; errors of
 *                       box_list_read()
 * CHEX_ERR_UNSUPPORTED  the network has no maps;  CHEX_ERR_MISSING, CHEX_ERR_READ, CHEX_ERR_MEMORY
 */
enum chex_status boxes_begin(const struct predict_options *o, const struct models *models, const struct images *images,
                             bool synthetic, struct box_run *out, struct chex_error *err);
/* Returns the side of all images of the list in pixels, or 0: each file has its own. */
uint32_t boxes_common_side(const struct box_run *b);
/*
 * Set box [outputs] to the given boxes of an image, in pixels of its size x size pixels; those of other findings, and
 * boxes that reach beyond the image, are empty (right = left).  Returns whether there is one.
 */
bool boxes_given(const struct box_run *b, uint32_t row, const struct image_result *image, unsigned size,
                 struct map_box *box);
/* Keep the maps of an image that has boxes.  map: [outputs][head.pixels] */
void boxes_keep(struct box_run *b, uint32_t row, const float *map);
/*
 * Compare, after the last image.  Boxes of refused images, and those that reach beyond their images, are left out; if
 * none is left, there are no values.
 * CHEX_ERR_STOPPED, CHEX_ERR_MEMORY
 */
enum chex_status boxes_measure(struct box_run *b, const struct results *results, unsigned threads,
                               const atomic_bool *stop, struct chex_error *err);
void boxes_end(struct box_run *b);

/* ---- output (box_write.c, box_report.c) -------------------------------------------------------------------------- */

/*
 * Append a line for each finding, measure, threshold and method.  Published values are lines of their own; a synthetic
 * data set has none.  CHEX_ERR_MEMORY
 */
enum chex_status boxes_csv(const struct box_run *b, struct buffer *out, struct chex_error *err);
/* Returns the document (schemas/boxes.schema.json); the caller owns it.  NULL when out of memory. */
json_t *boxes_json(const struct box_run *b);
/* Write both files to the folder of the results, or remove those of an earlier one.  CHEX_ERR_WRITE, CHEX_ERR_MEMORY */
enum chex_status boxes_write(const struct box_run *b, const struct folder *folder, struct chex_error *err);
enum chex_status boxes_remove(const struct folder *folder, struct chex_error *err);

/* Print a table to standard error. */
void boxes_report(const struct box_run *b);

/* A published share of hits or number of false boxes. */
struct published_boxes {
    const char *method, *source;
    unsigned measure; /* enum box_measure, with the step added */
    double value[8];  /* of the first eight findings of ChestX-ray14 */
};
#define PUBLISHED_BOXES 8
extern const struct published_boxes published_boxes[PUBLISHED_BOXES];
/* Returns the value of a finding; NaN: none is published. */
double published_value(const struct published_boxes *p, const char *finding);

#endif
