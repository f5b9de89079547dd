/*
 * answers.c - the answers in words at the top of the report of a run; see run.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/diff/runs.h"
#include "inspect/run/run.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

const char *
run_number(double value, int digits, char out[RUN_DIGITS])
{
    if (isnan(value))
        return "-";
    snprintf(out, RUN_DIGITS, "%.*f", digits, value);
    return strcmp(out, "-0.000") == 0 ? out + 1 : out;
}

#define NUMBER(value) run_number(value, 3, (char[RUN_DIGITS]){0})
#define COUNT(n)      format_count(n, (char[FORMAT_TEXT]){0})
#define PLURAL(n)     ((n) == 1 ? "" : "s")

static struct run_answer *
begin(struct run_report *r, const char *id, const char *title, enum run_answer_level level)
{
    struct run_answer *a = &r->answer[r->answers < RUN_ANSWERS - 1 ? r->answers++ : RUN_ANSWERS - 1];

    *a = (struct run_answer){.id = id, .title = title, .level = level};
    return a;
}

static void say(struct run_answer *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void
say(struct run_answer *a, const char *format, ...)
{
    size_t used = strlen(a->text);
    va_list args;

    va_start(args, format);
    vsnprintf(a->text + used, sizeof(a->text) - used, format, args);
    va_end(args);
}

/* Append " (0.801 to 0.823)", or nothing without an interval. */
static void
say_interval(struct run_answer *a, const struct measured *m)
{
    if (!isnan(m->low))
        say(a, " (%s to %s)", NUMBER(m->low), NUMBER(m->high));
}

static void
answer_scope(struct run_report *r)
{
    bool all = r->enough == r->p.outputs;
    struct run_answer *a = begin(r, "scope", "What was measured", all ? RUN_GOOD : RUN_NOTE);
    char images[FORMAT_THINGS], patients[FORMAT_THINGS];

    say(a, "The split '%s': %s of %s.", r->split, format_things(r->p.count, "image", images),
        format_things(r->patients, "patient", patients));
    if (r->skipped > 0)
        say(a, " %s images could not be read and are left out.", COUNT(r->skipped));
    if (all)
        say(a, " All %u findings have positives of at least %d patients.", r->p.outputs, METRICS_FEWEST_PATIENTS);
    else
        say(a, " %u of %u findings have positives of at least %d patients. The others have counts, but no numbers.",
            r->enough, r->p.outputs, METRICS_FEWEST_PATIENTS);
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

static void
answer_use(struct run_report *r)
{
    struct run_answer *a;

    if (is_of_use(r, "train")) {
        a = begin(r, RUN_USED, "Training images", RUN_LOOK);
        say(a, "The network was trained on %s images, so the figures say nothing about new images.",
            r->limit[0] ? "some of these" : "these");
        if (!r->floor->missing[0])
            say(a, " The floor was fitted on %s.", r->limit[0] ? "the images of the training" : "the same images");
    } else if (is_of_use(r, "validation")) {
        a = begin(r, RUN_USED, "Validation images", RUN_LOOK);
        say(a,
            "Choices of the training were made on these images, such as the best epoch%s, so the figures are too "
            "good for new images.",
            r->optimistic ? " and the thresholds" : "");
    }
}

static void
answer_marks(struct run_report *r)
{
    if (r->p.leaky)
        say(begin(r, "leaky", "Leaks", RUN_LOOK),
            "Training and evaluation share patients, so these results are too good.");
    if (r->p.short_run[0])
        say(begin(r, "short", "Short run", RUN_LOOK), "The run was cut short by %s: its results say little.",
            r->p.short_run);
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

static void
answer_auroc(struct run_report *r)
{
    const struct metrics *m = r->metrics;
    struct run_answer *a = begin(r, "auroc", "AUROC", r->enough > 0 ? RUN_GOOD : RUN_LOOK);
    unsigned high = extreme(r, -1), low = extreme(r, 1);

    if (r->enough == 0) {
        say(a, "No finding has enough patients for a number.");
        return;
    }
    say(a, "Highest: %s %s", r->finding[high].name, NUMBER(m->finding[high].metric[METRIC_AUROC].value));
    say_interval(a, &m->finding[high].metric[METRIC_AUROC]);
    if (low != high) {
        say(a, "; lowest: %s %s", r->finding[low].name, NUMBER(m->finding[low].metric[METRIC_AUROC].value));
        say_interval(a, &m->finding[low].metric[METRIC_AUROC]);
    }
    say(a, ". Mean over the %u finding%s with a positive and a negative image", m->defined, PLURAL(m->defined));
    if (!isnan(r->mean))
        say(a, ", as in metrics-%s.json", r->split);
    say(a, ": %s", NUMBER(m->mean[METRIC_AUROC].value));
    say_interval(a, &m->mean[METRIC_AUROC]);
    say(a, ".");
}

/* "Hernia: AUROC 0.860, and 0.845 from only age, sex and view." */
static void
say_floor(const struct run_report *r, struct run_answer *a, unsigned k)
{
    const struct compared *c = &r->floor->result.finding[k];

    say(a, " %s: AUROC %s, and %s from only age, sex and view.", r->finding[k].name, NUMBER(c->auroc[1]),
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
    struct run_answer *a = begin(r, "floor", "More than age, sex and view", RUN_GOOD);
    unsigned k, of[AGAINST_COUNT] = {0}, fitted = 0, closest = r->p.outputs;

    if (r->floor->missing[0]) {
        a->level = RUN_NOTE;
        say(a, "n/a: %s.", r->floor->missing);
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
        say(a, "n/a: no finding has enough images in '%s' and here.", r->floor->split);
        return;
    }
    say(a,
        "A logistic regression on age, sex and view alone reaches a mean AUROC of %s over %u finding%s; the network "
        "%s.",
        NUMBER(c->mean.auroc[0]), fitted, PLURAL(fitted), NUMBER(c->mean.auroc[1]));
    if (of[AGAINST_BETTER] == fitted) {
        say(a, " The network is better for each of them. The smallest difference:");
        say_floor(r, a, closest);
        return;
    }
    a->level = RUN_LOOK;
    if (of[AGAINST_WORSE] > 0) {
        say(a, " The network is worse for %u, with an interval of the difference wholly below 0:", of[AGAINST_WORSE]);
        say_all_of(r, a, AGAINST_WORSE);
    }
    if (of[AGAINST_UNCLEAR] > 0) {
        say(a, " The interval of the difference includes 0 for %u, so the network is not known to be better:",
            of[AGAINST_UNCLEAR]);
        say_all_of(r, a, AGAINST_UNCLEAR);
    }
}

static void
answer_thresholds(struct run_report *r)
{
    struct run_answer *a = begin(r, "thresholds", "Thresholds", RUN_GOOD);
    double own = 0, chosen = 0;
    unsigned k, n = 0;

    if (!r->chosen_on[0]) {
        a->level = RUN_NOTE;
        say(a, "n/a: the model has no thresholds, because it had no validation split.");
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
        say(a, "n/a: no finding has both a threshold of '%s' and enough patients here.", r->chosen_on);
        return;
    }
    if (r->optimistic) {
        a->level = RUN_LOOK;
        say(a, "They were chosen on these images, so sensitivity and specificity are too good.");
        return;
    }
    say(a,
        "They were chosen on '%s'. Mean Youden J of %u finding%s: %s. Thresholds chosen on these images would show "
        "%s, which is too good.",
        r->chosen_on, n, PLURAL(n), NUMBER(chosen / n), NUMBER(own / n));
}

struct ece_mean {
    double raw, raw_perfect, calibrated, calibrated_perfect;
    unsigned n;
};

static void
answer_calibration(struct run_report *r)
{
    struct run_answer *a = begin(r, "calibration", "Calibration", RUN_GOOD);
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
        say(a, "n/a: too few images.");
        return;
    }
    a->level = all.raw > 2 * all.raw_perfect ? RUN_LOOK : RUN_GOOD;
    say(a,
        "Mean calibration error (ECE) of the raw probabilities over %u finding%s: %s; with perfect probabilities, "
        "chance alone would cause %s.",
        all.n, PLURAL(all.n), NUMBER(all.raw / all.n), NUMBER(all.raw_perfect / all.n));
    if (both.n > 0)
        say(a, " For the %u finding%s that the model can calibrate: %s raw, %s calibrated, %s by chance.", both.n,
            PLURAL(both.n), NUMBER(both.raw / both.n), NUMBER(both.calibrated / both.n),
            NUMBER(both.calibrated_perfect / both.n));
}

#define SIGNIFICANT 0.05
#define NAMED       4 /* gaps in the sentence */
#define SHORTCUT    0.7

static void
say_gap(struct run_answer *a, const struct run_group *g, const char *what, const char *finding,
        const struct subgroup_cell *c)
{
    say(a, " %s%s%s: %s for %s, %s for %s.", finding, finding[0] ? ", " : "", what, NUMBER(c->value[0]), g->name,
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

        *uncorrected += c->p < SIGNIFICANT;
        if (c->holm < SIGNIFICANT && found++ < NAMED)
            say_gap(a, &r->groups->group[g], "underdiagnosis", "", c);
        for (m = 0; m < SUBGROUP_METRICS; m++)
            for (k = 0; k < r->p.outputs; k++) {
                c = &r->groups->of[g].cell[m][k];
                *uncorrected += c->p < SIGNIFICANT;
                if (c->holm < SIGNIFICANT && found++ < NAMED)
                    say_gap(a, &r->groups->group[g], what[m], r->finding[k].name, c);
            }
    }
    return found;
}

static void
answer_groups(struct run_report *r)
{
    struct run_answer *a = begin(r, "groups", "Subgroups", RUN_GOOD), named = {.id = ""};
    unsigned found, uncorrected = 0, untested = r->groups->shown_gaps - r->groups->tested;

    if (r->groups->tested == 0) {
        a->level = RUN_NOTE;
        say(a, "n/a: %s.",
            r->groups->count == 0 ? r->groups->missing
            : untested > 0        ? "no gap can be tested, because its values are 0 or 1"
                                  : "every group is too small");
        return;
    }
    found = say_gaps(r, &named, &uncorrected);
    say(a,
        "%s gaps between a group and the rest were tested. Without a difference, chance alone would give about "
        "%.0f with p < 0.05; there are %u. After Holm's correction %u remain%s%s",
        COUNT(r->groups->tested), SIGNIFICANT * r->groups->tested, uncorrected, found, found == 1 ? "s" : "",
        found > 0 ? ":" : ".");
    say(a, "%s", named.text);
    if (found > NAMED)
        say(a, " The tables mark the others.");
    if (untested > 0)
        say(a, " %s more gap%s %s in the tables, but not tested: a value is 0 or 1, or the draws do not vary.",
            COUNT(untested), PLURAL(untested), untested == 1 ? "is" : "are");
    if (r->groups->without > 0)
        say(a, " %s of these images %s not in the file of --groups.", COUNT(r->groups->without),
            r->groups->without == 1 ? "is" : "are");
    if (found > 0)
        a->level = RUN_LOOK;
}

static void
answer_shortcuts(struct run_report *r)
{
    struct run_answer *a = begin(r, "shortcuts", "Shortcuts by the view", RUN_GOOD);
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
        say(a, "Mean AUROC over %u finding%s: %s for both views together, %s within views.", n, PLURAL(n),
            NUMBER(pooled / n), NUMBER(within / n));
    if (most < r->p.outputs) {
        const struct measured *view = &r->groups->shortcut[most].view;

        say(a, "%sAmong images without the finding, the output for %s distinguishes AP from PA best: AUROC %s",
            n > 0 ? " " : "", r->finding[most].name, NUMBER(view->value));
        say_interval(a, view);
        say(a, ".");
        if (fabs(view->value - 0.5) > SHORTCUT - 0.5)
            a->level = RUN_LOOK;
    }
    if (!a->text[0]) {
        a->level = RUN_NOTE;
        say(a, "n/a: too few images of AP or PA.");
    }
}

#define POOR_KAPPA 0.4

/* The network against other labels, and the finding on which both label sets agree least. */
static void
answer_labels(struct run_report *r)
{
    const struct run_labels *l = r->labels;
    double own = 0, other = 0;
    unsigned k, n = 0, least = r->p.outputs;
    struct run_answer *a;

    if (!l)
        return;
    a = begin(r, "labels", "Other labels", RUN_GOOD);
    for (k = 0; k < r->p.outputs; k++) {
        const struct run_agreement *g = &l->agreement[k];

        if (!isnan(g->own.value) && !isnan(g->other.value)) {
            own += g->own.value;
            other += g->other.value;
            n++;
        }
        if (!isnan(g->kappa) && (least == r->p.outputs || g->kappa < l->agreement[least].kappa))
            least = k;
    }
    say(a, "The file of --labels has %s of these images.", COUNT(l->report->p.count));
    if (n > 0)
        say(a, " Mean AUROC over %u finding%s: %s against its labels, %s against those of the run.", n, PLURAL(n),
            NUMBER(other / n), NUMBER(own / n));
    else
        say(a, " No finding has enough patients for a number against both labels.");
    if (least < r->p.outputs && l->agreement[least].kappa >= 1) {
        say(a, " The label sets agree on every finding that has enough images.");
    } else if (least < r->p.outputs) {
        const struct run_agreement *g = &l->agreement[least];

        say(a,
            " The label sets agree least on %s (kappa %s): %s images are positive in both, %s only in the run, %s "
            "only in the file.",
            r->finding[least].name, NUMBER(g->kappa), COUNT(g->count[1][1]), COUNT(g->count[1][0]),
            COUNT(g->count[0][1]));
        if (g->kappa < POOR_KAPPA)
            a->level = RUN_LOOK;
    }
    if (l->strange > 0)
        say(a,
            l->strange == 1 ? " %s label of the file is no finding of the run."
                            : " %s labels of the file are no finding of the run.",
            COUNT(l->strange));
    if (n == 0 || l->strange > 0)
        a->level = a->level == RUN_LOOK ? RUN_LOOK : RUN_NOTE;
}

static void
answer_many(struct run_report *r)
{
    const struct run_many *m = r->many;
    const struct run_spread *s;
    struct run_answer *a;

    if (!m)
        return;
    a = begin(r, "runs", "Several runs", m->findings > 0 ? RUN_GOOD : RUN_NOTE);
    if (m->findings == 0) {
        say(a, "n/a: no finding has enough patients.");
        return;
    }
    s = &m->measure[RUN_AUROC];
    say(a, "Mean AUROC of %u runs, over the %u finding%s with enough patients: %s, SD %s, %s to %s; ensemble %s.",
        m->diff->count, m->findings, PLURAL(m->findings), NUMBER(s->mean), NUMBER(s->deviation), NUMBER(s->least),
        NUMBER(s->most), NUMBER(s->ensemble));
    if (m->twin > 0) {
        say(a, " Run %u has the same predictions as run %u: mean, SD and ensemble count it again.", m->twin + 1,
            m->twin_of + 1);
        a->level = RUN_LOOK;
    }
    if (!m->only_seeds)
        say(a, " The runs are not known to differ only in their seed.");
    say(a, " The bootstrap's intervals hold no variance of seeds. The other answers are about the first run.");
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
    answer_many(r);
    answer_labels(r);
}
