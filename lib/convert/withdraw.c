/*
 * withdraw.c - see withdraw.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/withdraw_private.h"

#include "base/ascii.h"
#include "base/number_format.h"
#include "convert/convert.h"
#include "dataset/certificate.h"
#include "dataset/dali_index.h"
#include "dataset/format.h"
#include "io/line_reader.h"
#include "io/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the patients ------------------------------------------------------------------------------------------------ */

static enum chex_status
add_patient(struct withdrawal *w, size_t *capacity, const char *id, size_t length, struct chex_error *err)
{
    struct withdrawn_patient *grown = array_grow(w->patient, capacity, w->patient_count, sizeof(*grown)), new = {0};
    const char *fault = patient_fold(id, length, new.id);

    if (!grown)
        return error_memory(err);
    w->patient = grown;
    if (fault)
        return error_set(err, CHEX_ERR_USAGE, "%s", fault);
    w->patient[w->patient_count++] = new;
    return CHEX_OK;
}

/* Read a list: one id per line; blank lines and lines that begin with # are skipped. */
static enum chex_status
read_list(const char *path, struct withdrawal *w, struct chex_error *err)
{
    struct line_reader *reader;
    struct text_line line;
    size_t capacity = 0;
    enum chex_status status = text_open(path, false, &reader, err);

    if (status != CHEX_OK)
        return status;
    while ((status = text_next(reader, &line, err)) == CHEX_OK && line.data) {
        const char *id = line.data;
        size_t length = line.size;

        ascii_trim(&id, &length);
        if (length == 0 || id[0] == '#')
            continue;
        status = add_patient(w, &capacity, id, length, err);
        if (status != CHEX_OK) {
            if (status == CHEX_ERR_USAGE)
                error_context(err, status, "%s:%lu", path, line.number);
            break;
        }
    }
    text_close(reader);
    if (status == CHEX_OK && w->patient_count == 0)
        status = error_set(err, CHEX_ERR_USAGE, "'%s' has no patient", path);
    return status;
}

static int
compare_ids(const void *a, const void *b)
{
    return strcmp(((const struct withdrawn_patient *)a)->id, ((const struct withdrawn_patient *)b)->id);
}

/* Read the patients, sort them, and hash their ids. */
static enum chex_status
read_patients(const struct withdraw_options *o, struct withdrawal *w, char request[DIGEST_HEX], struct chex_error *err)
{
    struct digest *d = digest_new();
    uint8_t hash[DIGEST_SIZE];
    size_t capacity = 0, count = 0, i;
    struct stat st;
    enum chex_status status;

    if (!d)
        return error_memory(err);
    if (stat(o->patients, &st) == 0 && !S_ISDIR(st.st_mode))
        status = read_list(o->patients, w, err);
    else
        status = add_patient(w, &capacity, o->patients, strlen(o->patients), err);
    if (status == CHEX_OK)
        qsort(w->patient, w->patient_count, sizeof(*w->patient), compare_ids);
    digest_start(d);
    for (i = 0; status == CHEX_OK && i < w->patient_count; i++) {
        if (count > 0 && strcmp(w->patient[count - 1].id, w->patient[i].id) == 0)
            continue;
        digest_add(d, w->patient[i].id, strlen(w->patient[i].id) + 1);
        if (count != i)
            w->patient[count] = w->patient[i];
        count++;
    }
    w->patient_count = count;
    digest_finish(d, hash);
    digest_free(d);
    digest_hex(hash, DIGEST_SIZE, request);
    return status;
}

#define NAMED 5 /* unknown patients in a message */

/* Returns whether the argument looks like the path of a list, which does not exist. */
static bool
is_missing_list(const char *patients)
{
    return strpbrk(patients, "/.") && access(patients, F_OK) != 0;
}

static enum chex_status
fail_unknown(const struct withdraw_options *o, const struct withdrawal *w, struct chex_error *err)
{
    static const char rejected[] = " (only rejected ones)";
    char names[NAMED * (PATIENT_MAX * 4 + sizeof(rejected) + 4)] = "", id[PATIENT_MAX * 4 + 1], more[48] = "";
    size_t used = 0, named = 0, i;

    for (i = 0; i < w->patient_count && named < NAMED; i++)
        if (w->patient[i].images == 0) {
            ascii_escape(w->patient[i].id, strlen(w->patient[i].id), id, sizeof(id));
            used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s%s", named++ ? ", " : "", id,
                                     w->patient[i].rejects > 0 ? rejected : "");
        }
    if (w->unknown > named)
        snprintf(more, sizeof(more), " and %zu more", w->unknown - named);
    if (is_missing_list(o->patients))
        return error_set(err, CHEX_ERR_USAGE, "'%s' has no image of patient %s, and no such list exists", o->path,
                         names);
    return error_set(err, CHEX_ERR_USAGE, "'%s' has no image of patient%s %s%s (--allow-missing ignores %s)", o->path,
                     w->unknown > 1 ? "s" : "", names, more, w->unknown > 1 ? "them" : "it");
}

/* ---- the folder -------------------------------------------------------------------------------------------------- */

static bool
is_any(const char *name)
{
    return name[0] != '\0';
}

/* Returns whether the withdrawal neither changes nor removes a file of this name. */
static bool
is_not_searched(const char *name)
{
    return store_is_foreign(name) && strcmp(name, CERTIFICATE_NAME) != 0;
}

/* Returns whether the name is that of a shard of the data set, or of its DALI index. */
static bool
is_shard_of(const struct chex_dataset *ds, const char *name)
{
    unsigned i;

    for (i = 0; i < ds->info.shard_count; i++) {
        size_t length = strlen(ds->shard[i].name);

        if (strncmp(name, ds->shard[i].name, length) == 0 &&
            (name[length] == '\0' || strcmp(name + length, DALI_INDEX_SUFFIX) == 0))
            return true;
    }
    return false;
}

/* A shard that is not in the manifest may contain images of the patients.  List the other files for the caller. */
static enum chex_status
check_files(const struct chex_dataset *ds, struct withdrawal *w, struct chex_error *err)
{
    struct folder_names names = {.count = 0};
    enum chex_status status = folder_list(&ds->folder, is_any, &names, err);
    size_t i;

    for (i = 0; i < names.count && status == CHEX_OK; i++)
        if (shard_is_name(names.name[i]) && !is_shard_of(ds, names.name[i]))
            status = error_set(err, CHEX_ERR_DAMAGED,
                               "'%s/%s' is not in the manifest: remove it, it may contain these patients",
                               ds->folder.path, names.name[i]);
    folder_names_release(&names);
    return status == CHEX_OK ? folder_list(&ds->folder, is_not_searched, &w->foreign, err) : status;
}

/*
 * Check that each shard that changes is a file of this folder, and fits on the disk once more.  A rename would replace
 * a link, and the file that it points to would keep the images.
 */
static enum chex_status
check_shards(const struct chex_dataset *ds, const struct withdraw_journal *j, struct chex_error *err)
{
    uint64_t free = convert_free_space(ds->folder.path);
    char there[FORMAT_TEXT], needed[FORMAT_TEXT];
    struct stat st;
    unsigned i;

    for (i = 0; i < ds->info.shard_count; i++) {
        const struct chex_shard_info *s = &ds->shard[i];

        if (j->shard[i].count == 0)
            continue;
        if (file_fstatat(ds->folder.fd, s->name, AT_SYMLINK_NOFOLLOW, &st) == 0 && !S_ISREG(st.st_mode))
            return error_set(err, CHEX_ERR_WRITE, "'%s/%s' is a link: withdraw in the folder that has the files",
                             ds->folder.path, s->name);
        if (s->size > free)
            return error_set(err, CHEX_ERR_WRITE, "'%s' needs %s to write a shard again, %s are free", ds->folder.path,
                             format_bytes_compared(s->size, free, needed), format_bytes_compared(free, s->size, there));
    }
    return CHEX_OK;
}

/* ---- finishing --------------------------------------------------------------------------------------------------- */

/* Remove the old manifest.  *published: the folder already has the new one. */
static enum chex_status
remove_manifest(const struct folder *folder, const struct withdraw_journal *j, bool *published, struct chex_error *err)
{
    const struct manifest *new = &j->manifest;
    struct manifest m = {0};
    struct buffer b = {0};
    enum chex_status status = file_read(folder->fd, MANIFEST_NAME, MANIFEST_MAX, &b, err);

    *published = false;
    if (status == CHEX_ERR_MISSING) {
        buffer_release(&b);
        return CHEX_OK;
    }
    if (status == CHEX_OK)
        status = manifest_parse(b.data, b.size, &m, err);
    if (status == CHEX_OK) {
        *published = strcmp(m.dataset_id, new->dataset_id) == 0;
        if (!*published && strcmp(m.dataset_id, new->withdrawal[new->withdrawal_count - 1].dataset_id) != 0)
            status = error_set(err, CHEX_ERR_INCOMPATIBLE, "'%s' is not of the data set of '%s' (remove the latter)",
                               MANIFEST_NAME, WITHDRAWAL_NAME);
    }
    manifest_release(&m);
    buffer_release(&b);
    if (status != CHEX_OK)
        return error_context(err, status, "'%s'", folder->path);
    if (!*published)
        status = folder_remove(folder, MANIFEST_NAME, err);
    return status == CHEX_OK ? folder_sync(folder, err) : status;
}

static enum chex_status
publish(const struct folder *folder, const struct withdraw_journal *j, struct chex_error *err)
{
    struct buffer text = {0};
    enum chex_status status = manifest_format(&j->manifest, &text, err);

    if (status == CHEX_OK && j->has_rejects && j->rejects.size > 0)
        status = safe_file_put(folder, STORE_REJECTS_NAME, j->rejects.data, j->rejects.size, err);
    else if (status == CHEX_OK && j->has_rejects)
        status = folder_remove(folder, STORE_REJECTS_NAME, err);
    /* The certificate is of the data set before, and may name these patients. */
    if (status == CHEX_OK)
        status = folder_remove(folder, CERTIFICATE_NAME, err);
    if (status == CHEX_OK)
        status = store_clean(folder, err);
    if (status == CHEX_OK)
        status = folder_sync(folder, err);
    if (status == CHEX_OK)
        status = safe_file_put(folder, MANIFEST_NAME, text.data, text.size, err);
    buffer_release(&text);
    return status;
}

static void
describe(const struct withdraw_journal *j, struct withdrawal *out)
{
    const struct manifest *m = &j->manifest;
    const struct manifest_withdrawal *last = &m->withdrawal[m->withdrawal_count - 1];
    unsigned i;

    memcpy(out->from, last->dataset_id, sizeof(out->from));
    memcpy(out->to, m->dataset_id, sizeof(out->to));
    memcpy(out->time, last->time, sizeof(out->time));
    out->slots = last->slots;
    out->images_left = 0;
    out->shards = 0;
    for (i = 0; i < m->split_count; i++)
        out->images_left += m->split[i].images;
    for (i = 0; i < m->shard_count; i++)
        out->shards += j->shard[i].count > 0;
}

/* Finish the withdrawal of the journal: steps 3 to 6. */
static enum chex_status
finish(const struct folder *folder, const struct withdraw_options *o, struct withdrawal *out, char request[DIGEST_HEX],
       struct chex_error *err)
{
    struct withdraw_journal j = {.has_rejects = false};
    bool published = false;
    enum chex_status status = withdraw_journal_read(folder, &j, err);

    if (status == CHEX_OK)
        status = remove_manifest(folder, &j, &published, err);
    if (status == CHEX_OK && !published)
        status = withdraw_shards(folder, o, &j, &out->linked, err);
    if (status == CHEX_OK)
        status = published ? store_clean(folder, err) : publish(folder, &j, err);
    if (status == CHEX_OK)
        status = folder_remove(folder, WITHDRAWAL_NAME, err);
    if (status == CHEX_OK)
        status = folder_sync(folder, err);
    if (status == CHEX_OK) {
        memcpy(request, j.request, DIGEST_HEX);
        describe(&j, out);
    }
    withdraw_journal_release(&j);
    return status;
}

/* ---- all together ------------------------------------------------------------------------------------------------ */

/* Steps 1 and 2; with dry_run only step 1. */
static enum chex_status
begin(const struct withdraw_options *o, struct withdrawal *out, const char *request, struct chex_error *err)
{
    struct withdraw_journal j = {.has_rejects = false};
    struct buffer text = {0};
    struct chex_dataset *ds;
    struct tm tm;
    enum chex_status status = chex_dataset_open(o->path, &ds, err);

    if (status != CHEX_OK)
        return status;
    memcpy(j.request, request, DIGEST_HEX);
    gmtime_r(&o->now, &tm);
    strftime(out->time, sizeof(out->time), "%Y-%m-%dT%H:%M:%SZ", &tm);
    status = check_files(ds, out, err);
    if (status == CHEX_OK)
        status = withdraw_scan(ds, o, out, &j, &text, err);
    if (status == CHEX_OK && out->unknown > 0 && (!o->allow_missing || is_missing_list(o->patients)))
        status = fail_unknown(o, out, err);
    if (status == CHEX_OK && out->to[0])
        status = check_shards(ds, &j, err);
    if (status == CHEX_OK && out->to[0] && !o->dry_run)
        status = withdraw_journal_write(&ds->folder, &j, ds->info.shard_count, &text, err);
    withdraw_journal_release(&j);
    buffer_release(&text);
    chex_dataset_close(ds);
    return status;
}

static enum chex_status
run_locked(const struct folder *folder, const struct withdraw_options *o, struct withdrawal *out, const char *request,
           struct chex_error *err)
{
    char of_journal[DIGEST_HEX];
    enum chex_status status = CHEX_OK;

    if (withdrawal_is_unfinished(folder->fd)) {
        status = finish(folder, o, out, of_journal, err);
        if (status != CHEX_OK)
            return status;
        out->finished = strcmp(of_journal, request) == 0;
        if (out->finished)
            return CHEX_OK;
        memcpy(out->finished_id, out->to, sizeof(out->finished_id));
        out->from[0] = out->to[0] = '\0';
        out->slots = out->images_left = 0;
        out->shards = 0;
    }
    status = begin(o, out, request, err);
    return status == CHEX_OK && out->to[0] ? finish(folder, o, out, of_journal, err) : status;
}

enum chex_status
withdraw_run(const struct withdraw_options *o, struct withdrawal *out, struct chex_error *err)
{
    struct folder folder = {.fd = -1};
    struct chex_dataset *ds = NULL;
    char request[DIGEST_HEX];
    struct lock lock = {0};
    enum chex_status status = read_patients(o, out, request, err);

    if (status == CHEX_OK && o->dry_run)
        return begin(o, out, request, err);
    if (status == CHEX_OK)
        status = folder_open(o->path, false, &folder, err);
    /* Leave no lock in a folder that has no data set. */
    if (status == CHEX_OK && !withdrawal_is_unfinished(folder.fd)) {
        status = chex_dataset_open(o->path, &ds, err);
        chex_dataset_close(ds);
    }
    if (status == CHEX_OK)
        status = lock_take(&lock, &folder, o->break_lock, err);
    if (status == CHEX_OK) {
        enum chex_status dropped;

        status = run_locked(&folder, o, out, request, err);
        out->begun = status != CHEX_OK && withdrawal_is_unfinished(folder.fd);
        dropped = lock_drop(&lock, status == CHEX_OK ? err : NULL);
        if (status == CHEX_OK)
            status = dropped;
    }
    folder_close(&folder);
    return status;
}

void
withdraw_release(struct withdrawal *w)
{
    free(w->patient);
    folder_names_release(&w->foreign);
    *w = (struct withdrawal){0};
}
