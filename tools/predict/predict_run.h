/*
 * predict_run.h - decodes the images and scores them with all models
 *
 *     readers (image_reader.h) --- queue ---> decoding threads --- micro-batches ---> this thread: plans of the models
 *
 * Decoding, shrinking and crop are those of a conversion and of an evaluation.  Images are scored in the order of
 * arrival, and each result goes to the place of its name.  A backend's outputs of an image do not depend on the other
 * images of the micro-batch, so no result depends on threads or on the size of a micro-batch.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_PREDICT_RUN_H
#define CHEX_TOOLS_PREDICT_RUN_H

#include "predict/predict_images.h"
#include "predict/predict_model.h"

/* Why an image may not be what the model was trained on.  Bits. */
enum doubt {
    DOUBT_BLANK = 1,    /* fewer than BLANK_LEVELS gray levels between the darkest and the brightest pixel */
    DOUBT_COLOUR = 2,   /* some pixel is coloured; of a JPEG: it has three components */
    DOUBT_ASPECT = 4,   /* one side is more than twice as long as the other */
    DOUBT_SMALL = 8,    /* a side is smaller than the input of the network */
    DOUBT_TURNED = 16,  /* it fits better turned by 90, 180 or 270 degrees (predict_gate.h) */
    DOUBT_INVERTED = 32 /* it fits better inverted */
};
#define DOUBTS       6
#define BLANK_LEVELS 16
extern const char *const doubt_names[DOUBTS]; /* of bit 1 << i */

struct image_result {
    enum chex_status refused; /* CHEX_OK: it was scored */
    unsigned doubts;
    struct gate_result gate; /* GATE_AS_IS: no doubt */
    const char *detail;      /* why it was refused */
    uint32_t width, height;  /* of the decoded file; 0: unknown, an image of a data set */
};

struct results {
    size_t count, members; /* members: models */
    unsigned outputs;
    struct image_result *image; /* [count], in the order of the names */
    float *logit, *probability; /* [members][count][outputs] */
    uint64_t refused, doubtful; /* images; doubtful ones were scored */
    struct arena strings;
    double seconds;
};

struct predict_watch {
    /* done: images scored or refused.  Called by the thread that called predict_run(). */
    void (*tick)(void *context, uint64_t done, uint64_t refused);
    /* Called by any thread, but only one at a time. */
    void (*refuse)(void *context, const char *name, const char *why);
    void (*damaged)(void *context, const char *path, const struct archive_fault *fault);
    /* As mapped() of predict_score.h, after the results of the image are stored; NULL: no maps. */
    enum chex_status (*mapped)(void *context, uint32_t row, const uint8_t *pixels, const float *map,
                               struct chex_error *err);
    void *context;
    const atomic_bool *stop;
};

/*
 * Score all images.  Release *out with results_release(), also after a failure.
 * CHEX_ERR_READ     an image, archive or shard could not be read, also after the retries of file.h
 * CHEX_ERR_STOPPED, CHEX_ERR_MEMORY, errors of image_reader_run() and of the backend
 */
enum chex_status predict_run(const struct predict_options *o, unsigned threads, const struct models *models,
                             struct images *images, const struct predict_watch *watch, struct results *out,
                             struct chex_error *err);
void results_release(struct results *r);

#endif
