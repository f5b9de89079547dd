/*
 * inspect_source.h - what --source found, between its looking and its words
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_SOURCE_H
#define CHEX_TOOLS_INSPECT_SOURCE_H

#include "inspect.h"
#include "preflight.h"

/* What is wrong with one image, or nothing. */
enum source_fault {
    SOURCE_GOOD,
    SOURCE_EMPTY,      /* no bytes */
    SOURCE_SHORT,      /* begins like an image, but its end is lacking */
    SOURCE_TYPE,       /* no PNG and no JPEG */
    SOURCE_UNREADABLE, /* may not be opened, or reading fails */
    SOURCE_MISSING,    /* a row without an image */
    SOURCE_EXTRA,      /* an image without a row: no fault */
    SOURCE_ROW,        /* a row that cannot be used */
    SOURCE_FAULTS
};

struct source_look {
    uint8_t fault;      /* enum source_fault */
    bool misnamed;      /* a JPEG named .png or the other way round: it is taken by its content */
    const char *detail; /* of SOURCE_TYPE, constant */
};

struct source_check {
    struct inspect *in;
    struct labels labels;
    struct source source;
    struct preflight preflight;
    struct chex_error labels_err, source_err; /* status CHEX_OK where they could be read */
    struct source_look *look;                 /* [source.count] */
    bool *missing;                            /* [labels.count] */
    uint64_t count[SOURCE_FAULTS], misnamed, bytes;
};

const char *source_fault_name(enum source_fault fault);
bool source_check_good(const struct source_check *c);
void source_report(struct source_check *c);

#endif
