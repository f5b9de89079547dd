/*
 * train_report.c - reports the start, steps and epochs; train_report_plan.c the plan before them, and
 * train_report_result.c the results; see train_report.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "train/train_report.h"

#include "common/wrap.h"
#include "dataset/dataset.h"
#include "train/train_audit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SMOOTHING 0.98
#define NOTE      "note     "

static void
on_watch_warning(void *context, const char *text)
{
    train_report_warn(context, NULL, text);
}

void
train_report_init(struct train_report *r, const struct train_cli *cli, const struct cli_common *common)
{
    *r = (struct train_report){.cli = cli, .common = common, .begun = common->quiet};
    progress_line_init(&r->line, common);
    r->watch = (struct train_watch){.cli = cli, .warn = on_watch_warning, .context = r};
}

void
train_report_release(struct train_report *r)
{
    progress_line_release(&r->line);
    buffer_release(&r->held);
    train_audit_release(&r->audit);
}

/* ---- before the first step --------------------------------------------------------------------------------------- */

/* Prints a held line, "note     TEXT" or "chex-train: warning: TEXT". */
static void
print_line(struct train_report *r, const char *line)
{
    if (strncmp(line, NOTE, strlen(NOTE)) == 0)
        progress_line_print(&r->line, "%s", line);
    else
        progress_line_warn(&r->line, "%s", line);
}

static void
print_held(struct train_report *r)
{
    size_t at;

    for (at = 0; at < r->held.size; at += strlen((const char *)r->held.data + at) + 1)
        print_line(r, (const char *)r->held.data + at);
    r->held.size = 0;
}

/* The plan is printed first; until then, hold the notes about its creation. */
static void
say(struct train_report *r, const char *line)
{
    if (r->begun)
        print_line(r, line);
    else
        (void)buffer_append(&r->held, line, strlen(line) + 1, NULL);
}

void
train_report_begin(struct train_report *r)
{
    if (!r->begun && r->held.size > 0)
        progress_line_begin_log(r->common, train_program.name);
    r->begun = true;
    print_held(r);
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
    epoch = f.images;
    progress_start(&r->images, epoch * trainer_options(t)->epochs);
    r->images.first = r->images.sampled_done = epoch * state->epoch + state->batches * f.global_batch;
    r->images.done = r->images.first;
}

static void
print_weights(const struct trainer *t, const char *from, const struct weights_report *w)
{
    char tensors[FORMAT_THINGS], found[FORMAT_TEXT], text[PRINTABLE_TEXT];
    struct wrap line = {.out = stderr};

    wrap_put(&line, "", "init     %s", printable_text(from, text));
    if (w->wanted > 0)
        wrap_put(&line, ", ", "%s of %s", format_count(w->found, found), format_things(w->wanted, "tensor", tensors));
    else
        wrap_put(&line, " ", "(seed %llu)", (unsigned long long)trainer_options(t)->seed);
    if (w->head_left)
        wrap_put(&line, ", ", "the last layer random");
    if (w->leaky)
        wrap_put(&line, ", ", "leaky");
    wrap_end(&line);
    if (w->unused > 0)
        fprintf(stderr, "         %s of the file %s not used\n", format_things(w->unused, "tensor", tensors),
                w->unused == 1 ? "is" : "are");
}

static void
print_short(const struct trainer *t)
{
    const char *text = trainer_state(t)->short_run;
    char images[FORMAT_THINGS];
    struct wrap w = {.out = stderr};
    struct trainer_facts f;

    if (!text[0])
        return;
    trainer_facts(t, &f);
    wrap_put(&w, "", "         short run: %s", text);
    if (f.images > 0) /* not with --eval-only */
        wrap_put(&w, " ", "(%s an epoch)", format_things(f.images, "image", images));
    wrap_put(&w, ": ", "every number and figure is marked short run");
    wrap_end(&w);
}

/* The learning rate and the warm-up, where they follow from the number of ranks or of images. */
static void
print_rate(const struct trainer *t)
{
    const struct trainer_options *o = trainer_options(t);
    const struct schedule_options *schedule = &trainer_state(t)->schedule.options;
    char steps[FORMAT_THINGS], epochs[FORMAT_THINGS], ranks[FORMAT_THINGS];
    struct wrap w = {.out = stderr};
    struct trainer_facts f;

    if (o->evaluate_only || (o->rate_scale == RATE_GIVEN && o->warmup_epochs == 0))
        return;
    trainer_facts(t, &f);
    wrap_put(&w, "", "lr       %.6g", schedule->base);
    if (o->rate_scale == RATE_LINEAR)
        wrap_put(&w, " = ", "%.6g x %s", o->schedule.base, format_things((unsigned)f.ranks, "rank", ranks));
    if (o->warmup_epochs > 0)
        wrap_put(&w, ", ", "warm-up %s (%s)", format_things(schedule->warmup, "step", steps),
                 format_things(o->warmup_epochs, "epoch", epochs));
    else if (schedule->warmup > 0)
        wrap_put(&w, ", ", "warm-up %s", format_things(schedule->warmup, "step", steps));
    wrap_end(&w);
}

void
train_report_start(const struct train_report *r, const struct trainer *t, const struct trainer_start *start)
{
    const struct trainer_options *o = trainer_options(t);
    const struct checkpoint_state *state = trainer_state(t);
    char steps[FORMAT_THINGS], epochs[FORMAT_THINGS], done[FORMAT_TEXT], from[PRINTABLE_TEXT];
    struct wrap w = {.out = stderr};

    if (r->common->quiet)
        return;
    if (!start->resumed) {
        print_weights(t, start->from, &start->weights);
        print_rate(t);
        print_short(t);
        return;
    }
    wrap_put(&w, "", "resume   %s", printable_text(start->from, from));
    wrap_put(&w, ": ", "%s", format_things(state->step, "step", steps));
    wrap_put(&w, ", ", "%s of %s%s", format_count(state->epoch, done), format_things(o->epochs, "epoch", epochs),
             start->complete ? ": complete" : "");
    if (state->leaky)
        wrap_put(&w, ", ", "leaky");
    wrap_end(&w);
    if (o->init)
        fprintf(stderr, "         --init is not used: the run resumes (--resume none starts fresh)\n");
    print_rate(t);
    print_short(t);
}

/* Format an estimated time: "4.2 s", or from ten seconds on "1:10". */
static char *
about_seconds(double seconds, char out[FORMAT_TEXT])
{
    if (seconds >= 10)
        return format_seconds(seconds, out);
    snprintf(out, FORMAT_TEXT, "%.2g s", seconds);
    return out;
}

void
train_report_estimate(const struct train_report *r, const struct trainer *t)
{
    const struct trainer_estimate *e = &r->estimate;
    char epoch[FORMAT_TEXT], run[FORMAT_TEXT];
    struct wrap w = {.out = stderr};
    struct trainer_facts f;

    if (r->common->quiet)
        return;
    if (e->micro_batch <= 0) {
        fprintf(stderr, "time     unknown: there is no such device here, and no model of it for an evaluation\n");
        return;
    }
    trainer_facts(t, &f);
    about_seconds(e->epoch, epoch);
    about_seconds(e->run, run);
    if (r->cli->train.evaluate_only)
        wrap_put(&w, "", "time     about %s", run);
    else
        wrap_put(&w, "", "time     about %s an epoch, %s %s", epoch, run,
                 trainer_state(t)->step > 0 ? "what is left" : "the run");
    if (f.ranks > 1 && !r->cli->train.evaluate_only)
        wrap_put(&w, " ", "and the sums of the ranks");
    wrap_put(&w, ": ", "%.2g s a micro-batch, %s", e->micro_batch, e->modelled ? "modelled, not measured" : "measured");
    wrap_end(&w);
}

void
train_report_started(void *context, const struct trainer *t, const struct trainer_start *start)
{
    struct train_report *r = context;

    r->started = true;
    r->resumed = start->resumed;
    r->complete = start->complete;
    snprintf(r->from, sizeof(r->from), "%s", start->from);
    begin_progress(r, t);
    train_watch_start(&r->watch, t, start);
    train_report_start(r, t, start);
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static void
smooth(struct train_report *r, const struct trainer_step *step)
{
    if (isfinite(step->loss)) { /* otherwise the trainer skipped the step */
        r->loss = SMOOTHING * r->loss + (1 - SMOOTHING) * step->loss;
        r->loss_weight = SMOOTHING * r->loss_weight + (1 - SMOOTHING);
    }
    r->waited += step->times.seconds[PART_WAIT];
    r->worked += step->seconds;
}

char *
train_report_mark(const struct trainer *t, char out[TRAIN_MARK])
{
    const struct checkpoint_state *state = trainer_state(t);
    bool is_short = state->short_run[0];

    snprintf(out, TRAIN_MARK, "%s%s%s%s", state->leaky ? "leaky  " : "", is_short ? "short run: " : "",
             state->short_run, is_short ? "  " : "");
    return out;
}

static double
percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

char *
train_report_rate(double rate, char out[FORMAT_TEXT])
{
    if (rate >= 10)
        return format_count((uint64_t)(rate + 0.5), out);
    snprintf(out, FORMAT_TEXT, "%.1f", rate);
    return out;
}

static void
format_left(double images, double rate, char out[FORMAT_TEXT])
{
    if (rate > 0)
        format_seconds(images / rate, out);
    else
        snprintf(out, FORMAT_TEXT, "-:--");
}

void
train_report_stepped(void *context, const struct trainer *t, const struct trainer_step *step)
{
    struct train_report *r = context;
    const struct checkpoint_state *state = trainer_state(t);
    char rate[FORMAT_TEXT], epoch_left[FORMAT_TEXT], run_left[FORMAT_TEXT], text[256];
    char step_text[FORMAT_TEXT], steps[FORMAT_TEXT], mark[TRAIN_MARK];
    struct trainer_facts f;

    smooth(r, step);
    train_watch_step(&r->watch, t, step);
    progress_update(&r->images, r->images.done + step->images);
    if (!progress_line_due(&r->line))
        return;
    trainer_facts(t, &f);
    format_left((double)(f.steps - state->batches) * (double)f.global_batch, r->images.rate, epoch_left);
    format_left((double)(r->images.total > r->images.done ? r->images.total - r->images.done : 0), r->images.rate,
                run_left);
    snprintf(text, sizeof(text), "ep %u/%u step %s/%s  %sloss %.4f  %s img/s  data wait %.1f %%  epoch %s left, run %s",
             state->epoch + 1, trainer_options(t)->epochs, format_count(state->batches, step_text),
             format_count(f.steps, steps), train_report_mark(t, mark), r->loss / r->loss_weight,
             train_report_rate(r->images.rate, rate), percent(r->waited, r->worked), epoch_left, run_left);
    progress_line_update(&r->line, text);
    r->waited = r->worked = 0;
}

static void
print_times(struct train_report *r, const struct trainer_epoch *e)
{
    char text[256] = "";
    size_t used = 0;
    int i;

    for (i = 0; i < PART_COUNT; i++)
        if (e->times.seconds[i] > 0)
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s %.1f %%", used > 0 ? "  " : "",
                                     step_part_name[i], percent(e->times.seconds[i], e->seconds));
    progress_line_print(&r->line, "time     %s", text);
}

/* Prints the loss scale, if gradients are scaled. */
static void
print_scale(struct train_report *r, const struct trainer *t)
{
    double scale = trainer_state(t)->plan.loss_scale;
    uint64_t skipped = trainer_steps_skipped(t);
    char steps[FORMAT_THINGS];

    if (skipped > 0)
        progress_line_print(&r->line, "         %s skipped so far, whose gradient overflowed; loss scale %.6g",
                            format_things(skipped, "step", steps), scale);
    else if (r->common->verbose > 0 && scale != 1)
        progress_line_print(&r->line, "scale    loss scale %.6g, no step skipped", scale);
}

void
train_report_epoch(void *context, const struct trainer *t, const struct trainer_epoch *e)
{
    struct train_report *r = context;
    char seconds[FORMAT_TEXT], rate[FORMAT_TEXT], records[FORMAT_THINGS], mark[TRAIN_MARK];

    train_watch_epoch(&r->watch, t, e);
    if (r->common->quiet)
        return;
    progress_line_print(&r->line, "ep %u/%u   %sloss %.4f  lr %.3g  %s img/s  data wait %.1f %%  in %s", e->epoch,
                        trainer_options(t)->epochs, train_report_mark(t, mark), e->loss, e->rate,
                        train_report_rate(e->seconds > 0 ? (double)e->images / e->seconds : 0, rate),
                        percent(e->times.seconds[PART_WAIT], e->seconds), format_seconds(e->seconds, seconds));
    if (r->common->verbose > 0) {
        print_times(r, e);
        progress_line_print(&r->line, "order    %s", e->order);
    }
    if (trainer_result(t)->damaged > 0)
        progress_line_print(&r->line, "         %s skipped so far",
                            format_things(trainer_result(t)->damaged, "damaged record", records));
    print_scale(r, t);
}

/* Returns "0.87", or "n/a". */
static const char *
format_factor(double factor, char out[FORMAT_TEXT])
{
    if (isnan(factor))
        return "n/a";
    snprintf(out, FORMAT_TEXT, "%.2f", factor);
    return out;
}

static void
print_factors(struct train_report *r, const struct rank_times *times)
{
    double factor[FACTOR_COUNT];
    char text[FACTOR_COUNT][FORMAT_TEXT];

    rank_times_factors(times, factor);
    progress_line_print(&r->line,
                        "ranks    parallel efficiency %s = load balance %s x communication %s (serialisation %s x "
                        "transfer %s)",
                        format_factor(factor[FACTOR_PARALLEL], text[FACTOR_PARALLEL]),
                        format_factor(factor[FACTOR_BALANCE], text[FACTOR_BALANCE]),
                        format_factor(factor[FACTOR_COMMUNICATION], text[FACTOR_COMMUNICATION]),
                        format_factor(factor[FACTOR_SERIALISATION], text[FACTOR_SERIALISATION]),
                        format_factor(factor[FACTOR_TRANSFER], text[FACTOR_TRANSFER]));
    if (!isnan(factor[FACTOR_CORES]))
        progress_line_print(&r->line, "         ranks had %.0f %% of their cores", 100 * factor[FACTOR_CORES]);
    if (!isnan(factor[FACTOR_BUSY]))
        progress_line_print(&r->line, "         device busy %s%s%s",
                            format_factor(factor[FACTOR_BUSY], text[FACTOR_BUSY]),
                            isnan(factor[FACTOR_ROOF]) ? "" : ", share of the roofline ",
                            isnan(factor[FACTOR_ROOF]) ? "" : format_factor(factor[FACTOR_ROOF], text[FACTOR_ROOF]));
}

/* A single rank has no other to be compared with, so only -v prints its times. */
void
train_report_times(void *context, const struct trainer *t, const struct rank_times *times, bool all)
{
    struct train_report *r = context;
    char advice[RANK_ADVICE];

    train_watch_times(&r->watch, t, times, all);
    if (r->common->quiet || times->steps == 0 || (times->ranks == 1 && r->common->verbose == 0))
        return;
    print_factors(r, times);
    if (all || r->common->verbose > 0)
        progress_line_print(&r->line, "         %s", rank_times_advice(times, advice));
}

void
train_report_spans(void *context, const struct trainer *t, int rank, const struct trace_span *span, size_t count)
{
    struct train_report *r = context;

    train_watch_spans(&r->watch, t, rank, span, count);
}

void
train_report_saved(void *context, const struct trainer *t, const char *name, double seconds)
{
    struct train_report *r = context;

    train_watch_note(&r->watch, t, "checkpoint", name);
    if (r->common->verbose > 0 && !r->common->quiet)
        progress_line_print(&r->line, "saved    %s in %.2f s", name, seconds);
}

void
train_report_note(void *context, const struct trainer *t, const char *text)
{
    struct train_report *r = context;
    char line[CHEX_ERROR_TEXT];

    train_watch_note(&r->watch, t, "note", text);
    snprintf(line, sizeof(line), NOTE "%s", text);
    if (!r->common->quiet)
        say(r, line);
}

static void
warn(struct train_report *r, const struct trainer *t, const char *text, bool quiet)
{
    char line[CHEX_ERROR_TEXT];

    if (t)
        train_watch_note(&r->watch, t, "warning", text);
    snprintf(line, sizeof(line), "%s: warning: %s", train_program.name, text);
    if (!quiet)
        say(r, line);
}

void
train_report_warn(void *context, const struct trainer *t, const char *text)
{
    struct train_report *r = context;

    warn(r, t, text, r->common->quiet);
}

void
train_report_lost(void *context, const struct trainer *t, const char *text)
{
    warn(context, t, text, false);
}

/* ---- evaluations ------------------------------------------------------------------------------------------------- */

void
train_report_evaluating(void *context, const struct trainer *t, uint64_t done, uint64_t of)
{
    struct train_report *r = context;
    char text[64];

    (void)t;
    if (!progress_line_due(&r->line))
        return;
    snprintf(text, sizeof(text), "evaluate %.0f %%", percent((double)done, (double)of));
    progress_line_update(&r->line, text);
}
