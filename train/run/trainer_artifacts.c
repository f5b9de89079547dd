/*
 * trainer_artifacts.c - writes the files of an evaluation: predictions, numbers, picture; see trainer.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/trainer_private.h"

#include "base/json.h"
#include "eval/predictions.h"
#include "store/store.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FILE_NAME   64
#define NUMBERS_MAX (64u << 20) /* bytes of metrics-SPLIT.json */

/* "metrics-val.json" */
static const char *
file_of(const char *what, const char *split, const char *suffix, char out[FILE_NAME])
{
    snprintf(out, FILE_NAME, "%s-%s.%s", what, split, suffix);
    return out;
}

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
    char name[FILE_NAME];
    enum chex_status status = CHEX_OK;

    if (run->folder.path)
        status = predictions_write(e, v->source, &run->folder, file_of("predictions", v->split, "csv", name), err);
    if (status == CHEX_OK && run->folder.path)
        status = metrics_write(e, v->source, &run->folder, file_of("metrics", v->split, "json", name), err);
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
                                             .operating = &best->operating,
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

/* ---- results without a mark -------------------------------------------------------------------------------------- */

/* Returns whether this document exists and has no mark. */
static bool
is_unmarked(const struct folder *folder, const char *numbers)
{
    static const struct parse_bounds bounds = {.size = NUMBERS_MAX, .depth = 8, .values = 1000000};
    struct buffer text = {0};
    json_t *document = NULL;
    bool unmarked = file_read(folder->fd, numbers, NUMBERS_MAX, &text, NULL) == CHEX_OK;

    if (unmarked && parse_json(text.data, text.size, &bounds, &document, NULL) == CHEX_OK)
        unmarked = !json_is_true(json_object_get(document, "leaky"));
    json_decref(document);
    buffer_release(&text);
    return unmarked;
}

enum chex_status
trainer_drop_unmarked(const struct trainer_job *job, const struct trainer_task *task, const struct run_folder *run,
                      struct chex_error *err)
{
    const struct folder *folder = &run->folder;
    const unsigned splits = chex_dataset_info(task->ds)->split_count;
    char numbers[FILE_NAME], name[FILE_NAME];
    enum chex_status status = CHEX_OK;

    for (unsigned i = 0; i < splits && status == CHEX_OK; i++) {
        const char *split = chex_dataset_split(task->ds, i)->name;

        if (!is_unmarked(folder, file_of("metrics", split, "json", numbers)))
            continue;
        status = folder_remove(folder, file_of("predictions", split, "csv", name), err);
        if (status == CHEX_OK)
            status = folder_remove(folder, file_of("auroc", split, "svg", name), err);
        if (status == CHEX_OK && (int)i == task->validation)
            status = folder_remove(folder, "auroc.svg", err);
        if (status == CHEX_OK) /* last, because it shows that the others may be unmarked */
            status = folder_remove(folder, numbers, err);
        if (status == CHEX_OK)
            trainer_note(job, "removed the results of split %s, which had no mark: the run is leaky", split);
    }
    return status;
}

bool
trainer_has_numbers(const struct trainer_task *task, const struct run_folder *run, int split)
{
    char name[FILE_NAME];

    return faccessat(run->folder.fd,
                     file_of("metrics", chex_dataset_split(task->ds, (unsigned)split)->name, "json", name), F_OK,
                     0) == 0;
}
