/*
 * diff.h - compares two data sets for `diff`
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_INSPECT_DIFF_H
#define CHEX_TOOLS_INSPECT_DIFF_H

#include "inspect/inspect.h"

enum diff_kind {
    DIFF_SPEC, /* a line of the specification; the other kinds concern one image */
    DIFF_ONLY_A,
    DIFF_ONLY_B,
    DIFF_SPLIT,
    DIFF_LABELS,
    DIFF_PATIENT,
    DIFF_AGE,
    DIFF_SEX,
    DIFF_VIEW,
    DIFF_PIXELS,
    DIFF_PLACE, /* same split, but another shard or index */
    DIFF_KINDS
};

struct diff_item {
    const char *name, *patient, *view;
    const uint8_t *label;
    float age;
    uint32_t shard, index;
    uint8_t split;
    char sex;
    uint8_t hash[WALK_HASH_HEAD];
};

struct diff_side {
    struct target target;
    struct diff_item *item; /* sorted by name */
    size_t count;
    uint64_t faults;
    bool read_failed;
    struct arena strings;
};

/* Called for one difference: name is a field or an image, a and b are the values on both sides. */
typedef void diff_fn(void *context, enum diff_kind kind, const char *name, const char *a, const char *b);

struct diff {
    struct inspect *in;
    struct diff_side side[2];
    bool same_shards; /* the manifests have equal shards, so no record was read */
    bool pixels;      /* pixels were compared: the images have equal sizes */
    uint64_t count[DIFF_KINDS];
    uint64_t both;                                     /* images on both sides */
    uint64_t moved[16][16];                            /* [split of A][split of B] */
    int finding_of_b[FINDINGS_MAX];                    /* index in the list of B of each finding of A, or -1 */
    uint64_t gained[FINDINGS_MAX], lost[FINDINGS_MAX]; /* from A to B, over images on both sides; index in A */
};

/* Returns the name of a kind in JSON and CSV. */
const char *diff_kind_name(enum diff_kind kind);
/* Call fn for every difference: first the specification, then the images by name. */
void diff_walk(struct diff *d, diff_fn *fn, void *context);
bool diff_is_same(const struct diff *d);

/* Compare two checkpoints (checkpoint.c).  Returns the exit code. */
int inspect_checkpoint_diff(struct inspect *in, const struct target *a, const struct target *b);

/* Print one line that explains the exit status if -q suppresses the table; for data sets and checkpoints. */
void inspect_report_difference(const struct inspect *in, const char *a, const char *b);

/* Formats a struct diff. */
extern const struct inspect_result diff_result;

#endif
