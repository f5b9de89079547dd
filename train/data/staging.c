/*
 * staging.c - see staging.h
 *
 * One thread leads: folder, lock, present files, space, copies, manifest.  It and its helpers divide the shards.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "data/staging_private.h"

#include "base/progress.h"
#include "dataset/dataset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define MAX_THREADS 16

static void
report_waiting(struct staging *s, bool waiting, const char *why)
{
    pthread_mutex_lock(&s->mutex);
    s->progress.waiting = waiting;
    if (!s->progress.why[0] || s->progress.left_out == 0)
        snprintf(s->progress.why, sizeof(s->progress.why), "%s", why);
    pthread_mutex_unlock(&s->mutex);
}

static char *
copy_path(const char *folder, const struct chex_dataset *ds, char *out, size_t size)
{
    if (snprintf(out, size, "%s/chex-%s", folder, chex_dataset_info(ds)->id) >= (int)size)
        out[0] = '\0';
    return out;
}

/* ---- all shards -------------------------------------------------------------------------------------------------- */

static void
note_failure(struct staging *s, enum chex_status status, const struct chex_error *err)
{
    atomic_store(&s->give_up, true);
    pthread_mutex_lock(&s->mutex);
    /* The others stop because of it. */
    if (s->status == CHEX_OK || (s->status == CHEX_ERR_STOPPED && status != CHEX_ERR_STOPPED)) {
        s->status = status;
        s->error = *err;
    }
    pthread_mutex_unlock(&s->mutex);
}

static void *
help(void *argument)
{
    struct staging *s = argument;
    struct chex_error err = {.status = CHEX_OK};
    enum chex_status status = CHEX_OK;
    unsigned shard;

    while (status == CHEX_OK && (shard = atomic_fetch_add(&s->next, 1)) < s->shards && !staging_is_stopped(s))
        if (s->wanted[shard])
            status = s->work(s, shard, &err);
    if (status == CHEX_OK && staging_is_stopped(s))
        status = staging_fail_stopped(&err);
    if (status != CHEX_OK)
        note_failure(s, status, &err);
    return NULL;
}

/* `work` for each shard; this thread does its part. */
static enum chex_status
share_out(struct staging *s, staging_work *work, struct chex_error *err)
{
    pthread_t helper[MAX_THREADS];
    unsigned helpers = 0;

    s->work = work;
    atomic_store(&s->next, 0);
    while (helpers + 1 < s->o.threads && helpers < MAX_THREADS && pthread_create(&helper[helpers], NULL, help, s) == 0)
        helpers++;
    help(s);
    while (helpers > 0)
        pthread_join(helper[--helpers], NULL);
    *err = s->error;
    return s->status;
}

/* ---- the folder -------------------------------------------------------------------------------------------------- */

static bool
is_left_over(const char *name)
{
    return name[0] == '.' && strstr(name, ".tmp.");
}

static enum chex_status
remove_leftovers(struct staging *s, struct chex_error *err)
{
    struct folder_names names = {.count = 0};
    enum chex_status status = folder_list(&s->folder, is_left_over, &names, err);
    size_t i;

    for (i = 0; status == CHEX_OK && i < names.count; i++)
        status = folder_remove(&s->folder, names.name[i], err);
    folder_names_release(&names);
    return status;
}

/* Another user who may write there could put anything between the probe and its use. */
static enum chex_status
check_owner(const struct folder *folder, struct chex_error *err)
{
    struct stat st;

    if (fstat(folder->fd, &st) != 0)
        return error_system(err, CHEX_ERR_WRITE, errno, "'%s'", folder->path);
    if (st.st_uid != geteuid())
        return error_set(err, CHEX_ERR_USAGE, "'%s' belongs to another user (uid %lu)", folder->path,
                         (unsigned long)st.st_uid);
    return CHEX_OK;
}

static enum chex_status
open_folder(struct staging *s, struct chex_error *err)
{
    struct folder above;
    char path[4096];
    enum chex_status status = folder_open(s->o.folder, true, &above, err);

    folder_close(&above);
    if (status != CHEX_OK)
        return status;
    if (!copy_path(s->o.folder, s->o.ds, path, sizeof(path))[0])
        return error_set(err, CHEX_ERR_USAGE, "the path '%.100s...' is too long", s->o.folder);
    status = folder_open(path, true, &s->folder, err);
    return status == CHEX_OK ? check_owner(&s->folder, err) : status;
}

/* Another process that is at work there is waited for. */
static enum chex_status
take_lock(struct staging *s, struct chex_error *err)
{
    static const struct timespec pause = {.tv_nsec = 200000000};
    enum chex_status status;

    while ((status = lock_take(&s->lock, &s->folder, s->o.break_lock, err)) == CHEX_ERR_LOCKED) {
        report_waiting(s, true, err->text);
        nanosleep(&pause, NULL);
        if (staging_is_stopped(s))
            return error_set(err, CHEX_ERR_STOPPED, "stopped while waiting: %s", s->progress.why);
    }
    report_waiting(s, false, "");
    return status;
}

static enum chex_status
check_space(struct staging *s, struct chex_error *err)
{
    char needed[PROGRESS_TEXT], there[PROGRESS_TEXT];
    struct statvfs fs;
    uint64_t bytes = 0, available;
    unsigned i;

    for (i = 0; i < s->shards; i++)
        if (s->wanted[i] && !s->there[i])
            bytes += chex_dataset_shard(s->o.ds, i)->size;
    if (fstatvfs(s->folder.fd, &fs) != 0)
        return CHEX_OK;
    available = (uint64_t)fs.f_bavail * fs.f_frsize;
    if (bytes <= available)
        return CHEX_OK;
    return error_set(err, CHEX_ERR_WRITE, "--stage: '%s' needs %s more, %s are free", s->folder.path,
                     format_bytes_beside(bytes, available, needed), format_bytes_beside(available, bytes, there));
}

static enum chex_status
copy_manifest(struct staging *s, struct chex_error *err)
{
    struct buffer text = {0}, there = {0};
    enum chex_status status = file_read(s->o.ds->folder.fd, MANIFEST_NAME, MANIFEST_MAX, &text, err);

    if (status != CHEX_OK)
        error_context(err, status, "'%s/%s'", s->o.ds->folder.path, MANIFEST_NAME);
    else if (file_read(s->folder.fd, MANIFEST_NAME, MANIFEST_MAX, &there, NULL) != CHEX_OK || there.size != text.size ||
             memcmp(there.data, text.data, text.size) != 0)
        status = safe_file_put(&s->folder, MANIFEST_NAME, text.data, text.size, err);
    buffer_release(&text);
    buffer_release(&there);
    return status;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static void
count_wanted(struct staging *s)
{
    unsigned i;

    pthread_mutex_lock(&s->mutex);
    for (i = 0; i < s->shards; i++) {
        s->progress.shards += s->wanted[i];
        s->progress.total += s->wanted[i] ? chex_dataset_shard(s->o.ds, i)->size : 0;
    }
    pthread_mutex_unlock(&s->mutex);
}

static void
count_there(struct staging *s)
{
    unsigned i;

    pthread_mutex_lock(&s->mutex);
    for (i = 0; i < s->shards; i++)
        s->progress.there += s->there[i];
    pthread_mutex_unlock(&s->mutex);
}

static enum chex_status
stage(struct staging *s, struct chex_error *err)
{
    enum chex_status status = open_folder(s, err);

    if (status == CHEX_OK)
        status = take_lock(s, err);
    if (status == CHEX_OK)
        status = remove_leftovers(s, err);
    if (status == CHEX_OK)
        status = share_out(s, staging_probe_shard, err);
    count_there(s);
    if (status == CHEX_OK)
        status = check_space(s, err);
    if (status == CHEX_OK)
        status = share_out(s, staging_copy_shard, err);
    return status == CHEX_OK ? copy_manifest(s, err) : status;
}

static void *
lead(void *argument)
{
    struct staging *s = argument;
    struct chex_error err = {.status = CHEX_OK};
    enum chex_status status;

    count_wanted(s);
    status = stage(s, &err);
    if (s->lock.held)
        (void)lock_drop(&s->lock, NULL); /* one that stays is taken over by the next run */
    pthread_mutex_lock(&s->mutex);
    s->status = status;
    s->error = err;
    pthread_mutex_unlock(&s->mutex);
    atomic_store(&s->ended, true);
    return NULL;
}

enum chex_status
staging_start(const struct staging_options *options, struct staging **out, struct chex_error *err)
{
    struct staging *s = calloc(1, sizeof(*s));
    unsigned i;

    *out = NULL;
    if (!s)
        return error_memory(err);
    s->o = *options;
    s->folder.fd = -1;
    s->shards = chex_dataset_info(s->o.ds)->shard_count;
    s->wanted = calloc(s->shards + 1, sizeof(*s->wanted));
    s->there = calloc(s->shards + 1, sizeof(*s->there));
    pthread_mutex_init(&s->mutex, NULL);
    for (i = 0; s->wanted && i < s->shards; i++)
        s->wanted[i] = options->split[chex_dataset_shard(s->o.ds, i)->split];
    s->o.split = NULL; /* it need not outlive this call */
    s->started = s->wanted && s->there && pthread_create(&s->leader, NULL, lead, s) == 0;
    if (!s->started) {
        (void)staging_end(s, NULL);
        return error_memory(err);
    }
    *out = s;
    return CHEX_OK;
}

bool
staging_progress(struct staging *s, struct staging_progress *out)
{
    bool ended = atomic_load(&s->ended);

    pthread_mutex_lock(&s->mutex);
    *out = s->progress;
    pthread_mutex_unlock(&s->mutex);
    out->done = atomic_load(&s->done);
    out->copied = atomic_load(&s->copied);
    return ended;
}

enum chex_status
staging_end(struct staging *s, struct chex_error *err)
{
    enum chex_status status;

    if (!s)
        return CHEX_OK;
    atomic_store(&s->give_up, true);
    if (s->started)
        pthread_join(s->leader, NULL);
    status = s->status;
    if (status != CHEX_OK && err)
        *err = s->error;
    folder_close(&s->folder);
    pthread_mutex_destroy(&s->mutex);
    free(s->wanted);
    free(s->there);
    free(s);
    return status;
}

enum chex_status
staging_open(const char *folder, const struct chex_dataset *ds, struct chex_dataset **out, struct chex_error *err)
{
    char path[4096];
    enum chex_status status = chex_dataset_open(copy_path(folder, ds, path, sizeof(path)), out, err);

    if (status != CHEX_OK || strcmp(chex_dataset_info(*out)->id, chex_dataset_info(ds)->id) == 0)
        return status;
    status = error_set(err, CHEX_ERR_INCOMPATIBLE, "'%s' is the data set %s, not %s", path, chex_dataset_info(*out)->id,
                       chex_dataset_info(ds)->id);
    chex_dataset_close(*out);
    *out = NULL;
    return status;
}
