/*
 * store_folder.c - prepares a folder before the first slot, recognises its files, and publishes the data set
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "store/store_private.h"

#include "base/ascii.h"
#include "base/number_format.h"
#include "dataset/dali_index.h"
#include "dataset/dataset.h"
#include "dataset/format.h"
#include "dataset/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- files of a conversion ------------------------------------------------------------------------------------ */

enum file_kind { FILE_FOREIGN, FILE_SHARD, FILE_PARTIAL, FILE_LEFTOVER, FILE_JOURNAL, FILE_WITHDRAWAL, FILE_KINDS };

/* Returns whether the name is "..NAME.part.tmp.PID": a copy that folder_own() began. */
static bool
is_copy_of_ours(const char *name)
{
    char base[SHARD_NAME_MAX + 16];
    const char *end = strstr(name, ".tmp.");

    if (strncmp(name, "..", 2) != 0 || !end || !file_is_temporary_suffix(end) || (size_t)(end - name) > sizeof(base))
        return false;
    snprintf(base, sizeof(base), "%.*s", (int)(end - name - 1), name + 1);
    if (journal_is_name(base))
        return true;
    end = shard_name_end(base + 1);
    return end && strcmp(end, ".part") == 0;
}

/* Recognise a file by its whole name, to the last character: with force, files of these kinds are removed. */
static enum file_kind
kind_of(const char *name)
{
    static const char *const small[] = {MANIFEST_NAME, STORE_REJECTS_NAME, STORE_MISSING_NAME, WITHDRAWAL_NAME};
    bool hidden = name[0] == '.';
    const char *base = hidden ? name + 1 : name;
    const char *rest = shard_name_end(base);
    size_t i;

    if (journal_is_name(name))
        return FILE_JOURNAL;
    if (strcmp(name, WITHDRAWAL_NAME) == 0)
        return FILE_WITHDRAWAL;
    if (is_copy_of_ours(name))
        return FILE_LEFTOVER;
    for (i = 0; hidden && i < sizeof(small) / sizeof(small[0]); i++)
        if (strncmp(base, small[i], strlen(small[i])) == 0 && file_is_temporary_suffix(base + strlen(small[i])))
            return FILE_LEFTOVER;
    if (!rest)
        return FILE_FOREIGN;
    if (hidden && strcmp(rest, ".part") == 0)
        return FILE_PARTIAL;
    if (strncmp(rest, DALI_INDEX_SUFFIX, strlen(DALI_INDEX_SUFFIX)) == 0)
        rest += strlen(DALI_INDEX_SUFFIX);
    if (hidden)
        return file_is_temporary_suffix(rest) ? FILE_LEFTOVER : FILE_FOREIGN;
    return rest[0] == '\0' ? FILE_SHARD : FILE_FOREIGN;
}

static bool
is_ours(const char *name)
{
    return kind_of(name) != FILE_FOREIGN;
}

bool
store_is_foreign(const char *name)
{
    return name[0] != '.' && kind_of(name) == FILE_FOREIGN && strcmp(name, MANIFEST_NAME) != 0 &&
           strcmp(name, STORE_REJECTS_NAME) != 0 && strcmp(name, STORE_MISSING_NAME) != 0;
}

enum chex_status
store_open_output(const char *path, struct folder *out, const char **name, struct chex_error *err)
{
    enum chex_status status = folder_open_output(path, out, name, err);

    if (status != CHEX_OK || store_is_foreign(*name) || faccessat(out->fd, MANIFEST_NAME, F_OK, 0) != 0)
        return status;
    status = error_set(err, CHEX_ERR_USAGE, "'%s' is a file of a data set: choose another name", path);
    folder_close(out);
    return status;
}

/* Remove the files of all kinds with remove[kind].  If count is not NULL, increase count[kind] for each file. */
static enum chex_status
remove_leftovers(const struct folder *folder, const bool *remove, size_t *count, struct chex_error *err)
{
    struct folder_names names = {.count = 0};
    enum chex_status status = folder_list(folder, is_ours, &names, err);
    size_t i;

    for (i = 0; status == CHEX_OK && i < names.count; i++) {
        enum file_kind kind = kind_of(names.name[i]);

        if (count)
            count[kind]++;
        if (remove[kind])
            status = folder_remove(folder, names.name[i], err);
    }
    folder_names_release(&names);
    return status;
}

/* Remove the data set in the folder, first of all its manifest. */
static enum chex_status
clear(const struct folder *folder, struct chex_error *err)
{
    static const bool remove[FILE_KINDS] = {[FILE_SHARD] = true, [FILE_PARTIAL] = true, [FILE_LEFTOVER] = true};
    static const bool journals[FILE_KINDS] = {[FILE_JOURNAL] = true, [FILE_WITHDRAWAL] = true};
    enum chex_status status = folder_remove(folder, MANIFEST_NAME, err);

    if (status == CHEX_OK)
        status = folder_sync(folder, err);
    if (status == CHEX_OK)
        status = remove_leftovers(folder, remove, NULL, err);
    if (status == CHEX_OK)
        status = folder_remove(folder, STORE_REJECTS_NAME, err);
    if (status == CHEX_OK)
        status = folder_remove(folder, STORE_MISSING_NAME, err);
    /* Remove the journals last: after a kill, they show that the remaining shards are ours. */
    return status == CHEX_OK ? remove_leftovers(folder, journals, NULL, err) : status;
}

enum chex_status
store_clean(const struct folder *folder, struct chex_error *err)
{
    static const bool remove[FILE_KINDS] = {[FILE_PARTIAL] = true, [FILE_LEFTOVER] = true, [FILE_JOURNAL] = true};
    enum chex_status status = remove_leftovers(folder, remove, NULL, err);

    return status == CHEX_OK ? folder_remove(folder, STORE_MISSING_NAME, err) : status;
}

/* ---- a complete data set -------------------------------------------------------------------------------------- */

struct completeness {
    const struct store *store;
    const struct manifest *m;
};

/* Check that a shard of a complete data set exists.  With --verify, also compare its content with the manifest. */
static enum chex_status
check_shard(void *context, void *worker, size_t item, struct chex_error *err)
{
    const struct completeness *c = context;
    const struct manifest_shard *shard = &c->m->shard[item];
    const char *path = c->store->folder->path;
    char hex[DIGEST_HEX];
    struct stat st;
    enum chex_status status = CHEX_OK;

    (void)worker;
    if (fstatat(c->store->folder->fd, shard->name, &st, 0) != 0 || (uint64_t)st.st_size != shard->size)
        return error_set(err, CHEX_ERR_DAMAGED,
                         "'%s' has a manifest, but shard '%s' is missing or of another size (--repair makes it again)",
                         path, shard->name);
    if (c->store->options.verify)
        status = store_hash_file(c->store, shard->name, hex, err);
    if (status == CHEX_OK && c->store->options.verify && strcmp(hex, shard->sha256) != 0)
        status = error_set(err, CHEX_ERR_DAMAGED,
                           "'%s/%s' differs from what the manifest says (--repair makes it again)", path, shard->name);
    return status;
}

static enum chex_status
check_complete(const struct store *store, const struct manifest *m, struct chex_error *err)
{
    struct completeness c = {store, m};

    return store_each(store, m->shard_count, check_shard, &c, err);
}

/* Make the specification of a data set from its manifest, for a message. */
static struct spec
spec_of_manifest(const struct manifest *m)
{
    struct spec spec = {
        .size = m->layout.height,
        .resize = (enum resample_method)name_index(resample_names, m->resize),
        .shard_size = m->shard_size,
        .tail = (enum tail)name_index(tail_names, m->tail),
        .align = (uint32_t)m->layout.align,
        .seed = m->seed,
        .limits = {.max_pixels = m->max_pixels, .min_side = m->min_side, .lenient = m->lenient},
        .findings = m->findings,
    };

    (void)split_rule_of_dataset(m->split_rule, &spec.split, NULL);
    manifest_from(m->source, m->source_count, m->layout.height, spec.from);
    snprintf(spec.where, sizeof(spec.where), "%s", m->left_out.where ? m->left_out.where : "");
    return spec;
}

static enum chex_status
fail_other(const struct store *store, const struct manifest *m, struct chex_error *err)
{
    const struct spec held = spec_of_manifest(m);
    char asked[SPEC_TEXT], there[SPEC_TEXT], differ[SPEC_DIFFERENCE], slots[FORMAT_THINGS];

    if (manifest_had_id(m, store->plan->dataset_id))
        return error_set(err, CHEX_ERR_INCOMPATIBLE,
                         "'%s' holds data set %.8s: %s withdrawn from %.8s, which this command would make again "
                         "(--exclude leaves images out, --force replaces the data set)",
                         store->folder->path, m->dataset_id, format_things(manifest_withdrawn(m), "slot", slots),
                         store->plan->dataset_id);
    spec_format(&store->plan->spec, asked, sizeof(asked));
    spec_format(&held, there, sizeof(there));
    return error_set(
        err, CHEX_ERR_INCOMPATIBLE, "'%s' holds another data set, %.8s, and %.8s is wanted (--force replaces it): %s",
        store->folder->path, m->dataset_id, store->plan->dataset_id, spec_difference(there, asked, differ));
}

/*
 * Count the files of shards if the folder has no journal; otherwise *files is 0.  The folder is listed twice, because
 * another part may create its journal and then a shard during the first listing.
 */
static enum chex_status
find_orphans(const struct folder *folder, size_t *files, struct chex_error *err)
{
    static const bool none[FILE_KINDS] = {false};
    int tries;

    for (tries = 0; tries < 2; tries++) {
        size_t count[FILE_KINDS] = {0};
        enum chex_status status = remove_leftovers(folder, none, count, err);

        *files = count[FILE_JOURNAL] > 0 ? 0 : count[FILE_SHARD] + count[FILE_PARTIAL];
        if (status != CHEX_OK || *files == 0)
            return status;
    }
    return CHEX_OK;
}

/*
 * A folder without a manifest is unfinished or empty, unless it has shards without a journal.  --repair writes the
 * manifest of such shards again.
 */
static enum chex_status
probe_without_manifest(const struct store *store, struct chex_error *err)
{
    bool damaged;
    size_t files;
    enum chex_status status = find_orphans(store->folder, &files, err);

    if (status != CHEX_OK || files == 0)
        return status;
    if (store->options.repair)
        return store_repair(store, NULL, &damaged, err);
    return error_set(err, CHEX_ERR_INCOMPATIBLE,
                     "'%s' holds %s files of shards, but neither a manifest nor a journal (--repair makes the "
                     "manifest again, --force replaces them)",
                     store->folder->path, COUNT_TEXT(files));
}

/*
 * Set state->complete if the manifest has the plan's id.  Another id is CHEX_ERR_INCOMPATIBLE, and so are shards
 * without manifest and journal.
 */
static enum chex_status
probe_manifest(const struct store *store, struct store_state *state, struct chex_error *err)
{
    const struct folder *folder = store->folder;
    struct manifest m = {0};
    struct buffer b = {0};
    bool damaged = false;
    enum chex_status status;

    if (withdrawal_is_unfinished(folder->fd))
        return error_set(err, CHEX_ERR_INCOMPATIBLE, "'%s': " WITHDRAWAL_UNFINISHED " (--force replaces the data set)",
                         folder->path);
    status = file_read(folder->fd, MANIFEST_NAME, MANIFEST_MAX, &b, err);

    if (status == CHEX_ERR_MISSING) {
        buffer_release(&b);
        return probe_without_manifest(store, err);
    }
    if (status == CHEX_OK)
        status = manifest_parse(b.data, b.size, &m, err);
    if (status == CHEX_ERR_DAMAGED && store->options.repair)
        status = store_repair(store, NULL, &damaged, err);
    else if (status == CHEX_ERR_NOT_IMAGE) /* a folder, which --force would not remove */
        status = error_context(err, CHEX_ERR_INCOMPATIBLE, "'%s/%s'", folder->path, MANIFEST_NAME);
    else if (status == CHEX_ERR_MEMORY || status == CHEX_ERR_READ)
        error_context(err, status, "'%s/%s'", folder->path, MANIFEST_NAME);
    else if (status != CHEX_OK)
        status = error_context(err, CHEX_ERR_INCOMPATIBLE, "'%s/%s' (%s--force replaces the data set)", folder->path,
                               MANIFEST_NAME, status == CHEX_ERR_DAMAGED ? "--repair makes it again, " : "");
    else if (strcmp(m.dataset_id, store->plan->dataset_id) != 0)
        status = fail_other(store, &m, err);
    else if (store->options.repair)
        status = store_repair(store, &m, &damaged, err);
    else
        status = check_complete(store, &m, err);
    if (status == CHEX_OK && !damaged)
        *state = (struct store_state){.complete = true, .rejects = m.rejects};
    manifest_release(&m);
    buffer_release(&b);
    return status;
}

/* ---- preparing ------------------------------------------------------------------------------------------------- */

/* Check that all journals in the folder are of this data set. */
static enum chex_status
check_journals(const struct folder *folder, const struct slot_plan *plan, struct chex_error *err)
{
    struct shard_result *unused = calloc(plan->shard_count, sizeof(*unused));
    char spec[SPEC_TEXT];
    size_t count;
    enum chex_status status;

    if (!unused)
        return error_memory(err);
    spec_format(&plan->spec, spec, sizeof(spec));
    status = journal_read_all(folder, plan->dataset_id, spec, unused, plan->shard_count, &count, err);
    free(unused);
    return status;
}

/*
 * Find out whether the folder has an unfinished data set with this id.  A data set with most of its shards does not
 * count: it may be published and in the middle of a --repair, when it has no manifest.
 */
static enum chex_status
find_replaced(const struct folder *folder, const struct slot_plan *plan, const char *id, bool *found,
              struct chex_error *err)
{
    struct shard_result *result = calloc(plan->shard_count, sizeof(*result));
    size_t count = 0, finished = 0, i;
    enum chex_status status;
    char spec[SPEC_TEXT];
    struct stat st;

    *found = false;
    if (!result)
        return error_memory(err);
    spec_format(&plan->spec, spec, sizeof(spec));
    status = journal_read_all(folder, id, spec, result, plan->shard_count, &count, err);
    for (i = 0; i < plan->shard_count; i++)
        finished += result[i].done || result[i].was[0];
    free(result);
    if (status == CHEX_OK && count > 0)
        *found = file_fstatat(folder->fd, MANIFEST_NAME, AT_SYMLINK_NOFOLLOW, &st) == ENOENT &&
                 (finished < plan->shard_count / 2 ||
                  file_fstatat(folder->fd, STORE_MISSING_NAME, AT_SYMLINK_NOFOLLOW, &st) == 0);
    return status == CHEX_ERR_MEMORY ? status : CHEX_OK;
}

enum chex_status
store_prepare(const struct folder *folder, const struct slot_plan *plan, const struct store_options *options,
              struct store_state *state, struct chex_error *err)
{
    static const bool leftovers[FILE_KINDS] = {[FILE_LEFTOVER] = true};
    static const bool all[FILE_KINDS] = {[FILE_LEFTOVER] = true, [FILE_JOURNAL] = true};
    const struct store view = {.folder = folder, .plan = plan, .options = *options};
    enum chex_status status = CHEX_OK;
    bool replaced = false;

    *state = (struct store_state){0};
    if (!options->force && options->replaces)
        status = find_replaced(folder, plan, options->replaces, &replaced, err);
    if (status == CHEX_OK && (options->force || replaced))
        status = clear(folder, err);
    if (status == CHEX_OK)
        status = probe_manifest(&view, state, err);
    /* Remove nothing before it is known that the folder belongs to this data set. */
    if (status == CHEX_OK && !state->complete)
        status = check_journals(folder, plan, err);
    /* A run may have ended just after the manifest's rename.  Sync the folder before the journals are removed. */
    if (status == CHEX_OK && state->complete)
        status = folder_sync(folder, err);
    state->replaced = replaced;
    return status == CHEX_OK ? remove_leftovers(folder, state->complete ? all : leftovers, NULL, err) : status;
}

enum chex_status
store_probe(const struct folder *folder, const struct slot_plan *plan, const struct store_options *options,
            struct store_state *state, struct chex_error *err)
{
    struct store view = {.folder = folder, .plan = plan, .options = *options};

    view.options.repair = view.options.force = false;
    *state = (struct store_state){0};
    return probe_manifest(&view, state, err);
}

/* ---- publishing ------------------------------------------------------------------------------------------------ */

enum chex_status
store_publish(struct store *store, const void *rejects, size_t rejects_size, const void *manifest, size_t manifest_size,
              struct chex_error *err)
{
    static const bool journals[FILE_KINDS] = {[FILE_JOURNAL] = true};
    const struct folder *folder = store->folder;
    enum chex_status status;

    if (rejects_size > 0)
        status = safe_file_put(folder, STORE_REJECTS_NAME, rejects, rejects_size, err);
    else
        status = folder_remove(folder, STORE_REJECTS_NAME, err);
    if (status == CHEX_OK)
        status = safe_file_put(folder, MANIFEST_NAME, manifest, manifest_size, err);
    if (status != CHEX_OK)
        return status;
    journal_close(&store->journal);
    status = remove_leftovers(folder, journals, NULL, err);
    return status == CHEX_OK ? folder_sync(folder, err) : status;
}
