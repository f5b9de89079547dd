/*
 * train_report.c - see train_report.h; the document of --json is in train_json.c
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "train_report.h"

#include "dataset.h"
#include "roc_plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SMOOTHING 0.98

static const char notice[] = "research use only, not for diagnosis";

static void
on_watch_warning(void *context, const char *text)
{
    train_report_warn(context, NULL, text);
}

void
train_report_init(struct train_report *r, const struct train_cli *cli, const struct cli_common *common)
{
    *r = (struct train_report){.cli = cli, .common = common};
    meter_init(&r->meter, common);
    r->watch = (struct train_watch){.cli = cli, .warn = on_watch_warning, .context = r};
}

void
train_report_release(struct train_report *r)
{
    meter_release(&r->meter);
}

/* ---- before the first step --------------------------------------------------------------------------------------- */

static void
print_split(const struct trainer_facts *f, const char *role, int split)
{
    const struct chex_split_info *s = split >= 0 ? chex_dataset_split(f->ds, (unsigned)split) : NULL;
    char n[PROGRESS_TEXT];

    if (s)
        fprintf(stderr, "%s%s%s %s (%.8s)", *role ? ", " : "", strcmp(role, "as") == 0 ? "for training " : "", s->name,
                format_count(s->image_count, n), s->members_sha256);
}

static void
print_data(const struct trainer_facts *f, bool evaluate_only)
{
    fprintf(stderr, "data     %s, split %s: ", chex_dataset_info(f->ds)->id, f->ds->manifest.split_rule);
    if (!evaluate_only) {
        print_split(f, "", f->train);
        print_split(f, "val", f->validation);
    }
    print_split(f, evaluate_only ? "" : "test", f->test);
    fprintf(stderr, "\n");
    if (evaluate_only)
        return;
    if (strcmp(chex_dataset_split(f->ds, (unsigned)f->train)->name, "train") != 0)
        fprintf(stderr, "         no split train: trained on all images\n");
    if (f->validation < 0)
        fprintf(stderr,
                "         no split val: the learning rate follows the training loss, the last model is the best\n");
    else if (f->select == SELECT_LOSS)
        fprintf(stderr, "         the best model is that with the lowest validation loss\n");
}

static void
print_memory(const struct trainer_facts *f)
{
    char all[PROGRESS_TEXT], there[PROGRESS_TEXT];

    fprintf(stderr, "memory   %s", format_bytes(f->memory_all, all));
    if (f->memory_there > 0)
        fprintf(stderr, " of %s", format_bytes(f->memory_there, there));
    fprintf(stderr, " a rank: parameters %s", format_bytes(f->memory.parameters, all));
    if (f->memory.optimizer > 0)
        fprintf(stderr, ", optimizer %s", format_bytes(f->memory.optimizer, all));
    fprintf(stderr, ", activations %s, workspace %s\n", format_bytes(f->memory.activations, all),
            format_bytes(f->memory.workspace, there));
}

static void
print_batches(const struct trainer_facts *f, const struct trainer_options *o)
{
    char global[PROGRESS_TEXT], steps[PROGRESS_TEXT];

    fprintf(stderr, "batch    %s images a step", format_count(f->global_batch, global));
    if (f->ranks > 1 || f->micro_batches > 1)
        fprintf(stderr, " = %d rank%s x %u micro-batch%s of %u", f->ranks, f->ranks == 1 ? "" : "s", f->micro_batches,
                f->micro_batches == 1 ? "" : "es", f->micro_batch);
    fprintf(stderr, ", %s steps an epoch, %u epoch%s\n", format_count(f->steps, steps), o->epochs,
            o->epochs == 1 ? "" : "s");
}

void
train_report_plan(const struct train_report *r, const struct trainer *t)
{
    const struct trainer_options *o = trainer_options(t);
    struct trainer_facts f;

    if (r->common->quiet)
        return;
    trainer_facts(t, &f);
    fprintf(stderr, "%s %s   %d rank%s, %s, %u thread%s%s\n", train_program.name, chex_version(), f.ranks,
            f.ranks == 1 ? "" : "s", f.device, o->threads, o->threads == 1 ? "" : "s",
            strcmp(o->device, "auto") == 0 && strncmp(f.backend->name, "cuda", 4) != 0 ? " (no GPU in use)" : "");
    print_data(&f, o->evaluate_only);
    fprintf(stderr, "model    %s, %.2f M parameters, input %u x %u of images of %u x %u\n", f.graph->model,
            (double)f.graph->param_floats / 1e6, f.side, f.side, f.source, f.source);
    print_memory(&f);
    if (!o->evaluate_only)
        print_batches(&f, o);
    if (!o->evaluate_only)
        train_report_reading(&f, o);
}

/* ---- the start --------------------------------------------------------------------------------------------------- */

static void
begin_progress(struct train_report *r, const struct trainer *t)
{
    const struct checkpoint_state *state = trainer_state(t);
    struct trainer_facts f;
    uint64_t epoch;

    trainer_facts(t, &f);
    if (f.train < 0)
        return;
    epoch = chex_dataset_split(f.ds, (unsigned)f.train)->image_count;
    progress_start(&r->images, epoch * trainer_options(t)->epochs);
    r->images.first = r->images.sampled_done = epoch * state->epoch + state->batches * f.global_batch;
    r->images.done = r->images.first;
}

void
train_report_started(void *context, const struct trainer *t, const struct trainer_start *start)
{
    struct train_report *r = context;
    const struct trainer_options *o = trainer_options(t);
    const struct checkpoint_state *state = trainer_state(t);
    struct trainer_facts f;

    trainer_facts(t, &f);
    r->started = true;
    r->resumed = start->resumed;
    r->complete = start->complete;
    snprintf(r->from, sizeof(r->from), "%s", start->from);
    begin_progress(r, t);
    train_watch_start(&r->watch, t, start);
    if (r->common->quiet)
        return;
    if (start->resumed) {
        fprintf(stderr, "resume   %s: %llu steps, %u of %u epochs%s\n", start->from, (unsigned long long)state->step,
                state->epoch, o->epochs, start->complete ? ": complete" : "");
        if (o->init)
            fprintf(stderr, "         --init is not used: the run goes on (--resume none begins anew)\n");
        return;
    }
    fprintf(stderr, "init     %s", start->from);
    if (start->weights.wanted > 0)
        fprintf(stderr, ", %zu of %zu tensors%s", start->weights.found, start->weights.wanted,
                start->weights.head_left ? ", the last layer random" : "");
    else
        fprintf(stderr, " (seed %llu)", (unsigned long long)o->seed);
    fprintf(stderr, "\n");
    if (start->weights.unused > 0)
        fprintf(stderr, "         %zu tensors of the file are not used\n", start->weights.unused);
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static void
smooth(struct train_report *r, const struct trainer_step *step)
{
    r->loss = SMOOTHING * r->loss + (1 - SMOOTHING) * step->loss;
    r->loss_weight = SMOOTHING * r->loss_weight + (1 - SMOOTHING);
    r->waited += step->times.seconds[PART_WAIT];
    r->worked += step->seconds;
}

static double
percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

/* "1,234", or "0.7" where a whole number says too little.  Returns out. */
static char *
format_rate(double rate, char out[PROGRESS_TEXT])
{
    if (rate >= 10)
        return format_count((uint64_t)(rate + 0.5), out);
    snprintf(out, PROGRESS_TEXT, "%.1f", rate);
    return out;
}

static void
format_left(double images, double rate, char out[PROGRESS_TEXT])
{
    if (rate > 0)
        format_seconds(images / rate, out);
    else
        snprintf(out, PROGRESS_TEXT, "-:--");
}

void
train_report_part(void *context, enum step_part part, double begin, double end)
{
    struct train_report *r = context;

    trace_part(r->watch.trace, part, begin, end);
}

void
train_report_stepped(void *context, const struct trainer *t, const struct trainer_step *step)
{
    struct train_report *r = context;
    const struct checkpoint_state *state = trainer_state(t);
    char rate[PROGRESS_TEXT], epoch_left[PROGRESS_TEXT], run_left[PROGRESS_TEXT], text[256];
    struct trainer_facts f;

    smooth(r, step);
    train_watch_step(&r->watch, t, step);
    progress_update(&r->images, r->images.done + step->images);
    if (!meter_due(&r->meter))
        return;
    trainer_facts(t, &f);
    format_left((double)(f.steps - state->batches) * (double)f.global_batch, r->images.rate, epoch_left);
    format_left((double)(r->images.total > r->images.done ? r->images.total - r->images.done : 0), r->images.rate,
                run_left);
    snprintf(text, sizeof(text),
             "ep %u/%u step %llu/%llu  loss %.4f  %s img/s  data wait %.1f %%  epoch %s left, run %s", state->epoch + 1,
             trainer_options(t)->epochs, (unsigned long long)state->batches, (unsigned long long)f.steps,
             r->loss / r->loss_weight, format_rate(r->images.rate, rate), percent(r->waited, r->worked), epoch_left,
             run_left);
    meter_tick(&r->meter, text);
    r->waited = r->worked = 0;
}

static void
print_times(struct train_report *r, const struct trainer_epoch *e)
{
    char text[256] = "";
    size_t used = 0;
    int i;

    for (i = 0; i < PART_COUNT; i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s %.1f %%", i > 0 ? "  " : "", step_part_name[i],
                                 percent(e->times.seconds[i], e->seconds));
    meter_print(&r->meter, "time     %s", text);
}

void
train_report_epoch(void *context, const struct trainer *t, const struct trainer_epoch *e)
{
    struct train_report *r = context;
    char seconds[PROGRESS_TEXT], rate[PROGRESS_TEXT];

    train_watch_epoch(&r->watch, t, e);
    if (r->common->quiet)
        return;
    meter_print(&r->meter, "ep %u/%u   loss %.4f  lr %.3g  %s img/s  data wait %.1f %%  in %s", e->epoch,
                trainer_options(t)->epochs, e->loss, e->rate,
                format_rate(e->seconds > 0 ? (double)e->images / e->seconds : 0, rate),
                percent(e->times.seconds[PART_WAIT], e->seconds), format_seconds(e->seconds, seconds));
    if (r->common->verbose > 0) {
        print_times(r, e);
        meter_print(&r->meter, "order    %s", e->order);
    }
    if (e->skipped > 0)
        meter_print(&r->meter, "         %llu damaged records replaced so far", (unsigned long long)e->skipped);
}

void
train_report_saved(void *context, const struct trainer *t, const char *name, double seconds)
{
    struct train_report *r = context;

    train_watch_note(&r->watch, t, "checkpoint", name);
    if (r->common->verbose > 0 && !r->common->quiet)
        meter_print(&r->meter, "saved    %s in %.2f s", name, seconds);
}

void
train_report_note(void *context, const struct trainer *t, const char *text)
{
    struct train_report *r = context;

    train_watch_note(&r->watch, t, "note", text);
    if (!r->common->quiet)
        meter_print(&r->meter, "note     %s", text);
}

void
train_report_warn(void *context, const struct trainer *t, const char *text)
{
    struct train_report *r = context;

    if (t)
        train_watch_note(&r->watch, t, "warning", text);
    if (!r->common->quiet)
        meter_print(&r->meter, "%s: warning: %s", train_program.name, text);
}

/* ---- evaluations ------------------------------------------------------------------------------------------------- */

void
train_report_evaluating(void *context, const struct trainer *t, uint64_t done, uint64_t of)
{
    struct train_report *r = context;
    char text[64];

    (void)t;
    if (!meter_due(&r->meter))
        return;
    snprintf(text, sizeof(text), "evaluate %.0f %%", percent((double)done, (double)of));
    meter_tick(&r->meter, text);
}

/* "0.812 [0.806, 0.818]" or "n/a" */
static const char *
format_auroc(double value, const struct interval *i, char *out, size_t size)
{
    if (isnan(value))
        snprintf(out, size, "n/a");
    else if (isnan(i->low))
        snprintf(out, size, "%.3f", value);
    else
        snprintf(out, size, "%.3f [%.3f, %.3f]", value, i->low, i->high);
    return out;
}

static void
print_findings(struct train_report *r, const struct metrics *m)
{
    char auroc[64], auprc[64];
    unsigned i;

    meter_print(&r->meter, "         %-20s %9s   %-22s %s", "finding", "positives", "AUROC", "AUPRC");
    for (i = 0; i < m->outputs; i++) {
        const struct finding_metrics *f = &m->finding[i];

        meter_print(&r->meter, "         %-20s %9llu   %-22s %s", chex_finding_name(i),
                    (unsigned long long)f->positives,
                    isnan(f->auroc) && f->positives == 0 ? "n/a (0 positives)"
                    : isnan(f->auroc)                    ? "n/a (0 negatives)"
                                                         : format_auroc(f->auroc, &f->auroc_95, auroc, sizeof(auroc)),
                    format_auroc(f->auprc, &f->auprc_95, auprc, sizeof(auprc)));
    }
}

static void
keep_judgement(struct train_judgement *j, const struct trainer_verdict *v)
{
    *j = (struct train_judgement){.there = true,
                                  .sha256 = v->sha256,
                                  .loss = v->evaluation->loss,
                                  .seconds = v->evaluation->seconds,
                                  .step = v->step,
                                  .metrics = v->evaluation->metrics};
    snprintf(j->split, sizeof(j->split), "%s", v->split);
}

/* auroc.svg is of the best model so far, and at the end that of the final evaluation. */
static void
draw(struct train_report *r, const struct trainer *t, const struct trainer_verdict *v)
{
    struct trainer_facts f;
    struct chex_error err;

    trainer_facts(t, &f);
    if (f.folder && roc_plot_write(v->evaluation, v->source, f.folder, "auroc.svg", &err) != CHEX_OK)
        train_report_warn(r, t, err.text);
}

void
train_report_evaluated(void *context, const struct trainer *t, const struct trainer_verdict *v)
{
    struct train_report *r = context;
    const struct metrics *m = &v->evaluation->metrics;
    const struct checkpoint_state *state = trainer_state(t);
    char auroc[64], seconds[PROGRESS_TEXT];

    keep_judgement(v->final ? &r->final : &r->validation, v);
    if (v->best && !v->final)
        r->best = r->validation;
    train_watch_evaluation(&r->watch, t, v);
    if (v->final || v->best)
        draw(r, t, v);
    if (r->common->quiet)
        return;
    format_auroc(m->mean_auroc, &m->mean_auroc_95, auroc, sizeof(auroc));
    if (!v->final) {
        struct trainer_facts f;

        trainer_facts(t, &f);
        meter_print(&r->meter, "%s %-4u loss %.4f  AUROC %s over %u findings   best %s%.3f @%u  in %s", v->split,
                    state->epoch, v->evaluation->loss, auroc, m->defined, f.select == SELECT_LOSS ? "loss " : "",
                    state->best, state->epoch - state->bad_epochs, format_seconds(v->evaluation->seconds, seconds));
        return;
    }
    meter_print(&r->meter, "%-8s %s, %llu images of %u patients, loss %.4f, in %s", v->split, v->weights,
                (unsigned long long)m->images, m->patients, v->evaluation->loss,
                format_seconds(v->evaluation->seconds, seconds));
    print_findings(r, m);
    if (v->evaluation->skipped_count > 0)
        meter_print(&r->meter, "         %zu damaged records left out", v->evaluation->skipped_count);
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

static void
print_sum(const struct trainer *t)
{
    const struct trainer_result *result = trainer_result(t);
    char steps[PROGRESS_TEXT], images[PROGRESS_TEXT], seconds[PROGRESS_TEXT], rate[PROGRESS_TEXT];

    if (result->steps == 0)
        return;
    fprintf(stderr, "         %s steps, %s images in %s (%s img/s)%s\n", format_count(result->steps, steps),
            format_count(result->images, images), format_seconds(result->seconds, seconds),
            format_rate(result->seconds > 0 ? (double)result->images / result->seconds : 0, rate),
            result->early ? ", ended early: no better model" : "");
}

static void
print_judgement(const struct train_report *r, const struct trainer *t, const struct train_judgement *j)
{
    const char *run = trainer_options(t)->run;
    char auroc[64];
    struct trainer_facts f;

    trainer_facts(t, &f);
    fprintf(stderr, "%s (%s, %.8s): AUROC %s over %u findings", j->split, f.ds->manifest.split_rule, j->sha256,
            format_auroc(j->metrics.mean_auroc, &j->metrics.mean_auroc_95, auroc, sizeof(auroc)), j->metrics.defined);
    if (run)
        fprintf(stderr, "   %s/" TRAINER_BEST "   %s/auroc.svg", run, run);
    fprintf(stderr, "\n");
    (void)r;
}

/* To judge with more views: the split that was judged, or what there is; ten crops are one where all is seen anyway. */
static void
print_next(const struct train_report *r, const struct trainer *t)
{
    const struct trainer_options *o = &r->cli->train;
    struct trainer_facts f;

    trainer_facts(t, &f);
    fprintf(stderr, "next     chex-train -d %s -o %s --eval-only --split %s --tta %s\n", o->data, o->run,
            r->final.there        ? r->final.split
            : r->validation.there ? r->validation.split
                                  : chex_dataset_split(f.ds, (unsigned)f.train)->name,
            f.side < f.source ? "tencrop" : "flip");
}

void
train_report_end(const struct train_report *r, const struct trainer *t, const struct chex_error *err)
{
    const struct trainer_options *o = &r->cli->train;

    if (r->common->quiet || !t)
        return;
    if (err) {
        if (err->status == CHEX_ERR_STOPPED || err->status == CHEX_ERR_LOST)
            fprintf(stderr, "next     the same command again goes on from %s\n",
                    trainer_result(t)->last[0] ? trainer_result(t)->last : "the start");
        return;
    }
    fprintf(stderr, "done     ");
    if (r->final.there)
        print_judgement(r, t, &r->final);
    else if (r->best.there) /* not the last one: what is named beside it is the best model */
        print_judgement(r, t, &r->best);
    else
        fprintf(stderr, "%s/" TRAINER_BEST "\n", o->run);
    print_sum(t);
    fprintf(stderr, "         %s\n", notice);
    if (o->run && !o->evaluate_only)
        print_next(r, t);
}

static size_t
add_result(const struct train_judgement *j, struct run_result *out)
{
    if (j->there)
        *out = (struct run_result){
            .split = j->split, .sha256 = j->sha256, .weights = TRAINER_BEST, .step = j->step, .metrics = &j->metrics};
    return j->there;
}

void
train_report_close(struct train_report *r, const struct trainer *t, const struct chex_error *err, int code)
{
    struct run_result result[2];
    size_t results = add_result(&r->best, result);

    results += add_result(&r->final, result + results);
    train_watch_end(&r->watch, t, result, results, code, err ? err->text : NULL);
}
