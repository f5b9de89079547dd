/*
 * evaluate_compute.c - computes loss and metrics from the entries of all ranks; see evaluate_private.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "eval/evaluate_private.h"

#include "labels/patient_ids.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- entries --------------------------------------------------------------------------------------------------- */

/* Returns the bytes of an entry without its texts. */
static size_t
entry_size(unsigned outputs)
{
    return sizeof(struct entry_head) + outputs * (2 * sizeof(float) + 1);
}

enum chex_status
entry_append(struct buffer *b, uint32_t position, const struct loaded_text *text, double loss, const float *logit,
             const float *probability, const uint8_t *label, unsigned outputs, struct chex_error *err)
{
    const struct entry_head head = {
        .loss = loss,
        .position = position,
        .age = text->age,
        .name_size = text->name_size,
        .patient_size = text->patient_size,
        .view_size = text->view_size,
        .sex = text->sex,
    };
    const struct {
        const void *data;
        size_t size;
    } part[] = {
        {&head, sizeof(head)},
        {logit, outputs * sizeof(float)},
        {probability, outputs * sizeof(float)},
        {label, outputs},
        {text->name, text->name_size},
        {text->patient, text->patient_size},
        {text->view, text->view_size},
    };
    enum chex_status status = CHEX_OK;
    size_t i;

    for (i = 0; status == CHEX_OK && i < sizeof(part) / sizeof(part[0]); i++)
        status = buffer_append(b, part[i].data, part[i].size, err);
    return status;
}

/* Find the entry of each position, or NOWHERE; returns false if the entries are malformed. */
#define NOWHERE SIZE_MAX

static bool
find_entries(const struct buffer *entries, unsigned outputs, size_t *place, size_t positions, size_t *found)
{
    size_t at = 0, i;

    for (i = 0; i < positions; i++)
        place[i] = NOWHERE;
    *found = 0;
    while (at < entries->size) {
        struct entry_head head;
        size_t size = entry_size(outputs);

        if (entries->size - at < size)
            return false;
        memcpy(&head, entries->data + at, sizeof(head));
        size += (size_t)head.name_size + head.patient_size + head.view_size;
        if (entries->size - at < size || head.position >= positions || place[head.position] != NOWHERE)
            return false;
        place[head.position] = at;
        at += size;
        ++*found;
    }
    return true;
}

/* ---- in order -------------------------------------------------------------------------------------------------- */

static enum chex_status
take_entry(const uint8_t *entry, uint32_t position, struct patients *patients, struct evaluation *out, double *loss,
           struct chex_error *err)
{
    size_t values = out->outputs * sizeof(float);
    struct evaluated_image *image = &out->image[out->count];
    char person[RECORD_MAX_TEXT + 1];
    struct entry_head head;
    enum chex_status status;

    memcpy(&head, entry, sizeof(head));
    *loss += head.loss;
    entry += sizeof(head);
    memcpy(out->logit + out->count * out->outputs, entry, values);
    memcpy(out->probability + out->count * out->outputs, entry + values, values);
    entry += 2 * values;
    memcpy(out->label + out->count * out->outputs, entry, out->outputs);
    entry += out->outputs;
    memcpy(person, entry + head.name_size, head.patient_size);
    person[head.patient_size] = '\0';
    *image = (struct evaluated_image){.sample = position, .age = head.age, .sex = head.sex};
    image->name = arena_copy(&out->strings, (const char *)entry, head.name_size);
    image->view = arena_copy(&out->strings, (const char *)entry + head.name_size + head.patient_size, head.view_size);
    if (!image->name || !image->view)
        return error_memory(err);
    status = patients_add(patients, person, &out->strings, &image->patient, err);
    if (status == CHEX_OK)
        image->person = patients->id[image->patient];
    out->count++;
    return status;
}

static bool
make_room(struct evaluation *out, size_t images, size_t skipped)
{
    size_t values = images * out->outputs;

    out->image = malloc(images * sizeof(*out->image));
    out->logit = malloc(values * sizeof(*out->logit));
    out->probability = malloc(values * sizeof(*out->probability));
    out->label = malloc(values);
    out->skipped = malloc((skipped ? skipped : 1) * sizeof(*out->skipped));
    return out->image && out->logit && out->probability && out->label && out->skipped;
}

enum chex_status
evaluation_unpack(const struct evaluate_options *o, const struct buffer *entries, struct evaluation *out,
                  struct chex_error *err)
{
    size_t positions = o->samples->count, found = 0, i;
    size_t *place = malloc(positions * sizeof(*place));
    struct patients patients = {0};
    double loss = 0; /* summed in order of the positions, independent of the ranks */
    struct label_count labels;
    enum chex_status status = CHEX_OK;

    if (!place)
        return error_memory(err);
    if (!find_entries(entries, out->outputs, place, positions, &found))
        status = error_set(err, CHEX_ERR_BUG, "the scores of the ranks do not fit together");
    else if (found == 0)
        status = error_set(err, CHEX_ERR_DAMAGED, "no record of split '%s' is readable",
                           chex_dataset_split(o->ds, o->split)->name);
    else if (!make_room(out, found, positions - found))
        status = error_memory(err);
    for (i = 0; status == CHEX_OK && i < positions; i++) {
        if (place[i] == NOWHERE)
            out->skipped[out->skipped_count++] = o->samples->place[i];
        else
            status = take_entry(entries->data + place[i], (uint32_t)i, &patients, out, &loss, err);
    }
    labels = loss_count(out->count, out->outputs, out->label, NULL);
    out->loss = labels.known > 0 ? loss / (double)labels.known : (double)NAN;
    out->patients = (uint32_t)patients.count;
    patients_release(&patients);
    free(place);
    return status;
}

/* ---- metrics --------------------------------------------------------------------------------------------------- */

static uint64_t
count_not_finite(const struct evaluation *e)
{
    uint64_t images = 0;
    size_t i;
    unsigned k;

    for (i = 0; i < e->count; i++) {
        bool finite = true;

        for (k = 0; k < e->outputs; k++)
            finite = finite && isfinite(e->logit[i * e->outputs + k]);
        images += !finite;
    }
    return images;
}

enum chex_status
evaluation_compute(const struct evaluate_options *o, unsigned part, unsigned parts, struct evaluation *out,
                   struct buffer *draws, struct chex_error *err)
{
    const struct bootstrap_options bootstrap = {
        .replicates = o->replicates, .seed = o->seed, .threads = o->threads, .part = part, .parts = parts};
    struct scores scores = {
        .count = out->count,
        .outputs = out->outputs,
        .score = out->probability,
        .label = out->label,
        .patients = out->patients,
    };
    uint32_t *patient;
    enum chex_status status;
    size_t i;

    out->not_finite = count_not_finite(out);
    if (out->not_finite > 0) {
        out->loss = (double)NAN;
        return CHEX_OK;
    }
    scores.patient = patient = malloc(out->count * sizeof(*patient));
    if (!patient)
        return error_memory(err);
    for (i = 0; i < out->count; i++)
        patient[i] = out->image[i].patient;
    status = metrics_begin(&scores, &bootstrap, &out->metrics, draws, err);
    free(patient);
    return status;
}
