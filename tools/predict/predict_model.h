/*
 * predict_model.h - the models of a prediction: files of chex-train, and the plans of a backend that compute them
 *
 * models_read() reads and compares the files; models_open() then opens the device and creates a plan for each model.
 * All models have the same findings and are for images of the same size, shrunk in the same way.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_PREDICT_MODEL_H
#define CHEX_TOOLS_PREDICT_MODEL_H

#include "checkpoint/checkpoint.h"
#include "data/fold.h"
#include "dataset/findings.h"
#include "dataset/record.h"
#include "eval/operating.h"
#include "predict/predict_options.h"

struct predict_model {
    char *path;       /* of the file */
    const char *file; /* its name, in path */
    char sha256[DIGEST_HEX];
    struct checkpoint_state state; /* leaky: also if run.json marks the run */
    struct findings findings;
    struct operating operating;
    bool has_run;                    /* there is a run.json next to the file */
    unsigned size;                   /* side of the images of its data set; 0: unknown */
    int resize;                      /* enum resample_method of its data set; -1: unknown */
    char split[RECORD_MAX_TEXT + 1]; /* of its data set that it was trained on: "train" */
    char fold[FOLD_TEXT];            /* "2/3": its run divided train and val again; "": it did not */
    struct graph *graph;
    float *params, *stats;
    struct plan *plan;
    struct plan_facts facts;
};

struct models {
    struct predict_model *model; /* [count], in the order of the command line */
    size_t count;
    unsigned outputs;
    unsigned size; /* of the images */
    enum resample_method resize;
    bool resize_assumed;   /* neither the option nor run.json names the method */
    bool leaky;            /* one of them is */
    const char *short_run; /* of the first short run, or "" */

    const struct backend *backend;
    struct device *device;
    unsigned batch;                                /* images of a micro-batch */
    void (*note)(void *context, const char *text); /* set before models_open(), or NULL: about the choice of a device */
    void *context;
};

/*
 * Read the models of o->run.  With o->export the size of the images may be unknown: 0.  Zero *out before the call; free
 * it with models_release(), also after a failure.
 * CHEX_ERR_MISSING       a file or run does not exist, or a run has no best model yet
 * CHEX_ERR_INCOMPATIBLE  not a model of chex-train, or damaged; the models have other findings or image sizes
 * CHEX_ERR_USAGE         the size of the images is unknown, or smaller than the network's input
 * CHEX_ERR_READ, CHEX_ERR_MEMORY
 */
enum chex_status models_read(const struct predict_options *o, struct models *out, struct chex_error *err);

/* Open the device and make the plans.  Errors of device_choose() and of plan_new() */
enum chex_status models_open(const struct predict_options *o, unsigned threads, struct models *m,
                             struct chex_error *err);
void models_release(struct models *m);

#endif
