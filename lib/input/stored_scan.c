/*
 * stored_scan.c - see stored_scan.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "input/stored_scan.h"

#include "base/ascii.h"
#include "base/number_format.h"
#include "dataset/format.h"
#include "labels/label_file.h"
#include "labels/patient_ids.h"

#include <stdlib.h>
#include <string.h>

static bool
is_shard(const char *name)
{
    const char *end = shard_name_end(name + (name[0] == '.'));

    return end && (end[0] == '\0' || strcmp(end, ".part") == 0);
}

/* Returns whether the folder contains a shard, finished or not. */
static enum chex_status
has_shards(const char *path, bool *out, struct chex_error *err)
{
    struct folder_names names = {0};
    struct folder folder;
    enum chex_status status = folder_open(path, false, &folder, err);

    if (status == CHEX_OK) {
        status = folder_list(&folder, is_shard, &names, err);
        *out = names.count > 0;
        folder_names_release(&names);
        folder_close(&folder);
    }
    return status;
}

/* Add to a fault of a data set how to repair it.  Returns status. */
static enum chex_status
ask_for_repair(const char *path, enum chex_status status, struct chex_error *err)
{
    return error_context(err, status, "repair '%s' first (chex-inspect check names the command)", path);
}

enum chex_status
stored_probe(const char *path, bool *is_stored, struct chex_error *why)
{
    struct chex_dataset *ds = NULL;
    enum chex_status status = chex_dataset_open(path, &ds, why);

    chex_dataset_close(ds);
    *is_stored = status == CHEX_OK;
    return status == CHEX_ERR_MEMORY ? status : CHEX_OK;
}

enum chex_status
stored_explain(const char *path, const struct chex_error *why, struct chex_error *err)
{
    bool shards = false;
    enum chex_status status = has_shards(path, &shards, err);

    if (status != CHEX_OK || !shards)
        return status;
    if (why->status == CHEX_ERR_MISSING)
        return error_set(err, CHEX_ERR_MISSING,
                         "'%s' holds an unfinished conversion: first finish it, with the command that began it", path);
    if (err)
        *err = *why;
    return why->status == CHEX_ERR_DAMAGED ? ask_for_repair(path, why->status, err) : why->status;
}

/* ---- records -------------------------------------------------------------------------------------------------- */

struct stored_work {
    struct source *source;
    const struct chex_dataset *dataset;
    uint32_t number; /* of the data set */
    unsigned shard;
};

/* Copy a text into the source, after the prefix of the data set. */
static enum chex_status
copy_text(const struct stored_work *w, const char *data, size_t size, size_t most, const char **out,
          struct chex_error *err)
{
    const char *prefix = w->source->prefix ? w->source->prefix[w->number] : "";
    char text[ID_PREFIX_MAX + RECORD_MAX_TEXT + 1];
    size_t length = strlen(prefix);

    if (length > 0 && length + size > most)
        return error_set(err, CHEX_ERR_USAGE, "--id-prefix: '%s%.*s' is longer than %zu bytes", prefix, (int)size, data,
                         most);
    memcpy(text, prefix, length);
    memcpy(text + length, data, size);
    *out = arena_copy(&w->source->strings, text, length + size);
    return *out ? CHEX_OK : error_memory(err);
}

static enum chex_status
add_image(const struct stored_work *w, const struct scanned_record *record, struct chex_error *err)
{
    const struct record_values *v = &record->values;
    struct source *s = w->source;
    struct stored_image *stored = array_grow(s->stored, &s->stored_capacity, s->stored_count, sizeof(*stored));
    struct source_file *file = array_grow(s->file, &s->file_capacity, s->count, sizeof(*file));
    struct stored_image image = {
        .label = (const uint8_t *)arena_copy(&s->strings, (const char *)v->label, w->dataset->manifest.findings.count),
        .age = v->age,
        .sex = v->sex,
        .shard = w->shard,
        .index = record->index,
        .split = (uint8_t)w->dataset->shard[w->shard].split,
    };
    enum chex_status status = copy_text(w, v->name.data, v->name.size, RECORD_MAX_TEXT, &image.name, err);

    if (stored)
        s->stored = stored;
    if (file)
        s->file = file;
    if (!stored || !file || !image.label)
        return error_memory(err);
    if (status == CHEX_OK)
        status = copy_text(w, v->patient.data, v->patient.size, PATIENT_MAX, &image.patient, err);
    if (status != CHEX_OK)
        return status;
    memcpy(image.view, v->view.data, v->view.size);
    s->file[s->count++] = (struct source_file){image.name, w->number, (uint32_t)s->stored_count};
    s->stored[s->stored_count++] = image;
    return CHEX_OK;
}

static enum chex_status
visit(void *context, const struct scanned_record *record, struct chex_error *err)
{
    const struct stored_work *w = context;
    const struct record_values *v = &record->values;

    if (record->fault != RECORD_GOOD) {
        record_fail(record, err);
        return error_context(err, CHEX_ERR_DAMAGED, "record %u", record->index);
    }
    if (v->weight == 0)
        return CHEX_OK;
    if (v->view.size >= sizeof(((struct stored_image *)0)->view) || v->patient.size > PATIENT_MAX)
        return error_set(err, CHEX_ERR_DAMAGED, "record %u: a text is too long", record->index);
    return add_image(w, record, err);
}

static enum chex_status
scan_shard(struct stored_work *w, struct chex_error *err)
{
    const struct chex_dataset *ds = w->dataset;
    struct shard_scan scan = {
        .shard = dataset_shard_identity(ds, w->shard),
        .records = ds->shard[w->shard].record_count,
        .texts = true,
        .visit = visit,
        .context = w,
        .stop = w->source->stop,
    };
    struct chex_shard *shard;
    enum chex_status status = chex_shard_open(ds, w->shard, &shard, err);

    if (status == CHEX_OK) {
        scan.fd = shard->fd;
        status = shard_scan(&scan, err);
        chex_shard_close(shard);
        if (status != CHEX_OK && status != CHEX_ERR_STOPPED && status != CHEX_ERR_MEMORY)
            error_context(err, status, "'%s/%s'", ds->folder.path, ds->shard[w->shard].name);
    }
    if (status == CHEX_ERR_MISSING || chex_status_is_data(status))
        ask_for_repair(ds->folder.path, status, err);
    return status;
}

enum chex_status
stored_scan(struct source *source, const char *path, struct chex_error *err)
{
    struct stored_work w = {.source = source};
    struct chex_dataset **grown = array_grow(source->dataset, &source->dataset_capacity, source->dataset_count,
                                             sizeof(struct chex_dataset *));
    struct chex_dataset *ds;
    enum chex_status status;
    int split;

    if (!grown)
        return error_memory(err);
    source->dataset = grown;
    status = chex_dataset_open(path, &ds, err);
    if (status != CHEX_OK)
        return status;
    w.dataset = ds;
    w.number = (uint32_t)source->dataset_count;
    source->dataset[source->dataset_count++] = ds;
    split = source->split ? chex_dataset_find_split(ds, source->split) : -1;
    for (w.shard = 0; status == CHEX_OK && w.shard < ds->info.shard_count; w.shard++)
        if (split < 0 || ds->shard[w.shard].split == (unsigned)split)
            status = scan_shard(&w, err);
    return status;
}

/* ---- equal names and patients in two data sets ------------------------------------------------------------------- */

/* Things that are in two data sets: their number, and the first ones as text. */
#define SHARED_SHOWN 10
struct shared {
    size_t count;
    struct buffer text;
};

static enum chex_status
add_shared(struct shared *shared, const struct source *source, const char *what, uint32_t a, uint32_t b,
           struct chex_error *err)
{
    char shown[4 * RECORD_MAX_TEXT + 1];

    if (++shared->count > SHARED_SHOWN)
        return CHEX_OK;
    return buffer_printf(&shared->text, err, "%s%s is in '%s' and '%s'", shared->count > 1 ? ", " : "",
                         ascii_escape(what, strlen(what), shown, sizeof(shown)),
                         source->dataset[a < b ? a : b]->folder.path, source->dataset[a < b ? b : a]->folder.path);
}

/* Report the shared things, if there are any, and release their text.  `hint` says what to do. */
static enum chex_status
fail_shared(struct shared *shared, enum chex_status status, const char *kind, const char *hint, struct chex_error *err)
{
    char number[FORMAT_THINGS];

    if (status == CHEX_OK && shared->count > 0)
        status = error_set(err, CHEX_ERR_USAGE, "%s in two data sets (%s): %.*s%s",
                           format_things(shared->count, kind, number), hint, (int)shared->text.size,
                           (const char *)shared->text.data, shared->count > SHARED_SHOWN ? ", ..." : "");
    buffer_release(&shared->text);
    return status;
}

enum chex_status
stored_check_names(const struct source *source, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    struct shared shared = {0};
    size_t i;

    for (i = 1; status == CHEX_OK && i < source->count; i++) {
        const struct source_file *a = &source->file[i - 1], *b = &source->file[i];

        if (strcmp(a->name, b->name) != 0)
            continue;
        if (a->folder == b->folder)
            status = error_set(err, CHEX_ERR_DAMAGED, "'%s': two records of '%s'",
                               source->dataset[a->folder]->folder.path, a->name);
        else
            status = add_shared(&shared, source, a->name, a->folder, b->folder, err);
    }
    return fail_shared(&shared, status, "image",
                       source->datasets_apart ? source->datasets_apart : "--id-prefix keeps different images apart",
                       err);
}

enum chex_status
stored_check_patients(const struct source *source, const struct labels *labels, const bool *skip,
                      struct chex_error *err)
{
    const uint32_t none = UINT32_MAX, reported = UINT32_MAX - 1;
    uint32_t *dataset = malloc((labels->patient_count + 1) * sizeof(*dataset)); /* of each patient */
    enum chex_status status = CHEX_OK;
    struct shared shared = {0};
    size_t i;

    if (!dataset)
        return error_memory(err);
    for (i = 0; i < labels->patient_count; i++)
        dataset[i] = none;
    for (i = 0; status == CHEX_OK && i < labels->count; i++) {
        const struct entry *e = &labels->entry[i];
        uint32_t folder = source->file[i].folder, *first = &dataset[e->patient_no];

        if (skip[i] || *first == folder || *first == reported)
            continue;
        if (*first != none) {
            status = add_shared(&shared, source, e->patient, *first, folder, err);
            folder = reported;
        }
        *first = folder;
    }
    free(dataset);
    return fail_shared(&shared, status, "patient",
                       "--same-patients: they are the same people, --id-prefix: they are others", err);
}

/* ---- rows ----------------------------------------------------------------------------------------------------- */

static enum chex_status
check_findings(const struct source *source, struct chex_error *err)
{
    const struct chex_dataset *first = source->dataset[0];
    char a[FINDINGS_TEXT], b[FINDINGS_TEXT];
    size_t i;

    for (i = 1; i < source->dataset_count; i++)
        if (!findings_equal(&first->manifest.findings, &source->dataset[i]->manifest.findings))
            return error_set(err, CHEX_ERR_INCOMPATIBLE,
                             "'%s' has the findings %s and '%s' has %s: give new labels for both with -l",
                             first->folder.path, findings_describe(&first->manifest.findings, a),
                             source->dataset[i]->folder.path,
                             findings_describe(&source->dataset[i]->manifest.findings, b));
    return CHEX_OK;
}

/* Order by the label file. */
static int
compare_label_files(const void *a, const void *b)
{
    const struct chex_dataset *const *x = a, *const *y = b;

    return strcmp((*x)->manifest.labels_sha256, (*y)->manifest.labels_sha256);
}

/* Set the SHA-256 of the label files, and count their empty labels: those of each label file once. */
static enum chex_status
describe_label_files(const struct source *source, struct labels *out, struct chex_error *err)
{
    const struct chex_dataset **sorted = calloc(source->dataset_count, sizeof(*sorted));
    enum chex_status status = CHEX_OK;
    struct buffer list = {0};
    size_t i;

    if (!sorted)
        return error_memory(err);
    for (i = 0; i < source->dataset_count; i++)
        sorted[i] = source->dataset[i];
    qsort(sorted, source->dataset_count, sizeof(*sorted), compare_label_files);
    for (i = 0; status == CHEX_OK && i < source->dataset_count; i++) {
        if (i > 0 && compare_label_files(&sorted[i - 1], &sorted[i]) == 0)
            continue;
        out->empty_labels += sorted[i]->manifest.empty_labels;
        status = buffer_printf(&list, err, "%s\n", sorted[i]->manifest.labels_sha256);
    }
    if (status == CHEX_OK && list.size == DIGEST_HEX)
        memcpy(out->sha256, sorted[0]->manifest.labels_sha256, sizeof(out->sha256));
    else if (status == CHEX_OK && !digest_data(list.data, list.size, out->sha256))
        status = error_memory(err);
    buffer_release(&list);
    free(sorted);
    return status;
}

enum chex_status
stored_rows(const struct source *source, struct labels *out, struct chex_error *err)
{
    struct patients patients = {0};
    enum chex_status status = check_findings(source, err);
    size_t i;

    if (status == CHEX_OK)
        status = describe_label_files(source, out, err);
    if (status != CHEX_OK)
        return status;
    out->findings = source->dataset[0]->manifest.findings;
    out->entry = calloc(source->count ? source->count : 1, sizeof(*out->entry));
    if (!out->entry)
        return error_memory(err);
    for (i = 0; status == CHEX_OK && i < source->count; i++) {
        const struct stored_image *image = &source->stored[source->file[i].stored];
        struct entry *e = &out->entry[i];

        *e = (struct entry){.name = image->name, .label = image->label, .age = image->age, .sex = image->sex};
        memcpy(e->view, image->view, sizeof(e->view));
        status = patients_add(&patients, image->patient, &out->strings, &e->patient_no, err);
        if (status == CHEX_OK)
            e->patient = patients.id[e->patient_no];
    }
    out->count = out->row_count = status == CHEX_OK ? source->count : 0;
    out->patient = patients.id;
    out->patient_count = patients.count;
    patients.id = NULL;
    patients_release(&patients);
    labels_count_ages(out);
    return status;
}
