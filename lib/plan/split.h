/*
 * split.h - which image belongs to train, val and test
 *
 *   official           test: test_list.txt; train and val: the patients of train_val_list.txt, a tenth of them val
 *   patient:A,B,C[:S]  per cent of patients in train, val, test (whole numbers, sum 100), seed S, default 0
 *   file:PATH          a CSV with a header: `Image Index` or `Patient ID`, and `split`
 *   none               one split, "all"
 *
 * Membership is by patient: u = the first 8 bytes, big-endian, of SHA-256("chex-split:SEED:PATIENT"), as a fraction
 * of 2^64; train where u < A/100, val where u < (A+B)/100, else test.  So it depends on seed and patient alone, not on
 * the order of the CSV or on other images, and Python's hashlib gives the same.  For `official`,
 * val where u < 0.1 with seed 0.
 * A patient in two splits is an error: the commonest mistake made with this data set.
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

struct split_rule {
    enum split_kind kind;
    unsigned percent[3]; /* patient: */
    uint64_t seed;       /* patient: */
    char path[4096];     /* file: the file; official: the folder with the two lists (each also found as .gz) */
};

/* Parse the text of --split.  CHEX_ERR_USAGE says what is allowed. */
enum chex_status split_rule_parse(const char *text, struct split_rule *out, struct chex_error *err);

/* The canonical text for the manifest: "official", "patient:70,10,20:0", "file", "none". */
void split_rule_format(const struct split_rule *rule, char *out, size_t size);

/* True where the folder holds both official lists, plain or .gz. */
bool split_has_lists(const char *folder);

struct split_set {
    unsigned count; /* splits that have an image: train, val, test in this order, others by name */
    char name[SPLIT_MAX][SPLIT_NAME_MAX];
    uint8_t *of_entry; /* [labels->count]: index of the split, or SPLIT_OUTSIDE for an image in no list */
    size_t images[SPLIT_MAX];
    size_t patients[SPLIT_MAX];
    struct notes notes; /* of the lists: lines that name no image, or two */
    size_t outside;     /* entries in no list.  `official` and `file`: an error, see below */
};

/*
 * Give each entry its split.  Zero-initialise *out; split_set_release() frees it, also after a failure.
 *
 * labels   sorted by name, as labels_read() returns them
 * skip     NULL, or [labels->count]: true for entries that take no part (excluded, filtered by view): they get
 *          SPLIT_OUTSIDE, are not counted, and may be in no list
 *
 * CHEX_ERR_USAGE    a patient in two splits ("patient 00000013 is in train and test", the first 10 and the count), an
 *                   entry in no list (count and the first), a split's name of another form, no image in any split
 * CHEX_ERR_MISSING  a list is missing
 */
enum chex_status split_assign(const struct split_rule *rule, const struct labels *labels, const bool *skip,
                              struct split_set *out, struct chex_error *err);
void split_set_release(struct split_set *set);

#endif
