/*
 * floor.c - fits the floor of the report of a run on its training images; see run.h, eval/floor.h
 *
 * The labels come from predictions-TRAIN.csv of the run if it has that file, otherwise from the data set of the run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "eval/floor.h"

#include "data/fold.h"
#include "data/limit.h"
#include "data/sample_texts.h"
#include "inspect/run/run.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Counts of the training images, of any order: integers. */
struct counting {
    pthread_mutex_t lock;
    unsigned outputs;
    struct floor_cell (*cell)[FLOOR_CELLS]; /* [outputs] */
    uint64_t images;
};

static void
count_image(struct counting *c, unsigned cell, const uint8_t *label)
{
    unsigned k;

    c->images++;
    for (k = 0; k < c->outputs; k++) {
        c->cell[k][cell].positives += label[k] == 1;
        c->cell[k][cell].negatives += label[k] == 0;
    }
}

/* ---- the training images ----------------------------------------------------------------------------------------- */

static bool
has_findings(const struct run_report *r, const char *const *name, unsigned count)
{
    unsigned k;

    for (k = 0; k < count && k < r->p.outputs && strcmp(name[k], r->p.finding[k]) == 0; k++)
        ;
    return k == count && k == r->p.outputs;
}

/* Returns whether the run has the file; a file of another form counts as missing. */
static bool
count_predictions(const struct run_report *r, struct counting *c)
{
    char file[4096];
    struct predictions p;
    bool good;
    size_t i;

    snprintf(file, sizeof(file), "%.3000s/predictions-%.64s.csv", r->path, r->train);
    good = predictions_read(file, &p, NULL) == CHEX_OK && p.people && has_findings(r, p.finding, p.outputs);
    for (i = 0; good && i < p.count; i++)
        count_image(c, floor_cell(p.age[i], p.sex[i], p.view[i]), p.label + i * p.outputs);
    predictions_release(&p);
    return good;
}

static enum chex_status
on_record(void *context, const struct walk_record *record, struct chex_error *err)
{
    struct counting *c = context;
    const struct record_values *v = record->values;
    char view[8];

    (void)err;
    if (v->weight != 1)
        return CHEX_OK;
    snprintf(view, sizeof(view), "%.*s", v->view.size < 7 ? (int)v->view.size : 7, (const char *)v->view.data);
    pthread_mutex_lock(&c->lock);
    count_image(c, floor_cell(v->age, v->sex, view), v->label);
    pthread_mutex_unlock(&c->lock);
    return CHEX_OK;
}

static enum chex_status
on_sample(void *context, size_t i, const struct record_values *v, struct chex_error *err)
{
    struct counting *c = context;
    char view[8];

    (void)i;
    (void)err;
    snprintf(view, sizeof(view), "%.*s", v->view.size < 7 ? (int)v->view.size : 7, (const char *)v->view.data);
    count_image(c, floor_cell(v->age, v->sex, view), v->label);
    return CHEX_OK;
}

/* List the training images of a fold. */
static enum chex_status
list_fold(const struct run_report *r, const struct chex_dataset *ds, unsigned train, struct samples *out,
          struct chex_error *err)
{
    int validation = chex_dataset_find_split(ds, r->validation);
    struct fold_choice choice;
    struct fold *fold = NULL;
    enum chex_status status = fold_parse(r->fold, &choice, err);

    if (status == CHEX_OK && validation < 0)
        status = error_set(err, CHEX_ERR_INCOMPATIBLE, "it has no split '%s'", r->validation);
    if (status == CHEX_OK)
        status = fold_new(ds, train, (unsigned)validation, &choice, false, &fold, err);
    if (status == CHEX_OK) {
        *out = fold->samples[FOLD_TRAIN];
        fold->samples[FOLD_TRAIN] = (struct samples){.count = 0};
    }
    fold_free(fold);
    return status;
}

/* Count the images that --fold and --limit of the run leave for training. */
static enum chex_status
count_samples(const struct run_report *r, const struct chex_dataset *ds, struct counting *c, struct chex_error *err)
{
    int train = chex_dataset_find_split(ds, r->train);
    struct samples samples = {.count = 0};
    struct sample_limit limit;
    enum chex_status status = CHEX_OK;

    if (train < 0)
        return error_set(err, CHEX_ERR_INCOMPATIBLE, "it has no split '%s'", r->train);
    if (r->fold[0])
        status = list_fold(r, ds, (unsigned)train, &samples, err);
    else
        status = samples_list(ds, (unsigned)train, &samples, err);
    if (status == CHEX_OK && r->limit[0]) {
        status = limit_parse(r->limit, &limit, err);
        if (status == CHEX_OK)
            status = samples_limit(ds, &limit, r->seed, false, &samples, err);
    }
    if (status == CHEX_OK)
        status = samples_read_texts(ds, &samples, false, on_sample, c, err);
    samples_release(&samples);
    return status;
}

static enum chex_status
count_records(struct run_report *r, struct target *t, struct counting *c, struct chex_error *err)
{
    struct walk w = {.in = r->in,
                     .target = t,
                     .depth = WALK_TEXTS,
                     .record = on_record,
                     .context = c,
                     .threads = r->in->common->threads};
    enum chex_status status = target_select(t, r->train, err);

    if (status == CHEX_OK)
        status = walk_run(&w, err);
    if (status == CHEX_OK && w.faults > 0)
        status = error_set(err, CHEX_ERR_DAMAGED, "it has damaged records");
    return status;
}

/* Open the data set, also if its records are not needed: it says whether the images are synthetic. */
static enum chex_status
count_dataset(struct run_report *r, bool counted, struct counting *c, struct chex_error *err)
{
    const char *path = r->in->options->data ? r->in->options->data : r->data_path;
    struct target t;
    enum chex_status status;

    if (!path[0])
        return error_set(err, CHEX_ERR_MISSING, "run.json names no data set; --data names it");
    status = target_open(path, &t, err);
    if (status == CHEX_OK && t.kind != TARGET_DATASET)
        status = error_set(err, CHEX_ERR_MISSING, "it is no data set");
    if (status == CHEX_OK && strcmp(t.dataset->info.id, r->dataset_id) != 0)
        status = error_set(err, CHEX_ERR_INCOMPATIBLE, "it is the data set %s", t.dataset->info.id);
    if (status == CHEX_OK) {
        r->dataset_read = true;
        r->synthetic = t.dataset->manifest.synthetic;
        if (!counted && t.dataset->info.finding_count == c->outputs)
            status = r->fold[0] || r->limit[0] ? count_samples(r, t.dataset, c, err) : count_records(r, &t, c, err);
    }
    target_close(&t);
    return status;
}

/* ---- the floor --------------------------------------------------------------------------------------------------- */

/* Compare the floor with the network on the same draws of patients. */
static enum chex_status
compare(struct run_report *r, struct floor_cell (*const cell)[FLOOR_CELLS], struct chex_error *err)
{
    const size_t outputs = r->p.outputs, values = r->p.count * outputs;
    struct compare_options options = {.replicates = RUN_DRAWS, .seed = RUN_SEED, .threads = r->in->common->threads};
    float *score = calloc(values, sizeof(*score));
    uint8_t *label = malloc(values);
    const struct score_pair pair = {.count = r->p.count,
                                    .outputs = r->p.outputs,
                                    .score = {score, r->p.probability},
                                    .label = label,
                                    .patient = r->patient,
                                    .patients = r->patients};
    enum chex_status status = score && label ? CHEX_OK : error_memory(err);
    unsigned k;
    size_t i;

    for (k = 0; k < outputs && status == CHEX_OK; k++) {
        double probability[FLOOR_CELLS];

        r->floor->fitted[k] = r->finding[k].enough && floor_fit(cell[k], probability);
        for (i = 0; i < r->p.count; i++) {
            size_t at = i * outputs + k;

            label[at] = r->floor->fitted[k] ? r->p.label[at] : CHEX_LABEL_UNKNOWN;
            if (r->floor->fitted[k])
                score[at] = (float)probability[floor_cell(r->p.age[i], r->p.sex[i], r->p.view[i])];
        }
    }
    if (status == CHEX_OK)
        status = compare_scores(&pair, &options, &r->floor->result, err);
    free(score);
    free(label);
    return status;
}

enum chex_status
run_report_floor(struct run_report *r, struct chex_error *err)
{
    struct counting c = {.lock = PTHREAD_MUTEX_INITIALIZER, .outputs = r->p.outputs};
    struct chex_error why;
    enum chex_status status = CHEX_OK;
    bool counted;

    r->floor = calloc(1, sizeof(*r->floor));
    c.cell = calloc(c.outputs, sizeof(*c.cell));
    if (!r->floor || !c.cell) {
        free(c.cell);
        return error_memory(err);
    }
    snprintf(r->floor->split, sizeof(r->floor->split), "%s%s%.32s%s%.32s", r->train, r->fold[0] ? ", fold " : "",
             r->fold, r->limit[0] ? ", limit " : "", r->limit);
    /* The predictions of a run with --limit are of all images of the split. */
    counted = r->train[0] && !r->limit[0] && count_predictions(r, &c);
    status = count_dataset(r, counted, &c, &why);
    if (status == CHEX_ERR_MEMORY || (status != CHEX_OK && r->in->options->data)) {
        *err = why;
        free(c.cell);
        return r->in->options->data ? error_context(err, status, "'%s'", r->in->options->data) : status;
    }
    status = status == CHEX_OK || counted ? CHEX_OK : CHEX_ERR_MISSING;
    if (!r->p.people) {
        snprintf(r->floor->missing, sizeof(r->floor->missing), "the predictions have no age, sex and view");
    } else if (!r->train[0]) {
        snprintf(r->floor->missing, sizeof(r->floor->missing), "the run names no training split");
    } else if (!counted && !r->dataset_read) {
        snprintf(r->floor->missing, sizeof(r->floor->missing),
                 "the data set of the run could not be opened; --data names it");
    } else if (c.images == 0 || status != CHEX_OK) {
        snprintf(r->floor->missing, sizeof(r->floor->missing), "the training images could not be read");
    } else {
        r->floor->images = c.images;
        r->floor->cell = c.cell;
        return compare(r, c.cell, err);
    }
    free(c.cell);
    return CHEX_OK;
}

enum chex_status
run_report_no_floor(struct run_report *r, const char *why, struct chex_error *err)
{
    r->floor = calloc(1, sizeof(*r->floor));
    if (!r->floor)
        return error_memory(err);
    snprintf(r->floor->missing, sizeof(r->floor->missing), "%s", why);
    return CHEX_OK;
}

enum chex_status
run_report_same_floor(struct run_report *r, const struct run_floor *floor, struct chex_error *err)
{
    r->floor = calloc(1, sizeof(*r->floor));
    if (!r->floor)
        return error_memory(err);
    memcpy(r->floor->missing, floor->missing, sizeof(floor->missing));
    memcpy(r->floor->split, floor->split, sizeof(floor->split));
    r->floor->images = floor->images;
    return floor->missing[0] ? CHEX_OK : compare(r, floor->cell, err);
}
