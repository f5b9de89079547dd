/*
 * trainer_folder.c - RUN: its folder, its lock, and what a killed process left in it; see trainer.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/trainer_private.h"

#include "checkpoint/checkpoint_private.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* What a killed process was writing: names as file.c makes them, of files that a run has. */
static bool
is_left_over(const char *name)
{
    static const char *const ours[] = {".step-",        ".best.",   ".latest.",   "..next.",
                                       ".predictions-", ".metrics", ".run.json.", ".auroc"};
    const char *infix = strstr(name, ".tmp.");
    size_t i;

    if (strcmp(name, CHECKPOINT_NEXT) == 0)
        return true;
    if (!infix || !file_is_temporary_suffix(infix))
        return false;
    for (i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        if (strncmp(name, ours[i], strlen(ours[i])) == 0)
            return true;
    return false;
}

static enum chex_status
sweep(const struct folder *folder, struct chex_error *err)
{
    struct folder_names names = {.count = 0};
    enum chex_status status = folder_list(folder, is_left_over, &names, err);
    size_t i;

    for (i = 0; status == CHEX_OK && i < names.count; i++)
        status = folder_remove(folder, names.name[i], err);
    folder_names_release(&names);
    return status;
}

/* RUN has files that come and go, a data set those of its manifest. */
static enum chex_status
refuse_data_folder(const struct trainer_job *job, const struct run_folder *run, struct chex_error *err)
{
    struct stat ours, data;

    if (fstat(run->folder.fd, &ours) == 0 && stat(job->o->data, &data) == 0 && ours.st_dev == data.st_dev &&
        ours.st_ino == data.st_ino)
        return error_set(err, CHEX_ERR_USAGE, "'%s' holds the data set: give the run a folder of its own", job->o->run);
    return CHEX_OK;
}

enum chex_status
trainer_take_folder(const struct trainer_job *job, struct run_folder *run, bool create, struct chex_error *err)
{
    enum chex_status status = folder_open(job->o->run, create, &run->folder, err);

    if (status == CHEX_OK && create)
        status = refuse_data_folder(job, run, err);
    if (status == CHEX_OK)
        status = lock_take(&run->lock, &run->folder, job->o->break_lock, err);
    if (status == CHEX_OK)
        status = sweep(&run->folder, err);
    return status;
}
