/*
 * predict_maps.h - the class activation maps of a prediction: files, and the check with random weights
 *
 * Each scored image has one file of numbers, float32 [findings][height][width], and one picture for each finding that
 * is drawn.  A file depends only on its image, the model and the options, not on the order in which images are scored.
 *
 * The check (Adebayo et al., Sanity Checks for Saliency Maps, NeurIPS 2018) scores up to MAP_CHECK_IMAGES images again,
 * after the last block and the linear layer got random weights.  Its result is the mean rank correlation of the maps
 * before and after, over these images: of each finding, and of all.  A value near 1 means that the maps show the image
 * rather than what the network has learnt.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_PREDICT_MAPS_H
#define CHEX_TOOLS_PREDICT_MAPS_H

#include "predict/map_sheet.h"
#include "predict/predict_run.h"

#define PREDICT_MAPS     "maps" /* the folder, in that of the results */
#define MAP_CHECK_IMAGES 64
#define MAP_SCALE        10 /* default */
#define MAP_FILE_NAME    256

/* Images for the check: every one of `count / MAP_CHECK_IMAGES`, by name. */
struct map_check {
    uint8_t *pixels; /* [MAP_CHECK_IMAGES][size][size] */
    float *map;      /* [MAP_CHECK_IMAGES][map_floats] */
    bool taken[MAP_CHECK_IMAGES];
    unsigned images;                 /* that were compared */
    double finding[METRICS_OUTPUTS]; /* means of the correlation over these images; NaN: none */
    double correlation;              /* mean over images and findings */
};

struct map_writer {
    const struct predict_options *options;
    const struct models *models; /* one */
    const struct flags *flags;
    size_t count; /* images of the run */
    bool synthetic;
    struct map_grid grid;
    struct graph_head head;
    struct crop crop;            /* what the network sees of the image */
    bool drawn[METRICS_OUTPUTS]; /* findings of --finding */
    struct folder folder;
    struct canvas canvas;
    struct buffer file;
    struct map_check check;
    struct map_sheets sheets;  /* --sheet */
    uint64_t images, pictures; /* written */
};

/* Check what an option that uses maps needs: a folder, one run, one view.  CHEX_ERR_USAGE */
enum chex_status maps_check_option(const char *option, const struct predict_options *o, struct chex_error *err);
/* Check the options of maps.  CHEX_ERR_USAGE */
enum chex_status maps_check_options(const struct predict_options *o, struct chex_error *err);

/*
 * Create the folder, and remove the maps and the predictions.json of an earlier result (--force).  Zero *out before the
 * call; free it with maps_end(), also after a failure.
 * CHEX_ERR_USAGE        a finding of --finding does not exist; --sheet without labels or thresholds
 * CHEX_ERR_UNSUPPORTED  the network has no maps;  CHEX_ERR_WRITE, CHEX_ERR_MEMORY
 */
enum chex_status maps_begin(const struct predict_options *o, const struct models *models, const struct flags *flags,
                            const struct images *images, bool synthetic, struct map_writer *out,
                            struct chex_error *err);

/*
 * Remove the maps of an earlier result from its folder, and their folder if it has no other file.  CHEX_ERR_WRITE,
 * CHEX_ERR_MEMORY
 */
enum chex_status maps_remove(const struct folder *result, struct chex_error *err);

/*
 * Write the files of an image.  logit, probability: [outputs].  box: [outputs] given boxes to draw, empty ones where
 * there is none; or NULL.  CHEX_ERR_WRITE, CHEX_ERR_MEMORY
 */
enum chex_status maps_write(struct map_writer *w, uint32_t row, const char *name, const uint8_t *pixels,
                            const float *logit, const float *probability, const float *map, const struct map_box *box,
                            struct chex_error *err);

/* Returns the size of the file of numbers of an image. */
uint64_t maps_file_bytes(const struct graph_head *head);
/* Returns whether a finding has a contact sheet: it has a threshold, and --finding does not exclude it. */
bool maps_has_sheet(const struct map_writer *w, unsigned finding);
/* Make the name of its file in PREDICT_MAPS.  CHEX_ERR_MEMORY */
enum chex_status maps_sheet_name(const char *finding, char out[MAP_FILE_NAME], struct chex_error *err);
/* Write the contact sheets (--sheet), after the last image.  CHEX_ERR_WRITE, CHEX_ERR_MEMORY */
enum chex_status maps_write_sheets(struct map_writer *w, struct chex_error *err);

/* Make the check, after the last image.  Changes the weights of the plan.  Errors of the backend, CHEX_ERR_MEMORY */
enum chex_status maps_check(struct map_writer *w, struct chex_error *err);

void maps_end(struct map_writer *w);

#endif
