/*
 * inspect_diff.h - what --diff found, between its computation and its words
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_DIFF_H
#define CHEX_TOOLS_INSPECT_DIFF_H

#include "inspect/inspect.h"

enum diff_kind {
    DIFF_SPEC, /* a line of the specification; the others are about one image */
    DIFF_ONLY_A,
    DIFF_ONLY_B,
    DIFF_SPLIT,
    DIFF_LABELS,
    DIFF_PATIENT,
    DIFF_AGE,
    DIFF_SEX,
    DIFF_VIEW,
    DIFF_PIXELS,
    DIFF_PLACE, /* another shard or place in it, in the same split */
    DIFF_KINDS
};

struct diff_item {
    const char *name, *patient, *view;
    float age;
    uint32_t shard, index;
    uint16_t findings;
    uint8_t split;
    char sex;
    uint8_t hash[WALK_HASH_HEAD];
};

struct diff_side {
    struct target target;
    struct diff_item *item; /* by name */
    size_t count;
    uint64_t faults;
    bool read_failed;
    struct arena strings;
};

/* One difference: what it is called (a field or an image's name), and how it is here and there. */
typedef void diff_fn(void *context, enum diff_kind kind, const char *name, const char *a, const char *b);

struct diff {
    struct inspect *in;
    struct diff_side side[2];
    bool same_shards; /* the manifests say that the records are the same: nothing was read */
    bool pixels;      /* they could be compared: the images have one size */
    uint64_t count[DIFF_KINDS];
    uint64_t both;                                       /* images on both sides */
    uint64_t moved[16][16];                              /* from a split of A to one of B */
    uint64_t gained[CHEX_FINDINGS], lost[CHEX_FINDINGS]; /* of images on both sides, from A to B */
};

/* Name of a kind, as in JSON and CSV. */
const char *diff_kind_name(enum diff_kind kind);
/* Call fn for every difference, the specification first, then by name. */
void diff_walk(struct diff *d, diff_fn *fn, void *context);
bool diff_is_same(const struct diff *d);

/* One line for the exit status where -q takes the table away, of data sets and of checkpoints. */
void inspect_report_difference(const struct inspect *in, const char *a, const char *b);

/* Its result is a struct diff. */
extern const struct inspect_result diff_result;

#endif
