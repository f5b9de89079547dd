/*
 * trainer_artifacts.c - writes the files of an evaluation: predictions, numbers, picture; see trainer.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/trainer_private.h"

#include "eval/predictions.h"
#include "store/store.h"

#include <stdio.h>
#include <string.h>

static enum chex_status
open_elsewhere(const char *path, struct folder *folder, const char **name, struct chex_error *err)
{
    enum chex_status status = store_open_output(path, folder, name, err);

    return status == CHEX_OK ? status : error_context(err, status, "--predict");
}

enum chex_status
trainer_check_predict(const struct trainer_job *job, struct chex_error *err)
{
    struct folder folder = {.fd = -1};
    const char *name;
    enum chex_status status = job->o->predict ? open_elsewhere(job->o->predict, &folder, &name, err) : CHEX_OK;

    folder_close(&folder);
    return status;
}

/* Write to any folder, for --predict. */
static enum chex_status
write_elsewhere(const struct evaluation *e, const struct evaluation_source *from, const char *path,
                struct chex_error *err)
{
    struct folder folder = {.fd = -1};
    const char *name;
    enum chex_status status = open_elsewhere(path, &folder, &name, err);

    if (status == CHEX_OK)
        status = predictions_write(e, from, &folder, name, err);
    folder_close(&folder);
    return status;
}

static enum chex_status
write_files(const struct trainer_job *job, const struct run_folder *run, const struct trainer_evaluation_result *v,
            struct chex_error *err)
{
    const struct evaluation *e = v->evaluation;
    char predictions[64], numbers[64];
    enum chex_status status = CHEX_OK;

    snprintf(predictions, sizeof(predictions), "predictions-%s.csv", v->split);
    snprintf(numbers, sizeof(numbers), "metrics-%s.json", v->split);
    if (run->folder.path)
        status = predictions_write(e, v->source, &run->folder, predictions, err);
    if (status == CHEX_OK && run->folder.path)
        status = metrics_write(e, v->source, &run->folder, numbers, err);
    if (status == CHEX_OK && v->final && job->o->predict)
        status = write_elsewhere(e, v->source, job->o->predict, err);
    return status;
}

enum chex_status
trainer_write_artifacts(const struct trainer_job *job, const struct trainer_task *task, const struct run_folder *run,
                        const struct trainer_best *best, struct trainer_evaluation_result *v,
                        struct chex_error *picture, struct chex_error *err)
{
    const char *slash = strrchr(v->weights, '/');
    const struct evaluation_source source = {.ds = task->ds,
                                             .certificate = &task->certificate,
                                             .model = task->graph->model,
                                             .side = task->side,
                                             .checkpoint = slash ? slash + 1 : v->weights,
                                             .checkpoint_sha256 = best->hash[0] ? best->hash : NULL,
                                             .step = v->step,
                                             .epochs = v->epochs};
    enum chex_status status;

    v->source = &source;
    status = write_files(job, run, v, err);
    picture->status = CHEX_OK;
    if ((status == CHEX_OK || status == CHEX_ERR_WRITE) && run->folder.path && job->w->draw)
        (void)job->w->draw(&run->folder, v, picture);
    v->source = NULL;
    return status;
}
