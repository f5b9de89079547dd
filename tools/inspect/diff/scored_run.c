/*
 * scored_run.c - see scored_run.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/diff/scored_run.h"

#include "base/json.h"
#include "eval/operating.h"
#include "inspect/inspect.h"
#include "io/file.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define JSON_MAX      (64u << 20) /* bytes of metrics-SPLIT.json and run.json */
#define PATH_LONGEST  3000
#define SPLIT_LONGEST 64

const char *
scored_split_warning(const char *split)
{
    if (strcmp(split, "train") == 0)
        return "the models were trained on these images, so their results are too good";
    if (strcmp(split, "val") == 0)
        return "the best epoch and the thresholds of each model were chosen on val, so its results are too good";
    return NULL;
}

/* Read a JSON object.  CHEX_ERR_INCOMPATIBLE: it is none. */
static enum chex_status
read_object(const char *name, json_t **out, struct chex_error *err)
{
    static const struct parse_bounds bounds = {.size = JSON_MAX, .depth = 12, .values = 1000000, .reals = true};
    struct buffer text = {0};
    enum chex_status status = file_read(AT_FDCWD, name, JSON_MAX, &text, err);

    if (status != CHEX_OK)
        error_context(err, status, "'%s'", name);
    if (status == CHEX_OK)
        status = parse_json(text.data, text.size, &bounds, out, err);
    buffer_release(&text);
    if (chex_status_is_data(status) || (status == CHEX_OK && !json_is_object(*out)))
        return error_set(err, CHEX_ERR_INCOMPATIBLE, "'%s' is not a file of chex-train", name);
    return status;
}

/* Take the threshold of a finding, by its name; a document of a version without operating points has none. */
static double
find_threshold(const json_t *metrics, const char *finding)
{
    const json_t *list = json_object_get(metrics, "findings"), *entry;
    size_t i;

    json_array_foreach (list, i, entry) {
        const char *name = json_string_value(json_object_get(entry, "name"));
        const json_t *point = json_object_get(json_object_get(entry, "operating"),
                                              operating_rule_name[OPERATING_YOUDEN]);
        const json_t *threshold = json_object_get(point, "threshold");

        if (name && strcmp(name, finding) == 0 && json_number_value(threshold) >= 0 &&
            json_number_value(threshold) <= 1)
            return json_is_number(threshold) ? json_number_value(threshold) : (double)NAN;
    }
    return (double)NAN;
}

static enum chex_status
read_metrics(struct scored_run *run, const char *split, json_t **metrics, struct chex_error *err)
{
    char name[SCORED_FILE];
    const char *hash;
    enum chex_status status;

    snprintf(name, sizeof(name), "%.3000s/metrics-%.64s.json", run->path, split);
    status = read_object(name, metrics, err);
    hash = json_string_value(json_object_get(json_object_get(*metrics, "split"), "members_sha256"));
    if (status == CHEX_OK && (!hash || strlen(hash) >= sizeof(run->members)))
        status = error_set(err, CHEX_ERR_INCOMPATIBLE, "'%s' has no hash of its split", name);
    if (status == CHEX_OK)
        snprintf(run->members, sizeof(run->members), "%s", hash);
    return status;
}

static enum chex_status
read_options(struct scored_run *run, struct chex_error *err)
{
    char name[SCORED_FILE];
    json_t *top = NULL;
    enum chex_status status;

    snprintf(name, sizeof(name), "%.3000s/run.json", run->path);
    status = read_object(name, &top, err);
    if (status == CHEX_OK && json_is_object(json_object_get(top, "options")))
        run->options = json_incref(json_object_get(top, "options"));
    json_decref(top);
    return status == CHEX_ERR_MISSING ? CHEX_OK : status;
}

static enum chex_status
read_predictions(struct scored_run *run, const json_t *metrics, struct chex_error *err)
{
    enum chex_status status = predictions_read(run->file, &run->p, err);
    unsigned k;

    for (k = 0; status == CHEX_OK && k < run->p.outputs; k++)
        run->threshold[k] = find_threshold(metrics, run->p.finding[k]);
    return status;
}

static enum chex_status
compare_findings(const struct scored_run *x, const struct scored_run *y, struct chex_error *err)
{
    const struct predictions *a = &x->p, *b = &y->p;
    char name[2][INSPECT_TEXT];
    unsigned k;

    for (k = 0; k < a->outputs && k < b->outputs && strcmp(a->finding[k], b->finding[k]) == 0; k++)
        ;
    if (k == a->outputs && k == b->outputs)
        return CHEX_OK;
    return error_set(err, CHEX_ERR_INCOMPATIBLE,
                     "the runs have different findings: number %u is '%.100s' in %s, '%.100s' in %s", k + 1,
                     inspect_text(inspect_bytes(k < a->outputs ? a->finding[k] : ""), name[0]), x->label,
                     inspect_text(inspect_bytes(k < b->outputs ? b->finding[k] : ""), name[1]), y->label);
}

enum chex_status
scored_runs_read(struct scored_run *run, unsigned count, const char *split, unsigned *failed, struct chex_error *err)
{
    json_t *metrics[SCORED_RUNS] = {NULL};
    enum chex_status status = CHEX_OK;
    unsigned i;

    for (i = 0; i < count && status == CHEX_OK; i++) {
        *failed = i;
        if (strlen(run[i].path) > PATH_LONGEST || strlen(split) > SPLIT_LONGEST)
            status = error_set(err, CHEX_ERR_USAGE, "the path or the name of the split is too long");
        snprintf(run[i].file, sizeof(run[i].file), "%.3000s/predictions-%.64s.csv", run[i].path, split);
        if (status == CHEX_OK)
            status = read_metrics(&run[i], split, &metrics[i], err);
        if (status == CHEX_OK && strcmp(run[0].members, run[i].members) != 0)
            status = error_set(err, CHEX_ERR_INCOMPATIBLE,
                               "the runs have different splits '%s': members %.64s in %s, %.64s in %s", split,
                               run[0].members, run[0].label, run[i].members, run[i].label);
    }
    for (i = 0; i < count && status == CHEX_OK; i++) {
        *failed = i;
        status = read_predictions(&run[i], metrics[i], err);
        if (status == CHEX_OK)
            status = compare_findings(&run[0], &run[i], err);
    }
    for (i = 0; i < count; i++)
        json_decref(metrics[i]);
    return status;
}

enum chex_status
scored_runs_read_options(struct scored_run *run, unsigned count, unsigned *failed, struct chex_error *err)
{
    enum chex_status status = CHEX_OK;
    unsigned i;

    for (i = 0; i < count && status == CHEX_OK; i++) {
        *failed = i;
        status = read_options(&run[i], err);
    }
    return status;
}

const char *
scored_run_option(const struct scored_run *run, const char *name, char out[SCORED_OPTION])
{
    const json_t *value = json_object_get(run->options, name);

    if (json_is_string(value))
        snprintf(out, SCORED_OPTION, "%s", json_string_value(value));
    else if (json_is_number(value))
        snprintf(out, SCORED_OPTION, "%.15g", json_number_value(value));
    else if (json_is_boolean(value))
        snprintf(out, SCORED_OPTION, "%s", json_is_true(value) ? "yes" : "no");
    else
        snprintf(out, SCORED_OPTION, "none");
    return out;
}

void
scored_run_release(struct scored_run *run)
{
    predictions_release(&run->p);
    json_decref(run->options);
    run->options = NULL;
}
