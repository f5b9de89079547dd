/*
 * run_file.c - see run_file.h; the keys are described in schemas/run.schema.json
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "log/run_file.h"

#include "dataset/certificate.h"
#include "dataset/dataset.h"
#include "dataset/findings.h"
#include "log/run_json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RUN_FORMAT   1
#define RUN_FILE_MAX (16u << 20)
#define SESSIONS_MAX 1000 /* the newest are kept */

static const struct parse_bounds bounds = {.size = RUN_FILE_MAX, .depth = 8, .values = 400000};

struct run_file {
    const struct folder *folder;
    json_t *root;
    json_t *session; /* the last one of root: this session */
};

static enum chex_status
write_file(const struct run_file *r, struct chex_error *err)
{
    struct buffer text = {0};
    enum chex_status status = append_json(r->root, JSON_INDENT(2) | JSON_REAL_PRECISION(RUN_JSON_DIGITS), &text, err);

    if (status == CHEX_OK)
        status = safe_file_put(r->folder, RUN_FILE_NAME, text.data, text.size, err);
    buffer_release(&text);
    return status;
}

static json_t *
format_now(void)
{
    time_t now = time(NULL);
    struct tm utc;
    char text[40];

    if (!gmtime_r(&now, &utc) || strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
        return json_null();
    return json_string(text);
}

/* ---- parts of the start ------------------------------------------------------------------------------------------ */

static json_t *
format_command(const struct run_facts *f)
{
    json_t *list = json_array();
    int i;

    for (i = 0; list && i < f->argc; i++)
        if (json_array_append_new(list, text_json(f->argv[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

/* {"n07": 8, "n08": 8}: the number of ranks per host. */
static json_t *
format_hosts(const struct run_facts *f)
{
    struct run_json j = run_json_object();
    unsigned i;

    for (i = 0; i < f->ranks && j.object; i++) {
        json_t *name = text_json(f->host[i]);
        const json_t *before = name ? json_object_get(j.object, json_string_value(name)) : NULL;

        if (name)
            run_json_count(&j, json_string_value(name), (uint64_t)json_integer_value(before) + 1);
        else
            j.failed = true;
        json_decref(name);
    }
    return run_json_take(&j);
}

static json_t *
format_session(const struct run_facts *f)
{
    struct run_json j = run_json_object();

    run_json_add(&j, "started", format_now());
    run_json_text(&j, "version", chex_version());
    run_json_add(&j, "command", format_command(f));
    run_json_count(&j, "from_step", f->step);
    run_json_count(&j, "ranks", f->ranks);
    run_json_count(&j, "threads", f->threads);
    run_json_add(&j, "hosts", format_hosts(f));
    run_json_text(&j, "backend", f->backend);
    run_json_text(&j, "device", f->device);
    run_json_text(&j, "precision", f->precision);
    run_json_text(&j, "cpu", f->cpu);
    run_json_values(&j, "libraries", f->library, f->libraries);
    run_json_add(&j, "ended", json_null());
    run_json_add(&j, "exit", json_null());
    run_json_add(&j, "reason", json_null());
    run_json_add(&j, "to_step", json_null());
    return run_json_take(&j);
}

static json_t *
format_split(const struct run_facts *f, const struct chex_split_info *split)
{
    struct run_json j = run_json_object(), positives = run_json_object(), known = run_json_object();
    bool trains = f->train && strcmp(f->train, split->name) == 0;
    bool validates = f->validation && strcmp(f->validation, split->name) == 0;
    unsigned findings, i;
    const char *const *name = chex_dataset_findings(f->dataset, &findings);

    run_json_text(&j, "name", split->name);
    run_json_text(&j, "use", trains ? "train" : validates ? "validation" : NULL);
    run_json_text(&j, "sha256", split->members_sha256);
    run_json_count(&j, "images", split->image_count);
    run_json_count(&j, "patients", split->patient_count);
    for (i = 0; i < findings; i++) {
        run_json_count(&positives, name[i], split->positives[i]);
        run_json_count(&known, name[i], split->known[i]);
    }
    run_json_add(&j, "positives", run_json_take(&positives));
    run_json_add(&j, "known", run_json_take(&known));
    return run_json_take(&j);
}

static json_t *
format_dataset(const struct run_facts *f)
{
    const struct chex_dataset_info *info = chex_dataset_info(f->dataset);
    struct run_json j = run_json_object();
    json_t *splits = json_array();
    unsigned i;

    run_json_text(&j, "path", f->dataset_path);
    run_json_text(&j, "id", info->id);
    if (info->leaky_patients > 0)
        run_json_count(&j, "leaky_patients", info->leaky_patients);
    run_json_count(&j, "height", info->height);
    run_json_count(&j, "width", info->width);
    run_json_text(&j, "resize", f->dataset->manifest.resize);
    run_json_count(&j, "images", info->image_count);
    for (i = 0; i < info->split_count; i++)
        if (json_array_append_new(splits, format_split(f, chex_dataset_split(f->dataset, i))) != 0)
            j.failed = true;
    run_json_add(&j, "splits", splits);
    run_json_add(&j, "certificate", certificate_json(f->certificate));
    return run_json_take(&j);
}

static const char *
init_of(const json_t *run)
{
    return json_string_value(json_object_get(json_object_get(run, "model"), "init"));
}

static json_t *
format_model(const struct run_facts *f, const json_t *earlier)
{
    struct run_json j = run_json_object();

    run_json_text(&j, "name", f->model);
    run_json_count(&j, "parameters", f->parameters);
    run_json_text(&j, "init", f->init ? f->init : init_of(earlier));
    run_json_text(&j, "init_sha256", f->init_sha256);
    return run_json_take(&j);
}

/* ---- earlier sessions -------------------------------------------------------------------------------------------- */

/* Read the earlier run.json; *out is NULL if it is missing or invalid. */
static enum chex_status
read_earlier(int folder_fd, json_t **out, struct chex_error *err)
{
    struct buffer text = {0};
    enum chex_status status = file_read(folder_fd, RUN_FILE_NAME, RUN_FILE_MAX, &text, err);

    *out = NULL;
    if (status == CHEX_OK)
        status = parse_json(text.data, text.size, &bounds, out, err);
    buffer_release(&text);
    return status == CHEX_ERR_MEMORY ? status : CHEX_OK;
}

enum chex_status
run_file_init(const struct folder *folder, char *out, size_t size, struct chex_error *err)
{
    json_t *run = NULL;
    enum chex_status status = read_earlier(folder->fd, &run, err);
    const char *init = init_of(run);

    snprintf(out, size, "%s", init ? init : "");
    json_decref(run);
    return status;
}

enum chex_status
run_file_option(const struct folder *folder, const char *name, char *out, size_t size, struct chex_error *err)
{
    json_t *run = NULL;
    enum chex_status status = read_earlier(folder->fd, &run, err);
    const json_t *value = json_object_get(json_object_get(run, "options"), name);
    const char *text = json_string_value(value);

    if (json_is_number(value))
        snprintf(out, size, "%.17g", json_number_value(value));
    else if (json_is_boolean(value))
        snprintf(out, size, "%s", json_is_true(value) ? "yes" : "no");
    else
        snprintf(out, size, "%s", text ? text : "");
    json_decref(run);
    return status;
}

enum chex_status
run_file_is_leaky(int folder_fd, bool *leaky, struct chex_error *err)
{
    json_t *run = NULL;
    enum chex_status status = read_earlier(folder_fd, &run, err);

    *leaky = json_is_true(json_object_get(run, "leaky"));
    json_decref(run);
    return status;
}

enum chex_status
run_file_images(int folder_fd, unsigned *side, char *resize, size_t size, struct chex_error *err)
{
    json_t *run = NULL;
    enum chex_status status = read_earlier(folder_fd, &run, err);
    const json_t *dataset = json_object_get(run, "dataset");
    double width = json_number_value(json_object_get(dataset, "width"));
    const char *method = json_string_value(json_object_get(dataset, "resize"));

    *side = width >= 1 && width <= RECORD_MAX_SIDE ? (unsigned)width : 0;
    snprintf(resize, size, "%s", method ? method : "");
    json_decref(run);
    return status;
}

enum chex_status
run_file_train_split(const struct folder *folder, char *out, size_t size, struct chex_error *err)
{
    json_t *run = NULL;
    enum chex_status status = read_earlier(folder->fd, &run, err);
    const json_t *splits = json_object_get(json_object_get(run, "dataset"), "splits"), *split;
    size_t i;

    out[0] = '\0';
    json_array_foreach (splits, i, split) {
        const char *use = json_string_value(json_object_get(split, "use"));
        const char *name = json_string_value(json_object_get(split, "name"));

        if (use && strcmp(use, "train") == 0 && name)
            snprintf(out, size, "%s", name);
    }
    json_decref(run);
    if (status == CHEX_OK && !out[0])
        return error_set(err, CHEX_ERR_MISSING, "'%s/" RUN_FILE_NAME "' does not name the training split",
                         folder->path);
    return status;
}

/* Copy the earlier sessions, without the oldest if there are too many. */
static json_t *
earlier_sessions(const json_t *earlier)
{
    const json_t *list = json_object_get(earlier, "sessions");
    json_t *copy = json_is_array(list) ? json_copy((json_t *)list) : json_array();

    while (copy && json_array_size(copy) >= SESSIONS_MAX && json_array_remove(copy, 0) == 0)
        ;
    return copy;
}

/* Keep an object or a list of objects until this session has a newer one; null in a new run. */
static json_t *
carry(const json_t *earlier, const char *key, const struct run_facts *f, bool *failed)
{
    json_t *value = f->step > 0 ? json_object_get(earlier, key) : NULL, *object;
    size_t i;

    if (f->leaky && json_is_object(value))
        *failed |= json_object_set_new(value, "leaky", json_true()) != 0;
    json_array_foreach (value, i, object)
        if (f->leaky && json_is_object(object))
            *failed |= json_object_set_new(object, "leaky", json_true()) != 0;
    return value ? json_incref(value) : json_null();
}

/* Build the document, with a session for this start at the end; NULL if memory runs out. */
static json_t *
format_run(struct run_file *r, const struct run_facts *facts, const json_t *earlier)
{
    struct run_json j = run_json_object();
    json_t *sessions = earlier_sessions(earlier), *root;

    r->session = format_session(facts);
    if (json_array_append(sessions, r->session) != 0)
        j.failed = true;
    run_json_count(&j, "format", RUN_FORMAT);
    run_json_text(&j, "tool", "chex-train");
    j.failed |= !metrics_json_mark(j.object, facts->leaky, facts->short_run ? facts->short_run : "");
    run_json_add(&j, "model", format_model(facts, earlier));
    run_json_add(&j, "dataset", format_dataset(facts));
    run_json_count(&j, "seed", facts->seed);
    run_json_count(&j, "global_batch", facts->global_batch);
    run_json_count(&j, "epoch_images", facts->epoch_images);
    run_json_values(&j, "options", facts->option, facts->options);
    run_json_add(&j, "sessions", sessions);
    run_json_add(&j, "best", carry(earlier, "best", facts, &j.failed));
    run_json_add(&j, "results", carry(earlier, "results", facts, &j.failed));
    root = run_json_take(&j);
    json_decref(j.object);
    return root;
}

enum chex_status
run_file_start(const struct folder *folder, const struct run_facts *facts, struct run_file **out,
               struct chex_error *err)
{
    struct run_file *r = calloc(1, sizeof(*r));
    json_t *earlier = NULL;
    enum chex_status status = r ? read_earlier(folder->fd, &earlier, err) : error_memory(err);

    *out = NULL;
    if (status == CHEX_OK) {
        r->folder = folder;
        r->root = format_run(r, facts, earlier);
        status = r->root ? write_file(r, err) : error_memory(err);
    }
    json_decref(earlier);
    if (status == CHEX_OK)
        *out = r;
    else
        run_file_free(r);
    return status;
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

static json_t *
format_result(const struct run_result *result)
{
    const struct metrics *m = result->metrics;
    struct run_json j = run_json_object(), findings;
    unsigned i, k;
    char key[64];

    run_json_text(&j, "split", result->split);
    run_json_text(&j, "split_sha256", result->sha256);
    run_json_text(&j, "weights", result->weights);
    run_json_count(&j, "step", result->step);
    run_json_count(&j, "images", m->images);
    run_json_count(&j, "patients", m->patients);
    run_json_count(&j, "defined", m->defined);
    j.failed |= !metrics_json_add(j.object, m->mean, m, METRICS_LINE);
    for (k = 0; k < METRIC_COUNT; k++) {
        if (!metric_info[k].each)
            continue;
        findings = run_json_object();
        for (i = 0; i < m->outputs; i++)
            run_json_real(&findings, result->findings[i], m->finding[i].metric[k].value);
        snprintf(key, sizeof(key), "%s_of", metric_info[k].name);
        run_json_add(&j, key, run_json_take(&findings));
    }
    return run_json_take(&j);
}

static json_t *
format_results(const struct run_outcome *o)
{
    json_t *list = json_array();
    size_t i;

    for (i = 0; list && i < o->results; i++)
        if (json_array_append_new(list, format_result(o->result + i)) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static json_t *
format_best(const struct run_outcome *o)
{
    struct run_json j = run_json_object();

    j.failed |= !metrics_json_mark(j.object, o->leaky, o->short_run ? o->short_run : "");
    run_json_text(&j, "metric", o->selected);
    run_json_real(&j, "value", o->best);
    run_json_count(&j, "step", o->best_step);
    run_json_text(&j, "file", o->best_file);
    return run_json_take(&j);
}

enum chex_status
run_file_finish(struct run_file *r, const struct run_outcome *outcome, struct chex_error *err)
{
    /* Both borrow an object that r owns. */
    struct run_json session = {.object = json_incref(r->session)}, root = {.object = json_incref(r->root)};

    run_json_add(&session, "ended", format_now());
    run_json_add(&session, "exit", json_integer(outcome->exit));
    run_json_text(&session, "reason", outcome->reason);
    run_json_count(&session, "to_step", outcome->step);
    run_json_count(&session, "epochs", outcome->epochs);
    if (isfinite(outcome->best))
        run_json_add(&root, "best", format_best(outcome));
    if (outcome->results > 0)
        run_json_add(&root, "results", format_results(outcome));
    json_decref(session.object);
    json_decref(root.object);
    if (session.failed || root.failed)
        return error_memory(err);
    return write_file(r, err);
}

void
run_file_free(struct run_file *r)
{
    if (!r)
        return;
    json_decref(r->session);
    json_decref(r->root);
    free(r);
}
