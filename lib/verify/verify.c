/*
 * verify.c - checks a whole data set: its shards, with several threads, then the other files in the folder; see
 * verify.h
 *
 * The threads take the shards in order and finish them in any order.  A report waits until all earlier reports were
 * passed on.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "verify/verify_private.h"

#include "base/ascii.h"
#include "base/number_format.h"
#include "base/threads.h"
#include "dataset/format.h"
#include "io/lock.h"
#include "plan/split.h"
#include "store/journal.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct split_totals {
    bool damaged; /* some shard has faults, so the sums are incomplete */
    uint64_t positives[FINDINGS_MAX], known[FINDINGS_MAX];
    struct buffer patients; /* see struct report */
};

struct verify_run {
    struct verify *v;
    unsigned first, end; /* shards first .. end - 1 are checked */
    _Atomic uint64_t bytes;
    uint64_t total;

    pthread_mutex_t lock;   /* protects the members below */
    struct report **report; /* [shard_count] finished reports that were not passed on yet */
    unsigned passed_on;
    struct split_totals sums[SPLIT_MAX];
    bool out_of_memory;
    bool read_failed;
    struct chex_error read_error;
};

/* ---- shards ---------------------------------------------------------------------------------------------------- */

static void
free_report(struct report *r)
{
    if (r)
        report_release(r);
    free(r);
}

static void
add_sums(struct verify_run *run, unsigned shard, const struct report *r)
{
    struct split_totals *sums = &run->sums[run->v->dataset->shard[shard].split];
    unsigned i;

    sums->damaged |= r->faults > 0;
    run->out_of_memory |= buffer_append(&sums->patients, r->patients.data, r->patients.size, NULL) != CHEX_OK;
    for (i = 0; i < run->v->dataset->info.finding_count; i++) {
        sums->positives[i] += r->positives[i];
        sums->known[i] += r->known[i];
    }
    if (r->read_failed && !run->read_failed) {
        run->read_failed = true;
        error_set(&run->read_error, CHEX_ERR_READ, "'%s/%s' could not be read", run->v->dataset->folder.path,
                  run->v->dataset->shard[shard].name);
    }
}

static enum chex_status
work(void *context, void *worker, size_t item, struct chex_error *err)
{
    struct verify_run *run = context;
    unsigned shard = run->first + (unsigned)item;
    const struct chex_dataset *ds = run->v->dataset;
    struct report *r = calloc(1, sizeof(*r));
    enum chex_status status;

    if (!r)
        return error_memory(err);
    status = verify_shard(run->v, worker, shard, &run->bytes, r, err);
    if (status != CHEX_OK) {
        free_report(r);
        return status;
    }
    pthread_mutex_lock(&run->lock);
    run->report[shard] = r;
    while (run->passed_on < run->end && run->report[run->passed_on]) {
        unsigned i = run->passed_on++;

        report_pass_on(run->report[i], run->v, ds->shard[i].name);
        add_sums(run, i, run->report[i]);
        run->v->shards_good += run->report[i]->faults == 0;
        free_report(run->report[i]);
        run->report[i] = NULL;
    }
    pthread_mutex_unlock(&run->lock);
    return CHEX_OK;
}

static void *
worker_new(void *context)
{
    (void)context;
    return digest_new();
}

static void
worker_free(void *worker)
{
    digest_free(worker);
}

static void
tick(void *context, size_t done)
{
    struct verify_run *run = context;
    uint64_t bytes = atomic_load(&run->bytes);

    (void)done;
    run->v->tick(run->v->context, bytes, bytes > run->total ? bytes : run->total);
}

static uint64_t
expected_bytes(const struct verify_run *run)
{
    const struct verify *v = run->v;
    double share = v->depth == VERIFY_FULL ? 1 : v->depth == VERIFY_SAMPLE ? v->sample_percent / 100 : 0;
    uint64_t total = 0;
    unsigned i;

    for (i = run->first; i < run->end; i++)
        total += v->dataset->shard[i].size;
    return (uint64_t)(share * (double)total);
}

static enum chex_status
check_shards(struct verify_run *run, struct chex_error *err)
{
    struct parallel p = {
        .count = run->end - run->first,
        .threads = run->v->threads,
        .work = work,
        .worker_new = worker_new,
        .worker_free = worker_free,
        .context = run,
        .tick = run->v->tick ? tick : NULL,
        .stop = run->v->stop,
    };

    return parallel_for(&p, err);
}

/* ---- sums over a split ----------------------------------------------------------------------------------------- */

static void
check_sums(struct verify_run *run)
{
    const struct chex_dataset *ds = run->v->dataset;
    struct report r = {0};
    unsigned i, j;

    for (i = 0; i < ds->info.split_count; i++)
        for (j = 0; j < ds->info.finding_count && !run->sums[i].damaged; j++) {
            const char *finding = ds->manifest.findings.name[j];

            if (run->sums[i].positives[j] != ds->split[i].positives[j])
                report_fault(&r, CHEX_ERR_DAMAGED, -1, 0, NULL, "split '%s': %s images with %s, the records have %s",
                             ds->split[i].name, COUNT_TEXT(ds->split[i].positives[j]), finding,
                             COUNT_TEXT(run->sums[i].positives[j]));
            if (run->sums[i].known[j] != ds->split[i].known[j])
                report_fault(&r, CHEX_ERR_DAMAGED, -1, 0, NULL,
                             "split '%s': %s known labels of %s, the records have %s", ds->split[i].name,
                             COUNT_TEXT(ds->split[i].known[j]), finding, COUNT_TEXT(run->sums[i].known[j]));
        }
    report_pass_on(&r, run->v, MANIFEST_NAME);
    report_release(&r);
}

/* ---- patients in two splits ------------------------------------------------------------------------------------ */

/* An image, by its patient. */
struct patient_image {
    const char *patient;
    unsigned split;
};

static int
by_patient(const void *a, const void *b)
{
    return strcmp(((const struct patient_image *)a)->patient, ((const struct patient_image *)b)->patient);
}

static struct manifest_leaks
count_leaks(struct patient_image *image, size_t count)
{
    struct manifest_leaks leaks = {0};
    size_t i, next;

    if (count > 1)
        qsort(image, count, sizeof(*image), by_patient);
    for (i = 0; i < count; i = next) {
        bool leaky = false;

        for (next = i + 1; next < count && by_patient(&image[i], &image[next]) == 0; next++)
            leaky |= image[next].split != image[i].split;
        leaks.patients += leaky;
        leaks.images += leaky ? next - i : 0;
    }
    return leaks;
}

/* Compare the patients in two splits with the manifest, if all records are valid. */
static enum chex_status
check_leaks(struct verify_run *run, struct chex_error *err)
{
    const struct chex_dataset *ds = run->v->dataset;
    const struct manifest_leaks *wanted = &ds->manifest.leaks;
    struct patient_image *image = calloc((size_t)ds->info.image_count + 1, sizeof(*image));
    struct manifest_leaks leaks;
    struct report r = {0};
    size_t count = 0, at;
    unsigned i;

    for (i = 0; i < ds->info.split_count && image && !run->out_of_memory; i++) {
        const struct buffer *patients = &run->sums[i].patients;

        if (run->sums[i].damaged) {
            free(image);
            return CHEX_OK;
        }
        for (at = 0; at < patients->size && count < ds->info.image_count; count++) {
            image[count] = (struct patient_image){(const char *)patients->data + at, i};
            at += strlen(image[count].patient) + 1;
        }
    }
    if (!image || run->out_of_memory) {
        free(image);
        return error_memory(err);
    }
    leaks = count_leaks(image, count);
    free(image);
    if (leaks.patients != wanted->patients || leaks.images != wanted->images)
        report_fault(&r, CHEX_ERR_DAMAGED, -1, 0, NULL,
                     "%s patients in two splits with %s images, the records have %s with %s",
                     COUNT_TEXT(wanted->patients), COUNT_TEXT(wanted->images), COUNT_TEXT(leaks.patients),
                     COUNT_TEXT(leaks.images));
    report_pass_on(&r, run->v, MANIFEST_NAME);
    report_release(&r);
    return CHEX_OK;
}

/* ---- other files in the folder --------------------------------------------------------------------------------- */

static bool
ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);

    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* Returns why this file should not be in the folder, or NULL.  known: the sorted names of the shards. */
static const char *
name_fault(const char **known, size_t count, const char *name)
{
    if (journal_is_name(name))
        return "journal of an unfinished conversion";
    if (strncmp(name, LOCK_NAME, strlen(LOCK_NAME)) == 0)
        return "lock of a conversion that is running or was killed";
    if (strcmp(name, WITHDRAWAL_NAME) == 0)
        return WITHDRAWAL_UNFINISHED;
    if (name[0] == '.' && (ends_with(name, ".part") || strstr(name, ".tmp.")))
        return "left over from a conversion that was interrupted";
    if (shard_is_name(name) && !bsearch(&name, known, count, sizeof(*known), compare_texts))
        return "a shard that is not in the manifest";
    return NULL;
}

static bool
is_any(const char *name)
{
    return name[0] != '\0';
}

static enum chex_status
check_folder(struct verify *v, struct chex_error *err)
{
    const struct chex_dataset *ds = v->dataset;
    const char **known = calloc(ds->info.shard_count, sizeof(*known));
    struct folder_names names = {.count = 0};
    enum chex_status status = known ? folder_list(&ds->folder, is_any, &names, err) : error_memory(err);
    size_t i;

    for (i = 0; known && i < ds->info.shard_count; i++)
        known[i] = ds->shard[i].name;
    if (known)
        qsort(known, ds->info.shard_count, sizeof(*known), compare_texts);
    for (i = 0; i < names.count && status == CHEX_OK; i++) {
        const char *text = name_fault(known, ds->info.shard_count, names.name[i]);
        struct verify_fault fault = {CHEX_ERR_DAMAGED, names.name[i], -1, 0, text, NULL};

        if (text && v->fault)
            v->fault(v->context, &fault);
        v->faults += text != NULL;
    }
    folder_names_release(&names);
    free(known);
    return status;
}

/* ---- the data set ---------------------------------------------------------------------------------------------- */

enum chex_status
verify_run(struct verify *v, struct chex_error *err)
{
    unsigned shard_count = v->dataset->info.shard_count, i;
    struct verify_run run = {.v = v, .end = shard_count, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct chex_error index_error;
    enum chex_status status;

    v->shards_good = v->records_read = v->bytes_read = v->faults = v->notes = 0;
    if (v->only) {
        run.first = run.passed_on = v->only_shard;
        run.end = v->only_shard + 1;
    }
    run.total = expected_bytes(&run);
    run.report = calloc(shard_count, sizeof(struct report *));
    if (!run.report)
        return error_memory(err);
    status = check_shards(&run, err);
    if (status == CHEX_OK && v->depth == VERIFY_FULL && !v->only) {
        check_sums(&run);
        status = check_leaks(&run, err);
    }
    for (i = run.first; i < run.end && status == CHEX_OK && v->depth == VERIFY_FULL; i++) {
        status = verify_index(v, i, &index_error);
        if (status == CHEX_ERR_READ && !run.read_failed) {
            run.read_failed = true;
            run.read_error = index_error;
        } else if (status != CHEX_OK && status != CHEX_ERR_READ && err) {
            *err = index_error;
        }
        if (status == CHEX_ERR_READ)
            status = CHEX_OK;
    }
    if (status == CHEX_OK && !v->only)
        status = check_folder(v, err);
    if (status == CHEX_OK && run.read_failed) {
        status = run.read_error.status;
        if (err)
            *err = run.read_error;
    }
    for (i = 0; i < shard_count; i++)
        free_report(run.report[i]);
    for (i = 0; i < SPLIT_MAX; i++)
        buffer_release(&run.sums[i].patients);
    free(run.report);
    pthread_mutex_destroy(&run.lock);
    return status;
}
