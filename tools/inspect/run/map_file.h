/*
 * map_file.h - reads --maps: the folder of a result of chex-predict --maps, of the weights of the run
 *
 * Its predictions.csv names the images.  Maps of none of the report's images are refused; if some are of other images,
 * the page says so.
 *
 * Its predictions.json has the rank correlation of the maps with those of random weights, and with --boxes how well the
 * maps find boxes, next to controls without a network (eval/localization.h).  With --sheet, the folder has contact
 * sheets: PNG files of images with their maps.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_RUN_MAP_FILE_H
#define CHEX_TOOLS_INSPECT_RUN_MAP_FILE_H

#include "base/memory.h"
#include "eval/localization.h"
#include "eval/predictions_read.h"

#define MAP_FILE_SHEETS (64u << 20) /* bytes of all contact sheets of a page; the others are left out */

/* The measures that the report shows; all others are in boxes.csv. */
#define MAP_FILE_MEASURES 4
extern const struct map_file_measure {
    const char *name, *key; /* key: in predictions.json */
    double threshold;       /* NaN: none */
} map_file_measures[MAP_FILE_MEASURES];

/* The boxes of a finding, or of all. */
struct map_boxes {
    uint64_t boxes; /* 0: none */
    bool enough;    /* for values */
    struct measured value[MAP_FILE_MEASURES][BOX_METHODS];
};

struct map_finding {
    double correlation; /* mean over images; NaN: none */
    struct map_boxes boxes;
    uint64_t hits, false_alarms, misses; /* counts of the sheet */
    struct buffer sheet;                 /* PNG; empty: none */
    unsigned width, height;              /* of the sheet */
};

struct map_file {
    uint64_t images;      /* with maps */
    uint64_t covered;     /* images of the report with a map; images - covered: maps of other images */
    char split[64];       /* of chex-predict; "": all images of its paths */
    uint64_t part, parts; /* parts: at most 1 without --part */
    uint64_t compared;    /* images of the correlation */
    double correlation;   /* mean over images and findings; NaN: none */
    bool synthetic;       /* images */
    uint64_t box_images;  /* images with a box; 0: no boxes */
    bool box_synthetic;   /* images, or the list */
    unsigned sheets_left; /* sheets that are too large for a page */
    struct map_finding finding[METRICS_OUTPUTS];
    struct map_boxes mean; /* over the findings with values; boxes: of these findings; 0: fewer than two of them */
    unsigned measured;     /* findings with values */
};

/*
 * Read the result in a folder.  p: the predictions of the report; sha256: of its weights.  Zero *out before the call;
 * release it with map_file_release(), also after a failure.
 * CHEX_ERR_INCOMPATIBLE  maps of other weights, of several models or of other images, no maps, no result of
 *                        chex-predict
 * CHEX_ERR_MISSING, CHEX_ERR_READ, CHEX_ERR_MEMORY
 */
enum chex_status map_file_read(const char *folder, const struct predictions *p, const char *sha256,
                               struct map_file *out, struct chex_error *err);
void map_file_release(struct map_file *m);

#endif
