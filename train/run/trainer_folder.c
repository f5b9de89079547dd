/*
 * trainer_folder.c - opens and locks RUN, and removes temporary files of a killed process; see trainer.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "run/trainer_private.h"

#include "base/number_format.h"
#include "checkpoint/checkpoint_private.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Returns whether the name has a prefix of a file in RUN. */
static bool
begins_like_ours(const char *name)
{
    static const char *const ours[] = {"step-",    "best.", "latest",  "predictions-", "metrics",
                                       "run.json", "auroc", "events.", ".next."};
    size_t i;

    for (i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        if (strncmp(name, ours[i], strlen(ours[i])) == 0)
            return true;
    return false;
}

/* Returns whether this is a temporary name, as made by file.c, of a file of a run. */
static bool
is_left_over(const char *name)
{
    const char *infix = strstr(name, ".tmp.");

    if (strcmp(name, CHECKPOINT_NEXT) == 0)
        return true;
    return infix && file_is_temporary_suffix(infix) && name[0] == '.' && begins_like_ours(name + 1);
}

static bool
is_foreign(const char *name)
{
    return name[0] != '.' && !begins_like_ours(name);
}

void
trainer_note_foreign(const struct trainer_job *job, const struct run_folder *run)
{
    struct folder_names names = {.count = 0};
    char n[FORMAT_THINGS];

    if (run->folder.fd >= 0 && folder_list(&run->folder, is_foreign, &names, NULL) == CHEX_OK && names.count > 0)
        trainer_note(job, "'%s' holds %s, such as '%s'", job->o->run, format_things(names.count, "other file", n),
                     names.name[0]);
    folder_names_release(&names);
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

/* Reject the folder of the data set as RUN: files in RUN change, a data set has only those of its manifest. */
static enum chex_status
refuse_data_folder(const struct trainer_job *job, struct chex_error *err)
{
    struct stat ours, data;

    if (stat(job->o->run, &ours) == 0 && stat(job->o->data, &data) == 0 && ours.st_dev == data.st_dev &&
        ours.st_ino == data.st_ino)
        return error_set(err, CHEX_ERR_USAGE, "'%s' holds the data set: give the run a folder of its own", job->o->run);
    return CHEX_OK;
}

enum chex_status
trainer_check_folder(const struct trainer_job *job, struct chex_error *err)
{
    enum chex_status status = folder_check_writable(job->o->run, err);

    return status == CHEX_OK && job->o->run ? refuse_data_folder(job, err) : status;
}

enum chex_status
trainer_take_folder(const struct trainer_job *job, struct run_folder *run, bool create, struct chex_error *err)
{
    enum chex_status status = folder_open(job->o->run, create, &run->folder, err);

    if (status == CHEX_OK && create)
        status = refuse_data_folder(job, err);
    if (status == CHEX_OK)
        status = lock_take(&run->lock, &run->folder, job->o->break_lock, err);
    if (status == CHEX_OK)
        status = sweep(&run->folder, err);
    return status;
}
