/*
 * train_json.c - the --json document of chex-train (schemas/train.schema.json)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "train/train_report.h"

#include "base/json.h"
#include "train/train_audit.h"
#include "train/train_storage.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>

static json_t *
splits_json(const struct trainer_facts *f)
{
    const int split[] = {f->train, f->validation, f->test};
    json_t *list = json_array();
    size_t i;

    for (i = 0; i < sizeof(split) / sizeof(split[0]); i++) {
        const struct chex_split_info *s = split[i] >= 0 ? chex_dataset_split(f->ds, (unsigned)split[i]) : NULL;

        if (s)
            json_array_append_new(list,
                                  json_pack("{s:s,s:s,s:o,s:o}", "name", s->name, "sha256", s->members_sha256, "images",
                                            count_json(s->image_count), "patients", count_json(s->patient_count)));
    }
    return list;
}

/* Returns JSON null if no estimate was requested or it failed. */
static json_t *
estimate_json(const struct trainer_estimate *e)
{
    if (e->run <= 0)
        return json_null();
    return json_pack("{s:f,s:o,s:f,s:b}", "micro_batch", e->micro_batch, "epoch",
                     e->epoch > 0 ? json_real(e->epoch) : json_null(), "run", e->run, "modelled", e->modelled);
}

/* A list, or null if the device exists. */
static json_t *
fits_json(const struct train_report *r)
{
    json_t *list = r->fits > 0 ? json_array() : json_null();
    size_t i;

    for (i = 0; i < r->fits; i++)
        json_array_append_new(list, json_pack("{s:i,s:b,s:i}", "gigabytes", (int)r->fit[i].sold, "fits", r->fit[i].fits,
                                              "micro_batch", (int)r->fit[i].micro_batch));
    return list;
}

static json_t *
scale_row_json(const struct trainer_scale *s)
{
    return json_pack("{s:o,s:o,s:o,s:f,s:f,s:f,s:f,s:f}", "ranks", count_json(s->ranks), "nodes", count_json(s->nodes),
                     "global_batch", count_json(s->global_batch), "step_seconds", s->step.total, "images_per_second",
                     (double)s->global_batch / s->step.total, "step_efficiency", s->step_efficiency, "epoch_seconds",
                     s->epoch, "speedup", s->speedup);
}

/* Returns JSON null without --ranks. */
static json_t *
scale_json(const struct train_report *r)
{
    const struct train_scale *s = &r->scale;
    json_t *rows;
    size_t i;

    if (s->rows == 0)
        return json_null();
    rows = json_array();
    for (i = 0; i < s->rows; i++)
        json_array_append_new(rows, scale_row_json(&s->row[i]));
    return json_pack("{s:b,s:o,s:s,s:o,s:o}", "modelled", true, "node_ranks", count_json(s->machine.node_ranks),
                     "inside", scale_link_name[s->machine.inside], "network",
                     s->machine.node_ranks < r->cli->ranks ? json_string(scale_link_name[s->machine.outside])
                                                           : json_null(),
                     "rows", rows);
}

static json_t *
plan_json(const struct train_report *r, const struct trainer *t)
{
    struct trainer_facts f;

    if (!t)
        return json_null();
    trainer_facts(t, &f);
    if (!f.graph || f.memory_all == 0 || trainer_options(t)->storage_check)
        return json_null();
    return json_pack(
        "{s:s,s:o,s:o,s:s,s:o,s:i,s:s,s:s,s:i,s:i,s:i,s:o,s:o,s:o,s:i,s:b,s:o,s:o,s:o}", "dataset_id",
        chex_dataset_info(f.ds)->id, "splits", splits_json(&f), "certificate", certificate_json(f.certificate), "model",
        f.graph->model, "parameters", count_json(f.graph->param_floats), "crop", (int)f.side, "backend",
        f.backend->name, "device", f.device, "ranks", f.ranks, "micro_batch", (int)f.micro_batch, "micro_batches",
        (int)f.micro_batches, "global_batch", count_json(f.global_batch), "steps_per_epoch", count_json(f.steps),
        "memory", count_json(f.memory_all), "window", (int)f.reading.window, "cached", f.reading.kept, "estimate",
        estimate_json(&r->estimate), "fits", fits_json(r), "scale", scale_json(r));
}

static json_t *
times_json(const struct step_times *times)
{
    json_t *object = json_object();
    int i;

    for (i = 0; i < PART_COUNT; i++)
        json_object_set_new(object, step_part_name[i], json_real(times->seconds[i]));
    return object;
}

static json_t *
result_json(const struct train_report *r, const struct trainer *t)
{
    const struct trainer_result *result;
    const struct checkpoint_state *state;
    struct trainer_facts f;
    json_t *object;

    if (!t || !r->started)
        return json_null();
    trainer_facts(t, &f);
    result = trainer_result(t);
    state = trainer_state(t);
    object = json_pack("{s:o,s:b,s:o,s:i,s:o,s:o,s:f,s:o,s:s,s:o,s:o,s:o,s:b,s:o}", "from", text_json(r->from),
                       "resumed", r->resumed, "step", count_json(state->step), "epochs", (int)state->epoch, "steps",
                       count_json(result->steps), "images", count_json(result->images), "seconds", result->seconds,
                       "times", times_json(&result->times), "select", select_names[f.select], "best",
                       real_json(state->best), "best_step", count_json(state->best_step), "checkpoint",
                       result->last[0] ? json_string(result->last) : json_null(), "ended_early", result->early,
                       "skipped", count_json(result->skipped));
    (void)metrics_json_mark(object, state->leaky, state->short_run);
    return object;
}

static json_t *
evaluation_json(const struct train_evaluation *j)
{
    const struct metrics *m = &j->metrics;
    json_t *object;
    bool good;

    if (!j->there)
        return json_null();
    object = json_pack("{s:s,s:s,s:o,s:o,s:o,s:o}", "split", j->split, "sha256", j->sha256, "step", count_json(j->step),
                       "images", count_json(m->images), "patients", count_json(m->patients), "loss",
                       real_json(j->loss));
    good = metrics_json_add(object, m->mean, m, METRICS_SUMMARY);
    good &= json_object_set_new(object, "defined", count_json(m->defined)) == 0;
    good &= json_object_set_new(object, "findings", metrics_json_findings(m, j->findings, METRICS_SUMMARY)) == 0;
    if (!good)
        json_decref(object);
    return good ? object : NULL;
}

void
train_report_json(const struct train_report *r, const struct trainer *t, const struct chex_error *err, int code)
{
    json_t *document = json_pack(
        "{s:s,s:s,s:s,s:i,s:o,s:o,s:b,s:o,s:o,s:o,s:o}", "tool", train_program.name, "version", chex_version(), "note",
        "research use only, not for diagnosis", "exit_code", code, "error", text_json(err ? err->text : NULL), "output",
        text_json(r->cli->train.run), "eval_only", r->cli->train.evaluate_only, "plan", plan_json(r, t), "result",
        result_json(r, t), "validation", evaluation_json(&r->validation), "final", evaluation_json(&r->final));

    if (r->cli->train.storage_check)
        (void)json_object_set_new(document, "storage", train_storage_json(r, t));
    if (r->cli->train.audit)
        (void)json_object_set_new(document, "audit", train_audit_json(r));
    if (t)
        (void)metrics_json_mark(document, trainer_state(t)->leaky, trainer_state(t)->short_run);
    json_dumpf(document, stdout, JSON_INDENT(2));
    printf("\n");
    json_decref(document);
}
