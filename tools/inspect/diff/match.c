/*
 * match.c - the images that all runs of a comparison have; see scored_run.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/diff/scored_run.h"

#include "eval/predictions_index.h"
#include "inspect/inspect.h"
#include "labels/patient_ids.h"

#include <stdlib.h>
#include <string.h>

/* Check that both runs have the same patient and labels for an image. */
static enum chex_status
check_image(const struct scored_run *x, size_t i, const struct scored_run *y, size_t j, struct chex_error *err)
{
    const struct predictions *a = &x->p, *b = &y->p;
    char name[INSPECT_TEXT], finding[INSPECT_TEXT];
    unsigned k;

    inspect_text(inspect_bytes(a->image[i]), name);
    if (strcmp(a->patient[i], b->patient[j]) != 0)
        return error_set(err, CHEX_ERR_INCOMPATIBLE, "the image '%.200s' has different patients in %s and %s", name,
                         x->label, y->label);
    for (k = 0; k < a->outputs; k++)
        if (a->label[i * a->outputs + k] != b->label[j * a->outputs + k])
            return error_set(err, CHEX_ERR_INCOMPATIBLE,
                             "the image '%.200s' has different labels of '%.100s' in %s and %s", name,
                             inspect_text(inspect_bytes(a->finding[k]), finding), x->label, y->label);
    return CHEX_OK;
}

/* Add an image; at: its row in the file of each run. */
static enum chex_status
add_image(const struct scored_run *run, struct matched *m, const size_t *at, struct patients *patients,
          struct chex_error *err)
{
    size_t outputs = m->outputs, to = m->count * outputs;
    enum chex_status status = CHEX_OK;
    unsigned i;

    for (i = 1; i < m->runs && status == CHEX_OK; i++)
        status = check_image(&run[0], at[0], &run[i], at[i], err);
    if (status == CHEX_OK)
        status = patients_add(patients, run[0].p.patient[at[0]], &m->strings, &m->patient[m->count], err);
    if (status != CHEX_OK)
        return status;
    for (i = 0; i < m->runs; i++)
        memcpy(m->score[i] + to, run[i].p.probability + at[i] * outputs, outputs * sizeof(float));
    memcpy(m->label + to, run[0].p.label + at[0] * outputs, outputs);
    m->row[m->count++] = at[0];
    return CHEX_OK;
}

static enum chex_status
make_room(const struct scored_run *run, struct matched *m, struct chex_error *err)
{
    size_t images = run[0].p.count, values = images * m->outputs;
    bool good;
    unsigned i;

    m->score = calloc(m->runs, sizeof(*m->score));
    m->label = malloc(values);
    m->patient = malloc(images * sizeof(*m->patient));
    m->row = malloc(images * sizeof(*m->row));
    m->only = calloc(m->runs, sizeof(*m->only));
    good = m->score && m->label && m->patient && m->row && m->only;
    for (i = 0; good && i < m->runs; i++)
        good = (m->score[i] = malloc(values * sizeof(float))) != NULL;
    return good ? CHEX_OK : error_memory(err);
}

/* Find an image of the first run in the others; returns false if one lacks it. */
static bool
find_image(const struct scored_run *run, struct named_row *const *sorted, unsigned runs, size_t *at)
{
    unsigned i;

    for (i = 1; i < runs; i++) {
        at[i] = predictions_find(sorted[i], run[i].p.count, run[0].p.image[at[0]]);
        if (at[i] == PREDICTIONS_NONE)
            return false;
    }
    return true;
}

static enum chex_status
match(const struct scored_run *run, struct matched *m, struct named_row *const *sorted, struct chex_error *err)
{
    size_t at[SCORED_RUNS], i;
    struct patients patients = {0};
    enum chex_status status = CHEX_OK;

    for (i = 0; i < run[0].p.count && status == CHEX_OK; i++) {
        at[0] = i;
        if (find_image(run, sorted, m->runs, at))
            status = add_image(run, m, at, &patients, err);
    }
    m->patients = (uint32_t)patients.count;
    patients_release(&patients);
    for (i = 0; i < m->runs; i++)
        m->only[i] = run[i].p.count - m->count;
    if (status == CHEX_OK && m->count == 0)
        status = error_set(err, CHEX_ERR_INCOMPATIBLE, "no image is in %s", m->runs == 2 ? "both runs" : "all runs");
    return status;
}

enum chex_status
matched_make(const struct scored_run *run, unsigned count, struct matched *out, struct chex_error *err)
{
    struct named_row *sorted[SCORED_RUNS] = {NULL};
    enum chex_status status;
    unsigned i;

    *out = (struct matched){.runs = count, .outputs = run[0].p.outputs};
    status = make_room(run, out, err);
    for (i = 0; i < count && status == CHEX_OK; i++) {
        status = predictions_index(&run[i].p, &sorted[i], err);
        if (status == CHEX_ERR_INCOMPATIBLE)
            error_context(err, status, "'%s'", run[i].file);
    }
    if (status == CHEX_OK)
        status = match(run, out, sorted, err);
    for (i = 0; i < count; i++)
        free(sorted[i]);
    return status;
}

void
matched_release(struct matched *m)
{
    unsigned i;

    for (i = 0; m->score && i < m->runs; i++)
        free(m->score[i]);
    free(m->score);
    free(m->label);
    free(m->patient);
    free(m->row);
    free(m->only);
    arena_release(&m->strings);
}

size_t
matched_left_out(const struct matched *m)
{
    size_t sum = 0;
    unsigned i;

    for (i = 0; i < m->runs; i++)
        sum += m->only[i];
    return sum;
}

struct score_pair
matched_pair(const struct matched *m, const float *a, const float *b)
{
    return (struct score_pair){.count = m->count,
                               .outputs = m->outputs,
                               .score = {a, b},
                               .label = m->label,
                               .patient = m->patient,
                               .patients = m->patients};
}
