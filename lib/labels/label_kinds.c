/*
 * label_kinds.c - the table of the kinds of label files; see label_kinds.h
 *
 * The sources of the headers are:
 *
 *     NIH, Google, RSNA, CheXpert   the label files in github.com/mlmed/torchxrayvision, folder torchxrayvision/data
 *     CXR-LT                        programs that read miccai2023_nih-cxr-lt_labels_train.csv; the order of the columns
 *                                   is not known, and no column is found by its position
 *     PadChest                      the README of github.com/auriml/Rx-thorax-automatic-captioning, and the class
 *                                   PC_Dataset of torchxrayvision
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "labels/label_kinds.h"

#include <string.h>

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})
#define COUNT(a)   (sizeof(a) / sizeof((a)[0]))

/* ---- findings --------------------------------------------------------------------------------------------------- */

/* NIH images that Google's radiologists read again (Majkowska et al. 2020). */
static const struct findings google = {NAMES("Fracture", "Pneumothorax", "Airspace opacity", "Nodule or mass"), 4};

/* The RSNA pneumonia challenge of 2018: boxes of lung opacity. */
static const struct findings rsna = {NAMES("Lung Opacity"), 1};

/* ---- kinds ------------------------------------------------------------------------------------------------------ */

#define AGE_NAMES  NAMES("Patient Age", "Age")
#define SEX_NAMES  NAMES("Patient Gender", "Patient Sex", "Gender", "Sex")
#define VIEW_NAMES NAMES("View Position", "View")

const struct label_kind label_kind_nih = {
    .name = "nih",
    .title = "NIH Data_Entry",
    .style = LABEL_LIST,
    .findings = &findings_nih14,
    .list = NAMES("Finding Labels"),
    .separator = '|',
    .image = NAMES("Image Index"),
    .patient = NAMES("Patient ID"),
    .age = AGE_NAMES,
    .sex = SEX_NAMES,
    .view = VIEW_NAMES,
    .suffix = "",
    .name_parts = 1,
    .nih_names = true,
};

static const struct label_kind kind_google = {
    .name = "google",
    .title = "NIH relabelled by Google",
    .style = LABEL_COLUMNS,
    .findings = &google,
    .image = NAMES("Image Index"),
    .patient = NAMES("Patient ID"),
    .age = AGE_NAMES,
    .sex = SEX_NAMES,
    .view = VIEW_NAMES,
    .suffix = "",
    .name_parts = 1,
    .empty = CHEX_LABEL_UNKNOWN,
    .nih_names = true,
};

/*
 * A path is CheXpert-v1.0-small/train/patient00001/study1/view1_frontal.jpg.  An empty cell means that the report does
 * not mention the finding; the baselines of the authors take that as 0.
 */
static const struct label_kind kind_chexpert = {
    .name = "chexpert",
    .title = "CheXpert",
    .style = LABEL_COLUMNS,
    .findings = &findings_chexpert,
    .image = NAMES("Path"),
    .age = NAMES("Age"),
    .sex = NAMES("Sex"),
    .view = NAMES("AP/PA"),
    .view_else = NAMES("Frontal/Lateral"),
    .suffix = "",
    .name_parts = 3,
    .patient_is_folder = true,
};

/* An image with several boxes has several rows.  Each image counts as a patient. */
static const struct label_kind kind_rsna = {
    .name = "rsna",
    .title = "RSNA pneumonia challenge",
    .style = LABEL_COLUMNS,
    .findings = &rsna,
    .finding_column = NAMES("Target"),
    .image = NAMES("patientId"),
    .patient = NAMES("patientId"),
    .suffix = ".png",
    .name_parts = 1,
    .empty = CHEX_LABEL_UNKNOWN,
};

static const struct label_kind kind_cxr_lt = {
    .name = "cxr-lt",
    .title = "NIH-CXR-LT",
    .style = LABEL_COLUMNS,
    .findings = &findings_cxr_lt,
    .image = NAMES("id"),
    .patient = NAMES("subj_id"),
    .suffix = "",
    .name_parts = 1,
    .empty = CHEX_LABEL_UNKNOWN,
};

/* "exclude": the report has no usable labels; "unchanged": it only refers to an earlier one. */
static const struct label_kind kind_padchest = {
    .name = "padchest",
    .title = "PadChest",
    .style = LABEL_PYTHON_LIST,
    .findings = &findings_padchest,
    .list = NAMES("Labels"),
    .unsure = NAMES("exclude", "suboptimal study", "unchanged"),
    .image = NAMES("ImageID"),
    .patient = NAMES("PatientID"),
    .sex = NAMES("PatientSex_DICOM"),
    .view = NAMES("Projection"),
    .born = NAMES("PatientBirth"),
    .studied = NAMES("StudyDate_DICOM"),
    .suffix = "",
    .name_parts = 1,
};

/* Sorted by name. */
static const struct label_kind *const kinds[] = {&kind_chexpert,  &kind_cxr_lt,   &kind_google,
                                                 &label_kind_nih, &kind_padchest, &kind_rsna};

const char *const label_kind_names[] = {"chexpert", "cxr-lt", "google", "nih", "padchest", "rsna", NULL};

const struct label_kind *
label_kind_named(const char *name)
{
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    return NULL;
}

/* ---- detection -------------------------------------------------------------------------------------------------- */

const char *
label_kind_column(const struct label_kind *kind, const char *name)
{
    int index = kind->finding_column ? finding_index(kind->findings, name, strlen(name)) : -1;

    return index >= 0 ? kind->finding_column[index] : name;
}

/* Returns whether the header has all columns that the kind needs. */
static bool
fits(const struct label_kind *kind, const struct table_row *header)
{
    bool all = table_column(header, kind->image) >= 0 && (!kind->patient || table_column(header, kind->patient) >= 0);

    if (kind->style != LABEL_COLUMNS)
        return all && table_column(header, kind->list) >= 0;
    for (unsigned i = 0; all && i < kind->findings->count; i++)
        all = table_column(header, NAMES(label_kind_column(kind, kind->findings->name[i]))) >= 0;
    return all;
}

enum chex_status
label_kind_find(const struct table_row *header, const struct label_kind **out, struct chex_error *err)
{
    const struct label_kind *found = NULL;

    for (size_t i = 0; i < COUNT(kinds); i++) {
        if (!fits(kinds[i], header))
            continue;
        if (found)
            return table_fail(header, err,
                              "the columns are those of %s and of %s: choose with --label-kind %s or --label-kind %s",
                              found->title, kinds[i]->title, found->name, kinds[i]->name);
        found = kinds[i];
    }
    *out = found ? found : &label_kind_nih;
    return CHEX_OK;
}
