/*
 * answers.c - the answers in words at the top of the report of a run; see run.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/run/run.h"

#include <math.h>
#include <string.h>

#define NUMBER(value) run_number(value, 3, (char[RUN_DIGITS]){0})
#define COUNT(n)      format_count(n, (char[FORMAT_TEXT]){0})

/* Append " (0.801 to 0.823)", or nothing without an interval. */
static void
say_interval(struct run_answer *a, const struct measured *m)
{
    if (!isnan(m->low))
        run_say(a, " (%s to %s)", NUMBER(m->low), NUMBER(m->high));
}

static void
answer_scope(struct run_report *r)
{
    bool all = r->enough == r->p.outputs;
    struct run_answer *a = run_answer_begin(r, "scope", "What was measured", all ? RUN_GOOD : RUN_NOTE);
    char images[FORMAT_THINGS], patients[FORMAT_THINGS];

    run_say(a, "The split '%s': %s of %s.", r->split, format_things(r->p.count, "image", images),
            format_things(r->patients, "patient", patients));
    if (r->skipped > 0)
        run_say(a, " %s images could not be read and are left out.", COUNT(r->skipped));
    if (all)
        run_say(a, " All %u findings have positives of at least %d patients.", r->p.outputs, METRICS_FEWEST_PATIENTS);
    else
        run_say(a, " %u of %u findings %s positives of at least %d patients. The others have counts, but no numbers.",
                r->enough, r->p.outputs, r->enough == 1 ? "has" : "have", METRICS_FEWEST_PATIENTS);
}

/*
 * Were these images used to make the network?  By the name of the split, or by the hash of its members: the name of a
 * split may differ between data sets.
 */
static bool
is_of_use(const struct run_report *r, const char *use)
{
    unsigned i;

    for (i = 0; i < r->splits; i++)
        if (strcmp(r->of[i].use, use) == 0 &&
            (strcmp(r->of[i].name, r->split) == 0 || (r->members[0] && strcmp(r->of[i].sha256, r->members) == 0)))
            return true;
    return false;
}

bool
run_report_is_used(const struct run_report *r)
{
    return is_of_use(r, "train") || is_of_use(r, "validation");
}

static void
answer_use(struct run_report *r)
{
    struct run_answer *a;

    if (r->used > 0) {
        a = run_answer_begin(r, RUN_USED, "Images of the training", RUN_LOOK);
        run_say(a,
                "%u of the %u runs were trained on these images, or made choices by them, such as the best epoch. So "
                "their mean and the ensemble are too good for new images.",
                r->used, r->used_of);
    } else if (is_of_use(r, "train")) {
        a = run_answer_begin(r, RUN_USED, "Training images", RUN_LOOK);
        run_say(a, "The network was trained on %s images, so the figures say nothing about new images.",
                r->limit[0] ? "some of these" : "these");
        if (!r->floor->missing[0])
            run_say(a, " The floor was fitted on %s.", r->limit[0] ? "the images of the training" : "the same images");
    } else if (is_of_use(r, "validation")) {
        a = run_answer_begin(r, RUN_USED, "Validation images", RUN_LOOK);
        run_say(a,
                "Choices of the training were made on these images, such as the best epoch%s, so the figures are too "
                "good for new images.",
                r->optimistic ? " and the thresholds" : "");
    }
}

static void
answer_marks(struct run_report *r)
{
    if (r->p.leaky)
        run_say(run_answer_begin(r, "leaky", "Leaks", RUN_LOOK),
                "Training and evaluation share patients, so these results are too good.");
    if (r->p.short_run[0])
        run_say(run_answer_begin(r, "short", "Short run", RUN_LOOK),
                "The run was cut short by %s: its results say little.", r->p.short_run);
}

/* Returns the finding with the lowest (sign 1) or highest (sign -1) AUROC of those with enough patients. */
static unsigned
extreme(const struct run_report *r, int sign)
{
    unsigned k, best = r->p.outputs;

    for (k = 0; k < r->p.outputs; k++)
        if (r->finding[k].enough &&
            (best == r->p.outputs || sign * r->metrics->finding[k].metric[METRIC_AUROC].value <
                                         sign * r->metrics->finding[best].metric[METRIC_AUROC].value))
            best = k;
    return best;
}

static double
mean_of_enough(const struct run_report *r)
{
    double sum = 0;
    unsigned k;

    for (k = 0; k < r->p.outputs; k++)
        if (r->finding[k].enough)
            sum += r->metrics->finding[k].metric[METRIC_AUROC].value;
    return sum / r->enough;
}

static void
answer_auroc(struct run_report *r)
{
    const struct metrics *m = r->metrics;
    struct run_answer *a = run_answer_begin(r, "auroc", "AUROC", r->enough > 0 ? RUN_GOOD : RUN_LOOK);
    unsigned high = extreme(r, -1), low = extreme(r, 1);

    if (r->enough == 0) {
        run_say(a, "No finding has enough patients for a number.");
        return;
    }
    run_say(a, "Highest: %s %s", r->finding[high].name, NUMBER(m->finding[high].metric[METRIC_AUROC].value));
    say_interval(a, &m->finding[high].metric[METRIC_AUROC]);
    if (low != high) {
        run_say(a, "; lowest: %s %s", r->finding[low].name, NUMBER(m->finding[low].metric[METRIC_AUROC].value));
        say_interval(a, &m->finding[low].metric[METRIC_AUROC]);
    }
    run_say(a, ". Mean over the %u finding%s with a positive and a negative image", m->defined, RUN_PLURAL(m->defined));
    if (!isnan(r->mean))
        run_say(a, ", as in metrics-%s.json", r->split);
    run_say(a, ": %s", NUMBER(m->mean[METRIC_AUROC].value));
    say_interval(a, &m->mean[METRIC_AUROC]);
    run_say(a, ".");
    if (m->defined > r->enough) /* every finding with enough patients has an AUROC */
        run_say(a, " Without the %u with too few patients: %s.", m->defined - r->enough, NUMBER(mean_of_enough(r)));
}

/* "Hernia: AUROC 0.860, and 0.845 from only age, sex and view." */
static void
say_floor(const struct run_report *r, struct run_answer *a, unsigned k)
{
    const struct compared *c = &r->floor->result.finding[k];

    run_say(a, " %s: AUROC %s, and %s from only age, sex and view.", r->finding[k].name, NUMBER(c->auroc[1]),
            NUMBER(c->auroc[0]));
}

/* The network against the floor: the interval of the difference is above 0, below 0, or neither. */
enum against { AGAINST_BETTER, AGAINST_UNCLEAR, AGAINST_WORSE, AGAINST_COUNT };

static enum against
against_floor(const struct measured *difference)
{
    return difference->low > 0 ? AGAINST_BETTER : difference->high < 0 ? AGAINST_WORSE : AGAINST_UNCLEAR;
}

static void
say_all_of(const struct run_report *r, struct run_answer *a, enum against which)
{
    unsigned k;

    for (k = 0; k < r->p.outputs; k++)
        if (r->floor->fitted[k] && against_floor(&r->floor->result.finding[k].difference) == which)
            say_floor(r, a, k);
}

static void
answer_floor(struct run_report *r)
{
    const struct comparison *c = &r->floor->result;
    struct run_answer *a = run_answer_begin(r, "floor", "More than age, sex and view", RUN_GOOD);
    unsigned k, of[AGAINST_COUNT] = {0}, fitted = 0, closest = r->p.outputs;

    if (r->floor->missing[0]) {
        a->level = RUN_NOTE;
        run_say(a, "n/a: %s.", r->floor->missing);
        return;
    }
    for (k = 0; k < r->p.outputs; k++) {
        if (!r->floor->fitted[k])
            continue;
        fitted++;
        of[against_floor(&c->finding[k].difference)]++;
        if (closest == r->p.outputs || c->finding[k].difference.value < c->finding[closest].difference.value)
            closest = k;
    }
    if (fitted == 0) {
        a->level = RUN_NOTE;
        run_say(a, "n/a: no finding has enough images in '%s' and here.", r->floor->split);
        return;
    }
    run_say(
        a,
        "A logistic regression on age, sex and view alone reaches a mean AUROC of %s over %u finding%s; the network "
        "%s.",
        NUMBER(c->mean.auroc[0]), fitted, RUN_PLURAL(fitted), NUMBER(c->mean.auroc[1]));
    if (of[AGAINST_BETTER] == fitted) {
        run_say(a, " The network is better for each of them. The smallest difference:");
        say_floor(r, a, closest);
        return;
    }
    a->level = RUN_LOOK;
    if (of[AGAINST_WORSE] > 0) {
        run_say(a, " The network is worse for %u finding%s, with an interval of the difference wholly below 0:",
                of[AGAINST_WORSE], RUN_PLURAL(of[AGAINST_WORSE]));
        say_all_of(r, a, AGAINST_WORSE);
    }
    if (of[AGAINST_UNCLEAR] > 0) {
        run_say(
            a,
            " For %u finding%s, the interval of the difference includes 0, so the network is not known to be better:",
            of[AGAINST_UNCLEAR], RUN_PLURAL(of[AGAINST_UNCLEAR]));
        say_all_of(r, a, AGAINST_UNCLEAR);
    }
}

static void
answer_thresholds(struct run_report *r)
{
    struct run_answer *a = run_answer_begin(r, "thresholds", "Thresholds", RUN_GOOD);
    double own = 0, chosen = 0;
    unsigned k, n = 0;

    if (!r->chosen_on[0] && r->unfitted[0]) {
        a->level = RUN_NOTE;
        run_say(a, "n/a: %s.", r->unfitted);
        return;
    }
    if (!r->chosen_on[0]) {
        a->level = RUN_NOTE;
        run_say(a, "n/a: the model has no thresholds, because it had no validation split.");
        return;
    }
    for (k = 0; k < r->p.outputs; k++) {
        const struct finding_metrics *m = &r->metrics->finding[k];
        const struct run_point *p = &r->finding[k].point[OPERATING_YOUDEN];

        if (!r->finding[k].enough || isnan(p->threshold))
            continue;
        own += m->point[CRITERION_YOUDEN].value;
        chosen += run_share(p->true_positives, m->positives) - run_share(p->false_positives, m->negatives);
        n++;
    }
    if (n == 0) {
        a->level = RUN_NOTE;
        run_say(a, "n/a: no finding has both a threshold of '%s' and enough patients here.", r->chosen_on);
        return;
    }
    if (r->optimistic) {
        a->level = RUN_LOOK;
        run_say(a, "They were chosen on these images, so sensitivity and specificity are too good.");
        return;
    }
    run_say(a,
            "They were chosen on '%s'. Mean Youden J of %u finding%s: %s. Thresholds chosen on these images would show "
            "%s, which is too good.",
            r->chosen_on, n, RUN_PLURAL(n), NUMBER(chosen / n), NUMBER(own / n));
}

struct ece_mean {
    double raw, raw_perfect, calibrated, calibrated_perfect;
    unsigned n;
};

static void
answer_calibration(struct run_report *r)
{
    struct run_answer *a = run_answer_begin(r, "calibration", "Calibration", RUN_GOOD);
    struct ece_mean all = {.n = 0}, both = {.n = 0};
    unsigned k;

    for (k = 0; k < r->p.outputs; k++) {
        const struct run_finding *f = &r->finding[k];

        if (isnan(f->raw.ece))
            continue;
        all.raw += f->raw.ece;
        all.raw_perfect += f->raw.perfect;
        all.n++;
        if (isnan(f->calibrated.ece))
            continue;
        both.raw += f->raw.ece;
        both.calibrated += f->calibrated.ece;
        both.calibrated_perfect += f->calibrated.perfect;
        both.n++;
    }
    if (all.n == 0) {
        a->level = RUN_NOTE;
        run_say(a, "n/a: too few images.");
        return;
    }
    a->level = all.raw > 2 * all.raw_perfect ? RUN_LOOK : RUN_GOOD;
    run_say(a,
            "Mean calibration error (ECE) of the raw probabilities over %u finding%s: %s; with perfect probabilities, "
            "chance alone would cause %s.",
            all.n, RUN_PLURAL(all.n), NUMBER(all.raw / all.n), NUMBER(all.raw_perfect / all.n));
    if (both.n > 0)
        run_say(a, " For the %u finding%s that the model can calibrate: %s raw, %s calibrated, %s by chance.", both.n,
                RUN_PLURAL(both.n), NUMBER(both.raw / both.n), NUMBER(both.calibrated / both.n),
                NUMBER(both.calibrated_perfect / both.n));
}

#define NAMED    4 /* gaps in the sentence */
#define SHORTCUT 0.7

static void
say_gap(struct run_answer *a, const struct run_group *g, const char *what, const char *finding,
        const struct subgroup_cell *c)
{
    run_say(a, " %s%s%s: %s for %s, %s for %s.", finding, finding[0] ? ", " : "", what, NUMBER(c->value[0]), g->name,
            NUMBER(c->value[1]), g->rest);
}

/* Count the significant gaps, and name the first ones. */
static unsigned
say_gaps(const struct run_report *r, struct run_answer *a, unsigned *uncorrected)
{
    static const char *const what[SUBGROUP_METRICS] = {"sensitivity", "false positive rate", "AUROC",
                                                       "mean p - share of positives"};
    unsigned g, m, k, found = 0;

    for (g = 0; g < r->groups->count; g++) {
        const struct subgroup_cell *c = &r->groups->of[g].underdiagnosis;

        *uncorrected += c->p < RUN_SIGNIFICANT;
        if (c->holm < RUN_SIGNIFICANT && found++ < NAMED)
            say_gap(a, &r->groups->group[g], "underdiagnosis", "", c);
        for (m = 0; m < SUBGROUP_METRICS; m++)
            for (k = 0; k < r->p.outputs; k++) {
                c = &r->groups->of[g].cell[m][k];
                *uncorrected += c->p < RUN_SIGNIFICANT;
                if (c->holm < RUN_SIGNIFICANT && found++ < NAMED)
                    say_gap(a, &r->groups->group[g], what[m], r->finding[k].name, c);
            }
    }
    return found;
}

static void
answer_groups(struct run_report *r)
{
    struct run_answer *a = run_answer_begin(r, "groups", "Subgroups", RUN_GOOD), named = {.id = ""};
    unsigned found, uncorrected = 0, untested = r->groups->shown_gaps - r->groups->tested;

    if (r->groups->tested == 0) {
        a->level = RUN_NOTE;
        run_say(a, "n/a: %s.",
                r->groups->count == 0 ? r->groups->missing
                : untested > 0        ? "no gap can be tested, because its values are 0 or 1"
                                      : "every group is too small");
        return;
    }
    found = say_gaps(r, &named, &uncorrected);
    run_say(a,
            "%s gaps between a group and the rest were tested. Without a difference, chance alone would give about "
            "%.0f with p < 0.05; there are %u. After Holm's correction %u remain%s%s",
            COUNT(r->groups->tested), RUN_SIGNIFICANT * r->groups->tested, uncorrected, found, found == 1 ? "s" : "",
            found > 0 ? ":" : ".");
    run_say(a, "%s", named.text);
    if (found > NAMED)
        run_say(a, " The tables mark the others.");
    if (untested > 0)
        run_say(a, " %s more gap%s %s in the tables, but not tested: a value is 0 or 1, or the draws do not vary.",
                COUNT(untested), RUN_PLURAL(untested), untested == 1 ? "is" : "are");
    if (r->groups->without > 0)
        run_say(a, " %s of these images %s not in the file of --groups.", COUNT(r->groups->without),
                r->groups->without == 1 ? "is" : "are");
    if (found > 0)
        a->level = RUN_LOOK;
}

static void
answer_shortcuts(struct run_report *r)
{
    struct run_answer *a = run_answer_begin(r, "shortcuts", "Shortcuts by the view", RUN_GOOD);
    double pooled = 0, within = 0;
    unsigned k, n = 0, most = r->p.outputs;

    for (k = 0; k < r->p.outputs; k++) {
        const struct run_shortcut *s = &r->groups->shortcut[k];

        if (!isnan(s->within) && !r->groups->missing[0]) {
            pooled += s->pooled.value;
            within += s->within;
            n++;
        }
        if (!isnan(s->view.value) && !r->groups->missing[0] &&
            (most == r->p.outputs || fabs(s->view.value - 0.5) > fabs(r->groups->shortcut[most].view.value - 0.5)))
            most = k;
    }
    if (n > 0)
        run_say(a, "Mean AUROC over %u finding%s: %s for both views together, %s within views.", n, RUN_PLURAL(n),
                NUMBER(pooled / n), NUMBER(within / n));
    if (most < r->p.outputs) {
        const struct measured *view = &r->groups->shortcut[most].view;

        run_say(a, "%sAmong images without the finding, the output for %s distinguishes AP from PA best: AUROC %s",
                n > 0 ? " " : "", r->finding[most].name, NUMBER(view->value));
        say_interval(a, view);
        run_say(a, ".");
        if (fabs(view->value - 0.5) > SHORTCUT - 0.5)
            a->level = RUN_LOOK;
    }
    if (!a->text[0]) {
        a->level = RUN_NOTE;
        run_say(a, "n/a: too few images of AP or PA.");
    }
}

void
run_report_answer(struct run_report *r)
{
    answer_use(r);
    answer_scope(r);
    answer_marks(r);
    answer_auroc(r);
    answer_floor(r);
    answer_thresholds(r);
    answer_calibration(r);
    answer_groups(r);
    answer_shortcuts(r);
    run_report_answer_more(r);
}
