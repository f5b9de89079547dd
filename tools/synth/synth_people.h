/*
 * synth_people.h - the population of a synthetic data set: patients, their studies, findings and the split
 *
 * Nobody here exists: every value is drawn at random, with the proportions of ChestX-ray14.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_SYNTH_PEOPLE_H
#define CHEX_TOOLS_SYNTH_PEOPLE_H

#include "base/memory.h"
#include "dataset/findings.h"

/* The format of an image file.  All formats except FORM_GRAY8 are odd: valid, but rare in the real data set. */
enum form { FORM_GRAY8, FORM_RGBA, FORM_GRAY16, FORM_PALETTE, FORM_ADAM7, FORM_GRAY_ALPHA, FORM_RGB, FORMS };

struct person {
    uint32_t first_study;
    uint16_t study_count;
    char sex; /* 'M', 'F' */
    bool test;
};

struct study {
    uint32_t person;
    uint16_t number; /* within the person: the NNN of NNNNNNNN_NNN.png */
    uint16_t findings;
    uint8_t age;
    uint8_t detector; /* index into the table of detectors */
    bool ap;
    enum form form;
};

/* The form of the label file, and of the names of the images. */
enum synth_kind { SYNTH_NIH, SYNTH_CXR_LT, SYNTH_CHEXPERT, SYNTH_PADCHEST };
extern const char *const synth_kind_names[]; /* ends with NULL */

struct synth_labels {
    enum synth_kind kind;
    struct findings findings; /* not owned; count 0: those of the kind */
};

/* Instead of the index of a drawing: no image shows the finding, or it is No Finding. */
enum { NOT_DRAWN = -1, NO_FINDING = -2 };

struct population {
    struct synth_labels labels;
    int8_t drawing[FINDINGS_MAX]; /* of each finding of labels.findings: index in findings_nih14, or one of these */
    struct person *person;
    size_t person_count;
    struct study *study; /* sorted by person and number, and so by file name */
    size_t study_count;
    uint64_t seed;
};

#define PEOPLE_MAX_STUDIES 1000000

/* Zero-initialise *out; call population_release(), also after a failure.  CHEX_ERR_MEMORY */
enum chex_status population_make(uint32_t studies, uint64_t seed, unsigned odd_percent,
                                 const struct synth_labels *labels, struct population *out, struct chex_error *err);
void population_release(struct population *p);

/*
 * Returns the label of a study: 0, 1 or CHEX_LABEL_UNKNOWN.  It is that of the drawing; a finding without a drawing
 * gets a random one; No Finding is 1 if all other findings are 0.  Only CheXpert has unknown labels: 5 % of the others.
 */
uint8_t population_label(const struct population *p, const struct study *study, unsigned finding);

/* Returns the file name of the label file. */
const char *population_csv_name(const struct population *p);

#define STUDY_NAME 48 /* bytes for "patient00000001/study001/view1_frontal.png" and its terminator, with room */

void study_name(const struct population *p, const struct study *study, char out[STUDY_NAME]);

/* Append the label file and the two lists to out, in the form of the real ones.  CHEX_ERR_MEMORY */
enum chex_status population_csv(const struct population *p, struct buffer *out, struct chex_error *err);
enum chex_status population_list(const struct population *p, bool test, struct buffer *out, struct chex_error *err);

#endif
