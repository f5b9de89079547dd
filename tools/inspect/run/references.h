/*
 * references.h - reads --reference: published results to show next to those of a run
 *
 *     source,split,finding,auroc,n
 *     "Rajpurkar 2017, arXiv 1711.05225",random 70/10/20,mean,0.841,
 *
 * The finding is one of the run, or `mean`, the mean over all findings.  n, the images of the split, may be missing.
 * Rows of one source and split are one reference.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_RUN_REFERENCES_H
#define CHEX_TOOLS_INSPECT_RUN_REFERENCES_H

#include "eval/predictions_read.h"

#define REFERENCES_MOST 12
#define REFERENCE_TEXT  120

struct reference {
    char source[REFERENCE_TEXT], split[REFERENCE_TEXT]; /* escaped */
    uint64_t images;                                    /* 0: not given */
    double auroc[METRICS_OUTPUTS], mean;                /* NaN: not given */
};

struct references {
    unsigned count;
    struct reference of[REFERENCES_MOST];
    uint64_t others; /* rows of findings that the run does not have */
};

/*
 * Read a file.
 * CHEX_ERR_INCOMPATIBLE "PATH:LINE: ...": a column or a text is missing, a number is not allowed, a finding twice, two
 * numbers of images for one split, too many references;  CHEX_ERR_MISSING, CHEX_ERR_READ, CHEX_ERR_MEMORY
 */
enum chex_status references_read(const char *path, const struct predictions *p, struct references *out,
                                 struct chex_error *err);

#endif
