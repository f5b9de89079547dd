/*
 * split.h - assigns images to splits such as train, val and test
 *
 *   official           test: test_list.txt; train and val: the patients of train_val_list.txt, a tenth of them val
 *   patient:A,B,C[:S]  percentages of patients in train, val, test (integers, sum 100), seed S, default 0
 *   file:PATH          a CSV with a header: `Image Index` or `Patient ID`, and `split`
 *   none               one split, "all"
 *
 * Splits are by patient.  Let u be the first 8 bytes, big-endian, of SHA-256("chex-split:SEED:PATIENT") as a fraction
 * of 2^64.  A patient is in train if u < A/100, in val if u < (A+B)/100, otherwise in test.  So the split depends only
 * on the seed and the patient, not on the order of the CSV or on other images, and Python's hashlib can compute it.
 * For `official`, a patient is in val if u < 0.1 with seed 0.
 *
 * A patient in two splits is an error: the most common mistake with this data set.  With allow_leak, such patients are
 * counted.  An image in two splits is always an error.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_LIB_SPLIT_H
#define CHEX_LIB_SPLIT_H

#include "dataset/format.h"
#include "labels/label_file.h"
#include "labels/notes.h"

#define SPLIT_OUTSIDE    0xff
#define SPLIT_LIST_TRAIN "train_val_list.txt"
#define SPLIT_LIST_TEST  "test_list.txt"

enum split_kind { SPLIT_OFFICIAL, SPLIT_PATIENT, SPLIT_FILE, SPLIT_NONE };

struct split_given;

struct split_rule {
    enum split_kind kind;
    unsigned percent[3]; /* patient: */
    uint64_t seed;       /* patient: */
    bool allow_leak;     /* official, file: a patient may be in two splits */
    char path[4096];     /* file: the file; official: the folder of the two lists (plain or .gz) */
    /* official, file: if not NULL, the split that each entry has in the data set at `path`, instead of files. */
    const struct split_given *given;
};

/* Assigned splits. */
struct split_given {
    unsigned count;
    const char *name[SPLIT_MAX];
    uint8_t *of_entry; /* [labels->count] index of the name, or SPLIT_OUTSIDE */
};

/* Parse the text of --split.  The text of CHEX_ERR_USAGE lists the valid forms. */
enum chex_status split_rule_parse(const char *text, struct split_rule *out, struct chex_error *err);

/* Parse the rule of a manifest; the path of `file` is unknown. */
enum chex_status split_rule_of_dataset(const char *text, struct split_rule *out, struct chex_error *err);

/* Format the rule for the manifest: "official", "patient:70,10,20:0", "file", "none". */
void split_rule_format(const struct split_rule *rule, char *out, size_t size);

/* Returns whether the folder has both official lists, plain or .gz. */
bool split_has_lists(const char *folder);

struct split_set {
    unsigned count; /* splits with an image: train, val, test in this order, then the others by name */
    char name[SPLIT_MAX][SPLIT_NAME_MAX];
    uint8_t *of_entry; /* [labels->count] index of the split; SPLIT_OUTSIDE for an image in no list */
    size_t images[SPLIT_MAX];
    size_t patients[SPLIT_MAX];
    size_t leaky_patients, leaky_images; /* patients in two splits or more, and their images */
    struct notes notes;                  /* of the lists: lines that contain no image name, or two */
    size_t outside;                      /* entries in no list: an error for `official` and `file`, see below */
};

/*
 * Assign each entry to a split.  Zero *out before the call; free it with split_set_release(), also after a failure.
 *
 * labels   sorted by name, as labels_read() returns them
 * skip     NULL, or [labels->count]: true for entries to ignore (excluded, or filtered by view).  They get
 *          SPLIT_OUTSIDE, are not counted, and may be in no list
 *
 * CHEX_ERR_USAGE    without rule->allow_leak, a patient in two splits ("patient 00000013 is in train and test", the
 *                   first 10 and the count); an entry in two lists, an entry in no list (the count and the first), an
 *                   invalid name of a split, no image in any split
 * CHEX_ERR_MISSING  a list is missing
 */
enum chex_status split_assign(const struct split_rule *rule, const struct labels *labels, const bool *skip,
                              struct split_set *out, struct chex_error *err);
void split_set_release(struct split_set *set);

#endif
