/*
 * trainer_leave.c - files of an evaluation: predictions, numbers, picture; see trainer.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/trainer_private.h"

#include "eval/predictions.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The folder of a file that the user named, and its name there.  A device or a pipe would be replaced by the file. */
static enum chex_status
open_elsewhere(const char *path, struct folder *folder, const char **name, struct chex_error *err)
{
    const char *slash = strrchr(path, '/');
    char parent[4096];
    struct stat there;

    *name = slash ? slash + 1 : path;
    if (snprintf(parent, sizeof(parent), "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".") >=
        (int)sizeof(parent))
        return error_set(err, CHEX_ERR_USAGE, "the path '%.100s...' is too long", path);
    if (folder_open(slash == path ? "/" : parent, false, folder, err) != CHEX_OK)
        return error_context(err, CHEX_ERR_WRITE, "--predict");
    if (**name == '\0' || (fstatat(folder->fd, *name, &there, 0) == 0 && !S_ISREG(there.st_mode)))
        return error_set(err, CHEX_ERR_WRITE, "--predict: '%s' is no regular file", path);
    if (faccessat(folder->fd, ".", W_OK | X_OK, AT_EACCESS) != 0)
        return error_system(err, CHEX_ERR_WRITE, errno, "--predict: cannot write to the folder '%s'", folder->path);
    return CHEX_OK;
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

/* Into any folder, for --predict. */
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
write_files(const struct trainer_job *job, const struct run_folder *run, const struct trainer_verdict *v,
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
trainer_leave(const struct trainer_job *job, const struct trainer_task *task, const struct run_folder *run,
              const struct trainer_best *best, struct trainer_verdict *v, struct chex_error *picture,
              struct chex_error *err)
{
    const char *slash = strrchr(v->weights, '/');
    const struct evaluation_source source = {.ds = task->ds,
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
