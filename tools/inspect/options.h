/*
 * options.h - the values of the options of chex-inspect
 *
 * Each command has its own option table.  One struct has the values of the options of all commands.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_OPTIONS_H
#define CHEX_TOOLS_INSPECT_OPTIONS_H

#include "common/cli.h"
#include "common/table_writer.h"
#include "dataset/where.h"
#include "verify/verify.h"

enum inspect_action {
    INSPECT_DESCRIBE,
    INSPECT_VERIFY,
    INSPECT_LIST,
    INSPECT_TRAINED, /* list --trained-on */
    INSPECT_EXTRACT,
    INSPECT_LABELS,
    INSPECT_SPLIT,
    INSPECT_SHEET,
    INSPECT_SHOW,
    INSPECT_REPORT,
    INSPECT_DIFF,
    INSPECT_SOURCE,
    INSPECT_SCALING
};

struct inspect_options {
    enum inspect_action action;
    const char *which; /* extract, show: the image, NAME or SHARD:INDEX */

    /* check */
    bool depth_given;
    enum verify_depth depth;
    bool sha256;
    bool near;               /* with --leaks */
    const char *certificate; /* --near: the file to write, or NULL */
    double sample_percent;

    /* list, labels, sheet: the selection */
    const char *split; /* only this one, or NULL */
    struct where where;
    const char *fields;     /* list */
    bool padding;           /* list: records of weight 0 too */
    const char *trained_on; /* list: the folder of a run, or NULL */

    /* sheet; 0: not given */
    unsigned first, random; /* how many images */
    unsigned columns;
    uint64_t seed;
    bool seed_given;

    const char *title;    /* sheet, report: printable ASCII, or NULL */
    const char *data;     /* report of a run: its data set, or NULL */
    const char *groups;   /* report of a run: a CSV file, or NULL */
    const char *output;   /* sheet, report, extract, scaling */
    const char *protocol; /* show; or NULL */
    enum table_format format;

    const char *maps;      /* report of a run: the folder of chex-predict --maps, or NULL */
    const char *reference; /* report of a run: a CSV file; scaling: a name; or NULL */

    /* scaling */
    bool force;
    unsigned predict, node; /* ranks; 0: not given */
    int network;            /* enum scale_link; -1: not given */

    /* source */
    const char *labels;
    const struct label_kind *label_kind; /* NULL: the header decides */
    struct label_kind *label_columns;    /* --columns, or NULL; owned */
    uint64_t max_memory;                 /* 0: the default */
    const char **input;                  /* this list and the next are owned, their texts are not */
    size_t input_count, input_capacity;
    const char **path;
    size_t path_count, path_capacity;
};

#endif
