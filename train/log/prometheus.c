/*
 * prometheus.c - see prometheus.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "log/prometheus.h"

#include "base/json.h"
#include "base/progress.h"
#include "log/run_log_private.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUFFIX ".prom"

struct evaluated {
    char split[64];
    double loss, seconds;
    struct metrics metrics;
};

struct prometheus {
    struct folder folder;
    char *name;
    char *run, *model, *dataset_id; /* escaped */
    double written;                 /* progress_clock(); 0: never */

    struct run_log_step last;
    uint64_t images;         /* of this process */
    struct step_times times; /* sums */
    bool stepped;
    double factor[FACTOR_COUNT]; /* of the last epoch */
    struct rank_times ranks;     /* of all of them */
    struct evaluated evaluated[PROMETHEUS_SPLITS];
    unsigned splits;
    double checkpoint; /* 0: none */
    bool ended;
    int exit;
    struct buffer text;
};

/* ---- open, close ------------------------------------------------------------------------------------------------- */

enum chex_status
prometheus_check(const char *path, struct chex_error *err)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t length = strlen(name), suffix = strlen(SUFFIX);

    if (length <= suffix || strcmp(name + length - suffix, SUFFIX) != 0)
        return error_set(err, CHEX_ERR_USAGE, "'%s' does not end in " SUFFIX ": the collector would pass it over",
                         path);
    return CHEX_OK;
}

/* Returns the value of a label, with quotes, backslashes, newlines and invalid UTF-8 escaped. */
static char *
label_value(const char *text)
{
    json_t *utf8 = text_json(text ? text : "");
    const char *from = json_string_value(utf8);
    char *out = from ? malloc(2 * strlen(from) + 1) : NULL, *at = out;

    for (; out && *from; from++) {
        if (*from == '"' || *from == '\\' || *from == '\n')
            *at++ = '\\';
        *at++ = *from == '\n' ? 'n' : *from;
    }
    if (out)
        *at = '\0';
    json_decref(utf8);
    return out;
}

enum chex_status
prometheus_open(const char *path, const char *run, const char *model, const char *dataset_id, struct prometheus **out,
                struct chex_error *err)
{
    struct prometheus *p = calloc(1, sizeof(*p));
    const char *name;
    enum chex_status status;

    *out = NULL;
    if (!p)
        return error_memory(err);
    p->folder.fd = -1;
    status = folder_open_output(path, &p->folder, &name, err);
    p->name = strdup(name);
    p->run = label_value(run);
    p->model = label_value(model);
    p->dataset_id = label_value(dataset_id);
    if (status == CHEX_OK && (!p->name || !p->run || !p->model || !p->dataset_id))
        status = error_memory(err);
    if (status == CHEX_OK)
        *out = p;
    else
        prometheus_free(p);
    return status;
}

void
prometheus_free(struct prometheus *p)
{
    if (!p)
        return;
    folder_close(&p->folder);
    buffer_release(&p->text);
    rank_times_release(&p->ranks);
    free(p->name);
    free(p->run);
    free(p->model);
    free(p->dataset_id);
    free(p);
}

/* ---- what happened ----------------------------------------------------------------------------------------------- */

void
prometheus_step(struct prometheus *p, const struct run_log_step *s)
{
    unsigned i;

    p->last = *s;
    p->stepped = true;
    p->images += s->images;
    for (i = 0; i < PART_COUNT; i++)
        p->times.seconds[i] += s->times.seconds[i];
}

void
prometheus_evaluation(struct prometheus *p, const struct run_log_evaluation *e)
{
    struct evaluated *to;
    unsigned i;

    for (i = 0; i < p->splits && strncmp(p->evaluated[i].split, e->split, sizeof(to->split) - 1) != 0; i++)
        ;
    if (i == PROMETHEUS_SPLITS)
        return;
    p->splits += i == p->splits;
    to = &p->evaluated[i];
    snprintf(to->split, sizeof(to->split), "%s", e->split);
    to->loss = e->loss;
    to->seconds = e->seconds;
    to->metrics = *e->metrics;
}

enum chex_status
prometheus_times(struct prometheus *p, const struct rank_times *times, bool epoch, struct chex_error *err)
{
    if (epoch || p->ranks.ranks == 0)
        rank_times_factors(times, p->factor);
    if (!epoch)
        rank_times_release(&p->ranks);
    return rank_times_add(&p->ranks, times, err);
}

void
prometheus_checkpoint(struct prometheus *p, double time)
{
    p->checkpoint = time;
}

void
prometheus_end(struct prometheus *p, int exit)
{
    p->ended = true;
    p->exit = exit;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

struct page {
    struct buffer *text;
    enum chex_status status;
    struct chex_error *err;
};

static void put(struct page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void
put(struct page *page, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (page->status == CHEX_OK)
        page->status = buffer_vprintf(page->text, page->err, format, args);
    va_end(args);
}

/* Write the two header lines of a metric. */
static void
head(struct page *page, const char *name, const char *type, const char *help)
{
    put(page, "# HELP chex_train_%s %s\n# TYPE chex_train_%s %s\n", name, help, name, type);
}

/* Write a number in this format, NaN if it is not finite. */
static void
sample(struct page *page, const char *name, const char *labels, double value)
{
    if (isfinite(value))
        put(page, "chex_train_%s%s %.12g\n", name, labels, value);
    else
        put(page, "chex_train_%s%s NaN\n", name, labels);
}

static void
single(struct page *page, const char *name, const char *type, double value, const char *help)
{
    head(page, name, type, help);
    sample(page, name, "", value);
}

static void
put_run(struct page *page, const struct prometheus *p)
{
    head(page, "info", "gauge", "What is trained; the value is 1.");
    put(page, "chex_train_info{version=\"%s\",run=\"%.400s\",model=\"%.100s\",dataset=\"%.100s\"} 1\n", chex_version(),
        p->run, p->model, p->dataset_id);
    single(page, "running", "gauge", p->ended ? 0 : 1, "1 while the process trains, 0 after its end.");
    if (p->ended)
        single(page, "exit_code", "gauge", p->exit, "Exit code of the process.");
    single(page, "updated_timestamp_seconds", "gauge", run_log_now(), "When this file was written.");
    if (p->checkpoint > 0)
        single(page, "checkpoint_timestamp_seconds", "gauge", p->checkpoint, "When the last checkpoint was written.");
}

static void
put_step(struct page *page, const struct prometheus *p)
{
    const struct run_log_step *s = &p->last;
    char labels[64];
    unsigned i;

    single(page, "step", "gauge", (double)s->step, "Steps of the optimizer in the run so far.");
    single(page, "epoch", "gauge", s->epoch, "The epoch at hand, 1 is the first.");
    for (i = 0; i < STEP_NUMBERS; i++)
        single(page, step_number[i].name, "gauge", step_number_of(s, i), step_number[i].help);
    single(page, "images_per_second", "gauge", s->seconds > 0 ? (double)s->images / s->seconds : 0,
           "Of all ranks, over the last steps.");
    single(page, "images_total", "counter", (double)p->images, "Images trained on by this process's job.");
    single(page, "skipped_records_total", "counter", (double)s->skipped, "Damaged records that were replaced.");
    head(page, "part_seconds_total", "counter", "Wall time of the parts of the steps, rank 0.");
    for (i = 0; i < PART_COUNT; i++) {
        snprintf(labels, sizeof(labels), "{part=\"%s\"}", step_part_name[i]);
        sample(page, "part_seconds_total", labels, p->times.seconds[i]);
    }
}

static void
put_rank(struct page *page, const struct rank_time *r, unsigned number)
{
    char *host = label_value(r->host), labels[256];
    unsigned i;

    for (i = 0; i < PART_COUNT; i++) {
        snprintf(labels, sizeof(labels), "{rank=\"%u\",host=\"%.150s\",part=\"%s\"}", number, host ? host : "",
                 step_part_name[i]);
        sample(page, "rank_seconds_total", labels, r->parts.seconds[i]);
    }
    free(host);
}

static void
put_ranks(struct page *page, const struct prometheus *p)
{
    unsigned i;

    for (i = 0; i < FACTOR_COUNT; i++)
        single(page, factor_info[i].name, "gauge", p->factor[i], factor_info[i].help);
    head(page, "rank_seconds_total", "counter", "Wall time of the parts of the epochs, of each rank.");
    for (i = 0; i < p->ranks.ranks; i++)
        put_rank(page, &p->ranks.rank[i], i);
}

/* Write one metric for all splits; offset: of the value in struct evaluated. */
static void
put_splits(struct page *page, const struct prometheus *p, const char *name, size_t offset, const char *help)
{
    char labels[128];
    double value;
    unsigned i;

    head(page, name, "gauge", help);
    for (i = 0; i < p->splits; i++) {
        memcpy(&value, (const char *)&p->evaluated[i] + offset, sizeof(value));
        snprintf(labels, sizeof(labels), "{split=\"%s\"}", p->evaluated[i].split);
        sample(page, name, labels, value);
    }
}

/* Write a metric for each finding. */
static void
put_findings(struct page *page, const struct prometheus *p, unsigned metric)
{
    char name[64], labels[256];
    unsigned i, f;

    snprintf(name, sizeof(name), "finding_%s", metric_info[metric].name);
    head(page, name, "gauge", "NaN where a finding has no positives or no negatives.");
    for (i = 0; i < p->splits; i++) {
        for (f = 0; f < p->evaluated[i].metrics.outputs && f < CHEX_FINDINGS; f++) {
            snprintf(labels, sizeof(labels), "{split=\"%s\",finding=\"%s\"}", p->evaluated[i].split,
                     chex_finding_name(f));
            sample(page, name, labels, p->evaluated[i].metrics.finding[f].metric[metric].value);
        }
    }
}

static void
put_evaluations(struct page *page, const struct prometheus *p)
{
    unsigned i;

    put_splits(page, p, "evaluation_loss", offsetof(struct evaluated, loss), "Of the last evaluation of a split.");
    put_splits(page, p, "evaluation_seconds", offsetof(struct evaluated, seconds), "Time of the last evaluation.");
    for (i = 0; i < METRIC_COUNT; i++)
        put_splits(page, p, metric_info[i].name, offsetof(struct evaluated, metrics.mean) + i * sizeof(struct measured),
                   "Mean over the findings.");
    for (i = 0; i < METRIC_COUNT; i++)
        if (metric_info[i].each)
            put_findings(page, p, i);
}

enum chex_status
prometheus_write(struct prometheus *p, bool at_once, struct chex_error *err)
{
    struct page page = {.text = &p->text, .err = err};
    struct safe_file *file;
    double clock = progress_clock();
    enum chex_status status;

    if (!at_once && p->written > 0 && clock - p->written < PROMETHEUS_SECONDS)
        return CHEX_OK;
    p->written = clock;
    p->text.size = 0;
    put_run(&page, p);
    if (p->stepped)
        put_step(&page, p);
    if (p->ranks.ranks > 0)
        put_ranks(&page, p);
    if (p->splits > 0)
        put_evaluations(&page, p);
    if (page.status != CHEX_OK)
        return page.status;
    status = safe_file_create(&p->folder, p->name, SAFE_FILE_NEW, 0, &file, err);
    if (status != CHEX_OK)
        return status;
    status = safe_file_write(file, p->text.data, p->text.size, err);
    if (status != CHEX_OK) {
        safe_file_free(file);
        return status;
    }
    /* No sync: after a power loss the file would be outdated anyway. */
    return safe_file_commit(file, false, err);
}
