/*
 * read.c - reads the files of a run for its report; see run.h
 *
 * The files may come from elsewhere, so each value is checked before it is used.  metrics-SPLIT.json must belong to
 * predictions-SPLIT.csv: equal findings, numbers of images and patients, and positives.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/run/run.h"

#include "data/fold.h"
#include "inspect/run/json_file.h"
#include "io/file.h"
#include "labels/patient_ids.h"
#include "log/run_file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_LONGEST  3000
#define SPLIT_LONGEST 64
#define FILE_PATH     4096

static bool
is_predictions(const char *name)
{
    return strncmp(name, "predictions-", 12) == 0;
}

static bool
has_predictions(const char *path)
{
    struct folder folder = {.path = NULL};
    struct folder_names names = {.count = 0};
    struct chex_error ignored;
    bool found = folder_open(path, false, &folder, &ignored) == CHEX_OK &&
                 folder_list(&folder, is_predictions, &names, &ignored) == CHEX_OK && names.count > 0;

    folder_names_release(&names);
    folder_close(&folder);
    return found;
}

bool
inspect_is_run(const char *path)
{
    char name[FILE_PATH];

    if (strlen(path) > PATH_LONGEST)
        return false;
    snprintf(name, sizeof(name), "%s/manifest.json", path);
    if (access(name, F_OK) == 0)
        return false;
    snprintf(name, sizeof(name), "%s/" RUN_FILE_NAME, path);
    return access(name, F_OK) == 0 || has_predictions(path);
}

/* ---- metrics-SPLIT.json ------------------------------------------------------------------------------------------ */

static void
take_operating(const json_t *object, struct run_finding *f)
{
    const json_t *platt = json_object_get(object, "platt");
    unsigned i;

    JSON_TAKE(object, "refused", f->refused);
    f->a = json_take_real(platt, "a", -1e30, 1e30);
    f->b = json_take_real(platt, "b", -1e30, 1e30);
    if (isnan(f->a) || isnan(f->b))
        f->a = f->b = (double)NAN;
    for (i = 0; i < OPERATING_RULES; i++)
        f->point[i].threshold = json_take_real(json_object_get(object, operating_rule_name[i]), "threshold", 0, 1);
    if (!json_is_object(object))
        snprintf(f->refused, sizeof(f->refused), "the model has no operating points");
}

static uint64_t
count_positives(const struct predictions *p, unsigned finding)
{
    uint64_t n = 0;
    size_t i;

    for (i = 0; i < p->count; i++)
        n += p->label[i * p->outputs + finding] == 1;
    return n;
}

/* A mean that differs, or the name of another split: the file belongs to other predictions, or one was changed. */
static enum chex_status
check_split(const struct run_report *r, const json_t *split, const char *file, struct chex_error *err)
{
    const char *name = json_string_value(json_object_get(split, "name"));

    if (name && strcmp(name, r->split) != 0)
        return error_set(err, CHEX_ERR_INCOMPATIBLE, "'%s' is of the split '%.64s', not '%s': was it renamed?", file,
                         name, r->split);
    return CHEX_OK;
}

static enum chex_status
take_findings(struct run_report *r, const json_t *top, const char *file, struct chex_error *err)
{
    const json_t *list = json_object_get(top, "findings"), *split = json_object_get(top, "split");
    unsigned k;

    if (json_array_size(list) != r->p.outputs || json_take_count(split, "images") != r->p.count ||
        json_take_count(split, "patients") != r->patients)
        return error_set(err, CHEX_ERR_INCOMPATIBLE,
                         "'%s' does not belong to predictions-%s.csv: it has %zu findings, %llu images and %llu "
                         "patients, the predictions have %u, %zu and %lu",
                         file, r->split, json_array_size(list), (unsigned long long)json_take_count(split, "images"),
                         (unsigned long long)json_take_count(split, "patients"), r->p.outputs, r->p.count,
                         (unsigned long)r->patients);
    for (k = 0; k < r->p.outputs; k++) {
        const json_t *object = json_array_get(list, k);
        const char *name = json_string_value(json_object_get(object, "name"));

        if (!name || strcmp(name, r->p.finding[k]) != 0 ||
            json_take_count(object, "positives") != count_positives(&r->p, k))
            return error_set(err, CHEX_ERR_INCOMPATIBLE,
                             "'%s' does not belong to predictions-%s.csv: the name or the positives of '%.60s' differ",
                             file, r->split, r->p.finding[k]);
        take_operating(json_object_get(object, "operating"), &r->finding[k]);
    }
    return CHEX_OK;
}

static enum chex_status
read_metrics(struct run_report *r, struct chex_error *err)
{
    char file[FILE_PATH];
    json_t *top = NULL;
    const json_t *model, *operating;
    enum chex_status status;

    snprintf(file, sizeof(file), "%.3000s/metrics-%.64s.json", r->path, r->split);
    status = json_file_read(file, "chex-train", &top, err);
    if (status == CHEX_OK)
        status = take_findings(r, top, file, err);
    if (status == CHEX_OK)
        status = check_split(r, json_object_get(top, "split"), file, err);
    if (status == CHEX_OK) {
        model = json_object_get(top, "model");
        operating = json_object_get(top, "operating");
        JSON_TAKE(json_object_get(top, "split"), "members_sha256", r->members);
        JSON_TAKE(json_object_get(top, "split"), "rule", r->rule);
        r->mean = json_take_real(json_object_get(json_object_get(top, "mean"), "auroc"), "value", 0, 1);
        JSON_TAKE(top, "dataset_id", r->dataset_id);
        JSON_TAKE(top, "version", r->tool_version);
        JSON_TAKE(model, "name", r->model);
        JSON_TAKE(model, "checkpoint_sha256", r->checkpoint_sha256);
        JSON_TAKE(json_object_get(top, "views"), "tta", r->tta);
        JSON_TAKE(operating, "chosen_on", r->chosen_on);
        r->optimistic = json_is_true(json_object_get(operating, "optimistic"));
        r->step = json_take_count(model, "step");
        r->epochs = json_take_real(model, "epochs", 0, 1e9);
        r->skipped = json_array_size(json_object_get(json_object_get(top, "split"), "skipped"));
    }
    json_decref(top);
    return status;
}

/* ---- run.json ---------------------------------------------------------------------------------------------------- */

static void
add_word(char *out, const char *word)
{
    size_t used = strlen(out), left = RUN_COMMAND - used;

    if (strlen(word) + 2 < left)
        snprintf(out + used, left, "%s%s", used ? " " : "", word);
}

/* Returns whether the word is --NAME, a long enough part of it, or its letter. */
static bool
is_option(const char *word, size_t length, const char *name)
{
    if (strncmp(word, "--", 2) != 0)
        return length == 2 && word[0] == '-' && word[1] == name[0];
    return length >= 4 && length <= strlen(name) + 2 && strncmp(word + 2, name, length - 2) == 0;
}

/* Returns a value without a path; 1/4 of --fold is none.  option: the first `length` characters count */
static const char *
shown_value(const char *option, size_t length, const char *value)
{
    struct fold_choice choice;
    struct chex_error ignored;

    if (is_option(option, length, "data"))
        return "DATA";
    if (is_option(option, length, "output"))
        return "RUN";
    return strchr(value, '/') && fold_parse(value, &choice, &ignored) != CHEX_OK ? "PATH" : value;
}

/* Add a word: a value after its option, "--option=value", "-oVALUE", or another one. */
static void
add_shown(char *out, const char *before, const char *word)
{
    const char *equal = strncmp(word, "--", 2) == 0 ? strchr(word, '=') : NULL;
    bool attached = word[0] == '-' && (word[1] == 'd' || word[1] == 'o') && word[2];
    size_t length = equal ? (size_t)(equal - word) : 2;
    char text[RUN_COMMAND];

    if (equal || attached) {
        snprintf(text, sizeof(text), "%.*s%s%s", (int)length, word, equal ? "=" : " ",
                 shown_value(word, length, word + length + (equal ? 1 : 0)));
        add_word(out, text);
    } else {
        add_word(out, shown_value(before, strlen(before), word));
    }
}

/* The command without paths: the page has the same bytes wherever the run is. */
static void
take_command(struct run_report *r, const json_t *command)
{
    const json_t *value;
    const char *word, *before = "";
    size_t i;

    r->command[0] = '\0';
    json_array_foreach (command, i, value) {
        word = json_string_value(value);
        if (!word)
            continue;
        if (i == 0)
            add_word(r->command, "chex-train");
        else
            add_shown(r->command, before, word);
        before = word;
    }
}

static void
take_splits(struct run_report *r, const json_t *list)
{
    const json_t *object;
    size_t i;

    json_array_foreach (list, i, object) {
        struct run_split *s = &r->of[r->splits];

        if (r->splits == RUN_SPLITS)
            return;
        JSON_TAKE(object, "name", s->name);
        JSON_TAKE(object, "use", s->use);
        JSON_TAKE(object, "sha256", s->sha256);
        s->images = json_take_count(object, "images");
        s->patients = json_take_count(object, "patients");
        if (strcmp(s->use, "train") == 0)
            snprintf(r->train, sizeof(r->train), "%s", s->name);
        if (strcmp(s->use, "validation") == 0)
            snprintf(r->validation, sizeof(r->validation), "%s", s->name);
        r->splits++;
    }
}

/* Take an option whose value `none` means that it was not given. */
static void
take_option(const json_t *options, const char *key, const char *none, char out[RUN_TEXT_MAX])
{
    json_take_text(options, key, out, RUN_TEXT_MAX);
    if (strcmp(out, none) == 0)
        out[0] = '\0';
}

/* Without run.json, nobody knows which images the network was trained on. */
static enum chex_status
read_run(struct run_report *r, struct chex_error *err)
{
    char file[FILE_PATH];
    json_t *top = NULL;
    const json_t *dataset, *sessions;
    enum chex_status status;

    snprintf(file, sizeof(file), "%.3000s/%s", r->path, RUN_FILE_NAME);
    status = json_file_read(file, "chex-train", &top, err);
    if (status == CHEX_ERR_MISSING && err->cause == ENOENT && r->is_other)
        return CHEX_OK;
    if (status == CHEX_ERR_MISSING && err->cause == ENOENT)
        return error_set(err, status, "'%s' has no %s, which says on which images the network was trained", r->path,
                         RUN_FILE_NAME);
    if (status == CHEX_OK) {
        dataset = json_object_get(top, "dataset");
        sessions = json_object_get(top, "sessions");
        JSON_TAKE(dataset, "path", r->data_path);
        take_splits(r, json_object_get(dataset, "splits"));
        take_option(json_object_get(top, "options"), "fold", "none", r->fold);
        take_option(json_object_get(top, "options"), "limit", "all", r->limit);
        r->epoch_images = json_take_count(top, "epoch_images");
        r->seed = json_take_count(top, "seed");
        take_command(r, json_object_get(json_array_get(sessions, 0), "command"));
    }
    json_decref(top);
    return status;
}

/* ---- all together ------------------------------------------------------------------------------------------------ */

enum chex_status
run_number_patients(const struct predictions *p, struct arena *strings, uint32_t *patient, uint32_t *patients,
                    struct chex_error *err)
{
    struct patients all = {0};
    enum chex_status status = CHEX_OK;
    size_t i;

    for (i = 0; i < p->count && status == CHEX_OK; i++)
        status = patients_add(&all, p->patient[i], strings, &patient[i], err);
    *patients = (uint32_t)all.count;
    patients_release(&all);
    return status;
}

static enum chex_status
number_patients(struct run_report *r, struct chex_error *err)
{
    r->patient = malloc(r->p.count * sizeof(*r->patient));
    return r->patient ? run_number_patients(&r->p, &r->strings, r->patient, &r->patients, err) : error_memory(err);
}

static bool
has_split(const struct run_report *r)
{
    unsigned i;

    for (i = 0; i < r->splits && strcmp(r->of[i].name, r->split) != 0; i++)
        ;
    return r->splits == 0 || i < r->splits;
}

/* The run may have no such split: name those that it has. */
static enum chex_status
explain_missing(const struct run_report *r, enum chex_status status, struct chex_error *err)
{
    char names[RUN_SPLITS * (RUN_TEXT_MAX + 2)] = "";
    unsigned i;

    if (status != CHEX_ERR_MISSING || err->cause != ENOENT)
        return status;
    for (i = 0; i < r->splits; i++)
        snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", i > 0 ? ", " : "", r->of[i].name);
    if (!has_split(r))
        return error_set(err, status,
                         "'%s' has no predictions-%s.csv, and its data set has no split '%s': choose one of %.500s "
                         "with --split, after chex-train --eval-only --split of the same name",
                         r->path, r->split, r->split, names);
    return error_set(
        err, status,
        "'%s' has no predictions-%s.csv: evaluate this split with chex-train --eval-only --split %s, or choose "
        "another one with --split",
        r->path, r->split, r->split);
}

enum chex_status
run_report_read(struct run_report *r, struct chex_error *err)
{
    char file[FILE_PATH];
    enum chex_status status;
    unsigned k;

    if (strlen(r->path) > PATH_LONGEST || strlen(r->split) > SPLIT_LONGEST || strchr(r->split, '/'))
        return error_set(err, CHEX_ERR_USAGE, "the path or the name of the split is too long");
    snprintf(file, sizeof(file), "%s/predictions-%s.csv", r->path, r->split);
    status = read_run(r, err);
    if (status == CHEX_OK)
        status = explain_missing(r, predictions_read(file, &r->p, err), err);
    if (status == CHEX_OK)
        status = number_patients(r, err);
    for (k = 0; k < r->p.outputs; k++)
        r->finding[k].name = r->p.finding[k];
    if (status == CHEX_OK)
        status = read_metrics(r, err);
    return status;
}
