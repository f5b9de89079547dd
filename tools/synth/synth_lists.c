/*
 * synth_lists.c - the texts of a data set: the label file and the two lists (see synth_people.h)
 *
 * The label file has the form of Data_Entry_2017_v2020.csv: LF, ages as integers, findings in alphabetical order, and a
 * header with unquoted commas, which therefore has as many commas as the rows.  The lists have no final newline, like
 * the real ones.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "dataset/findings.h"
#include "synth/synth_people.h"

static const char csv_header[] = "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,"
                                 "View Position,OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y]\n";

/* The most frequent ones of the real data: 2992x2991 and 2048x2500 occur only in PA, 3056x2544 nearly always in AP. */
static const char *const detectors[] = {
    "2992,2991,0.14300000000000002,0.14300000000000002", "2500,2048,0.168,0.168", "2048,2500,0.168,0.168",
    "2021,2021,0.19431099999999998,0.19431099999999998", "3056,2544,0.139,0.139",
};

/* Indices of the findings in alphabetical order. */
static const uint8_t alphabetical[CHEX_FINDINGS] = {0, 1, 8, 9, 2, 10, 11, 13, 3, 4, 5, 12, 6, 7};

void
study_name(const struct study *study, char out[STUDY_NAME])
{
    snprintf(out, STUDY_NAME, "%08" PRIu32 "_%03u.png", study->person + 1, (unsigned)study->number);
}

/* Writes "Atelectasis|Effusion" or "No Finding". */
static void
write_findings(unsigned set, char *out, size_t size)
{
    size_t used = 0;
    unsigned k;

    snprintf(out, size, "No Finding");
    for (k = 0; k < CHEX_FINDINGS; k++)
        if (set >> alphabetical[k] & 1)
            used += (size_t)snprintf(out + used, size - used, "%s%s", used > 0 ? "|" : "",
                                     chex_finding_name(alphabetical[k]));
}

enum chex_status
population_csv(const struct population *p, struct buffer *out, struct chex_error *err)
{
    enum chex_status status = buffer_append(out, csv_header, sizeof(csv_header) - 1, err);
    char name[STUDY_NAME], findings[256], line[512];
    size_t i;

    for (i = 0; i < p->study_count && status == CHEX_OK; i++) {
        const struct study *s = &p->study[i];
        int length;

        study_name(s, name);
        write_findings(s->findings, findings, sizeof(findings));
        length = snprintf(line, sizeof(line), "%s,%s,%u,%" PRIu32 ",%u,%c,%s,%s\n", name, findings, (unsigned)s->number,
                          s->person + 1, (unsigned)s->age, p->person[s->person].sex, s->ap ? "AP" : "PA",
                          detectors[s->detector]);
        status = buffer_append(out, line, (size_t)length, err);
    }
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
        study_name(&p->study[i], name);
        if (status == CHEX_OK)
            status = buffer_append(out, name, strlen(name), err);
    }
    return status;
}
