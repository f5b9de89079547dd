/*
 * target.c - determines the kind of a PATH from its content; see inspect.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/inspect.h"

#include "checkpoint/checkpoint.h"
#include "dataset/format.h"
#include "dataset/tfrecord.h"
#include "io/content.h"
#include "store/journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- a folder ---------------------------------------------------------------------------------------------------- */

/* An invalid manifest does not mean damaged data: the file may be unrelated. */
static enum chex_status
open_dataset(struct target *t, const char *folder, struct chex_error *err)
{
    enum chex_status status = chex_dataset_open(folder, &t->dataset, err);

    if (!chex_status_is_data(status))
        return status;
    t->next = "chex-convert --repair with the options of the conversion makes the manifest again";
    return err->status = CHEX_ERR_INCOMPATIBLE;
}

static bool
is_there(const char *folder, const char *name)
{
    char path[4096];
    struct stat st;

    return snprintf(path, sizeof(path), "%s/%s", folder, name) < (int)sizeof(path) && stat(path, &st) == 0;
}

/* What one journal says: its first line names the data set, each other line is a shard.  Returns how many. */
static size_t
read_journal(struct target *t, const struct folder *folder, const char *name, char id[INSPECT_TEXT])
{
    struct buffer b = {0};
    char spec[INSPECT_TEXT];
    size_t lines = 0, shards = 0, i;
    json_t *head = NULL;
    const char *its_id, *its_spec;

    if (file_read(folder->fd, name, MANIFEST_MAX, &b, NULL) == CHEX_OK && b.size > 0) {
        for (i = 0; i < b.size; i++)
            lines += b.data[i] == '\n';
        head = json_loadb((const char *)b.data, b.size, JSON_DISABLE_EOF_CHECK, NULL);
    }
    if (head && lines > 0 && json_unpack(head, "{s:s, s:s}", "dataset_id", &its_id, "spec", &its_spec) == 0) {
        inspect_text((struct chex_bytes){its_id, strnlen(its_id, CHEX_ID_LENGTH)}, id);
        inspect_text((struct chex_bytes){its_spec, strnlen(its_spec, RECORD_MAX_TEXT)}, spec);
        snprintf(t->spec, sizeof(t->spec), "%.500s", spec);
        shards = lines - 1;
    }
    json_decref(head);
    buffer_release(&b);
    return shards;
}

/* All of them, one for each process of the conversion; false where there is none. */
static bool
read_journals(struct target *t)
{
    struct folder_names names = {0};
    struct folder folder;
    char id[INSPECT_TEXT] = "";
    char done[FORMAT_THINGS];
    size_t shards = 0, count, i;

    if (folder_open(t->path, false, &folder, NULL) != CHEX_OK)
        return false;
    count = folder_list(&folder, journal_is_name, &names, NULL) == CHEX_OK ? names.count : 0;
    for (i = 0; i < count; i++)
        shards += read_journal(t, &folder, names.name[i], id);
    snprintf(t->unfinished, sizeof(t->unfinished), "an unfinished conversion");
    if (id[0])
        snprintf(t->unfinished, sizeof(t->unfinished), "an unfinished conversion of data set %.64s, %s done", id,
                 format_things(shards, "shard", done));
    folder_names_release(&names);
    folder_close(&folder);
    return count > 0;
}

/* Count the files named like shards.  A name with a further suffix is an index for DALI and does not count. */
static size_t
count_shards(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *d;
    size_t count = 0;

    while (dir && (d = readdir(dir)))
        count += d->d_name[0] != '.' && shard_is_name(d->d_name);
    if (dir)
        closedir(dir);
    return count;
}

#define BEST "best.safetensors"

static enum chex_status
mean_file(struct target *t, const char *name, struct chex_error *err)
{
    size_t size = strlen(t->path) + strlen(name) + 2;

    t->kind = TARGET_CHECKPOINT;
    t->file = malloc(size);
    if (!t->file)
        return error_memory(err);
    snprintf(t->file, size, "%s%s%s", t->path, t->path[strlen(t->path) - 1] == '/' ? "" : "/", name);
    return CHEX_OK;
}

/* Open the folder of a run: select the checkpoint from which it would resume, or its best model if it has none. */
static enum chex_status
open_run(struct target *t, struct chex_error *err)
{
    char name[CHECKPOINT_NAME], file[CHECKPOINT_NAME + 16];
    struct chex_error why;
    struct folder folder;
    bool fallback = false;
    enum chex_status status = folder_open(t->path, false, &folder, err);

    if (status != CHEX_OK)
        return status;
    status = checkpoint_find(&folder, name, &fallback, &why);
    folder_close(&folder);
    if (status == CHEX_ERR_MISSING && is_there(t->path, BEST))
        return mean_file(t, BEST, err);
    if (status != CHEX_OK)
        return error_set(err, status, "'%s': %s", t->path, why.text);
    if (fallback)
        snprintf(t->passed_over, sizeof(t->passed_over), "%.500s", why.text);
    snprintf(file, sizeof(file), "%s.safetensors", name);
    return mean_file(t, file, err);
}

static enum chex_status
open_folder(struct target *t, struct chex_error *err)
{
    char number[FORMAT_THINGS];
    size_t shards;
    enum chex_status status;

    if (is_there(t->path, MANIFEST_NAME)) {
        t->kind = TARGET_DATASET;
        status = open_dataset(t, t->path, err);
        t->count = status == CHEX_OK ? t->dataset->info.shard_count : 0;
        return status;
    }
    if (is_there(t->path, CHECKPOINT_LATEST) || is_there(t->path, BEST))
        return open_run(t, err);
    t->kind = TARGET_UNFINISHED;
    if (is_there(t->path, WITHDRAWAL_NAME)) {
        snprintf(t->unfinished, sizeof(t->unfinished), "an unfinished withdrawal of patients");
        t->next = "the same chex-convert --withdraw command again: it finishes";
        return CHEX_OK;
    }
    if (read_journals(t)) {
        t->next = "the same chex-convert command again: it resumes where it stopped";
        return CHEX_OK;
    }
    shards = count_shards(t->path);
    if (shards == 0 && access(t->path, R_OK | X_OK) != 0)
        return error_read(err, errno, "cannot open the folder '%s'", t->path);
    if (shards == 0)
        return open_dataset(t, t->path, err); /* path does not exist: reports the error of all tools */
    snprintf(t->unfinished, sizeof(t->unfinished), "%s without a %s", format_things(shards, "shard", number),
             MANIFEST_NAME);
    t->next = "chex-inspect with the files' names: each is checked by itself";
    return CHEX_OK;
}

/* ---- a file ------------------------------------------------------------------------------------------------------ */

#define WALL_TIME 9 /* bytes of the first field of an Event */

/* safetensors: the size of a JSON object, then the object.  A truncated file is a checkpoint too, a damaged one. */
static bool
is_checkpoint(const uint8_t *head, size_t got)
{
    return got > 8 && head[8] == '{' && get_u64le(head) >= 2 && get_u64le(head) <= SAFETENSORS_HEADER_MAX;
}

/* TensorBoard: the first record is an Event with the fields wall_time and file_version. */
static bool
is_event_file(const uint8_t *head, size_t got)
{
    static const char version[] = "brain.Event:";
    const size_t at = TFRECORD_HEADER + WALL_TIME + 2;

    return got >= at + strlen(version) && memcmp(head + at, version, strlen(version)) == 0;
}

static enum chex_status
check_first_bytes(struct target *t, struct chex_error *err)
{
    const char *path = t->path;
    const char *look;
    uint8_t head[CONTENT_LOOK];
    uint64_t size, unused;
    size_t got;
    int fd;
    enum chex_status status = file_open_input(AT_FDCWD, path, &fd, &size, err);

    if (status != CHEX_OK)
        return error_context(err, status, "'%s'", path);
    status = file_pread(fd, 0, head, sizeof(head), &got, err);
    close(fd);
    if (status != CHEX_OK)
        return error_context(err, status, "'%s'", path);
    if (got >= TFRECORD_HEADER && tfrecord_length(head, UINT64_MAX, &unused, NULL) != CHEX_ERR_CHECKSUM)
        return is_event_file(head, got)
                   ? error_set(err, CHEX_ERR_MISSING, "'%s' is an event file: use tensorboard --logdir FOLDER", path)
                   : CHEX_OK;
    if (!is_checkpoint(head, got)) {
        look = got > 0 ? content_look(head, got) : "empty file";
        return error_set(err, CHEX_ERR_MISSING,
                         "'%s' is neither a data set nor a TFRecord or checkpoint%s%s (a download: source)", path,
                         look ? ": " : "", look ? look : "");
    }
    t->kind = TARGET_CHECKPOINT;
    t->file = strdup(path);
    return t->file ? CHEX_OK : error_memory(err);
}

/* Returns the folder part of path, or "."; the caller frees it. */
static char *
folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (!slash)
        return strdup(".");
    return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

static enum chex_status
open_file(struct target *t, struct chex_error *err)
{
    const char *slash = strrchr(t->path, '/');
    const char *name = slash ? slash + 1 : t->path;
    char *folder = folder_of(t->path);
    enum chex_status status = CHEX_OK;
    unsigned i;

    t->kind = TARGET_FILE;
    if (!folder)
        return error_memory(err);
    if (is_there(folder, MANIFEST_NAME))
        status = open_dataset(t, folder, err);
    free(folder);
    if (status != CHEX_OK)
        return status;
    if (t->dataset && strcmp(name, MANIFEST_NAME) == 0) {
        t->kind = TARGET_DATASET;
        t->count = t->dataset->info.shard_count;
        return CHEX_OK;
    }
    for (i = 0; t->dataset && i < t->dataset->info.shard_count; i++) {
        if (strcmp(t->dataset->shard[i].name, name) == 0) {
            t->kind = TARGET_SHARD;
            t->first = i;
            t->count = 1;
            return CHEX_OK;
        }
    }
    /* Ignore a manifest that does not list this file. */
    chex_dataset_close(t->dataset);
    t->dataset = NULL;
    return check_first_bytes(t, err);
}

/* ---- all together ------------------------------------------------------------------------------------------------ */

enum chex_status
target_open(const char *path, struct target *out, struct chex_error *err)
{
    struct stat st;

    *out = (struct target){.path = path};
    if (stat(path, &st) != 0)
        return error_read(err, errno, "cannot open '%s'", path);
    return S_ISDIR(st.st_mode) ? open_folder(out, err) : open_file(out, err);
}

void
target_close(struct target *t)
{
    chex_dataset_close(t->dataset);
    free(t->file);
    *t = (struct target){.path = t->path};
}

enum chex_status
target_select(struct target *t, const char *split, struct chex_error *err)
{
    const struct chex_dataset *ds = t->dataset;
    char names[512] = "";
    size_t used = 0;
    unsigned i;
    int found;

    if (!split)
        return CHEX_OK;
    found = chex_dataset_find_split(ds, split);
    if (found >= 0) {
        const struct chex_split_info *info = &ds->split[found];

        if (t->kind == TARGET_SHARD && ds->shard[t->first].split != (unsigned)found)
            t->count = 0;
        if (t->kind == TARGET_DATASET) {
            t->first = info->first_shard;
            t->count = info->shard_count;
        }
        return CHEX_OK;
    }
    for (i = 0; i < ds->info.split_count; i++)
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "", ds->split[i].name);
    return error_set(err, CHEX_ERR_USAGE, "'%s' has no split '%s', it has %s", t->path, split, names);
}
