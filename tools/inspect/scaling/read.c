/*
 * read.c - reads a run for the comparison: run.json and the last times in metrics.jsonl; see scaling.h
 *
 * run_check() has checked the types and bounds of both files before a member is used.  The files may still change in
 * between, so a member of another type counts as missing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/scaling/scaling.h"

#include "common/cli.h"
#include "io/file.h"
#include "log/run_check.h"
#include "log/run_file.h"
#include "train/run_times.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RUN_MAX (16u << 20)
/* No run is shorter or longer.  Without these bounds, the axes of a hostile run would have no end. */
#define SECONDS_LEAST 1e-6
#define SECONDS_MOST  1e12

static const struct parse_bounds bounds = {.size = RUN_MAX, .depth = 8, .values = 400000};

const char *const scaling_fact_name[FACT_COUNT] = {
    [FACT_MODEL] = "model",          [FACT_DATA] = "data set",
    [FACT_SPLIT] = "training split", [FACT_CROP] = "crop",
    [FACT_DEVICE] = "device",        [FACT_PRECISION] = "precision",
    [FACT_TTA] = "evaluation view",  [FACT_BOOTSTRAP] = "bootstrap",
    [FACT_LIMIT] = "--limit",        [FACT_EVALUATIONS] = "epochs between evaluations",
    [FACT_SHORT] = "short run",
};

/* Write a text, a number or a flag as text; "none" for anything else. */
static void
take_fact(const json_t *value, char out[SCALING_TEXT])
{
    if (json_is_string(value))
        snprintf(out, SCALING_TEXT, "%.79s", json_string_value(value));
    else if (json_is_number(value))
        snprintf(out, SCALING_TEXT, "%.9g", json_number_value(value));
    else
        snprintf(out, SCALING_TEXT, "none");
}

/* Returns the split that the run trains on; NULL: none. */
static const json_t *
training_split(const json_t *run)
{
    const json_t *splits = json_object_get(json_object_get(run, "dataset"), "splits"), *split;
    const char *use;
    size_t i;

    json_array_foreach (splits, i, split) {
        use = json_string_value(json_object_get(split, "use"));
        if (use && strcmp(use, "train") == 0)
            return split;
    }
    return NULL;
}

/* As take_fact(), for an option that earlier versions did not have. */
static void
take_option(const json_t *value, const char *before, char out[SCALING_TEXT])
{
    if (value)
        take_fact(value, out);
    else
        snprintf(out, SCALING_TEXT, "%s", before);
}

/* Runs of different --max-steps are comparable: a short run has part of an epoch, and a time in proportion. */
static void
take_short(const json_t *run, struct scaling_run *out)
{
    const char *said = json_string_value(json_object_get(run, "short_run"));

    snprintf(out->short_run, SCALING_TEXT, "%s", said ? said : "");
    snprintf(out->fact[FACT_SHORT], SCALING_TEXT, "%s", strstr(out->short_run, "--max-steps") ? "--max-steps" : "none");
}

static void
take_facts(const json_t *run, struct scaling_run *out)
{
    const json_t *sessions = json_object_get(run, "sessions"), *options = json_object_get(run, "options");
    const json_t *session = json_array_get(sessions, json_array_size(sessions) - 1);
    const char *backend = json_string_value(json_object_get(session, "backend"));
    const char *wire = json_string_value(json_object_get(options, "wire"));

    take_fact(json_object_get(json_object_get(run, "model"), "name"), out->fact[FACT_MODEL]);
    take_fact(json_object_get(json_object_get(run, "dataset"), "id"), out->fact[FACT_DATA]);
    take_fact(json_object_get(training_split(run), "sha256"), out->fact[FACT_SPLIT]);
    take_fact(json_object_get(options, "crop"), out->fact[FACT_CROP]);
    take_fact(json_object_get(session, "precision"), out->fact[FACT_PRECISION]);
    take_fact(json_object_get(session, "device"), out->fact[FACT_DEVICE]);
    take_fact(json_object_get(options, "tta"), out->fact[FACT_TTA]);
    take_fact(json_object_get(options, "bootstrap"), out->fact[FACT_BOOTSTRAP]);
    take_option(json_object_get(options, "limit"), "all", out->fact[FACT_LIMIT]);
    take_option(json_object_get(options, "eval-every"), "1", out->fact[FACT_EVALUATIONS]);
    take_short(run, out);
    out->cuda = backend && strcmp(backend, "cuda") == 0;
    /* Without NCCL, gradients are summed in double precision: doc/design/ranks.md. */
    out->wire = !out->cuda ? 8 : wire && strcmp(wire, "bf16") == 0 ? 2 : 4;
}

/* How the last start of the run ended: LOST if it is live or was killed, STOPPED by a signal or a time limit. */
enum run_end { RUN_LOST, RUN_STOPPED, RUN_ENDED };

static enum run_end
end_of(const json_t *run)
{
    const json_t *sessions = json_object_get(run, "sessions");
    const json_t *session = json_array_get(sessions, json_array_size(sessions) - 1);

    if (!json_is_string(json_object_get(session, "ended")))
        return RUN_LOST;
    return json_integer_value(json_object_get(session, "exit")) == EXIT_STOPPED ? RUN_STOPPED : RUN_ENDED;
}

static enum chex_status
take_counts(const json_t *run, struct scaling_run *out, struct chex_error *err)
{
    const json_t *split = training_split(run);
    const json_t *limited = json_object_get(run, "epoch_images");
    double images = json_number_value(limited ? limited : json_object_get(split, "images"));
    double batch = json_number_value(json_object_get(run, "global_batch"));

    if (!split || !(images >= 1) || images > 0x1p40 || !(batch >= 1) || batch > 0x1p32)
        return error_set(err, CHEX_ERR_DAMAGED, "'%s': %s names no images of training, or no global batch", out->path,
                         RUN_FILE_NAME);
    out->images = (uint64_t)images;
    out->global_batch = (uint64_t)batch;
    out->outputs = (unsigned)json_object_size(json_object_get(split, "positives"));
    return CHEX_OK;
}

static enum chex_status
read_file(const struct folder *folder, struct scaling_run *out, enum run_end *end, struct chex_error *err)
{
    struct buffer text = {0};
    struct run_check found;
    json_t *run = NULL;
    enum chex_status status = run_check(folder, &found, err);

    if (status == CHEX_OK && found.file[0])
        status = error_set(err, CHEX_ERR_DAMAGED, "'%s': %s", out->path, found.file);
    if (status == CHEX_OK)
        status = file_read(folder->fd, RUN_FILE_NAME, RUN_MAX, &text, err);
    if (status != CHEX_OK && err->cause == ENOENT)
        status = error_set(err, CHEX_ERR_MISSING, "'%s' is no run of chex-train: it has no %s", out->path,
                           RUN_FILE_NAME);
    if (status == CHEX_OK)
        status = parse_json(text.data, text.size, &bounds, &run, err);
    if (status == CHEX_OK) {
        take_facts(run, out);
        *end = end_of(run);
        status = take_counts(run, out, err);
    }
    json_decref(run);
    buffer_release(&text);
    return status;
}

/* ---- times ------------------------------------------------------------------------------------------------------- */

static int
by_host(const void *a, const void *b)
{
    return strcmp((*(const struct rank_time *const *)a)->host, (*(const struct rank_time *const *)b)->host);
}

static enum chex_status
count_nodes(struct scaling_run *out, struct chex_error *err)
{
    const struct rank_time **order = calloc(out->ranks, sizeof(*order));
    unsigned r, begin = 0;

    if (!order)
        return error_memory(err);
    for (r = 0; r < out->ranks; r++)
        order[r] = &out->times.rank[r];
    qsort(order, out->ranks, sizeof(*order), by_host);
    for (r = 0; r < out->ranks; r++) {
        if (r == 0 || strcmp(order[r]->host, order[r - 1]->host) != 0) {
            out->nodes++;
            begin = r;
        }
        out->node_ranks = r - begin + 1 > out->node_ranks ? r - begin + 1 : out->node_ranks;
    }
    free(order);
    return CHEX_OK;
}

static void
describe_end(const struct run_times *found, enum run_end end, char out[SCALING_TEXT])
{
    if (!found->all)
        snprintf(out, SCALING_TEXT, "epoch %s", COUNT_TEXT(found->epoch));
    else if (end == RUN_LOST)
        snprintf(out, SCALING_TEXT, "the start before the last");
    else if (end == RUN_STOPPED)
        snprintf(out, SCALING_TEXT, "the steps before it was stopped");
}

static enum chex_status
read_times(struct scaling_run *out, enum run_end end, struct chex_error *err)
{
    struct run_times found;
    enum chex_status status = run_times_read(out->path, &found, err);
    uint64_t each;

    out->times = found.times;
    if (status != CHEX_OK)
        return status;
    if (out->times.ranks == 0 || out->times.steps == 0 || out->times.seconds < SECONDS_LEAST ||
        out->times.seconds > SECONDS_MOST)
        return error_set(err, CHEX_ERR_MISSING, "'%s' has no times: the run did not complete an epoch", out->path);
    describe_end(&found, end, out->unfinished);
    out->ranks = out->times.ranks;
    out->steps = out->times.steps;
    each = (out->images + out->global_batch - 1) / out->global_batch;
    out->epochs = (double)out->steps / (double)each;
    out->epoch_seconds = out->times.seconds / out->epochs;
    out->rate = (double)out->images / out->epoch_seconds;
    return count_nodes(out, err);
}

enum chex_status
scaling_run_read(const char *path, struct scaling_run *out, struct chex_error *err)
{
    struct folder folder;
    enum run_end end = RUN_LOST;
    enum chex_status status;

    *out = (struct scaling_run){.path = path};
    status = folder_open(path, false, &folder, err);
    if (status != CHEX_OK)
        return status;
    status = read_file(&folder, out, &end, err);
    folder_close(&folder);
    return status == CHEX_OK ? read_times(out, end, err) : status;
}

void
scaling_run_release(struct scaling_run *r)
{
    rank_times_release(&r->times);
}
