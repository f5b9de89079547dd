/*
 * predict_report.c - see predict_report.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "predict/predict_report.h"

#include "base/number_format.h"
#include "common/color.h"
#include "common/printable.h"
#include "common/shell_word.h"
#include "common/wrap.h"
#include "dataset/dataset.h"
#include "predict/predict_boxes.h"
#include "predict/predict_gate.h"

#include <math.h>
#include <string.h>

/* ---- plan -------------------------------------------------------------------------------------------------------- */

/* Say which models are the same. */
static void
report_twins(const struct models *models)
{
    char path[PRINTABLE_TEXT], other[PRINTABLE_TEXT];
    size_t i, k;

    for (i = 1; i < models->count; i++) {
        for (k = 0; k < i && strcmp(models->model[k].sha256, models->model[i].sha256) != 0; k++)
            ;
        if (k < i)
            wrap_line(stderr, "note", "'%s' is the same model as '%s': the mean counts it again",
                      printable_text(relative_path(models->model[i].path), path),
                      printable_text(relative_path(models->model[k].path), other));
    }
}

static void
report_models(const struct models *models)
{
    char path[PRINTABLE_TEXT], n[FORMAT_THINGS];
    size_t i;

    for (i = 0; i < models->count; i++) {
        const struct predict_model *m = &models->model[i];
        struct wrap w = {.out = stderr};

        wrap_put(&w, "", "%-8s %s", i == 0 ? "model" : "", printable_text(relative_path(m->path), path));
        wrap_put(&w, "  ", "%s of %ux%u", m->state.model, m->state.side, m->state.side);
        wrap_put(&w, ", ", "%s", format_things(m->findings.count, "finding", n));
        wrap_put(&w, ", ", "step %s", COUNT_TEXT(m->state.step));
        wrap_end(&w);
    }
    report_twins(models);
    if (models->leaky)
        wrap_line(stderr, "leaky", "a model is marked: a patient or image was in two of its splits");
    if (models->short_run[0])
        wrap_line(stderr, "short", "a model is of a short run (%s)", models->short_run);
    if (models->resize_assumed)
        wrap_line(stderr, "note",
                  "run.json does not say how the images of the model were shrunk: %s is assumed "
                  "(--resize)",
                  resample_names[models->resize]);
}

static void
report_flags(const struct prediction *p)
{
    const struct flags *f = p->flags;
    unsigned outputs = p->models->outputs;

    if (f->rule && strcmp(f->rule, "file") == 0)
        wrap_line(stderr, "flags", "%u of %u findings, thresholds of '%s'", f->findings, outputs,
                  p->options->threshold);
    else if (f->rule)
        wrap_line(stderr, "flags", "%u of %u findings, thresholds %s, chosen on %s; %u calibrated", f->findings,
                  outputs, f->rule, f->calibration->split, f->calibrated);
    else if (p->models->count > 1)
        wrap_line(stderr, "flags",
                  "none, and no calibration: those of a single model do not hold for the mean of several, and %s "
                  "(--threshold FILE)",
                  f->why);
    else
        wrap_line(stderr, "flags",
                  "none, and no calibration: the model was trained without a split val that could "
                  "choose them (--threshold FILE)");
}

/* Say if thresholds and calibration were chosen with another precision or other views than those of these scores. */
static void
report_other_scores(const struct prediction *p)
{
    const struct operating *o = p->flags->calibration;
    enum precision precision = p->models->model[0].facts.precision;

    if (o && (o->precision != precision || o->tta != p->options->tta))
        wrap_line(stderr, "note",
                  "thresholds and calibration were chosen with --precision %s --tta %s; these scores have --precision "
                  "%s --tta %s",
                  precision_names[o->precision], tta_names[o->tta], precision_names[precision],
                  tta_names[p->options->tta]);
}

static void
report_gate(const struct prediction *p)
{
    const struct gate *gate = predict_gate_of(p->models);
    char n[FORMAT_THINGS];

    if (gate)
        wrap_line(stderr, "gate", "turned and inverted images are found by a comparison with %s of val",
                  format_things(gate->images, "image", n));
    else
        wrap_line(stderr, "gate",
                  "none: turned and inverted images are not found, because the model has no mean image (its val had "
                  "fewer than %d images, or it is of another program)",
                  GATE_FEWEST);
}

static void
report_resize(const struct prediction *p, struct wrap *w)
{
    unsigned size = p->models->size;
    const char *method = images_resize(p->images, size, p->models->resize);

    if (images_are_shrunk(p->images, size))
        wrap_put(w, ", ", "shrunk to %ux%u (%s)", size, size, method);
    else if (strcmp(method, resample_names[RESAMPLE_NONE]) == 0)
        wrap_put(w, ", ", "of %ux%u, never shrunk", size, size);
    else
        wrap_put(w, ", ", "of %ux%u, shrunk for the data set (%s)", size, size, method);
}

/* Say which images of a data set the model was trained on, if they may be among those that are scored. */
static void
report_trained(const struct predict_model *m, const struct chex_dataset *ds, const char *split)
{
    char model[PRINTABLE_TEXT], path[PRINTABLE_TEXT];
    bool trained = !split || strcmp(split, m->split) == 0;

    if (strcmp(m->state.dataset_id, ds->info.id) != 0 && !manifest_had_id(&ds->manifest, m->state.dataset_id))
        return;
    printable_text(relative_path(m->path), model);
    printable_text(relative_path(ds->folder.path), path);
    if (m->fold[0] && (trained || strcmp(split, "val") == 0))
        wrap_line(stderr, "note", "'%s' was trained with --fold %s: its training images are in train and val of '%s'",
                  model, m->fold, path);
    else if (trained)
        wrap_line(stderr, "note", "'%s' was trained on the images of the split %s of '%s'", model, m->split, path);
}

/* What a reader should know about each data set and the training of the models. */
static void
report_datasets(const struct prediction *p)
{
    const struct models *models = p->models;
    const char *wanted = resample_names[models->resize];
    size_t i, k;

    for (i = 0; i < p->images->source.dataset_count; i++) {
        const struct chex_dataset *ds = p->images->source.dataset[i];
        char path[PRINTABLE_TEXT];

        if (!models->resize_assumed && ds->info.width == models->size && strcmp(ds->manifest.resize, wanted) != 0)
            wrap_line(stderr, "note", "'%s' was made with --resize %s, the images of the training with --resize %s",
                      printable_text(relative_path(ds->folder.path), path), ds->manifest.resize, wanted);
        for (k = 0; k < models->count; k++)
            report_trained(&models->model[k], ds, p->options->split);
    }
}

static void
report_unreadable(const struct source *s)
{
    char n[FORMAT_THINGS];

    if (s->unreadable > 0)
        wrap_line(stderr, "", "%s that may not be read left out", format_things(s->unreadable, "folder", n));
}

static void
report_images(const struct prediction *p)
{
    const struct source *s = &p->images->source;
    char n[FORMAT_THINGS];
    struct wrap w = {.out = stderr};

    wrap_put(&w, "", "images   %s", format_things(p->images->count, "image", n));
    if (s->dataset_count > 0)
        wrap_put(&w, " in ", "%s", format_things(s->dataset_count, "data set", n));
    if (s->folder_count > 0)
        wrap_put(&w, " in ", "%s", format_things(s->folder_count, "folder", n));
    if (s->archive_count > 0)
        wrap_put(&w, s->folder_count > 0 ? " and " : " in ", "%s", format_things(s->archive_count, "archive", n));
    report_resize(p, &w);
    if (!part_is_whole(p->options->part))
        wrap_put(&w, ", ", "part %u of %u", p->options->part.index + 1, p->options->part.count);
    wrap_end(&w);
    if (s->repeated > 0)
        wrap_line(stderr, "", "%s identical %s ignored", COUNT_TEXT(s->repeated), s->repeated == 1 ? "copy" : "copies");
    if (s->unopened > 0)
        wrap_line(stderr, "", "%s in these folders not looked into; give archives by name",
                  format_things(s->unopened, "archive", n));
    report_unreadable(s);
}

/* What --maps is going to write: a file of numbers for each image, and pictures. */
static void
report_planned_maps(const struct prediction *p)
{
    const struct predict_model *m = &p->models->model[0];
    char n[FORMAT_THINGS], bytes[FORMAT_TEXT];
    struct wrap w = {.out = stderr};
    struct graph_head head;
    unsigned findings = 0, k;

    if (!p->maps || !graph_find_head(m->graph, &head))
        return;
    for (k = 0; k < head.outputs; k++)
        findings += p->maps->drawn[k];
    wrap_put(&w, "", "maps     %s", format_things(p->images->count, "file", n));
    wrap_put(&w, " ", "of %s", format_bytes(maps_file_bytes(&head), bytes));
    wrap_put(&w, " ", "(%s in all)", format_bytes(maps_file_bytes(&head) * p->images->count, bytes));
    if (findings > 0)
        wrap_put(&w, ", ", "and %s", format_things((uint64_t)findings * p->images->count, "picture", n));
    else
        wrap_put(&w, ", ", "and a picture for each flag");
    wrap_end(&w);
}

void
report_plan(const struct prediction *p, unsigned threads)
{
    const struct models *m = p->models;
    char n[FORMAT_THINGS];
    struct wrap w = {.out = stderr};

    report_models(m);
    report_flags(p);
    report_other_scores(p);
    report_gate(p);
    report_images(p);
    report_datasets(p);
    report_planned_maps(p);
    wrap_put(&w, "", "device   %s", m->device->info.text);
    wrap_put(&w, ", ", "%s", precision_names[m->model[0].facts.precision]);
    wrap_put(&w, ", ", "micro-batches of %u", m->batch);
    wrap_put(&w, ", ", "%s", format_things(threads, "thread", n));
    wrap_end(&w);
}

/* ---- progress and end -------------------------------------------------------------------------------------------- */

void
report_scoring(const struct progress *p, uint64_t refused, char *text, size_t size)
{
    char done[FORMAT_TEXT], total[FORMAT_TEXT], rate[FORMAT_TEXT], left[FORMAT_TEXT], bad[FORMAT_TEXT];
    double seconds = progress_left(p);

    snprintf(text, size, "predict  %3u %%  %s/%s  %s img/s  refused %s  %s left",
             (unsigned)(p->total ? p->done * 100 / p->total : 100), format_count(p->done, done),
             format_count(p->total, total), format_count((uint64_t)p->rate, rate), format_count(refused, bad),
             seconds < 0 ? "?" : format_seconds(seconds, left));
}

static void
report_refused(const struct prediction *p, const struct cli_common *common)
{
    const struct results *r = p->results;
    struct color color = color_for(common, stderr);
    char out[PRINTABLE_TEXT], n[FORMAT_THINGS];
    size_t damaged = prediction_damaged(p->images);
    struct wrap w = {.out = stderr};

    if (r->refused == 0 && damaged == 0)
        return;
    wrap_put(&w, "", "         %s%s refused%s", color.red, format_things(r->refused, "image", n), color.off);
    if (damaged > 0)
        wrap_put(&w, ", ", "%s damaged", format_things(damaged, "archive", n));
    if (p->options->out)
        wrap_put(&w, "      ", "%s/" PREDICT_REFUSED, printable_text(relative_path(p->options->out), out));
    wrap_end(&w);
}

#define SHOWN 5

/* List the first images that fit better turned or inverted. */
static void
report_orientation(const struct prediction *p)
{
    const struct results *r = p->results;
    char name[PRINTABLE_TEXT], fit[PREDICT_GATE_TEXT];
    uint64_t found = 0;
    size_t i;

    for (i = 0; i < r->count; i++) {
        if (r->image[i].refused != CHEX_OK || !(r->image[i].doubts & (DOUBT_TURNED | DOUBT_INVERTED)))
            continue;
        if (found++ < SHOWN)
            wrap_line(stderr, found == 1 ? "doubt" : "", "'%s' %s",
                      printable_text(p->images->names.entry[i].name, name), predict_gate_text(&r->image[i].gate, fit));
    }
    if (found > SHOWN)
        wrap_line(stderr, "", "and %s more", COUNT_TEXT(found - SHOWN));
}

static void
report_doubts(const struct results *r)
{
    char n[FORMAT_THINGS];
    struct wrap w = {.out = stderr};
    bool first = true;
    unsigned k;
    size_t i;

    if (r->doubtful == 0)
        return;
    wrap_put(&w, "", "         %s scored although doubtful:", format_things(r->doubtful, "image", n));
    for (k = 0; k < DOUBTS; k++) {
        uint64_t count = 0;

        for (i = 0; i < r->count; i++)
            count += r->image[i].refused == CHEX_OK && (r->image[i].doubts >> k & 1);
        if (count > 0) {
            wrap_put(&w, first ? " " : ", ", "%s %s", format_count(count, n), doubt_names[k]);
            first = false;
        }
    }
    wrap_end(&w);
}

static void
report_maps(const struct prediction *p)
{
    char n[FORMAT_THINGS], m[FORMAT_THINGS], out[PRINTABLE_TEXT];
    const struct map_writer *w = p->maps;

    if (!w)
        return;
    wrap_line(stderr, "maps", "%s of %s      %s/" PREDICT_MAPS, format_things(w->pictures, "picture", n),
              format_things(w->images, "image", m), printable_text(relative_path(p->options->out), out));
    if (w->check.images > 0 && !isnan(w->check.correlation))
        wrap_line(stderr, "", "rank correlation with the maps of random weights: %.2f, %s", w->check.correlation,
                  format_things(w->check.images, "image", n));
}

void
report_done(const struct prediction *p, const struct cli_common *common)
{
    const struct results *r = p->results;
    double seconds = r->seconds > 0.001 ? r->seconds : 0.001;
    uint64_t scored = r->count - r->refused, tenths = (uint64_t)(seconds * 10 + 0.5);
    char n[FORMAT_THINGS], out[PRINTABLE_TEXT];
    struct wrap w = {.out = stderr};

    wrap_put(&w, "", "done     %s in %s.%u s", format_things(scored, "image", n), COUNT_TEXT(tenths / 10),
             (unsigned)(tenths % 10));
    wrap_put(&w, ", ", "%s img/s", COUNT_TEXT((double)scored / seconds + 0.5));
    if (p->options->out)
        wrap_put(&w, "      ", "%s/" PREDICT_CSV, printable_text(relative_path(p->options->out), out));
    wrap_end(&w);
    report_refused(p, common);
    report_doubts(r);
    report_orientation(p);
    report_unreadable(&p->images->source);
    report_maps(p);
    if (p->boxes)
        boxes_report(p->boxes);
    wrap_line(stderr, "", "research use only, not for diagnosis");
}
