/*
 * gate.h - does an image fit better turned or inverted: a mean image and the principal components of val
 *
 * An image is shrunk to 32 x 32, and its values are shifted and scaled to mean 0 and norm 1.  Its fit is the norm of
 * what remains after the mean image and the projections on the components are subtracted: 0 is a perfect fit.  The same
 * is computed for the image turned by 90, 180 and 270 degrees, and inverted.  If one of these fits better, the image
 * probably has another orientation than those of the training, or black and white are swapped.
 *
 * This does not test whether an image is a chest X-ray: a gray ramp, or a chest at twice the size, may fit well.
 *
 * The model stores 16-bit numbers, and every check uses these, so the result does not depend on where they were
 * computed.  All sums are in double, in a fixed order.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TRAIN_GATE_H
#define CHEX_TRAIN_GATE_H

#include "base/json.h"
#include "chex.h"
#include "image/resample.h"

#define GATE_SIDE       32
#define GATE_PIXELS     (GATE_SIDE * GATE_SIDE)
#define GATE_COMPONENTS 24
#define GATE_ROWS       (1 + GATE_COMPONENTS) /* the mean image, then the components */
#define GATE_FEWEST     50                    /* images for a fit */
#define GATE_MOST       4096                  /* a fit of more takes every k-th */

struct gate {
    bool there;
    uint64_t images; /* of the fit */
    double scale[GATE_ROWS];
    int16_t value[GATE_ROWS][GATE_PIXELS]; /* times scale */
};

/* Changes of an image that may fit better: its turns, then the turns of the inverted image.  Degrees are clockwise. */
enum gate_change {
    GATE_AS_IS,
    GATE_90,
    GATE_180,
    GATE_270,
    GATE_INVERTED,
    GATE_INVERTED_90,
    GATE_INVERTED_180,
    GATE_INVERTED_270,
    GATE_CHANGES
};
extern const char *const gate_change_names[]; /* "turned by 90 degrees" */

struct gate_result {
    enum gate_change change; /* the one with the best fit */
    double fit, better;      /* as it is, and with this change */
};

/*
 * Fit to images [count][GATE_PIXELS].  Images of one gray level are left out.  out->there is false if fewer than
 * GATE_FEWEST remain.  CHEX_ERR_MEMORY
 */
enum chex_status gate_fit(const uint8_t *images, size_t count, struct gate *out, struct chex_error *err);

/* Shrink an image of side x side pixels, side at least GATE_SIDE, to out [GATE_PIXELS].  CHEX_ERR_MEMORY */
enum chex_status gate_shrink(struct resampler *r, const uint8_t *pixels, unsigned side, uint8_t *out,
                             struct chex_error *err);

bool gate_change_turns(enum gate_change change);
bool gate_change_inverts(enum gate_change change);

/* Check an image [GATE_PIXELS].  An image of one gray level has the result GATE_AS_IS. */
struct gate_result gate_check(const struct gate *g, const uint8_t *image);

/* Returns an object, or null if there is no gate; NULL when out of memory.  The values are base64, little-endian. */
json_t *gate_json(const struct gate *g);
/* Read it; missing or null: there is no gate.  Returns false if it is not such an object. */
bool gate_parse(const json_t *object, struct gate *out);

#endif
