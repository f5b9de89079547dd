/*
 * trainer_dataset.c - the data set of a run: its splits or fold, their certificate, weights of positive labels; see
 * trainer.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/trainer_private.h"

#include "dataset/dataset.h"

#include <stdio.h>
#include <string.h>

#define SIDE 224 /* of the crop, default */

static bool
has_known_label(const struct chex_dataset *ds, unsigned split)
{
    const struct chex_split_info *s = chex_dataset_split(ds, split);
    unsigned findings = chex_dataset_info(ds)->finding_count, i;

    for (i = 0; i < findings; i++)
        if (s->known[i] > 0)
            return true;
    return false;
}

static enum chex_status
find_splits(const struct trainer_job *job, struct trainer_task *task, struct chex_error *err)
{
    const char *wanted = job->o->split ? job->o->split : "test";

    task->train = chex_dataset_find_split(task->ds, "train");
    task->validation = chex_dataset_find_split(task->ds, "val");
    task->test = chex_dataset_find_split(task->ds, job->o->evaluate_only ? wanted : "test");
    if (task->train < 0)
        task->train = chex_dataset_find_split(task->ds, "all");
    if (job->o->evaluate_only && task->test < 0)
        return error_set(err, CHEX_ERR_USAGE, "'%s' has no split '%s'", job->o->data, wanted);
    return CHEX_OK;
}

/*
 * Divide train and val again for --fold.  An evaluation of another split does not need it.  A certificate says which
 * images of the data set's val resemble some of its train, so it does not apply to a fold.
 */
static enum chex_status
take_fold(const struct trainer_job *job, struct trainer_task *task, struct chex_error *err)
{
    struct fold_choice choice;
    enum chex_status status;
    bool needed = !job->o->evaluate_only || task->test == task->train || task->test == task->validation;

    if (!task->fold_text[0] || !needed)
        return CHEX_OK;
    if (task->train < 0 || task->validation < 0 ||
        strcmp(chex_dataset_split(task->ds, (unsigned)task->train)->name, "train") != 0)
        return error_set(err, CHEX_ERR_USAGE, "--fold divides the splits 'train' and 'val', and '%s' lacks one of them",
                         job->o->data);
    if (fold_parse(task->fold_text, &choice, err) != CHEX_OK) /* the text of a checkpoint */
        return error_context(err, CHEX_ERR_INCOMPATIBLE, "the fold of the model's run");
    status = fold_new(task->ds, (unsigned)task->train, (unsigned)task->validation, &choice, job->o->skip_bad,
                      &task->fold, err);
    if (status == CHEX_OK) {
        fold_apply(task->fold, task->ds);
        task->certificate = (struct certificate){.images = task->certificate.images};
    }
    return status;
}

/* Check that there are images to train on, and which splits are of use. */
static enum chex_status
check_splits(const struct trainer_job *job, struct trainer_task *task, struct chex_error *err)
{
    if (!job->o->evaluate_only &&
        (task->train < 0 || chex_dataset_split(task->ds, (unsigned)task->train)->image_count == 0))
        return error_set(err, CHEX_ERR_USAGE, "'%s' has no split 'train' with images to train on", job->o->data);
    if (!job->o->evaluate_only && !has_known_label(task->ds, (unsigned)task->train))
        return error_set(err, CHEX_ERR_USAGE, "the split '%s' of '%s' has no known label to train on",
                         chex_dataset_split(task->ds, (unsigned)task->train)->name, job->o->data);
    /* A validation split without images or without known labels counts as missing, and a test split without images. */
    if (task->validation >= 0 && !has_known_label(task->ds, (unsigned)task->validation))
        task->validation = -1;
    if (!job->o->evaluate_only && task->test >= 0 &&
        chex_dataset_split(task->ds, (unsigned)task->test)->image_count == 0)
        task->test = -1;
    if (job->o->patience > 0 && task->validation < 0)
        return error_set(err, CHEX_ERR_USAGE, "--early-stop needs a split 'val', and '%s' has none", job->o->data);
    return CHEX_OK;
}

/* Select by loss if no finding of the validation split can have an AUROC. */
static enum select_metric
choose_select(const struct trainer_job *job, const struct trainer_task *task)
{
    const struct chex_split_info *s = task->validation >= 0 ? chex_dataset_split(task->ds, (unsigned)task->validation)
                                                            : NULL;
    unsigned findings = chex_dataset_info(task->ds)->finding_count, i;

    for (i = 0; s && i < findings; i++)
        if (s->positives[i] > 0 && s->positives[i] < s->known[i])
            return job->o->select;
    return SELECT_LOSS;
}

/* Each finding of the data set must be in the user's list once, and no other name. */
static enum chex_status
take_given_weights(const struct trainer_options *o, struct trainer_task *task, struct chex_error *err)
{
    struct findings list = {.name = NULL};
    bool seen[CHEX_FINDINGS_MAX] = {false};
    unsigned i;

    list.name = chex_dataset_findings(task->ds, &list.count);
    for (i = 0; i < o->given_count; i++) {
        const struct given_weight *given = &o->given[i];
        int finding = finding_index(&list, given->name, strlen(given->name));

        if (finding < 0)
            return error_set(err, CHEX_ERR_USAGE, "%s:%lu: '%s' is not a finding of '%s'", o->given_path, given->line,
                             given->name, o->data);
        if (seen[finding])
            return error_set(err, CHEX_ERR_USAGE, "%s:%lu: %s a second time", o->given_path, given->line,
                             list.name[finding]);
        seen[finding] = true;
        task->positive[finding] = given->weight;
    }
    for (i = 0; i < list.count; i++)
        if (!seen[i])
            return error_set(err, CHEX_ERR_USAGE, "%s: no weight for %s", o->given_path, list.name[i]);
    return CHEX_OK;
}

/*
 * auto: negatives / positives of the known labels of the training split; 1 if a finding has no positives or no
 * negatives, or without such a split.
 */
static enum chex_status
choose_positive_weight(const struct trainer_job *job, struct trainer_task *task, struct chex_error *err)
{
    const struct chex_split_info *s = task->train >= 0 ? chex_dataset_split(task->ds, (unsigned)task->train) : NULL;
    unsigned findings = chex_dataset_info(task->ds)->finding_count, i;

    for (i = 0; i < findings; i++) {
        task->positive[i] = 1;
        if (job->o->positive == POSITIVE_AUTO && s && s->positives[i] > 0 && s->positives[i] < s->known[i])
            task->positive[i] = (double)(s->known[i] - s->positives[i]) / (double)s->positives[i];
    }
    return job->o->positive == POSITIVE_GIVEN ? take_given_weights(job->o, task, err) : CHEX_OK;
}

/* Rank 0: read the certificate of the split.  Without a valid one the run continues, and its results name none. */
static enum chex_status
read_certificate(const struct trainer_job *job, struct trainer_task *task, struct chex_error *err)
{
    struct chex_error why;
    enum chex_status status = job->is_rank_0 ? certificate_read(task->ds, &task->certificate, &why) : CHEX_OK;

    if (status == CHEX_ERR_MEMORY)
        return error_memory(err);
    if (status != CHEX_OK && status != CHEX_ERR_MISSING)
        trainer_warn(job, "%s: not used (chex-inspect check --near --certificate writes one)", why.text);
    task->leaky = chex_dataset_info(task->ds)->leaky_patients > 0 || task->certificate.images > 0;
    return CHEX_OK;
}

/* Refuse weights that were trained on images of val: those of another fold, or of the whole split train. */
static enum chex_status
check_origin(const struct trainer_task *task, struct chex_error *err)
{
    const struct weights_origin *w = &task->origin;

    if (strcmp(w->data_set, chex_dataset_info(task->ds)->id) != 0 || strcmp(w->fold, task->fold_text) == 0)
        return CHEX_OK;
    return error_set(
        err, CHEX_ERR_INCOMPATIBLE,
        "the weights were trained %s%s on the same data set: they have seen images that this run validates "
        "with%s%s",
        w->fold[0] ? "with --fold " : "without --fold", w->fold, task->fold_text[0] ? " by --fold " : "",
        task->fold_text);
}

enum chex_status
trainer_open_dataset(const struct trainer_job *job, struct trainer_task *task, struct chex_error *err)
{
    const struct chex_dataset_info *info;
    enum chex_status status = chex_dataset_open(job->o->data, &task->ds, err);

    if (chex_status_is_data(status)) /* not a manifest; a data fault is a fault of a record */
        err->status = status = CHEX_ERR_INCOMPATIBLE;
    if (status == CHEX_OK)
        status = find_splits(job, task, err);
    if (status == CHEX_OK)
        status = read_certificate(job, task, err);
    if (status == CHEX_OK)
        status = check_origin(task, err);
    if (status == CHEX_OK)
        status = take_fold(job, task, err);
    if (status == CHEX_OK)
        status = check_splits(job, task, err);
    if (status != CHEX_OK)
        return status;
    info = chex_dataset_info(task->ds);
    if (info->width != info->height || info->channels != 1)
        return error_set(err, CHEX_ERR_USAGE, "images of %u x %u with %u channels: square gray ones are needed",
                         info->width, info->height, info->channels);
    if (task->side == 0)
        task->side = info->width < SIDE ? info->width : SIDE; /* small images are used whole */
    if (task->side > info->width)
        return error_set(err, CHEX_ERR_USAGE, "--crop %u of images of %u x %u", task->side, info->width, info->height);
    task->select = choose_select(job, task);
    return choose_positive_weight(job, task, err);
}
