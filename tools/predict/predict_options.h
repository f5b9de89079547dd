/*
 * predict_options.h - the command line of chex-predict
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_PREDICT_OPTIONS_H
#define CHEX_TOOLS_PREDICT_OPTIONS_H

#include "backend/backend.h"
#include "base/part.h"
#include "common/cli.h"
#include "eval/evaluate.h"
#include "image/resample.h"

/* What to do with a DICOM file: the format of a message with its name as a word of the shell. */
#define DICOM_HINT "convert it first (DCMTK): dcmj2pnm --write-16-bit-png --min-max-window %s IMAGE.png"

struct predict_options {
    /* RUNs and PATHs, as given; predict_sort_operands() tells them apart. */
    const char **operand;
    size_t operands, operand_capacity;
    const char **run, **path; /* into `operand` */
    size_t runs, paths;

    const char *out; /* folder; NULL: standard output */
    bool force;      /* replace an earlier result in it */
    bool break_lock; /* take over the folder of a dead process */
    bool strict;     /* refuse doubtful images */
    const char *split;
    uint64_t max_pixels; /* of an image; larger ones are refused */
    unsigned name_parts; /* components of the path in a name */
    struct part part;

    const char *threshold; /* "youden", "sens90" or a file; NULL: youden */
    unsigned size;         /* side of the images that are shrunk; 0: from the run */
    int resize;            /* enum resample_method; -1: from the run */
    enum tta tta;
    bool maps;                /* write class activation maps, see predict_maps.h */
    const char *map_findings; /* draw those of these findings; NULL: those with a flag */
    bool map_sheet;           /* with labels: contact sheets of hits, false alarms and misses */
    unsigned map_scale;       /* logits at the strongest colour; 0: MAP_SCALE */
    const char *boxes;        /* list of boxes to compare maps with, see predict_boxes.h; NULL: none */
    unsigned box_size;        /* side of the images of its boxes; 0: of each file, or BOX_SIDE */

    const char *export; /* file for the model as ONNX, instead of scores; NULL: none */

    const char *device;
    enum precision precision;
    unsigned micro_batch; /* 0: the default of the device */
};

extern const struct cli_program predict_program;

struct predict_options predict_options_default(void);
void predict_options_release(struct predict_options *o);

/*
 * Tell the operands apart: a RUN is a folder with run.json or best.safetensors, or a file whose name ends with
 * .safetensors.  All other operands are PATHs.
 * CHEX_ERR_USAGE         there is no RUN, or no PATH; with --export not one RUN alone, or an output folder
 * CHEX_ERR_INCOMPATIBLE  a PATH is a DICOM file: the text has the command that converts it
 */
enum chex_status predict_sort_operands(struct predict_options *o, struct chex_error *err);

#endif
