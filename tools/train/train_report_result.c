/*
 * train_report_result.c - prints evaluations and the end of a run; see train_report.h.  train_json.c writes the
 * document of --json.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "train/train_report.h"

#include "common/shell_word.h"
#include "common/wrap.h"
#include "dataset/dataset.h"
#include "train/roc_plot.h"
#include "train/train_audit.h"
#include "train/train_storage.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define PICTURE_NAME  48
#define MEASURED_TEXT 64
#define BEST          48
#define NAME_WIDTH    20 /* least width of the column of findings */

static const char notice[] = "research use only, not for diagnosis";

/* ---- evaluations ------------------------------------------------------------------------------------------------- */

/* Returns "0.812 [0.806, 0.818]" or "n/a". */
static const char *
format_measured(const struct measured *m, char out[MEASURED_TEXT])
{
    if (isnan(m->value))
        snprintf(out, MEASURED_TEXT, "n/a");
    else if (isnan(m->low))
        snprintf(out, MEASURED_TEXT, "%.3f", m->value);
    else
        snprintf(out, MEASURED_TEXT, "%.3f [%.3f, %.3f]", m->value, m->low, m->high);
    return out;
}

/* Writes column k; all columns except the last are padded. */
static size_t
put_cell(char *out, unsigned k, const char *text)
{
    return (size_t)snprintf(out, MEASURED_TEXT, "%-*.*s", k + 1 < METRIC_COUNT ? 23 : 0, MEASURED_TEXT - 1, text);
}

/* Returns the note that follows the numbers of a finding. */
static const char *
finding_mark(const struct metrics *m)
{
    if (m->short_run[0])
        return m->leaky ? "  leaky, short run" : "  short run";
    return m->leaky ? "  leaky" : "";
}

static void
print_findings(struct train_report *r, const struct evaluation *e)
{
    const struct metrics *m = &e->metrics;
    const char *mark = finding_mark(m);
    int widest = NAME_WIDTH;
    char cells[METRIC_COUNT * MEASURED_TEXT], text[MEASURED_TEXT], positives[FORMAT_TEXT];
    size_t used = 0;
    unsigned i, k;

    for (k = 0; k < METRIC_COUNT; k++)
        used += put_cell(cells + used, k, metric_info[k].title);
    for (i = 0; i < m->outputs; i++)
        widest = (int)strlen(e->findings[i]) > widest ? (int)strlen(e->findings[i]) : widest;
    progress_line_print(&r->line, "         %-*s %9s   %s", widest, "finding", "positives", cells);
    for (i = 0; i < m->outputs; i++) {
        const struct finding_metrics *f = &m->finding[i];

        for (k = 0, used = 0; k < METRIC_COUNT; k++) {
            format_measured(&f->metric[k], text);
            if (k == METRIC_AUROC && isnan(f->metric[k].value))
                snprintf(text, sizeof(text), "n/a (0 %s)", f->positives == 0 ? "positives" : "negatives");
            else if (m->replicates > 0 && !isnan(f->metric[k].value) && f->positive_patients < METRICS_FEWEST_PATIENTS)
                snprintf(text, sizeof(text), "%.3f [too few]", f->metric[k].value);
            used += put_cell(cells + used, k, text);
        }
        progress_line_print(&r->line, "         %-*s %9s   %s%s", widest, e->findings[i],
                            format_count(f->positives, positives), cells, mark);
    }
}

static void
keep_evaluation(struct train_evaluation *j, const struct trainer_evaluation_result *v)
{
    *j = (struct train_evaluation){.there = true,
                                   .sha256 = v->sha256,
                                   .findings = v->evaluation->findings,
                                   .loss = v->evaluation->loss,
                                   .seconds = v->evaluation->seconds,
                                   .step = v->step,
                                   .metrics = v->evaluation->metrics};
    snprintf(j->split, sizeof(j->split), "%s", v->split);
}

/* The best model so far has auroc.svg.  A final evaluation, or --eval-only, has a picture for each split. */
static char *
picture_name(const char *split, bool final, char out[PICTURE_NAME])
{
    snprintf(out, PICTURE_NAME, "auroc%s%s.svg", final ? "-" : "", final ? split : "");
    return out;
}

enum chex_status
train_report_draw(const struct folder *run, const struct trainer_evaluation_result *v, struct chex_error *err)
{
    char name[PICTURE_NAME];

    return roc_plot_write(v->evaluation, v->source, run, picture_name(v->split, v->final, name), err);
}

/* Warns of outputs that are not finite; otherwise the report would only show a NaN loss of 0 images. */
static void
warn_of_output(struct train_report *r, const struct trainer *t, const struct trainer_evaluation_result *v)
{
    char images[FORMAT_THINGS], text[256];

    if (v->evaluation->not_finite == 0)
        return;
    snprintf(text, sizeof(text), "the network's output is not finite for %s of %.100s: there are no metrics",
             format_things(v->evaluation->not_finite, "image", images), v->split);
    train_report_warn(r, t, text);
}

/* Returns the best value of the run and its epoch, or "none". */
static const char *
best_text(const struct checkpoint_state *s, enum select_metric select, char out[BEST])
{
    if (isnan(s->best))
        return "none";
    snprintf(out, BEST, "%s%.3f @%u", select == SELECT_LOSS ? "loss " : "", s->best, s->epoch - s->bad_epochs);
    return out;
}

void
train_report_evaluated(void *context, const struct trainer *t, const struct trainer_evaluation_result *v)
{
    struct train_report *r = context;
    const struct metrics *m = &v->evaluation->metrics;
    const struct checkpoint_state *state = trainer_state(t);
    char auroc[MEASURED_TEXT], seconds[FORMAT_TEXT], findings[FORMAT_THINGS], images[FORMAT_THINGS],
        patients[FORMAT_THINGS], mark[TRAIN_MARK], best[BEST];

    keep_evaluation(v->final ? &r->final : &r->validation, v);
    if (v->best && !v->final)
        r->best = r->validation;
    train_watch_evaluation(&r->watch, t, v);
    warn_of_output(r, t, v);
    if (r->common->quiet)
        return;
    format_measured(&m->mean[METRIC_AUROC], auroc);
    if (!v->final) {
        struct trainer_facts f;

        trainer_facts(t, &f);
        progress_line_print(&r->line, "%s %-4u %sloss %.4f  AUROC %s over %s   best %s  in %s", v->split, state->epoch,
                            train_report_mark(t, mark), v->evaluation->loss, auroc,
                            format_things(m->defined, "finding", findings), best_text(state, f.select, best),
                            format_seconds(v->evaluation->seconds, seconds));
        return;
    }
    progress_line_print(&r->line, "%-8s %s%s, %s of %s, loss %.4f, in %s", v->split, train_report_mark(t, mark),
                        v->weights, format_things(m->images, "image", images),
                        format_things(m->patients, "patient", patients), v->evaluation->loss,
                        format_seconds(v->evaluation->seconds, seconds));
    print_findings(r, v->evaluation);
    if (v->evaluation->skipped_count > 0)
        progress_line_print(&r->line, "         %s left out",
                            format_things(v->evaluation->skipped_count, "damaged record", images));
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

static void
print_sum(const struct trainer *t)
{
    const struct trainer_result *result = trainer_result(t);
    char steps[FORMAT_THINGS], images[FORMAT_THINGS], seconds[FORMAT_TEXT], rate[FORMAT_TEXT];

    if (result->steps == 0)
        return;
    wrap_line(stderr, "", "%s, %s in %s (%s img/s)%s", format_things(result->steps, "step", steps),
              format_things(result->images, "image", images), format_seconds(result->seconds, seconds),
              train_report_rate(result->seconds > 0 ? (double)result->images / result->seconds : 0, rate),
              result->early ? ", ended early: no better model" : "");
}

static void
print_evaluation(const struct train_report *r, const struct trainer *t, const struct train_evaluation *j)
{
    const char *run = trainer_options(t)->run;
    char auroc[MEASURED_TEXT], findings[FORMAT_THINGS], name[PICTURE_NAME], path[PRINTABLE_TEXT], mark[TRAIN_MARK];
    struct wrap w = {.out = stderr};
    struct trainer_facts f;

    trainer_facts(t, &f);
    wrap_put(&w, "", "done     %s%s (%s, %.8s):", train_report_mark(t, mark), j->split, f.ds->manifest.split_rule,
             j->sha256);
    wrap_put(&w, " ", "AUROC %s", format_measured(&j->metrics.mean[METRIC_AUROC], auroc));
    wrap_put(&w, " ", "over %s", format_things(j->metrics.defined, "finding", findings));
    if (run && !trainer_options(t)->init)
        wrap_put(&w, "   ", "%s/" TRAINER_BEST, printable_text(relative_path(run), path));
    if (run)
        wrap_put(&w, "   ", "%s/%s", printable_text(relative_path(run), path),
                 picture_name(j->split, j == &r->final, name));
    wrap_end(&w);
}

/* A short run has ended before its epochs. */
static void
print_cut(const struct trainer *t)
{
    char steps[FORMAT_THINGS];

    wrap_line(stderr, "done", "%s (--max-steps): %s; a larger --max-steps, or none, continues",
              format_things(trainer_state(t)->step, "step", steps), trainer_result(t)->last);
}

/*
 * Suggests an evaluation with more views, of the split that was evaluated last.  Ten crops need images that are larger
 * than the network's input; otherwise suggest flips.
 */
static void
print_next(const struct train_report *r, const struct trainer *t)
{
    const struct trainer_options *o = &r->cli->train;
    struct wrap w = {.out = stderr};
    char word[SHELL_WORD];
    struct trainer_facts f;

    trainer_facts(t, &f);
    wrap_command(&w, "next     chex-train");
    wrap_put(&w, " ", "-d %s", shell_word(relative_path(o->data), word));
    wrap_put(&w, " ", "-o %s", shell_word(relative_path(o->run), word));
    wrap_put(&w, " ", "--eval-only");
    wrap_put(&w, " ", "--split %s",
             r->final.there        ? r->final.split
             : r->validation.there ? r->validation.split
                                   : chex_dataset_split(f.ds, (unsigned)f.train)->name);
    wrap_put(&w, " ", "--tta %s", f.side < f.source ? "tencrop" : "flip");
    wrap_end(&w);
}

/* Suggests how to find and repair a damaged record or shard. */
static void
print_repair(const struct train_report *r, const struct trainer *t)
{
    const struct trainer_options *o = &r->cli->train;
    const char *last = trainer_result(t)->last;
    char data[SHELL_WORD];

    fprintf(stderr, "next     chex-inspect check --full %s\n", shell_word(relative_path(o->data), data));
    if (o->evaluate_only || o->storage_check)
        wrap_line(stderr, "", "names all that is damaged; --on-bad-record skip leaves it out");
    else
        wrap_line(stderr, "",
                  "names all that is damaged; repaired, or with --on-bad-record skip, the same command resumes from %s",
                  last[0] ? last : "the start");
}

#define DAMAGE 120

/*
 * Explains exit status 1 of a run without an error.  Damaged records that only earlier starts met are counted, not
 * listed.
 */
static const char *
describe_damage(const struct trainer *t, char out[DAMAGE])
{
    const struct trainer_result *result = trainer_result(t);
    char things[FORMAT_THINGS];

    if (result->damaged > 0)
        snprintf(out, DAMAGE, "%s skipped", format_things(result->damaged, "damaged record", things));
    else
        snprintf(out, DAMAGE, "damaged records skipped %s before this start",
                 format_things(result->skipped, "time", things));
    return out;
}

static void
print_done(const struct train_report *r, const struct trainer *t)
{
    if (trainer_result(t)->cut)
        print_cut(t);
    else if (r->final.there)
        print_evaluation(r, t, &r->final);
    else if (r->best.there) /* the best model, not the last one: the line above names its file */
        print_evaluation(r, t, &r->best);
    else
        wrap_line(stderr, "done", "%s/" TRAINER_BEST, relative_path(trainer_options(t)->run));
    print_sum(t);
}

void
train_report_end(const struct train_report *r, const struct trainer *t, const struct chex_error *err)
{
    const struct trainer_options *o = &r->cli->train;
    char damage[DAMAGE], data[SHELL_WORD];
    struct wrap w = {.out = stderr};

    if (!t)
        return;
    if (r->storage.ranks > 0 && !r->common->quiet)
        train_storage_report(r, t);
    if (o->audit) {
        train_audit_end(r, t);
        return;
    }
    if (r->common->quiet) { /* with -q, only explain an exit status that no error explains */
        if (!err && trainer_result(t)->skipped > 0)
            fprintf(stderr, "%s: %s\n", train_program.name, describe_damage(t, damage));
        return;
    }
    if (err) {
        if (cli_exit_of(err->status) == EXIT_DATA)
            print_repair(r, t);
        if (!o->storage_check && (err->status == CHEX_ERR_STOPPED || err->status == CHEX_ERR_LOST))
            wrap_line(stderr, "next", "the same command again resumes from %s",
                      trainer_result(t)->last[0] ? trainer_result(t)->last : "the start");
        return;
    }
    if (!o->storage_check)
        print_done(r, t);
    if (trainer_result(t)->skipped > 0) {
        wrap_put(&w, "", "         %s:", describe_damage(t, damage));
        wrap_put(&w, " ", "chex-inspect check --full %s", shell_word(relative_path(o->data), data));
        wrap_put(&w, " ", "names all");
        wrap_end(&w);
    }
    if (!o->storage_check)
        fprintf(stderr, "         %s\n", notice);
    if (o->run && !o->evaluate_only && !trainer_result(t)->cut)
        print_next(r, t);
}

static size_t
add_result(const struct train_evaluation *j, struct run_result *out)
{
    if (j->there)
        *out = (struct run_result){.split = j->split,
                                   .sha256 = j->sha256,
                                   .weights = TRAINER_BEST,
                                   .step = j->step,
                                   .metrics = &j->metrics,
                                   .findings = j->findings};
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
