/*
 * localization.h - do the maps of a network find the findings?  Shares with intervals, next to simple controls
 *
 * For each box of a list there are the map of its finding in its image, and three controls without a network:
 *
 *     constant   one box for all images: the medians of left, top, width and height over the other boxes
 *                of the finding, as fractions of the image.  Its hottest point is its middle
 *     gauss      a map with its maximum in the middle of the image, and a standard deviation of a quarter of its sides
 *     chance     a map of random cells, uniform and independent, between 0 and 1, on the grid of the network's maps.
 *                Pointing game and mass of chance are not drawn: they are the box's share of the image
 *
 * The value of a measure (boxes.h) is its mean over the boxes of a finding.  That of BOX_FALSE is Wang's average number
 * of false positives: false boxes in the images with a box of this finding, divided by the number of all boxes of the
 * list.  Intervals are percentiles over bootstrap replicates of patients (metrics.h), the same draws for all methods.
 * There is none if all draws are equal, because they then show no variance.
 *
 * A finding with fewer than LOCALIZATION_FEWEST boxes, or with boxes of fewer than METRICS_FEWEST_PATIENTS patients,
 * has no values.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_LOCALIZATION_H
#define CHEX_TRAIN_LOCALIZATION_H

#include "eval/metrics.h"
#include "maps/boxes.h"

#include <stdatomic.h>

#define LOCALIZATION_FEWEST 20 /* as SUBGROUP_FEWEST */

enum box_method { BOX_MAP, BOX_CONSTANT, BOX_GAUSS, BOX_CHANCE, BOX_METHODS };
extern const char *const box_method_names[]; /* "map", "constant", "gauss", "chance", NULL */

/* A given box and its image. */
struct located_box {
    struct map_box box;     /* in pixels of the map, inside of it */
    unsigned height, width; /* of the map */
    unsigned finding;
    uint32_t patient; /* 0 .. patients - 1 */
};

struct localization_input {
    size_t count;
    const struct located_box *box; /* [count] */
    unsigned findings;
    uint32_t patients;
    unsigned cells_high, cells_wide; /* of the network's maps, for chance */

    /* Compute the map of a box: out [height][width].  May be called from several threads at the same time. */
    enum chex_status (*map)(void *context, size_t i, float *out, struct chex_error *err);
    /* Place cells, float [cells_high][cells_wide], in the image of a box, as the network's maps are. */
    void (*spread)(void *context, size_t i, const float *cells, float *out);
    void *context;

    unsigned replicates; /* of the bootstrap */
    uint64_t seed;       /* of its draws, and of chance */
    unsigned threads;
    const atomic_bool *stop; /* a true value ends with CHEX_ERR_STOPPED; may be NULL */
};

/* Of a finding, or the mean over the findings that have values. */
struct localized {
    uint64_t boxes;
    uint32_t patients;
    struct measured value[BOX_METHODS][BOX_MEASURES]; /* NaN: too few boxes; low and high: no interval */
};

struct localization {
    unsigned findings, defined; /* defined: findings that have values */
    struct localized *finding;  /* [findings] */
    struct localized mean;      /* boxes and patients: of all findings */
};

/*
 * Measure all boxes.  The result does not depend on threads.  Release *out with localization_release(), also after a
 * failure.
 * CHEX_ERR_USAGE  no box;  CHEX_ERR_STOPPED, CHEX_ERR_MEMORY, and errors of map()
 */
enum chex_status localization_measure(const struct localization_input *in, struct localization *out,
                                      struct chex_error *err);
void localization_release(struct localization *l);

#endif
