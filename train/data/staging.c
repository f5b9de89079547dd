/*
 * staging.c - implements staging.h
 *
 * One thread does the sequence: folder, lock, existing files, free space, copies, manifest.  Helper threads share the
 * work on the shards with it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "data/staging_private.h"

#include "base/clock.h"
#include "base/number_format.h"
#include "dataset/dataset.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
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

/* Run `work` for each shard, in the helpers and in this thread. */
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

const char *
staging_name(const struct chex_dataset *ds, char out[STAGING_NAME])
{
    snprintf(out, STAGING_NAME, "chex-%s-%lu", chex_dataset_info(ds)->id, (unsigned long)geteuid());
    return out;
}

/*
 * Open DIR/chex-ID-UID.  DIR is the user's choice and may be a link.  chex-ID-UID is a predictable name, which another
 * user can create first.
 */
static enum chex_status
open_copy(const char *dir, const struct chex_dataset *ds, bool create, struct folder *out, struct chex_error *err)
{
    char name[STAGING_NAME];
    struct chex_error why;
    struct folder above;
    enum chex_status status = folder_open(dir, create, &above, err);

    if (status != CHEX_OK)
        return status;
    status = folder_open_private(&above, staging_name(ds, name), create, out, err);
    folder_close(&above);
    if (status != CHEX_ERR_USAGE || !err)
        return status;
    why = *err;
    return error_set(err, status, "--stage: %s; remove it, or give another DIR", why.text);
}

static bool
is_temporary(const char *name)
{
    const char *infix = strstr(name, ".tmp.");

    return name[0] == '.' && infix && infix > name && file_is_temporary_suffix(infix);
}

/* Returns whether this is the temporary name of a file of the copy. */
static bool
is_left_over(const struct staging *s, const char *name)
{
    size_t length = (size_t)(strstr(name, ".tmp.") - name) - 1;
    bool ours = length == strlen(MANIFEST_NAME) && strncmp(name + 1, MANIFEST_NAME, length) == 0;
    unsigned i;

    for (i = 0; !ours && i < s->shards; i++) {
        const char *shard = chex_dataset_shard(s->o.ds, i)->name;

        ours = length == strlen(shard) && strncmp(name + 1, shard, length) == 0;
    }
    return ours;
}

static enum chex_status
remove_leftovers(struct staging *s, struct chex_error *err)
{
    struct folder_names names = {.count = 0};
    enum chex_status status = folder_list(&s->folder, is_temporary, &names, err);
    size_t i;

    for (i = 0; status == CHEX_OK && i < names.count; i++)
        if (is_left_over(s, names.name[i]))
            status = folder_remove(&s->folder, names.name[i], err);
    folder_names_release(&names);
    return status;
}

/* Take the lock; waits while another process holds it. */
static enum chex_status
take_lock(struct staging *s, struct chex_error *err)
{
    enum chex_status status;

    while ((status = lock_take(&s->lock, &s->folder, s->o.break_lock, err)) == CHEX_ERR_LOCKED) {
        report_waiting(s, true, err->text);
        backoff(0.2);
        if (staging_is_stopped(s))
            return error_set(err, CHEX_ERR_STOPPED, "stopped while waiting: %s", s->progress.why);
    }
    report_waiting(s, false, "");
    return status;
}

static enum chex_status
check_space(struct staging *s, struct chex_error *err)
{
    char needed[FORMAT_TEXT], there[FORMAT_TEXT];
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
                     format_bytes_compared(bytes, available, needed), format_bytes_compared(available, bytes, there));
}

/* Returns whether the folder's manifest has this text. */
static bool
has_manifest(const struct folder *folder, const struct buffer *text)
{
    struct buffer there = {0};
    uint64_t size;
    size_t got = 0;
    int fd;
    bool same;

    if (file_open_own(folder, MANIFEST_NAME, &fd, &size, NULL) != CHEX_OK)
        return false;
    same = size == text->size && buffer_reserve(&there, text->size, NULL) == CHEX_OK &&
           file_pread(fd, 0, there.data, text->size, &got, NULL) == CHEX_OK && got == text->size &&
           memcmp(there.data, text->data, text->size) == 0;
    close(fd);
    buffer_release(&there);
    return same;
}

static enum chex_status
copy_manifest(struct staging *s, struct chex_error *err)
{
    struct buffer text = {0};
    enum chex_status status = file_read(s->o.ds->folder.fd, MANIFEST_NAME, MANIFEST_MAX, &text, err);

    if (status != CHEX_OK)
        error_context(err, status, "'%s/%s'", s->o.ds->folder.path, MANIFEST_NAME);
    else if (!has_manifest(&s->folder, &text))
        status = safe_file_put(&s->folder, MANIFEST_NAME, text.data, text.size, err);
    buffer_release(&text);
    return status;
}

/* ---- the sequence ------------------------------------------------------------------------------------------------ */

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

/* Make DIR with mode 0700, and missing parents with that of the umask.  Opening DIR reports an error. */
static void
make_private(const char *dir)
{
    struct chex_error ignored;
    struct folder above;
    char *copy;

    if (mkdir(dir, S_IRWXU) == 0 || errno != ENOENT)
        return;
    copy = strdup(dir);
    if (copy && folder_open(dirname(copy), true, &above, &ignored) == CHEX_OK) {
        (void)mkdir(dir, S_IRWXU);
        folder_close(&above);
    }
    free(copy);
}

static enum chex_status
stage(struct staging *s, struct chex_error *err)
{
    enum chex_status status;

    make_private(s->o.folder);
    status = open_copy(s->o.folder, s->o.ds, true, &s->folder, err);
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
        (void)lock_drop(&s->lock, NULL); /* if it stays, the next run takes it over */
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
    s->o.split = NULL; /* need not outlive this call */
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
staging_open(const char *dir, const struct chex_dataset *ds, struct chex_dataset **out, struct chex_error *err)
{
    struct folder folder;
    enum chex_status status = open_copy(dir, ds, false, &folder, err);

    *out = NULL;
    if (status == CHEX_OK)
        status = dataset_open_in(&folder, out, err);
    if (status != CHEX_OK || strcmp(chex_dataset_info(*out)->id, chex_dataset_info(ds)->id) == 0)
        return status;
    status = error_set(err, CHEX_ERR_INCOMPATIBLE, "'%s' is the data set %s, not %s", (*out)->folder.path,
                       chex_dataset_info(*out)->id, chex_dataset_info(ds)->id);
    chex_dataset_close(*out);
    *out = NULL;
    return status;
}
