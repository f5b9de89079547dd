/*
 * synth_lists.c - the texts of a data set: the label file and the two lists (see synth_people.h)
 *
 * The label file has the form of Data_Entry_2017_v2020.csv: LF, ages as integers, findings in alphabetical order, and a
 * header with unquoted commas, which therefore has as many commas as the rows.  The lists have no final newline, like
 * the real ones.  The other kinds have the headers of the real files; that of PadChest lacks columns.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "synth/synth_people.h"
#include "synth/synth_write.h"

static const char csv_header[] = "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,"
                                 "View Position,OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y]\n";

/* The most frequent ones of the real data: 2992x2991 and 2048x2500 occur only in PA, 3056x2544 nearly always in AP. */
static const char *const detectors[] = {
    "2992,2991,0.14300000000000002,0.14300000000000002", "2500,2048,0.168,0.168", "2048,2500,0.168,0.168",
    "2021,2021,0.19431099999999998,0.19431099999999998", "3056,2544,0.139,0.139",
};

#define STUDY_YEAR 2014 /* of PadChest's dates */

/* Indices of findings_nih14 in alphabetical order. */
static const uint8_t alphabetical[] = {0, 1, 8, 9, 2, 10, 11, 13, 3, 4, 5, 12, 6, 7};

const char *
population_csv_name(const struct population *p)
{
    static const char *const names[] = {SYNTH_CSV, "nih-cxr-lt_labels.csv", "train.csv", "padchest_labels.csv"};

    return names[p->labels.kind];
}

void
study_name(const struct population *p, const struct study *study, char out[STUDY_NAME])
{
    if (p->labels.kind == SYNTH_CHEXPERT)
        snprintf(out, STUDY_NAME, "patient%05" PRIu32 "/study%u/view1_frontal.png", study->person + 1,
                 (unsigned)study->number + 1);
    else
        snprintf(out, STUDY_NAME, "%08" PRIu32 "_%03u.png", study->person + 1, (unsigned)study->number);
}

/* Append `before`, the names of the findings, and `after`. */
static enum chex_status
add_header(const struct population *p, const char *before, const char *after, struct buffer *out,
           struct chex_error *err)
{
    enum chex_status status = buffer_printf(out, err, "%s", before);

    for (unsigned k = 0; k < p->labels.findings.count && status == CHEX_OK; k++)
        status = buffer_printf(out, err, ",%s", p->labels.findings.name[k]);
    return status == CHEX_OK ? buffer_printf(out, err, "%s\n", after) : status;
}

/* Append the names of a study: "Mass|Nodule" or "No Finding"; PadChest: "['mass', 'nodule']" or ['normal']. */
static enum chex_status
add_names(const struct population *p, const struct study *s, struct buffer *out, struct chex_error *err)
{
    const struct findings *list = &p->labels.findings;
    bool python = p->labels.kind == SYNTH_PADCHEST, sorted = findings_equal(list, &findings_nih14), any = false;
    enum chex_status status = python ? buffer_printf(out, err, "\"[") : CHEX_OK;

    for (unsigned i = 0; i < list->count && status == CHEX_OK; i++) {
        unsigned k = sorted ? alphabetical[i] : i;
        const char *name = list->name[k], *quote = !python ? "" : strchr(name, '\'') ? "\"\"" : "'";

        if (population_label(p, s, k) != 1 || (!python && p->drawing[k] == NO_FINDING))
            continue;
        status = buffer_printf(out, err, "%s%s%s%s", !any ? "" : python ? ", " : "|", quote, name, quote);
        any = true;
    }
    if (status == CHEX_OK && !any)
        status = buffer_printf(out, err, "%s", python ? "'normal'" : "No Finding");
    return status == CHEX_OK && python ? buffer_printf(out, err, "]\"") : status;
}

/* Append ",0" or ",1" for each finding; CheXpert: ",1.0", ",-1.0", ",0.0" for a fifth of the others, or ",". */
static enum chex_status
add_cells(const struct population *p, const struct study *s, struct buffer *out, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;

    for (unsigned k = 0; k < p->labels.findings.count && status == CHEX_OK; k++) {
        uint8_t label = population_label(p, s, k);

        if (p->labels.kind == SYNTH_CXR_LT)
            status = buffer_printf(out, err, ",%u", (unsigned)label);
        else
            status = buffer_printf(out, err, "%s",
                                   label == 1                             ? ",1.0"
                                   : label == CHEX_LABEL_UNKNOWN          ? ",-1.0"
                                   : (s->person + s->number + k) % 5 == 0 ? ",0.0"
                                                                          : ",");
    }
    return status;
}

static enum chex_status
add_header_of_kind(const struct population *p, struct buffer *out, struct chex_error *err)
{
    switch (p->labels.kind) {
    case SYNTH_CXR_LT:
        return add_header(p, "id", ",subj_id", out, err);
    case SYNTH_CHEXPERT:
        return add_header(p, "Path,Sex,Age,Frontal/Lateral,AP/PA", "", out, err);
    case SYNTH_PADCHEST:
        return buffer_printf(out, err,
                             ",ImageID,ImageDir,StudyDate_DICOM,StudyID,PatientID,PatientBirth,PatientSex_DICOM,"
                             "Projection,MethodLabel,Labels\n");
    case SYNTH_NIH:
        break;
    }
    return buffer_append(out, csv_header, sizeof(csv_header) - 1, err);
}

static enum chex_status
add_row(const struct population *p, size_t i, struct buffer *out, struct chex_error *err)
{
    const struct study *s = &p->study[i];
    const char sex = p->person[s->person].sex, *view = s->ap ? "AP" : "PA";
    char name[STUDY_NAME];
    enum chex_status status;

    study_name(p, s, name);
    switch (p->labels.kind) {
    case SYNTH_CXR_LT:
        status = buffer_printf(out, err, "%s", name);
        status = status == CHEX_OK ? add_cells(p, s, out, err) : status;
        return status == CHEX_OK ? buffer_printf(out, err, ",%" PRIu32 "\n", s->person + 1) : status;
    case SYNTH_CHEXPERT:
        status = buffer_printf(out, err, "CheXpert-v1.0/train/%s,%s,%u,Frontal,%s", name,
                               sex == 'M' ? "Male" : "Female", (unsigned)s->age, view);
        status = status == CHEX_OK ? add_cells(p, s, out, err) : status;
        return status == CHEX_OK ? buffer_printf(out, err, "\n") : status;
    case SYNTH_PADCHEST:
        status = buffer_printf(out, err, "%zu,%s,0,%u0101,%zu,%" PRIu32 ",%u.0,%c,%s,Physician,", i, name, STUDY_YEAR,
                               i, s->person + 1, (unsigned)(STUDY_YEAR - s->age), sex, view);
        status = status == CHEX_OK ? add_names(p, s, out, err) : status;
        return status == CHEX_OK ? buffer_printf(out, err, "\n") : status;
    case SYNTH_NIH:
        break;
    }
    status = buffer_printf(out, err, "%s,", name);
    status = status == CHEX_OK ? add_names(p, s, out, err) : status;
    return status == CHEX_OK ? buffer_printf(out, err, ",%u,%" PRIu32 ",%u,%c,%s,%s\n", (unsigned)s->number,
                                             s->person + 1, (unsigned)s->age, sex, view, detectors[s->detector])
                             : status;
}

enum chex_status
population_csv(const struct population *p, struct buffer *out, struct chex_error *err)
{
    enum chex_status status = add_header_of_kind(p, out, err);

    for (size_t i = 0; i < p->study_count && status == CHEX_OK; i++)
        status = add_row(p, i, out, err);
    return status;
}

enum chex_status
population_list(const struct population *p, bool test, struct buffer *out, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    char name[STUDY_NAME];
    size_t i;

    for (i = 0; i < p->study_count && status == CHEX_OK; i++) {
        if (p->person[p->study[i].person].test != test)
            continue;
        if (out->size > 0)
            status = buffer_append(out, "\n", 1, err);
        study_name(p, &p->study[i], name);
        if (status == CHEX_OK)
            status = buffer_append(out, name, strlen(name), err);
    }
    return status;
}
